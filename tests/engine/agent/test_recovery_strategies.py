"""Strategies are really carried out: other calls, plans made anew, waits, the goal above."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from engine_flight import Flight, HeldClock, QuickClock, act, python

from app.projection.agent_views import errors
from engine.agent.shared import EngineConfig
from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.goals import GoalStatus
from engine.core.plan import StepStatus
from engine.core.ports import SystemClock
from engine.core.recovery import FailureKind, Strategy
from engine.core.state import AgentState
from engine.models.choice import ModelChoice
from engine.models.endpoint import Endpoint, Retries
from engine.sandbox.policy import SandboxPolicy
from tests.engine.models.model_talk import CLAUDE
from tests.messages_server import MessagesServer, Reply, failure, plan_call
from widgets.base.text_layout import plain

FAILS = python("raise SystemExit(3)")
K, S = FailureKind, Strategy
Helm = Callable[..., Any]


def panel(state: AgentState) -> str:
    """What the error panel shows."""
    return "\n".join(plain(row.pieces) for row in errors(state).rows)


def achieve(goal: str) -> dict[str, Any]:
    return {"type": "ACHIEVE", "params": {"goal": goal}}


async def _chosen(flight: Flight) -> list[Strategy]:
    return [said.strategy for said in await flight.payloads(ev.RecoveryChosen)]


# ------------------------------------------------------------------ another call


async def test_a_directory_that_was_to_be_read_is_listed_instead(flight: Flight) -> None:
    await flight.do(cmd.CallTool, command="mkdir", args={"path": "src"})
    (step,) = await flight.plan(act("read", path="src"))
    await flight.do(cmd.Run)
    state = await flight.until(lambda s: not s.open_goals)
    assert state.goals["g1"].status is GoalStatus.ACHIEVED
    ran = state.find_step(step)[1]  # type: ignore[index]
    assert (ran.command, ran.args, ran.provenance.by) == ("ls", {"path": "src"}, "recovery")
    assert await _chosen(flight) == [S.ALTERNATIVE_TOOL]
    assert state.recovery_rates == {f"{K.INVALID_PARAMETERS}/{S.ALTERNATIVE_TOOL}": pytest.approx(0.65)}


async def test_a_program_is_run_under_its_other_name_where_only_that_is_allowed(
    tmp_path: Path, open_flight: Callable[..., Any]
) -> None:
    config = EngineConfig(policy=SandboxPolicy(programs=("python3",)))
    flight: Flight = await open_flight(tmp_path, None, config)
    (step,) = await flight.plan(act("run", command="python --version"))
    await flight.do(cmd.Run)
    state = await flight.until(lambda s: not s.open_goals)
    assert state.goals["g1"].status is GoalStatus.ACHIEVED
    assert state.find_step(step)[1].args == {"command": "python3 --version"}  # type: ignore[index]


async def test_when_the_other_call_fails_too_the_operator_is_asked(
    tmp_path: Path, open_flight: Callable[..., Any]
) -> None:
    """Behaviour 42."""
    config = EngineConfig(policy=SandboxPolicy(programs=("cat",)))
    flight: Flight = await open_flight(tmp_path, None, config)
    await flight.plan(act("run", command="python --version"))
    await flight.do(cmd.Run)
    state = await flight.until(lambda s: s.intervention)
    assert await _chosen(flight) == [S.ALTERNATIVE_TOOL, S.FALLBACK_MANUAL]
    assert state.recovery_rates[f"{K.PERMISSION_ERROR}/{S.ALTERNATIVE_TOOL}"] == pytest.approx(0.35)


# ------------------------------------------------------------------ rests, and what is kept


async def test_a_strategy_used_up_in_vain_rests_also_in_the_next_session(flight: Flight) -> None:
    (step,) = await flight.plan(FAILS)
    await flight.do(cmd.Run, ask=False)
    state = await flight.until(lambda s: not s.open_goals)
    key = f"{K.TOOL_EXECUTION_ERROR}/{S.RETRY_WITH_DELAY}"
    assert await flight.started() == [step] * 3
    assert state.resting[key] > state.tick
    before = (state.recovery_rates, state.resting)
    await flight.reopen()
    state = await flight.state()
    assert (state.recovery_rates, state.resting) == before

    _first, other = await flight.plan(act("ls"), FAILS)
    await flight.do(cmd.Run)
    state = await flight.until(lambda s: s.intervention)
    assert (await flight.started()).count(other) == 1
    said = (await flight.payloads(ev.RecoveryChosen))[-1]
    assert f"{S.RETRY_WITH_DELAY} failed lately and rests until tick {state.resting[key]}" in said.why
    assert f"rests until tick {state.resting[key]}" in panel(state)


async def test_a_goal_that_is_given_up_leaves_a_belief_that_says_why(flight: Flight) -> None:
    """Behaviour 48."""
    await flight.plan(act("read", path="missing.txt"))
    await flight.do(cmd.Run, ask=False)
    state = await flight.until(lambda s: not s.open_goals)
    assert state.beliefs["goal.aborted.g1"].value == state.goals["g1"].reason


# ------------------------------------------------------------------ the panel


async def test_the_panel_shows_attempts_the_next_try_what_was_tried_and_rates(
    tmp_path: Path, open_flight: Callable[..., Any]
) -> None:
    clock = HeldClock()
    flight: Flight = await open_flight(tmp_path, clock)
    (step,) = await flight.plan(FAILS)
    await flight.do(cmd.Run)
    await flight.until(lambda s: clock.slept)
    clock.slept.clear()
    await flight.do(cmd.RetryStep, step=step)
    state = await flight.until(lambda s: clock.slept and s.retry and s.retry.attempt == 2)
    assert await flight.started() == [step] * 2
    shown = panel(state)
    assert shown.startswith("✗ TOOL_EXECUTION_ERROR")
    assert re.search(r"retry after a pause 2/2 \S+s · next try \d\d:\d\d:\d\d", shown)
    assert "tried retry after a pause ✗ · rates retry after a pause 35%" in shown
    clock.gate.set()
    await flight.until(lambda s: s.intervention)


# ------------------------------------------------------------------ a model that plans


@pytest.fixture
def helm(tmp_path: Path, open_flight: Callable[..., Any]) -> Helm:
    """Opens a flight whose agent's plans a scripted model makes, with its server."""

    @asynccontextmanager
    async def open_(
        *script: Reply, repeat: bool = False, clock: SystemClock | None = None
    ) -> AsyncIterator[tuple[Flight, MessagesServer]]:
        async with MessagesServer(list(script), repeat=repeat) as server:
            choice = ModelChoice(Endpoint(server.url, "sk-test"), CLAUDE, retries=Retries(attempts=1))
            yield await open_flight(tmp_path, clock, EngineConfig(model=choice)), server

    return open_


