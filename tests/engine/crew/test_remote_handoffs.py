"""Work that is handed to an agent of another engine: two crews, and what carries what each tells."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from app.commands.command import Context, GrammarError
from app.commands.crew_arguments import parse_agent
from engine.core import crew as ce
from engine.core import crew_commands as cc
from engine.core.commands import parse_command
from engine.core.events import payload_of
from engine.core.journal import CREW
from engine.crew.command_handlers import run_crew_command
from engine.crew.handoffs.remote import WAY_S
from engine.crew.ontology.kinds import ErrorCode, HandoffState, RequestKind
from engine.crew.ports import OperatorQuestion
from tests.engine.crew.flight import Flight, Job

D = HandoffState
ASKED = OperatorQuestion(RequestKind.QUESTION, "QUESTION", "Which line?", "Which line is meant?")


class Pair:
    """Two engines; agents that are not registered on the first one are on the second one."""

    def __init__(self, here: Flight, there: Flight) -> None:
        self.here, self.there = here, there
        self._places = {id(here): 0, id(there): 0}
        self.told: list[str] = []

    async def carry(self, *, again: bool = False) -> None:
        """Give each what the other tells it, until nothing more is told; `again` gives each twice."""
        quiet = 0
        while quiet < 20:
            quiet += 1
            await asyncio.sleep(0.005)
            for teller, hearer in ((self.here, self.there), (self.there, self.here)):
                place = self._places[id(teller)]
                for event in await teller.store.read(CREW, place + 1):
                    self._places[id(teller)] = event.version
                    payload = payload_of(event)
                    if not isinstance(payload, ce.HandoffSent):
                        continue
                    quiet = 0
                    given = dict(payload.command)
                    if given["do"] == "crew_take":
                        given["origin"] = "1"
                    self.told.append(f"{given['do']} {given.get('state', '')}".strip())
                    command = parse_command(given)
                    assert isinstance(command, cc.ForCrew)
                    for _ in range(1 + again):
                        receipt = await run_crew_command(hearer.crew, command, "operator:fleet")
                        assert receipt.ok, receipt.message

    def result(self, name: str) -> Any:
        return self.here.crew.state.handoffs[name].result


@pytest.fixture
async def pair(tmp_path: Path) -> AsyncIterator[Pair]:
    flights = []
    for place in ("here", "there"):
        (tmp_path / place).mkdir()
        flight = Flight(tmp_path / place)
        await flight.open(remote=True)
        flights.append(flight)
    pair = Pair(*flights)
    yield pair
    for flight in flights:
        await flight.close()


async def test_the_result_of_another_engine_ends_the_handoff_however_often_it_comes(pair: Pair) -> None:
    await pair.there.register("far")
    name = await pair.here.hand("far")
    assert pair.here.state(name) is D.QUEUED
    await pair.carry(again=True)
    assert pair.told == ["crew_take", "crew_report running", "crew_report completed"]
    assert pair.result(name).output == "done"
    assert pair.result(name).usage.calls == 1
    assert pair.there.worker.began == ["far"]
    assert [move.target for move in pair.here.crew.state.handoffs[name].moves] == [
        *(D.QUEUED, D.RUNNING, D.COMPLETED)
    ]
    assert not pair.here.crew.state.handoffs[name].late


async def test_a_run_waits_for_an_agent_of_another_engine_and_hands_on_its_line(pair: Pair) -> None:
    await pair.there.register("far")
    await pair.here.register("near", may=("far",))

    async def near(job: Job) -> Any:
        (known,) = job.desk.callable_by(job.run, remote=True)
        assert not job.desk.callable_by(job.run)
        return job.done((await job.delegate(known.id)).output)

    async def far(job: Job) -> Any:
        return job.done(" → ".join((*job.context.lineage, job.context.to_agent)))

    pair.here.worker.scripts["near"], pair.there.worker.scripts["far"] = near, far
    name = await pair.here.hand("near")
    await pair.carry()
    assert pair.result(name).output == "near → far"


async def test_a_circle_over_two_engines_is_refused(pair: Pair) -> None:
    await pair.there.register("far", may=("near",))
    await pair.here.register("near", may=("far",))

    async def on(job: Job) -> Any:
        to = {"near": "far", "far": "near"}[job.context.to_agent]
        result = await job.delegate(to)
        return job.done(f"{job.context.to_agent}: {result.output or result.error_code}")

    pair.here.worker.scripts["near"] = pair.there.worker.scripts["far"] = on
    name = await pair.here.hand("near")
    await pair.carry()
    assert pair.result(name).output == f"near: far: {ErrorCode.CYCLE}"


async def test_what_the_other_engine_refuses_is_rejected_here(pair: Pair) -> None:
    await pair.there.register("far", receives={"requires_who": True, "min_clarity": 0.9})
    unclear = await pair.here.hand("far", clarity={"what": "x"})
    unknown = await pair.here.hand("nobody")
    await pair.carry()
    assert (pair.here.state(unclear), pair.here.state(unknown)) == (D.REJECTED, D.REJECTED)
    assert pair.result(unclear).error_code is ErrorCode.INSUFFICIENT_CLARITY
    assert (pair.result(unknown).error_code, pair.result(unknown).error) == (
        *(ErrorCode.UNKNOWN_AGENT, "no agent nobody is registered"),
    )
    assert pair.told.count("crew_take") == 2


async def test_one_that_comes_back_to_its_own_engine_is_rejected(pair: Pair) -> None:
    name = await pair.here.hand("nobody")
    take = cc.TakeHandoff(context={**_context(pair.here, name)}, origin="1")
    await pair.here.do(take)
    assert pair.here.state(name) is D.REJECTED
    assert pair.result(name).error == "no agent nobody is registered here, nor elsewhere"


def _context(flight: Flight, name: str) -> dict[str, Any]:
    return flight.crew.state.handoffs[name].context.model_dump(mode="json")


async def test_the_clock_stands_still_while_the_other_engine_waits_for_the_operator(pair: Pair) -> None:
    await pair.there.register("far")

    async def far(job: Job) -> Any:
        return job.done((await job.desk.ask(job.run, ASKED)).text)

    pair.there.worker.scripts["far"] = far
    name = await pair.here.hand("far", timeout_s=60)
    await pair.carry()
    assert pair.here.state(name) is D.WAITING_HUMAN
    for flight in (pair.here, pair.there):
        flight.clock.advance(500)
    await pair.here.kill()
    await pair.here.open(remote=True)
    await pair.there.do(cc.AnswerRequest(request=pair.there.crew.needs[0].id, text="line four"))
    await pair.carry()
    assert pair.result(name).output == "line four"


async def test_what_ends_here_is_cancelled_there(pair: Pair) -> None:
    await pair.there.register("far")
    await pair.here.register("near", may=("far",))

    async def endless(job: Job) -> Any:
        await asyncio.Event().wait()

    async def near(job: Job) -> Any:
        await job.delegate("far")

    pair.there.worker.scripts["far"], pair.here.worker.scripts["near"] = endless, near
    cancelled = await pair.here.hand("far")
    late = await pair.here.hand("far", timeout_s=20)
    above = await pair.here.hand("near")
    await pair.carry()
    (below,) = pair.here.crew.state.children(above)
    await pair.here.do(cc.PauseHandoff(handoff=cancelled), ok=False)
    await pair.here.do(cc.CancelHandoff(handoff=cancelled, reason="not wanted"))
    await pair.here.do(cc.CancelHandoff(handoff=above))
    pair.here.clock.advance(20 + WAY_S)
    await pair.here.until(lambda: not pair.here.crew.state.handoffs[late].open)
    await pair.carry()
    assert [pair.here.state(each) for each in (cancelled, late, below.id)] == [
        *(D.CANCELLED, D.TIMED_OUT, D.CANCELLED)
    ]
    assert {pair.there.state(each) for each in (cancelled, late, below.id)} == {D.CANCELLED}
    why = pair.there.crew.state.handoffs[cancelled].result
    assert why is not None
    assert why.error == "not wanted"


async def test_after_a_kill_of_who_handed_over_the_result_still_comes(pair: Pair) -> None:
    await pair.there.register("far")
    await pair.here.register("near", may=("far",))
    go = asyncio.Event()

    async def far(job: Job) -> Any:
        await go.wait()
        return job.done("it is done")

    async def near(job: Job) -> Any:
        await job.delegate("far")

    pair.there.worker.scripts["far"], pair.here.worker.scripts["near"] = far, near
    name = await pair.here.hand("far")
    above = await pair.here.hand("near")
    await pair.carry()
    (below,) = pair.here.crew.state.children(above)
    unsent = await pair.here.hand("far")
    for end in (pair.here.kill, pair.here.close):
        await end()
        await pair.here.open(remote=True)
        assert pair.here.state(name) is D.RUNNING
    assert (pair.here.state(above), pair.here.state(below.id)) == (D.FAILED, D.FAILED)
    go.set()
    await pair.carry()
    assert (pair.result(name).output, pair.result(unsent).output) == ("it is done", "it is done")
    assert pair.there.state(below.id) in (D.CANCELLED, D.COMPLETED)
    assert pair.told.count("crew_take") == 3


async def test_after_a_kill_of_who_took_it_in_its_failure_comes_back(pair: Pair) -> None:
    await pair.there.register("far")

    async def endless(job: Job) -> Any:
        await asyncio.Event().wait()

    pair.there.worker.scripts["far"] = endless
    name = await pair.here.hand("far")
    await pair.carry()
    await pair.there.kill()
    await pair.there.open(remote=True)
    await pair.carry()
    assert (pair.here.state(name), pair.result(name).error) == (D.FAILED, "process ended")


async def test_without_other_engines_an_unknown_agent_is_refused_at_once(pair: Pair) -> None:
    assert pair.here.crew.state.remote
    assert parse_agent("Far", Context(crew=pair.here.crew.state)) == "far"
    await pair.here.close()
    await pair.here.open()
    with pytest.raises(GrammarError, match="no agent 'Far' is registered"):
        parse_agent("Far", Context(crew=pair.here.crew.state))
    refused = await pair.here.do(cc.Delegate(to="far", task="look"), ok=False)
    assert refused["message"].startswith("no agent 'far' is registered")
