"""A program as it was written: beliefs, rules, goals, plans and documentation, with places in the text.

Places and provenance do not count when two programs or plans are compared.

Logical formulas and arithmetic as structures: the operators, and taking conjunctions apart.

Bodies as terms: `{ !g(X); .print(X) }` is a value that a step can run.

The term is a structure `{}` with a structure for each item: `{!}` of the goal for `!g(X)`, and so for the
other signs; `{do}` for an action, internal action or formula, since its term says which it is; `{if}`,
`{while}` and `{for}`. Its variables are those of the clause around it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from typing import TypeAlias

from engine.bdi.errors import ErrorId, EvaluationError, Position
from engine.bdi.rewriting import nests_within
from engine.bdi.terms import QUOTED_PLAN, TRUE, VARIABLE_LITERAL, Struct, Term, Var
from engine.value import dataclass, field

RELATIONS = frozenset({"<", "<=", ">", ">=", "==", "\\==", "=", "\\=", "=.."})
"""Operators that compare or unify; `!=` is read as `\\=`."""

ARITHMETIC = frozenset({"+", "-", "*", "/", "div", "mod", "**"})
"""Operators whose value is a number."""

CONNECTIVES = frozenset({"&", "|", "not"})
"""Operators of logical formulas."""

NESTING_LIMIT = 100
"""How deep brackets, arguments and blocks of a program may lie in each other."""

OPERATORS = RELATIONS | ARITHMETIC | CONNECTIVES


DEFAULT_SPACE = "default"
"""The namespace of names that say none."""

SPACE_MARK = "::"
"""Stands behind a namespace; as a functor, of a namespace that is a variable and the literal."""


def split_name(functor: str) -> tuple[str, str]:
    """Namespace and name of a functor."""
    space, mark, name = functor.partition(SPACE_MARK)
    return (space, name) if mark and space and name else (DEFAULT_SPACE, functor)


def in_space(space: str, name: str) -> str:
    """The functor of a name in a namespace."""
    return name if space in ("", DEFAULT_SPACE) else f"{space}{SPACE_MARK}{name}"


def is_literal(term: Term) -> bool:
    """True for a structure that is no operator: a belief, goal or action."""
    return type(term) is Struct and term.functor not in OPERATORS


def conjuncts(formula: Term, operator: str = "&") -> tuple[Term, ...]:
    """The parts of a conjunction (or of another connective); a single formula is its own only part."""
    if type(formula) is Struct and formula.functor == operator and len(formula.args) > 1:
        return formula.args
    return (formula,)


def conjunction(parts: Iterable[Term], operator: str = "&") -> Term:
    """These formulas joined; nested ones of the same operator are flattened, none at all is `true`."""
    flat = tuple(leaf for part in parts for leaf in conjuncts(part, operator))
    if not flat:
        return TRUE
    return flat[0] if len(flat) == 1 else Struct(operator, flat)


class Operation(StrEnum):
    """What happened to the belief or goal of an event."""

    ADDED = "+"
    REMOVED = "-"
    """Of a goal: it failed."""
    GOAL_STATE = "^"
    """Of a goal: its state changed, which its annotation `state(…)` names."""


class TriggerKind(StrEnum):
    """What an event is about."""

    BELIEF = ""
    ACHIEVE = "!"
    TEST = "?"


@dataclass(frozen=True, slots=True)
class Trigger:
    """`+!g(X)`, `-b`, …: an event, or what a plan waits for."""

    operation: Operation
    kind: TriggerKind
    literal: Struct | Var

    @property
    def is_goal(self) -> bool:
        """True for achievement and test goals."""
        return self.kind is not TriggerKind.BELIEF


class StepKind(StrEnum):
    """What a body step does."""

    ACHIEVE = "!"
    SPAWN = "!!"
    TEST = "?"
    ADD = "+"
    REMOVE = "-"
    UPDATE = "-+"
    ADD_APART = "++"
    """As an event of its own, for which the intention does not wait."""
    REMOVE_APART = "--"
    ACTION = "action"
    """Given to the environment; the intention waits for its feedback."""
    INTERNAL = "internal"
    """`.name(…)`, run by the interpreter."""
    CONSTRAINT = "constraint"
    """A formula that must hold."""


@dataclass(frozen=True, slots=True)
class Step:
    """One plain step of a body."""

    kind: StepKind
    term: Term
    position: Position = field(default=Position(), compare=False)


@dataclass(frozen=True, slots=True)
class If:
    """`if (C) { … } elif (C) { … } else { … }`."""

    branches: tuple[tuple[Term, Body], ...]
    otherwise: Body = ()
    position: Position = field(default=Position(), compare=False)


@dataclass(frozen=True, slots=True)
class While:
    """`while (C) { … }`."""

    condition: Term
    body: Body
    position: Position = field(default=Position(), compare=False)


@dataclass(frozen=True, slots=True)
class For:
    """`for (C) { … }`: the body once for each answer."""

    condition: Term
    body: Body
    position: Position = field(default=Position(), compare=False)


BodyItem: TypeAlias = Step | If | While | For
Body: TypeAlias = tuple[BodyItem, ...]


def steps_of(body: Body) -> Iterator[BodyItem]:
    """Every item of a body and of the blocks inside, in the order of the text."""
    for item in body:
        yield item
        if isinstance(item, If):
            for _, block in item.branches:
                yield from steps_of(block)
            yield from steps_of(item.otherwise)
        elif isinstance(item, While | For):
            yield from steps_of(item.body)


@dataclass(frozen=True, slots=True)
class Plan:
    """`@label TRIGGER : CONTEXT <- BODY.`"""

    trigger: Trigger
    context: Term = TRUE
    body: Body = ()
    label: Struct | None = None
    """The label's name with its annotations (`atomic`, `breakpoint`, …)."""
    position: Position = field(default=Position(), compare=False)
    source: str = field(default="", compare=False)
    """Where its text came from: a file, a model, the operator."""
    provenance: Mapping[str, object] = field(default_factory=dict, compare=False)
    """Whatever its author wants to remember about it; values must be ready for JSON."""

    @property
    def name(self) -> str:
        """The label's name, empty without one."""
        return self.label.functor if self.label else ""

    def note(self, functor: str) -> Struct | None:
        """The label's annotation with this functor, None when there is none."""
        for term in self.label.annotations if self.label else ():
            if isinstance(term, Struct) and term.functor == functor:
                return term
        return None


