"""Bodies as terms: `{ !g(X); .print(X) }` is a value that a step can run (spec §1.5).

The term is a structure `{}` with a structure for each item: `{!}` of the goal for `!g(X)`, and so for the
other signs; `{do}` for an action, internal action or formula, since its term says which it is; `{if}`,
`{while}` and `{for}`. Its variables are those of the clause around it.
"""

from __future__ import annotations

from engine.bdi.formulas import NESTING_LIMIT, OPERATORS
from engine.bdi.problems import ErrorId, EvaluationError
from engine.bdi.syntax import Body, BodyItem, For, If, Position, Step, StepKind, While
from engine.bdi.terms import QUOTED_PLAN, VARIABLE_LITERAL, Struct, Term, nests_within

SIGNED = {f"{{{kind}}}": kind for kind in StepKind if not kind.isalpha()}
"""Functors of steps that begin with a sign."""


def is_body(term: Term) -> bool:
    """True for a quoted body, not for a quoted plan or event."""
    return (
        isinstance(term, Struct)
        and term.functor == QUOTED_PLAN
        and not any(isinstance(one, str) for one in term.args[:1])
    )


def step_kind(term: Term) -> StepKind:
    """What a step without a sign does."""
    if isinstance(term, Struct) and term.functor not in _NO_ACTIONS:
        if term.functor in ("true", "false") and not term.args:
            return StepKind.CONSTRAINT
        return StepKind.INTERNAL if term.functor[0] == "." else StepKind.ACTION
    return StepKind.CONSTRAINT


_NO_ACTIONS = OPERATORS | {VARIABLE_LITERAL, QUOTED_PLAN}


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
    return (Step(step_kind(term), term, position),)


def _block(term: Term, position: Position) -> Body:
    if not (isinstance(term, Struct) and is_body(term)):
        raise _malformed()
    return tuple(_item(one, position) for one in term.args)


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
