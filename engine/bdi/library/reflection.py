"""Rules, plans and beliefs as terms; texts with values in them; agents made alike."""

from __future__ import annotations

import re

from engine.bdi import belief_revision as believing
from engine.bdi import control
from engine.bdi.beliefs import Answers
from engine.bdi.intentions import Event
from engine.bdi.internal_actions import ANY_NUMBER, Call, failed
from engine.bdi.library.agent import _plans_for, _society, trigger_of
from engine.bdi.library.terms import internal
from engine.bdi.plans import as_term
from engine.bdi.printer import text_of, unquoted_text
from engine.bdi.syntax import Step, StepKind, split_name, steps_of
from engine.bdi.terms import Cell, Struct, Term, atom, canonical, deref, instantiated
from engine.bdi.unification import undo, unify


def _rules(call: Call) -> list[Term]:
    """The rules whose head fits the first argument."""
    pattern, found = call.args[0], []
    for clauses in list(call.agent.rules.values()):
        for clause in clauses:
            rule = instantiated(clause.term)
            mark = len(call.trail)
            if isinstance(rule, Struct) and unify(pattern, rule.args[1], call.trail):
                found.append(instantiated(clause.term))
            undo(call.trail, mark)
    return found


internal(".relevant_rules", 2)(lambda call: call.unify(1, call.made(_rules(call))))


@internal(".list_rules", 0)
def list_rules(call: Call) -> bool:
    """Say all rules."""
    for clauses in call.agent.rules.values():
        for clause in clauses:
            call.agent.say(f"{text_of(clause.term.args[1])} :- {text_of(clause.term.args[2])}")
    return True


def _assert(call: Call, *, last: bool) -> bool:
    literal = call.literal(0)
    if literal.functor == "{}":
        believing.change_rules(call.agent, literal, last=last)
    elif (change := believing.believe(call.agent, literal)) is not None:
        believing.announce(call.agent, change)
    return True


internal(".asserta", 1)(lambda call: _assert(call, last=False))
internal(".assertz", 1)(lambda call: _assert(call, last=True))


@internal(".belief", 1)
def belief(call: Call) -> Answers:
    """Each belief that fits, without rules."""
    predicate = call.agent.beliefs.predicates.get(call.literal(0).indicator)
    facts = predicate.all.facts(newest_first=call.agent.beliefs.newest_first) if predicate else ()
    yield from call.each((0, instantiated(fact.literal)) for fact in facts)


@internal(".namespace", 1)
def namespace(call: Call) -> Answers:
    """Each namespace that beliefs and rules are in."""
    names = [*call.agent.beliefs.predicates, *call.agent.rules]
    spaces = dict.fromkeys(["default", *(split_name(name.lstrip("~"))[0] for name in names)])
    yield from call.each((0, atom(space)) for space in spaces)


# The term with variables of its own
internal(".rename_apart", 2)(lambda call: call.unify(1, instantiated(canonical(call.value(0)))))


@internal(".relevant_plan", 2)
def relevant_plan(call: Call) -> Answers:
    """Each plan for an event."""
    yield from call.each((1, as_term(plan)) for plan in _plans_for(call, 0))


@internal(".signal", 1, 2)
def signal(call: Call) -> bool:
    """Raise an event about a belief, `.signal({ +b(1) })`, with nothing believed."""
    sign, literal = trigger_of(call, 0)
    call.agent.post(Event(sign, literal))
    return True


@internal(".drop_future_intention", 1)
def drop_future_intention(call: Call) -> bool:
    """Drop the intentions whose innermost plan has a step for this goal."""
    goal = call.literal(0)
    for intention in list(call.agent.intentions.values()):
        steps = steps_of(intention.frames[-1].plan.plan.body) if intention.frames else ()
        goals = [step.term for step in steps if isinstance(step, Step) and step.kind in _GOALS]
        if any(unify(instantiated(term), instantiated(canonical(goal)), []) for term in goals):
            control.drop(call.agent, intention, ".drop_future_intention")
    return True


_GOALS = (StepKind.ACHIEVE, StepKind.SPAWN)


@internal(".done", 0, 1)
def done(call: Call) -> bool:
    """End the plan of this step, or the goal that is said, as if it were achieved; see `<:`."""
    intention = call.step()
    if len(call):
        control.succeed_goal(call.agent, call.literal(0))
    else:
        frame = intention.frames[-1]
        frame.loops.clear()
        frame.pc = len(frame.code)
        call.agent.settle(intention, cut_short=True)
    return True


_PLACE = re.compile(r"#\{(\w+)\}")


@internal(".puts", 1, 2)
def puts(call: Call) -> bool:
    """Say a text with values of variables in it, `.puts("x is #{X}")`, or let the second argument be it."""
    frame = call.step().frames[-1]
    slots = frame.plan.slots

    def value(found: re.Match[str]) -> str:
        return unquoted_text(frame.env[slots[found[1]]]) if found[1] in slots else found[0]

    text = call.sized(_PLACE.sub(value, call.text(0)))
    if len(call) == 2:
        return call.unify(1, text)
    call.agent.say(text)
    return True


_FORMAT = re.compile(r"%(?:[-+ 0,#]*\d{0,3}(?:\.\d{1,3})?[dfeEgsx]|%|n)")


@internal(".printf", 1, ANY_NUMBER)
def printf(call: Call) -> bool:
    """Say a text with numbers and terms in the places of `%d`, `%.2f`, `%s`."""
    values = iter(map(deref, call.args[1:]))

    def written(found: re.Match[str]) -> str:
        kind = found[0]
        if kind in ("%%", "%n"):
            return "%" if kind == "%%" else "\n"
        value = next(values, None)
        if value is None or isinstance(value, Cell):
            raise failed(f".printf: there is no value for {kind}")
        given = value if isinstance(value, int | float) and kind[-1] != "s" else unquoted_text(value)
        try:
            return kind.replace(",", "") % (int(given) if kind[-1] in "dx" else given)
        except (TypeError, ValueError, OverflowError):
            raise failed(f".printf: {kind} does not take {given}") from None

    call.agent.say(call.sized(_FORMAT.sub(written, call.text(0))))
    return True


@internal(".print_unifier", 0)
def print_unifier(call: Call) -> bool:
    """Say the values of the plan's variables."""
    frame = call.step().frames[-1]
    for name, slot in frame.plan.slots.items():
        if not isinstance(value := deref(frame.env[slot]), Cell):
            call.agent.say(f"{name}={text_of(value)}")
    call.agent.say("done")
    return True


for _name in (
    ".perceive",
    ".verbose",
):  # what is perceived is sensed in each cycle, and prints are the host's
    internal(_name, 0, 1)(lambda call: True)


@internal(".clone", 1)
def clone(call: Call) -> bool:
    """`.clone("bob")`: start an agent with the same beliefs, rules and plans."""
    try:
        _society(call).clone(call.agent, call.name_of(0))
    except ValueError as error:
        raise failed(f".clone: {error}") from None
    return True


@internal(".list_files", 2, 3)
def list_files(call: Call) -> bool:
    """A step `.list_files("folder", L)` is the agent's action `ls`, done by its tool; nothing else can be."""
    raise failed(".list_files takes a folder and a variable, as a step of a body; there are no patterns")
