"""Agents whose story is read when they are shown: nothing is lost by it, and nothing told twice."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from app.projection.projector import Projector
from engine.api.engine import Engine
from engine.core import commands as cmd
from engine.core.state import AgentState
from engine.core.streams import restore, restore_all

AGENTS = ("alpha", "beta", "gamma")


async def flown(workspace: Path) -> None:
    """Three agents that have written a file each."""
    engine = await Engine.open(workspace)
    for name in AGENTS:
        await engine.submit(cmd.CreateAgent(agent=name))
        await engine.submit(cmd.AdoptGoal(agent=name, text=f"write 'hello' to {name}.txt"))
        await engine.submit(cmd.Run(agent=name))
        async for event in engine.events(stream=name):
            if event.kind == "goal.ended":
                break
    await engine.close()


async def test_a_story_that_is_read_late_is_the_one_that_was_followed(tmp_path: Path) -> None:
    await flown(tmp_path)
    engine = await Engine.open(tmp_path)
    try:
        events = await engine.store.read("alpha")
        whole, late = Projector(), Projector()
        whole.add("alpha", AgentState(), events)
        half, more = len(events) // 2, len(events) - 3
        late.add_without_story("alpha", await engine.view("alpha", half))
        assert late.mind().notice is not None
        assert late.session() == ([], late.session()[1])
        assert late.story_to_read() == "alpha"
        assert late.story_to_read() == ""  # one reads it
        for event in events[half:more]:
            assert late.take(event) is not None
        # What is durable may be ahead of what was followed: that is taken in its turn.
        for _ in late.read_story_into("alpha", AgentState(), events):
            pass
        assert late.story_read
        assert late.state is not None
        assert late.state.version == more
        assert [late.take(event) is not None for event in events[more:]] == [True] * 3
        assert late.state == whole.state
        assert late.mind() == whole.mind()
        assert [one.text for one in late.session()[0]] == [one.text for one in whole.session()[0]]
    finally:
        await engine.close()


async def test_many_are_restored_as_one_is_also_past_a_damaged_state(tmp_path: Path) -> None:
    await flown(tmp_path)
    with sqlite3.connect(tmp_path / ".pilothouse" / "journal.db") as database:
        database.execute("update snapshots set state = 'x' || state where stream = 'beta'")
        database.execute("delete from snapshots where stream = 'gamma'")
    database.close()
    engine = await Engine.open(tmp_path)
    try:
        (notice,) = engine.health.states
        assert notice.startswith("beta: the state kept at event")
        found = [(name, state) async for name, state, _, _ in restore_all(engine.store, AGENTS)]
        assert found == [(name, (await restore(engine.store, name))[0]) for name in AGENTS]
        assert engine.agents == AGENTS
    finally:
        await engine.close()
