from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inquiry_events import Stream, step

from engine.core import events as ev
from engine.core.actions import ResultStatus, Reversibility, SandboxSession
from engine.core.goals import GoalStatus
from engine.core.memory import MemoryItem
from engine.core.memory_events import MemoriesForgotten, MemoryStored
from engine.core.plan import StepStatus
from engine.core.reasoner import HeldBelief, MindState
from engine.inquiry.record import Record, UnknownSubjectError
from engine.inquiry.relations import Relation
from engine.inquiry.why import backward, cascade, forward


def written_and_run() -> Stream:
    """A goal of two steps: a file is written, then run; the run says that a server is up."""
    stream = Stream()
    asked = stream.add(ev.CommandReceived(command={"do": "adopt_goal"}), actor="operator:ann")
    goal = stream.add(ev.GoalAdopted(goal="g1", text="serve"), asked, actor="operator:ann")
    plan_asked = stream.add(ev.PlanAsked(goal="g1", thinker="procedural"), goal)
    made = stream.add(ev.PlanGenerated(goal="g1", thinker="procedural"), plan_asked)
    steps = (
        step("s1", "write", path="main.py", content="x"),
        step("s2", "run", "s1", command=["python", "main.py"]),
        step("s3", "list", "s2", path="."),
    )
    plan = stream.add(ev.PlanAdopted(plan="p1", goal="g1", steps=steps), made)
    for number, one in enumerate(steps[:2], 1):
        requested = stream.add(
            ev.ActionRequested(
                action=f"a{number}", step=one.id, goal="g1", tool=one.tool, command=one.command, args=one.args
            ),
            plan,
        )
        started = stream.add(ev.ActionStarted(action=f"a{number}", undo=Reversibility.WORKSPACE), requested)
        stream.add(ev.ActionOutput(action=f"a{number}", stream="stdout", text="…"), started)
        finished = stream.add(
            ev.ActionFinished(
                action=f"a{number}", status=ResultStatus.SUCCESS, result={}, session=SandboxSession()
            ),
            started,
        )
        if number == 2:
            finished = stream.add(ev.BeliefAdded(key="server", value="up"), finished)
        stream.add(ev.StepEnded(goal="g1", step=one.id, status=StepStatus.COMPLETED), finished)
    return stream


def kinds(record: Record, refs: tuple[str, ...]) -> list[str]:
    return [record.event(ref).kind for ref in refs]


def test_an_action_goes_back_to_plan_goal_and_the_operators_command() -> None:
    record = Record.of(written_and_run().events)
    chain = backward(record, record.subject("a1", "pilot").newest)
    assert kinds(record, chain.refs) == [
        *("action.finished", "action.started", "action.requested", "plan.adopted", "plan.generated"),
        *("plan.asked", "goal.adopted", "command.received"),
    ]
    assert [link.depth for link in chain.links if not link.again] == list(range(8))


def test_a_decision_stands_on_what_was_new_to_the_thinker_since_it_was_asked_last() -> None:
    stream = written_and_run()
    news = stream.add(ev.BeliefAdded(key="weather", value="fair"), actor="operator:ann")
    stream.add(ev.BeliefAdded(key="server", value="down"), actor="operator:ann")
    asked = [stream.add(ev.DecisionAsked(goal="g1", step="s3", thinker="claude")) for _ in range(2)]
    record = Record.of(stream.events)
    told = [[basis.ref for basis in record.bases(ref) if basis.relation is Relation.TOLD] for ref in asked]
    done = record.subject("a1", "pilot").newest
    assert told == [[done, news, record.subject("server", "pilot").newest], []]


def test_however_long_a_story_is_it_stays_narrow() -> None:
    stream = Stream()
    ref = stream.add(ev.GoalAdopted(goal="g1", text="serve"))
    for number in range(60):
        side = stream.add(ev.BeliefAdded(key=f"b{number}", value=1), actor="operator:ann")
        ref = stream.add(ev.PlanRevised(plan="p1", goal="g1", change="more", steps=()), side, ref)
    chain = backward(Record.of(stream.events), ref)
    assert max(link.depth for link in chain.links) == 60
    assert {link.level for link in chain.links} == {0, 1}
    trunk = [link.event.kind for link in chain.links if not link.level and link.event is not None]
    assert trunk == ["plan.revised"] * 60 + ["goal.adopted"]
    assert sum(link.branches for link in chain.links) == 60


