"""Retries by idempotency: the numbers of spec master-loop-and-memory §5.

Where the two sources differ, each governs what it speaks of. The master loop says when a call may be made
again at all: reads, and writes that are known again by a key, after failures of the connection. Its three
attempts come out of its own limit of three errors in a row. mindX's table says how often each kind of failure
may be retried: with a higher limit of errors it is what ends retrying, and for programs that ran and ended
with a status, which is an answer, it is the only rule.
"""

from __future__ import annotations

import asyncio

import pytest
from engine_flight import Flight, python
from retry_bench import PUT, PUT_BY_KEY, READ, WRITE, RetryBench, WaitingClock

from engine.agent.recovery import may_repeat, tries_of
from engine.api.replay import replay_stream
from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.actions import ErrorCode
from engine.core.agents import RunState
from engine.core.goals import GoalStatus
from engine.core.plan import PlanStep
from engine.core.recovery import FailureKind, Strategy
from engine.memory.commands import Commands

NETWORK = ErrorCode.NETWORK


@pytest.mark.parametrize("step", [READ, PUT_BY_KEY], ids=["a read", "a write with a key"])
async def test_what_does_no_harm_twice_is_tried_three_times_with_growing_waits(step: PlanStep) -> None:
    """Checklist 27: two failed connections, then success: three attempts, waits as given, no errors left.

    Behaviour 41.
    """
    bench = RetryBench(step, [NETWORK, NETWORK, None])
    state = await bench.run()
    assert len(bench.calls) == 3
    first, second = bench.clock.slept
    assert 1.1 <= first <= 1.5
    assert 2.1 <= second <= 2.5
    assert state.consecutive_errors == 0
    assert state.goals["g1"].status is GoalStatus.ACHIEVED
    assert all(failure.resolved for failure in state.failures)


async def test_a_write_with_a_key_is_repeated_with_the_same_key() -> None:
    """Checklist 27: the receiver knows all three calls as one."""
    bench = RetryBench(PUT_BY_KEY, [NETWORK, NETWORK, None])
    await bench.run()
    assert {call["idempotency_key"] for call in bench.calls} == {"k1"}


async def test_a_connection_that_stays_broken_is_tried_three_times_in_all() -> None:
    """Checklist 27: three errors in a row end it, by the master loop's own limit."""
    bench = RetryBench(READ, [NETWORK])
    state = await bench.run()
    assert len(bench.calls) == 3
    assert state.intervention.kind == FailureKind.NETWORK_ERROR


async def test_with_more_errors_allowed_the_table_of_strategies_ends_retrying() -> None:
    """Checklist 27: mindX allows three retries of the network, and the limit of errors is higher here.

    Behaviour 41.
    """
    bench = RetryBench(READ, [NETWORK], max_errors=9)
    await bench.run()
    assert len(bench.calls) == 1 + tries_of(FailureKind.NETWORK_ERROR, Strategy.RETRY_WITH_DELAY) == 4
    assert [int(waited) for waited in bench.clock.slept] == [1, 2, 4]


@pytest.mark.parametrize("step", [WRITE, PUT], ids=["to a file", "to somewhere else"])
async def test_a_write_whose_connection_broke_is_not_repeated(step: PlanStep) -> None:
    """Checklist 28: one attempt, and the operator reads why."""
    bench = RetryBench(step, [NETWORK, None])
    state = await bench.run()
    assert len(bench.calls) == 1
    assert bench.clock.slept == []
    assert [failure.kind for failure in state.failures] == [FailureKind.NETWORK_ERROR]
    (chosen,) = bench.said(ev.RecoveryChosen)
    assert chosen.strategy is Strategy.FALLBACK_MANUAL
    assert "whether the write took effect is not known" in chosen.why


async def test_a_status_of_a_gateway_counts_as_a_broken_connection() -> None:
    """Checklist 28: the status says more than the code."""
    bench = RetryBench(WRITE, [ErrorCode.EXIT_STATUS, None], statuses={0: 503})
    state = await bench.run()
    assert len(bench.calls) == 1
    assert state.intervention.kind == FailureKind.NETWORK_ERROR


