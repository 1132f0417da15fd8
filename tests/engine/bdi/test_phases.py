"""A cycle run phase by phase, and tags that follow goals (spec §1.6, §7: 60)."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.bdi.agent import BdiAgent
from engine.bdi.cycle import CycleReport
from engine.bdi.intentions import Message, Performative, Phase
from engine.bdi.parser import parse_literal, parse_plan, parse_program
from engine.bdi.saved_state import Data, SavedStateError
from engine.bdi.terms import Struct
from engine.bdi.trace import EventSelected, StepRun, TraceEvent
from tests.engine.bdi.corpus import CORPUS


class Driven:
    """One agent of the corpus whose actions succeed, at a millisecond a cycle."""

    def __init__(self, name: str) -> None:
        self.program = parse_program(CORPUS[name], "ag.asl")
        self.said: list[str] = []
        self.trace: list[TraceEvent] = []
        self.now = 0.0
        self.agent = self._made()

    def _made(self) -> BdiAgent:
        return BdiAgent("ag", self.program, say=self.said.append, tracer=self.trace.append)

    def whole(self) -> bool:
        """A cycle at once."""
        return self._answered([self.agent.cycle(self.now)])

    def apart(self) -> bool:
        """A cycle in three parts."""
        return self._answered([self.agent.advance(self.now) for _ in Phase])

    def taken_over(self) -> bool:
        """A cycle in three parts, each run by another agent from the saved state of the one before."""
        reports = []
        for _ in Phase:
            try:
                data = json.loads(json.dumps(self.agent.save()))
            except SavedStateError:  # within a `for`
                reports.append(self.agent.advance(self.now))
                continue
            kept = len(self.trace)
            self.agent = self._made()
            del self.trace[kept:]
            self.agent.restore(data)
            reports.append(self.agent.advance(self.now))
        return self._answered(reports)

    def _answered(self, reports: list[CycleReport]) -> bool:
        for report in reports:
            for request in report.requests:
                self.agent.feedback(request.number, True)
        self.now += 1
        return any(report.worked for report in reports)

    def state(self) -> tuple[list[str], list[TraceEvent], Data | None]:
        try:
            return self.said, self.trace, self.agent.save()
        except SavedStateError:  # within a `for`
            return self.said, self.trace, None


@settings(max_examples=100, deadline=None)
@given(
    st.sampled_from(sorted(CORPUS)), st.lists(st.sampled_from(["whole", "apart", "taken_over"]), max_size=40)
)
def test_three_phases_do_what_a_cycle_does(name: str, ways: list[str]) -> None:
    """Checklist 60: in any mixture with whole cycles, and from a saved state of any phase."""
    cycles, phases = Driven(name), Driven(name)
    for way in ways:
        assert getattr(phases, way)() == cycles.whole()
    assert phases.state() == cycles.state()


def finish(one: BdiAgent) -> CycleReport:
    """Run what is left of a cycle that is under way."""
    parts = [CycleReport(worked=False)]
    while one.phase is not Phase.SENSE:
        parts.append(one.advance())
    return CycleReport(
        any(part.worked for part in parts),
        tuple(request for part in parts for request in part.requests),
        tuple(message for part in parts for message in part.messages),
    )


def agent(program: str, *, tag_goals: bool = False) -> tuple[BdiAgent, list[TraceEvent]]:
    trace: list[TraceEvent] = []
    return BdiAgent("ag", parse_program(program), tracer=trace.append, tag_goals=tag_goals), trace


def test_the_host_may_stop_between_any_two_phases() -> None:
    """Checklist 60: the event is handled in one phase, the step runs in the next."""
    one, trace = agent("!s. +!s <- act(1).")
    assert (one.phase, one.cycles) == (Phase.SENSE, 0)
    one.advance()
    assert (one.phase, one.cycles) == (Phase.DELIBERATE, 1)
    assert not [event for event in trace if isinstance(event, EventSelected)]
    one.advance()
    assert (one.phase, one.cycles) == (Phase.ACT, 1)
    assert not [event for event in trace if isinstance(event, StepRun)]
    (request,) = one.advance().requests
    assert (one.phase, one.cycles, request.action) == (Phase.SENSE, 1, Struct("act", (1,)))


def test_what_comes_between_phases_is_sensed_in_the_next_cycle() -> None:
    one, _ = agent("+seen <- act(seen).")
    one.advance()
    one.perceive([parse_literal("seen")])
    assert not finish(one).worked
    assert one.cycle().requests


def test_a_message_is_reported_by_the_phase_that_sent_it() -> None:
    one, _ = agent("p(1).")
    one.receive(Message("bob", "ag", Performative.ASK_ONE, parse_literal("p(1)"), 1))
    (answer,) = one.advance().messages
    assert answer.receiver == "bob"
    assert not finish(one).messages


def test_an_answer_that_waits_to_be_reported_is_saved() -> None:
    program = "+?p(X) <- act; X = 1."
    one, _ = agent(program)
    one.receive(Message("bob", "ag", Performative.ASK_ONE, parse_literal("p(2)"), 1))
    (request,) = one.cycle().requests
    one.feedback(request.number, success=False)
    other, _ = agent(program)
    other.restore(json.loads(json.dumps(one.save())))
    assert other.cycle().messages == one.cycle().messages != ()


def test_a_cycle_under_way_is_finished_before_another_begins() -> None:
    one, _ = agent("!s. +!s <- act(1).")
    assert finish(one) == CycleReport(worked=False)
    one.advance()
    with pytest.raises(ValueError, match="in the middle of a cycle, before deliberate"):
        one.cycle()
    assert finish(one).requests
    assert (one.phase, one.cycles) == (Phase.SENSE, 1)


def test_a_saved_state_with_an_unknown_phase_is_refused() -> None:
    one, _ = agent("")
    with pytest.raises(SavedStateError, match="'dream' is not a valid Phase"):
        one.restore({**one.save(), "phase": "dream"})


# ------------------------------------------------------------------ tags


def test_a_tag_goes_from_the_goal_to_its_intention_and_ends_with_it() -> None:
    one, _ = agent("+!s <- act; act.")
    one.achieve(parse_literal("s"), tag="order-7")
    assert one.tags() == {"order-7"}
    (first,) = one.cycle().requests
    assert [intention.tag for intention in one.intentions.values()] == ["order-7"]
    one.feedback(first.number, success=True)
    (second,) = one.cycle().requests
    one.feedback(second.number, success=True)
    assert one.tags() == set()


def test_initial_goals_are_tagged_only_when_that_is_asked_for() -> None:
    program = "!a. ?b. !c. +!a <- .suspend. +!c <- !!d; .suspend. +?b <- .suspend. +!d <- .suspend."
    one, _ = agent(program, tag_goals=True)
    other, _ = agent(program)
    assert one.tags() == {"goal1", "goal2", "goal3"}
    while not one.idle:
        one.cycle()
    assert [(intention.tag) for intention in one.intentions.values()] == ["goal1", "goal2", "goal3", ""]
    assert other.tags() == set()


def test_a_goal_from_a_message_has_no_tag() -> None:
    one, _ = agent("+!s <- .suspend.", tag_goals=True)
    one.receive(Message("bob", "ag", Performative.ACHIEVE, parse_literal("s"), 1))
    one.cycle()
    assert len(one.intentions) == 1
    assert one.tags() == set()


@pytest.mark.parametrize("program", ["", "+!s <- .fail.", "+!s : false.", "+!s <- .drop_intention."])
def test_the_tag_of_a_goal_that_fails_or_is_dropped_vanishes(program: str) -> None:
    one, _ = agent(program)
    one.achieve(parse_literal("s"), tag="t")
    one.cycle()
    assert one.tags() == set()


def test_a_goal_whose_failure_is_handled_keeps_its_tag_until_that_is_done() -> None:
    one, _ = agent("-!s <- act.")
    one.achieve(parse_literal("s"), tag="t")
    one.cycle()
    assert one.tags() == {"t"}
    (request,) = one.cycle().requests
    assert one.tags() == {"t"}
    one.feedback(request.number, success=True)
    assert one.tags() == set()


def test_a_tag_waits_with_a_goal_whose_plan_is_being_made_and_is_saved() -> None:
    one, _ = agent("")
    one.on_missing_plan = lambda event: True
    one.achieve(parse_literal("s"), tag="t")
    one.achieve(parse_literal("u"), tag="v")
    one.cycle()
    other, _ = agent("")
    other.restore(json.loads(json.dumps(one.save())))
    assert other.tags() == {"t", "v"}
    other.plans.add(parse_plan("+!s <- .suspend"))
    other.plans.add(parse_plan("+!u"))
    other.resume(1)
    other.cycle()
    other.cycle()
    assert other.tags() == {"t"}
