"""Clocks and ends: deadlines that stand still, timeouts, cancelling what is below first."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import pytest

from engine.core.crew_commands import AnswerRequest, CancelHandoff, PauseHandoff, ResumeHandoff
from engine.core.journal import CREW
from engine.crew.ontology.kinds import ErrorCode, HandoffState, RequestKind
from engine.crew.ports import HandoffRequest, OperatorQuestion
from tests.engine.crew.flight import Flight, Job

D = HandoffState
ASKED = OperatorQuestion(RequestKind.QUESTION, "QUESTION", "Which line?", "Which line is meant?")


async def test_a_child_ends_before_its_parent_and_waiting_stops_both_clocks(flight: Flight) -> None:
    """Line 11."""
    await flight.register("boss", may=("hand",))
    await flight.register("hand")

    async def boss(job: Job) -> Any:
        flight.clock.advance(10)
        answer = await job.delegate("hand", timeout_s=80_000)
        return job.done(answer.output or str(answer.error_code))

    async def hand(job: Job) -> Any:
        answer = await job.desk.ask(job.run, ASKED)
        await asyncio.Event().wait()
        return job.done(answer.text)

    flight.worker.scripts = {"boss": boss, "hand": hand}
    name = await flight.hand("boss", timeout_s=100)
    await flight.until(lambda: bool(flight.crew.needs))
    child = flight.crew.state.children(name)[0]
    assert child.limit_s == 100 - 10 - 2
    assert child.state is D.WAITING_HUMAN
    left = flight.crew.handoffs.moves.deadlines.left_s
    assert (left(name), left(child.id)) == (90, 88)
    flight.clock.advance(1_000)
    assert (left(name), left(child.id)) == (90, 88)
    await flight.do(AnswerRequest(request="1", text="line four"))
    assert flight.state(child.id) is D.RUNNING
    flight.clock.advance(30)
    assert (left(name), left(child.id)) == (60, 58)
    await flight.do(PauseHandoff(handoff=child.id))
    flight.clock.advance(500)
    assert (left(name), left(child.id)) == (60, 58)
    await flight.do(ResumeHandoff(handoff=child.id))
    assert flight.worker.resumed == [child.id]
    flight.clock.advance(58)
    result = await flight.crew.wait(child.id)
    assert result.state is D.TIMED_OUT
    assert (await flight.crew.wait(name)).output == "TIMEOUT"
    assert result.duration_seconds == 88


async def test_a_child_for_which_no_time_is_left_does_not_begin(flight: Flight) -> None:
    await flight.register("boss", may=("hand",))
    await flight.register("hand")

    async def boss(job: Job) -> Any:
        flight.clock.advance(8)
        return job.done(str((await job.delegate("hand")).error_code))

    flight.worker.scripts["boss"] = boss
    assert (await flight.crew.wait(await flight.hand("boss", timeout_s=10))).output == "TIMEOUT"
    assert flight.worker.began == ["boss"]


@pytest.mark.parametrize("deaf", [False, True])
async def test_a_timeout_keeps_what_was_said_and_waits_five_seconds_at_most(
    flight: Flight, deaf: bool
) -> None:
    """Line 12."""
    await flight.register("one")

    async def one(job: Job) -> Any:
        job.say("so far I found")
        await asyncio.Event().wait()

    flight.worker.scripts["one"] = one
    flight.worker.deaf = deaf
    name = await flight.hand("one", timeout_s=30, priority=3)
    await flight.until(lambda: bool(flight.crew.state.handoffs[name].run))
    flight.clock.advance(30)
    if deaf:
        await flight.until(lambda: flight.crew.handoffs.moves.live[name].cutting is not None)
        await asyncio.sleep(0.01)
        assert flight.state(name) is D.RUNNING
        flight.clock.advance(5)
    result = await flight.crew.wait(name)
    assert (result.state, result.error_code) == (D.TIMED_OUT, ErrorCode.TIMEOUT)
    assert (result.output, result.partial) == ("so far I found", True)
    assert [one.reason_code for one in flight.crew.needs] == ["URGENT_TIMEOUT"]
    flight.worker.deaf = False
    await flight.worker.stop(flight.crew.state.handoffs[name].run, "")


async def test_cancelling_ends_what_is_below_first_and_leaves_nothing(flight: Flight) -> None:
    """Line 13."""
    await flight.register("top", may=("mid",))
    await flight.register("mid", may=("asker", "runner"))
    await flight.register("asker", "runner")
    processes: list[asyncio.subprocess.Process] = []

    def asks_below(*below: str) -> Any:
        async def script(job: Job) -> Any:
            await job.desk.gather(job.run, [HandoffRequest(one, "do it") for one in below])
            return job.done()

        return script

    async def asker(job: Job) -> Any:
        return job.done((await job.desk.ask(job.run, ASKED)).text)

    async def runner(job: Job) -> Any:
        process = await asyncio.create_subprocess_exec(sys.executable, "-c", "import time; time.sleep(600)")
        processes.append(process)
        try:
            await process.wait()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()

    flight.worker.scripts = {"top": asks_below("mid"), "mid": asks_below("asker", "runner"),
                             "asker": asker, "runner": runner}  # fmt: skip
    name = await flight.hand("top")
    await flight.until(lambda: bool(processes) and bool(flight.crew.needs))
    await flight.do(CancelHandoff(handoff=name, reason="enough"))
    ended = [event for event in await flight.store.read(CREW)
             if event.kind in ("crew.handoff_ended", "crew.human_closed")]  # fmt: skip
    order = [
        flight.crew.state.handoffs[one].agent if (one := _of(event.body)) else "request" for event in ended
    ]
    assert order.index("request") < order.index("asker")
    assert order.index("asker") < order.index("mid")
    assert order.index("runner") < order.index("mid") < order.index("top")
    assert {one.state for one in flight.crew.state.handoffs.values()} == {D.CANCELLED}
    assert not flight.crew.needs
    assert processes[0].returncode is not None
    assert all(task.done() for task in flight.worker.tasks.values())
    await flight.until(lambda: not flight.crew.handoffs.moves._tasks)
    again = await flight.do(CancelHandoff(handoff=name))
    assert "over already" in again["message"]


def _of(body: str) -> str:
    import json

    return str(json.loads(body).get("handoff", ""))


async def test_who_waits_and_is_cancelled_cancels_the_handoff_and_stays_cancelled(flight: Flight) -> None:
    await flight.register("boss", may=("hand",))
    await flight.register("hand")
    seen: list[str] = []

    async def boss(job: Job) -> Any:
        waiting = asyncio.create_task(job.delegate("hand"))
        await flight.until(lambda: "hand" in flight.worker.began)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        seen.append("cancelled")
        return job.done()

    async def hand(job: Job) -> Any:
        await asyncio.Event().wait()

    flight.worker.scripts = {"boss": boss, "hand": hand}
    name = await flight.hand("boss")
    assert (await flight.crew.wait(name)).success
    assert seen == ["cancelled"]
    assert flight.state(flight.crew.state.children(name)[0].id) is D.CANCELLED
