"""Sessions that a model steered are replayed without it, here and on another machine."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from app.cli.sessions import replay_export, run_sessions_command
from engine.core import events as ev
from engine.core.ports import SystemClock
from engine.core.store.sqlite import SqliteJournal
from tests.engine.agent.recorded_sessions import record, script

KINDS = range(10)


@pytest.mark.parametrize("number", KINDS, ids=lambda number: script(number).name)
async def test_a_recorded_session_replays_to_the_same_head_without_a_model(
    tmp_path: Path, number: int
) -> None:
    recorded = await record(tmp_path / "ws", number)
    assert recorded.requests
    code, replayed, _text = await run_sessions_command(recorded.workspace, "replay", "", None)
    assert (code, replayed["matches"], replayed["model_calls"]) == (0, True, 0), replayed
    assert replayed["head"] == recorded.head
    assert await called(recorded.workspace) == recorded.requests

    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    code, _, said = await run_sessions_command(
        recorded.workspace, "export", str(elsewhere / "session.tar.gz"), None
    )
    assert code == 0, said
    shutil.rmtree(recorded.workspace)
    code, again, _text = await run_sessions_command(elsewhere, "replay", "", elsewhere / "session.tar.gz")
    assert (code, again) == (0, replayed)
    code, verified, _text = await run_sessions_command(elsewhere, "verify", "", elsewhere / "session.tar.gz")
    assert (code, verified["head"]) == (0, recorded.head)


async def test_the_recorded_thinker_runs_an_exported_run_again_and_says_how_it_went(tmp_path: Path) -> None:
    recorded = await record(tmp_path / "ws", 0)
    file = tmp_path / "flight.tar.gz"
    await run_sessions_command(recorded.workspace, "export", str(file), None)
    shutil.rmtree(recorded.workspace)
    code, again, _text = await replay_export(file, "")
    assert (code, again["matches"], again["model_calls"], again["thinker"]) == (0, True, 0, "recorded")
    assert again["journal_head"] == recorded.head
    assert set(again) >= {"status", "goal", "session", "agent", "loops", "actions", "duration_s", "message"}
    code, _, text = await replay_export(tmp_path / "nowhere.tar.gz", "")
    assert (code, "nowhere.tar.gz" in text) == (2, True)


async def called(workspace: Path) -> int:
    """How many calls of the model the journal holds."""
    store = await SqliteJournal.open(workspace, clock=SystemClock(), read_only=True)
    try:
        return len([event for event in await store.read("pilot") if event.kind == ev.ModelCalled.kind])
    finally:
        await store.close()


def test_the_kinds_of_sessions_differ() -> None:
    assert len({script(number).name for number in KINDS}) == len(KINDS)
