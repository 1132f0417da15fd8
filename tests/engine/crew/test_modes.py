"""Several handoffs together: one after the other, at once, the best of several, again and again."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from engine.core import crew_commands as cc
from engine.crew import groups
from engine.crew.ontology.kinds import Check, ErrorCode, HandoffState
from engine.crew.ontology.results import CriterionResult, HandoffResult
from engine.crew.ontology.spec_parser import parse_spec
from engine.crew.ports import HandoffError
from engine.crew.selection import Candidate, Selection
from tests.engine.crew.flight import CLEAR, Flight, Job, group_results, spec_of

D = HandoffState


async def test_each_has_the_findings_of_those_before_and_a_failure_stops(flight: Flight) -> None:
    """Line 21."""
    await flight.register("a", "b", "c", "d")
    seen: dict[str, Any] = {}

    async def member(job: Job) -> Any:
        agent = job.context.to_agent
        seen[agent] = job.context.previous_analyses
        code = ErrorCode.QUALITY_GATE if agent == "c" else None
        return job.done(f"text of {agent}", key_findings=(f"{agent} found it",), code=code)

    flight.worker.scripts = dict.fromkeys("abcd", member)
    group = (await flight.do(cc.Sequence(to=("a", "b", "c", "d"), task="all", clarity=CLEAR)))["group"]
    results = await group_results(flight.crew, group)
    assert [(one.framework_id, one.key_findings) for one in seen["b"]] == [("a", ("a found it",))]
    assert [one.framework_id for one in seen["c"]] == ["a", "b"]
    assert [one.state for one in results] == [D.COMPLETED, D.COMPLETED, D.FAILED, D.CANCELLED]
    assert results[3].error == "not started"
    assert "d" not in seen
    record = flight.crew.state.groups[group]
    assert not record.ok
    assert flight.crew.state.handoffs[record.handoffs[3]].moves[-1].reason == "not started"


async def test_results_are_in_the_order_given_and_half_are_enough(flight: Flight) -> None:
    """Lines 14 and 22."""
    await flight.register("a", "b", "c")
    gates = {name: asyncio.Event() for name in "abc"}
    fails: set[str] = set()

    async def member(job: Job) -> Any:
        agent = job.context.to_agent
        await gates[agent].wait()
        assert job.context.previous_analyses == ()
        return job.done(f"text of {agent}", code=ErrorCode.QUALITY_GATE if agent in fails else None)

    async def run(order: str, cancel: str = "") -> tuple[Any, Sequence[HandoffResult]]:
        for gate in gates.values():
            gate.clear()
        command = cc.Parallel(to=("a", "b", "c"), task="all", clarity=CLEAR)
        group = (await flight.do(command))["group"]
        await flight.until(lambda: len(flight.crew.state.groups[group].handoffs) == 3)
        members = dict(zip("abc", flight.crew.state.groups[group].handoffs, strict=True))
        if cancel:
            await flight.do(cc.CancelHandoff(handoff=members[cancel]))
        for one in order:
            gates[one].set()
            await flight.crew.wait(members[one])
        results = await group_results(flight.crew, group)
        return flight.crew.state.groups[group], results

    flight.worker.scripts = dict.fromkeys("abc", member)
    record, results = await run("cba")
    assert [one.output for one in results] == ["text of a", "text of b", "text of c"]
    assert record.ok
    fails = {"b"}
    record, results = await run("bca")
    assert record.ok
    assert [one.success for one in results] == [True, False, True]
    record, results = await run("ca", cancel="b")
    assert results[1].state is D.CANCELLED
    assert record.ok
    fails = {"a", "c"}
    record, results = await run("abc")
    assert (record.ok, record.code) == (False, "QUORUM")
    assert [one.from_agent for one in results if one.success] == ["b"]


async def test_a_synthesis_names_every_source(flight: Flight) -> None:
    """Line 23."""
    await flight.register("a", "b", "c", "synthesizer")
    texts = iter(["a and b say so", "a, b; c was not there"])

    async def member(job: Job) -> Any:
        async with job.model():
            return job.done(f"text of {job.context.to_agent}",
                            code=ErrorCode.QUALITY_GATE if job.context.to_agent == "c" else None)  # fmt: skip

    async def synthesizer(job: Job) -> Any:
        assert [one.framework_id for one in job.context.previous_analyses] == ["a", "b"]
        assert job.context.metadata["missing"] == ["c"]
        async with job.model():
            return job.done(next(texts))

    flight.worker.scripts = {**dict.fromkeys("abc", member), "synthesizer": synthesizer}
    asked = cc.Parallel(to=("a", "b", "c"), task="all", clarity=CLEAR)
    group = (await flight.do(asked))["group"]
    await group_results(flight.crew, group)
    record = flight.crew.state.groups[group]
    assert record.output == "a and b say so\n\nNot named above: c (gave nothing)."
    group = (await flight.do(asked))["group"]
    await group_results(flight.crew, group)
    assert flight.crew.state.groups[group].output == "a, b; c was not there"
    assert flight.worker.calls == 3 + 1 + 3 + 1

    await flight.do(cc.RemoveAgent(who="synthesizer"))
    group = (await flight.do(cc.Parallel(to=("a", "c"), task="all", clarity=CLEAR)))["group"]
    await group_results(flight.crew, group)
    assert "text of a" in flight.crew.state.groups[group].output
    assert "Missing: c." in flight.crew.state.groups[group].output


def ranked(monkeypatch: pytest.MonkeyPatch, *agents: Candidate) -> None:
    """Have the selection give these agents."""
    monkeypatch.setattr(groups, "choose", lambda *_: Selection(agents, ()))


async def test_selection_falls_back_where_one_cannot_begin(
    flight: Flight, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Line 24."""
    await flight.register("a", "b", "c")
    codes: dict[str, ErrorCode | None] = {"a": ErrorCode.TOOL_UNAVAILABLE, "b": None, "c": None}

    async def member(job: Job) -> Any:
        return job.done(f"text of {job.context.to_agent}", code=codes[job.context.to_agent])

    flight.worker.scripts = dict.fromkeys("abc", member)
    ranked(monkeypatch, Candidate("a", 0.9), Candidate("b", 0.5), Candidate("c", 0.3))
    asked = cc.Select(task="who does it", clarity=CLEAR)
    group = (await flight.do(asked))["group"]
    (result,) = await group_results(flight.crew, group)
    assert result.output == "text of b"
    record = flight.crew.state.groups[group]
    assert [(one["agent"], one["score"]) for one in record.candidates] == [("a", 0.9), ("b", 0.5), ("c", 0.3)]
    assert "could not begin" in record.lost["a"]
    assert record.lost["c"] == "scored lower"
    assert flight.worker.began == ["a", "b"]

    codes["a"] = ErrorCode.QUALITY_GATE
    (result,) = await group_results(flight.crew, (await flight.do(asked))["group"])
    assert result.error_code is ErrorCode.QUALITY_GATE
    assert flight.worker.began == ["a", "b", "a"]


