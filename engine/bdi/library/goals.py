"""Goals and intentions: asked about, dropped, suspended, ended (spec §1.7)."""

from __future__ import annotations

from collections.abc import Iterator

from engine.bdi import control
from engine.bdi.actions import ANY_NUMBER, Call
from engine.bdi.library.registry import internal
from engine.bdi.problems import ErrorId, EvaluationError
from engine.bdi.terms import QUOTED_PLAN, Struct, Term, atom, list_of, resolved
from engine.bdi.unification import undo


@internal(".fail", 0, ANY_NUMBER)
def fail(call: Call) -> bool:
    """Fail, with these annotations on the failure event."""
    details: tuple[Term, ...] = tuple([resolved(one) for one in call.args])
    raise EvaluationError(ErrorId.INTERNAL_ACTION_FAILED, ".fail was called", details)


@internal(".intend", 1)
def intend(call: Call) -> Iterator[None]:
    """Each goal that some plan is pursuing."""
    yield from _matching(call, [frame.literal for _, _, frame in control.goals(call.agent)])


@internal(".desire", 1)
def desire(call: Call) -> Iterator[None]:
    """Each goal that is pursued or waits to be."""
    pursued = [frame.literal for _, _, frame in control.goals(call.agent)]
    waiting = [event.literal for event in call.agent.events if event.sign == "+!"]
    yield from _matching(call, pursued + waiting)


def _matching(call: Call, literals: list[Struct]) -> Iterator[None]:
    for literal in literals:
        mark = len(call.trail)
        if call.unify(0, literal):
            yield
        undo(call.trail, mark)


@internal(".drop_intention", 0, 1)
def drop_intention(call: Call) -> bool:
    """Drop the intentions with this goal, or the one that says so."""
    if len(call) == 0:
        control.drop(call.agent, call.step(), ".drop_intention")
    else:
        control.drop_goal(call.agent, call.literal(0), events=False)
    return True


@internal(".drop_desire", 1)
def drop_desire(call: Call) -> bool:
    """Drop the intentions with this goal and the events that would make one."""
    control.drop_goal(call.agent, call.literal(0), events=True)
    return True


@internal(".drop_event", 1)
def drop_event(call: Call) -> bool:
    """Drop the events that would make an intention for this goal."""
    control.drop_events(call.agent, call.literal(0))
    return True


@internal(".drop_all_intentions", 0)
def drop_all_intentions(call: Call) -> bool:
    """Drop every intention, this one too."""
    for intention in list(call.agent.intentions.values()):
        if intention.event is None:
            control.drop(call.agent, intention, ".drop_all_intentions")
    return True


@internal(".drop_all_events", 0)
def drop_all_events(call: Call) -> bool:
    """Drop every event, and the intentions that wait for one."""
    control.drop_events(call.agent, None)
    return True


@internal(".drop_all_desires", 0)
def drop_all_desires(call: Call) -> bool:
    """Drop every event and every intention."""
    control.drop_events(call.agent, None)
    return drop_all_intentions(call) is True


@internal(".succeed_goal", 1)
def succeed_goal(call: Call) -> bool:
    """Take a goal as achieved: its plan and those above it end, its caller goes on."""
    control.succeed_goal(call.agent, call.literal(0))
    return True


@internal(".fail_goal", 1)
def fail_goal(call: Call) -> bool:
    """Let a goal fail, so that its `-!` plan gets its chance."""
    control.fail_goal(call.agent, call.literal(0))
    return True


@internal(".suspend", 0, 1)
def suspend(call: Call) -> bool:
    """Hold back the intentions with this goal, or the one that says so, until they are resumed."""
    if len(call) == 0:
        control.suspend(call.agent, call.step(), "suspended by itself")
    else:
        control.suspend_goal(call.agent, call.literal(0))
    return True


@internal(".resume", 1)
def resume(call: Call) -> bool:
    """Let the intentions with this goal go on."""
    control.resume_goal(call.agent, call.literal(0))
    return True


@internal(".suspended", 2)
def suspended(call: Call) -> Iterator[None]:
    """Each goal that is held back or waits, and why."""
    for intention, _, frame in control.goals(call.agent):
        reason = intention.suspended or (intention.pending.kind if intention.pending else "")
        mark = len(call.trail)
        if reason and call.unify(0, frame.literal) and call.unify(1, str(reason)):
            yield
        undo(call.trail, mark)


@internal(".current_intention", 1)
def current_intention(call: Call) -> bool:
    """`intention(number, [im(label, { +!g(1) }), …])` of the one that asks, its innermost plan first."""
    intention = call.step()
    means = [
        Struct("im", (atom(frame.plan.name), Struct(QUOTED_PLAN, (frame.sign, frame.literal))))
        for frame in reversed(intention.frames)
    ]
    return call.unify(0, Struct("intention", (intention.id, list_of(means))))