@dataclass(frozen=True, slots=True)
class Belief:
    """An initial belief."""

    literal: Struct
    position: Position = field(default=Position(), compare=False)


@dataclass(frozen=True, slots=True)
class Rule:
    """`head :- body`."""

    head: Struct
    body: Term
    position: Position = field(default=Position(), compare=False)


@dataclass(frozen=True, slots=True)
class Goal:
    """An initial goal, `!g.` or `?g.`"""

    kind: TriggerKind
    literal: Struct
    position: Position = field(default=Position(), compare=False)


class DocKind(StrEnum):
    """What a documentation comment gives."""

    MEANING = "meaning"
    ADMISSIBLE = "admissible"
    """A goal or belief that the agent does not hold yet but may use."""
    REMARK = "remark"


class Subject(StrEnum):
    """What a documentation comment is about."""

    GOAL = "goal"
    BELIEF = "belief"
    ACTION = "action"
    PLAN = "plan"


@dataclass(frozen=True, slots=True)
class Doc:
    """A documentation comment: `//@ admissible goal reach(Object): "the robot stands on the object"`."""

    kind: DocKind
    text: str
    subject: Subject | None = None
    literal: Struct | None = None
    """What it describes; None for a remark."""
    position: Position = field(default=Position(), compare=False)


@dataclass(frozen=True, slots=True)
class Include:
    """`{ include("file.asl") }`; `including` puts the file in its place."""

    path: str
    position: Position = field(default=Position(), compare=False)
    space: str = ""
    """Namespace of its names."""


@dataclass(frozen=True, slots=True)
class Program:
    """A whole program, each sort in the order of the text."""

    knowledge: tuple[Belief | Rule, ...] = ()
    """Beliefs and rules."""
    goals: tuple[Goal, ...] = ()
    plans: tuple[Plan, ...] = ()
    docs: tuple[Doc, ...] = ()
    includes: tuple[Include, ...] = ()
    source: str = field(default="", compare=False)

    @property
    def beliefs(self) -> list[Belief]:
        """What it holds without conditions."""
        return [item for item in self.knowledge if isinstance(item, Belief)]

    @property
    def rules(self) -> list[Rule]:
        """What follows from other beliefs."""
        return [item for item in self.knowledge if isinstance(item, Rule)]


SIGNED = {f"{{{kind}}}": kind for kind in StepKind if not kind.isalpha()}
"""Functors of steps that begin with a sign."""


PLAN_MARK, RULE_MARK = "@", ":-"
"""First arguments of a quoted plan and rule; what follows is said at `plan_term` and in the parser."""


def event_term(trigger: Trigger) -> Struct:
    """An event as a term: sign and literal."""
    return Struct(QUOTED_PLAN, (f"{trigger.operation}{trigger.kind}", trigger.literal))


def plan_term(label: Struct | Var | None, trigger: Trigger, context: Term, body: Body) -> Struct:
    """A plan as a term: label, sign, literal, context and body, each of which unifies."""
    match body:
        case (Step(kind=StepKind.CONSTRAINT, term=Var() as steps),):
            whole: Term = steps
        case _:
            whole = body_term(body)
    event = event_term(trigger).args
    return Struct(QUOTED_PLAN, (PLAN_MARK, label or Struct(""), *event, context, whole))


