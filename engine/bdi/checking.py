"""What is wrong with programs that can be read, and what looks wrong.

An internal action that is not there, or not with so many arguments, is wrong. It looks wrong where a plan's
event never comes, a plan never gets its turn, a goal has no plan, a belief is held and never asked for, or is
asked for under a name that is nearly another's. Programs that are checked together send each other messages;
percepts are what the world may give.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence, Set
from functools import cache, partial
from typing import NamedTuple

from engine.bdi.arithmetic import FUNCTIONS
from engine.bdi.errors import Position
from engine.bdi.internal_actions import InternalActions, nearest
from engine.bdi.printer import trigger_text
from engine.bdi.syntax import (
    OPERATORS,
    SIGNED,
    SPACE_MARK,
    If,
    Program,
    Step,
    StepKind,
    is_internal,
    steps_of,
)
from engine.bdi.terms import QUOTED_PLAN, TRUE, VARIABLE_LITERAL, Struct, Term, Var, subterms
from engine.value import dataclass

_FORMULAS = {(".findall", 3), (".setof", 3), (".count", 2), (".count", 1), (".eval", 2), (".value", 1)}
"""Internal actions that are compiled as formulas, with their numbers of arguments."""
_CALLS = _FORMULAS | {("math.random", 0), ("math.random", 1)} | set(FUNCTIONS)
_PURSUED = (StepKind.ACHIEVE, StepKind.SPAWN)
_HELD = (StepKind.ADD, StepKind.UPDATE, StepKind.ADD_APART)
_ASKED = (StepKind.TEST, StepKind.CONSTRAINT)
_OPEN = {VARIABLE_LITERAL, SPACE_MARK}
"""Functors of what is known only while the program runs."""
_NAMELESS = {*OPERATORS, *SIGNED, *_OPEN, QUOTED_PLAN, "true", "false"}


class Finding(NamedTuple):
    """One thing that is, or looks, wrong."""

    source: str
    line: int
    column: int
    text: str
    wrong: bool = False
    """True for what fails whenever it is run."""

    def __str__(self) -> str:
        return f"{self.source}:{self.line}:{self.column}: {'' if self.wrong else 'warning: '}{self.text}"


class _Use(NamedTuple):
    """A term of a step, or a part of a formula; `name` is empty where only running says what is meant."""

    source: str
    place: Position
    kind: StepKind
    term: Term

    @property
    def name(self) -> str:
        term = self.term
        return term.indicator if isinstance(term, Struct) and term.functor not in _OPEN else ""


def _uses(program: Program) -> Iterator[_Use]:
    formulas: list[tuple[str, Position, Term]] = [
        (program.source, rule.position, rule.body) for rule in program.rules
    ]
    for plan in program.plans:
        formulas.append((plan.source, plan.position, plan.context))
        for item in steps_of(plan.body):
            if isinstance(item, Step):
                yield _Use(plan.source, item.position, item.kind, item.term)
                continue
            branches = item.branches if isinstance(item, If) else ((item.condition, ()),)
            formulas += [(plan.source, item.position, condition) for condition, _ in branches]
    for source, place, formula in formulas:
        waiting = [formula]
        while waiting:
            part = waiting.pop()
            if isinstance(part, Struct) and part.functor in ("&", "|", "not"):
                waiting += reversed(part.args)
                continue
            internal = isinstance(part, Struct) and is_internal(part.functor)
            yield _Use(source, place, StepKind.INTERNAL if internal else StepKind.CONSTRAINT, part)


def unknown_actions(program: Program, known: InternalActions) -> list[Finding]:
    """Internal actions that are not there, or not with so many arguments."""
    findings = []
    problem = cache(partial(_problem, known))
    for use in _uses(program):
        for part in subterms(use.term):
            if not isinstance(part, Struct) or not is_internal(part.functor):
                continue
            step = part is use.term and use.kind is StepKind.INTERNAL  # else it may be an atom with dots
            if step or part.functor.startswith((".", "math.")):
                findings.append(
                    Finding(use.source, *use.place, problem(part.functor, len(part.args)), wrong=True)
                )
    return [finding for finding in findings if finding.text]


def _problem(known: InternalActions, name: str, count: int) -> str:
    counts = {many for function, many in _CALLS if function == name}
    if action := known.known.get(name):
        counts |= {action.least, action.most}
    if not counts:
        return f"there is no internal action {name}{nearest(name, {*known.known, *dict(_CALLS)})}"
    least, most = min(counts), max(counts)
    many = f"{least}" if least == most else f"{least} to {most}"
    return "" if least <= count <= most else f"{name} takes {many} argument{'s' * (many != '1')}, not {count}"


@dataclass(slots=True)
class _Names:
    """What programs that run together say, by functor and number of arguments."""

    pursued: set[str]
    held: set[str]
    asked: set[str]
    """Beliefs that formulas ask for, and what else stands in terms."""
    handed: set[str]
    """Literals that internal actions are given, such as what is sent; they may become anything."""
    open: bool = False
    """Whether a variable or a text stands for a goal or belief."""


def _names(programs: Sequence[Program]) -> _Names:
    names = _Names(
        {goal.literal.indicator for program in programs for goal in program.goals},
        {belief.literal.indicator for program in programs for belief in program.beliefs},
        set(),
        set(),
    )
    for use in (use for program in programs for use in _uses(program)):
        names.open = names.open or not (use.name or use.kind is StepKind.TEST)
        if use.kind in (*_PURSUED, StepKind.TEST):
            names.pursued.add(use.name)
        if use.kind in _HELD:
            names.held.add(use.name)
        handed = False
        for part in subterms(use.term):
            if not isinstance(part, Struct):
                continue
            if part.functor == QUOTED_PLAN or is_internal(part.functor):
                handed = True
                sent = part.functor in (".send", ".broadcast") and isinstance(part.args[-1], Var)
                names.open = names.open or sent or part.functor in (".add_plan", ".at")
            elif part.functor not in _NAMELESS and (part is not use.term or use.kind in _ASKED):
                (names.handed if handed else names.asked).add(part.indicator)
    return names


def check(programs: Sequence[Program], known: InternalActions) -> list[Finding]:
    """All findings in programs that run together, each program's in the order of its text."""
    names = _names(programs)
    return [
        finding
        for program in programs
        for finding in sorted(
            {*unknown_actions(program, known), *_plans(program, names), *_gaps(program, names)}
        )
    ]


