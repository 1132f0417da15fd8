"""Plans written as a model is asked to write them (spec BDI §2.9)."""

from __future__ import annotations

from collections.abc import Iterable

from engine.bdi.printing import item_text, text_of
from engine.bdi.syntax import BodyItem, Plan, Step, StepKind
from engine.bdi.terms import Struct, Term
from engine.generation.pgp import formatters
from engine.generation.pgp.renaming import conditions_of

_WORDS = {
    StepKind.ACHIEVE: "achieve",
    StepKind.SPAWN: "spawn",
    StepKind.TEST: "test",
    StepKind.ADD: "add",
    StepKind.REMOVE: "remove",
    StepKind.UPDATE: "update",
}


def as_answer(plans: Iterable[Plan]) -> str:
    """Plans in one fenced block; what the format has no word for stands as in a program.

    Sources and other annotations are left out: a model is not told of them.
    """
    return "```yaml\n" + "\n---\n".join(map(_plan, plans)) + "\n```\n"


def _plan(plan: Plan) -> str:
    conditions = [text_of(bare(one)) for one in conditions_of(plan.context)]
    return "\n".join(
        [
            f"EVENT: {formatters.trigger(plan.trigger)}",
            "CONDITIONS:",
            *_listed(conditions),
            "OPERATIONS:",
            *_listed([_operation(item) for item in plan.body]),
        ]
    )


def _listed(items: list[str]) -> list[str]:
    return [f"  - {item}" for item in items or ["<none>"]]


def _operation(item: BodyItem) -> str:
    if not isinstance(item, Step) or item.kind is StepKind.CONSTRAINT:
        return " ".join(item_text(item).split())
    term = bare(item.term)
    if item.kind in _WORDS:
        return f"{_WORDS[item.kind]} {text_of(term)}"
    if isinstance(term, Struct) and term.functor == ".generate_plan":
        return f"generate {', '.join(map(text_of, term.args))}"
    text = text_of(term).removeprefix(".")
    return f"execute {text}" if isinstance(term, Struct) and term.args else f"execute {text}()"


def bare(term: Term) -> Term:
    """A condition or operation without the annotations of its literals."""
    if not isinstance(term, Struct):
        return term
    if term.functor in ("not", "&", "|"):
        return term.with_args(tuple(map(bare, term.args)))
    return term.with_annotations(())
