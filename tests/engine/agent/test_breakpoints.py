"""Breakpoints of live agents: held before the next effect, kept across ends, the same in a replay."""

from __future__ import annotations

import asyncio
import signal
import sys
from asyncio.subprocess import PIPE
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from engine_flight import Flight, act, journal_holds_together
from model_flight import created, model_flight, planned

from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.agents import Mode, RunState
from engine.core.breakpoints import BREAKPOINTS_KEPT
from engine.core.goals import GoalStatus
from engine.core.ports import SystemClock
from engine.core.state import AgentState
from tests.engine.agent.reasoner.reasoner_flight import ReasonerFlight
from tests.messages_server import plan_call


def held(ident: str) -> Any:
    return lambda s: s.run is RunState.PAUSED and s.run_reason.startswith(f"breakpoint {ident}:")


async def add(flight: Flight, line: str) -> str:
    receipt = await flight.do(cmd.SetBreak, line=line)
    return receipt.message.split()[1].rstrip(":")


async def test_it_stands_before_the_next_effect_with_settled_arguments_and_goes_on_once(
    flight: Flight,
) -> None:
    writes = [act("write", path=f"f{n}", content="x") for n in range(4)]
    steps = await flight.plan(*writes[:2], act("write", path="made.toml", content="x"), *writes[2:])
    await add(flight, "belief tests_green true->false")
    await add(flight, "tool write path=*.toml")
    await add(flight, "result 'Wrote*f1' once")
    every = await add(flight, "every 5")
    await flight.do(cmd.Believe, key="tests_green", value=True)
    await flight.do(cmd.Run)

    state = await flight.until(held("b3"))
    assert await flight.started() == steps[:2]
    assert state.points["b3"].enabled is False
    await flight.do(cmd.Run)
    state = await flight.until(held("b2"))
    assert not (flight.sandbox / "made.toml").exists()
    assert (state.action.args["path"], state.action.started) == ("made.toml", False)

    # What the operator does counts as well, and holds before anything else.
    await flight.do(cmd.Believe, key="tests_green", value=False)
    await flight.until(held("b1"))
    assert await flight.started() == steps[:2]
    await flight.reopen()
    state = await flight.state()
    assert {ident: (state.came[ident], one.stopped) for ident, one in state.points.items()} == {
        "b1": (1, 1),
        "b2": (1, 1),
        "b3": (1, 1),
        "b4": (2, 0),
    }
    # The session's end has withdrawn the action, and what is requested now is another.
    await flight.do(cmd.Run)
    await flight.until(held("b2"))
    await flight.do(cmd.Run)
    state = await flight.until(held(every))
    assert await flight.started() == steps
    await flight.do(cmd.Run)
    await flight.until(lambda s: s.goals["g1"].status is GoalStatus.ACHIEVED)

    told = await flight.engine.dry_run("pilot", ["result 'Wrote*f1' once", "every 5", "belief tests_green"])
    points = (await flight.state()).points
    assert [one.stopped for one in told.results] == [points["b3"].stopped, points["b4"].stopped, 2]
    assert told.results[1].stops[0].event == points["b4"].last
    newest = await flight.engine.dry_run("pilot", ["goal ended", "every 5"], 8)
    assert [(one.matched, one.stopped) for one in newest.results] == [(1, 1), (1, 0)]


async def test_single_steps_pass_what_the_operator_has_in_view_and_the_rest_holds(flight: Flight) -> None:
    steps = await flight.plan(*[act("write", path=f"{n}.toml", content="") for n in range(3)])
    await add(flight, "tool write path=*.toml")
    await flight.at_gate(steps[0])
    await flight.do(cmd.Step)
    state = await flight.until(lambda s: s.actions == 1 and s.action and s.action.step == steps[1])
    assert (state.came["b1"], state.points["b1"].stopped) == (1, 0)
    await flight.do(cmd.ChangeBreak, breakpoint="b1", enabled=False)
    await flight.do(cmd.Run)
    await flight.until(lambda s: not s.open_goals)
    assert not await flight.payloads(ev.BreakpointHit)


