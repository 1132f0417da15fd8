"""Parts of an agent as lines of a prompt (spec BDI §2.6)."""

from __future__ import annotations

from collections.abc import Iterable

from engine.bdi.printing import text_of
from engine.bdi.syntax import Trigger
from engine.bdi.terms import Struct
from engine.generation.pgp.documentation import ActionSpec, Meaning, meaning_of

_WORDS = {
    "+!": "achieve ",
    "-!": "achieve failure ",
    "+?": "test ",
    "-?": "test failure ",
    "^!": "state of goal ",
    "^?": "state of test ",
    "+": "add ",
    "-": "remove ",
}


def _with_purpose(text: str, purpose: str) -> str:
    return f"{text}: {purpose}" if purpose else text


def admissible_belief(meaning: Meaning) -> str:
    """A template and what it means."""
    return _with_purpose(text_of(meaning.template), meaning.of(meaning.template))


def admissible_goal(meaning: Meaning) -> str:
    """A template as the answer format spells goals, and what it means."""
    return f"achieve {admissible_belief(meaning)}"


def belief(term: Struct, meanings: Iterable[Meaning]) -> str:
    """A belief without its sources, and what it means."""
    bare = term.with_annotations(())
    return _with_purpose(text_of(bare), meaning_of(bare, meanings))


def action(spec: ActionSpec) -> str:
    """An action's signature and what it does."""
    template = spec.template
    text = text_of(template) if template.args else f"{template.functor}()"
    return _with_purpose(text, Meaning(template, spec.purpose).of(template))


def trigger(event: Trigger, meanings: Iterable[Meaning] = ()) -> str:
    """An event as the answer format spells it, `achieve reach(home)`, and what its goal means."""
    text = f"{_WORDS[event.operation + event.kind]}{text_of(event.literal)}"
    meaning = meaning_of(event.literal, meanings) if isinstance(event.literal, Struct) else ""
    return _with_purpose(text, meaning)
