from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from inquiry_events import Stream, step

from engine.core import events as ev
from engine.core.goals import GoalStatus
from engine.core.plan import Op, PlanStep, StepStatus, plan_difference
from engine.core.thinking import Decision, DecisionKind
from engine.inquiry.drift import DeviationKind, plan_deviations, revisions
from engine.inquiry.why import evidence_of


def followed(*steps: PlanStep) -> Stream:
    """A goal with an adopted plan."""
    stream = Stream()
    goal = stream.add(ev.GoalAdopted(goal="g1", text="serve"))
    stream.add(ev.PlanAdopted(plan="p1", goal="g1", steps=steps), goal)
    return stream


def request(stream: Stream, one: PlanStep | None, goal: str = "g1", actor: str = "agent") -> None:
    call = one or step("", "read", path="x")
    said = ev.ActionRequested(
        action="a1",
        step=one.id if one else "",
        goal=goal if one else "",
        tool=call.tool,
        command=call.command,
        args=call.args,
    )
    stream.add(said, actor=actor)


def revise(stream: Stream, change: str, *steps: PlanStep, cause: str = "", actor: str = "agent") -> None:
    stream.add(ev.PlanRevised(plan="p1", goal="g1", change=change, steps=steps), cause, actor=actor)


def only_course(stream: Stream) -> tuple[DeviationKind, str]:
    (course,) = plan_deviations(stream.events)
    return course.kind, course.why


def test_an_action_of_the_adopted_plan_is_on_plan() -> None:
    stream = followed(step("s1"), step("s2"))
    request(stream, step("s2"))
    assert only_course(stream) == (DeviationKind.ON_PLAN, "as s2 of the plan says")


def test_a_step_that_the_operator_put_in_or_changed_is_off_plan_and_named_so() -> None:
    for edited in (step("s2"), replace(step("s1"), args={"path": "other"})):
        stream = followed(step("s1"))
        revise(stream, "by hand", step("s1"), edited, actor="operator:ann")
        request(stream, edited)
        assert only_course(stream) == (DeviationKind.OFF_PLAN, "the operator: by hand")


def test_a_step_of_a_plan_made_anew_is_off_plan() -> None:
    stream = followed(step("s1"))
    revise(stream, "planned anew", step("s9"), cause="pilot:1")
    request(stream, step("s9"))
    assert only_course(stream) == (DeviationKind.OFF_PLAN, "decided anew: planned anew")


def test_a_call_decided_for_an_open_step_is_on_plan() -> None:
    think = PlanStep("s1", "decide what to do next", op=Op.THINK)
    stream = followed(think)
    decision = Decision(DecisionKind.CALL, tool="simple_coder", command="write")
    decided = stream.add(ev.DecisionMade(goal="g1", step="s1", thinker="claude", decision=decision))
    revise(stream, "decided", step("s2"), think, cause=decided)
    request(stream, step("s2"))
    assert only_course(stream)[0] is DeviationKind.ON_PLAN


def test_an_action_for_a_goal_that_is_over_serves_no_live_goal() -> None:
    stream = followed(step("s1"))
    stream.add(ev.GoalEnded(goal="g1", status=GoalStatus.DROPPED))
    request(stream, step("s1"))
    assert only_course(stream)[0] is DeviationKind.NO_LIVE_GOAL


def test_the_operators_own_call_is_off_plan() -> None:
    stream = followed(step("s1"))
    request(stream, None, actor="operator:ann")
    assert only_course(stream) == (DeviationKind.OFF_PLAN, "the operator's own call")


def test_a_plan_made_anew_with_the_same_steps_under_other_ids_is_no_change() -> None:
    old = [step("s1", path="a"), step("s2", "run", "s1", command=["x"])]
    new = [
        replace(old[0], id="s7", status=StepStatus.COMPLETED),
        replace(old[1], id="s8", depends_on=("s7",)),
    ]
    assert plan_difference(old, new).empty
    assert plan_difference(old, new).kept == 2