async def _ended(flight: Flight) -> AgentState:
    return await flight.until(lambda s: s.intervention or (s.goals and not s.open_goals))


async def test_the_rest_of_a_goal_is_planned_anew_with_what_went_wrong_in_the_request(helm: Helm) -> None:
    """Behaviour 43."""
    first = plan_call(act("write", path="a.txt", content="a"), act("read", path="b.txt"))
    second = plan_call(act("write", path="b.txt", content="b"), act("read", path="b.txt"))
    async with helm(first, second) as (flight, server):
        await flight.do(cmd.AdoptGoal, text="make a.txt, and show b.txt")
        await flight.do(cmd.Run)
        state = await _ended(flight)
    assert state.goals["g1"].status is GoalStatus.ACHIEVED
    steps = [(step.command, step.args["path"]) for step in state.plans["g1"].steps]
    assert steps == [("write", "a.txt"), ("write", "b.txt"), ("read", "b.txt")]
    assert "INVALID_PARAMETERS: read b.txt" not in server.requests[0].said()
    told = server.requests[1].said()
    assert "INVALID_PARAMETERS: read b.txt" in told
    assert "completed: " in told
    assert "Plan only what remains" in told
    assert await _chosen(flight) == [S.SIMPLIFIED_APPROACH]
    assert state.recovery_rates == {f"{K.INVALID_PARAMETERS}/{S.SIMPLIFIED_APPROACH}": pytest.approx(0.65)}


async def test_a_goal_is_planned_anew_only_so_often_and_then_the_operator_decides(helm: Helm) -> None:
    bad = plan_call(act("write", path="a.txt", content="a"), act("read", path="nowhere"))
    async with helm(bad, repeat=True) as (flight, server):
        await flight.do(cmd.AdoptGoal, text="show what is nowhere")
        await flight.do(cmd.Run)
        state = await flight.until(lambda s: s.intervention)
        assert len(server.requests) == 3
    assert await _chosen(flight) == [S.SIMPLIFIED_APPROACH] * 2 + [S.FALLBACK_MANUAL]
    ended = await flight.payloads(ev.RecoveryEnded)
    assert [(said.strategy, said.success) for said in ended] == [(S.SIMPLIFIED_APPROACH, False)] * 2
    assert ended[-1].rests_until > state.tick
    assert "waits for you (i)" in panel(state)
    assert "tried a simpler plan ✗✗" in panel(state)


