"""Faults with a known root, and actions with a known course, in generated runs."""

from __future__ import annotations

from random import Random

from inquiry_events import Stream, step

from engine.core import events as ev
from engine.core.actions import ErrorCode, ResultStatus, Reversibility
from engine.core.plan import PlanStep, StepStatus
from engine.core.recovery import FailureKind
from engine.inquiry.drift import DeviationKind, plan_deviations
from engine.inquiry.record import Record
from engine.inquiry.why import backward

FAULTS = 50
STEPS = 12


def act(stream: Stream, one: PlanStep, plan: str, *, number: int, fails: bool = False) -> str:
    """The last event of an action."""
    call = {"tool": one.tool, "command": one.command, "args": one.args}
    said = ev.ActionRequested.model_validate({"action": f"a{number}", "step": one.id, "goal": "g1", **call})
    requested = stream.add(said, plan)
    started = stream.add(ev.ActionStarted(action=f"a{number}", undo=Reversibility.WORKSPACE), requested)
    ended = ev.ActionFinished(
        action=f"a{number}",
        status=ResultStatus.FAILURE if fails else ResultStatus.SUCCESS,
        code=ErrorCode.EXIT_STATUS if fails else None,
        result={},
    )
    finished = stream.add(ended, started)
    status = StepStatus.FAILED if fails else StepStatus.COMPLETED
    return stream.add(ev.StepEnded(goal="g1", step=one.id, status=status), finished)


def begun(stream: Stream, steps: tuple[PlanStep, ...]) -> str:
    goal = stream.add(ev.GoalAdopted(goal="g1", text="build"), actor="operator:ann")
    return stream.add(ev.PlanAdopted(plan="p1", goal="g1", steps=steps), goal)


def test_the_root_of_a_seeded_fault_is_in_the_chain_of_its_failure() -> None:
    """Of 50 runs that each write a wrong file and fail over it later, through others or at once."""
    shown, lengths = 0, []
    for seed in range(FAULTS):
        random = Random(seed)
        stream = Stream()
        root = random.randrange(STEPS - 3)
        tainted, steps = [root], []
        for number in range(STEPS):
            source = random.choice(tainted) if random.random() < 0.3 else random.randrange(number + 1)
            if number == STEPS - 1:
                source = random.choice(tainted)
            if number > root and source in tainted:
                tainted.append(number)
            files = {"path": f"f{number}.txt", "source": f"f{source}.txt"}
            steps.append(step(f"s{number}", "append", **files))
        plan = begun(stream, tuple(steps))
        for number, one in enumerate(steps):
            last = act(stream, one, plan, number=number, fails=number == STEPS - 1)
        failed = ev.FailureRecorded(failure=FailureKind.TOOL_EXECUTION_ERROR, message="wrong")
        failure = stream.add(failed, last)
        record = Record.of(stream.events)
        chain = backward(record, failure)
        shown += record.subject(f"a{root}", "pilot").first in chain.refs
        lengths.append(len(chain.refs))
    assert shown >= 45
    assert max(lengths) < len(stream.events)


def test_seeded_deviations_are_off_plan_and_nothing_else_is() -> None:
    """Of 400 actions of which some were put in by the operator, changed, or serve no live goal."""
    deviating, told = set(), set()
    for seed in range(40):
        random = Random(seed)
        stream = Stream()
        planned = tuple(step(f"s{number}", path=f"{number}") for number in range(10))
        plan = begun(stream, planned)
        now = list(planned)
        for number in range(len(planned)):
            if random.random() < 0.3:
                deviating.add((seed, f"a{number}"))
                how = random.choice(["operator", "anew"])
                other = step(f"s{number}", path=f"{number}", content=how)
                now[number] = other if how == "operator" else step(f"s{number}9", path="new")
                actor = "operator:ann" if how == "operator" else "agent"
                changed = ev.PlanRevised(plan="p1", goal="g1", change=how, steps=tuple(now))
                plan = stream.add(changed, plan, actor=actor)
            act(stream, now[number], plan, number=number)
        told |= {
            (seed, one.action)
            for one in plan_deviations(stream.events)
            if one.kind is not DeviationKind.ON_PLAN
        }
    assert deviating
    assert told == deviating
