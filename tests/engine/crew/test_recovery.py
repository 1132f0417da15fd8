"""What a killed process leaves, the engine's door, and other protocols' words."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from engine.api.engine import Engine
from engine.core import crew_commands as cc
from engine.core.trust import FolderTrust
from engine.crew.ontology.kinds import ErrorCode, HandoffState, RequestKind
from engine.crew.ontology.results import HandoffResult
from engine.crew.ports import OperatorQuestion
from engine.inquiry.inbox import NeedKind
from tests.engine.crew.flight import CLEAR, Flight, Job, spec_of

D = HandoffState
ASKED = OperatorQuestion(RequestKind.QUESTION, "QUESTION", "Which line?", "Which line is meant?")


async def test_after_a_kill_each_stands_where_it_can_go_on(flight: Flight) -> None:
    """Line 19."""
    await flight.close()
    await flight.open(calls=1)
    await flight.register("runs", "asks", "queued")
    await flight.register("phases", kind="pipeline", receives={"requires_who": False, "min_clarity": 0.0})
    await flight.register("guide", kind="guided")

    async def runs(job: Job) -> Any:
        async with job.model():
            await asyncio.Event().wait()

    async def phases(job: Job) -> Any:
        if job.handoff.progress:
            return job.done(f"went on after {job.handoff.progress['done']}")
        await job.desk.keep(job.run, "pipeline.phase", {"done": "one"})
        await asyncio.Event().wait()
        return None

    async def asks(job: Job) -> Any:
        return job.done((await job.desk.ask(job.run, ASKED)).text)

    async def guide(job: Job) -> Any:
        await asyncio.Event().wait()

    flight.worker.scripts = {"runs": runs, "asks": asks, "phases": phases, "guide": guide}
    asking = await flight.hand("asks")
    pipeline = await flight.hand("phases")
    guided = await flight.hand("guide")
    await flight.until(
        lambda: bool(flight.crew.needs) and bool(flight.crew.state.handoffs[pipeline].progress)
    )
    running = await flight.hand("runs")
    await flight.until(lambda: flight.crew.permits.in_use == 1)
    waiting = await flight.hand("queued")
    assert flight.state(waiting) is D.QUEUED
    flight.clock.advance(20)
    await flight.kill()

    began = list(flight.worker.began)
    await flight.open(calls=1)
    result = flight.crew.state.handoffs[running].result
    assert result is not None
    assert (result.state, result.error_code, result.error) == (D.FAILED, ErrorCode.INTERNAL, "process ended")
    assert (flight.state(pipeline), flight.state(guided)) == (D.PAUSED, D.PAUSED)
    assert flight.state(asking) is D.WAITING_HUMAN
    assert [one.handoff_id for one in flight.crew.needs] == [asking]
    assert (await flight.crew.wait(waiting)).success
    assert flight.worker.began == [*began, "queued"]
    await flight.do(cc.ResumeHandoff(handoff=pipeline))
    assert (await flight.crew.wait(pipeline)).output == "went on after one"
    await flight.do(cc.AnswerRequest(request=flight.crew.needs[0].id, text="line four"))
    assert (await flight.crew.wait(asking)).output == "line four"
    assert len(flight.crew.state.requests) == 1


async def test_an_orderly_end_cancels_what_runs_and_keeps_the_rest(flight: Flight) -> None:
    await flight.register("runs", "asks")
    await flight.register("guide", kind="guided")

    async def runs(job: Job) -> Any:
        job.say("half of it")
        await asyncio.Event().wait()

    async def asks(job: Job) -> Any:
        return job.done((await job.desk.ask(job.run, ASKED)).text)

    flight.worker.scripts = {"runs": runs, "guide": runs, "asks": asks}
    names = [await flight.hand(one) for one in ("runs", "asks", "guide")]
    await flight.until(lambda: bool(flight.crew.needs) and len(flight.crew.state.by_run) == 3)
    await flight.close()
    flight.worker.tasks["asks-2"].cancel()
    flight.worker.tasks.clear()
    await flight.open()
    assert [flight.state(one) for one in names] == [D.CANCELLED, D.WAITING_HUMAN, D.PAUSED]
    result = flight.crew.state.handoffs[names[0]].result
    assert isinstance(result, HandoffResult)
    assert (result.output, result.partial) == ("half of it", True)


async def test_nothing_that_is_queued_in_somebody_elses_journal_begins(flight: Flight) -> None:
    await flight.close()
    await flight.open(calls=1)
    await flight.register("runs", "queued")

    async def runs(job: Job) -> Any:
        async with job.model():
            await asyncio.Event().wait()

    flight.worker.scripts = {"runs": runs, "queued": runs}
    await flight.hand("runs")
    await flight.until(lambda: flight.crew.permits.in_use == 1)
    queued = await flight.hand("queued")
    await flight.kill()
    began = list(flight.worker.began)
    trust = await asyncio.to_thread(FolderTrust, flight.workspace, flight.workspace / "home")
    trust.foreign = True
    await flight.open(trust=trust)
    assert (flight.state(queued), flight.worker.began) == (D.FAILED, began)
    assert flight.crew.state.handoffs[queued].moves[-1].reason.endswith("nor trust")


async def test_commands_go_through_the_engine_and_requests_are_in_its_inbox(tmp_path: Path) -> None:
    engine = await Engine.open(tmp_path)
    try:
        receipt = await engine.submit(cc.RegisterAgent(spec=spec_of("one")), operator="ann")
        assert receipt.ok
        unknown = await engine.submit(cc.Delegate(to="ona", task="x"), operator="ann")
        assert not unknown.ok
        assert "near it: one" in unknown.message
        crew = await engine.crew()
        request = crew.requests.open(None, ASKED)
        await crew.stream.commit()
        (need,) = await engine.inbox()
        assert (need.kind, need.thing) == (NeedKind.REQUEST, request.id)
        assert engine.health.journal == ""
    finally:
        await engine.close()
    engine = await Engine.open(tmp_path)
    try:
        crew = await engine.crew()
        assert [one for one, entry in crew.state.agents.items() if "built-in" not in entry.source] == ["one"]
        assert [one.thing for one in await engine.inbox()] == [request.id]
        answered = await engine.submit(cc.AnswerRequest(request=request.id, text="four"), operator="ann")
        assert answered.ok
        assert await engine.inbox() == ()
    finally:
        await engine.close()


async def test_a_group_whose_program_ended_ends_with_its_last_member(flight: Flight) -> None:
    """Whether its members ended with the session, or rest and end in the next one."""
    await flight.register("runs", "done")
    await flight.register("phases", kind="pipeline", receives={"requires_who": False, "min_clarity": 0.0})

    async def runs(job: Job) -> Any:
        if job.handoff.progress:
            return job.done("went on")
        await job.desk.keep(job.run, "pipeline.phase", {"done": "one"})
        await asyncio.Event().wait()
        return None

    flight.worker.scripts = {"runs": runs, "phases": runs}
    asked = cc.Parallel(to=("done", "runs"), task="all", clarity=CLEAR)
    over = (await flight.do(asked))["group"]
    rests = (await flight.do(cc.Parallel(to=("done", "phases"), task="all", clarity=CLEAR)))["group"]
    sequence = (await flight.do(cc.Sequence(to=("done", "runs", "done"), task="all", clarity=CLEAR)))["group"]
    groups = flight.crew.state.groups
    names = (over, rests, sequence)
    await flight.until(lambda: [len(groups[one].handoffs) for one in names] == [2, 2, 2])
    await flight.until(lambda: flight.worker.ended.count("done") == 3 and len(flight.worker.began) == 6)
    pipeline = groups[rests].handoffs[1]
    await flight.until(lambda: bool(flight.crew.state.handoffs[pipeline].progress))
    await flight.kill()

    await flight.open()
    groups = flight.crew.state.groups
    assert [bool(groups[one].ended) for one in names] == [True, False, True]
    assert (groups[over].ok, groups[over].message) == (True, "1 of 2 succeeded")
    assert (groups[sequence].ok, groups[sequence].message) == (False, "1 of 3 succeeded")
    await flight.do(cc.ResumeHandoff(handoff=pipeline))
    await flight.crew.wait(pipeline)
    assert (groups[rests].ok, groups[rests].message) == (True, "2 of 2 succeeded")
    assert len(groups[rests].handoffs) == 2
