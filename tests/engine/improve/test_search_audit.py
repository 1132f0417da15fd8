"""What an audit of the journal finds, with counts and the events that show it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from engine.api.engine import Engine
from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.improvement import Concern
from engine.core.ports import Ports
from engine.improve.search.audit import audit
from engine.improve.search.components import RECIPES
from tests.engine.agent.engine_flight import QuickClock


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[Engine]:
    made = await Engine.open(tmp_path, ports=Ports(clock=QuickClock()))
    assert (await made.submit(cmd.CreateAgent(agent="pilot"))).ok
    yield made
    await made.close()


async def flown(engine: Engine, text: str, agent: str = "pilot") -> None:
    """Have an agent pursue a goal to its end, with nobody to ask."""
    assert (await engine.submit(cmd.AdoptGoal(agent=agent, text=text))).ok
    goal = max((await engine.view(agent)).goals.values(), key=lambda one: one.order).id
    await engine.submit(cmd.Run(agent=agent, until=goal, ask=False))
    async for event in engine.events(0):
        ended = event.stream == agent and event.kind == ev.GoalEnded.kind
        if ended and getattr(ev.payload_of(event), "goal", "") == goal:
            return


async def test_what_was_done_by_hand_is_counted_and_shown(engine: Engine) -> None:
    for path in ("a", "b"):
        said = cmd.CallTool(agent="pilot", tool="simple_coder", command="mkdir", args={"path": path})
        assert (await engine.submit(said)).ok
    assert not (await engine.submit(cmd.SkipStep(agent="pilot", step="s99"))).ok
    await flown(engine, "list the files")
    found = await audit(engine.workspace, engine.store)

    (called,) = [one for one in found if one.text == "the operator called a tool in pilot's place 2 times"]
    assert (called.concern, called.severity, called.target) == (Concern.INTERVENTIONS, 6, RECIPES)
    assert len(called.evidence) == 2
    for ref in called.evidence:
        event = await engine.store.get(ref)
        assert event is not None
        assert event.kind == ev.CommandReceived.kind
    assert not [one for one in found if "skipped" in one.text]


async def test_nothing_to_find_is_a_plain_answer(engine: Engine) -> None:
    await flown(engine, "list the files")
    assert await audit(engine.workspace, engine.store) == ()