def test_a_run_goes_back_to_the_action_that_wrote_its_file() -> None:
    record = Record.of(written_and_run().events)
    requested = record.subject("a2", "pilot").first
    tied = {basis.relation: basis.ref for basis in record.bases(requested)}
    assert tied[Relation.FILE] == record.subject("main.py").newest == record.subject("a1", "pilot").newest
    assert tied[Relation.AFTER] == record.subject("s1", "pilot").newest


def test_a_belief_goes_back_to_the_action_that_found_it() -> None:
    record = Record.of(written_and_run().events)
    chain = backward(record, record.subject("server", "pilot").newest)
    assert kinds(record, chain.refs)[:2] == ["belief.added", "action.finished"]
    assert record.subject("g1", "pilot").first in chain.refs


def test_a_reasoners_belief_is_found_by_its_literal_until_it_is_forgotten() -> None:
    stream = Stream()
    told = stream.add(ev.BeliefTold(literal="at(home)"), actor="operator:ann")
    held = HeldBelief("at(home)", ("self",))
    mind = MindState()
    went = stream.add(ev.ReasonerAdvanced(phases=1, steps=0, mind=mind, believed=(held,)), told)
    record = Record.of(stream.events)
    assert backward(record, record.subject("at(home)", "pilot").newest).refs == (went, told)
    assert [one.name for one in cascade(record, [told]).standing] == ["at(home)"]
    stream.add(ev.ReasonerAdvanced(phases=1, steps=0, mind=mind, forgotten=("at(home)",)), told)
    assert not cascade(Record.of(stream.events), [told]).standing


def test_a_wrong_result_shows_what_stands_on_it_and_still_holds() -> None:
    stream = written_and_run()
    record = Record.of(stream.events)
    before = list(stream.events)
    doubted = cascade(record, [record.subject("a1", "pilot").newest])
    told = {(one.kind, one.name) for one in doubted.standing}
    assert told == {
        ("file", "main.py"),
        ("belief", "server"),
        ("step", "s1"),
        ("step", "s2"),
        ("waiting step", "s3"),
    }
    assert stream.events == before


def test_what_was_overwritten_since_no_longer_stands() -> None:
    stream = written_and_run()
    wrong = Record.of(stream.events).subject("a2", "pilot").newest
    stream.add(ev.BeliefAdded(key="server", value="down"), "pilot:1")
    record = Record.of(stream.events)
    assert "server" not in {one.name for one in cascade(record, [wrong]).standing}


def test_an_achieved_goal_and_memories_are_part_of_the_cascade() -> None:
    stream = written_and_run()
    wrong = Record.of(stream.events).subject("a2", "pilot").newest
    stream.add(ev.GoalEnded(goal="g1", status=GoalStatus.ACHIEVED), stream.events[-1].ref)
    memory = Stream("workspace@memory")
    for ident in ("m1", "m2"):
        kept = MemoryItem(ident, "w1", "the server is up", created_at=0.0)
        memory.add(MemoryStored(memory=kept), wrong)
    memory.add(MemoriesForgotten(workflow="w1", memories=("m1",)))
    record = Record.of([*stream.events, *memory.events])
    told = {(one.kind, one.name) for one in cascade(record, [wrong]).standing}
    assert {("goal", "g1"), ("memory", "m2")} <= told
    assert ("memory", "m1") not in told


def test_output_is_counted_and_not_listed() -> None:
    record = Record.of(written_and_run().events)
    chain = forward(record, [record.subject("a1", "pilot").first])
    assert "action.output" not in kinds(record, chain.refs)
    assert chain.left_off >= 1


def test_a_missing_event_is_a_line_that_says_so() -> None:
    stream = Stream()
    ref = stream.add(ev.BeliefAdded(key="k", value=1), "gone:7")
    chain = backward(Record.of(stream.events), ref)
    assert [(link.ref, link.event is None) for link in chain.links] == [(ref, False), ("gone:7", True)]
    assert backward(Record(), "gone:7").links[0].event is None


def test_events_that_cause_each_other_end_the_chain() -> None:
    stream = Stream()
    stream.add(ev.BeliefAdded(key="a", value=1), "pilot:2")
    stream.add(ev.BeliefAdded(key="b", value=1), "pilot:1", "pilot:2")
    record = Record.of(stream.events)
    assert backward(record, "pilot:1").refs == ("pilot:1", "pilot:2")
    assert forward(record, ["pilot:1"]).links[-1].again


