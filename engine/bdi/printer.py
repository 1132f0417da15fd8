"""Text of terms, plans and programs; what is printed parses to the same again."""

from __future__ import annotations

import re
from collections.abc import Iterable
from decimal import Decimal

from engine.bdi.errors import EvaluationError
from engine.bdi.rewriting import rewrite
from engine.bdi.syntax import (
    OPERATORS,
    RELATIONS,
    SIGNED,
    SPACE_MARK,
    Body,
    BodyItem,
    If,
    Plan,
    Step,
    StepKind,
    Trigger,
    While,
    is_body,
)
from engine.bdi.terms import (
    NIL,
    QUOTED_PLAN,
    TRUE,
    VARIABLE_LITERAL,
    Collection,
    Cons,
    Struct,
    Term,
    Var,
    deref,
    is_tail,
)

PRECEDENCE = {"|": 1, "&": 2, "not": 3, **dict.fromkeys(RELATIONS, 4), "+": 5, "-": 5} | {
    "*": 6,
    "/": 6,
    "div": 6,
    "mod": 6,
    "**": 7,
}
"""How tightly an operator binds, loosest first."""

UNARY = 8
_TIGHT = 9
_NO_BAR = 2
"""Inside square brackets a bare `|` would start the list's tail."""
_PLAIN = re.compile(r"\.?[^\W\d_A-Z]\w*(\.[^\W\d_A-Z]\w*)*")
_SPACED = re.compile(r"[^\W\d_A-Z]\w*::[^\W\d_A-Z]\w*")
_NAMELESS = "''"
_RESERVED = {"not", "div", "mod"}
_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"})
_ATOM_ESCAPES = str.maketrans({"\\": "\\\\", "'": "\\'", "\n": "\\n", "\t": "\\t", "\r": "\\r"})


TEXT_LIMIT = 2_000_000
"""Characters after which a text of a term ends; what shares its parts over and over is endless to print."""
CUT = "…"
"""Stands where a text was ended, and cannot be parsed."""


def text_of(term: Term, floor: int = 0, limit: int = TEXT_LIMIT, *, brackets: bool = False) -> str:
    """The term as a program would write it; unbound variables of a running program print as `_`.

    An operator that binds less tightly than `floor` is put in parentheses, with `brackets` each one. A text
    that has become longer than `limit` characters ends there.
    """
    pieces: list[str] = []
    waiting: list[tuple[Term, int] | str] = [(term, floor)]
    while waiting:
        pair = waiting.pop()
        if isinstance(pair, str):
            pieces.append(pair)
            limit -= len(pair)
            if limit < 0:
                pieces.append(CUT)
                break
            continue
        result = deref(pair[0])
        if isinstance(result, Struct):
            waiting.extend(reversed(_struct(result, pair[1], brackets)))
        elif isinstance(result, Cons):
            waiting.extend(reversed(_list(result)))
        elif isinstance(result, Collection):
            waiting.extend(reversed(_collection(result)))
        else:
            pieces.append(text := _leaf(result, pair[1]))
            limit -= len(text)
    return "".join(pieces)


def unquoted_text(term: Term, limit: int = TEXT_LIMIT) -> str:
    """As Jason prints it: a string without quotes, and each operator in brackets."""
    result = deref(term)
    return result if isinstance(result, str) else text_of(result, limit=limit, brackets=True)


SHOWN = 100_000
"""Characters of a term that is only shown; whoever shows it cuts it shorter still."""
BRIEF = 2_000
"""Characters of a term in a message."""


def shown_text(term: Term) -> str:
    """As `text_of`, to be looked at: what holds values that were never made whole ends somewhere."""
    return text_of(term, limit=SHOWN)


def brief_text(term: Term) -> str:
    """As `text_of`, and of a long text the beginning."""
    text = text_of(term, limit=BRIEF)
    return text if len(text) <= BRIEF else f"{text[:BRIEF].removesuffix(CUT)}{CUT}"


def number_text(value: float) -> str:
    """A number as Jason prints it: whole ones without a fraction, very large and small ones as `1.0E20`."""
    if isinstance(value, float) and value.is_integer() and abs(value) < _WHOLE:
        return str(int(value))
    if isinstance(value, int) or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    sign, digits, exponent = Decimal(repr(value)).as_tuple()
    written = "".join(map(str, digits))
    tail = written[1:].rstrip("0") or "0"
    return f"{'-' * sign}{written[0]}.{tail}E{int(exponent) + len(written) - 1}"


_WHOLE = 2.0**63


def quoted(text: str) -> str:
    """A string in double quotes."""
    return f'"{text.translate(_ESCAPES)}"'


def atom_text(name: str) -> str:
    """A functor, in single quotes where it would not be read as one."""
    if (_PLAIN.fullmatch(name) or _SPACED.fullmatch(name)) and name not in _RESERVED:
        return name
    return f"'{name.translate(_ATOM_ESCAPES)}'"


_Pieces = list["tuple[Term, int] | str"]


