"""The operator's hands on the plan: before acting, at the gate, while a retry waits, and refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from engine_flight import Flight, HeldClock, act, python

from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.goals import GoalStatus
from engine.core.plan import StepStatus

THREE = [act("write", path=name, content=name) for name in "abc"]


async def _finish(flight: Flight) -> list[str]:
    await flight.do(cmd.Run)
    await flight.until(lambda s: not s.open_goals)
    return sorted(path.name for path in flight.sandbox.iterdir() if not path.name.startswith("."))


async def test_an_edited_step_at_the_gate_never_starts_as_it_was(flight: Flight) -> None:
    """Behaviour 25."""
    steps = await flight.plan(*THREE)
    old = (await flight.at_gate(steps[0])).action
    assert old is not None
    await flight.do(cmd.EditStep, step=steps[0], args={"path": "changed", "content": "new"})
    assert await _finish(flight) == ["b", "c", "changed"]
    withdrawn = [said.action for said in await flight.payloads(ev.ActionWithdrawn)]
    assert old.id in withdrawn
    assert old.id not in [said.action for said in await flight.payloads(ev.ActionStarted)]
    plan = (await flight.state()).plans["g1"]
    assert plan.steps[0].provenance.by == "operator"
    revised = [event for event in await flight.events() if event.kind == "plan.revised"]
    assert revised[-1].actor == "operator:operator"


async def test_insert_delete_move_and_skip_change_what_runs_and_in_which_order(flight: Flight) -> None:
    first, second, third = await flight.plan(*THREE)
    await flight.at_gate(first)
    await flight.do(cmd.InsertStep, before=second, command="write", args={"path": "i", "content": ""})
    await flight.do(cmd.InsertStep, command="write", args={"path": "z", "content": ""})
    await flight.do(cmd.DeleteStep, step=first)
    await flight.do(cmd.MoveStep, step=third, by=-1)
    await flight.do(cmd.SkipStep, step=second, reason="not now")
    plan = (await flight.state()).plan
    assert plan is not None
    inserted, last = plan.steps[0].id, plan.steps[-1].id
    assert plan.steps[0].provenance.by == "operator"
    assert await _finish(flight) == ["c", "i", "z"]
    assert await flight.started() == [inserted, third, last]
    assert (await flight.state()).find_step(second)[1].summary == "not now"  # type: ignore[index]


async def test_a_given_result_settles_the_step_and_is_believed(flight: Flight) -> None:
    steps = await flight.plan(*THREE)
    await flight.at_gate(steps[0])
    await flight.do(cmd.GiveResult, step=steps[0], result="done by hand")
    assert await _finish(flight) == ["b", "c"]
    state = await flight.state()
    assert state.beliefs[f"result.{steps[0]}"].value == "done by hand"
    assert state.plans["g1"].step(steps[0]).status is StepStatus.COMPLETED  # type: ignore[union-attr]


async def test_a_plan_is_replaced_by_clauses_and_what_is_done_stays(flight: Flight) -> None:
    steps = await flight.plan(*THREE)
    await flight.at_gate(steps[0])
    await flight.do(cmd.Step)
    await flight.at_gate(steps[1])
    await flight.do(cmd.ReplacePlan, goal="g1", plan="create a directory named 'made', then list the files")
    assert await _finish(flight) == ["a", "made"]
    state = await flight.state()
    assert state.plans["g1"].steps[0].id == steps[0]
    assert state.goals["g2"].parent == "g1"


async def test_a_plan_is_replaced_by_json_while_a_step_stands_at_the_gate(flight: Flight) -> None:
    steps = await flight.plan(*THREE)
    await flight.at_gate(steps[0])
    new = json.dumps([act("write", path="only", content="")])
    await flight.do(cmd.ReplacePlan, goal="g1", plan=new)
    assert await _finish(flight) == ["only"]


@pytest.fixture
async def retrying(tmp_path: Path, open_flight: Callable[..., Any]) -> tuple[Flight, list[str]]:
    """An agent whose first step failed and waits to be tried again."""
    flight = await open_flight(tmp_path, HeldClock())
    steps = await flight.plan(python("raise SystemExit(3)"), act("write", path="end", content=""))
    await flight.do(cmd.Run)
    await flight.until(lambda s: s.retry and s.action)
    return flight, steps


async def test_an_edit_ends_the_wait_of_a_retry_and_the_new_action_runs(retrying: Any) -> None:
    flight, steps = retrying
    await flight.do(cmd.EditStep, step=steps[0], args={"command": ["python", "-c", "print(1)"]})
    state = await flight.until(lambda s: not s.open_goals)
    assert state.goals["g1"].status is GoalStatus.ACHIEVED
    assert await flight.started() == [steps[0], *steps]
    assert not state.tried


@pytest.mark.parametrize(
    ("command", "fields"),
    [
        (cmd.SkipStep, {}),
        (cmd.DeleteStep, {}),
        (cmd.GiveResult, {"result": "fine"}),
        (cmd.ReplacePlan, {"goal": "g1", "plan": json.dumps([act("write", path="end", content="")])}),
    ],
)
async def test_settling_a_step_ends_the_wait_of_its_retry(retrying: Any, command: Any, fields: Any) -> None:
    flight, steps = retrying
    await flight.do(command, **({"step": steps[0]} if "goal" not in fields else {}), **fields)
    await flight.until(lambda s: s.goals["g1"].status is GoalStatus.ACHIEVED)
    assert (flight.sandbox / "end").exists()
    assert (await flight.started()).count(steps[0]) == 1


async def test_retry_now_ends_the_wait(retrying: Any) -> None:
    flight, steps = retrying
    await flight.do(cmd.RetryStep, step=steps[0])
    state = await flight.until(lambda s: s.actions == 2 and s.retry)
    assert state.retry.attempt == 2


async def test_the_operators_call_does_not_wait_for_a_retry_and_leaves_it_waiting(retrying: Any) -> None:
    flight, steps = retrying
    await flight.do(cmd.CallTool, command="ls")
    await flight.until(lambda s: s.operator_actions == 1 and not s.acting)
    assert (await flight.state()).retry is not None
    assert await flight.started() == [steps[0], ""]


async def test_what_has_run_or_runs_cannot_be_changed(flight: Flight) -> None:
    waiting = python("import pathlib, time\nwhile not pathlib.Path('go').exists(): time.sleep(0.01)")
    done, running = await flight.plan(act("write", path="a", content=""), waiting)
    await flight.do(cmd.Run)
    await flight.until(lambda s: s.acting and s.action.step == running)
    assert "what is done cannot be changed" in await flight.refused(cmd.SkipStep, step=done)
    for command, more in (
        (cmd.EditStep, {"description": "x"}),
        (cmd.DeleteStep, {}),
        (cmd.MoveStep, {"by": -1}),
        (cmd.GiveResult, {"result": "x"}),
        (cmd.RetryStep, {}),
        (cmd.InsertStep, None),
    ):
        fields = {"before": running, "command": "ls"} if more is None else {"step": running, **more}
        assert "is running" in await flight.refused(command, **fields)
    assert "running" in await flight.refused(cmd.ReplacePlan, goal="g1", plan="list the files")
    assert "running" in await flight.refused(cmd.DropGoal, goal="g1")
    assert "running" in await flight.refused(cmd.DeleteAgent)
    assert "running" in await flight.refused(cmd.CallTool, command="ls")
    assert "running" in await flight.refused(cmd.ChangeGoal, goal="g1", text="go up one directory")
    (flight.sandbox / "go").touch()
    await flight.until(lambda s: not s.open_goals)
    assert len(await flight.payloads(ev.CommandRefused)) == 12


async def test_unknown_ids_and_invalid_arguments_are_refused_in_words(flight: Flight) -> None:
    """Behaviour 25."""
    first, second, _third = await flight.plan(*THREE)
    await flight.at_gate(first)
    before = (await flight.state()).plans
    assert await flight.refused(cmd.SkipStep, step="s99") == "there is no step 's99'"
    assert "open goals: g1" in await flight.refused(cmd.DropGoal, goal="g9")
    assert "Did you mean 'write'?" in await flight.refused(cmd.EditStep, step=first, command="writ")
    assert "'content'" in await flight.refused(cmd.EditStep, step=first, args={"path": "x"})
    assert "has no argument 'pth'" in await flight.refused(
        cmd.EditStep, step=first, args={"pth": "x", "content": "", "path": "y"}
    )
    assert "There is no tool 'coder'" in await flight.refused(cmd.EditStep, step=first, tool="coder")
    assert "no command 'frob'" in await flight.refused(cmd.InsertStep, command="frob")
    assert "must be a string" in await flight.refused(cmd.CallTool, command="read", args={"path": 3})
    assert "has not failed" in await flight.refused(cmd.RetryStep, step=second)
    assert "nothing to hand back" in await flight.refused(cmd.HandBack)
    assert "is not believed" in await flight.refused(cmd.Forget, key="nothing")
    assert (await flight.do(cmd.MoveStep, step=first, by=-1)).message == f"step {first} is first already"
    assert (await flight.state()).plans == before


async def test_a_step_that_others_need_cannot_be_deleted_but_skipped(flight: Flight) -> None:
    first = {**THREE[0], "id": "one"}
    second = {**THREE[1], "id": "two", "depends_on": ["one"]}
    one, two = await flight.plan(first, second)
    assert f"needed by {two}" in await flight.refused(cmd.DeleteStep, step=one)
    await flight.do(cmd.SkipStep, step=one)
    assert await _finish(flight) == ["b"]


async def test_steps_run_after_what_they_depend_on_wherever_they_stand(flight: Flight) -> None:
    late = {**THREE[0], "id": "late", "depends_on": ["early"]}
    early = {**THREE[1], "id": "early"}
    steps = await flight.plan(late, early)
    await _finish(flight)
    assert await flight.started() == [steps[1], steps[0]]


async def test_a_step_that_called_no_tool_can_be_made_to_call_one(flight: Flight) -> None:
    await flight.plan(THREE[0])
    await flight.do(cmd.ReplacePlan, goal="g1", plan="frobnicate the widgets")
    step = (await flight.state()).plan.steps[-1].id  # type: ignore[union-attr]
    await flight.do(cmd.EditStep, step=step, command="write", args={"path": "w", "content": ""})
    assert await _finish(flight) == ["w"]


async def test_a_reworded_goal_is_planned_anew_and_a_more_urgent_one_goes_first(flight: Flight) -> None:
    """Behaviour 18."""
    steps = await flight.plan(*THREE)
    await flight.at_gate(steps[0])
    await flight.do(cmd.ChangeGoal, goal="g1", text="create a directory named 'low'")
    await flight.do(cmd.AdoptGoal, text="create a directory named 'high'", priority=9)
    await flight.do(cmd.AdoptGoal, text="create a directory named 'same'", priority=9)
    assert await _finish(flight) == ["high", "low", "same"]
    ended = [said.goal for said in await flight.payloads(ev.GoalEnded)]
    assert ended == ["g2", "g3", "g1"]


async def test_the_text_of_a_goal_keeps_every_character(flight: Flight) -> None:
    text = "write 'two  blanks\tand a tab' to notes.txt"
    await flight.do(cmd.AdoptGoal, text=text)
    assert (await flight.state()).goals["g1"].text == text
    await _finish(flight)
    assert (flight.sandbox / "notes.txt").read_text() == "two  blanks\tand a tab\n"
    assert "no text" in await flight.refused(cmd.AdoptGoal, text=" \n ")


async def test_inserting_stops_at_the_limit_of_a_plan(flight: Flight) -> None:
    await flight.plan(*[act("ls")] * 500)
    assert "at most 500" in await flight.refused(cmd.InsertStep, command="ls")
