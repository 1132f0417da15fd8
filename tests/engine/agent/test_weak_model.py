"""A weak model: half of what it says is nonsense. Every goal ends, and nothing runs that no plan may hold."""

from __future__ import annotations

import asyncio
import json
import random
import re
from collections import Counter
from pathlib import Path

import pytest
from engine_flight import Flight, live_state_is_the_fold
from model_flight import model_flight, planned

from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.goals import GoalStatus
from tests.messages_server import Reply, Seen, call, plan_call
from tests.patience import PATIENCE_S as PATIENCE_S
from tests.rounds import rounds

AGENTS = ("ada", "ben", "cyd", "dov")
GOALS = rounds(12, full=200)
CALLS = 3
"""Calls that one question to a model may take: the first, and two to put right what was wrong."""


def good(name: str) -> Reply:
    """The plan that the goal asks for."""
    return plan_call(planned("mkdir", path=name), planned("write", path=f"{name}/note.txt", content=name))


def nonsense(name: str) -> list[Reply]:
    """What a weak model says instead."""
    whole = good(name)
    return [
        Reply(text="Sure! I have made the directory and everything in it."),
        Reply(text='```json\n{"plan": [{"type": "EXECUTE_TOOL", '),
        Reply(text="{}"),
        Reply(),
        Reply(text="I cannot help with that.", stop_reason="refusal"),
        Reply(text="First I consider", stop_reason="max_tokens"),
        call("propose_plan", '{"plan": [,]}'),
        call("propose_plan", whole.tool_input[:60]),
        call("make_plan", {"plan": []}),
        call("propose_plan", {"plan": [], "uncovered": []}),
        call("propose_plan", {"plan": "fly", "mode": "autonomous"}),
        plan_call(planned("conjure", "magic_wand", path=name)),
        plan_call(planned("make_directory", path=name)),
        plan_call(planned("write", folder=name, body=name)),
        plan_call(planned("mkdir", path=[7])),
        plan_call(planned("toggle_autonomous_mode")),
        plan_call(planned("shell")),
        plan_call(planned("read", path=f"{name}-that-is-not-there.txt")),
        plan_call({**planned("write", path=f"{name}/note.txt", content=name), "depends_on": ["9"]}),
        plan_call({**planned("ls"), "id": "1", "depends_on": ["1"]}),
        plan_call(uncovered=({"clause": "make", "why": "directories are beyond me"},)),
        Reply(**{**whole.__dict__, "after": 5, "then": "drop"}),
        Reply(**{**whole.__dict__, "after": 5, "then": "end"}),
        Reply(**{**whole.__dict__, "after": 4, "then": "garbage"}),
    ]


class WeakModel:
    """Says nonsense every second time, by the throw of a seeded coin."""

    def __init__(self, seed: int) -> None:
        self._dice = random.Random(seed)
        self.said: Counter[str] = Counter()

    def __call__(self, seen: Seen) -> Reply:
        first = seen.body["messages"][0]["content"]
        name = re.findall(r"directory (d\d+)", json.dumps(first))[-1]
        sense = self._dice.random() < 0.5
        self.said["sense" if sense else "nonsense"] += 1
        return good(name) if sense else self._dice.choice(nonsense(name))


async def flown(flight: Flight, agent: str, goals: range) -> None:
    """Have the agent go through goals with nobody to ask."""
    await flight.do(cmd.CreateAgent, agent=agent)
    for number in goals:
        await flight.do(cmd.AdoptGoal, agent=agent, text=f"make a directory d{number} with a note in it")
    await flight.do(cmd.Run, agent=agent, ask=False)
    async with asyncio.timeout(PATIENCE_S):
        while (await flight.state(agent)).open_goals:
            await asyncio.sleep(0.05)


async def nothing_strange_ran(flight: Flight, agent: str) -> None:
    """What started is in the registry, valid by its schema, and stood in a plan that was adopted."""
    offered = {(entry["tool"], entry["command"]) for entry in flight.engine.registry.schemas()}
    adopted = await flight.payloads(ev.PlanAdopted, agent) + await flight.payloads(ev.PlanRevised, agent)
    steps = {step.id for plan in adopted for step in plan.steps}
    requested = {said.action: said for said in await flight.payloads(ev.ActionRequested, agent)}
    for started in await flight.payloads(ev.ActionStarted, agent):
        said = requested[started.action]
        assert (said.tool, said.command) in offered
        assert not flight.engine.registry.validate(said.tool, said.command, said.args)
        assert said.command in ("mkdir", "write", "read", "ls")
        assert said.step in steps


async def calls_of_each_question(flight: Flight, agent: str) -> list[int]:
    """How many calls of the model each question for a plan took."""
    counts: list[int] = []
    for event in await flight.events(agent):
        if event.kind == ev.PlanAsked.kind:
            counts.append(0)
        elif event.kind == ev.ModelCalled.kind:
            counts[-1] += 1
    return counts


@pytest.mark.slow
async def test_goals_with_a_model_that_talks_nonsense_half_of_the_time(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = WeakModel(seed=5)
    share = GOALS // len(AGENTS)
    async with model_flight(tmp_path / "ws", model, repeat=True) as (flight, server):
        await asyncio.gather(
            *(flown(flight, agent, range(n * share, (n + 1) * share)) for n, agent in enumerate(AGENTS))
        )
        ends: Counter[GoalStatus] = Counter()
        questions: list[int] = []
        for agent in AGENTS:
            await live_state_is_the_fold(flight, agent)
            await nothing_strange_ran(flight, agent)
            state = await flight.state(agent)
            assert (len(state.goals), state.intervention, state.action) == (share, None, None)
            ends.update(goal.status for goal in state.goals.values())
            for goal in state.goals.values():
                made = (flight.sandbox / goal.text.split()[3] / "note.txt").exists()
                assert made or goal.status is not GoalStatus.ACHIEVED
            questions += await calls_of_each_question(flight, agent)
        assert set(ends) <= {GoalStatus.ACHIEVED, GoalStatus.FAILED, GoalStatus.DROPPED}
        assert ends[GoalStatus.ACHIEVED] > GOALS / 2
        assert sum(questions) == len(server.requests) == model.said.total()
        assert 0 < max(questions) <= CALLS
        assert 0.4 < model.said["nonsense"] / model.said.total() < 0.6
    mean = len(server.requests) / GOALS
    assert 1 <= mean <= 2 * CALLS
    with capsys.disabled():
        print(
            f"\n{GOALS} goals, {dict(sorted(ends.items()))}: {mean:.2f} calls of the model for each goal, "
            f"{len(server.requests) / len(questions):.2f} for each question, {max(questions)} at most"
        )