def _leaf(term: Term, floor: int) -> str:
    if isinstance(term, str):
        return quoted(term)
    if isinstance(term, int | float):
        text = number_text(term)
        return f"({text})" if text[0] == "-" and floor > UNARY else text
    if isinstance(term, Var):
        return "_" if term.anonymous else term.name
    return "[]" if term is NIL else "_"


def _struct(term: Struct, floor: int, brackets: bool) -> _Pieces:
    if term.functor in PRECEDENCE and not term.negated and not term.annotations:
        pieces, level = _in_brackets(term) if brackets else _operator(term)
        if pieces:
            return ["(", *pieces, ")"] if level < floor else pieces
    if term.functor[:1] == "{" and not (term.annotations or term.negated):
        return _quoted(term) if term.functor == QUOTED_PLAN else _item(term)
    written: _Pieces = ["~" if term.negated else "", atom_text(term.functor)]
    if term.functor == SPACE_MARK and len(term.args) == 2:
        own = term.args[0] == Struct("")
        space: _Pieces = [] if own else [(term.args[0], _TIGHT), SPACE_MARK]
        written = ["~" if term.negated else "", *space, (term.args[1], _TIGHT)]
    elif term.functor == VARIABLE_LITERAL and len(term.args) == 1:
        written = [(term.args[0], _TIGHT)]
    elif term.args:
        written += ["(", *_separated(term.args, ",", 1), ")"]
    if term.annotations:
        tail = [annotation for annotation in term.annotations if is_tail(annotation)]
        named = [annotation for annotation in term.annotations if not is_tail(annotation)]
        written += ["[", *_separated(named, ","), *(("|", (tail[0].args[0], _TIGHT)) if tail else ()), "]"]
    return written


def _operator(term: Struct) -> tuple[_Pieces, int]:
    name, args, level = term.functor, term.args, PRECEDENCE[term.functor]
    if len(args) == 1 and name == "not":
        return ["not ", (args[0], level)], level
    if len(args) == 1 and name == "-":
        return ["-", "(", (args[0], 0), ")"] if isinstance(args[0], int | float) else [
            "-",
            (args[0], _TIGHT),
        ], UNARY
    if name in ("&", "|") and len(args) > 1:
        return _separated(args, f" {name} ", level + 1), level
    if len(args) != 2 or name == "not":
        return [], 0
    # Relations do not chain, `**` leans to the right, the others to the left.
    left = level + (name in RELATIONS or name == "**")
    right = level + (name != "**")
    return [(args[0], left), f" {name} ", (args[1], right)], level


def _in_brackets(term: Struct) -> tuple[_Pieces, int]:
    """As Jason prints an operator: `(a & (b & c))`, `not (a)`, `((X+1) > 2)`."""
    name, (first, *others) = term.functor, term.args
    if not others:
        return (["not (", (first, 0), ")"] if name == "not" else ["(", name, (first, 0), ")"]), _TIGHT
    rest = others[0] if len(others) == 1 else Struct(name, tuple(others))
    mark = name if name in ("+", "-", "*", "/", "**") else f" {name} "
    return ["(", (first, 0), mark, (rest, 0), ")"], _TIGHT


def _quoted(term: Struct) -> _Pieces:
    """What stands in braces: an event, a plan as its text, or a body."""
    match _with_names(term).args:
        case ("@", label, sign, literal, context, body):
            return _quoted_plan(label, f"{sign}", literal, context, deref(body))
        case (":-", head, formula):
            return ["{ ", (head, 0), " :- ", (formula, 0), " }"]
    if not is_body(term):
        return [f"{{ {term.args[0]}", *((arg, 0) for arg in term.args[1:]), " }"]
    pieces: _Pieces = ["{ "]
    for number, item in enumerate(term.args):
        pieces += ["; ", *_item(deref(item))] if number else _item(deref(item))
    return [*pieces, " }"] if term.args else ["{ }"]


def _with_names(term: Struct) -> Struct:
    """A quoted plan or rule with names for variables without a value, so that it can be read again."""
    if not (term.args and isinstance(term.args[0], str)):
        return term
    names: dict[Term, Term] = {}

    def name(variable: Term) -> Term:
        return variable if isinstance(variable, Var) else names.setdefault(variable, Var(f"V{len(names)}"))

    try:
        named = rewrite(term, name)
    except EvaluationError:  # it is too large for that
        return term
    assert isinstance(named, Struct)
    return named


def _quoted_plan(label: Term, sign: str, literal: Term, context: Term, body: Term) -> _Pieces:
    label = deref(label)
    nameless = isinstance(label, Struct) and not (label.functor or label.annotations)
    pieces: _Pieces = ["{ "] if nameless else ["{ @", _label(label), " "]
    pieces += [sign, (literal, _TIGHT)]
    if deref(context) != TRUE:
        pieces += [" : ", (context, 0)]
    if body != _NO_STEPS:
        steps = _quoted(body)[1:-1] if isinstance(body, Struct) and is_body(body) else [(body, 0)]
        pieces += [" <- ", *steps]
    return [*pieces, " }"]


def _label(label: Term) -> str:
    return label_text(label)[1:] if isinstance(label, Struct) else text_of(label)


