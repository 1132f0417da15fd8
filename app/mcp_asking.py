"""What clients of `pilothouse mcp` want and the operator has to allow, asked on the terminal that serves."""

from __future__ import annotations

import asyncio
import os
import sys
from typing import TextIO

from engine.domain import commands as cmd
from engine.domain.approval import Question
from engine.domain.text import clean_line
from engine.engine import Engine
from engine.inquiry import question_text
from engine.journal import events as ev
from engine.steering.rules import words_of

_SCOPES = {"y": "once", "s": "session", "a": "always"}
_HOW = "y allows it once, s until this ends, a from now on, n denies it (n REASON)"
_READ = 4096


class TerminalAnswers:
    """Asks on a terminal, and takes the operator's word from it.

    Args:
        engine: the workspace.
        agent: through which clients' calls go.
        operator: who sits at the terminal.
        err: where it is asked.
    """

    def __init__(self, engine: Engine, agent: str, operator: str, err: TextIO) -> None:
        self._engine, self._agent, self._operator, self._err = engine, agent, operator, err
        self._lines: asyncio.Queue[str] = asyncio.Queue()
        self._part = b""

    async def run(self) -> None:
        """Ask and take answers until cancelled."""
        loop, number = asyncio.get_running_loop(), sys.stdin.fileno()
        loop.add_reader(number, self._read, number)
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._ask())
                group.create_task(self._answer())
        finally:
            loop.remove_reader(number)

    def _read(self, number: int) -> None:
        try:
            piece = os.read(number, _READ)
        except OSError:
            piece = b""
        if not piece:
            asyncio.get_running_loop().remove_reader(number)
            return
        *lines, self._part = (self._part + piece).split(b"\n")
        for line in lines:
            self._lines.put_nowait(line.decode("utf-8", "replace").strip())

    async def _ask(self) -> None:
        async for event in self._engine.events(await self._engine.head(), stream=self._agent):
            said = ev.payload_of(event)
            if isinstance(said, ev.ApprovalAsked):
                question = Question(
                    said.action, said.step, said.goal, said.call, said.key, said.why, said.offered
                )
                who = said.call.client or self._agent
                self._say(f"{who} asks ({said.action}): {question_text(question)} — {said.why}")
                self._say(f"  {_HOW}; s and a: {words_of(said.offered)}")

    async def _answer(self) -> None:
        while True:
            line = await self._lines.get()
            word, _, reason = line.partition(" ")
            question = (await self._engine.view(self._agent)).approvals.question
            if question is None:
                self._say("nothing is asked now")
            elif word in _SCOPES or word == "n":
                allow = word != "n"
                fields = {"scope": _SCOPES[word]} if allow else {"reason": reason.strip()[:500]}
                command = cmd.AnswerApproval.model_validate(
                    {"agent": self._agent, "action": question.action, "allow": allow, **fields}
                )
                self._say((await self._engine.submit(command, operator=self._operator)).message)
            else:
                self._say(_HOW)

    def _say(self, text: str) -> None:
        self._err.write(f"{clean_line(text, limit=4_000)}\n")
        self._err.flush()
