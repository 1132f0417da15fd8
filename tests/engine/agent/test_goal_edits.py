"""Goals changed while an agent pursues them: put below one another, moved, given up; and replayed."""

from __future__ import annotations

from engine_flight import Flight, python

from engine.agent.decisions.goals import SUBGOAL_LIMIT
from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.goals import GoalStatus
from engine.core.plan import StepStatus


async def _parent(flight: Flight) -> str:
    """A goal of two steps whose first is at the gate of the paused agent."""
    await flight.do(cmd.AdoptGoal, text="create a directory named 'x', and list the files")
    state = await flight.until(lambda s: s.step and s.action)
    return state.current_goal


async def test_a_goal_put_below_another_is_pursued_first_and_then_the_other_goes_on(flight: Flight) -> None:
    parent = await _parent(flight)
    receipt = await flight.do(cmd.PushGoal, goal=parent, text="create a directory named 'first'")
    assert receipt.message == "goal g2 comes first, then g1 resumes"
    state = await flight.until(lambda s: s.current_goal == "g2" and s.action)
    assert state.goals["g2"].parent == parent
    await flight.do(cmd.Run)
    await flight.until(lambda s: not s.open_goals)
    ended = await flight.payloads(ev.GoalEnded)
    assert [(one.goal, one.status) for one in ended] == [
        ("g2", GoalStatus.ACHIEVED),
        ("g1", GoalStatus.ACHIEVED),
    ]
    assert (flight.sandbox / "first").is_dir()


async def test_a_goal_does_not_end_before_the_goal_that_was_put_below_it(flight: Flight) -> None:
    """The last step of a goal runs while the operator puts another goal below it."""
    wait = "import time, pathlib\nwhile not pathlib.Path('go').exists(): time.sleep(.01)"
    (step,) = await flight.plan(python(wait))
    await flight.do(cmd.Run)
    await flight.until(lambda s: s.acting)
    await flight.do(cmd.PushGoal, goal="g1", text="create a directory named 'late'")
    (flight.sandbox / "go").touch()
    state = await flight.until(lambda s: not s.open_goals)
    found = state.find_step(step)
    assert found is not None
    assert found[1].status is StepStatus.COMPLETED
    assert [one.goal for one in await flight.payloads(ev.GoalEnded)] == ["g2", "g1"]


async def test_dropping_a_goal_below_another_leaves_the_other(flight: Flight) -> None:
    parent = await _parent(flight)
    await flight.do(cmd.PushGoal, goal=parent, text="create a directory named 'first'")
    await flight.until(lambda s: s.current_goal == "g2")
    await flight.do(cmd.DropGoal, goal="g2")
    await flight.do(cmd.Run)
    state = await flight.until(lambda s: not s.open_goals)
    assert state.goals["g2"].status is GoalStatus.DROPPED
    assert state.goals[parent].status is GoalStatus.ACHIEVED


async def test_a_goal_is_let_serve_another_and_taken_out_again(flight: Flight) -> None:
    parent = await _parent(flight)
    await flight.do(cmd.AdoptGoal, text="create a directory named 'y'")
    await flight.do(cmd.MoveGoal, goal="g2", parent=parent)
    state = await flight.until(lambda s: s.current_goal == "g2")
    assert state.goals["g2"].parent == parent
    await flight.do(cmd.MoveGoal, goal="g2")
    state = await flight.until(lambda s: s.current_goal == parent)
    assert state.goals["g2"].parent is None
    await flight.do(cmd.Run)
    await flight.until(lambda s: not s.open_goals)
    assert [one.goal for one in await flight.payloads(ev.GoalEnded)] == [parent, "g2"]


async def test_a_goal_cannot_serve_itself_nor_too_deep_nor_what_is_over(flight: Flight) -> None:
    parent = await _parent(flight)
    await flight.do(cmd.PushGoal, goal=parent, text="create a directory named 'first'")
    assert "cannot serve itself" in await flight.refused(cmd.MoveGoal, goal=parent, parent=parent)
    assert "cannot serve itself" in await flight.refused(cmd.MoveGoal, goal=parent, parent="g2")
    assert "there already" in await flight.refused(cmd.MoveGoal, goal="g2", parent=parent)
    assert "no goal 'g9'" in await flight.refused(cmd.PushGoal, goal="g9", text="x")
    for depth in range(2, SUBGOAL_LIMIT):
        await flight.do(cmd.PushGoal, goal=f"g{depth}", text="create a directory named 'z'")
    deep = f"more than {SUBGOAL_LIMIT} goals"
    assert deep in await flight.refused(cmd.PushGoal, goal=f"g{SUBGOAL_LIMIT}", text="list the files")
    await flight.do(cmd.AdoptGoal, text="list the files")
    assert deep in await flight.refused(cmd.MoveGoal, goal=parent, parent=f"g{SUBGOAL_LIMIT + 1}")
    await flight.do(cmd.DropGoal, goal="g2")
    assert "dropped already" in await flight.refused(cmd.MoveGoal, goal=f"g{SUBGOAL_LIMIT + 1}", parent="g2")


async def test_goals_of_a_program_are_its_own(flight: Flight) -> None:
    await flight.do(
        cmd.CreateAgent, agent="mind", agent_type="asl_agent", config={"program": "+!go <- .wait(never)."}
    )
    await flight.do(cmd.AdoptGoal, agent="mind", text="go")
    assert "program decides" in await flight.refused(cmd.PushGoal, agent="mind", goal="g1", text="go")
    assert "program decides" in await flight.refused(cmd.MoveGoal, agent="mind", goal="g1")