def plan_of(term: Struct, source: str) -> Plan:
    """The plan that a term stands for, whose variables are written ones.

    Raises:
        EvaluationError: it is no plan.
    """
    if not nests_within(term, NESTING_LIMIT):
        raise EvaluationError(ErrorId.LIMIT_EXCEEDED, f"a plan nests deeper than {NESTING_LIMIT} levels")
    match term.args:
        case (str(sign), Struct() | Var() as literal):
            return Plan(_trigger(sign, literal), source=source)
        case ("@", Struct() as label, str(sign), Struct() | Var() as literal, context, body):
            name = label if label.functor or label.annotations else None
            return Plan(_trigger(sign, literal), context, body_of(body, Position()), name, source=source)
    raise EvaluationError(ErrorId.EVALUATION_FAILED, "a term in braces is not a plan")


def _trigger(sign: str, literal: Struct | Var) -> Trigger:
    try:
        return Trigger(Operation(sign[:1]), TriggerKind(sign[1:]), literal)
    except ValueError:
        raise EvaluationError(ErrorId.EVALUATION_FAILED, f"{sign} begins no event") from None


def is_quoted(term: Term) -> bool:
    """True for a quoted body, plan or rule, whose arithmetic waits until it is run; not for an event."""
    return isinstance(term, Struct) and term.functor == QUOTED_PLAN and not _is_event(term)


def _is_event(term: Struct) -> bool:
    return len(term.args) == 2 and isinstance(term.args[0], str)


def is_body(term: Term) -> bool:
    """True for a quoted body, not for a quoted plan or event."""
    return (
        isinstance(term, Struct)
        and term.functor == QUOTED_PLAN
        and not any(isinstance(arg, str) for arg in term.args[:1])
    )


def step_kind(term: Term) -> StepKind:
    """What a step without a sign does."""
    if isinstance(term, Struct) and term.functor not in _NO_ACTIONS:
        if term.functor in ("true", "false") and not term.args:
            return StepKind.CONSTRAINT
        return StepKind.INTERNAL if is_internal(term.functor) else StepKind.ACTION
    return StepKind.CONSTRAINT


_NO_ACTIONS = OPERATORS | {VARIABLE_LITERAL, QUOTED_PLAN, SPACE_MARK}


def is_internal(functor: str) -> bool:
    """True for `.name` and `library.name`."""
    return "." in functor and _DOTTED.fullmatch(functor) is not None


_DOTTED = re.compile(r"\.?[^\W\d_A-Z]\w*(\.\w+)*")


def body_term(body: Body) -> Struct:
    """A body as a term."""
    return Struct(QUOTED_PLAN, tuple(map(_item_term, body)))


def _item_term(item: BodyItem) -> Struct:
    if isinstance(item, Step):
        sign = f"{{{item.kind}}}"
        return Struct(sign if sign in SIGNED else "{do}", (item.term,))
    if isinstance(item, If):
        arms = [part for condition, block in item.branches for part in (condition, body_term(block))]
        return Struct("{if}", (*arms, body_term(item.otherwise)))
    return Struct("{while}" if isinstance(item, While) else "{for}", (item.condition, body_term(item.body)))


def body_of(term: Term, position: Position) -> Body:
    """The body that a term stands for; anything but a quoted body is its only step.

    Args:
        term: variables in it are written ones.
        position: where all steps are said to stand.

    Raises:
        EvaluationError: it nests too deeply, or was put together otherwise than by writing a body.
    """
    if not nests_within(term, NESTING_LIMIT):
        raise EvaluationError(ErrorId.LIMIT_EXCEEDED, f"a body nests deeper than {NESTING_LIMIT} levels")
    if is_body(term):
        return _block(term, position)
    match term:
        case Struct(functor="{}", args=("+", Struct() as literal)):
            return (Step(StepKind.ADD, literal, position),)
        case Struct(functor="{}", args=("-", Struct() as literal)):
            return (Step(StepKind.REMOVE, literal, position),)
        case Struct(functor=functor) if functor[:1] == "{" and functor != QUOTED_PLAN:
            return (_item(term, position),)
    return (Step(step_kind(term), term, position),)


def _block(term: Term, position: Position) -> Body:
    if not (isinstance(term, Struct) and is_body(term)):
        raise _malformed()
    return tuple(_item(arg, position) for arg in term.args)


def _item(term: Term, position: Position) -> BodyItem:
    match term:
        case Struct(functor=sign, args=(what,)) if sign in SIGNED:
            return Step(SIGNED[sign], what, position)
        case Struct(functor="{do}", args=(what,)):
            return Step(step_kind(what), what, position)
        case Struct(functor="{while}", args=(condition, block)):
            return While(condition, _block(block, position), position)
        case Struct(functor="{for}", args=(condition, block)):
            return For(condition, _block(block, position), position)
        case Struct(functor="{if}", args=(_, _, _, *_) as parts) if len(parts) % 2:
            arms = zip(parts[:-1:2], parts[1::2], strict=True)
            branches = tuple((condition, _block(block, position)) for condition, block in arms)
            return If(branches, _block(parts[-1], position), position)
    raise _malformed()


def _malformed() -> EvaluationError:
    return EvaluationError(ErrorId.EVALUATION_FAILED, "a term in braces is not a body")
