"""Several handoffs together: one after the other, at once, the best of several, again and again."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from engine.core import crew_commands as cc
from engine.crew.choice import ScoredAgent, Scorer, iterate
from engine.crew.handoffs.contexts import HandoffDraft, operator_context
from engine.crew.ontology.kinds import ErrorCode, HandoffState
from engine.crew.ontology.results import HandoffResult
from engine.crew.ports import HandoffRequest
from tests.crew.flight import CLEAR, Flight, Job, result_of

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
    results = await flight.crew.wait_group(group)
    assert [(one.framework_id, one.key_findings) for one in seen["b"]] == [("a", ("a found it",))]
    assert [one.framework_id for one in seen["c"]] == ["a", "b"]
    assert [one.state for one in results] == [D.COMPLETED, D.COMPLETED, D.FAILED, D.CANCELLED]
    assert results[3].error == "not started"
    assert "d" not in seen
    record = flight.crew.state.groups[group]
    assert not record.ok
    assert flight.crew.state.handoffs[record.handoffs[3]].moves[-1].reason == "not started"

    group = (await flight.do(cc.Sequence(to=("c", "d"), task="all", on_fail="continue", clarity=CLEAR)))[
        "group"
    ]
    assert [one.success for one in await flight.crew.wait_group(group)] == [False, True]
    assert seen["d"] == ()


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
        command = cc.Parallel(to=("a", "b", "c"), task="all", returns="passthrough", clarity=CLEAR)
        group = (await flight.do(command))["group"]
        await flight.until(lambda: len(flight.crew.state.groups[group].handoffs) == 3)
        members = dict(zip("abc", flight.crew.state.groups[group].handoffs, strict=True))
        if cancel:
            await flight.do(cc.CancelHandoff(handoff=members[cancel]))
        for one in order:
            gates[one].set()
            await flight.crew.wait(members[one])
        results = await flight.crew.wait_group(group)
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
    await flight.until(lambda: any(one.reason_code == "QUORUM" for one in flight.crew.needs))
    request = next(one for one in flight.crew.needs if one.reason_code == "QUORUM")
    assert [one.id for one in request.options] == ["retry", "accept", "takeover", "abort"]
    await flight.do(cc.AnswerRequest(request=request.id, option="accept"))
    assert "text of b" in flight.crew.state.groups[record.id].output
    record, _ = await run("abc")
    await flight.until(lambda: any(one.reason_code == "QUORUM" for one in flight.crew.needs))
    request = next(one for one in flight.crew.needs if one.reason_code == "QUORUM")
    fails = {"c"}
    await flight.do(cc.AnswerRequest(request=request.id, option="retry"))
    await flight.until(lambda: flight.crew.state.groups[record.id].ok)
    again = flight.crew.state.groups[record.id]
    tried = [flight.crew.state.handoffs[one] for one in again.handoffs]
    assert [one.context.attempt for one in tried] == [2, 1, 2]
    assert ("text of a" in again.output, "text of b" in again.output) == (True, True)


async def test_fail_fast_cancels_the_others(flight: Flight) -> None:
    await flight.register("a", "b")

    async def a(job: Job) -> Any:
        await flight.until(lambda: "b" in flight.worker.began)
        return job.done("", code=ErrorCode.QUALITY_GATE)

    async def b(job: Job) -> Any:
        await asyncio.Event().wait()

    flight.worker.scripts = {"a": a, "b": b}
    group = (await flight.do(cc.Parallel(to=("a", "b"), task="all", fail_fast=True, clarity=CLEAR)))["group"]
    assert [one.state for one in await flight.crew.wait_group(group)] == [D.FAILED, D.CANCELLED]


async def test_a_synthesis_names_every_source_and_passthrough_calls_no_model(flight: Flight) -> None:
    """Line 23."""
    await flight.register("a", "b", "c", "synthesizer")
    texts = iter(["a says so", "a and b say so", "a, b; c was not there"])

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
    await flight.crew.wait_group(group)
    record = flight.crew.state.groups[group]
    assert record.output == "a and b say so\n\nNot named above: c (gave nothing)."
    group = (await flight.do(asked))["group"]
    await flight.crew.wait_group(group)
    assert flight.crew.state.groups[group].output == "a, b; c was not there"
    assert flight.worker.calls == 3 + 2 + 3 + 1

    calls = flight.worker.calls
    asked = cc.Parallel(to=("a", "b"), task="all", returns="passthrough", clarity=CLEAR)
    await flight.crew.wait_group((await flight.do(asked))["group"])
    assert flight.worker.calls == calls + 2
    await flight.do(cc.RemoveAgent(who="synthesizer"))
    group = (await flight.do(cc.Parallel(to=("a", "c"), task="all", clarity=CLEAR)))["group"]
    await flight.crew.wait_group(group)
    assert "text of a" in flight.crew.state.groups[group].output
    assert "Missing: c." in flight.crew.state.groups[group].output


def ranked(*agents: ScoredAgent) -> Scorer:
    """A selection that gives these agents."""
    return lambda _state, _text, _caller, _previous, available: [
        agent for agent in agents if agent.agent in available
    ]


async def test_selection_falls_back_where_one_cannot_begin_and_asks_about_a_tie(flight: Flight) -> None:
    """Line 24."""
    await flight.register("a", "b", "c")
    codes: dict[str, ErrorCode | None] = {"a": ErrorCode.TOOL_UNAVAILABLE, "b": None, "c": None}

    async def member(job: Job) -> Any:
        return job.done(f"text of {job.context.to_agent}", code=codes[job.context.to_agent])

    flight.worker.scripts = dict.fromkeys("abc", member)
    flight.crew.selective.score = ranked(
        ScoredAgent("a", 0.9, {"T": 0.5}), ScoredAgent("b", 0.5), ScoredAgent("c", 0.3)
    )
    asked = cc.Select(task="who does it", clarity=CLEAR)
    group = (await flight.do(asked))["group"]
    (result,) = await flight.crew.wait_group(group)
    assert result.output == "text of b"
    record = flight.crew.state.groups[group]
    assert [(one["agent"], one["score"]) for one in record.candidates] == [("a", 0.9), ("b", 0.5), ("c", 0.3)]
    assert "could not begin" in record.lost["a"]
    assert record.lost["c"] == "scored lower"
    assert flight.worker.began == ["a", "b"]

    codes["a"] = ErrorCode.QUALITY_GATE
    (result,) = await flight.crew.wait_group((await flight.do(asked))["group"])
    assert result.error_code is ErrorCode.QUALITY_GATE
    assert flight.worker.began == ["a", "b", "a"]

    flight.crew.selective.score = ranked(
        ScoredAgent("b", 0.54, {"T": 0.3, "C": 0.24}), ScoredAgent("c", 0.50)
    )
    group = (await flight.do(asked))["group"]
    await flight.until(lambda: any(one.reason_code == "SELECTION_TIE" for one in flight.crew.needs))
    request = next(one for one in flight.crew.needs if one.reason_code == "SELECTION_TIE")
    assert request.options[0].label == "b 0.5400 (T 0.30, C 0.24)"
    await flight.do(cc.AnswerRequest(request=request.id, option="c"))
    (result,) = await flight.crew.wait_group(group)
    assert result.output == "text of c"
    assert flight.crew.state.groups[group].lost == {"b": "you chose another one"}
    group = (await flight.do(asked))["group"]
    await flight.until(
        lambda: len([one for one in flight.crew.needs if one.reason_code == "SELECTION_TIE"]) == 1
    )
    request = next(one for one in flight.crew.needs if one.reason_code == "SELECTION_TIE")
    await flight.do(cc.AnswerRequest(request=request.id, option="takeover", text="mine"))
    (result,) = await flight.crew.wait_group(group)
    assert (result.output, result.metadata["by"]) == ("mine", "operator")
    flight.crew.attended = False
    (result,) = await flight.crew.wait_group((await flight.do(asked))["group"])
    assert result.output == "text of b"


async def test_a_task_that_speaks_for_nobody_goes_to_larry(flight: Flight) -> None:
    """Line 58, the manager's half."""
    await flight.register("a")
    await flight.register("larry", kind="role", receives={"requires_what": False, "min_clarity": 0.0})
    flight.worker.scripts["larry"] = _talks
    flight.crew.selective.score = ranked()
    receipt = await flight.do(cc.Select(task="hm"))
    assert flight.crew.state.holder == "larry"
    assert "larry has the floor" in receipt["message"]
    refused = await flight.do(cc.Select(task="hm", among=("nobody",)), ok=False)
    assert "no agent nobody" in refused["message"]


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
    flight.crew.attended = False
    group = (await flight.do(asked))["group"]
    (result,) = await flight.crew.wait_group(group)
    record = flight.crew.state.groups[group]
    first, other = (one["agent"] for one in record.candidates)
    assert result.from_agent == first
    assert set(record.lost) == {other}
    (result,) = await flight.crew.wait_group((await flight.do(asked))["group"])
    assert result.from_agent == other
    assert (await flight.do(cc.Select(task="hm")))["agent"] == "larry"
    await flight.close()
    await flight.open()
    assert (await flight.do(asked))["agent"] == "larry"