@pytest.mark.parametrize(("events", "left_off", "whole"), [(90, 70, True), (500, 80, False)])
def test_beyond_the_limit_events_are_counted_as_far_as_they_are_looked_at(
    events: int, left_off: int, whole: bool
) -> None:
    stream = Stream()
    ref = stream.add(ev.AgentDeleted())
    for _ in range(events - 1):
        ref = stream.add(ev.BeliefAdded(key="k", value=1), ref)
    chain = backward(Record.of(stream.events), ref, limit=20)
    assert (len(chain.links), chain.left_off, chain.whole) == (20, left_off, whole)


def test_what_is_near_is_listed_before_what_is_far() -> None:
    """A decision depends on all decisions before it, and still the goal is among its nearest causes."""
    stream = Stream()
    goal = stream.add(ev.GoalAdopted(goal="g1", text="serve"))
    asked = goal
    for _ in range(300):
        asked = stream.add(ev.DecisionAsked(goal="g1", step="s1", thinker="claude"), asked)
    chain = backward(Record.of(stream.events), asked, limit=20)
    assert goal in chain.refs
    assert len(chain.refs) == 20


def test_feedback_is_what_the_next_question_to_the_thinker_was_told() -> None:
    stream = Stream()
    goal = stream.add(ev.GoalAdopted(goal="g1", text="serve"))
    guided = stream.add(ev.GuidanceGiven(text="use port 80"), actor="operator:ann")
    asked = stream.add(ev.PlanAsked(goal="g1", thinker="claude"), goal)
    again = stream.add(ev.PlanAsked(goal="g1", thinker="claude"), goal)
    record = Record.of(stream.events)
    assert [(basis.ref, basis.relation) for basis in record.bases(asked)] == [
        (goal, Relation.CAUSE),
        (guided, Relation.TOLD),
    ]
    assert [basis.ref for basis in record.bases(again)] == [goal]


@pytest.mark.parametrize(
    ("what", "kind"),
    [
        ("pilot:3", "event"),
        ("3", "event"),
        ("A2", "action"),
        ("s1", "step"),
        ("g1", "goal"),
        ("p1", "plan"),
        ("server", "belief"),
        ("./main.py", "file"),
    ],
)
def test_what_is_asked_about_is_found_as_it_is_typed(what: str, kind: str) -> None:
    assert Record.of(written_and_run().events).subject(what, "pilot").kind == kind


def test_errors_are_found_from_the_newest_on() -> None:
    stream = Stream()
    refs = [stream.add(ev.FailureRecorded(failure="NETWORK_ERROR", message=f"{n}")) for n in range(3)]
    record = Record.of(stream.events)
    assert record.subject("error", "pilot").refs == (refs[2],)
    assert record.subject("error 3").refs == (refs[0],)
    with pytest.raises(UnknownSubjectError, match="there is no error 4: there are 3"):
        record.subject("error 4", "pilot")


def test_a_name_that_is_not_there_is_answered_with_the_nearest() -> None:
    record = Record.of(written_and_run().events)
    with pytest.raises(UnknownSubjectError, match=r"did you mean main\.py"):
        record.subject("mian.py", "pilot")


def test_an_id_that_several_agents_have_needs_the_agent() -> None:
    other = written_and_run()
    other.events = [event._replace(stream="other") for event in other.events]
    record = Record.of([*written_and_run().events, *other.events])
    with pytest.raises(UnknownSubjectError, match="several agents have 'a1': pilot, other"):
        record.subject("a1")
    assert record.subject("a1", "other").first.startswith("other:")


def test_bodies_that_are_damaged_or_unknown_are_links_all_the_same() -> None:
    stream = written_and_run()
    stream.events[4] = stream.events[4]._replace(body="[1")
    stream.events[5] = stream.events[5]._replace(kind="of.a.newer.version")
    record = Record.of(stream.events)
    assert record.subject("a1", "pilot").newest
    assert len(backward(record, stream.events[6].ref).refs) == 7


_CAUSES = st.lists(st.lists(st.integers(1, 30), max_size=4), max_size=30)


@given(_CAUSES)
def test_each_event_that_can_be_reached_is_listed_once(causes: list[list[int]]) -> None:
    stream = Stream()
    for number, each in enumerate(causes):
        stream.add(ev.BeliefAdded(key=f"k{number}", value=1), *(f"pilot:{one}" for one in each))
    record = Record.of(stream.events)
    for event in stream.events:
        for chain in (backward(record, event.ref), forward(record, [event.ref])):
            assert len(chain.refs) == len(set(chain.refs))
            assert chain.left_off == 0
    for event in stream.events:
        for basis in record.bases(event.ref):
            assert event.ref in forward(record, [basis.ref]).refs