async def test_a_task_that_speaks_for_nobody_goes_to_larry(
    flight: Flight, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Line 58, the manager's half."""
    await flight.register("a")
    await flight.register("larry", kind="role", receives={"requires_what": False, "min_clarity": 0.0})
    flight.worker.scripts["larry"] = _talks
    ranked(monkeypatch)
    receipt = await flight.do(cc.Select(task="hm"))
    assert flight.crew.state.holder == "larry"
    assert "larry has the floor" in receipt["message"]
    refused = await flight.do(cc.Select(task="hm", among=("nobody",)), ok=False)
    assert "no agent nobody" in refused["message"]


async def test_an_agent_that_could_not_be_read_again_is_not_recorded(flight: Flight) -> None:
    spec = parse_spec(spec_of("long"))
    words = spec.instructions.model_copy(update={"system": "x" * 200_001})
    with pytest.raises(HandoffError, match="at most 200000 characters"):
        await flight.crew.registry.register(spec.model_copy(update={"instructions": words}))
    await flight.close()
    await flight.open()
    assert "long" not in flight.crew.state.agents


async def test_the_graph_selects_by_what_was_registered_and_used(flight: Flight) -> None:
    """Line 58: who has finished is not selected again, and nothing to go by goes to larry."""
    role = {"requires_what": False, "min_clarity": 0.0}
    await flight.register("larry", kind="role", receives=role, selectable=False)
    await flight.register("minto", triggers={"keywords": ["pyramid"]})
    await flight.register(
        "jtbd", triggers={"keywords": ["jobs", "pyramid"]}, chaining={"follows": [{"id": "minto"}]}
    )
    flight.worker.scripts["larry"] = _talks
    asked = cc.Select(task="Build a pyramid of it", clarity=CLEAR)
    group = (await flight.do(asked))["group"]
    (result,) = await group_results(flight.crew, group)
    record = flight.crew.state.groups[group]
    first, other = (one["agent"] for one in record.candidates)
    assert result.from_agent == first
    assert set(record.lost) == {other}
    (result,) = await group_results(flight.crew, (await flight.do(asked))["group"])
    assert result.from_agent == other
    assert (await flight.do(cc.Select(task="hm")))["agent"] == "larry"
    await flight.close()
    await flight.open()
    assert (await flight.do(asked))["agent"] == "larry"


async def _talks(job: Job) -> Any:
    await asyncio.Event().wait()


async def test_a_debate_of_two_agents_is_one_handoff_of_a_debate_made_for_it(flight: Flight) -> None:
    await flight.register("pro", "con")

    async def debate(job: Job) -> Any:
        assert job.handoff.spec.debate is not None
        sides = [side.agent_id for side in job.handoff.spec.debate.sides]
        answers = [await job.delegate(one, "argue") for one in sides]
        return job.done(
            " ".join(one.from_agent for one in answers),
            needs_human_input=True,
            human_input_reason="contested",
        )

    flight.worker.scripts["debate"] = debate
    said = await flight.do(cc.Debate(motion="Ship it now", pro="pro", con="con", rounds=1))
    assert (await flight.crew.wait(said["handoff"])).output == "pro con"
    assert [one.reason_code for one in flight.crew.needs] == ["DEBATE_CONTESTED"]
    refused = await flight.do(cc.Debate(motion="Ship it now"), ok=False)
    assert "no agent 'decision-debate' is registered" in refused["message"]


async def test_selection_learns_from_how_work_ended_unless_it_is_switched_off(flight: Flight) -> None:
    async def rejected(job: Job) -> Any:
        gate = CriterionResult(check=Check.NON_EMPTY, hard=True, passed=False, message="empty")
        return job.done("half", code=ErrorCode.QUALITY_GATE, quality=(gate,))

    async def broken(job: Job) -> Any:
        return job.done("half", code=ErrorCode.INTERNAL)

    async def slow(job: Job) -> Any:
        await asyncio.Event().wait()

    await flight.register("good", "bad", "broken", "slow", triggers={"keywords": ["report"]})
    flight.worker.scripts |= {"bad": rejected, "broken": broken, "slow": slow}
    for who in ("good", "bad", "broken"):
        await flight.crew.wait(await flight.hand(who, "quarterly report of sales"))
    cut = await flight.hand("slow", "quarterly report of sales")
    await flight.until(lambda: flight.state(cut) is HandoffState.RUNNING)
    await flight.do(cc.CancelHandoff(handoff=cut))
    values = {outcome.agent: outcome.value for outcome in flight.crew.state.outcomes()}
    assert values == {"good": 1.0, "bad": -1.0, "slow": -0.5}, "a broken model says nothing about an agent"

    def learned() -> dict[str, float]:
        rows = flight.crew.selective.select("report of yearly sales")[1].rows
        return {row.id: row.L for row in rows}

    before = learned()
    assert list(before) == ["good", "broken", "slow", "bad"]
    assert before["good"] > before["broken"] == 0.0 > before["slow"] > before["bad"] > -2.0
    await flight.close()
    await flight.open()
    assert learned() == before, "what was learned is in the journal"
    await flight.close()
    await flight.open(learn=False)
    selection = flight.crew.selective.select("report of yearly sales")[1]
    assert {(row.L, row.R) for row in selection.rows} == {(0.0, 0.0)}