async def test_breakpoints_are_managed_in_one_list_and_limited(flight: Flight) -> None:
    steps = await flight.plan(act("write", path="a", content=""))
    await flight.do(cmd.SetBreakpoint, step=steps[0])
    await add(flight, "error *")
    assert "already" in (await flight.do(cmd.SetBreak, line="error  *")).message
    assert "there or not" in await flight.refused(cmd.ChangeBreak, breakpoint=steps[0], enabled=False)
    assert "b1, " in await flight.refused(cmd.ChangeBreak, breakpoint="b9")
    assert "kinds: step" in await flight.refused(cmd.SetBreak, line="colour red")
    assert "intentions" in await flight.refused(cmd.SetBreak, line="intention 1")
    await flight.do(cmd.ChangeBreak, breakpoint=steps[0], cleared=True)
    await flight.do(cmd.ChangeBreak, breakpoint="b1", cleared=True)
    state = await flight.state()
    assert (state.breakpoints, state.points, state.watched) == ({}, {}, {})
    for number in range(BREAKPOINTS_KEPT):
        await add(flight, f"belief k{number}")
    assert "clear one" in await flight.refused(cmd.SetBreak, line="belief more")


async def test_spend_and_plan_choice_hold_an_agent_with_a_model_before_it_acts(tmp_path: Path) -> None:
    plan = [planned("write", path="a", content="x"), planned("write", path="b", content="x")]
    async with model_flight(tmp_path, plan_call(*plan)) as (flight, _server):
        await created(flight)
        await add(flight, "spend g1 1 tokens")
        await add(flight, "plan adopted")
        await flight.do(cmd.Run)
        await flight.do(cmd.AdoptGoal, text="write two files")
        state = await flight.until(held("b1"))
        assert state.run_reason.endswith("and 1 more")
        assert (state.actions, len(state.plans["g1"].steps)) == (0, 2)
        assert {one.stopped for one in state.points.values()} == {1}
        await flight.until_durable("pilot")
        told = await flight.engine.dry_run("pilot", ["spend g1 1 tokens", "plan adopted"])
        assert [one.stopped for one in told.results] == [1, 1]


# ------------------------------------------------------------------ stepping


RECIPES = """
[[recipe]]
name = "deck"
summary = "Clean the deck."
example = "clean the deck"
says = ["clean the {thing:name}"]
missing = { thing = "what to clean" }

[[recipe.steps]]
command = "write"
args = { path = "first", content = "" }
description = "Begin"

[[recipe.steps]]
op = "achieve"
args = { goal = "create a directory named '{thing}x' and create a directory named '{thing}y'" }
description = "Both"

[[recipe.steps]]
command = "run"
args = { command = ["python", "-c", "raise SystemExit(3)"] }
description = "Fails"

[[recipe.steps]]
command = "write"
args = { path = "last", content = "" }
description = "End"
"""


@pytest.fixture
async def deck(tmp_path: Path, open_flight: Callable[..., Any]) -> Flight:
    """A flight whose goals have a second step that is a goal of two actions, and a third that fails."""
    (tmp_path / "recipes").mkdir()
    (tmp_path / "recipes" / "deck.toml").write_text(RECIPES)
    made: Flight = await open_flight(tmp_path)
    return made


async def clean(flight: Flight, what: str) -> list[str]:
    """Have something cleaned; the ids of the steps."""
    await flight.do(cmd.AdoptGoal, text=f"clean the {what}")
    state = await flight.until(lambda s: s.open_goals and s.open_goals[-1].id in s.plans and s.action)
    return [step.id for step in state.plans[state.open_goals[-1].id].steps]


def rests(state: AgentState) -> bool:
    return state.run is RunState.PAUSED and not state.grants and not state.acting


async def test_into_over_and_out_of_a_sub_goal(deck: Flight) -> None:
    steps = await clean(deck, "deck")
    await deck.do(cmd.Step)
    await deck.until(lambda s: s.actions == 1 and rests(s))
    await deck.do(cmd.Step)  # into
    state = await deck.until(lambda s: len(s.goals) == 2 and s.action and rests(s))
    assert (state.actions, state.current_goal) == (1, "g2")
    await deck.do(cmd.Step)
    await deck.until(lambda s: s.actions == 2 and rests(s))
    assert "g2" in (await deck.do(cmd.Step, scope="out")).message
    state = await deck.until(lambda s: s.goals["g2"].status is GoalStatus.ACHIEVED and rests(s) and s.action)
    assert (state.actions, state.action.step) == (3, steps[2])
    await deck.do(cmd.SkipStep, step=steps[2])
    await deck.do(cmd.Step, scope="out")
    await deck.until(lambda s: not s.open_goals)

    steps = await clean(deck, "hull")
    await deck.do(cmd.Step, scope="over")
    await deck.until(lambda s: s.actions == 5 and rests(s))
    assert "all below" in (await deck.do(cmd.Step, scope="over")).message
    state = await deck.until(lambda s: s.actions == 7 and rests(s) and s.action)
    assert (state.action.step, state.mode) == (steps[2], Mode.PAUSED)


