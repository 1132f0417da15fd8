"""Goals and intentions: asked about, dropped, suspended, ended.

Beliefs removed in bulk, chance, and the agent's name.

The plan library: plans added, removed and shown.

Waiting, events at a time, and the date and time that the host says it is.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import count, dropwhile

from engine.bdi import belief_revision as believing
from engine.bdi import control
from engine.bdi import waits as waiting
from engine.bdi.arithmetic import normalized
from engine.bdi.beliefs import Answers
from engine.bdi.errors import ErrorId, EvaluationError, ProgramError
from engine.bdi.instructions import body_frame, free_cells, fresh_copy
from engine.bdi.intentions import Appointment, Event, Frame, Intention, RunningAgent, Waiting
from engine.bdi.internal_actions import ANY_NUMBER, Call, failed, is_list
from engine.bdi.library.terms import internal
from engine.bdi.parser import parse_trigger
from engine.bdi.plans import CompiledPlan, as_term, label_of, read_plan, with_source, written_term
from engine.bdi.printer import text_of, unquoted_text
from engine.bdi.rewriting import canonical, instantiated, resolved
from engine.bdi.syntax import body_term, steps_of
from engine.bdi.terms import QUOTED_PLAN, Cell, Struct, Term, annotation_set, atom, deref, list_of
from engine.bdi.unification import Trail, annotations_within, undo, unify
from engine.bdi.waits import set_alarm


@internal(".abolish", 1)
def abolish(call: Call) -> bool:
    """Remove every belief that fits; one that names sources removes only those."""
    pattern = call.literal(0)
    plain = pattern.with_annotations(())
    predicate = call.agent.beliefs.predicates.get(pattern.indicator)
    newest_first = call.agent.beliefs.newest_first
    for fact in predicate.all.facts(newest_first=newest_first) if predicate else ():
        trail: Trail = []
        fits = unify(plain, fact.pattern, trail)
        gone: tuple[Term, ...] = fact.annotations
        if fits and pattern.annotations:
            fits = annotations_within(pattern.annotations, fact.annotations, trail)
            gone = annotation_set([resolved(term) for term in pattern.annotations])
        undo(trail, 0)
        if fits:
            call.agent.beliefs.remove(fact, gone)
            believing.announce(call.agent, believing.BeliefChange("-", fact.plain, gone))
    return True


internal(".my_name", 1)(lambda call: call.unify(0, Struct(call.agent.name)))  # the agent's name


@internal(".random", 1, 3)
def random(call: Call) -> Answers:
    """Numbers from 0 up to 1, or elements of a list: `.random(X, many)`, `.random(list, X, many)`.

    There is one answer where it is not said how many; with 0 there is no end of them.
    """
    chance = call.agent.random
    listed = len(call) > 1 and is_list(call.args[0])
    items = call.items(0) if listed else []
    said = len(call) > 1 + listed
    many = call.integer(1 + listed) if said else 1
    if listed and not items:
        return
    for _ in count() if many == 0 else range(many):
        value: Term = items[chance.randrange(len(items))] if listed else chance.random()
        yield from call.each([(int(listed), value)])


@internal(".set_random_seed", 1)
def set_random_seed(call: Call) -> bool:
    """Begin the agent's chance anew from a number."""
    call.agent.random.seed(call.integer(0))
    return True


# The agent's time in nanoseconds
internal(".nano_time", 1)(lambda call: call.unify(0, normalized(call.agent.now * 1e6)))


@internal(".fail", 0, ANY_NUMBER)
def fail(call: Call) -> bool:
    """Fail, with these annotations on the failure event."""
    details: tuple[Term, ...] = tuple([resolved(term) for term in call.args])
    raise EvaluationError(ErrorId.INTERNAL_ACTION_FAILED, ".fail was called", details)


@internal(".intend", 1)
def intend(call: Call) -> Answers:
    """Each goal that some plan is pursuing."""
    yield from call.each((0, frame.literal) for _, _, frame in control.goals(call.agent))


@internal(".desire", 1)
def desire(call: Call) -> Answers:
    """Each goal that is pursued or waits to be."""
    pursued = [frame.literal for _, _, frame in control.goals(call.agent)]
    queued = [event.literal for event in call.agent.events if event.sign == "+!"]
    yield from call.each((0, literal) for literal in pursued + queued)


