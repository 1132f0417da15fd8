"""Rules as terms, events without a cause, plans ended early, programs included, agents made alike."""

from __future__ import annotations

from engine.bdi import belief_revision as believing
from engine.bdi import control
from engine.bdi import waits as waiting
from engine.bdi.beliefs import Answers, sourced
from engine.bdi.intentions import Event
from engine.bdi.internal_actions import Call, failed
from engine.bdi.library.agent import trigger_of
from engine.bdi.library.society import _society
from engine.bdi.library.terms import internal
from engine.bdi.plans import LoadedProgram
from engine.bdi.printer import unquoted_text
from engine.bdi.rewriting import instantiated
from engine.bdi.syntax import split_name
from engine.bdi.terms import Struct, Term, atom
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
            head, body = clause.term.args[1:]
            assert isinstance(head, Struct)
            head = head.with_annotations(sourced(head.annotations))
            call.agent.say(f"{unquoted_text(head)} :- {unquoted_text(body)}")
    return True


@internal(".namespace", 1)
def namespace(call: Call) -> Answers:
    """Each namespace that beliefs and rules are in."""
    names = [*call.agent.beliefs.predicates, *call.agent.rules]
    spaces = dict.fromkeys(["default", *(split_name(name.lstrip("~"))[0] for name in names)])
    yield from call.each((0, atom(space)) for space in spaces)


@internal(".signal", 1, 2)
def signal(call: Call) -> bool:
    """Raise an event about a belief, `.signal({ +b(1) })`, with nothing believed."""
    sign, literal = trigger_of(call, 0)
    call.agent.post(Event(sign, literal))
    return True


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


# What is perceived is sensed in each cycle
internal(".perceive", 0)(lambda call: True)


@internal(".clone", 1)
def clone(call: Call) -> bool:
    """`.clone("bob")`: start an agent with the same beliefs, rules and plans."""
    try:
        _society(call).clone(call.agent, call.name_of(0))
    except ValueError as error:
        raise failed(f".clone: {error}") from None
    return True


@internal(".include", 1, 2)
def include(call: Call) -> bool:
    """`.include("file.asl", space)`: take over a program's beliefs, rules, plans and goals."""
    space = call.name_of(1) if len(call) == 2 else ""
    try:
        loaded = LoadedProgram(_society(call).program(call.text(0), space))
    except ValueError as error:
        raise failed(f".include: {error}") from None
    call.agent.plans.load(loaded.program.plans)
    believing.begin(call.agent, loaded)
    for goal in loaded.program.goals:
        call.agent.achieve(goal.literal, sign=f"+{goal.kind}")
    return True


@internal(".list_files", 2, 3)
def list_files(call: Call) -> bool:
    """`.list_files("folder", ".*.asl", L)`: files in and beneath a folder of a program's.

    In a session it is the agent's action `ls`, done by its tool; there it takes a folder and a variable.
    """
    if (society := call.agent.society) is not None:
        try:
            files = society.files(call.text(0), call.text(1) if len(call) == 3 else ".*")
            return call.unify(len(call) - 1, call.made(files))
        except ValueError as error:
            raise failed(f".list_files: {error}") from None
    if len(call) == 3 or call.intention is None:
        raise failed(".list_files takes a folder and a variable, as a step of a body; there are no patterns")
    waiting.for_action(call.agent, Struct("ls", call.args), call.intention)
    return True
