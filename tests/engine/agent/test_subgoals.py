"""Goals that no recipe covers, recipes added while the agent waits, and goals within goals."""

from __future__ import annotations

import asyncio

from engine_flight import PATIENCE_S, Flight

from engine.agent.decisions.goals import SUBGOAL_LIMIT
from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.agents import Mode
from engine.core.goals import GoalStatus
from engine.core.plan import StepStatus
from engine.core.recovery import FailureKind

POLISH = """
[[recipe]]
name = "polish"
summary = "Polish a thing."
example = "polish the brass"
says = ["polish the {thing:name}"]
missing = { thing = "what to polish" }

[[recipe.steps]]
command = "write"
args = { path = "{thing}.txt", content = "shiny" }
description = "Polish {thing}"
"""

CLEAN = """
[[recipe]]
name = "clean-up"
summary = "Clean everything."
example = "clean the ship"
says = ["clean the {thing:name}"]
missing = { thing = "what to clean" }

[[recipe.steps]]
op = "achieve"
args = { goal = "%s" }
description = "Clean {thing}"

[[recipe.steps]]
command = "write"
args = { path = "cleaned.txt", content = "" }
description = "Note it"
"""


async def _add_recipe(flight: Flight, name: str, text: str) -> None:
    """Put a recipe file into the workspace and wait until the library has it."""
    before = len(flight.engine.library.recipes)
    (flight.workspace / "recipes").mkdir(exist_ok=True)
    (flight.workspace / "recipes" / name).write_text(text)
    async with asyncio.timeout(PATIENCE_S):
        while len(flight.engine.library.recipes) == before:
            assert not flight.engine.health.library
            await asyncio.sleep(0.02)


async def test_a_clause_that_no_recipe_covers_is_named_and_the_operator_is_asked(flight: Flight) -> None:
    await flight.do(cmd.AdoptGoal, text="create a directory named 'x', and polish the brass")
    state = await flight.until(lambda s: s.intervention)
    assert (state.intervention.kind, state.intervention.step) == (FailureKind.GOAL_PARSE_ERROR, "")
    (rejected,) = await flight.payloads(ev.PlanRejected)
    assert len(rejected.problems) == 1
    assert rejected.problems[0].startswith("clause 2 “polish the brass”: ")
    assert "nearest: " in rejected.problems[0]
    assert not await flight.started()


async def test_a_recipe_added_meanwhile_is_used_when_the_turn_is_handed_back(flight: Flight) -> None:
    await flight.do(cmd.AdoptGoal, text="polish the brass")
    await flight.until(lambda s: s.intervention)
    await _add_recipe(flight, "polish.toml", POLISH)
    await flight.do(cmd.HandBack)
    await flight.do(cmd.Run)
    state = await flight.until(lambda s: not s.open_goals)
    assert (flight.sandbox / "brass.txt").read_text() == "shiny"
    assert state.plans["g1"].steps[0].provenance.recipe == "recipes/polish.toml:polish"
    assert all(failure.resolved for failure in state.failures)


async def test_a_sub_goal_completes_the_step_that_waits_for_it(flight: Flight) -> None:
    """Behaviour 20."""
    await _add_recipe(flight, "polish.toml", POLISH)
    await _add_recipe(flight, "clean.toml", CLEAN % "polish the {thing}")
    await flight.do(cmd.AdoptGoal, text="clean the deck")
    await flight.do(cmd.Run)
    state = await flight.until(lambda s: not s.open_goals)
    parent, child = state.goals["g1"], state.goals["g2"]
    assert (parent.status, child.status) == (GoalStatus.ACHIEVED, GoalStatus.ACHIEVED)
    assert (child.parent, child.parent_step) == ("g1", state.plans["g1"].steps[0].id)
    assert state.plans["g1"].steps[0].summary == "goal g2 achieved"
    assert sorted(path.name for path in flight.sandbox.iterdir()) == ["cleaned.txt", "deck.txt"]


async def test_one_step_takes_a_sub_goal_and_another_its_first_action(flight: Flight) -> None:
    await _add_recipe(flight, "polish.toml", POLISH)
    await _add_recipe(flight, "clean.toml", CLEAN % "polish the {thing}")
    await flight.do(cmd.AdoptGoal, text="clean the deck")
    await flight.until(lambda s: s.plan)
    assert len((await flight.state()).goals) == 1
    await flight.do(cmd.Step)
    state = await flight.until(lambda s: len(s.goals) == 2 and s.action and not s.grants)
    assert (state.actions, state.mode) == (0, Mode.PAUSED)
    await flight.do(cmd.Step)
    await flight.until(lambda s: s.actions == 1 and not s.acting)
    assert (await flight.state()).mode is Mode.PAUSED


async def test_a_sub_goal_that_fails_reaches_the_operator_or_fails_the_whole(flight: Flight) -> None:
    """Behaviour 20."""
    await _add_recipe(flight, "clean.toml", CLEAN % "read {thing}.txt")
    await flight.do(cmd.AdoptGoal, text="clean the deck")
    await flight.do(cmd.Run)
    state = await flight.until(lambda s: s.intervention)
    assert state.intervention.goal == "g2"
    assert state.plans["g1"].steps[0].status is StepStatus.RUNNING
    assert "waits for its sub-goal" in await flight.refused(cmd.SkipStep, step=state.plans["g1"].steps[0].id)
    assert "sub-goal" in await flight.refused(cmd.ReplacePlan, goal="g1", plan="list the files")
    await flight.do(cmd.AbortGoal, goal="g2", reason="enough")
    state = await flight.until(lambda s: not s.open_goals)
    assert {goal.status for goal in state.goals.values()} == {GoalStatus.FAILED}

    await flight.do(cmd.AdoptGoal, text="clean the mast")
    await flight.do(cmd.Run, ask=False)
    state = await flight.until(lambda s: not s.open_goals)
    assert {goal.status for goal in state.goals.values()} == {GoalStatus.FAILED}
    assert "not found" in state.goals["g3"].reason or "INVALID_PARAMETERS" in state.goals["g3"].reason


async def test_recipes_that_achieve_one_another_end_at_the_operator(flight: Flight) -> None:
    await _add_recipe(flight, "clean.toml", CLEAN % "clean the {thing}")
    await flight.do(cmd.AdoptGoal, text="clean the deck")
    await flight.do(cmd.Run)
    state = await flight.until(lambda s: s.intervention)
    assert len(state.goals) == SUBGOAL_LIMIT
    assert state.intervention.kind == FailureKind.GOAL_MANAGEMENT_ERROR
    assert "circle" in state.intervention.reason
    await flight.do(cmd.DropGoal, goal="g1")
    assert not (await flight.state()).open_goals


async def test_max_loops_counts_sub_goals_too(flight: Flight) -> None:
    await _add_recipe(flight, "clean.toml", CLEAN % "clean the {thing}")
    await flight.do(cmd.AdoptGoal, text="clean the deck")
    await flight.do(cmd.Run, max_loops=5)
    state = await flight.until(lambda s: s.run_reason.startswith("MAX_LOOPS"))
    assert len(state.goals) == 6
