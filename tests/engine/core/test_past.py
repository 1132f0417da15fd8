"""A stream as it was: states at any event, folded without holding the loop, and the marks to go by."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from engine.core import events as ev
from engine.core import streams
from engine.core.agents import AgentConfig
from engine.core.beliefs import BeliefSource
from engine.core.fold import SNAPSHOT_FORMAT, dump_state, fold
from engine.core.goals import GoalStatus
from engine.core.journal import GENESIS, Event
from engine.core.ports import SystemClock
from engine.core.store.sqlite import SqliteJournal
from engine.core.streams import (
    KEEP_EVERY,
    KEPT,
    SLICE,
    Mark,
    MarkKind,
    StreamHistory,
    StreamLog,
    mark_at_offset,
)


async def recorded(store: SqliteJournal, count: int, stream: str = "pilot-1") -> list[Event]:
    """A stream of so many events: a goal each hundred, beliefs that change and go between them."""

    async def commit(events: Sequence[Event]) -> Sequence[Event]:
        return await store.commit(events)

    log = StreamLog(stream, 0, GENESIS, SystemClock(), commit)
    told: list[ev.Payload] = [
        ev.AgentCreated(agent_id=stream, agent_type="bdi_agent", description="", config=AgentConfig())
    ]
    for number in range(2, count + 1):
        if number % 100 == 2:
            told.append(ev.GoalAdopted(goal=f"g{number}", text=f"goal {number}"))
        elif number % 100 == 99:
            goal = number - 97
            told.append(ev.GoalEnded(goal=f"g{goal}", status=GoalStatus.ACHIEVED))
        elif number % 10 == 0:
            told.append(ev.BeliefRemoved(key=f"key{number % 40}"))
        else:
            told.append(ev.BeliefAdded(key=f"key{number % 40}", value=number, source=BeliefSource.INFERENCE))
    events = [log.append(payload, actor="agent", causes=(), tick=at // 7) for at, payload in enumerate(told)]
    await log.commit()
    return events


async def test_the_state_at_any_event_is_the_fold_of_the_events_up_to_it(store: SqliteJournal) -> None:
    events = await recorded(store, 2_000)
    past = StreamHistory(store, "pilot-1")
    for at in random.Random(7).choices(range(1, 2_001), k=40):
        assert dump_state(await past.state(at)) == dump_state(fold(events[:at])), at


async def test_whoever_changes_a_state_changes_no_other_look(store: SqliteJournal) -> None:
    events = await recorded(store, KEEP_EVERY + 10)
    past = StreamHistory(store, "pilot-1")
    state = await past.state(KEEP_EVERY)
    state.goals.clear()
    state.beliefs.clear()
    assert dump_state(await past.state(KEEP_EVERY)) == dump_state(fold(events[:KEEP_EVERY]))


async def test_a_kept_state_of_the_journal_is_begun_from_and_a_damaged_one_is_not(
    store: SqliteJournal,
) -> None:
    events = await recorded(store, 1_500)
    sound = fold(events[:1_200])
    await store.save_snapshot("pilot-1", 1_200, SNAPSHOT_FORMAT, dump_state(sound))
    await store.save_snapshot("pilot-1", 1_300, SNAPSHOT_FORMAT, "damaged")
    past = StreamHistory(store, "pilot-1")
    assert dump_state(await past.state(1_400)) == dump_state(fold(events[:1_400]))
    assert 1_200 in past._kept
    assert 1_300 not in past._kept


async def test_a_state_that_took_long_to_fold_is_kept(
    store: SqliteJournal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "SAVED_AFTER", 500)
    events = await recorded(store, 3_000)
    state, why = await streams.restore(store, "pilot-1", 2_900)
    assert (dump_state(state), why) == (dump_state(fold(events[:2_900])), "")
    assert await store.load_snapshot("pilot-1", None, SNAPSHOT_FORMAT) == (2_900, dump_state(state))
    await streams.restore(store, "pilot-1", 3_000)
    assert await store.load_snapshot("pilot-1", None, SNAPSHOT_FORMAT) == (2_900, dump_state(state))


async def test_ten_thousand_events_are_folded_in_pieces_between_which_others_have_their_turn(
    store: SqliteJournal,
) -> None:
    """Issue 7, item 6: a jump holds the loop for no more than a few dozen events at a stretch."""
    await recorded(store, 10_000)
    past = StreamHistory(store, "pilot-1")
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    beside = asyncio.create_task(others())
    state = await past.state(10_000)
    beside.cancel()
    assert state.version == 10_000
    assert turns >= 10_000 // SLICE


async def test_the_next_look_begins_near_by(store: SqliteJournal) -> None:
    await recorded(store, 3_000)
    past = StreamHistory(store, "pilot-1")
    await past.state(3_000)
    assert (await past._begin(2_999)).version == 2_999 // KEEP_EVERY * KEEP_EVERY


async def test_what_was_prepared_is_near_every_look(store: SqliteJournal) -> None:
    events = await recorded(store, 3_000)
    past = StreamHistory(store, "pilot-1")
    await past.prepare()
    for at in (1, 511, 512, 1_700, 2_999):
        assert (await past._begin(at)).version == at // KEEP_EVERY * KEEP_EVERY
    log = StreamLog("pilot-1", 3_000, events[-1].hash, SystemClock(), store.commit)
    for number in range(600):
        log.append(ev.BeliefRemoved(key=f"k{number}"), actor="agent", causes=(), tick=40)
    await log.commit()
    await past.prepare()
    assert (await past._begin(3_590)).version == 3_584
    assert dump_state(await past.state(3_590)) == dump_state(fold(await store.read("pilot-1", 1, 3_590)))


async def test_no_more_than_so_many_states_are_kept(
    store: SqliteJournal, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = await recorded(store, 2_000)
    past = StreamHistory(store, "pilot-1")
    past._every = 8
    await past.state(2_000)
    assert len(past._kept) <= KEPT
    assert dump_state(await past.state(1_111)) == dump_state(fold(events[:1_111]))


async def test_beyond_the_newest_event_the_newest_counts(store: SqliteJournal) -> None:
    await recorded(store, 20)
    past = StreamHistory(store, "pilot-1")
    assert (await past.state(99)).version == 20
    assert (await past.state(0)).version == 0
    assert await StreamHistory(store, "nobody").head() == 0
    assert (await StreamHistory(store, "nobody").state(5)).version == 0


async def test_marks_are_goals_and_their_ends_and_grow_with_the_stream(
    tmp_path: Path, store: SqliteJournal
) -> None:
    events = await recorded(store, 250)
    past = StreamHistory(store, "pilot-1")
    wanted = [event.version for event in events if event.kind.startswith("goal.")]
    assert [mark.version for mark in await past.marks()] == wanted
    assert {mark.kind for mark in await past.marks()} == {MarkKind.GOAL}
    log = StreamLog("pilot-1", 250, events[-1].hash, SystemClock(), store.commit)
    log.append(ev.GoalAdopted(goal="g9", text="more"), actor="agent", causes=(), tick=40)
    await log.commit()
    assert [mark.version for mark in await past.marks()] == [*wanted, 251]


async def test_a_place_of_the_journal_is_found_in_a_stream(store: SqliteJournal) -> None:
    one = await recorded(store, 30, "one")
    await recorded(store, 30, "two")
    past = StreamHistory(store, "two")
    assert await past.version_at(len(one)) == 0
    assert await past.version_at(len(one) + 12) == 12
    assert await past.version_at(10_000) == 30


MARKS = [Mark(version, MarkKind.ACTION) for version in (3, 8, 20)]


@pytest.mark.parametrize(
    ("at", "by", "to"),
    [
        (None, -1, 20),
        (None, -2, 8),
        (None, -10, 3),
        (None, 1, None),
        (20, -1, 8),
        (3, -1, 3),
        (2, -1, 3),
        (10, -1, 8),
        (10, 1, 20),
        (8, 1, 20),
        (3, 10, None),
        (20, 1, None),
        (1, 1, 3),
    ],
)
def test_marks_lead_back_to_the_first_and_forward_to_now(at: int | None, by: int, to: int | None) -> None:
    assert mark_at_offset(MARKS, at, by) == to


def test_without_marks_nothing_moves_back() -> None:
    assert mark_at_offset([], None, -1) is None
    assert mark_at_offset([], 5, -1) == 5
    assert mark_at_offset([], 5, 1) is None
