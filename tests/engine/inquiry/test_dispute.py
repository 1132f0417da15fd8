"""Marking a result as wrong: what depends on it in seeded runs, and what could be taken back."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

import pytest
from inquiry_events import Stream, step

from engine.agent.decisions.outcome import RefusedError
from engine.agent.decisions.table import decide
from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.actions import ResultStatus, Reversibility
from engine.core.plan import PlanStep, StepStatus
from engine.core.state import AgentState
from engine.inquiry.record import Record
from engine.inquiry.why import cascade, doubted_events, unsupported_beliefs
from engine.tools.registry import ToolRegistry

RUNS, STEPS, ENOUGH = 60, 14, 0.95


@dataclass
class Graph:
    """A run whose dependences are known, because they were drawn before its events were made."""

    stream: Stream = field(default_factory=Stream)
    needs: dict[int, set[int]] = field(default_factory=dict)
    """Step to the steps that it depends on directly."""
    ends: dict[int, str] = field(default_factory=dict)
    beliefs: dict[str, int] = field(default_factory=dict)
    """Belief to the step that found it last."""

    def stands_on(self, root: int) -> set[int]:
        found = {root}
        for number in range(STEPS):
            if self.needs[number] & found:
                found.add(number)
        return found - {root}


def drawn(seed: int) -> Graph:
    """Steps that write files, read others', wait for each other, find beliefs."""
    random, graph = Random(seed), Graph()
    stream = graph.stream
    steps: list[PlanStep] = []
    for number in range(STEPS):
        needs = set(random.sample(range(number), k=min(number, random.choice([0, 0, 1, 1, 2]))))
        reads = {n for n in needs if random.random() < 0.5}
        waits = tuple(f"s{n}" for n in sorted(needs - reads))
        names = {f"source{place}": f"f{n}.txt" for place, n in enumerate(sorted(reads))}
        steps.append(step(f"s{number}", "append", *waits, path=f"f{number}.txt", **names))
        graph.needs[number] = needs
    goal = stream.add(ev.GoalAdopted(goal="g1", text="build"), actor="operator:ann")
    plan = stream.add(ev.PlanAdopted(plan="p1", goal="g1", steps=tuple(steps)), goal)
    for number, one in enumerate(steps):
        _act(graph, one, plan, number)
        if random.random() < 0.5:
            key = f"b{random.randrange(STEPS)}"
            graph.beliefs[key] = number

            stream.add(ev.BeliefAdded(key=key, value=number), graph.ends[number])
        stream.add(ev.StepEnded(goal="g1", step=one.id, status=StepStatus.COMPLETED), graph.ends[number])
    return graph


def _act(graph: Graph, one: PlanStep, plan: str, number: int) -> None:
    stream, action = graph.stream, f"a{number}"
    call = {"tool": one.tool, "command": one.command, "args": one.args}
    said = ev.ActionRequested.model_validate({"action": action, "step": one.id, "goal": "g1", **call})
    begun = ev.ActionStarted(action=action, undo=Reversibility.WORKSPACE)
    started = stream.add(begun, stream.add(said, plan))
    ended = ev.ActionFinished(action=action, status=ResultStatus.SUCCESS, result={})
    graph.ends[number] = stream.add(ended, started)


def test_the_cascade_of_a_wrong_result_is_what_was_made_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    right = told = wanted = 0
    for seed in range(RUNS):
        graph = drawn(seed)
        root = Random(seed + 1_000).randrange(STEPS // 2)
        stands = graph.stands_on(root)
        record = Record.of(graph.stream.events)
        found = cascade(record, [graph.ends[root]])
        truth = {("file", f"f{n}.txt") for n in stands | {root}}
        truth |= {("step", f"s{n}") for n in stands | {root}}
        truth |= {("belief", key) for key, n in graph.beliefs.items() if n in stands | {root}}
        listed = {(one.kind, one.name) for one in found.standing}
        right, told, wanted = right + len(truth & listed), told + len(listed), wanted + len(truth)
        alone = {one.name for one in unsupported_beliefs(record, [graph.ends[root]])}
        assert alone == {key for key, n in graph.beliefs.items() if n == root}
    precision, recall = right / told, right / wanted
    with capsys.disabled():
        print(
            f"\ncascade over {RUNS} graphs: precision {precision:.3f}, recall {recall:.3f}, {wanted} things"
        )
    assert precision >= ENOUGH
    assert recall >= ENOUGH


def test_a_belief_that_the_mind_made_of_a_wrong_result_stands_on_it_alone() -> None:
    graph = Graph()
    stream = graph.stream
    command = stream.add(ev.CommandReceived(command={"do": "adopt_goal"}), actor="operator:ann")
    goal = stream.add(ev.GoalAdopted(goal="g1", text="judge"), command, actor="operator:ann")
    steps = (
        step("s0", "run", command="./check"),
        PlanStep("s1", "note", tool="mind", command="add", args={"key": "green"}, depends_on=("s0",)),
        PlanStep("s2", "note", tool="mind", command="add", args={"key": "kind"}),
    )
    plan = stream.add(ev.PlanAdopted(plan="p1", goal="g1", steps=steps), goal)
    for number, one in enumerate(steps):
        _act(graph, one, plan, number)
        if number:
            stream.add(ev.BeliefAdded(key=one.args["key"], value=True), graph.ends[number])
        stream.add(ev.StepEnded(goal="g1", step=one.id, status=StepStatus.COMPLETED), graph.ends[number])
    record = Record.of(stream.events)
    assert [one.name for one in unsupported_beliefs(record, [graph.ends[0]])] == ["green"]


def test_a_mark_doubts_what_stands_on_it_until_it_is_taken_back() -> None:
    graph = drawn(3)
    root = next(n for n in range(STEPS) if graph.stands_on(n))
    ref = graph.ends[root]
    stream = graph.stream
    stream.add(ev.ResultDisputed(event=ref, reason="misread"), actor="operator:ann")
    record = Record.of(stream.events)
    assert dict(record.disputes) == {ref: "misread"}
    doubts = doubted_events(record)
    assert set(doubts.values()) == {ref}
    assert ref not in doubts
    assert graph.ends[min(graph.stands_on(root))] in doubts
    stream.add(ev.ResultDisputed(event=ref, lifted=True), actor="operator:ann")
    assert doubted_events(Record.of(stream.events)) == {}


def test_only_events_of_the_agent_that_have_happened_can_be_marked() -> None:
    state, tools = AgentState(agent_id="pilot", version=9), ToolRegistry()
    outcome = decide(state, cmd.Dispute(event="pilot:4", reason="no"), tools)
    assert outcome.events == (ev.ResultDisputed(event="pilot:4", reason="no"),)
    for event, why in (
        ("other:4", "no event of pilot"),
        ("pilot:x", "no event of pilot"),
        ("pilot:10", "the newest event is pilot:9"),
    ):
        with pytest.raises(RefusedError, match=why):
            decide(state, cmd.Dispute(event=event), tools)
    with pytest.raises(RefusedError, match="not marked as wrong; marked: none"):
        decide(state, cmd.Dispute(event="pilot:4", lifted=True), tools)
