"""A part of the reasoner's cycle that takes long holds nothing else, and the operator's word ends it.

In the end of each test journal, mind and replay are compared, as in all tests with `fly`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from engine.agent.reasoner.reasoner import CHANGED_LIMIT
from engine.agent.reasoner_deliberation import ReasonerDeliberation
from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.agents import RunState
from engine.core.goals import GoalStatus
from engine.core.reasoner import REASONER
from tests.engine.agent.engine_flight import PATIENCE_S
from tests.engine.agent.reasoner.conftest import Fly
from tests.engine.agent.reasoner.reasoner_flight import ReasonerFlight

SLOW = ".range(A,1,200) & .range(B,1,200) & A + B < 0"
"""A condition that takes forty thousand steps to fail."""


def slow(plans: int) -> str:
    """A goal for which so many plans are tried in one part of the cycle."""
    return "!s. +!quick <- .print(quick). +told <- .print(told). -!s <- .print(failed).\n" + "\n".join(
        f"+!s : {SLOW} & {number} = {number} <- .print(never)." for number in range(plans)
    )


ENDLESS = slow(500)
LONG = slow(4)


async def under_way(flight: ReasonerFlight) -> ReasonerDeliberation:
    """The strategy, once a part of the cycle takes long: not as others have the machine, but by itself."""
    deliberation = flight.live().deliberation
    assert isinstance(deliberation, ReasonerDeliberation)
    current = None
    while current is None or deliberation._slice is not current:
        await until(lambda: deliberation._under_way)
        current = deliberation._slice
        await asyncio.sleep(0.2)
    return deliberation


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not holds():
            await asyncio.sleep(0.002)


@pytest.mark.parametrize(("command", "grade"), [(cmd.Pause, ""), (cmd.Stop, "hold"), (cmd.Stop, "kill")])
async def test_a_reasoner_that_does_not_end_is_held_as_stuck_by_the_operators_word(
    fly: Fly, command: type[cmd.Command], grade: str
) -> None:
    flight = await fly(ENDLESS)
    await flight.do(cmd.Run)
    deliberation = await under_way(flight)
    await flight.do(command, **({"grade": grade} if grade else {}))
    await until(lambda: not deliberation._under_way)
    await flight.until(lambda s: s.run is not RunState.RUNNING)
    async with asyncio.timeout(PATIENCE_S):
        while not await flight.payloads(ev.ReasonerCut):
            await asyncio.sleep(0.01)
    assert not flight.live().fault
    if command is cmd.Pause:
        state = await flight.until(lambda s: "STUCK" in s.run_reason)
        assert state.run is RunState.PAUSED
        assert state.goals["g1"].status is GoalStatus.ACTIVE


async def test_what_was_cut_off_can_be_given_up_and_the_agent_goes_on(fly: Fly) -> None:
    flight = await fly(ENDLESS)
    await flight.do(cmd.Run)
    await under_way(flight)
    await flight.do(cmd.Pause)
    await flight.until(lambda s: "STUCK" in s.run_reason)
    await flight.do(cmd.AbortGoal, goal="g1", reason="it never ends")
    await flight.do(cmd.AdoptGoal, text="quick")
    await flight.do(cmd.Run)
    await flight.until(lambda s: s.goals["g2"].status is GoalStatus.ACHIEVED)
    assert "quick" in await flight.said()


async def test_what_comes_in_the_middle_of_a_part_of_the_cycle_is_taken_in_behind_it(fly: Fly) -> None:
    flight = await fly(LONG)
    await flight.do(cmd.Run)
    await under_way(flight)
    await flight.do(cmd.TellBelief, literal="told")
    await flight.do(cmd.AdoptGoal, text="quick")
    await flight.until(lambda s: s.goals["g2"].status is GoalStatus.ACHIEVED if "g2" in s.goals else False)
    await flight.until(lambda s: not s.open_goals)
    assert set(await flight.said()) >= {"failed", "told", "quick"}
    kinds = [event.kind for event in await flight.events()]
    busy = kinds.index(ev.ReasonerBusy.kind)
    assert kinds[busy + 1] == ev.CommandReceived.kind
    assert ev.ReasonerAdvanced.kind in kinds[busy:]


async def test_the_loop_goes_on_while_a_part_of_the_cycle_takes_long(fly: Fly) -> None:
    flight = await fly(LONG)
    await flight.do(cmd.Run)
    deliberation = await under_way(flight)
    turns = 0
    while deliberation._under_way:
        await asyncio.sleep(0)
        turns += 1
    assert turns


HOSTILE = {
    "endless rule": "r(X) :- r(X + 1). !s. +!s <- ?r(0).",
    "findall over an endless rule": "r(0). r(X) :- r(Y) & X = Y + 1. !s. +!s <- .findall(X, r(X), L).",
    "wide term": "!s. +!s <- .findall(f(X, Y), .range(X, 1, 300) & .range(Y, 1, 100), L); .sort(L, M).",
}


@pytest.mark.parametrize("program", HOSTILE.values(), ids=HOSTILE)
async def test_the_loop_takes_turns_within_one_step_of_a_hostile_program(fly: Fly, program: str) -> None:
    """Counted, not timed: its turns while a slice of the reasoner's runs in its thread."""
    flight = await fly(program)
    await flight.do(cmd.Run)
    turns = 0
    async with asyncio.timeout(PATIENCE_S):
        while (await flight.state()).open_goals:
            deliberation = flight.live().deliberation
            assert isinstance(deliberation, ReasonerDeliberation)
            await asyncio.sleep(0)
            turns += deliberation._slice is not None and not deliberation._slice.finished
    assert turns >= 3


async def test_a_step_that_changes_many_beliefs_is_recorded_in_events_of_bounded_size(fly: Fly) -> None:
    flight = await fly("!s. +!s <- for (.range(X, 1, 3000)) { +b(X) }.")
    await flight.do(cmd.Run)
    await flight.until(lambda s: not s.open_goals)
    sizes = [len(said.believed) for said in await flight.payloads(ev.ReasonerAdvanced)]
    assert sum(sizes) >= 3000
    assert max(sizes) <= CHANGED_LIMIT


async def test_an_agent_is_closed_in_the_middle_of_a_part_of_its_cycle_and_opened_again(fly: Fly) -> None:
    flight = await fly(ENDLESS)
    await flight.do(cmd.Run)
    await under_way(flight)
    await flight.do(cmd.TellBelief, literal="told")
    await flight.reopen()
    state = await flight.until(lambda s: s.run is RunState.PAUSED)
    assert state.agent_type == REASONER
    await flight.do(cmd.AbortGoal, goal="g1", reason="it never ends")
    await flight.do(cmd.AdoptGoal, text="quick")
    await flight.do(cmd.Run)
    await flight.until(lambda s: s.goals["g2"].status is GoalStatus.ACHIEVED)
    assert {"told", "quick"} <= set(await flight.said())