async def _talks(job: Job) -> Any:
    await asyncio.Event().wait()


class Again:
    """A caller that always wants the same."""

    def __init__(self, again: HandoffDraft) -> None:
        self.again = again

    async def next(self, results: tuple[HandoffResult, ...]) -> HandoffDraft | None:
        return self.again


async def test_iterating_stops_at_its_cap(flight: Flight) -> None:
    crew = flight.crew
    wanted = HandoffDraft(operator_context(crew.state, crew.handoffs.setting, HandoffRequest("a", "go on")))

    async def same(_wanted: HandoffDraft) -> HandoffResult:
        return result_of(wanted.context, "the same")

    assert len(await iterate(wanted, same, Again(wanted))) == 5  # type: ignore[arg-type]
    assert len(await iterate(wanted, same, Again(wanted), most=3)) == 3  # type: ignore[arg-type]


async def test_the_operator_says_what_is_next_in_an_iteration(flight: Flight) -> None:
    await flight.register("a", "b")

    async def a(job: Job) -> Any:
        return job.done("text of a", suggested_next_agents=("b",))

    flight.worker.scripts["a"] = a
    await flight.hand("a", returns="iterate")
    await flight.until(lambda: bool(flight.crew.needs))
    request = flight.crew.needs[0]
    assert [one.id for one in request.options] == ["done", "again", "b"]
    await flight.do(cc.AnswerRequest(request=request.id, option="b", text="now you"))
    await flight.until(lambda: flight.worker.began == ["a", "b"] and len(flight.crew.needs) == 1)
    second = list(flight.crew.state.handoffs.values())[-1]
    assert second.context.task_description == "now you"
    assert [one.framework_id for one in second.context.previous_analyses] == ["a"]
    await flight.do(cc.AnswerRequest(request=flight.crew.needs[0].id, option="done"))
    await flight.crew.handoffs.moves.settled()
    assert not flight.crew.needs


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
    assert "up to 6 model calls" in said["message"]
    assert (await flight.crew.wait(said["handoff"])).output == "pro con"
    assert [one.reason_code for one in flight.crew.needs] == ["DEBATE_CONTESTED"]
    refused = await flight.do(cc.Debate(motion="Ship it now"), ok=False)
    assert "no agent 'decision-debate' is registered" in refused["message"]