def test_steps_are_added_removed_changed_and_moved() -> None:
    old = [step("s1", path="a"), step("s2", "read", path="b"), step("s3", "list"), step("s4", "mkdir")]
    new = [
        old[2],
        replace(old[0], args={"path": "a", "content": "new"}),
        replace(old[1]),
        step("s9", "run", command=["x"]),
    ]
    found = plan_difference(old, new)
    assert [one.id for one in found.added] == ["s9"]
    assert [one.id for one in found.removed] == ["s4"]
    assert [(one.new.id, one.fields) for one in found.changed] == [("s1", ("args",))]
    assert [(one.step.id, one.was, one.now) for one in found.moved] == [("s3", 3, 1)]
    assert found.kept == 2


_STEPS = st.lists(st.integers(0, 12), max_size=10, unique=True)


@given(_STEPS, _STEPS)
def test_a_difference_accounts_for_every_step(old: list[int], new: list[int]) -> None:
    before = [step(f"s{n}", path=f"{n}") for n in old]
    after = [step(f"s{n}", path=f"{n}") for n in new]
    found = plan_difference(before, after)
    assert {one.id for one in found.added} == {f"s{n}" for n in new if n not in old}
    assert {one.id for one in found.removed} == {f"s{n}" for n in old if n not in new}
    assert not found.changed
    stay = [n for n in new if n in old and f"s{n}" not in {one.step.id for one in found.moved}]
    assert stay == [n for n in old if n in stay]
    assert plan_difference(before, before).empty


def test_the_revisions_of_a_goals_plan_are_counted_and_compared() -> None:
    stream = followed(step("s1"))
    revise(stream, "one more", step("s1"), step("s2", "read"), actor="operator:ann")
    stream.add(ev.PlanAdopted(plan="p2", goal="g1", steps=(step("s3", "list"),)))
    first, second, third = revisions(stream.events, "g1")
    assert (first.number, len(first.difference.added), first.change) == (1, 1, "")
    assert [one.id for one in second.difference.added] == ["s2"]
    assert (second.by, second.change) == ("operator:ann", "one more")
    assert (third.number, third.plan, third.change) == (3, "p2", "planned anew")
    assert [one.id for one in third.difference.removed] == ["s1", "s2"]
    assert not revisions(stream.events, "g2")


def test_an_achieved_goal_shows_the_step_of_each_criterion_and_what_nothing_shows() -> None:
    stream = Stream()
    goal = stream.add(ev.GoalAdopted(goal="g1", text="serve", criteria=("it runs", "it answers")))
    done = stream.add(ev.StepEnded(goal="g1", step="s1", status=StepStatus.COMPLETED, summary="ran"), goal)
    stream.add(ev.StepEnded(goal="g1", step="s2", status=StepStatus.FAILED, summary="refused"), goal)
    finish = Decision(DecisionKind.FINISH, text="all well", evidence=("s1", "s2"))
    decided = stream.add(ev.DecisionMade(goal="g1", step="s3", thinker="claude", decision=finish))
    ended = stream.add(ev.GoalEnded(goal="g1", status=GoalStatus.ACHIEVED, reason="all well"), decided)
    evidence = evidence_of(stream.events, "g1")
    assert evidence is not None
    assert (evidence.status, evidence.ref) == (GoalStatus.ACHIEVED, ended)
    assert [(one.criterion, one.step, one.ref) for one in evidence.criteria] == [
        ("it runs", "s1", done),
        ("it answers", "s2", ""),
    ]
    assert [one.step for one in evidence.results] == ["s1"]
    assert evidence_of(stream.events, "g2") is None


def test_without_criteria_the_last_results_are_the_evidence() -> None:
    stream = followed(step("s1"))
    for number in range(9):
        done = ev.StepEnded(goal="g1", step=f"s{number}", status=StepStatus.COMPLETED, summary="ok")
        stream.add(done)
    evidence = evidence_of(stream.events, "g1")
    assert evidence is not None
    assert [one.step for one in evidence.results] == ["s4", "s5", "s6", "s7", "s8"]
