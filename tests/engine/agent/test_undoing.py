"""Undo of the operator's own last change: what makes up for it is shown, recorded, and can be redone."""

from __future__ import annotations

from typing import Any

import pytest
from engine_flight import Flight, act

from engine.agent.steering.undo import UndoError
from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.agents import RunState
from engine.core.budgets import SpendingLimits
from engine.core.plan import StepStatus

WRITES = (act("write", path="a", content="1"), act("write", path="b", content="2"), act("ls", path="."))


async def undo(flight: Flight, *, again: bool = False) -> str:
    """Undo, and say what was offered."""
    offer = await flight.engine.time_travel.undo_offer(flight.agent, again=again)
    receipt = await flight.engine.submit(offer.as_command(flight.agent), operator="anna")
    assert receipt.ok, receipt.message
    return offer.words


def told(state: Any) -> list[tuple[str, str, str]]:
    return [(step.id, step.description, step.status.value) for step in state.plans["g1"].steps]


async def test_changes_of_a_plan_are_undone_one_after_the_other_and_redone(flight: Flight) -> None:
    first, second, third = await flight.plan(*WRITES)
    states = [told(await flight.state())]
    for kind, fields in (
        (cmd.InsertStep, {"before": second, "command": "mkdir", "args": {"path": "made"}}),
        (cmd.DeleteStep, {"step": third}),
        (cmd.MoveStep, {"step": second, "by": -1}),
        (cmd.SkipStep, {"step": first}),
        (cmd.EditStep, {"step": second, "description": "another"}),
    ):
        await flight.do(kind, **fields)
        states.append(told(await flight.state()))
    assert await undo(flight) == f"step {second} is again: write [planned]"
    assert told(await flight.state()) == states[-2]
    await undo(flight, again=True)
    assert told(await flight.state()) == states[-1]
    for state in reversed(states[:-1]):
        await undo(flight)
        assert told(await flight.state()) == state
    await flight.reopen()
    await undo(flight)
    assert await undo(flight) == "drop goal g1: list the files"
    with pytest.raises(UndoError, match="no change of an operator's"):
        await undo(flight)


async def test_an_undone_edit_shows_the_call_before_and_after(flight: Flight) -> None:
    step = (await flight.plan(*WRITES))[1]
    edited = {"path": "b", "content": "two\nlines"}
    await flight.do(cmd.EditStep, step=step, command="write", args=edited)
    words = (await flight.engine.time_travel.undo_offer(flight.agent)).words
    assert words == f"step {step}: write content=two lines path=b → write content=2 path=b"


async def test_beliefs_goals_breakpoints_and_runs(flight: Flight) -> None:
    steps = await flight.plan(*WRITES)
    await flight.do(cmd.Believe, key="door", value="open")
    await flight.do(cmd.Believe, key="door", value="shut")
    await flight.do(cmd.SetBreakpoint, step=steps[1])
    await flight.do(cmd.SetBudget, actions=5, seconds=9)
    await flight.do(cmd.SetBudget, goal="g1", usd=1)
    await flight.do(cmd.SetBudget, usd=2, keep=True, lifted=("actions",))
    assert await undo(flight) == "the budget as before: 5 actions, 9 s"
    assert await undo(flight) == "no budget of g1 again"
    state = await flight.state()
    assert (state.budget, state.goal_budgets) == (SpendingLimits(actions=5, seconds=9), {})
    assert await undo(flight) == "no budget of its own again"
    await flight.do(cmd.ChangeGoal, goal="g1", priority=7)
    assert await undo(flight) == "goal g1 is again: list the files (priority 1)"
    assert await undo(flight) == f"clear the breakpoint on {steps[1]}"
    assert await undo(flight) == "believe door = open again"
    assert (await flight.state()).beliefs["door"].value == "open"
    assert await undo(flight) == "no longer believe door"
    state = await flight.state()
    assert ("door" in state.beliefs, state.breakpoints, state.goals["g1"].priority) == (False, {}, 1)
    (last, *_) = [event for event in reversed(await flight.events()) if event.kind == "belief.removed"]
    assert last.actor == "operator:anna"


async def test_what_has_run_since_is_not_undone_but_named(flight: Flight) -> None:
    first, *_ = await flight.plan(*WRITES)
    await flight.do(cmd.EditStep, step=first, args={"path": "other", "content": "1"})
    await flight.do(cmd.Step)
    await flight.until(lambda s: s.actions == 1 and not s.acting)
    with pytest.raises(UndoError, match=r"the action has run; rewind \d+ takes back everything since"):
        await undo(flight)
    assert (await flight.state()).find_step(first)[1].status is StepStatus.COMPLETED  # type: ignore[index]


async def test_a_rewind_is_undone_by_a_rewind_and_a_refused_command_is_passed_over(flight: Flight) -> None:
    await flight.plan(*WRITES)
    version = (await flight.state()).version
    await flight.do(cmd.Run)
    await flight.until(lambda s: not s.open_goals)
    (flight.sandbox / "mine").write_text("by hand")
    await flight.do(cmd.Rewind, to=version)
    assert not (flight.sandbox / "a").exists()
    await flight.refused(cmd.DeleteStep, step="s99")
    offer = await flight.engine.time_travel.undo_offer(flight.agent)
    assert isinstance(offer.command, cmd.Rewind)
    assert (await flight.engine.submit(offer.as_command(flight.agent))).ok
    assert (flight.sandbox / "mine").read_text() == "by hand"
    state = await flight.state()
    assert not state.open_goals
    assert state.run is RunState.PAUSED
    assert len(await flight.payloads(ev.Rewound)) == 2


async def test_breakpoints_budgets_and_rules_of_other_rooms(flight: Flight) -> None:
    await flight.plan(*WRITES)
    before = await flight.state()
    await flight.do(cmd.SetBreak, line="tool write")
    (point,) = (await flight.state()).points
    await flight.do(cmd.ChangeBreak, breakpoint=point, cleared=True)
    await flight.do(cmd.SetBudget, tokens=100)
    await flight.do(cmd.SetBudget, tokens=200, goal="g1")
    await flight.do(cmd.GrantRule, rule="simple_coder.ls")
    for words in (
        "revoke ",
        "no budget of g1",
        "no budget of its own",
        "break again at tool write",
        "clear ",
    ):
        assert (await undo(flight)).startswith(words)
    after = await flight.state()
    assert (after.points, after.budget, after.goal_budgets) == ({}, None, {})
    assert after.approvals.grants == before.approvals.grants
