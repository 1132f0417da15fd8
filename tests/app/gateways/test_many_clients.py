"""Many clients of one engine, of which one stands still: each sees every event; none is waited for.

`make endurance` has the fifty of the targets.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.core import commands as cmd
from tests.app.gateways.many_clients import crowd
from tests.app.gateways.sockets import serving
from tests.rounds import FULL, rounds


async def test_many_clients_of_which_one_stands_still(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PILOTHOUSE_HOME", str(tmp_path / "home"))
    each, events = rounds(5, full=22), rounds(600, full=20_000)
    async with serving(tmp_path / "workspace") as (engine, server):
        await engine.submit(cmd.CreateAgent(agent="pilot-1"))
        result = await crowd(
            tmp_path / "workspace",
            engine,
            server,
            programs=2 if FULL else 1,
            each=each,
            events=events,
            rate=1_000,
        )
    print(result)
    assert result["whole"] == each * (2 if FULL else 1) + 1
