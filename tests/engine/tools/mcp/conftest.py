"""Servers in processes of their own, begun and closed."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from mcp_flight import PLAIN, Make

from engine.core.ports import SystemClock
from engine.sandbox.policy import SandboxPolicy
from engine.tools.mcp.health import ServerView
from engine.tools.mcp.process import ProgramEnvironment
from engine.tools.mcp.server import Server
from engine.tools.mcp.settings import ServerSettings


@pytest.fixture
def around(tmp_path: Path) -> ProgramEnvironment:
    (tmp_path / "sandbox").mkdir()
    environ = {**os.environ, "PILOT_SECRET": "hunter2", "PILOT_WANTED": "yes"}
    return ProgramEnvironment(tmp_path, tmp_path / "sandbox", SandboxPolicy(), environ)


@pytest.fixture
async def make(around: ProgramEnvironment) -> AsyncIterator[Make]:
    """Makes and begins servers of `plain.py`, and closes them; `seen` of each holds what was told."""
    made: list[Server] = []

    def begun(
        *ways: str, settings: ServerSettings | None = None, seen: list[ServerView] | None = None
    ) -> Server:
        wanted = settings or ServerSettings("plain", command=sys.executable, args=(str(PLAIN), *ways))
        server = Server(
            wanted, around, SystemClock(), seen.append if seen is not None else lambda _view: None
        )
        made.append(server)
        server.begin()
        return server

    yield begun
    for server in made:
        await server.close()
