"""What a programmer most likely meant where a text is not AgentSpeak(L)."""

from __future__ import annotations

from collections.abc import Sequence

END, VARIABLE, BAD = "end", "variable", "bad"

_PAIRS = {
    ("&", "&"): "write one '&'",
    ("|", "|"): "write one '|'",
    ("-", ">"): "a body begins with '<-'",
    ("=", ">"): "a body begins with '<-'",
    ("=", "<"): "write '<='",
    (":", "="): "a belief is added by '+', a variable gets its value by '='",
    (":", "<-"): "leave ':' out where there is no context",
    ("(", ";"): "a ')' is missing, or what stands between the brackets",
    ("(", "."): "a ')' is missing, or what stands between the brackets",
    ("<-", "."): "a plan without steps ends before '<-'",
}
"""Two marks behind each other and what to write, the second being where the text went wrong."""

_CHARACTERS = {
    "\\": "what must not hold is written with 'not'",
    "#": "a comment begins with '//'",
    "%": "a comment begins with '//', a remainder is 'mod'",
    "'": "a text stands in double quotes and ends on its line",
    '"': "a text ends on its line; a new line in it is written \\n",
    "/": "a comment that begins with '/*' ends with '*/'",
}


def mend(kinds: Sequence[str], texts: Sequence[str], at: int, expected: str, line_above: int) -> str:
    """How the text can be put right; empty where that cannot be guessed.

    Args:
        kinds: of the tokens.
        texts: of the tokens.
        at: the token that does not fit.
        expected: what should have stood there.
        line_above: line of the token before it where the present one stands on a later line, else 0.
    """
    kind, before = kinds[at], kinds[at - 1] if at else ""
    behind = kinds[at + 1] if kind != END else END
    if kind == BAD:
        return _CHARACTERS.get(texts[at][:1], "")
    pair = _PAIRS.get((before, kind)) or _PAIRS.get((kind, behind))
    if pair:
        return pair
    if VARIABLE in (kind, before) and "(" in (kind, behind):
        name = texts[at] if kind == VARIABLE else texts[at - 1]
        return f"names begin with a small letter: {name[:1].lower()}{name[1:]}"
    if "'.'" in expected:
        return _at_the_end(kinds, at, expected, line_above)
    if kind in ("!", "~") and expected.startswith("a "):
        return "what must not hold is written with 'not'"
    return ""


def _at_the_end(kinds: Sequence[str], at: int, expected: str, line_above: int) -> str:
    """Where a clause, or a step of a plan, does not end as it should."""
    kind = kinds[at]
    if kind in (":", "<-") and expected.startswith("':-'"):
        return "a plan begins with '+!' for a goal, with '+' for a belief"
    if kind == ":-":
        return "a plan's body begins with '<-', a rule has no '+' before it"
    if kind == ",":
        return "steps are separated by ';'" if expected.startswith("';'") else "conditions are joined by '&'"
    if kind == END:
        return "the last clause lacks its '.'"
    if line_above:
        # What comes next begins a clause of its own where a context or body follows before the next end.
        rest = list(kinds[at : at + 40])
        ends = min((rest.index(mark) for mark in (";", ".") if mark in rest), default=len(rest))
        step = expected.startswith("';'") and not {"<-", ":", ":-", "@"} & set(rest[:ends])
        return f"line {line_above} lacks its '{';' if step else '.'}'"
    return ""
