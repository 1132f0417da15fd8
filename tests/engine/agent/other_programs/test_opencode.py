"""OpenCode as it comes from npm, in the jail, with a scripted model on loopback.

It is looked for on PATH and in the directory that ACP_PROGRAMS names (`npm install opencode-ai` there).
"""

from __future__ import annotations

import json
import os
import shutil
import warnings
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.agents import Mode, RunState
from engine.core.state import AgentState
from tests.engine.agent.engine_flight import (
    Flight,
    QuickClock,
    journal_holds_together,
    live_state_is_the_fold,
)
from tests.engine.agent.other_programs.acp_flight import living
from tests.messages_server import Reply, Seen, call
from tests.openai_server import OpenAiServer

PLACES = os.pathsep.join(
    [str(Path(os.environ.get("ACP_PROGRAMS", "/nowhere"), "node_modules", ".bin")), os.environ["PATH"]]
)
START_S = 400.0
"""Seconds that a crowded machine may take to start a program of 180 MB."""
pytestmark = pytest.mark.slow
if shutil.which("opencode", path=PLACES) is None:
    warnings.warn(
        "OpenCode is not there: npm install opencode-ai, and name the directory in ACP_PROGRAMS", stacklevel=1
    )
    pytestmark = [pytest.mark.slow, pytest.mark.skip("OpenCode is not installed; set ACP_PROGRAMS")]


def talks(*replies: Reply) -> Callable[[Seen], Reply]:
    """Answers in turn, but for requests without tools, by which a title is asked for."""
    left = list(replies)
    return lambda seen: left.pop(0) if seen.body.get("tools") and left else Reply(text="a title")


def tasks(root: Path) -> tuple[Reply, ...]:
    """Read a file, edit one, write one, run a test."""
    edit = {"filePath": f"{root}/settings.toml", "oldString": "debug = false", "newString": "debug = true"}
    return (
        call("read", {"filePath": f"{root}/notes.txt"}),
        call("edit", edit),
        call("write", {"filePath": f"{root}/new.txt", "content": "hello\n"}),
        call("bash", {"command": "python3 test_it.py", "description": "run the test"}),
        Reply(text="All is done."),
    )


@asynccontextmanager
async def opencode(
    place: Path, monkeypatch: pytest.MonkeyPatch, **config: Any
) -> AsyncIterator[tuple[Flight, OpenAiServer]]:
    """An engine with OpenCode as the agent `dev`, and the model that it asks."""
    monkeypatch.setenv("PATH", PLACES)
    flight = Flight(place, QuickClock())
    await flight.open()
    flight.agent = "dev"
    (flight.sandbox / "notes.txt").write_text("remember\n")
    (flight.sandbox / "settings.toml").write_text("debug = false\n")
    (flight.sandbox / "test_it.py").write_text("print('1 passed')\n")
    async with OpenAiServer([talks(*tasks(flight.sandbox))], repeat=True) as server:
        models = {"scripted": {"name": "Scripted", "tool_call": True}}
        options = {"baseURL": f"{server.url}/v1", "apiKey": "none"}
        local = {"npm": "@ai-sdk/openai-compatible", "options": options, "models": models}
        settings = {"model": "local/scripted", "small_model": "local/scripted", "provider": {"local": local}}
        quiet = ("MODELS_FETCH", "DEFAULT_PLUGINS", "LSP_DOWNLOAD")
        env = {f"OPENCODE_DISABLE_{name}": "1" for name in quiet}
        env["OPENCODE_CONFIG_CONTENT"] = json.dumps(settings)
        given = {"preset": "opencode", "network": "on", "env": env, **config}
        await flight.do(cmd.CreateAgent, agent_type="acp_agent", config=given)
        await flight.do(cmd.AdoptGoal, text="switch debugging on and run the test")
        try:
            yield flight, server
            await live_state_is_the_fold(flight, "dev")
        finally:
            await flight.engine.close()
    await journal_holds_together(place)


def pending(state: AgentState) -> str:
    """The command that stands before its action, or empty."""
    return state.step.command if state.step is not None and state.mode is Mode.PAUSED else ""


async def test_opencode_is_stepped_held_denied_and_taken_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules = {"default": "allow", "rules": [{"answer": "ask", "command": "run"}]}
    async with opencode(tmp_path, monkeypatch, approvals=rules) as (flight, server):
        settings = flight.sandbox / "settings.toml"
        await flight.do(cmd.SetBreak, line="tool write path=*.toml")
        await flight.do(cmd.Step)
        await flight.until(lambda s: pending(s) == "prompt")
        await flight.do(cmd.Step)
        await flight.until(
            lambda s: s.actions == 1 and not s.acting and s.mode is Mode.PAUSED, patience_s=START_S
        )
        await flight.do(cmd.Step)
        state = await flight.until(lambda s: pending(s) == "write")
        assert (settings.read_text(), state.actions) == ("debug = false\n", 1)  # held before its leave
        await flight.do(cmd.Run)
        state = await flight.until(lambda s: s.run is RunState.PAUSED and s.run_reason.is_a("run.breakpoint"))
        assert settings.read_text() == "debug = false\n"
        await flight.do(cmd.Run)
        state = await flight.until(lambda s: s.approvals.question)  # as it replaces what is in a file
        await flight.do(cmd.AnswerApproval, action=state.approvals.question.action, allow=True)
        state = await flight.until(
            lambda s: s.approvals.question and s.approvals.question.call.command == "run"
        )
        assert settings.read_text() == "debug = true\n"
        assert (flight.sandbox / "new.txt").read_text() == "hello\n"
        await flight.do(
            cmd.AnswerApproval, action=state.approvals.question.action, allow=False, reason="not today"
        )
        state = await flight.until(lambda s: s.goals["g1"].status.terminal or s.intervention)
        assert "without a word when it was refused: python3 test_it.py" in str(state.intervention.reason)
        commands = [step.command for step in state.plans["g1"].steps if step.command]
        assert commands == ["prompt", "write", "write", "run"]
        await flight.do(cmd.Stop)
        await flight.engine.stopped()
        assert living(flight) == []
        before = next(event for event in await flight.events() if event.kind == ev.ActionRequested.kind)
        receipt = await flight.do(cmd.Rewind, to=before.version - 1)
        assert receipt.ok
        names = sorted(path.name for path in flight.sandbox.iterdir() if path.is_file())
        assert names == ["notes.txt", "settings.toml", "test_it.py"]
        assert settings.read_text() == "debug = false\n"
        assert len(server.requests) >= 4


async def test_a_budget_of_three_actions_lets_opencode_do_three(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opencode(tmp_path, monkeypatch, budget={"actions": 3}) as (flight, _):
        await flight.do(cmd.CallTool, command="toggle_autonomous_mode", args={})
        await flight.until(lambda s: s.sandbox.autonomous)
        await flight.do(cmd.Run)
        state = await flight.until(lambda s: s.held_by is not None or s.intervention, patience_s=START_S)
        assert state.held_by is not None
        steps = [step for step in state.plans["g1"].steps if step.command]
        assert [(step.command, step.status.value) for step in steps] == [
            *((name, "completed") for name in ("prompt", "write", "write")),
            ("run", "planned"),
        ]