@internal(".drop_intention", 0, 1)
def drop_intention(call: Call) -> bool:
    """Drop the intentions with this goal, or the one that says so."""
    if len(call) == 0:
        control.drop(call.agent, call.step(), ".drop_intention")
    else:
        control.drop_goal(call.agent, call.literal(0), events=False)
    return True


def _declare_goal_action(name: str, do: Callable[[RunningAgent, Struct], None]) -> None:
    def run(call: Call) -> bool:
        do(call.agent, call.literal(0))
        return True

    internal(name, 1)(run)


_declare_goal_action(".drop_desire", partial(control.drop_goal, events=True))
_declare_goal_action(".drop_event", control.drop_events)
_declare_goal_action(
    ".succeed_goal", control.succeed_goal
)  # its plan and those above end, its caller goes on
_declare_goal_action(".fail_goal", control.fail_goal)


@internal(".drop_all_intentions", 0)
def drop_all_intentions(call: Call) -> bool:
    """Drop every other intention."""
    for intention in list(call.agent.intentions.values()):
        if intention.event is None and intention is not call.intention:
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


@internal(".suspend", 0, 1)
def suspend(call: Call) -> bool:
    """Hold back the intentions with this goal, or the one that says so, until they are resumed."""
    if len(call) == 0:
        control.suspend(call.agent, call.step(), "suspended by itself")
    else:
        for intention, _ in control.with_goal(call.agent, call.literal(0)):
            control.suspend(call.agent, intention, "its goal was suspended")
    return True


@internal(".resume", 1)
def resume(call: Call) -> bool:
    """Let the intentions with this goal continue."""
    for intention, _ in control.with_goal(call.agent, call.literal(0)):
        control.resume(call.agent, intention)
    return True


@internal(".suspended", 2)
def suspended(call: Call) -> Answers:
    """Each goal that is held back or waits, and why."""
    for intention, _, frame in control.goals(call.agent):
        reason = intention.suspended or (intention.pending.kind if intention.pending else "")
        if reason:
            yield from call.each([(0, frame.literal, 1, str(reason))])


@internal(".current_intention", 1)
def current_intention(call: Call) -> bool:
    """`intention(number, [im(…), …])` of the one that asks, its innermost plan first; see `_intended`."""
    intention = call.step()
    return call.unify(0, Struct("intention", (intention.id, _means(intention))))


def _means(intention: Intention) -> Term:
    return list_of(map(_intended, reversed(intention.frames)))


def _intended(frame: Frame) -> Struct:
    """`im(label, { +!g(1) }, { the steps that are left }, [map(_, 1), …])`."""
    values = [
        Struct("map", (Cell(), instantiated(canonical(value))))
        for slot in frame.plan.slots.values()
        if not isinstance(value := deref(frame.env[slot]), Cell)
    ]
    event = Struct(QUOTED_PLAN, (frame.sign, with_source(frame.sign, frame.literal)))
    plan = frame.plan.plan
    place = Struct("code_line", (plan.position.line,)), Struct("code_src", (plan.source,))
    step = frame.code[min(frame.pc, len(frame.code) - 1)].item
    left = dropwhile(lambda item: all(step is not inner for inner in steps_of((item,))), plan.body)
    body = instantiated(body_term(tuple(left)))
    return Struct("im", (label_of(frame.plan, *place), event, body, list_of(values)))


@internal(".intention", 2, 4)
def intentions(call: Call) -> Answers:
    """`.intention(number, state, [im(…), …])` of each; with `current` behind it of this one."""
    if len(call) == 4:
        if call.name_of(3) != "current":
            raise call.wrong(3, "the word current")
        matches = [call.intention] if call.intention is not None else []
    else:
        matches = list(call.agent.intentions.values())
    for intention in matches:
        pairs = (0, intention.id, 1, _state(call, intention), 2, _means(intention))
        yield from call.each([pairs[: 2 * min(len(call), 3)]])


