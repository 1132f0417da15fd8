"""What a goal will take, foretold from its progress (steering T16: within 30 % at a quarter of the way)."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from engine.agent.steering.budget_status import GoalForecast, forecast_goal
from engine.core import events as ev
from engine.core.actions import ResultStatus, Reversibility
from engine.core.agents import AgentConfig
from engine.core.budgets import BudgetKind
from engine.core.fold import apply
from engine.core.goals import GoalStatus
from engine.core.journal import Event
from engine.core.plan import Op, PlanStep, StepStatus
from engine.core.state import AgentState

STEPS = 40


def told(payloads: Iterator[tuple[float, ev.Payload]], state: AgentState) -> Iterator[AgentState]:
    """The state after each event, with seconds between them."""
    clock = 0.0
    for seconds, payload in payloads:
        clock += seconds
        at = f"2026-01-01T{int(clock) // 3600:02}:{int(clock) // 60 % 60:02}:{clock % 60:09.6f}Z"
        yield apply(state, event_of(payload, state, at), payload)


def regular_run(seed: int, spread: float) -> Iterator[tuple[float, ev.Payload]]:
    """One goal of equal steps, each with an action and a call of a model that vary by so much."""
    draw = random.Random(seed)
    yield 0, ev.AgentCreated(agent_id="pilot", agent_type="bdi_agent", config=AgentConfig())
    yield 1, ev.GoalAdopted(goal="g1", text="do the same many times")
    yield 0, ev.AgentResumed()
    yield 1, ev.GoalSelected(goal="g1")
    yield 30, called(20_000, 0.2)  # the plan, which is paid once
    yield 0, ev.PlanAdopted(plan="p1", goal="g1", steps=tuple(PlanStep(f"s{n}", "") for n in range(STEPS)))
    for n in range(STEPS):
        vary = 1 + draw.uniform(-spread, spread)
        action = ev.ActionRequested(action=f"a{n}", step=f"s{n}", goal="g1", tool="t", command="c", args={})
        yield 0.1, action
        yield 1 * vary, called(round(1_000 * vary), 0.01 * vary)
        yield 0.1, ev.ActionStarted(action=f"a{n}", undo=Reversibility.NONE)
        yield 5 * vary, ev.ActionFinished(action=f"a{n}", status=ResultStatus.SUCCESS, result={})
        yield 0, ev.StepEnded(goal="g1", step=f"s{n}", status=StepStatus.COMPLETED)
    yield 0, ev.GoalEnded(goal="g1", status=GoalStatus.ACHIEVED)


def called(tokens: int, usd: float) -> ev.ModelCalled:
    return ev.ModelCalled(goal="g1", model="m", request={}, tokens=tokens, cost_usd=usd)


@pytest.mark.parametrize("seed", range(10))
def test_at_a_quarter_of_regular_work_the_forecast_is_within_thirty_percent(seed: int) -> None:
    seen: dict[int, GoalForecast] = {}
    state = AgentState()
    for now in told(regular_run(seed, 0.5), state):
        found = forecast_goal(now, "g1")
        seen.setdefault(found.done, found)
    early, spent = seen[STEPS // 4], state.spent["g1"]
    assert (early.of, early.basis) == (STEPS, "10 of 40 steps done")
    for kind in BudgetKind:
        forecast = early.of_kind(kind)
        assert forecast is not None
        assert forecast.likely == pytest.approx(spent.of(kind), rel=0.3)
        assert forecast.low * 0.95 <= spent.of(kind) <= forecast.high * 1.05, kind
    actions = early.of_kind(BudgetKind.ACTIONS)
    assert actions is not None
    assert (actions.low, actions.high) == (STEPS, STEPS), "what does not vary is sure"


def test_what_little_is_known_is_said() -> None:
    state = AgentState()
    assert forecast_goal(state, "g1").basis == "no forecast: there is no plan yet"
    run = told(regular_run(1, 0.5), state)
    while not state.plans:
        next(run)
    before = forecast_goal(state, "g1")
    assert before.basis == "0 of 40 steps done; what they take shows once one is done"
    assert [kind for kind, _ in before.forecasts] == [BudgetKind.ACTIONS]
    while not state.paces["g1"].steps:
        next(run)
    assert forecast_goal(state, "g1").basis == "1 of 40 steps done, too few to be sure"
    list(run)
    assert forecast_goal(state, "g1").basis == "the goal is over"


def test_steps_that_are_decided_one_by_one_and_goals_without_a_plan_are_named() -> None:
    state = AgentState()
    first = PlanStep("s1", "", op=Op.ACHIEVE, args={"goal": "more"})
    second, third = PlanStep("s2", ""), PlanStep("s3", "", op=Op.THINK)
    begin = [
        ev.GoalAdopted(goal="g1", text="do it"),
        ev.PlanAdopted(plan="p1", goal="g1", steps=(first, second)),
    ]
    for _ in told(((1.0, one) for one in begin), state):
        pass
    assert "1 of them still to be planned" in forecast_goal(state, "g1").basis
    assert forecast_goal(state, "g1").of == 2
    revised = ev.PlanRevised(plan="p1", goal="g1", change="", steps=(second, third))
    list(told(iter([(1.0, revised)]), state))
    assert forecast_goal(state, "g1").basis == "no forecast: steps are decided one by one (0 done)"


def event_of(payload: ev.Payload, state: AgentState, at: str) -> Event:
    version = state.version + 1
    return Event("pilot", version, at, 0, "agent", (), payload.kind, payload.body(), f"{version}")
