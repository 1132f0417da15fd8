"""Reads a model's answer as plans and inventions, and reports everything that could not be read.

Nothing is dropped in silence: a plan with a line, condition or operation that cannot be read is not among the
plans and is reported with its line; the text itself is kept. Spelling is normalised (negations, connectives,
relations, commas that mean "and", `g()` for `g`); the rest is left for the language's parser to refuse.
Invented goals and beliefs become admissible, and the next prompt explains them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from difflib import get_close_matches
from enum import StrEnum
from typing import TypeVar

from engine.bdi import syntax
from engine.bdi.errors import Position, ProgramError
from engine.bdi.parser import parse_literal, parse_term
from engine.bdi.printer import text_of
from engine.bdi.rewriting import rewrite
from engine.bdi.terms import Struct, Term, Var
from engine.planning.pgp import answer_layout as layouts
from engine.planning.pgp.documentation import ActionSpec, Documentation, Meaning
from engine.planning.pgp.plan_comparison import leaves_of
from engine.planning.pgp.prompts import STEP_WORDS
from engine.value import dataclass, replace

_TOKEN = re.compile(
    r'\s*(?:(?P<string>"(?:[^"\\]|\\.)*")'
    r"|(?P<number>\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)"
    r"|(?P<name>\.?[^\W\d]\w*(?:\.[^\W\d]\w*)*)"
    r"|(?P<sign><none>|\\==|\\=|\\\+|!==|!=|<>|===|==|=<|<=|>=|&&|\|\||\*\*|.))",
    re.S,
)

_WORDS = {"not": "not", "and": "&", "or": "|"}
_SPELLINGS = {
    "not": "¬ ! ~ \\+",
    "\\=": "!= !== <> ≠",
    "==": "===",
    "<=": "=< ≤",
    ">=": "≥",
    "&": "&& ∧",
    "|": "; || ∨",
    "none": "<none>",
}
_SIGNS = {sign: meant for meant, signs in _SPELLINGS.items() for sign in signs.split()}


class _Bracket(StrEnum):
    """What an open bracket holds; in a group a comma means "and"."""

    GROUP = "group"
    ARGUMENTS = "arguments"
    LIST = "list"


def _rewritten(text: str, outermost: _Bracket) -> str:
    """A text in AgentSpeak's spelling: a condition is a group, in which `~p` is `not p`, as the prompt never
    speaks of strong negation; a goal, belief or action is an argument, whose sign and relations stay.
    """
    out: list[str] = []
    open_brackets: list[_Bracket] = []
    after_name = False
    for token in _TOKEN.finditer(text):
        part = token[token.lastgroup or 0]
        inside = open_brackets[-1] if open_brackets else outermost
        logic = inside is _Bracket.GROUP
        named, after_name = after_name, False
        if token.lastgroup == "name":
            part = _WORDS.get(part.casefold(), part) if logic else part
            after_name = part not in ("not", "&", "|")
        elif token.lastgroup == "sign":
            if part == "(":
                open_brackets.append(_Bracket.ARGUMENTS if named else _Bracket.GROUP)
            elif part in "[{":
                open_brackets.append(_Bracket.LIST)
            elif part in ")]}" and open_brackets:
                open_brackets.pop()
                if part == ")" and out[-1] == "(":
                    out.pop()
                    continue
            elif part == "," and logic:
                part = "&"
            elif logic or part == "<none>":
                part = _SIGNS.get(part, part)
        out.append(part)
    return " ".join(out)


_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class ParsedPlan:
    """A plan of an answer, and what was guessed in reading it."""

    plan: syntax.Plan
    line: int
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Invention:
    """A goal or belief that the model made up, and what it says it means."""

    kind: layouts.InventionKind
    template: Struct
    purpose: str
    line: int
    text: str
    """The template as written."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What was read of a model's answer."""

    text: str
    plans: tuple[ParsedPlan, ...] = ()
    inventions: tuple[Invention, ...] = ()
    problems: tuple[layouts.Problem, ...] = ()

    def invented(self, kind: layouts.InventionKind) -> tuple[Invention, ...]:
        """The inventions of one kind."""
        return tuple(invention for invention in self.inventions if invention.kind is kind)


