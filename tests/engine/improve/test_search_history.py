"""The audit of the journal, and recipes learned from what an operator did by hand."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from engine.api.engine import Engine
from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.improvement import Component, ComponentKind
from engine.core.ports import Ports
from engine.improve.ports import Outcome, Split
from engine.improve.search.audit import audit
from engine.improve.search.components import RECIPES, RECIPES_FILE
from engine.improve.search.history import read_history
from engine.improve.search.recipes import RecipesSuite, propose_recipes
from tests.engine.agent.engine_flight import QuickClock

COMPONENT = Component(RECIPES, ComponentKind.RECIPES, "learned recipes", (RECIPES_FILE,))


async def opened(workspace: Path) -> Engine:
    return await Engine.open(workspace, ports=Ports(clock=QuickClock()))


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[Engine]:
    made = await opened(tmp_path)
    await do(made, cmd.CreateAgent(agent="pilot"))
    yield made
    await made.close()


async def do(engine: Engine, command: cmd.Command) -> None:
    receipt = await engine.submit(command)
    assert receipt.ok, receipt.message


async def until(engine: Engine, kind: type[ev.Payload], goal: str) -> None:
    async for event in engine.events(0):
        if event.kind == kind.kind and getattr(ev.payload_of(event), "goal", "") == goal:
            return


async def by_hand(engine: Engine, text: str, *actions: tuple[str, dict[str, str]]) -> None:
    """A goal that no recipe covers, and that the operator gives a plan."""
    await do(engine, cmd.AdoptGoal(agent="pilot", text=text))
    goal = max((await engine.view("pilot")).goals.values(), key=lambda one: one.order).id
    await until(engine, ev.InterventionOpened, goal)  # a paused agent plans too, so it comes without a run
    plan = [
        {"type": "EXECUTE_TOOL", "params": {"tool_id": "simple_coder", "command": command, "args": args}}
        for command, args in actions
    ]
    await do(engine, cmd.ReplacePlan(agent="pilot", goal=goal, plan=json.dumps(plan)))
    await do(engine, cmd.Run(agent="pilot", until=goal))
    await until(engine, ev.GoalEnded, goal)


async def prepared(engine: Engine, *names: str) -> None:
    for name in names:
        steps = (
            ("mkdir", {"path": f"{name}/drafts"}),
            ("write", {"path": f"{name}/TODO.txt", "content": name}),
        )
        await by_hand(engine, f"prepare a desk for {name}", *steps)


async def test_an_operators_plans_for_goals_of_one_shape_become_a_recipe(engine: Engine) -> None:
    await prepared(engine, "anna", "bruno", "clara", "dora", "emil", "frida")
    history = await read_history(engine.store)
    findings = await audit(engine.workspace, engine.store)
    uncovered = next(one for one in findings if "prepare a desk for frida" in one.text)
    assert (uncovered.target, len(uncovered.evidence)) == (RECIPES, 6)
    assert "6 of 6 goals" in uncovered.text

    (proposal,) = propose_recipes({}, COMPONENT, history, findings)
    assert "3 hits and 0 misfires" in proposal.why
    before, after = engine.workspace, engine.workspace / "candidate"
    (after / "recipes").mkdir(parents=True)
    (after / RECIPES_FILE).write_text(str(proposal.files[RECIPES_FILE]), encoding="utf-8")
    suite = RecipesSuite.of(COMPONENT, before, history)
    sealed = suite.checks(Split.SEALED)
    assert [check.id.partition(": ")[2] for check in sealed] == [
        f"prepare a desk for {name}" for name in ("bruno", "dora", "frida")
    ]
    for check in sealed:
        assert (await suite.examine(before, check, seed=1)).outcome is Outcome.FAILS
        assert (await suite.examine(after, check, seed=1)).outcome is Outcome.HOLDS
    for check in suite.checks(Split.WORK):
        assert (await suite.examine(after, check, seed=1)).outcome is Outcome.HOLDS, check.id

    # What is mended is found no more.
    (engine.workspace / "recipes").mkdir(exist_ok=True)
    (engine.workspace / RECIPES_FILE).write_text(str(proposal.files[RECIPES_FILE]), encoding="utf-8")
    assert not [one for one in await audit(engine.workspace, engine.store) if "no recipe covers" in one.text]
