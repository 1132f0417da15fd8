"""A mind that was kept and what has happened since are the mind of the whole stream."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from engine.agent.live_agents import MIND
from engine.agent.reasoner.reasoner import ForgottenError, Reasoner
from engine.agent.reasoner.saved_mind import make_reasoner, restore, save
from engine.bdi.saved_state import SavedStateError
from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.agents import RunState
from engine.core.fold import with_checksum, without_checksum
from engine.core.journal import Event
from engine.core.ports import SystemClock
from engine.core.reasoner import MIND_FORMAT
from engine.core.store.port import DATA_DIRECTORY
from engine.core.store.sqlite import SqliteJournal
from tests.engine.agent.reasoner.conftest import Fly
from tests.engine.agent.reasoner.reasoner_flight import (
    Oracle,
    ReasonerFlight,
    inside,
    kept_and_rest_is_the_whole,
)
from tests.engine.agent.reasoner.test_generation import REACH, held, plan

MIXED = """
b(1). b(2).
!go(0).
+!go(N) : N < 60 <- +seen(N); -+last(N); .random(R); +drawn(R); !!side(N); .wait(1); !go(N + 1).
+!go(N) <- mkdir(end); !reach(home).
+!side(N) <- .wait(2); -seen(N); for (b(X)) { .print(X); .wait(1) }.
+drawn(R) : R > 0.5 <- .print(high).
"""


async def finished(flight: ReasonerFlight) -> list[Event]:
    await flight.do(cmd.Run)
    await flight.idle()
    return await flight.events()


async def test_at_every_event_what_was_kept_and_the_rest_is_the_whole(fly: Fly) -> None:
    flight = await fly(MIXED, generation={"answers": ["of no use", REACH]})
    events = await finished(flight)
    assert kept_and_rest_is_the_whole(flight, events) > 10


async def test_a_mind_with_open_questions_and_proved_plans_is_kept(fly: Fly) -> None:
    oracle = Oracle()
    flight = await fly(
        "!a. !b. +!a <- !reach(x); !reach(y); !two(1). +!b <- .generate_plan(two(N)); .print(b).",
        oracle=oracle,
        generation={"approve": True},
    )
    await flight.do(cmd.Run)
    for number in (1, 2):
        question = await oracle.question(number)
        goal = (await flight.state()).generations[f"q{number}"].goal
        question.say(plan("two(Z)" if "two" in goal else "reach(X)", "add known(here)"))
    for ident in ("q1", "q2"):
        await held(flight, ident)
    await flight.do(cmd.DecidePlans, generation="q1", decision="approve")
    await flight.do(cmd.DecidePlans, generation="q2", decision="approve")
    await flight.idle()
    assert kept_and_rest_is_the_whole(flight, await flight.events()) > 3


async def test_reopening_reads_only_what_came_after_the_kept_mind(fly: Fly) -> None:
    flight = await fly("!c(0). +!c(5000) <- .print(end). +!c(N) <- !c(N + 1). +told(X) <- .print(X).")
    await finished(flight)
    await flight.engine.close()
    store = await SqliteJournal.open(flight.workspace, clock=SystemClock(), read_only=True)
    version = (await store.read("pilot"))[-1].version
    found = await store.load_snapshot(f"pilot{MIND}", None, MIND_FORMAT)
    await store.close()
    assert found is not None
    assert found[0] == version
    await flight.open()
    # Nothing since then was done again: what it remembers of its first belief is gone with the process.
    assert flight.mind().agent.cycles > 5_000
    await flight.do(cmd.TellBelief, literal="told(7)")
    await flight.do(cmd.Run)
    await flight.idle()
    assert (await flight.said())[-1] == "7"


def with_another_head(kept: dict[str, Any]) -> str:
    return json.dumps({**kept, "head": "0" * 64})


def with_another_mind(kept: dict[str, Any]) -> str:
    agent = kept["mind"]["agent"]
    return json.dumps({**kept, "mind": {**kept["mind"], "agent": {**agent, "cycles": 7, "beliefs": []}}})


def unperceived(mind: Reasoner) -> dict[str, Any]:
    """What is in a mind, without what it is to perceive next: a session that opens looks around at once."""
    held = inside(mind)
    assert "percepts" in held
    return {name: part for name, part in held.items() if name != "percepts"}


@pytest.mark.parametrize(
    "doctored",
    [
        with_another_head,
        with_another_mind,
        lambda kept: "{",
        lambda kept: "[]",
        lambda kept: json.dumps({**kept, "mind": {}}),
    ],
)
async def test_a_wrong_kept_mind_is_passed_over(fly: Fly, doctored: Callable[[dict[str, Any]], str]) -> None:
    flight = await fly("!c(0). +!c(N) <- +n(N); !c(N + 1).")
    await flight.do(cmd.Run)
    await flight.until(lambda s: s.mind and s.mind.cycles > 60)
    await flight.do(cmd.Pause)
    while save(flight.mind()) is None:  # in the middle of a part of its cycle, where it is not kept
        await flight.do(cmd.Run)
        await asyncio.sleep(0)
        await flight.do(cmd.Pause)
    await flight.until(lambda s: s.run is RunState.PAUSED)
    await flight.engine.close()
    store = await SqliteJournal.open(flight.workspace, clock=SystemClock())
    found = await store.load_snapshot(f"pilot{MIND}", None, MIND_FORMAT)
    assert found is not None
    kept = json.loads(without_checksum(found[1]))
    await store.save_snapshot(f"pilot{MIND}", found[0], MIND_FORMAT, with_checksum(doctored(kept)))
    await store.close()
    await flight.open()
    events: list[Event] = []
    # What is perceived on opening may come between reading the events and looking at the mind.
    while len(events) != len(again := await flight.events()):
        events, mind = again, unperceived(flight.mind())
    assert mind == unperceived(a_mind(flight, events, len(events)))
    (notice,) = flight.engine.health.states
    assert notice.startswith(f"pilot: the mind kept at event {found[0]} could not be used")


def a_mind(flight: ReasonerFlight, events: list[Event], upto: int) -> Reasoner:
    made = make_reasoner(flight.live().state, flight.engine.registry, events[0].at)
    for event in events[1:upto]:
        made.remember(event, ev.payload_of(event))
    return made


@pytest.mark.parametrize("part", ["agent", "now", "requests", "tags", "visible", "procedure", "questions"])
async def test_damaged_data_are_refused_in_words(fly: Fly, part: str) -> None:
    flight = await fly("!c(0). +!c(5). +!c(N) <- !c(N + 1).")
    events = await finished(flight)
    data = save(a_mind(flight, events, len(events)))
    assert data is not None
    with pytest.raises(SavedStateError, match="saved"):
        restore(a_mind(flight, events, 1), {**data, part: ["x"]})


async def test_a_history_that_cannot_be_done_again_takes_up_the_others(fly: Fly) -> None:
    flight = await fly("!c(0). +!c(50). +!c(N) <- !c(N + 1).")
    await flight.create("!go. +!go <- .print(well).", "other")
    events = await finished(flight)
    place = next(n for n, event in enumerate(events) if event.kind == "reasoner.advanced")
    said = ev.payload_of(events[place])
    assert isinstance(said, ev.ReasonerAdvanced)
    wrong = said.model_copy(update={"phases": said.phases + 2})
    with pytest.raises(ForgottenError, match=f"{events[place].ref} cannot be done again"):
        a_mind(flight, events, place).remember(events[place], wrong)
    assert (flight.workspace / DATA_DIRECTORY).is_dir()
