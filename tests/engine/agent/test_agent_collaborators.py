"""An agent's collaborators, each built alone with what it needs and nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from engine_flight import HeldClock

from engine.agent.execution import RunLimits
from engine.agent.gatekeeper import BudgetGuard
from engine.agent.recorder import AgentRecorder
from engine.agent.recoverer import Recoverer
from engine.agent.steering.ledger import Ledger
from engine.core import events as ev
from engine.core.actions import ErrorCode, ResultStatus, ToolResult
from engine.core.agents import AgentConfig, RunState
from engine.core.budgets import SpendingLimits
from engine.core.fold import fold
from engine.core.goals import GoalStatus
from engine.core.journal import GENESIS, Event
from engine.core.plan import PlanStep, StepStatus
from engine.core.ports import Ports
from engine.core.streams import StreamLog
from engine.tools.registry import ToolRegistry

STEP = PlanStep("s1", "look", tool="simple_coder", command="ls", args={"path": "."})


async def _keep(batch: Sequence[Event]) -> Sequence[Event]:
    return batch


@pytest.fixture
def recorder() -> AgentRecorder:
    """The record of an agent that has one goal with a plan of one step."""
    recorder = AgentRecorder(fold([]), StreamLog("a", 0, GENESIS, HeldClock(), _keep))
    created = ev.AgentCreated(agent_id="a", agent_type="bdi_agent", config=AgentConfig(thinker="recipes"))
    for payload in (
        created,
        ev.GoalAdopted(goal="g1", text="something"),
        ev.GoalSelected(goal="g1"),
        ev.PlanAdopted(plan="p1", goal="g1", steps=(STEP,)),
    ):
        recorder.append(payload, "operator:test")
    return recorder


def _recoverer(recorder: AgentRecorder) -> Recoverer:
    return Recoverer(recorder, ToolRegistry([]), Ports().randomness)


async def test_a_recorder_shows_its_observer_what_comes_before_and_after_the_fold(
    recorder: AgentRecorder,
) -> None:
    seen: list[tuple[str, int]] = []

    class Observer:
        def before(self, payload: ev.Payload) -> None:
            seen.append(("before", recorder.state.version))

        def after(self, event: Event, payload: ev.Payload) -> None:
            seen.append((event.kind, recorder.state.version))

    version = recorder.state.version
    recorder.observer = Observer()
    recorder.append(ev.TimePassed(), "world")
    assert seen == [("before", version), (ev.TimePassed.kind, version + 1)]


async def test_work_that_is_no_longer_wanted_is_cut_off_and_gives_nothing(recorder: AgentRecorder) -> None:
    cut = asyncio.Event()

    async def work() -> str:
        try:
            await asyncio.Event().wait()
        finally:
            cut.set()
        return "done"

    waits = True
    running = asyncio.create_task(recorder.run_while(lambda: waits, work()))
    await asyncio.sleep(0)
    waits = False
    recorder.wake()
    assert await running is None
    assert cut.is_set()


async def test_a_recoverer_completes_the_step_whose_call_succeeded(recorder: AgentRecorder) -> None:
    _recoverer(recorder).settle(STEP, "g1", ToolResult(ResultStatus.SUCCESS, {"message": "two entries"}))
    step = recorder.state.plans["g1"].step("s1")
    assert step is not None
    assert (step.status, step.summary) == (StepStatus.COMPLETED, "two entries")


async def test_a_recoverer_records_one_failure_and_what_is_done_about_it(recorder: AgentRecorder) -> None:
    answer = ToolResult(ResultStatus.FAILURE, {"message": "no such path"}, ErrorCode.NOT_FOUND)
    _recoverer(recorder).settle(STEP, "g1", answer)
    (failure,) = recorder.state.failures
    assert (failure.step, failure.message) == ("s1", "no such path")
    assert failure.strategy is not None


async def test_a_budget_guard_holds_the_agent_before_the_action_that_is_too_much(
    recorder: AgentRecorder,
) -> None:
    ledger = Ledger(SpendingLimits(), SpendingLimits(actions=0), HeldClock().now)
    ledger.join(recorder.state)
    requested = ev.ActionRequested(
        action="a1", step="s1", goal="g1", tool="simple_coder", command="ls", args={}
    )
    event = recorder.append(requested, "agent")
    guard = BudgetGuard(recorder, ledger)
    assert guard.overspends(event.ref)
    assert recorder.state.held_by is not None
    guard.ease("operator:test")
    assert recorder.state.held_by is None


async def test_without_a_ledger_no_budget_holds_an_agent(recorder: AgentRecorder) -> None:
    recorder.append(ev.ActionRequested(action="a1", tool="simple_coder", command="ls", args={}), "agent")
    assert not BudgetGuard(recorder, None).overspends("")


async def test_an_agent_that_ran_until_a_goal_pauses_once_it_has_ended(recorder: AgentRecorder) -> None:
    limits = RunLimits(recorder)
    recorder.append(ev.AgentResumed(until="g1"), "operator:test")
    assert not limits.goal_over()
    recorder.append(ev.GoalEnded(goal="g1", status=GoalStatus.ACHIEVED), "agent")
    assert limits.goal_over()
    assert recorder.state.run is RunState.PAUSED