def _state(call: Call, intention: Intention) -> Term:
    """Its state, of one that waits with the reason: `waiting[reason(wait(2)[time(500)])]`."""
    if intention.suspended:
        return atom("suspended")
    pending = intention.pending
    if intention is call.intention or (pending is None and intention.event is None):
        return atom("running")
    if pending is None:
        return atom("waiting")
    if pending.kind is Waiting.ACTION:
        return Struct("waiting", (), [Struct("action", (pending.what,))])
    left = [] if pending.until is None else [Struct("time", (normalized(pending.until - pending.since),))]
    return Struct("waiting", (), [Struct("reason", (Struct(pending.kind, (intention.id,), left),))])


@internal(".fork", 2, ANY_NUMBER)
def fork(call: Call) -> bool:
    """`.fork(all, { a }, { b })`, written `a |&| b`, or `any`, written `a ||| b`: bodies at the same time."""
    intention, mode = call.step(), call.name_of(0)
    if mode not in ("all", "any"):
        raise call.wrong(0, "all or any")
    frame = intention.frames[-1]
    position = frame.code[frame.pc].item.position
    frames = [body_frame(call.value(place), frame, position) for place in range(1, len(call))]
    frames = [inner for inner in frames if inner.code]
    if not frames or (mode == "any" and len(frames) < len(call) - 1):
        return True  # a body without steps has ended already
    branches = [waiting.new_intention(call.agent, intention.tag) for _ in frames]
    number = waiting.begin(call.agent, intention, Waiting.BRANCHES, atom(mode), reason=mode).number
    for branch, inner in zip(branches, frames, strict=True):
        branch.joins = number
        branch.push(inner)
        call.agent.go_on(branch)
    return True


def trigger_of(call: Call, place: int) -> tuple[str, Struct]:
    """Sign and literal of `{ +!g(X) }`, whose variables are those of the clause around it, or of a string."""
    term = call.value(place)
    if isinstance(term, Struct) and term.functor == QUOTED_PLAN and len(term.args) == 2:
        sign, literal = term.args
    else:
        try:
            trigger = parse_trigger(term if isinstance(term, str) else text_of(term))
        except ProgramError as error:
            raise failed(f"{call.name}: not an event: {error.problems[0]}") from None
        sign, literal = f"{trigger.operation}{trigger.kind}", instantiated(trigger.literal)
    if not (isinstance(sign, str) and isinstance(literal, Struct)):
        raise call.wrong(place, "an event")
    return sign, literal


def _plans_for(call: Call, place: int) -> list[CompiledPlan]:
    """The plans for an event, or with `{ +!_ }` for every event of this sign."""
    term = call.value(place)
    if isinstance(term, Struct) and term.functor == QUOTED_PLAN and len(term.args) == 2:
        sign, literal = term.args
        if isinstance(literal, Cell):
            return [plan for plan in call.agent.plans if plan.sign == sign]
    return call.agent.plans.relevant(*trigger_of(call, place))


@internal(".add_plan", 1, 3)
def add_plan(call: Call) -> bool:
    """`.add_plan({ +!g <- a }, source, begin)`: behind the other plans unless `begin` is said; or a list."""
    source = call.name_of(1) if len(call) > 1 else "self"
    before = len(call) > 2 and call.name_of(2) == "begin"
    for term in call.items(0) if is_list(call.args[0]) else call.args[:1]:
        try:
            plan = read_plan(resolved(term), call.agent.name, source)
            call.agent.plans.add(plan, before=before)
        except ValueError as error:
            raise failed(f".add_plan: {error}") from None
    return True


@internal(".remove_plan", 1, 2)
def remove_plan(call: Call) -> bool:
    """The plan with this label, or each of a list of labels; of those that there are."""
    for name in call.items(0) if is_list(call.args[0]) else call.args[:1]:
        label = deref(name)
        if not isinstance(label, Struct | str):
            raise call.wrong(0, "a label or a list of labels")
        text = label if isinstance(label, str) else label.functor
        if call.agent.plans.get(text) is not None:
            call.agent.plans.remove(text)
    return True


@internal(".relevant_plans", 2, 3)
def relevant_plans(call: Call) -> bool:
    """Plans for a trigger, as terms, and their labels."""
    plans = _plans_for(call, 0)
    labels = list_of(map(label_of, plans))
    return call.unify(1, list_of(map(as_term, plans))) and (len(call) == 2 or call.unify(2, labels))