def parse_answer(text: str, actions: Collection[ActionSpec] = ()) -> Answer:
    """The plans and inventions of an answer; never raises, and takes time linear in its length.

    Args:
        text: the answer as the model gave it.
        actions: what the agent can do; an operation without `execute` is taken for one of these.
    """
    layout = layouts.layout_of(text)
    plans: list[ParsedPlan] = []
    inventions: list[Invention] = []
    problems = list(layout.faults)
    for plan in layout.plans:
        read = _PlanReader(plan, actions).read()
        if read is not None:
            plans.append(read)
        problems += plan.faults
    for invention in layout.inventions:
        template = _template(invention)
        if isinstance(template, Struct):
            written = invention.purpose, invention.line, invention.text
            inventions.append(Invention(invention.kind, template, *written))
        else:
            problems.append(layouts.Problem(layouts.ProblemKind(invention.kind), invention.line, template))
    if not (layout.plans or inventions or problems):
        problems.append(layouts.Problem(layouts.ProblemKind.EMPTY, 1, "the answer holds no plan"))
    return Answer(text, tuple(plans), tuple(inventions), tuple(sorted(problems, key=lambda plan: plan.line)))


class _UnreadableError(ValueError):
    """An item that cannot be read; the message says why."""


_PREFIX = re.compile(
    r"\[?\s*(execute|achieve|test|spawn|generate|add|remove|update)\s*(?:\]\s*:?|:|\s)\s*", re.I
)
_STEPS = {
    "execute": syntax.StepKind.ACTION,
    **{word: kind for kind, word in STEP_WORDS.items()},
    "generate": syntax.StepKind.INTERNAL,
}
_EVENTS = {
    "achieve": (syntax.Operation.ADDED, syntax.TriggerKind.ACHIEVE),
    "test": (syntax.Operation.ADDED, syntax.TriggerKind.TEST),
    "add": (syntax.Operation.ADDED, syntax.TriggerKind.BELIEF),
    "remove": (syntax.Operation.REMOVED, syntax.TriggerKind.BELIEF),
}
_SIGNED_EVENTS = {"+!": "achieve", "+?": "test", "!": "achieve", "?": "test", "+": "add", "-": "remove"}
_SIGNED_STEPS = {"!!": "spawn", "!": "achieve", "?": "test", "-+": "update", "+": "add", "-": "remove"}


def _split(text: str, signs: dict[str, str]) -> tuple[str, str]:
    """The leading word in the format's spelling, empty when there is none, and what follows it."""
    match = _PREFIX.match(text)
    if match:
        return match[1].lower(), text[match.end() :]
    for sign, word in signs.items():
        if text.startswith(sign):
            return word, text[len(sign) :]
    return "", text


def _literal(text: str) -> Struct:
    try:
        return parse_literal(_rewritten(text, _Bracket.ARGUMENTS))
    except ProgramError as error:
        raise _UnreadableError(_cause(text, error)) from None


def _can_hold(leaf: Term) -> bool:
    while isinstance(leaf, Struct) and leaf.functor == "not" and len(leaf.args) == 1:
        leaf = leaf.args[0]
        if isinstance(leaf, Struct) and leaf.functor in ("&", "|"):
            return all(map(_can_hold, leaves_of(leaf)))
    return syntax.is_literal(leaf) or (isinstance(leaf, Struct) and leaf.functor in syntax.RELATIONS)


def _cause(text: str, error: ProgramError) -> str:
    first = error.problems[0]
    return f"'{text[:80]}': expected {first.expected}, found {first.found}"


def _template(invention: layouts.InventionLayout) -> Struct | str:
    """The invented goal or belief, or why it cannot be read."""
    try:
        return _literal(_split(invention.text, _SIGNED_EVENTS)[1])
    except _UnreadableError as error:
        return str(error)


