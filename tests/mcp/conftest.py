"""Servers in processes of their own, begun and closed."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from mcp_flight import PLAIN, Make

from engine.domain.ports import SystemClock
from engine.mcp import Server, ServerSettings, ServerView, Surroundings
from engine.sandbox.policy import SandboxPolicy


@pytest.fixture
def around(tmp_path: Path) -> Surroundings:
    (tmp_path / "sandbox").mkdir()
    environ = {**os.environ, "PILOT_SECRET": "hunter2", "PILOT_WANTED": "yes"}
    return Surroundings(tmp_path, tmp_path / "sandbox", SandboxPolicy(), environ)


@pytest.fixture
async def make(around: Surroundings) -> AsyncIterator[Make]:
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