def _plans(program: Program, names: _Names) -> Iterator[Finding]:
    """Plans whose event never comes, or that another one always precedes."""
    general: dict[tuple[str, str], int] = {}
    for plan in program.plans:
        trigger, literal = plan.trigger, plan.trigger.literal
        if not isinstance(literal, Struct) or literal.functor in (*_OPEN, "kqml_received"):
            continue
        come, what = (names.pursued, "goal pursues") if trigger.is_goal else (names.held, "belief adds")
        if not names.open and literal.indicator not in come | names.handed:
            text = f"{trigger_text(trigger)} is never relevant here: no step, message or initial {what} it"
            yield Finding(plan.source, *plan.position, text + nearest(literal.indicator, come))
        event = f"{trigger.operation}{trigger.kind}", literal.indicator
        if event in general:
            text = f"this plan never gets its turn: the one in line {general[event]} fits every time"
            yield Finding(plan.source, *plan.position, text)
        different = {arg for arg in literal.args if isinstance(arg, Var)}
        if plan.context == TRUE and not literal.annotations and len(different) == len(literal.args):
            general.setdefault(event, plan.position.line)


def _gaps(program: Program, names: _Names) -> Iterator[Finding]:
    """Goals without plans, beliefs that nothing asks for, and questions for what is nearly a belief."""
    triggers = [plan.trigger for plan in program.plans]
    literals = [each.literal for each in triggers if isinstance(each.literal, Struct)]
    uses = list(_uses(program))
    reacted = {each.indicator for each in literals}
    if len(literals) == len(triggers) and not any(each.functor in _OPEN for each in literals):
        goals = [(goal.literal.indicator, (program.source, goal.position)) for goal in program.goals]
        goals += [(use.name, (use.source, use.place)) for use in uses if use.kind in _PURSUED and use.name]
        yield from _firsts(
            goals, reacted, lambda goal: f"there is no plan for {goal}{nearest(goal, reacted)}"
        )
    if not names.open:
        beliefs = [(each.literal.indicator, (program.source, each.position)) for each in program.beliefs]
        known = reacted | names.asked | names.handed
        yield from _firsts(beliefs, known, lambda name: f"nothing asks for the belief {name}")
    held = names.held | names.handed | reacted | {rule.head.indicator for rule in program.rules}
    asked = [
        (use.name, (use.source, use.place))
        for use in uses
        if use.kind in _ASKED and isinstance(use.term, Struct) and use.term.functor not in _NAMELESS
    ]
    for finding in _firsts(asked, held, lambda name: f"nothing here believes {name}{nearest(name, held)}"):
        if "did you mean" in finding.text:
            yield finding


def _firsts(
    uses: Sequence[tuple[str, tuple[str, Position]]], known: Set[str], text: Callable[[str], str]
) -> Iterator[Finding]:
    """What is said of each name that is not known, at its first place."""
    for name, (source, place) in dict(reversed(uses)).items():
        if name not in known:
            yield Finding(source, *place, text(name))
