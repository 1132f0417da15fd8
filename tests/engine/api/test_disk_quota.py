"""The data of a workspace take no more room than the settings say: first a warning, then agents are held."""

from __future__ import annotations

import asyncio
import io
from pathlib import Path

import pytest

from app.cli.sessions import query_sessions
from app.commands.headless import RunOptions, run_goal
from app.commands.settings import Settings
from engine.api import engine as engine_module
from engine.api.engine import Engine
from engine.core import commands as cmd

BALLAST = 3_300_000


def ballast(workspace: Path, size: int) -> Path:
    path = workspace / ".pilothouse" / "old-backup"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"x" * size)
    return path


def limit(workspace: Path, megabytes: int) -> None:
    (workspace / "pilothouse.toml").write_text(f"[keeping]\ndisk_mb = {megabytes}\n")


async def test_an_agent_is_held_at_the_quota_and_goes_on_where_there_is_room(tmp_path, monkeypatch):
    monkeypatch.setattr(engine_module, "WEIGH_EVERY_S", 0.2)
    limit(tmp_path, 2)
    heavy = ballast(tmp_path, BALLAST)
    engine = await Engine.open(tmp_path, config=Settings.load(tmp_path).engine_config())
    await engine.submit(cmd.CreateAgent(agent="pilot-1"))
    await engine.submit(cmd.AdoptGoal(agent="pilot-1", text="list the files"))
    await engine.submit(cmd.Run(agent="pilot-1"))
    while (state := await engine.view("pilot-1")).held_by is None:
        await asyncio.sleep(0.02)
    assert "may take 2: make room" in str(state.run_reason)
    assert "sessions archive" in str(state.run_reason)
    assert state.actions == 0

    heavy.unlink()
    while (state := await engine.view("pilot-1")).actions == 0:
        await asyncio.sleep(0.02)

    await engine.close()
    assert (await query_sessions(tmp_path, "replay", "pilot-1"))[0] == 0


@pytest.mark.parametrize(("megabytes", "warns"), [(3, True), (4, True), (400, False)])
async def test_little_room_is_told(tmp_path, megabytes, warns):
    limit(tmp_path, megabytes)
    ballast(tmp_path, BALLAST)
    engine = await Engine.open(tmp_path, config=Settings.load(tmp_path).engine_config())
    told = [state for state in engine.health.states if "MB of the" in state]
    await engine.close()
    assert bool(told) is warns
    assert all("sessions archive" in state for state in told)


async def test_a_run_says_that_the_quota_holds_it(tmp_path):
    limit(tmp_path, 1)
    ballast(tmp_path, BALLAST)
    result = await run_goal(RunOptions(tmp_path, "list the files"), out=io.StringIO(), err=io.StringIO())
    assert result["status"] == "BUDGET_EXCEEDED"
    assert all(way in result["message"] for way in ("disk_mb", "sessions archive"))
