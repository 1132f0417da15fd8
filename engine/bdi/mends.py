"""What a programmer most likely meant where a text is not AgentSpeak(L)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.resources import files

_NOT = "what must not hold is written with 'not'"


@cache
def _mends() -> dict[tuple[str, str], str]:
    """What to write, by two marks behind each other, the second being where the text goes wrong."""
    lines = (files("engine.bdi") / "mends.txt").read_text("utf-8").splitlines()
    return {(one, two): text for one, two, text in (line.split(" ", 2) for line in lines if line[:2] != "# ")}


def mend(kinds: Sequence[str], texts: Sequence[str], at: int, expected: str, line_above: int) -> str:
    """How the text can be put right; empty where that cannot be guessed.

    Args:
        kinds: of the tokens.
        texts: of the tokens.
        at: the token that does not fit.
        expected: what should have stood there.
        line_above: line of the token before it where the present one stands on a later line, else 0.
    """
    kind, before, behind = kinds[at], kinds[at - 1] if at else "", kinds[min(at + 1, len(kinds) - 1)]
    if kind == "bad":
        return _mends().get((kind, texts[at][:1]), "")
    if pair := _mends().get((before, kind)) or _mends().get((kind, behind)):
        return pair
    if "variable" in (kind, before) and "(" in (kind, behind):
        name = texts[at] if kind == "variable" else texts[at - 1]
        return f"names begin with a small letter: {name[:1].lower()}{name[1:]}"
    if "'.'" in expected:
        return _at_the_end(kinds, at, expected, line_above)
    return _NOT if kind in ("!", "~") and expected.startswith("a ") else ""


def _at_the_end(kinds: Sequence[str], at: int, expected: str, line_above: int) -> str:
    """Where a clause, or a step of a plan, does not end as it should."""
    kind, step = kinds[at], expected.startswith("';'")
    if kind in (":", "<-") and expected.startswith("':-'"):
        return "a plan begins with '+!' for a goal, with '+' for a belief"
    if line_above and kind != "end":
        # What comes next begins a clause of its own where a context or body follows before the next end.
        rest = list(kinds[at : at + 40])
        ends = min((rest.index(mark) for mark in (";", ".") if mark in rest), default=len(rest))
        return f"line {line_above} lacks its '{';' if step and not _CLAUSE & set(rest[:ends]) else '.'}'"
    comma = "steps are separated by ';'" if step else "conditions are joined by '&'"
    rule = "a plan's body begins with '<-', a rule has no '+' before it"
    return {":-": rule, ",": comma, "end": "the last clause lacks its '.'"}.get(kind, "")


_CLAUSE = {"<-", ":", ":-", "@"}