@internal(".plan_label", 2)
def plan_label(call: Call) -> bool:
    """`.plan_label(P, label)`: the plan with this label."""
    plan = call.agent.plans.get(call.name_of(1))
    return plan is not None and call.unify(0, as_term(plan))


@internal(".list_plans", 0, 1)
def list_plans(call: Call) -> bool:
    """Say all plans, or those for an event: `.list_plans({ +!g(_) })`."""
    plans = call.agent.plans
    for plan in _plans_for(call, 0) if len(call) else plans:
        text = unquoted_text(written_term(plan), call.agent.limits.size)
        call.agent.say(f"{text.removeprefix('{ ').removesuffix(' }')}.")
    return True


@internal(".generate_plan", 1)
def generate_plan(call: Call) -> bool:
    """Have a plan made for a goal; the intention waits until it is there."""
    intention, goal = call.step(), call.value(0)
    ask = call.agent.on_generate_plan
    if ask is None or not ask(intention, goal):
        raise EvaluationError(ErrorId.PGP_FAILED, "nothing here generates plans")
    waiting.begin(call.agent, intention, Waiting.GENERATION, goal)
    return True


@internal(".wait", 1, 3)
def wait(call: Call) -> bool:
    """`.wait(milliseconds)`, or `.wait({+event})` with or without milliseconds after which it fails.

    A third argument gets the milliseconds that the wait took, and then it does not fail. Waiting for a
    formula is an instruction of its own, because it asks the formula again and again.
    """
    term = deref(call.args[0])
    if isinstance(term, int | float):
        waiting.begin(call.agent, call.step(), Waiting.TIME, term, limit=term)
        return True
    sign, literal = trigger_of(call, 0)
    limit = call.number(1) if len(call) > 1 else None
    elapsed = call.args[2] if len(call) > 2 else None
    waiting.begin(call.agent, call.step(), Waiting.EVENT, literal, limit=limit, reason=sign, elapsed=elapsed)
    return True


@internal(".at", 2)
def at(call: Call) -> bool:
    """`.at("now + 3 minutes", { +!g })`: raise an event then; a bare number is milliseconds from now."""
    term = deref(call.args[0])
    delay = call.number(0) if isinstance(term, int | float) else _delay(call)
    sign, literal = trigger_of(call, 1)
    if sign not in ("+!", "+?", "+", "-"):
        raise call.wrong(1, "an event of a goal that comes or of a belief")
    agent = call.agent
    event = Event(sign, copy := fresh_copy(literal), None, free_cells(copy))
    set_alarm(agent, agent.now + max(0.0, float(delay)), Appointment(event, number=agent.number()))
    return True


_WHEN = re.compile(r"now(?:\s*\+\s*(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>[a-z]*))?", re.ASCII)
_UNITS = {
    **dict.fromkeys(("", "ms", "millisecond", "milliseconds"), 1.0),
    **dict.fromkeys(("s", "second", "seconds"), 1e3),
    **dict.fromkeys(("m", "minute", "minutes"), 6e4),
    **dict.fromkeys(("h", "hour", "hours"), 3.6e6),
    **dict.fromkeys(("d", "day", "days"), 8.64e7),
}
"""Milliseconds."""


def _delay(call: Call) -> float:
    match = _WHEN.fullmatch(call.text(0).strip())
    if match is None or (match["unit"] or "") not in _UNITS:
        raise call.wrong(0, 'a time such as "now + 3 minutes"')
    delay = float(match["number"] or 0) * _UNITS[match["unit"] or ""]
    if math.isinf(delay):
        raise call.wrong(0, "a time that can be counted in milliseconds")
    return delay


def _clock(call: Call) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=call.agent.epoch + call.agent.now)


@internal(".date", 3)
def date(call: Call) -> bool:
    """Year, month and day, UTC."""
    now = _clock(call)
    return call.unify(0, now.year) and call.unify(1, now.month) and call.unify(2, now.day)


@internal(".time", 3)
def time(call: Call) -> bool:
    """Hour, minute and second, UTC."""
    now = _clock(call)
    return call.unify(0, now.hour) and call.unify(1, now.minute) and call.unify(2, now.second)
