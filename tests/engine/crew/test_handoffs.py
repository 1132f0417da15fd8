"""Handing work over: admission, the queue, permits, moves, results."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from engine.agent.steering.budget_status import BudgetStatus
from engine.agent.steering.budget_status import BudgetStatusLine as BudgetLine
from engine.core.budgets import BudgetKind
from engine.core.crew_commands import EnableAgent, RegisterAgent, RetryHandoff, SetPriority
from engine.core.journal import CREW
from engine.crew.handoffs.schedule import WaitingQueue, effective_priority
from engine.crew.ontology.kinds import MOVES, ErrorCode, HandoffState, IllegalTransition
from engine.crew.ontology.spec_parser import parse_spec
from engine.crew.ports import HandoffError, HandoffRequest
from tests.engine.crew.flight import CLEAR, Flight, Job, result_of, spec_of

D = HandoffState


async def test_a_limit_of_one_model_call_does_not_stop_three_levels(flight: Flight) -> None:
    """Line 9."""
    await flight.close()
    await flight.open(calls=1)
    for name, may in (("a", ("b",)), ("b", ("c",)), ("c", ())):
        await flight.register(name, may=may)
    most = 0

    def thinks_then_asks(below: str) -> Any:
        async def script(job: Job) -> Any:
            nonlocal most
            async with job.model():
                most = max(most, flight.crew.permits.in_use)
                await asyncio.sleep(0)
            if below:
                answer = await job.delegate(below)
                assert answer.success
                async with job.model():
                    await asyncio.sleep(0)
                return job.done(f"{job.context.to_agent} of {answer.output}")
            return job.done("c")

        return script

    flight.worker.scripts = {
        "a": thinks_then_asks("b"),
        "b": thinks_then_asks("c"),
        "c": thinks_then_asks(""),
    }
    name = await flight.hand("a")
    result = await flight.crew.wait(name)
    assert result.output == "a of b of c"
    assert most == 1
    assert flight.crew.permits.in_use == 0
    below = flight.crew.state.children(name)[0]
    assert below.context.lineage == ("a",)
    assert below.context.root_id == name
    assert below.context.previous_analyses == ()


async def test_a_cycle_and_a_seventh_agent_are_refused_before_they_run(flight: Flight) -> None:
    """Line 10."""
    await flight.register("a", may=("b",))
    await flight.register("b", may=("a",))
    refused = []

    async def a(job: Job) -> Any:
        return job.done((await job.delegate("b")).output)

    async def b(job: Job) -> Any:
        refused.append(await job.delegate("a"))
        return job.done("b")

    flight.worker.scripts = {"a": a, "b": b}
    await flight.crew.wait(await flight.hand("a"))
    assert [one.error_code for one in refused] == [ErrorCode.CYCLE]
    assert refused[0].state is D.REJECTED
    assert flight.worker.began == ["a", "b"]

    ids = [f"d{number}" for number in range(1, 8)]
    for one, below in zip(ids, [*ids[1:], ""], strict=True):
        await flight.register(one, may=(below,) if below else ())

    async def deeper(job: Job) -> Any:
        below = ids[ids.index(job.context.to_agent) + 1]
        answer = await job.delegate(below)
        return job.done(f"{answer.error_code or answer.output}")

    flight.worker.scripts = dict.fromkeys(ids, deeper)
    assert (await flight.crew.wait(await flight.hand("d1"))).output == "DEPTH_LIMIT"
    assert "d7" not in flight.worker.began


async def test_admission_asks_in_its_order_and_the_first_no_counts(flight: Flight) -> None:
    """Line 1, at the manager: refused without a run."""
    strict = {"requires_who": True, "requires_success": True, "min_clarity": 0.5}
    server = {"mcp_servers": [{"server": "search", "required": True}]}
    await flight.register("open", "closed")
    await flight.register("strict", receives=strict)
    await flight.register("searcher", tools=server)
    await flight.register("caller", may=("open",))
    await flight.do(EnableAgent(who="closed", enabled=False))

    async def code(to: str, **more: Any) -> str:
        return str(flight.crew.state.handoffs[await flight.hand(to, **more)].result.error_code)  # type: ignore[union-attr]

    assert await code("closed") == "NOT_CALLABLE"
    half = {"what": "x y z", "what_clarity": 1.0, "who": "a b c", "who_clarity": 0.8}
    assert await code("strict", clarity=half) == "INSUFFICIENT_CLARITY"
    assert await code("searcher") == "TOOL_UNAVAILABLE"
    receipt = await flight.do(RetryHandoff(handoff="h-"), ok=False)
    assert "say more of it" in receipt["message"]
    assert flight.worker.began == []
    spent = BudgetLine(BudgetKind.USD, 1.0, 1.0)
    flight.ground.standing = (BudgetStatus("workspace", (spent,)),)
    assert await code("open") == "BUDGET"
    flight.ground.standing = ()

    async def to_closed(job: Job) -> Any:
        answers = [await job.delegate("strict"), await job.delegate("nobody"), await job.delegate("caller")]
        return job.done(" ".join(str(one.error_code) for one in answers))

    flight.worker.scripts["caller"] = to_closed
    said = (await flight.crew.wait(await flight.hand("caller"))).output
    assert said == "NOT_CALLABLE UNKNOWN_AGENT BAD_CONTEXT"


async def test_eight_handoffs_are_open_below_one_and_no_more(flight: Flight) -> None:
    await flight.register("boss", may=("hand",))
    await flight.register("hand")
    go = asyncio.Event()

    async def boss(job: Job) -> Any:
        asks = [HandoffRequest("hand", f"task {number}") for number in range(9)]
        answers = await job.desk.gather(job.run, asks)
        return job.done(" ".join(str(one.error_code or one.output) for one in answers))

    async def hand(job: Job) -> Any:
        await go.wait()
        return job.done(job.context.task_description)

    flight.worker.scripts = {"boss": boss, "hand": hand}
    name = await flight.hand("boss")
    await flight.until(lambda: flight.worker.began.count("hand") == 8)
    go.set()
    answers = (await flight.crew.wait(name)).output
    assert answers.endswith("task 7 FANOUT_LIMIT")


async def test_urgent_overtakes_and_waiting_is_not_overtaken_for_ever(flight: Flight) -> None:
    """Line 15."""
    now, urgent = 0.0, {"old": 1, "high": 2, "normal": 1, "urgent": 3}
    line = WaitingQueue(lambda: now, lambda name: urgent[name])
    line.join("old")
    line.join("urgent")
    assert line.order == ("urgent", "old")
    line.drop("urgent")
    now = 120.0
    line.join("normal")
    line.join("high")
    assert line.order == ("old", "high", "normal")
    line.join("urgent")
    assert line.order[:2] == ("old", "urgent")
    assert [effective_priority(1, waited) for waited in (0, 59, 60, 120, 999)] == [1, 1, 2, 3, 3]

    await flight.close()
    await flight.open(calls=1)
    await flight.register("busy", "slow", "quick")
    go = asyncio.Event()

    async def busy(job: Job) -> Any:
        async with job.model():
            await go.wait()
        return job.done()

    flight.worker.scripts["busy"] = busy
    first = await flight.hand("busy")
    await flight.until(lambda: flight.crew.permits.in_use == 1)
    normal, late = await flight.hand("slow"), await flight.hand("quick")
    assert flight.state(normal) is D.QUEUED
    await flight.do(SetPriority(handoff=late, priority=3))
    assert flight.crew.handoffs.moves.line.order in ((late, normal), (normal,))
    go.set()
    for name in (first, normal, late):
        await flight.crew.wait(name)
    assert flight.worker.began == ["busy", "quick", "slow"]


async def test_illegal_moves_raise_and_change_nothing(flight: Flight) -> None:
    """Line 16."""
    await flight.register("one")
    name = await flight.hand("one")
    await flight.crew.wait(name)
    before, version = flight.crew.state.handoffs[name], flight.crew.state.version
    for target in HandoffState:
        with pytest.raises(IllegalTransition):
            flight.crew.handoffs.moves.move(name, target)
    go = asyncio.Event()

    async def waits(job: Job) -> Any:
        await go.wait()
        return job.done()

    assert flight.crew.state.version == version
    assert flight.crew.state.handoffs[name] == before
    flight.worker.scripts["one"] = waits
    running = await flight.hand("one")
    await flight.until(lambda: bool(flight.crew.state.handoffs[running].run))
    version = flight.crew.state.version
    for target in set(HandoffState) - MOVES[D.RUNNING]:
        with pytest.raises(IllegalTransition):
            flight.crew.handoffs.moves.move(running, target)
    assert flight.crew.state.version == version
    go.set()
    await flight.crew.wait(running)
    moves = flight.crew.state.handoffs[running].moves
    assert [(move.seq, move.target) for move in moves] == [(1, D.QUEUED), (2, D.RUNNING), (3, D.COMPLETED)]


async def test_a_second_result_is_dropped_and_another_agents_refused(flight: Flight) -> None:
    """Line 17; R-8: who is suggested and does not exist becomes a warning."""
    await flight.register("one", "two")
    errors: list[str] = []

    async def one(job: Job) -> Any:
        wrong = result_of(job.context).model_copy(update={"from_agent": "two"})
        for made in (wrong, job.done("first", suggested_next_agents=("two", "nobody")), job.done("second")):
            try:
                await job.desk.accept(job.run, made)
            except HandoffError as error:
                errors.append(error.message)

    flight.worker.scripts["one"] = one
    name = await flight.hand("one")
    result = await flight.crew.wait(name)
    await flight.until(lambda: len(errors) == 2)
    assert "was sent to one" in errors[0]
    assert "too late" in errors[1]
    handoff = flight.crew.state.handoffs[name]
    assert handoff.late == 1
    assert handoff.result == result
    assert result.output == "first"
    assert result.suggested_next_agents == ("two",)
    assert "nobody" in result.warnings[0]
    assert result.to_agent == "user"
    assert result.usage.calls == 1


async def test_a_retry_is_a_new_handoff_and_the_old_one_stays(flight: Flight) -> None:
    """Line 18."""
    await flight.register("one")
    tries = iter([ErrorCode.QUALITY_GATE, None])

    async def one(job: Job) -> Any:
        code = next(tries)
        return job.done("poor" if code else "good", code=code)

    flight.worker.scripts["one"] = one
    name = await flight.hand("one")
    await flight.crew.wait(name)
    await flight.crew.stream.commit()
    rows = [event for event in await flight.store.read(CREW) if name in event.body]
    before = flight.crew.state.handoffs[name].result
    assert before is not None
    assert before.output == "poor"
    after = (await flight.do(RetryHandoff(handoff=name)))["handoff"]
    assert (await flight.crew.wait(after)).output == "good"
    context = flight.crew.state.handoffs[after].context
    assert after != name
    assert (context.retry_of, context.attempt) == (name, 2)
    await flight.crew.stream.commit()
    now = [event for event in await flight.store.read(CREW) if f'"handoff":"{name}"' in event.body]
    assert [event.body for event in now] == [event.body for event in rows][: len(now)]
    assert flight.crew.state.handoffs[name].result == before


async def test_failures_that_pass_are_tried_again_after_a_while(flight: Flight) -> None:
    await flight.register("one")
    await flight.register("boss", may=("one",))
    codes = iter([ErrorCode.RATE_LIMIT, ErrorCode.MODEL_NETWORK, None])

    async def one(job: Job) -> Any:
        code = next(codes)
        return job.done(
            "at last" if code is None else "", code=code, metadata={"retry_after": 7} if code else {}
        )

    async def boss(job: Job) -> Any:
        return job.done((await job.delegate("one")).output)

    flight.worker.scripts = {"one": one, "boss": boss}
    name = await flight.hand("boss")
    for tries in (1, 2):
        await flight.until(lambda tries=tries: len(_ended(flight, "one")) == tries)  # type: ignore[misc]
        await asyncio.sleep(0.01)
        assert flight.worker.began.count("one") == tries
        flight.clock.advance(7)
    assert (await flight.crew.wait(name)).output == "at last"
    assert [one.context.attempt for one in flight.crew.state.handoffs.values() if one.agent == "one"] == [
        1,
        2,
        3,
    ]


def _ended(flight: Flight, agent: str) -> list[Any]:
    return [one for one in flight.crew.state.handoffs.values() if one.agent == agent and not one.open]


async def test_a_newer_version_does_not_touch_what_runs(flight: Flight) -> None:
    await flight.register("one")
    go = asyncio.Event()

    async def one(job: Job) -> Any:
        await go.wait()
        mine = job.desk.handoff_of(job.run)
        assert mine is not None
        return job.done(mine.spec.version)

    flight.worker.scripts["one"] = one
    name = await flight.hand("one")
    receipt = await flight.do(RegisterAgent(spec={**spec_of("one"), "version": "2.0.0"}))
    assert receipt["agent"] == "one"
    go.set()
    assert (await flight.crew.wait(name)).output == "1.0.0"
    entry = flight.crew.state.agents["one"]
    assert (entry.spec.version, entry.runs, entry.successes) == ("2.0.0", 1, 1)
    refused = await flight.do(RegisterAgent(spec={"id": "Bad", "type": "fuzzer"}), ok=False)
    assert "id:" in refused["message"]
    assert "type:" in refused["message"]
    sub = parse_spec(spec_of("sub"))

    async def with_sub(job: Job) -> Any:
        answer = await job.delegate("sub", spec=sub)
        return job.done(answer.output)

    flight.worker.scripts["one"] = with_sub
    assert (await flight.crew.wait(await flight.hand("one", clarity=CLEAR))).success
