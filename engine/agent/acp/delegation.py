"""Gives the program a tool for handing work on: an MCP server that it starts in the jail, and two pipes.

What that server passes on is an action as all is that the program asks for.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from engine.agent.acp.settings import DELEGATE_SERVER
from engine.agent.acp.transport import LineTransport, Refuse
from engine.sandbox.programs import BASE_PYTHON
from engine.tools.mcp.process import open_reader, open_writer
from engine.tools.simple_coder import SimpleCoder

CALLS, ANSWERS = "delegate.calls", "delegate.answers"
_PIPE = os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC


class DelegationTool:
    """The pipes of one session.

    Args:
        coder: gives the agent's sandbox.
        agents: to whom work may be handed; without any there is no tool.
    """

    def __init__(self, coder: Callable[[], SimpleCoder], agents: Sequence[str]) -> None:
        self._coder, self._agents = coder, agents
        self.servers: list[dict[str, Any]] = []
        """What the program is to start, as the protocol has it."""
        self._connection: Any = None
        self._kept: tuple[int, ...] = ()
        """The servers' ends, so that the pipes stay while there is no server."""

    def _made(self) -> list[int]:
        """The pipes' ends, opened before any program can put something else in their place; blocking."""
        coder, ends = self._coder(), list[int]()
        coder.files.private_directory(coder.policy.tmp)
        with coder.files.directory(coder.policy.tmp) as place:
            for name in (CALLS, ANSWERS):
                with suppress(FileNotFoundError):
                    os.unlink(name, dir_fd=place)
                os.mkfifo(name, 0o600, dir_fd=place)
                ends += [os.open(name, way | _PIPE, dir_fd=place) for way in (os.O_RDONLY, os.O_WRONLY)]
        return ends

    async def open(self, handle: Callable[..., Any], refuse: Refuse, limit: int) -> None:
        """Make the pipes and listen.

        Args:
            handle: answers requests, as the protocol's library has it.
            refuse: see `LineTransport`.
            limit: bytes of a message.

        Raises:
            OSError: the pipes cannot be made.
            PathError: as `OSError`.
        """
        if not self._agents:
            return
        from acp.connection import Connection  # late, as where the program is started

        calls, *kept, answers = await asyncio.to_thread(self._made)
        self._kept = tuple(kept)
        reader, writer = await open_reader(calls, limit), await open_writer(answers)
        self._connection = Connection(handle, LineTransport(reader, writer, limit, refuse))
        place = self._coder().files.root / self._coder().policy.tmp
        pipes = [str(place / name) for name in (CALLS, ANSWERS)]
        args = ["-I", "-S", str(DELEGATE_SERVER), *pipes, *self._agents]
        self.servers = [{"name": "pilothouse", "command": str(BASE_PYTHON), "args": args, "env": []}]

    async def close(self) -> None:
        """Listen no more."""
        if self._connection is not None:
            connection, self._connection = self._connection, None
            await connection.close()
            for end in self._kept:
                os.close(end)
