"""The operator at a terminal in the jail: a real shell, driven by keys, and what is recorded of it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engine.core.actions import SandboxSession, ToolResult
from engine.core.ports import CallContext
from engine.sandbox.policy import SandboxPolicy, Tier
from engine.sandbox.terminal import Terminal
from engine.sandbox.tier import JailRefusal, best_jail
from engine.tools.simple_coder import SimpleCoder
from tests.patience import PATIENCE_S as PATIENCE_S

TIERS = [Tier.PATHS, Tier.KERNEL, Tier.FULL]


class Record:
    """Keeps what a session's observer is told."""

    def __init__(self) -> None:
        self.keys: list[str | None] = []
        self.sizes: list[tuple[int, int]] = []
        self.output: list[str] = []

    def job_started(self, job: str, command: str, action: str) -> None: ...

    def job_output(self, job: str, stream: str, text: str, skipped: int) -> None: ...

    def job_ended(self, job: str, ended: str, code: int | None, message: str) -> None: ...

    def typed(self, action: str, text: str | None) -> None:
        self.keys.append(text)

    def resized(self, action: str, rows: int, columns: int) -> None:
        self.sizes.append((rows, columns))

    @property
    def text(self) -> str:
        """All that was recorded, as one text."""
        return "\n".join((*(key for key in self.keys if key), "".join(self.output)))


class Desk:
    """One agent's sandbox with the operator at its shell."""

    agent = "pilot"

    def __init__(self, root: Path, tier: Tier, session: SandboxSession | None = None, **policy: Any) -> None:
        allowed = SandboxPolicy(accept_paths=True, grace_s=0.2, **policy)
        jail = best_jail(allowed, at_most=tier)
        assert not isinstance(jail, JailRefusal)
        if jail.tier is not tier:
            pytest.skip(f"this machine gives {jail.tier}")
        self.root = root
        self.session = session or SandboxSession()
        self.coder = SimpleCoder(root, allowed, confinement=jail, environ={})
        self.record = Record()
        self.screen = bytearray()
        self.call: asyncio.Task[ToolResult]

    @property
    def terminal(self) -> Terminal:
        terminal = self.coder.sessions.terminal(self.agent)
        assert terminal is not None
        return terminal

    def context(self, actor: str = "operator:ann") -> CallContext:
        return CallContext(
            self.session,
            agent=self.agent,
            action="a1",
            observer=self.record,
            actor=actor,
            output=lambda _stream, text: self.record.output.append(text),
        )

    async def sit_down(self) -> Terminal:
        """Take the shell and wait for its prompt."""
        self.call = asyncio.create_task(self.coder.call("shell", {}, self.context()))
        await until(lambda: self.coder.sessions.terminal(self.agent) is not None or self.call.done())
        if self.call.done():
            raise AssertionError(self.call.result().data)
        terminal = self.terminal
        terminal.follow(self.screen.extend)
        await self.sees("$ ")
        return terminal

    async def sees(self, text: str) -> str:
        """Wait until the screen's output has the text, and forget all up to it; what was before it."""
        wanted = text.encode()
        try:
            await until(lambda: wanted in self.screen)
        except TimeoutError:
            raise AssertionError(f"no {text!r} in {bytes(self.screen)!r}") from None
        at = self.screen.index(wanted)
        before = self.screen[:at].decode("utf-8", "replace")
        del self.screen[: at + len(wanted)]
        return before

    async def types(self, line: str, sees: str = "$ ") -> str:
        """Type a line and wait for what is to come after it; what was printed until then, the echo too."""
        self.terminal.write(line.encode() + b"\n")
        await self.sees("\n")
        return await self.sees(sees)

    async def runs(self, line: str, *programs: str) -> None:
        """Type a line and wait until programs run whose command lines begin so; by default the line."""
        self.terminal.write(line.encode() + b"\n")
        wanted = programs or (line,)
        await until(lambda: all(any(told.startswith(one) for told in alive(self.root)) for one in wanted))

    async def hands_back(self, note: str = "") -> dict[str, Any]:
        self.coder.sessions.return_shell(self.agent, note)
        return await self.answer()

    async def answer(self) -> dict[str, Any]:
        """What the shell's action answered; afterwards nothing of it is alive."""
        async with asyncio.timeout(PATIENCE_S):
            result = await self.call
        assert result.ok, result.data
        assert alive(self.root) == []
        return result.data

    async def get_up(self) -> None:
        """End whatever is still there."""
        if hasattr(self, "call"):
            self.call.cancel()
            await asyncio.gather(self.call, return_exceptions=True)
        self.coder.close()


async def until(holds: Callable[[], object]) -> None:
    """Wait until something holds."""
    async with asyncio.timeout(PATIENCE_S):
        while not holds():
            await asyncio.sleep(0.005)


def alive(root: Path) -> list[str]:
    """Command lines of the processes that work at the root or below, in words."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                if (entry / "cwd").readlink().is_relative_to(root):
                    found.append((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode())
            except OSError:
                continue
    return found