def _item(item: Term) -> _Pieces:
    match item:
        case Struct(functor=functor, args=(what,)) if functor in SIGNED:
            kind = SIGNED[functor]
            return [kind.value, (what, PRECEDENCE["="] if kind is StepKind.TEST else 0)]
        case Struct(functor="{do}", args=(what,)):
            return [(what, 0)]
        case Struct(functor="{while}" | "{for}" as functor, args=(condition, block)):
            return [functor[1:-1], " (", (condition, 0), ") ", (block, 0)]
        case Struct(functor="{if}", args=(_, _, _, *_) as parts):
            return _branches(parts)
        case Struct(functor=functor, args=args) if functor[:1] == "{" and functor != QUOTED_PLAN:
            return [atom_text(functor), "(", *_separated(args, ","), ")"]
    return [(item, 0)]


def _branches(parts: tuple[Term, ...]) -> _Pieces:
    *arms, otherwise = parts
    pieces: _Pieces = []
    for condition, block in zip(arms[::2], arms[1::2], strict=False):
        pieces += [" elif (" if pieces else "if (", (condition, 0), ") ", (block, 0)]
    return [*pieces, " else ", (otherwise, 0)] if deref(otherwise) != _NO_STEPS else pieces


_NO_STEPS = Struct(QUOTED_PLAN)


def _separated(terms: Iterable[Term], mark: str, floor: int = _NO_BAR) -> _Pieces:
    pieces: _Pieces = []
    for term in terms:
        pieces += [mark, (term, floor)] if pieces else [(term, floor)]
    return pieces


def _list(term: Cons) -> _Pieces:
    pieces: _Pieces = ["["]
    rest: Term = term
    while isinstance(rest, Cons):
        pieces += [",", (rest.head, _NO_BAR)] if len(pieces) > 1 else [(rest.head, _NO_BAR)]
        rest = deref(rest.tail)
    return [*pieces, "]"] if rest is NIL else [*pieces, "|", (rest, _TIGHT), "]"]


def _collection(term: Collection) -> _Pieces:
    """`{a,b}`, `{key->value}` and `[a, b]`, as Jason prints them; they are no terms of a program."""
    if term.kind == "map":
        pairs = [piece for key in term.keys for piece in (",", (key, 0), "->", (term.rows[key], 0))]
        return ["{", *pairs[1:], "}"]
    mark = "{}," if term.kind == "set" else "[], "
    return [mark[0], *_separated(term.elements, mark[2:]), mark[1]]


# ------------------------------------------------------------------ programs


def trigger_text(trigger: Trigger) -> str:
    """`+!g(X)` and the like."""
    return f"{trigger.operation}{trigger.kind}{text_of(trigger.literal)}"


def label_text(label: Struct) -> str:
    """`@name[annotations]`; the name may be missing."""
    return f"@{text_of(label).removeprefix(_NAMELESS)}"


def plan_text(plan: Plan) -> str:
    """A plan on as many lines as it has steps, without the full stop's newline."""
    label = f"{label_text(plan.label)}\n" if plan.label else ""
    context = "" if plan.context == TRUE else f" : {text_of(plan.context)}"
    body = f" <-\n    {body_text(plan.body, 1)}" if plan.body else ""
    return f"{label}{trigger_text(plan.trigger)}{context}{body}."


def body_text(body: Body, depth: int = 0) -> str:
    """Steps separated by `;` and newlines, indented to a depth."""
    return f";\n{'    ' * depth}".join(item_text(item, depth) for item in body)


def item_text(item: BodyItem, depth: int = 0) -> str:
    """One item of a body, with the blocks inside."""
    if isinstance(item, Step):
        sign = "" if item.kind in _UNSIGNED else item.kind.value
        return f"{sign}{text_of(item.term, PRECEDENCE['='] if item.kind is StepKind.TEST else 0)}"
    if isinstance(item, If):
        arms = [
            f"{'if' if first == 0 else 'elif'} ({text_of(condition)}) {_block(block, depth)}"
            for first, (condition, block) in enumerate(item.branches)
        ]
        return " ".join([*arms, *([f"else {_block(item.otherwise, depth)}"] if item.otherwise else [])])
    word = "while" if isinstance(item, While) else "for"
    return f"{word} ({text_of(item.condition)}) {_block(item.body, depth)}"


def headline(item: BodyItem) -> str:
    """One item of a body on one line, a block by its condition only."""
    if isinstance(item, Step):
        return item_text(item)
    if isinstance(item, If):
        return f"if ({text_of(item.branches[0][0])})"
    return f"{'while' if isinstance(item, While) else 'for'} ({text_of(item.condition)})"


_UNSIGNED = (StepKind.ACTION, StepKind.INTERNAL, StepKind.CONSTRAINT)


def _block(body: Body, depth: int) -> str:
    if not body:
        return "{ }"
    inside = "    " * (depth + 1)
    return f"{{\n{inside}{body_text(body, depth + 1)}\n{'    ' * depth}}}"


assert set(PRECEDENCE) == OPERATORS
