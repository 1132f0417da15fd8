"""Clients of `pilothouse acp`: the protocol library's own, and one that sends bytes as they are."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from acp import spawn_agent_process, text_block
from acp.client.connection import ClientSideConnection
from acp.schema import (
    AllowedOutcome,
    DeniedOutcome,
    Implementation,
    PermissionOption,
    RequestPermissionResponse,
)

from tests.patience import PATIENCE_S

PROGRAM = [sys.executable, "-m", "app.cli.main", "acp"]
LIMIT = 64 * 1024 * 1024


def environment() -> dict[str, str]:
    """What the program gets beside the little that the library hands on."""
    return {name: value for name, value in os.environ.items() if name.startswith(("PILOTHOUSE", "XDG"))}


class Editor:
    """A client that keeps what it is told, and answers what it is asked."""

    def __init__(self) -> None:
        self.updates: list[dict[str, Any]] = []
        self.asked: list[tuple[dict[str, Any], list[PermissionOption]]] = []
        self.choose: Callable[[list[PermissionOption]], PermissionOption | None] = lambda options: options[0]
        self.changed = asyncio.Event()
        self.session = ""
        self.agent: ClientSideConnection

    async def session_update(self, session_id: str, update: Any, **_more: Any) -> None:
        """See the library's `Client`."""
        self.updates.append({"session": session_id, **update.model_dump(by_alias=True, exclude_none=True)})
        self.changed.set()

    async def request_permission(
        self, session_id: str, tool_call: Any, options: list[PermissionOption], **_more: Any
    ) -> RequestPermissionResponse:
        """See the library's `Client`."""
        self.asked.append((tool_call.model_dump(by_alias=True, exclude_none=True), options))
        self.changed.set()
        if (chosen := self.choose(options)) is None:
            await asyncio.sleep(PATIENCE_S)  # a person who does not answer
            return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))
        return RequestPermissionResponse(
            outcome=AllowedOutcome(outcome="selected", option_id=chosen.option_id)
        )

    def on_connect(self, _agent: Any) -> None:
        """See the library's `Client`."""

    async def prompt(self, text: str) -> str:
        """Prompt; why the turn ended."""
        async with asyncio.timeout(PATIENCE_S):
            answer = await self.agent.prompt(session_id=self.session, prompt=[text_block(text)])
        return answer.stop_reason

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait until something holds of what came."""
        async with asyncio.timeout(PATIENCE_S):
            while not holds():
                self.changed.clear()
                await self.changed.wait()

    def of_kind(self, kind: str) -> list[dict[str, Any]]:
        """The updates of one kind, in their order."""
        return [update for update in self.updates if update["sessionUpdate"] == kind]

    def said(self, kind: str = "agent_message_chunk") -> str:
        """All that the agent said."""
        return "".join(update["content"]["text"] for update in self.of_kind(kind))

    def statuses(self, call: str) -> list[str]:
        """The statuses of a tool call, in their order."""
        calls = [update for update in self.updates if update.get("toolCallId") == call]
        return [update["status"] for update in calls if "status" in update]


@asynccontextmanager
async def connected(*, name: str = "Zed", program: list[str] | None = None) -> AsyncIterator[Editor]:
    """An editor with a program of its own, initialised."""
    editor = Editor()
    whole = PROGRAM if program is None else program
    kwargs = {"stderr": None, "limit": LIMIT, "shutdown_timeout": PATIENCE_S}
    spawned = spawn_agent_process(editor, *whole, env=environment(), transport_kwargs=kwargs)
    async with spawned as (editor.agent, process):
        await editor.agent.initialize(protocol_version=1, client_info=Implementation(name=name, version="1"))
        yield editor
    assert process.returncode == 0


async def begin(editor: Editor, workspace: Path) -> Editor:
    """Have an editor begin anew, with a session of its own."""
    made = await editor.agent.new_session(cwd=str(workspace), mcp_servers=[])
    editor.session, editor.choose = made.session_id, lambda options: options[0]
    editor.updates.clear()
    editor.asked.clear()
    return editor


@asynccontextmanager
async def opened(workspace: Path, **more: Any) -> AsyncIterator[Editor]:
    """An editor with a program of its own and a new session."""
    async with connected(**more) as editor:
        yield await begin(editor, workspace)


class Raw:
    """A client that sends bytes as they are."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process

    @classmethod
    @asynccontextmanager
    async def begun(cls) -> AsyncIterator[Raw]:
        """One with a program of its own."""
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            *PROGRAM, stdin=pipe, stdout=pipe, stderr=pipe, limit=LIMIT, env={**os.environ}
        )
        try:
            yield cls(process)
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()

    async def send(self, message: object) -> None:
        """Send a message, or bytes."""
        assert self.process.stdin is not None
        line = message if isinstance(message, bytes) else json.dumps(message).encode()
        self.process.stdin.write(line + b"\n")
        await self.process.stdin.drain()

    async def next(self) -> dict[str, Any]:
        """The next answer, notifications left out."""
        assert self.process.stdout is not None
        async with asyncio.timeout(PATIENCE_S):
            while True:
                message: dict[str, Any] = json.loads(await self.process.stdout.readline())
                if "id" in message:
                    return message

    async def ask(self, message: object) -> dict[str, Any]:
        """Send and await the answer."""
        await self.send(message)
        return await self.next()

    async def end(self) -> tuple[int, str]:
        """Close its input; its exit code, and what it wrote to standard error."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        async with asyncio.timeout(PATIENCE_S):
            _, error = await self.process.communicate()
        assert self.process.returncode is not None
        return self.process.returncode, error.decode()