async def test_a_rate_limit_is_waited_out_for_as_long_as_the_endpoint_asked(helm: Helm) -> None:
    limited = failure(429, "rate_limit_error", retry_after="90")
    script = [limited, plan_call(act("write", path="a.txt", content="a"))]
    async with helm(*script) as (flight, _server):
        await flight.do(cmd.AdoptGoal, text="make a.txt")
        await flight.do(cmd.Run)
        state = await _ended(flight)
    assert state.goals["g1"].status is GoalStatus.ACHIEVED
    assert isinstance(flight.clock, QuickClock)
    assert any(90.1 <= delay <= 90.5 for delay in flight.clock.slept)
    (said,) = await flight.payloads(ev.ThinkingFailed)
    assert (said.failure, said.retry_after_s) == (K.RATE_LIMIT_ERROR, 90.0)
    assert state.recovery_rates == {f"{K.RATE_LIMIT_ERROR}/{S.RETRY_WITH_DELAY}": pytest.approx(0.65)}
    assert all(one.resolved for one in state.failures)


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (failure(401, "authentication_error"), K.PERMISSION_ERROR),
        (failure(404, "not_found_error"), K.TOOL_UNAVAILABLE),
    ],
)
async def test_what_asking_again_would_not_mend_goes_to_the_operator_at_once(
    helm: Helm, reply: Reply, kind: FailureKind
) -> None:
    """Behaviours 42 and 47."""
    async with helm(reply, plan_call(act("ls"))) as (flight, server):
        await flight.do(cmd.AdoptGoal, text="list the files")
        await flight.do(cmd.Run)
        state = await flight.until(lambda s: s.intervention)
        assert (state.intervention.kind, len(server.requests)) == (kind, 1)
        await flight.do(cmd.RetryStep, goal="g1")
        state = await _ended(flight)
    assert state.goals["g1"].status is GoalStatus.ACHIEVED


@pytest.mark.parametrize(("give_up", "status"), [(False, GoalStatus.ACHIEVED), (True, GoalStatus.FAILED)])
async def test_while_a_plan_is_waited_for_the_operator_can_retry_now_or_give_up(
    helm: Helm, give_up: bool, status: GoalStatus
) -> None:
    clock = HeldClock()
    script = [failure(529, "overloaded_error"), plan_call(act("ls"))]
    async with helm(*script, clock=clock) as (flight, server):
        await flight.do(cmd.AdoptGoal, text="list the files")
        await flight.do(cmd.Run)
        state = await flight.until(lambda s: s.retry and clock.slept)
        assert "next try" in panel(state)
        assert len(server.requests) == 1
        if give_up:
            await flight.do(cmd.AbortGoal, goal="g1")
        else:
            await flight.do(cmd.RetryStep, goal="g1")
        state = await _ended(flight)
        assert len(server.requests) == 1 + (not give_up)
        assert state.retry is None
    assert state.goals["g1"].status is status
    assert "nothing of g2" not in await flight.refused(cmd.RetryStep, goal="g2")


async def test_a_pause_stops_the_wait_and_an_urgent_goal_goes_first(helm: Helm) -> None:
    clock = HeldClock()
    script = [failure(529, "overloaded_error"), plan_call(act("ls")), plan_call(act("ls"))]
    async with helm(*script, clock=clock) as (flight, server):
        await flight.do(cmd.AdoptGoal, text="list the files")
        await flight.do(cmd.Run)
        await flight.until(lambda s: s.retry and clock.slept)
        await flight.do(cmd.Pause)
        await flight.do(cmd.CallTool, command="ls")
        await flight.until(lambda s: s.operator_actions == 1 and not s.acting)
        assert len(server.requests) == 1
        await flight.do(cmd.AdoptGoal, text="list them again", priority=9)
        await flight.do(cmd.Run)
        state = await flight.until(lambda s: s.goals["g2"].status.terminal)
        assert state.goals["g1"].status is GoalStatus.ACTIVE
        clock.gate.set()
        await _ended(flight)
    assert [said.goal for said in await flight.payloads(ev.GoalEnded)] == ["g2", "g1"]


async def test_a_sub_goal_that_cannot_be_had_is_handed_to_the_goal_above(helm: Helm) -> None:
    uncovered = {"clause": "fetch the moon", "why": "no tool can"}
    script = [
        plan_call(act("write", path="a.txt", content="a")),
        plan_call(uncovered=(uncovered,)),
        plan_call(uncovered=(uncovered,)),
        plan_call(act("write", path="sun.txt", content="shines")),
    ]
    async with helm(*script) as (flight, _server):
        await flight.do(cmd.AdoptGoal, text="light the room")
        await flight.do(cmd.Step)
        await flight.until(lambda s: s.plan and s.plan.complete is False)
        await flight.do(cmd.ReplacePlan, goal="g1", plan="fetch the moon")
        await flight.do(cmd.Run)
        state = await _ended(flight)
    assert await _chosen(flight) == [S.SIMPLIFIED_APPROACH, S.ESCALATE_TO_AGINT, S.SIMPLIFIED_APPROACH]
    assert (state.goals["g1"].status, state.goals["g2"].status) == (GoalStatus.ACHIEVED, GoalStatus.FAILED)
    assert "fetch the moon" in state.beliefs["goal.escalated.g2"].value
    assert state.plans["g1"].steps[-1].status is StepStatus.COMPLETED
    counted = [said for said in await flight.payloads(ev.FailureRecorded) if not said.escalated_from]
    assert len(counted) == 2


async def test_recipes_are_not_asked_again_as_they_would_say_the_same(flight: Flight) -> None:
    await flight.plan(act("read", path="missing.txt"))
    asked = len(await flight.payloads(ev.PlanAsked))
    await flight.do(cmd.Run)
    await flight.until(lambda s: s.intervention)
    assert len(await flight.payloads(ev.PlanAsked)) == asked