@pytest.mark.parametrize("code", [ErrorCode.BAD_ARGUMENTS, ErrorCode.NOT_FOUND, ErrorCode.WRONG_TYPE])
async def test_input_that_is_wrong_stays_wrong_and_is_tried_once(code: ErrorCode) -> None:
    """Checklist 28: also a read is made once, in the category of invalid input."""
    step = PlanStep("1", "list", tool="simple_coder", command="ls", args={"path": "a"})
    bench = RetryBench(step, [code, None])
    state = await bench.run()
    assert len(bench.calls) == 1
    assert state.intervention.kind == FailureKind.INVALID_PARAMETERS


async def test_an_operator_can_have_the_doubtful_write_made_again() -> None:
    """Checklist 28: by itself it is not repeated; whoever looked may say so."""
    bench = RetryBench(WRITE, [NETWORK, None])
    bench.begin()
    await bench.until(lambda state: state.intervention)
    bench.agent.handle(cmd.RetryStep(agent="a", step=bench.state.intervention.step), "operator:x")
    bench.agent.handle(cmd.Run(agent="a"), "operator:x")
    await bench.until(lambda state: not state.open_goals)
    await bench.agent.close()
    assert len(bench.calls) == 2


async def test_an_endpoint_that_asks_for_patience_has_done_nothing_so_writes_are_made_again() -> None:
    """Checklist 28: a rate limit is an answer; mindX's five tries of it stand."""
    bench = RetryBench(WRITE, [ErrorCode.RATE_LIMIT, None])
    state = await bench.run()
    assert len(bench.calls) == 2
    assert state.consecutive_errors == 0


async def test_a_program_that_ended_with_a_status_is_retried_as_the_table_says(flight: Flight) -> None:
    """Checklist 28: it answered, so that it ran is known; mindX's two retries stand."""
    steps = await flight.plan(python("raise SystemExit(3)"))
    await flight.do(cmd.Run)
    await flight.until(lambda s: s.intervention)
    assert await flight.started() == steps * 3


@pytest.mark.parametrize("stop", [cmd.Stop, cmd.Pause], ids=["stopped", "paused"])
async def test_a_stop_ends_the_wait_at_once_and_nothing_is_tried_again(stop: type[cmd.Command]) -> None:
    """Checklist 35: nobody waits on the clock any more, and there is no further attempt."""
    clock = WaitingClock()
    bench = RetryBench(READ, [NETWORK, None], clock=clock)
    bench.begin()
    await bench.until(lambda _: clock.waiting)
    bench.agent.handle(stop(agent="a"), "operator:x")
    await bench.until(lambda _: not clock.waiting)
    for _ in range(50):  # turns in which it might try again
        assert len(bench.calls) == 1
        await asyncio.sleep(0)
    assert bench.state.run in (RunState.STOPPED, RunState.PAUSED)
    await bench.agent.close()
    assert len(bench.calls) == 1


async def test_closing_ends_the_wait_at_once() -> None:
    """Checklist 35: the session ends while a retry is waited for."""
    clock = WaitingClock()
    bench = RetryBench(READ, [NETWORK, None], clock=clock)
    bench.begin()
    await bench.until(lambda _: clock.waiting)
    await bench.agent.close()
    assert (clock.waiting, len(bench.calls)) == (0, 1)


async def test_what_was_stopped_in_its_wait_goes_on_when_it_is_run_again() -> None:
    """Checklist 35: nothing of the plan is lost."""
    clock = WaitingClock()
    bench = RetryBench(READ, [NETWORK, None], clock=clock)
    bench.begin()
    await bench.until(lambda _: clock.waiting)
    bench.agent.handle(cmd.Stop(agent="a"), "operator:x")
    await bench.until(lambda _: not clock.waiting)
    clock.gate.set()
    bench.agent.handle(cmd.Run(agent="a"), "operator:x")
    await bench.until(lambda state: not state.open_goals)
    await bench.agent.close()
    assert len(bench.calls) == 2


@pytest.mark.parametrize("step", [READ, WRITE])
async def test_what_was_and_was_not_repeated_replays(step: PlanStep) -> None:
    bench = RetryBench(step, [NETWORK])
    await bench.run()

    async def no_blob(digest: str) -> bytes | None:
        return None

    replay = await replay_stream(bench.journal, no_blob)
    assert replay.matches, replay.difference


def test_memorys_own_writes_are_known_as_such() -> None:
    commands = Commands()
    assert not may_repeat(commands["store"], {"content": "x"})
    assert may_repeat(commands["store"], {"content": "x", "idempotency_key": "k"})
    assert may_repeat(commands["search"], {"query": "x"})
