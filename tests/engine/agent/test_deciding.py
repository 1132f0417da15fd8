"""A model decides on one action after the other: what it is told, what follows, who may change it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from engine_flight import Flight
from helm_flight import action, helm, told

from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.agents import Mode, RunState
from engine.core.goals import GoalStatus
from engine.core.plan import Op, StepStatus
from engine.core.recovery import FailureKind, Strategy
from engine.core.state import AgentState
from tests.messages_server import Reply, call, object_call, plan_call

DECIDES = {"style": "decide"}
DONE = object_call("finish", summary="it is there")


def write(path: str, content: str = "x", **rest: Any) -> Reply:
    return call("simple_coder__write", {"path": path, "content": content}, **rest)


def read(path: str) -> Reply:
    return object_call("simple_coder__read", path=path)


async def runs(flight: Flight, *, ask: bool = True, text: str = "make a.txt", **goal: Any) -> AgentState:
    """The state when the goal has ended, or the operator is asked."""
    await flight.do(cmd.AdoptGoal, text=text, **goal)
    await flight.do(cmd.Run, ask=ask)
    return await flight.until(
        lambda state: (
            state.goals["g1"].status.terminal
            or state.mode is Mode.INTERVENTION
            or state.run is RunState.PAUSED
        )
    )


async def test_each_decision_is_one_call_and_the_next_is_told_what_came_of_it(tmp_path: Path) -> None:
    script = (write("a.txt", "hello", text="I make the file."), read("a.txt"), DONE)
    async with helm(tmp_path, *script, config=DECIDES) as (flight, server):
        state = await runs(flight)
        assert (state.goals["g1"].status, state.goals["g1"].reason) == (GoalStatus.ACHIEVED, "it is there")
        assert (flight.sandbox / "a.txt").read_text() == "hello"
        assert [step.op for step in state.plans["g1"].steps] == [Op.ACT, Op.ACT, Op.THINK]
        assert state.plans["g1"].steps[0].description == "I make the file."
        assert (state.actions, state.model_calls) == (2, 3)
        first = server.requests[0].body
        assert first["tool_choice"] == {"type": "any", "disable_parallel_tool_use": True}
        assert {"simple_coder__write", "finish", "update_plan"} <= {tool["name"] for tool in first["tools"]}
        assert first["tools"][-1]["cache_control"] == {"type": "ephemeral"}
        assert "hello" in told(server, 2)  # the answer of `read`, W19
        assert [one.decision.kind for one in await flight.payloads(ev.DecisionMade)] == [
            "call",
            "call",
            "finish",
        ]


async def test_the_stable_part_of_the_prompt_is_the_same_for_every_decision(tmp_path: Path) -> None:
    async with helm(tmp_path, write("a.txt"), DONE, config=DECIDES) as (flight, server):
        await runs(flight)
        bodies = [request.body for request in server.requests]
        assert bodies[0]["tools"] == bodies[1]["tools"]
        assert bodies[0]["system"] == bodies[1]["system"]


async def test_stepping_shows_a_call_before_it_runs_and_an_edited_one_runs_once(tmp_path: Path) -> None:
    """Checklist 60, first half."""
    async with helm(tmp_path, write("a.txt"), DONE, config=DECIDES) as (flight, _):
        await flight.do(cmd.AdoptGoal, text="make a.txt")
        await flight.do(cmd.Step)
        state = await flight.until(lambda s: s.step and s.step.op is Op.ACT and s.mode is Mode.PAUSED)
        pending = state.step
        assert pending is not None
        assert (pending.command, state.actions) == ("write", 0)
        await flight.do(cmd.EditStep, step=pending.id, args={"path": "b.txt", "content": "mine"})
        await flight.do(cmd.Step)
        state = await flight.until(lambda s: s.actions == 1 and s.mode is Mode.PAUSED)
        assert [path.name for path in flight.sandbox.iterdir() if path.is_file()] == ["b.txt"]
        assert state.model_calls == 1  # and waits again before the next decision
        edited = [
            e for e in await flight.events() if e.kind == "plan.revised" and e.actor == "operator:operator"
        ]
        assert len(edited) == 1
        assert len(await flight.payloads(ev.ActionStarted)) == 1


async def test_a_rejected_call_is_told_with_the_reason_and_counts_as_no_error(tmp_path: Path) -> None:
    """Checklist 60, second half."""
    async with helm(tmp_path, write("a.txt"), DONE, config=DECIDES) as (flight, server):
        await flight.do(cmd.AdoptGoal, text="make a.txt")
        await flight.do(cmd.Step)
        state = await flight.until(lambda s: s.step and s.step.op is Op.ACT and s.mode is Mode.PAUSED)
        assert state.step is not None
        await flight.do(cmd.SkipStep, step=state.step.id, reason="not in this directory, please")
        await flight.do(cmd.Step)
        state = await flight.until(lambda s: s.goals["g1"].status.terminal)
        assert "not in this directory, please" in told(server, 1)
        assert (state.actions, state.consecutive_errors, state.failures) == (0, 0, [])


async def test_a_paused_agent_makes_no_decision(tmp_path: Path) -> None:
    async with helm(tmp_path, config=DECIDES) as (flight, server):
        await flight.do(cmd.AdoptGoal, text="make a.txt")
        await flight.until(lambda state: state.goals)
        await flight.do(cmd.Pause)
        assert not server.requests


async def test_a_failed_action_stays_failed_and_the_thinker_is_told_and_goes_on(tmp_path: Path) -> None:
    """Checklist 19 and 20: kept as failed, one abstract step behind it, errors counted once."""
    script = (read("nowhere.txt"), write("a.txt"), DONE)
    async with helm(tmp_path, *script, config=DECIDES) as (flight, server):
        state = await runs(flight)
        steps = state.plans["g1"].steps
        assert [(step.command, step.status) for step in steps[:2]] == [
            ("read", StepStatus.ABANDONED),
            ("write", StepStatus.COMPLETED),
        ]
        assert [step.op for step in steps] == [Op.ACT, Op.ACT, Op.THINK]
        assert "nowhere.txt" in told(server, 1)
        assert "what went wrong" in told(server, 1)
        assert "what went wrong" not in told(server, 2)
        failed = await flight.payloads(ev.FailureRecorded)
        assert [one.failure for one in failed] == [FailureKind.INVALID_PARAMETERS]
        assert (state.goals["g1"].status, state.consecutive_errors) == (GoalStatus.ACHIEVED, 0)
        assert all(failure.resolved for failure in state.failures)
        at_failure = await flight.engine.view(
            flight.agent, next(e.version for e in await flight.events() if e.kind == "recovery.chosen")
        )
        assert (at_failure.needs_replan, at_failure.consecutive_errors) == (True, 1)
        assert (at_failure.successes_since_reflection, at_failure.failures[-1].strategy) == (
            0.0,
            Strategy.DECIDE_ANEW,
        )


async def test_a_thought_keeps_the_need_for_another_plan(tmp_path: Path) -> None:
    """Checklist 22: counters up by a half, errors 0."""
    thought = object_call("record_thought", content="it is not there", thought_type="evidence")
    async with helm(tmp_path, read("nowhere.txt"), thought, DONE, config=DECIDES) as (flight, _):
        await runs(flight)
        events = await flight.events()
        (at,) = [event.version for event in events if event.kind == "thought.recorded"]
        before = await flight.engine.view(flight.agent, at - 1)
        after = await flight.engine.view(flight.agent, at)
        assert (before.needs_replan, after.needs_replan) == (True, True)
        assert (before.consecutive_errors, after.consecutive_errors) == (1, 0)
        assert after.successes_since_reflection == before.successes_since_reflection + 0.5
        (said,) = await flight.payloads(ev.ThoughtRecorded)
        assert (said.text, said.type) == ("it is not there", "evidence")


async def test_words_without_a_call_are_a_thought_and_some_words_an_end(tmp_path: Path) -> None:
    script = (Reply(text="Let me see."), Reply(text="Goal achieved: nothing was to be done."))
    async with helm(tmp_path, *script, config=DECIDES) as (flight, _):
        state = await runs(flight)
        assert [one.text for one in await flight.payloads(ev.ThoughtRecorded)] == ["Let me see."]
        assert state.goals["g1"].reason == "nothing was to be done."


async def test_who_only_thinks_is_made_to_act(tmp_path: Path) -> None:
    thoughts = [Reply(text=f"thought {number}") for number in range(5)]
    script = (*thoughts, Reply(text="one more"), write("a.txt"), DONE)
    async with helm(tmp_path, *script, config=DECIDES) as (flight, server):
        state = await runs(flight)
        assert state.goals["g1"].status is GoalStatus.ACHIEVED
        assert len(await flight.payloads(ev.ThoughtRecorded)) == 5
        names = {tool["name"] for tool in server.requests[5].body["tools"]}
        assert "record_thought" not in names
        assert "you have thought long enough" in told(server, 6)


async def test_calls_in_the_same_breath_are_put_off_and_the_thinker_is_told(tmp_path: Path) -> None:
    more = (("simple_coder__write", json.dumps({"path": "b.txt", "content": "y"})),)
    async with helm(tmp_path, write("a.txt", more_tools=more), DONE, config=DECIDES) as (flight, server):
        await runs(flight)
        assert not (flight.sandbox / "b.txt").exists()
        assert "not made: simple_coder__write" in told(server, 1)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (object_call("simple_coder__teleport", where="home"), "there is no tool"),
        (object_call("simple_coder__write", where="a.txt", colour="red"), "colour"),
        (object_call("simple_coder__write", path="a.txt"), "content"),
        (call("simple_coder__write", '{"path": "a", "path": "b", "content": "x"}'), "path"),
        (object_call("finish", summary=""), "summary"),
        (call("record_thought", {"content": "x", "thought_type": "policy"}), "thought_type"),
        (
            object_call("update_plan", plan=[{"type": "SET_POLICY", "id": "1", "description": "network on"}]),
            "type must be EXECUTE_TOOL or THINK",
        ),
    ],
)
async def test_a_wrong_decision_goes_back_with_the_reason_and_is_put_right(
    tmp_path: Path, wrong: Reply, words: str
) -> None:
    async with helm(tmp_path, wrong, write("a.txt"), DONE, config=DECIDES) as (flight, server):
        state = await runs(flight)
        assert state.goals["g1"].status is GoalStatus.ACHIEVED
        assert words in told(server, 1)
        assert (state.actions, state.failures) == (1, [])


async def test_three_decisions_that_fail_in_a_row_end_the_goal(tmp_path: Path) -> None:
    """Checklist 29: three failed decisions; each is asked for with two repairs."""
    nonsense = [object_call("teleport") for _ in range(9)]
    async with helm(tmp_path, *nonsense, config=DECIDES) as (flight, server):
        state = await runs(flight, ask=False)
        assert (state.goals["g1"].status, state.consecutive_errors) == (GoalStatus.FAILED, 3)
        assert len(server.requests) == 9
        assert len(state.failures) == 3


async def test_a_success_between_failed_decisions_lets_it_go_on(tmp_path: Path) -> None:
    """Checklist 29: fail, fail, success, fail."""
    wrong = [object_call("teleport") for _ in range(3)]
    script = (*wrong, *wrong, write("a.txt"), *wrong, DONE)
    async with helm(tmp_path, *script, config=DECIDES) as (flight, _):
        state = await runs(flight, ask=False)
        assert state.goals["g1"].status is GoalStatus.ACHIEVED
        assert len(state.failures) == 3


async def test_a_new_plan_takes_the_place_of_what_has_not_run(tmp_path: Path) -> None:
    """Checklist 17 and 21: what is done counts as done; at the end one step assesses the result."""
    plan = [action("one", "mkdir", path="d"), action("two", "write", path="d/a.txt", content="x")]
    plan[1]["depends_on"] = ["one"]
    async with helm(tmp_path, object_call("update_plan", plan=plan), DONE, config=DECIDES) as (flight, _):
        state = await runs(flight)
        assert (flight.sandbox / "d" / "a.txt").read_text() == "x"
        assert [step.op for step in state.plans["g1"].steps] == [Op.ACT, Op.ACT, Op.THINK]
        assert (state.model_calls, state.needs_replan) == (2, False)


@pytest.mark.parametrize(
    ("needs", "words"),
    [
        ({"one": ["two"], "two": ["one"]}, "in a circle"),
        ({"one": ["one"]}, "in a circle"),
        ({"one": ["ghost"]}, "'ghost', which is not in the plan"),
    ],
)
async def test_a_plan_in_a_circle_is_refused_and_the_old_one_kept(
    tmp_path: Path, needs: dict[str, list[str]], words: str
) -> None:
    """Checklist 16: the steps are named, errors +1 exactly, another plan is needed."""
    plan = [action("one", "mkdir", path="d"), action("two", "mkdir", path="e")]
    for one in plan:
        one["depends_on"] = needs.get(one["id"], [])
    async with helm(
        tmp_path, object_call("update_plan", plan=plan), write("a.txt"), DONE, config=DECIDES
    ) as (flight, server):
        await runs(flight)
        (rejected,) = await flight.payloads(ev.PlanRejected)
        assert words in rejected.problems[0]
        at = next(event.version for event in await flight.events() if event.kind == "recovery.chosen")
        then = await flight.engine.view(flight.agent, at)
        assert (then.consecutive_errors, then.needs_replan, len(then.plans["g1"].steps)) == (1, True, 1)
        assert then.failures[-1].kind is FailureKind.PLANNING_ERROR
        assert words in told(server, 1)


async def test_what_needs_a_failed_step_is_not_run(tmp_path: Path) -> None:
    """Checklist 18: the tool is not called, and another plan is needed."""
    plan = [action("one", "read", path="nowhere.txt"), action("two", "write", path="b.txt", content="x")]
    plan[1]["depends_on"] = ["one"]
    again = [action("three", "write", path="b.txt", content="x")]
    again[0]["depends_on"] = ["s2"]
    script = (object_call("update_plan", plan=plan), object_call("update_plan", plan=again), DONE)
    async with helm(tmp_path, *script, config=DECIDES) as (flight, server):
        state = await runs(flight)
        assert not (flight.sandbox / "b.txt").exists()
        assert [step.status for step in state.plans["g1"].steps[:2]] == [StepStatus.ABANDONED] * 2
        kinds = [one.failure for one in await flight.payloads(ev.FailureRecorded)]
        assert kinds == [FailureKind.INVALID_PARAMETERS, FailureKind.DEPENDENCY_NOT_MET]
        assert "step three needs s2, which was abandoned" in told(server, 2)


async def test_a_goal_before_is_reached_first_and_then_it_is_decided_anew(tmp_path: Path) -> None:
    """Checklist 23 and 24."""
    script = (
        object_call("push_sub_goal", description="make b.txt", acceptance_criteria=["b.txt is there"]),
        write("b.txt"),
        object_call("finish", summary="b is there", evidence=["s4"]),
        DONE,
    )
    async with helm(tmp_path, *script, config=DECIDES) as (flight, server):
        state = await runs(flight)
        assert [(goal.id, goal.status) for goal in state.goals.values()] == [
            ("g1", GoalStatus.ACHIEVED),
            ("g2", GoalStatus.ACHIEVED),
        ]
        assert state.goals["g2"].criteria == ("b.txt is there",)
        assert "It serves the goal: make a.txt" in told(server, 1)
        assert "b.txt is there" in told(server, 1)
        assert "s2 completed" in told(server, 3)


@pytest.mark.parametrize(
    ("evidence", "words"),
    [
        ([], "not shown to hold: a.txt is there"),
        (["s99"], "s99 is no step that was done"),
        (["s1"], "s1 is no step that was done"),
    ],
)
async def test_a_goal_is_not_finished_before_its_criteria_are_shown(
    tmp_path: Path, evidence: list[str], words: str
) -> None:
    """Checklist 25."""
    script = (
        object_call("finish", summary="done", evidence=evidence),
        write("a.txt"),
        object_call("finish", summary="done", evidence=["s2"]),
    )
    async with helm(tmp_path, *script, config=DECIDES) as (flight, server):
        state = await runs(flight, criteria=("a.txt is there",))
        assert state.goals["g1"].status is GoalStatus.ACHIEVED
        (failed,) = await flight.payloads(ev.FailureRecorded)
        assert failed.failure is FailureKind.GOAL_MANAGEMENT_ERROR
        assert words in failed.message
        assert words in told(server, 1)


async def test_a_plan_as_a_whole_has_to_show_the_criteria_too(tmp_path: Path) -> None:
    script = (
        plan_call(action("one", "write", path="a.txt", content="x")),
        object_call("finish", summary="seen", evidence=["s1"]),
    )
    async with helm(tmp_path, *script) as (flight, _):
        state = await runs(flight, criteria=("a.txt is there",))
        assert (state.goals["g1"].status, state.goals["g1"].reason) == (GoalStatus.ACHIEVED, "seen")


async def test_a_plan_may_leave_a_step_to_be_decided_later(tmp_path: Path) -> None:
    later = {"type": "THINK", "id": "two", "description": "say what is in it", "depends_on": ["one"]}
    script = (
        plan_call(action("one", "write", path="a.txt", content="x"), later),
        read("a.txt"),
        object_call("finish", summary="an x"),
    )
    async with helm(tmp_path, *script) as (flight, server):
        state = await runs(flight)
        assert state.goals["g1"].status is GoalStatus.ACHIEVED
        assert [step.command for step in state.plans["g1"].steps] == ["write", "read", ""]
        assert "say what is in it" in told(server, 1)


async def test_what_is_given_up_is_the_operators_or_fails(tmp_path: Path) -> None:
    async with helm(tmp_path, object_call("give_up", reason="no disk"), config=DECIDES) as (flight, server):
        state = await runs(flight)
        assert state.intervention is not None
        assert "no disk" in state.intervention.reason
        await flight.do(cmd.AbortGoal, goal="g1")
        assert len(server.requests) == 1
    async with helm(tmp_path / "2", object_call("give_up", reason="no disk"), config=DECIDES) as (flight, _):
        state = await runs(flight, ask=False)
        assert state.goals["g1"].status is GoalStatus.FAILED


async def test_a_question_waits_for_the_operator_whose_answer_is_in_the_next_prompt(tmp_path: Path) -> None:
    async with helm(tmp_path, object_call("ask_operator", question="which name?"), DONE, config=DECIDES) as (
        flight,
        server,
    ):
        state = await runs(flight)
        assert state.intervention is not None
        assert "which name?" in state.intervention.reason
        await flight.do(cmd.GiveResult, step=state.intervention.step, result="call it a.txt")
        state = await flight.until(lambda s: s.goals["g1"].status.terminal)
        assert state.goals["g1"].status is GoalStatus.ACHIEVED
        assert "call it a.txt" in told(server, 1)


async def test_the_operator_cuts_a_decision_off_and_what_was_said_is_kept(tmp_path: Path) -> None:
    hangs = Reply(text="I think that " * 20, after=6, then="hold")
    async with helm(tmp_path, hangs, config=DECIDES) as (flight, server):
        await flight.do(cmd.AdoptGoal, text="make a.txt")
        await flight.do(cmd.Run)
        await flight.until(lambda _state: server.held.is_set())
        await flight.do(cmd.Stop)
        await flight.until(lambda state: state.model_calls == 1)
        (said,) = await flight.payloads(ev.ModelCalled)
        assert said.partial
        assert not await flight.payloads(ev.DecisionMade)


async def test_a_model_that_knows_no_tools_decides_in_json(tmp_path: Path) -> None:
    script = (
        Reply(text='{"tool": "simple_coder__write", "input": {"path": "a.txt", "content": "x"}}'),
        Reply(text='Well: {"tool": "finish", "input": {"summary": "done"}}'),
    )
    async with helm(tmp_path, *script, config=DECIDES, model="a-local-model") as (flight, server):
        state = await runs(flight)
        assert state.goals["g1"].status is GoalStatus.ACHIEVED
        assert "tools" not in server.requests[0].body
        assert "simple_coder.write path content" in json.dumps(server.requests[0].body["system"])


async def test_the_style_is_checked_when_an_agent_is_made(tmp_path: Path) -> None:
    async with helm(tmp_path) as (flight, _):
        for config, words in (
            ({"style": "dream"}, "there is no style 'dream'; styles: plan, decide"),
            ({"style": "decide", "thinker": "procedural"}, "needs a model"),
        ):
            receipt = await flight.engine.submit(cmd.CreateAgent(agent="other", config=config))
            assert not receipt.ok
            assert words in receipt.message


async def test_the_loops_allowed_hold_a_thinker_that_never_acts(tmp_path: Path) -> None:
    async with helm(tmp_path, *[Reply(text="hm") for _ in range(5)], config=DECIDES) as (flight, server):
        await flight.do(cmd.AdoptGoal, text="make a.txt")
        await flight.do(cmd.Run, max_loops=3)
        state = await flight.until(lambda s: s.run is RunState.PAUSED)
        assert (state.run_reason, len(server.requests)) == ("MAX_LOOPS: 3 loops", 3)


async def test_a_call_that_was_made_just_now_is_not_made_again(tmp_path: Path) -> None:
    async with helm(tmp_path, write("a.txt"), write("a.txt"), DONE, config=DECIDES) as (flight, server):
        state = await runs(flight)
        assert (state.goals["g1"].status, state.actions) == (GoalStatus.ACHIEVED, 1)
        assert "made just now and succeeded" in told(server, 2)


async def test_who_has_done_all_that_recipes_know_of_is_told_to_finish(tmp_path: Path) -> None:
    script = (object_call("simple_coder__mkdir", path="drafts"), DONE)
    async with helm(tmp_path, *script, config=DECIDES) as (flight, server):
        await runs(flight, text="create a directory named drafts")
        assert "was done: call `finish`" in told(server, 1)
        assert "was done: call `finish`" not in told(server, 0)
