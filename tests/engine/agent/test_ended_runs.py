"""Runs whose work is over leave the live agents, cost nothing to open, and what they took still counts."""

from __future__ import annotations

import asyncio
import itertools
import sqlite3
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from engine_flight import QuickClock

from app.projection import handoff_views
from app.projection import pane_views as views
from app.projection.fleet_views import Fleet
from engine.agent import live_agents as ended
from engine.agent.steering.ledger import Ledger, taken_by
from engine.api.engine import Engine
from engine.core import commands as cmd
from engine.core import crew_commands as cc
from engine.core.agents import PROOF, AgentConfig
from engine.core.budgets import Spent
from engine.core.journal import of_agent
from engine.core.ports import Ports
from engine.core.state import AgentState
from engine.crew.crew import Crew
from engine.crew.ontology.spec_parser import parse_spec
from tests.patience import PATIENCE_S
from widgets.base.text_layout import plain


class LaterClock(QuickClock):
    """Its time of day can be put forward."""

    later = timedelta()

    def now(self) -> str:
        moment = datetime.fromisoformat(super().now()) + self.later
        return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


async def worked(engine: Engine, count: int) -> Crew:
    """Hand work to an agent that needs a model where there is none, so often, until all is over."""
    spec = {
        "id": "sorter",
        "type": "role",
        "name": "Sorter",
        "description": "Sorts.",
        "instructions": {"system": "Sort."},
    }
    crew = await engine.crew()
    receipt = await engine.submit(cc.RegisterAgent(spec=parse_spec(spec).model_dump(mode="json")))
    assert receipt.ok, receipt.message
    for number in range(count):
        given = {"given": {"output": f"Heap {number} is sorted."}}
        task = cc.Delegate(to="sorter", task=f"Sort heap {number}.", metadata=given)
        assert (await engine.submit(task)).ok
    while any(crew.state.open()):
        await crew.stream.changed()
    return crew


async def test_ended_runs_leave_the_agents_and_are_not_read_again(tmp_path: Path) -> None:
    clock = LaterClock()
    engine = await Engine.open(tmp_path, ports=Ports(clock=clock))
    await engine.submit(cmd.CreateAgent(agent="hand"))
    crew = await worked(engine, 3)
    runs = ("sorter-1", "sorter-2", "sorter-3")
    assert set(engine.agents) == {"hand", *runs}
    async with asyncio.timeout(PATIENCE_S):
        while not all([(await engine.view(run)).handed_back for run in runs]):
            await asyncio.sleep(0.01)
    states = [await engine.view(name) for name in engine.agents]
    shown = views.goal_stack(states, "hand")
    assert [row.key for row in shown.rows if row.key.startswith("agent:")] == ["agent:hand"]
    assert plain(shown.rows[-1].pieces) == "■ 3 ended runs"
    # Who looks at one of them sees it.
    keys = [row.key for row in views.goal_stack(states, runs[1]).rows]
    assert [key for key in keys if key.startswith("agent:")] == ["agent:hand", f"agent:{runs[1]}"]
    board = Fleet().model(crew.state, states, datetime.fromisoformat(clock.now()))
    assert not [row for row in board.rows if row.name in runs]
    assert "3 ended runs" in board.standing

    clock.later = timedelta(minutes=1)
    async with asyncio.timeout(PATIENCE_S):
        while engine.agents != ("hand",):
            await asyncio.sleep(0.01)
    refused = await engine.submit(cmd.AdoptGoal(agent=runs[0], text="go on"))
    assert refused.message.startswith("sorter-1 is over")
    assert (await engine.view(runs[0])).handed_back
    await engine.close()

    engine = await Engine.open(tmp_path)
    try:
        assert engine.agents == ("hand",)
        heads = {name: head for name, head in (await engine.store.streams()).items() if of_agent(name)}
        assert await ended.count_ended_agents(engine.store, heads, Ledger()) == ["hand"]
        # What is kept beside a stream counts only as it was kept, and of the newest event.
        with sqlite3.connect(tmp_path / ".pilothouse" / "journal.db") as database:
            database.execute(
                "update snapshots set state = replace(state, '[0', '[9') where stream = 'sorter-2@over'"
            )
            database.execute("delete from snapshots where stream = 'sorter-3@over'")
        database.close()
        assert await ended.count_ended_agents(engine.store, heads, Ledger()) == [
            "hand",
            "sorter-2",
            "sorter-3",
        ]
    finally:
        await engine.close()


def family() -> dict[str, AgentState]:
    """An agent, one that works for it, one that works for that, and a stranger; each took something."""
    found = {}
    for number, (name, parent) in enumerate(
        (("boss", ""), ("child", "boss"), ("grandchild", "child"), ("stranger", ""), ("orphan", "nobody")), 1
    ):
        config = AgentConfig(meta={"parent": parent} if parent else {})
        found[name] = AgentState(name, "role", config=config, tokens=10**number, model_calls=number)
    return found


@pytest.mark.parametrize("order", list(itertools.permutations(("child", "grandchild", "orphan"))))
def test_what_was_taken_counts_also_once_those_are_gone_who_took_it(order: tuple[str, ...]) -> None:
    states, ledger = family(), Ledger()
    for state in states.values():
        ledger.join(state)

    def counted() -> list[Spent]:
        accounts = [ledger.account("workspace"), ledger.account("agent boss", states["boss"])]
        return [amount() for one in accounts for amount in (one.charged, one.taken)]

    before = counted()
    assert before[2] == Spent(calls=6, tokens=1_110)
    for name in order:
        ledger.count_ended_agent(name, states[name].config.parent, taken_by(states[name]))
        assert counted() == before
    # Who is handed work by one that is gone draws on those above it.
    late = AgentState("late", "role", config=AgentConfig(meta={"parent": "grandchild"}), tokens=5)
    ledger.join(late)
    assert [one.budget for one in ledger.accounts(late, "")] == ["agent late", "agent boss", "workspace"]
    assert counted()[2] == before[2] + Spent(tokens=5)


async def test_proofs_of_new_agents_are_not_among_the_handoffs(tmp_path: Path) -> None:
    engine = await Engine.open(tmp_path)
    try:
        crew = await worked(engine, 1)
        (one,) = crew.state.handoffs.values()
        context = one.context.model_copy(update={"metadata": {PROOF: "scripted"}, "handoff_id": "h-proof"})
        crew.state.handoffs["h-proof"] = type(one)(
            **{name: getattr(one, name) for name in one.__slots__} | {"context": context}
        )
        now = datetime.fromisoformat(engine.clock.now())
        told = handoff_views.timeline(crew.state, now)
        assert [line.key for line in told.lines] == [one.id]
        assert told.standing.startswith("1 handoff")
        assert "1 ended run:" in Fleet().model(crew.state, [], now).standing
        run = AgentState(
            "sorter-9", "role", config=AgentConfig(meta={"handoff": {"metadata": {PROOF: True}}})
        )
        assert run.proves
        assert not views.goal_stack([run], "").rows
    finally:
        await engine.close()
