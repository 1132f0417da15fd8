"""Sessions that a model steered are replayed without it, here and on another machine."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from app.cli.open import keep
from app.cli.sessions import query_sessions, run_again
from engine.api.portable import export_session
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
    code, replayed, _text = await query_sessions(recorded.workspace, "replay", "")
    assert (code, replayed["matches"], replayed["model_calls"]) == (0, True, 0), replayed
    assert replayed["head"] == recorded.head
    assert await called(recorded.workspace) == recorded.requests

    export_session(recorded.workspace, tmp_path / "session.pilot", operator="ann", at=SystemClock().now())
    shutil.rmtree(recorded.workspace)
    assert keep(tmp_path / "session.pilot", tmp_path / "elsewhere")[0] == 0
    code, again, _text = await query_sessions(tmp_path / "elsewhere", "replay", "")
    assert (code, again) == (0, replayed)
    code, again = await run_again(tmp_path / "elsewhere", "")
    assert (again["matches"], again["model_calls"], again["thinker"]) == (True, 0, "recorded")
    assert again["journal_head"] == recorded.head
    assert set(again) >= {"status", "goal", "session", "agent", "loops", "actions", "duration_s", "message"}


async def called(workspace: Path) -> int:
    """How many calls of the model the journal holds."""
    store = await SqliteJournal.open(workspace, clock=SystemClock(), read_only=True)
    try:
        return len([event for event in await store.read("pilot") if event.kind == ev.ModelCalled.kind])
    finally:
        await store.close()


def test_the_kinds_of_sessions_differ() -> None:
    assert len({script(number).name for number in KINDS}) == len(KINDS)
