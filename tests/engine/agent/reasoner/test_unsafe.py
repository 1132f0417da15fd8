"""Programs that never rest or grow without end: paused, stepped and stopped all the same, and bounded."""

from __future__ import annotations

import asyncio
import json

import pytest

from engine.agent.reasoner.actions import LIMITS
from engine.agent.reasoner.reasoner import INTENTIONS_SHOWN
from engine.agent.reasoner.run import FAILURES_LIMIT, SAID_LIMIT, TEXT_LIMIT, TRACE_LIMIT
from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.agents import Mode, RunState
from engine.core.goals import GoalStatus
from tests.engine.agent.reasoner.conftest import Fly
from tests.engine.agent.reasoner.reasoner_flight import settled

RUNS = 5
TEN = " ".join(f"p({number})." for number in range(10))
UNSAFE = {
    "an endless loop": "!l. +!l <- !l.",
    "beliefs without end": "!c(0). +!c(N) <- +n(N); !c(N + 1).",
    "a belief that never stays": "!c(0). +!c(N) <- -+n(N); !c(N + 1).",
    "intentions without end": "!c(0). +!c(N) <- !!d(N); !c(N + 1). +!d(N) <- !!d(N); !!d(N).",
    "failures without end": "!c(0). +!c(N) <- !!d(N); !c(N + 1). +!d(N) <- .fail.",
    "deep recursion": "!c(0). +!c(N) <- !c(N + 1); .print(N).",
    "a context that never ends": f"{TEN} !g. +!g : p(A) & p(B) & p(C) & p(D) & p(E) & A < 0. -!g <- !g.",
    "a text that doubles": '!c("x"). +!c(S) <- .concat(S, S, T); .print(T); +t(T); !c(T). -!c(S) <- !c("x").',
}


@pytest.mark.parametrize("what", sorted(UNSAFE))
async def test_an_unsafe_program_is_paused_stepped_and_stopped(fly: Fly, what: str) -> None:
    flight = await fly(UNSAFE[what])
    await flight.do(cmd.Run)
    await flight.until(lambda s: s.mind and s.mind.cycles > 2)
    await flight.do(cmd.Pause)
    paused = await flight.until(settled)
    assert paused.run is RunState.PAUSED
    for _ in range(2):
        await flight.do(cmd.Step)
        await flight.until(settled)
    await flight.do(cmd.Run)
    await flight.until(lambda s: s.mind.cycles > paused.mind.cycles + 4)
    await flight.do(cmd.Stop)
    state = await flight.state()
    assert state.mode is Mode.STOPPED
    assert not flight.engine.health.agents
    no_event_is_large(await flight.payloads(ev.ReasonerAdvanced))


def no_event_is_large(advanced: list[ev.ReasonerAdvanced]) -> None:
    for said in advanced:
        assert len(said.said) <= SAID_LIMIT
        assert all(len(line) < TEXT_LIMIT + 60 for line in said.said)
        assert len(said.failures) <= FAILURES_LIMIT + 1
        assert len(said.intentions) <= INTENTIONS_SHOWN
        assert len(said.ended) <= INTENTIONS_SHOWN
        assert len(said.trace) <= TRACE_LIMIT + 200
        assert all(len(held.text) < TEXT_LIMIT + 60 for held in said.believed)


async def test_nothing_follows_an_acknowledged_pause_but_what_stands_before_a_step(fly: Fly) -> None:
    flight = await fly(UNSAFE["an endless loop"], tracing=True)
    for _ in range(5):
        await flight.do(cmd.Run)
        steps = (await flight.state()).loops
        await flight.until(lambda s, n=steps: s.loops > n + 100 or s.loops > 100)
        await flight.do(cmd.Pause)
        await flight.until(settled)
    running = begun_before = False
    for event in await flight.events():
        if event.kind in ("agent.paused", "agent.resumed"):
            running = event.kind == "agent.resumed"
        if event.kind == "reasoner.busy":
            begun_before = running
        if event.kind == "reasoner.advanced":
            assert running or begun_before or json.loads(event.body)["steps"] == 0, event.ref
            begun_before = False


async def test_others_have_their_turn_between_slices_of_an_endless_loop(fly: Fly) -> None:
    flight = await fly(UNSAFE["an endless loop"])
    turns = 0

    async def beat() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    beating = asyncio.create_task(beat())
    await flight.do(cmd.Run)
    before, began = turns, (await flight.state()).version
    await flight.until(lambda s: s.version >= began + RUNS)
    beating.cancel()
    assert turns - before >= 10 * RUNS


async def test_the_lines_of_a_flood_are_counted(fly: Fly) -> None:
    flight = await fly("!c(0). +!c(2000). +!c(N) <- .print(N); !c(N + 1).")
    await flight.do(cmd.Run)
    await flight.idle()
    advanced = await flight.payloads(ev.ReasonerAdvanced)
    assert sum(len(said.said) + said.unsaid for said in advanced) == 2_000
    assert advanced[1].said[0] == "0" or "0" in await flight.said()


async def test_failures_of_the_operators_goals_are_all_recorded(fly: Fly) -> None:
    flight = await fly("+!many(40). +!many(N) <- !!bad(N); !many(N + 1). +!bad(N) <- .fail.")
    await flight.do(cmd.AdoptGoal, text="many(0)")
    for number in range(3):
        await flight.do(cmd.AdoptGoal, text=f"bad(x{number})")
    await flight.do(cmd.Run)
    state = await flight.idle()
    failed = [goal.status for goal in state.goals.values()].count(GoalStatus.FAILED)
    assert failed == 3
    recorded = await flight.payloads(ev.FailureRecorded)
    assert {said.goal for said in recorded} >= {"g2", "g3", "g4"}
    advanced = await flight.payloads(ev.ReasonerAdvanced)
    assert sum(len(said.failures) + said.failures_left_out for said in advanced) == 43


async def test_of_many_intentions_the_oldest_are_shown_and_all_are_counted(fly: Fly) -> None:
    flight = await fly(
        "!c(0). +!c(500) <- .print(end). +!c(N) <- !!d(N); !c(N + 1). +!d(N) <- .wait(go); -w."
    )
    await flight.do(cmd.Run)
    state = await flight.until(lambda s: s.mind and s.mind.intentions == 500 and s.mind.idle)
    assert len(state.intentions) == INTENTIONS_SHOWN
    await flight.do(cmd.TellBelief, literal="go")
    state = await flight.until(lambda s: s.mind.intentions == 0)
    assert state.intentions == {}


async def test_too_many_beliefs_intentions_or_frames_fail_the_step_and_not_the_agent(fly: Fly) -> None:
    flight = await fly(
        f"!b. +!b <- for (.range(I, 1, {LIMITS.intentions + 1})) {{ !!w(I) }}; .print(through)."
        "+!w(I) <- .wait(600000)."
    )
    await flight.do(cmd.Run)
    state = await flight.until(lambda s: not s.open_goals)
    assert not flight.engine.health.agents
    assert state.mind
    assert state.mind.intentions <= LIMITS.intentions
    assert any("limit_exceeded" in said.message for said in await flight.payloads(ev.FailureRecorded))