async def test_a_stride_ends_at_a_breakpoint_inside_and_with_a_failure(deck: Flight) -> None:
    await clean(deck, "deck")
    await add(deck, "tool * path=decky")
    await deck.do(cmd.Step)
    await deck.until(lambda s: s.actions == 1 and rests(s))
    await deck.do(cmd.Step, scope="over")
    state = await deck.until(held("b1"))
    assert (state.actions, state.grants) == (2, 0)
    await deck.do(cmd.Step, scope="out")
    await deck.until(lambda s: s.goals["g2"].status is GoalStatus.ACHIEVED and rests(s))
    await deck.do(cmd.Step, scope="out")
    await deck.until(lambda s: s.failures and rests(s))
    assert not (deck.sandbox / "last").exists()


async def test_until_a_goal_ends_holds_behind_it(deck: Flight) -> None:
    await clean(deck, "deck")
    for _ in range(2):
        await deck.do(cmd.Step)
        await deck.until(rests)
    await deck.until(lambda s: "g2" in s.goals)
    await deck.do(cmd.Run, until="g2")
    state = await deck.until(lambda s: s.run_reason == "goal g2 is achieved")
    assert (state.actions, state.run) == (3, RunState.PAUSED)


# ------------------------------------------------------------------ kill -9

LIFE = """
import asyncio, json, sys
from pathlib import Path
from engine.core import commands as cmd
from engine.api.engine import Engine

async def live(workspace):
    engine = await Engine.open(workspace)
    async def do(kind, **fields):
        assert (await engine.submit(kind(agent="pilot", **fields))).ok
    await do(cmd.CreateAgent)
    await do(cmd.SetBreak, line="belief run.last.return_code 0->3 once")
    await do(cmd.SetBreak, line="every 2 when actions > 1")
    await do(cmd.AdoptGoal, text="create a directory named 'a' and create a directory named 'b' and create a "
             "directory named 'c' and create a directory named 'd'")
    await do(cmd.Run)
    async for event in engine.events(0, stream="pilot"):  # durable ones: what is only appended dies with it
        if event.kind == "agent.paused" and '"breakpoint":"b2"' in event.body:
            break
    print("held", flush=True)
    await asyncio.sleep(60)

asyncio.run(live(Path(sys.argv[1])))
"""


async def test_breakpoints_and_the_hold_outlive_kill_9(tmp_path: Path) -> None:
    life = await asyncio.create_subprocess_exec(sys.executable, "-c", LIFE, str(tmp_path), stdout=PIPE)
    assert life.stdout is not None
    assert await life.stdout.readline() == b"held\n"
    life.send_signal(signal.SIGKILL)
    await life.wait()
    flight = Flight(tmp_path, SystemClock())
    await flight.open()
    state = await flight.state()
    assert list(state.points) == ["b1", "b2"]
    assert (state.points["b2"].stopped, state.actions) == (1, 3)
    assert state.run_reason.startswith("breakpoint b2: 2 actions")
    await flight.do(cmd.Run)
    await flight.until(lambda s: not s.open_goals)
    await flight.engine.close()
    await journal_holds_together(tmp_path)


@pytest.mark.parametrize("line", ["tool move", "every 1"])
async def test_a_reasoner_is_held_by_the_general_kinds(tmp_path: Path, line: str) -> None:
    flight = ReasonerFlight(tmp_path)
    await flight.open()
    await flight.create("!go. +!go <- write('a', 'x'); write('b', 'x').")
    line = line.replace("move", "write path=b")
    await flight.do(cmd.SetBreak, line=line)
    await flight.do(cmd.Run)
    state = await flight.until(held("b1"))
    assert state.actions == 1
    assert not (flight.sandbox / "b").exists()
    await flight.do(cmd.ChangeBreak, breakpoint="b1", cleared=True)
    await flight.do(cmd.Run)
    await flight.until(lambda s: not s.open_goals)
    await flight.engine.close()
    await journal_holds_together(tmp_path)
