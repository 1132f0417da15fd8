"""Failures: one kind each, a ladder of strategies, and the operator at its end."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from engine_flight import Flight, QuickClock, act, python

from engine.agent.actions.pipeline import LiveToolbox
from engine.agent.recovery import choose_strategy, classify
from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.actions import ErrorCode, ResultStatus, SandboxSession, ToolResult
from engine.core.agents import Mode
from engine.core.goals import GoalStatus
from engine.core.plan import StepStatus
from engine.core.ports import CallContext
from engine.core.recovery import FailureKind, Strategy
from engine.planning.library.missions import load_missions
from engine.tools.belief_tool import BeliefTool
from engine.tools.registry import ToolRegistry

FAILS = python("raise SystemExit(3)")
UNTIL_TWO = (
    "import pathlib, sys\n"
    "p = pathlib.Path('tries'); n = len(p.read_text()) if p.exists() else 0\n"
    "p.write_text('x' * (n + 1)); sys.exit(n < 2)"
)


@pytest.mark.parametrize("code", list(ErrorCode))
def test_each_error_code_has_exactly_one_kind(code: ErrorCode) -> None:
    """Behaviour 40."""
    assert classify(code) in FailureKind


def _choose(kind: FailureKind, tried: list[Strategy], errors: int = 1, ask: bool = True) -> object:
    return choose_strategy(
        kind, tried, consecutive_errors=errors, max_consecutive_errors=9, ask=ask, randomness=random.Random(1)
    )


@pytest.mark.parametrize(
    ("kind", "tries"),
    [
        (FailureKind.NETWORK_ERROR, 3),
        (FailureKind.TOOL_EXECUTION_ERROR, 2),
        (FailureKind.RATE_LIMIT_ERROR, 5),
    ],
)
def test_what_may_pass_is_retried_with_growing_delays_then_the_operator_is_asked(
    kind: FailureKind, tries: int
) -> None:
    delays = []
    tried: list[Strategy] = []
    for attempt in range(1, tries + 1):
        choice = _choose(kind, tried)
        assert (choice.strategy, choice.attempt, choice.of) == (Strategy.RETRY_WITH_DELAY, attempt, tries)
        delays.append(choice.delay_s)
        tried.append(choice.strategy)
    assert all(2**n <= delay <= 2**n + 0.5 for n, delay in enumerate(delays))
    assert _choose(kind, tried).strategy is Strategy.FALLBACK_MANUAL
    assert _choose(kind, tried, ask=False).strategy is Strategy.ABORT_GRACEFULLY
    assert _choose(kind, [], errors=9).strategy is Strategy.FALLBACK_MANUAL


@pytest.mark.parametrize("kind", [FailureKind.PERMISSION_ERROR, FailureKind.INVALID_PARAMETERS])
def test_what_would_only_be_refused_again_goes_to_the_operator_at_once(kind: FailureKind) -> None:
    assert _choose(kind, []).strategy is Strategy.FALLBACK_MANUAL


async def test_the_broken_build_is_retried_then_mended_by_hand_and_achieved(flight: Flight) -> None:
    mission = load_missions()["broken-build"]
    for path, content in mission.files.items():
        await flight.do(cmd.CallTool, command="write", args={"path": path, "content": content})
        await flight.until(lambda s: not s.requests and not s.action)
    await flight.do(cmd.AdoptGoal, text=mission.goal)
    await flight.do(cmd.Run)
    state = await flight.until(lambda s: s.intervention)
    assert state.mode is Mode.INTERVENTION
    assert state.intervention.kind == FailureKind.TOOL_EXECUTION_ERROR
    assert len(state.intervention.tried) == 2
    assert isinstance(flight.clock, QuickClock)
    assert [round(delay - 0.3) for delay in flight.clock.slept] == [1, 2]
    step = state.intervention.step
    assert (await flight.started()).count(step) == 3
    assert "your decision" in await flight.refused(cmd.Run)

    source = mission.files["shop/cart.py"].replace(
        "self.total() // 100 * 100 * percent // 100", "self.total() * percent // 100"
    )
    call = {"path": "cart.py", "content": source}
    await flight.do(cmd.CallTool, command="write", args=call)
    await flight.until(lambda s: not s.requests and not s.action)
    await flight.do(cmd.RetryStep, step=step)
    state = await flight.until(lambda s: not s.open_goals)
    assert state.goals["g1"].status is GoalStatus.ACHIEVED
    assert all(failure.resolved for failure in state.failures)
    assert (await flight.started()).count(step) == 4


async def test_handing_back_tries_the_failed_step_again(flight: Flight) -> None:
    """Behaviour 17."""
    steps = await flight.plan(act("read", path="later.txt"))
    await flight.do(cmd.Run)
    state = await flight.until(lambda s: s.intervention)
    assert state.intervention.kind == FailureKind.INVALID_PARAMETERS
    (flight.sandbox / "later.txt").write_text("here now")
    await flight.do(cmd.HandBack)
    await flight.until(lambda s: not s.open_goals)
    assert await flight.started() == [steps[0]] * 2


async def test_a_retry_that_succeeds_settles_its_failures(flight: Flight) -> None:
    """Behaviour 46."""
    steps = await flight.plan(python(UNTIL_TWO), act("write", path="end", content=""))
    await flight.do(cmd.Run)
    state = await flight.until(lambda s: not s.open_goals)
    assert await flight.started() == [steps[0]] * 3 + [steps[1]]
    assert (state.failed_actions, state.consecutive_errors) == (2, 0)
    assert all(failure.resolved for failure in state.failures)
    ended = await flight.payloads(ev.RecoveryEnded)
    assert [said.success for said in ended] == [False, True]


async def test_outcomes_1_1_0_give_a_rate_of_0_5285_that_survives_a_restart(flight: Flight) -> None:
    """Behaviour 45."""

    def flaky(name: str) -> dict[str, object]:
        return python(
            f"import os, sys; sys.exit(0 if os.path.exists('{name}') else open('{name}', 'w').close() or 1)"
        )

    await flight.plan(flaky("a"), flaky("b"), FAILS)
    await flight.do(cmd.Run)
    key = f"{FailureKind.TOOL_EXECUTION_ERROR}/{Strategy.RETRY_WITH_DELAY}"
    state = await flight.until(lambda s: s.action and s.recovery_rates.get(key, 0.5) < 0.6 and s.actions >= 6)
    outcomes = [said.success for said in await flight.payloads(ev.RecoveryEnded)]
    assert outcomes[:3] == [True, True, False]
    await flight.until(lambda s: s.intervention)
    rate = 0.5
    outcomes = [said.success for said in await flight.payloads(ev.RecoveryEnded)]
    for outcome in outcomes[:3]:
        rate = 0.7 * rate + 0.3 * outcome
    assert rate == pytest.approx(0.5285)
    expected = rate
    for outcome in outcomes[3:]:
        expected = 0.7 * expected + 0.3 * outcome
    before = (await flight.state()).recovery_rates
    await flight.reopen()
    state = await flight.state()
    assert state.recovery_rates == before
    assert state.recovery_rates[key] == pytest.approx(expected)


async def test_never_ask_fails_the_goal_with_the_reason_and_others_go_on(flight: Flight) -> None:
    """Behaviour 48."""
    await flight.plan(act("read", path="missing.txt"))
    await flight.do(cmd.AdoptGoal, text="create a directory named 'other'")
    await flight.do(cmd.Run, ask=False)
    state = await flight.until(lambda s: not s.open_goals)
    assert state.goals["g1"].status is GoalStatus.FAILED
    assert state.goals["g1"].reason.startswith("INVALID_PARAMETERS: ")
    assert state.goals["g2"].status is GoalStatus.ACHIEVED
    assert state.intervention is None
    assert all(step.status.terminal for step in state.plans["g1"].steps)


async def test_a_failing_last_step_waits_for_the_operator_and_never_spins(flight: Flight) -> None:
    """Behaviours 17 and 49."""
    steps = await flight.plan(act("write", path="a", content=""), FAILS)
    await flight.do(cmd.Run)
    # What it makes of the failure in the background has been recorded, too.
    state = await flight.until(lambda s: s.intervention and s.meta.ended and not s.meta.running)
    assert state.find_step(steps[1])[1].status is StepStatus.FAILED  # type: ignore[index]
    assert await flight.started() == [steps[0]] + [steps[1]] * 3
    version = len(await flight.events())
    await flight.do(cmd.Pause)
    assert len(await flight.events()) == version + 2
    await flight.do(cmd.AbortGoal, goal="g1", reason="never mind")
    state = await flight.until(lambda s: not s.open_goals)
    assert (state.goals["g1"].status, state.intervention) == (GoalStatus.FAILED, None)


async def test_three_failures_in_a_row_ask_the_operator_whatever_is_left_to_try(flight: Flight) -> None:
    await flight.plan(FAILS, FAILS)
    await flight.do(cmd.Run)
    state = await flight.until(lambda s: s.intervention)
    assert state.consecutive_errors == 3
    chosen = await flight.payloads(ev.RecoveryChosen)
    assert chosen[-1].why == "3 failures in a row"


async def test_the_operator_can_take_the_turn_and_hand_it_back(flight: Flight) -> None:
    steps = await flight.plan(act("write", path="a", content=""))
    await flight.at_gate(steps[0])
    await flight.do(cmd.Intervene)
    assert "your decision" in await flight.refused(cmd.Run)
    assert "your decision" in await flight.refused(cmd.Step)
    await flight.do(cmd.CallTool, command="write", args={"path": "mine", "content": ""})
    await flight.until(lambda s: s.operator_actions == 1 and not s.acting)
    await flight.do(cmd.HandBack)
    await flight.do(cmd.Run)
    await flight.until(lambda s: not s.open_goals)
    state = await flight.state()
    assert "mine" in state.beliefs["workspace.entries"].value


class _Broken:
    id, description, commands = "broken", "answers nonsense", BeliefTool().commands

    async def call(self, command: str, args: object, context: object) -> object:
        match command:
            case "add":
                return {"status": "SUCCESS"}
            case "update":
                return ToolResult(ResultStatus.SUCCESS, {}, ErrorCode.NOT_FOUND)
            case "remove":
                return ToolResult(ResultStatus.SUCCESS, {"bytes": b"\0"})
        raise RuntimeError("out of order")


@pytest.mark.parametrize("command", ["add", "update", "remove", "test"])
async def test_a_tool_that_breaks_its_contract_is_a_failure_never_a_success(command: str) -> None:
    """Behaviour 32."""
    toolbox = LiveToolbox(ToolRegistry([_Broken()]))  # type: ignore[list-item]
    answer = await toolbox.call("a1", "broken", command, {}, CallContext(SandboxSession()))
    assert (answer.status, answer.code) == (ResultStatus.ERROR, ErrorCode.INTERNAL)
    assert answer.message.startswith(f"broken.{command} broke: ")


async def test_belief_steps_are_actions_like_all_others(flight: Flight) -> None:
    def mind(command: str, **args: object) -> dict[str, object]:
        return {"type": "EXECUTE_TOOL", "params": {"tool_id": "mind", "command": command, "args": args}}

    steps = await flight.plan(
        mind("add", key="sky", value="blue"),
        mind("test", key="sky", value="blue"),
        mind("remove", key="sky"),
        mind("test", key="sky"),
    )
    await flight.do(cmd.Run)
    state = await flight.until(lambda s: s.intervention)
    assert state.intervention.step == steps[3]
    assert "sky" not in state.beliefs
    assert await flight.started() == steps


async def test_nothing_outside_the_sandbox_is_reached_and_the_operator_is_asked(
    flight: Flight, tmp_path: Path
) -> None:
    """Behaviour 47."""
    await flight.plan(act("write", path="../escaped", content=""))
    await flight.do(cmd.Run)
    state = await flight.until(lambda s: s.intervention)
    assert state.intervention.kind == FailureKind.PERMISSION_ERROR
    assert "outside" in state.intervention.reason
    assert not (tmp_path / "escaped").exists()
    await flight.do(cmd.AbortGoal, goal="g1", reason="as it should be")
    state = await flight.until(lambda s: not s.open_goals)
    assert (state.goals["g1"].status, state.intervention) == (GoalStatus.FAILED, None)
