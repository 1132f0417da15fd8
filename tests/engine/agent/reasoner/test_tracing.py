"""While tracing is on every change of beliefs, events and intentions is journaled; otherwise none is."""

from __future__ import annotations

from engine.agent.reasoner.actions import LIMITS
from engine.agent.reasoner.run import as_json
from engine.bdi.agent import BdiAgent
from engine.bdi.parser import parse_program
from engine.bdi.trace import TraceEvent
from engine.core import commands as cmd
from engine.core import events as ev
from tests.engine.agent.reasoner.conftest import Fly

PROGRAM = """
b(1). b(2).
!go(0).
+!go(3) <- !missing.
+!go(N) <- +seen(N); -b(N); ?b(X); !!side(N); !go(N + 1).
+!side(N) <- .print(side, N).
+seen(N) : N > 0 <- .print(seen, N).
-!go(N)[error(E)] <- .print(E).
"""


async def test_the_trace_is_that_of_the_reasoner_alone_record_by_record(fly: Fly) -> None:
    flight = await fly(PROGRAM, tracing=True, generation={"on": False})
    state = await flight.poised()
    await flight.do(cmd.Run)
    await flight.idle()
    traced = [one for one in await flight.traced() if "session_cwd" not in str(one)]
    traced = [one for one in traced if "workspace_entries" not in str(one)]

    told: list[TraceEvent] = []
    alone = BdiAgent("pilot", parse_program(PROGRAM.replace("!go(0).", "", 1), "program.asl"), limits=LIMITS)
    alone.tracer = told.append
    alone.achieve(parse_program("go(0).").beliefs[0].literal)
    while not alone.idle:
        alone.cycle()
    expected = [as_json(one) for one in told]
    assert [_kind(one) for one in traced] == [_kind(one) for one in expected]
    assert state.tracing


def _kind(record: dict[str, object]) -> tuple[object, ...]:
    return tuple(str(record.get(key)) for key in ("record", "event", "belief", "plan", "step", "change"))


async def test_each_record_bears_its_cycle_and_they_come_in_order(fly: Fly) -> None:
    flight = await fly(PROGRAM, tracing=True, generation={"on": False})
    await flight.do(cmd.Run)
    await flight.idle()
    cycles = [one["cycle"] for one in await flight.traced()]
    assert cycles == sorted(cycles)
    assert cycles[-1] > 3
    kinds = {one["record"] for one in await flight.traced()}
    assert {"BeliefAdded", "BeliefRemoved", "EventQueued", "EventSelected", "PlanSelected"} <= kinds
    assert {"IntentionChanged", "StepRun", "GoalFailed", "GoalAchieved"} <= kinds


async def test_no_record_is_kept_while_tracing_is_off(fly: Fly) -> None:
    flight = await fly(PROGRAM, generation={"on": False})
    await flight.do(cmd.Run)
    await flight.idle()
    assert await flight.traced() == []
    assert len(await flight.said()) > 3


async def test_tracing_is_switched_while_the_agent_runs(fly: Fly) -> None:
    flight = await fly("!l. +!l <- !l.")
    await flight.do(cmd.Run)
    await flight.until(lambda s: s.mind and s.mind.cycles > 100)
    assert "tracing is on" in (await flight.do(cmd.SetTracing, on=True)).message
    state = await flight.state()
    await flight.until(lambda s: s.mind.cycles > state.mind.cycles + 100)
    await flight.do(cmd.SetTracing, on=False)
    state = await flight.state()
    await flight.until(lambda s: s.mind.cycles > state.mind.cycles + 100)
    assert "already" in (await flight.do(cmd.SetTracing, on=False)).message
    on = False
    for event in await flight.events():
        said = ev.payload_of(event)
        if isinstance(said, ev.TracingSet):
            on = said.on
        elif isinstance(said, ev.ReasonerAdvanced):
            assert bool(said.trace) == (on and said.phases > 0), event.ref


async def test_what_the_operator_does_is_in_the_trace(fly: Fly) -> None:
    flight = await fly("!w. +!w <- .wait(600000). +told <- true.", tracing=True)
    await flight.do(cmd.Run)
    await flight.until(lambda s: s.mind and s.mind.idle)
    await flight.do(cmd.TellBelief, literal="told")
    await flight.until(lambda s: "told" in s.held_beliefs)
    await flight.do(cmd.TellBelief, literal="told", removed=True)
    await flight.until(lambda s: "told" not in s.held_beliefs)
    for how in ("suspend", "resume", "drop"):
        await flight.do(cmd.SteerIntention, intention=1, how=how)
    await flight.idle()
    records = [(one["record"], one.get("belief", one.get("change"))) for one in await flight.traced()]
    assert ("BeliefAdded", "told[source(operator)]") in records
    assert ("BeliefRemoved", "told[source(operator)]") in records
    assert [change for record, change in records if record == "IntentionChanged"][-3:] == [
        "suspended",
        "resumed",
        "dropped",
    ]