class _PlanReader:
    def __init__(self, layout: layouts.PlanLayout, actions: Collection[ActionSpec]) -> None:
        self._layout = layout
        self._internal = {action.name: action.internal for action in actions}
        self._warnings: list[str] = []
        self._anonymous = 0

    def read(self) -> ParsedPlan | None:
        """The plan, None when there are reasons against it."""
        trigger = self._trigger()
        conditions = [self._try(self._condition, item) for item in self._items(layouts.Section.CONDITIONS)]
        steps = [self._try(self._step, item) for item in self._items(layouts.Section.OPERATIONS)]
        if self._layout.faults or trigger is None:
            return None
        context = syntax.conjunction(condition for condition in conditions if condition is not None)
        body = tuple(step for step in steps if step is not None)
        plan = syntax.Plan(trigger, context, body, position=Position(self._layout.line, 1))
        return ParsedPlan(plan, self._layout.line, tuple(self._warnings))

    def _refuse(self, line: int, reason: str) -> None:
        self._layout.faults.append(layouts.Problem(layouts.ProblemKind.PLAN, line, reason))

    def _items(self, section: layouts.Section) -> Iterator[layouts.Item]:
        """The items that say something."""
        return (item for item in self._layout.items.get(section, ()) if not layouts.is_empty(item.text))

    def _try(self, read: Callable[[layouts.Item], _T], item: layouts.Item) -> _T | None:
        try:
            return read(item)
        except _UnreadableError as error:
            self._refuse(item.line, str(error))
            return None

    def _trigger(self) -> syntax.Trigger | None:
        items = tuple(self._items(layouts.Section.EVENT))
        if len(items) != 1:
            self._refuse(self._layout.line, f"a plan is for one event, this one names {len(items)}")
            return None
        return self._try(self._event, items[0])

    def _event(self, item: layouts.Item) -> syntax.Trigger:
        word, rest = _split(item.text, _SIGNED_EVENTS)
        if not word:
            self._warnings.append(f"'{item.text[:80]}' was read as a goal to achieve")
        elif word not in _EVENTS:
            raise _UnreadableError(f"no event begins with '{word}'; write achieve or test")
        return syntax.Trigger(*_EVENTS[word or "achieve"], self._literal(rest))

    def _condition(self, item: layouts.Item) -> Term:
        try:
            formula = parse_term(_rewritten(item.text, _Bracket.GROUP))
        except ProgramError as error:
            raise _UnreadableError(_cause(item.text, error)) from None
        for leaf in leaves_of(formula):
            if not _can_hold(leaf):
                raise _UnreadableError(f"'{text_of(leaf)[:80]}' is nothing that can hold or not")
        return self._distinct(formula)

    def _literal(self, text: str) -> Struct:
        term = self._distinct(_literal(text))
        assert isinstance(term, Struct)
        return term

    def _distinct(self, term: Term) -> Term:
        """The term with anonymous variables that occur nowhere else in the plan."""

        def leaf(term: Term) -> Term:
            if not (isinstance(term, Var) and term.anonymous):
                return term
            self._anonymous += 1
            return Var(f"_{self._anonymous}")

        return rewrite(term, leaf)

    def _step(self, item: layouts.Item) -> syntax.Step:
        word, rest = _split(item.text, _SIGNED_STEPS)
        term, place = self._literal(rest), Position(item.line, 1)
        if word == "generate":
            return syntax.Step(syntax.StepKind.INTERNAL, Struct(".generate_plan", (term,)), place)
        if not word:
            self._expect_action(item.text, term)
        elif word != "execute":
            return syntax.Step(_STEPS[word], term, place)
        name = term.functor.removeprefix(".")
        if self._internal.get(name, term.functor.startswith(".")):
            inner = Struct(f".{name}", term.args, term.annotations)
            return syntax.Step(syntax.StepKind.INTERNAL, inner, place)
        return syntax.Step(syntax.StepKind.ACTION, term, place)

    def _expect_action(self, text: str, term: Struct) -> None:
        if term.functor not in self._internal:
            near = get_close_matches(term.functor, list(self._internal), n=1)
            meant = f"; did you mean execute {near[0]}?" if near else ""
            known = ", ".join(_STEPS)
            raise _UnreadableError(f"'{text[:80]}' begins with none of {known} and names no action{meant}")
        self._warnings.append(f"'{text[:80]}' was read as an action to execute")


def with_inventions(known: Documentation, inventions: Iterable[Invention]) -> Documentation:
    """What is known after an answer; of two with the same name and number of arguments the newer counts."""
    goals = {goal.template.indicator: goal for goal in known.admissible_goals}
    beliefs = {belief.template.indicator: belief for belief in known.admissible_beliefs}
    for invention in inventions:
        among = goals if invention.kind is layouts.InventionKind.GOAL else beliefs
        # Braces would be read as places for arguments, and the purpose is a model's text.
        text = invention.purpose.replace("{", "(").replace("}", ")")
        among[invention.template.indicator] = Meaning(invention.template, text)
    return replace(known, admissible_goals=tuple(goals.values()), admissible_beliefs=tuple(beliefs.values()))
