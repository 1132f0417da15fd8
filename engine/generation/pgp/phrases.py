"""What models write for conditions and operations, rewritten as AgentSpeak text (spec BDI §2.9).

Only spelling is changed: negations, connectives, relations, commas that mean "and", `g()` for `g`. What
the rewriting does not know is left for the language's own parser to refuse.
"""

from __future__ import annotations

import re
from enum import StrEnum

_TOKEN = re.compile(
    r'\s*(?:(?P<string>"(?:[^"\\]|\\.)*")'
    r"|(?P<number>\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)"
    r"|(?P<name>\.?[^\W\d]\w*(?:\.[^\W\d]\w*)*)"
    r"|(?P<sign><none>|\\==|\\=|\\\+|!==|!=|<>|===|==|=<|<=|>=|&&|\|\||\*\*|.))",
    re.S,
)

_WORDS = {"not": "not", "and": "&", "or": "|"}
_SIGNS = {
    "¬": "not",
    "!": "not",
    "~": "not",
    "\\+": "not",
    "!=": "\\=",
    "!==": "\\=",
    "<>": "\\=",
    "≠": "\\=",
    "===": "==",
    "=<": "<=",
    "≤": "<=",
    "≥": ">=",
    "&&": "&",
    "∧": "&",
    ";": "|",
    "||": "|",
    "∨": "|",
    "<none>": "none",
}


class _Bracket(StrEnum):
    """What an open bracket holds; in a group a comma means "and"."""

    GROUP = "group"
    ARGUMENTS = "arguments"
    LIST = "list"


def formula_text(text: str) -> str:
    """A condition as an AgentSpeak formula.

    `~p` is read as `not p`: the prompt never speaks of strong negation.
    """
    return _rewritten(text, _Bracket.GROUP)


def term_text(text: str) -> str:
    """A goal, belief or action as an AgentSpeak term; its sign and relations stay as they are."""
    return _rewritten(text, _Bracket.ARGUMENTS)


def _rewritten(text: str, outermost: _Bracket) -> str:
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
