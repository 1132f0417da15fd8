"""Terms, literals and formulas read from tokens by precedence.

The text of a program cut into tokens, each with its place.
"""

from __future__ import annotations

import re
from bisect import bisect_right

from engine.bdi.errors import SHOWN_BEFORE, Position
from engine.bdi.printer import PRECEDENCE
from engine.bdi.syntax import (
    DEFAULT_SPACE,
    NESTING_LIMIT,
    SPACE_MARK,
    Operation,
    Trigger,
    TriggerKind,
    conjunction,
    in_space,
    split_name,
)
from engine.bdi.terms import (
    ANNOTATION_TAIL,
    NIL,
    QUOTED_PLAN,
    VARIABLE_LITERAL,
    Cons,
    Nil,
    Struct,
    Term,
    Var,
    list_of,
)

NAME, VARIABLE, NUMBER, STRING, BAD = "name", "variable", "number", "string", "bad"
"""Kinds of tokens that carry a text; the kind of any other is the mark or word itself."""

END = "end"
"""Kind of the token behind the last."""

DOC = "//@"
"""Opens, with a space behind it, a documentation comment, which ends with its line."""

WORDS = frozenset({"not", "div", "mod"})

_NAME = r"[^\W\d_A-Z]\w*(?:\.[^\W\d_A-Z]\w*)*"
TOKEN = re.compile(
    rf"""(?:\s++|//(?!@\s)[^\n]*+|/\*.*?\*/)*+
    (?:(?P<name>\.?{_NAME})
    |(?P<variable>[A-Z_]\w*)
    |(?P<mark><-|<:|:-|::|\|&\||\|\|\||\\==|\\=|==|=\.\.|!=|<=|>=|\*\*|!!|//@(?=\s)|/(?![*/])|[-+*<>=!?@:;,.()\[\]{{}}|&~^])
    |(?P<number>\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)
    |(?P<string>"(?:[^"\\\n]|\\[^\n])*+")
    |(?P<quoted>'(?:[^'\\\n]|\\[^\n])++')
    |(?P<bad>/\*.*|["'][^\n]*|.)
    |(?P<end>\Z))""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_MEANT = {"n": "\n", "t": "\t", "r": "\r"}


class Tokens:
    """The tokens of a text as parallel lists; documentation comments are set apart."""

    __slots__ = ("docs", "kinds", "offsets", "text", "texts")

    def __init__(self, text: str, start: int = 0, stop: int | None = None) -> None:
        self.text = text
        self.kinds: list[str] = []
        self.texts: list[str] = []
        self.offsets: list[int] = []
        self.docs: list[tuple[int, int]] = []
        """Start and end of what each documentation comment says."""
        self._cut(start, len(text) if stop is None else stop)

    def _cut(self, start: int, stop: int) -> None:
        kinds, texts, offsets = self.kinds, self.texts, self.offsets
        match = TOKEN.match
        result = match(self.text, start, stop)
        while result is not None:
            kind = result.lastgroup or END
            text = result[kind]
            start = result.end()
            if kind == "mark":
                kind = text
                if text == DOC:
                    line_end = self.text.find("\n", start, stop)
                    line_end = stop if line_end < 0 else line_end
                    self.docs.append((start, line_end))
                    result = match(self.text, line_end, stop)
                    continue
            elif kind == NAME:
                if text in WORDS:
                    kind = text
            elif kind == "quoted":
                kind, text = NAME, unescaped(text)
            kinds.append(kind)
            texts.append(text)
            offsets.append(result.start(result.lastgroup or END))
            if kind == END:
                return
            result = match(self.text, start, stop)


def unescaped(text: str) -> str:
    """What stands between the quotes of a string or quoted name."""
    inner = text[1:-1]
    if "\\" not in inner:
        return inner
    return _ESCAPE.sub(lambda found: _MEANT.get(found[1], found[1]), inner)


class Lines:
    """Turns offsets into lines and columns."""

    __slots__ = ("_starts",)

    def __init__(self, text: str) -> None:
        self._starts = [0, *(match.end() for match in re.finditer("\n", text))]

    def at(self, offset: int) -> Position:
        """Line and column of an offset, both from 1."""
        line = bisect_right(self._starts, offset)
        return Position(line, offset - self._starts[line - 1] + 1)

    def around(self, text: str, place: Position) -> str:
        """The line of a place, or of a long one what stands near the place."""
        start = self._starts[place.line - 1] + max(0, place.column - 1 - SHOWN_BEFORE)
        return text[start : start + 2 * SHOWN_BEFORE].partition("\n")[0].rstrip("\r")


def described(kind: str, text: str) -> str:
    """A token in the words of an error message."""
    if kind == END:
        return "the end of the text"
    if kind != BAD:
        return f"'{text}'" if len(text) < 40 else f"'{text[:37]}...'"
    if text.startswith("/*"):
        return "a comment without its '*/'"
    if text[0] in "\"'":
        return f"a text without its closing {text[0]}"
    return f"the character {text!r}"


ANY, NO_BAR, RELATION = 1, 2, 4
"""Loosest operator that an expression may hold: any, all but `|`, relations and arithmetic."""

BINARY = {name: level for name, level in PRECEDENCE.items() if name != "not"} | {"!=": RELATION}

EXACT_INTEGERS = 2**53
"""Integers from here on are kept as floating point, as every number of Jason is."""


class UnexpectedError(Exception):
    """The text does not continue as it should at the parser's present token."""

    def __init__(self, expected: str, matches: str = "") -> None:
        super().__init__(expected)
        self.expected = expected
        self.found = matches
        """Empty where the token itself says it."""


class ExpressionParser:
    """Reads expressions at a position that moves forward; errors are raised as `UnexpectedError`."""

    def __init__(self, tokens: Tokens) -> None:
        self.tokens = tokens
        self.kinds, self.texts, self.offsets = tokens.kinds, tokens.texts, tokens.offsets
        self.at = 0
        self.depth = 0
        self.anonymous = 0
        self.module = ""
        """Namespace of the text; empty for the default one."""
        self.space = ""
        """Namespace of literals that name none, which are not the arguments of others."""
        self.locals: dict[str, str] = {}
        """What the local namespaces of the text are called outside of it."""
        self.functions: dict[tuple[str, int], str] = {}
        """Rules that were registered as functions, by the function's name and number of arguments."""

    def found(self) -> str:
        """The present token in the words of an error message."""
        return described(self.kinds[self.at], self.texts[self.at])

    def expect(self, kind: str, expected: str = "") -> str:
        """Take a token of this kind."""
        if self.kinds[self.at] != kind:
            raise UnexpectedError(expected or f"'{kind}'")
        self.at += 1
        return self.texts[self.at - 1]

    def take(self, kind: str) -> bool:
        """Take a token if it is of this kind."""
        if self.kinds[self.at] == kind:
            self.at += 1
            return True
        return False

    def deeper(self) -> None:
        """Note that a bracket was opened."""
        self.depth += 1
        if self.depth > NESTING_LIMIT:
            raise UnexpectedError(f"at most {NESTING_LIMIT} levels of brackets", "more")

    def expression(self, loosest: int = ANY, expected: str = "a term") -> Term:
        """Read a term or formula whose operators bind at least so tightly."""
        if self.kinds[self.at] == "not":
            self.at += 1
            self.deeper()
            left: Term = Struct("not", (self.expression(PRECEDENCE["not"]),))
            self.depth -= 1
        else:
            left = self.primary(expected)
        related = False
        while True:
            operator = self.kinds[self.at]
            level = BINARY.get(operator, 0)
            if level < loosest:
                return left
            if level == RELATION:
                if related:
                    raise UnexpectedError("'&', '|' or the end of the formula")
                related = True
            if operator in ("&", "|"):
                related = False
                left = self._connective(left, operator, level)
            else:
                left = self._binary(left, operator, level)

    def _connective(self, left: Term, operator: str, level: int) -> Term:
        parts = [left]
        while self.take(operator):
            parts.append(self.expression(level + 1, "a formula"))
        return conjunction(parts, operator)

    def _binary(self, left: Term, operator: str, level: int) -> Term:
        self.at += 1
        self.deeper()
        right = self.expression(level if operator == "**" else level + 1)
        self.depth -= 1
        if level == RELATION and self.space:  # what is compared are terms
            left, right = self._bare(left), self._bare(right)
        return Struct("\\=" if operator == "!=" else operator, (left, right))

    def _bare(self, term: Term) -> Term:
        """The term without the namespace that it was given because it names none."""
        if isinstance(term, Struct) and split_name(term.functor)[0] == self.space:
            return Struct(split_name(term.functor)[1], term.args, term.annotations, term.negated)
        return term

    def primary(self, expected: str = "a term") -> Term:
        """Read an operand: a literal, a constant, a variable, a list or something in parentheses."""
        kind = self.kinds[self.at]
        if kind in (NAME, "~", SPACE_MARK) or (kind == VARIABLE and self.kinds[self.at + 1] == SPACE_MARK):
            return self.literal()
        text = self.texts[self.at]
        if kind == NUMBER:
            return self._number()
        if kind == VARIABLE:
            self.at += 1
            variable = self._variable(text)
            if self.kinds[self.at] == "[":
                return Struct(VARIABLE_LITERAL, (variable,), self.annotations())
            return variable
        if kind == STRING:
            self.at += 1
            return unescaped(text)
        if kind == "-":
            return self._minus()
        if kind not in ("(", "[", "{"):
            raise UnexpectedError(expected)
        self.deeper()
        self.at += 1
        if kind == "(":
            inner = self.expression()
            self.expect(")")
        else:
            inner = self._list() if kind == "[" else Struct(QUOTED_PLAN, self.quoted())
        self.depth -= 1
        return inner

    def _number(self) -> int | float:
        text = self.texts[self.at]
        value = float(text)
        if value == float("inf"):
            raise UnexpectedError("a number below 1e308", f"{text[:20]}...")
        self.at += 1
        return int(text) if text.isdecimal() and value < EXACT_INTEGERS else value

    def _variable(self, name: str) -> Var:
        if name == "_":
            self.anonymous += 1
            return Var(f"_{self.anonymous}")
        if name[0] == "_" and name[1:].isdigit():
            return Var(f"_{name}")  # `_1` would be taken for an anonymous one
        return Var(name)

    def _minus(self) -> Term:
        self.at += 1
        if self.kinds[self.at] == NUMBER:
            return -self._number()
        self.deeper()
        operand = self.primary()
        self.depth -= 1
        return Struct("-", (operand,))

    def literal(self, expected: str = "a literal") -> Struct:
        """Read `space::~name(arguments)[annotations]`."""
        begun = self.at
        negated = self.take("~")
        space = self._space()
        negated = self.take("~") or negated
        if isinstance(space, Var) or (self.kinds[self.at] == VARIABLE and self.at > begun):
            return self._in_variable_space(space, negated)
        functor = self.expect(NAME, expected)
        args: tuple[Term, ...] = ()
        annotations: tuple[Term, ...] = ()
        if self.kinds[self.at] == "(":
            self.deeper()
            self.at += 1
            args = () if self.kinds[self.at] == ")" else self._terms()
            self.expect(")", "',' or ')'")
            self.depth -= 1
        if self.kinds[self.at] == "[":
            annotations = self.annotations()
        if (functor, len(args)) in self.functions:
            return Struct(".value", (Struct(self.functions[functor, len(args)], args),))
        if functor == "this_ns":
            return Struct(self.module or DEFAULT_SPACE)
        if "." not in functor and functor not in ("true", "false"):
            functor = in_space(space, functor)
        return Struct(functor, args, annotations, negated)

    def _space(self) -> str | Var:
        """Read what stands before `::`, and that; the space of what names none."""
        if self.take(SPACE_MARK):
            return self.module
        kind, text = self.kinds[self.at], self.texts[self.at]
        if kind not in (NAME, VARIABLE) or self.kinds[self.at + 1] != SPACE_MARK:
            return self.space
        self.at += 2
        if kind == VARIABLE:
            return self._variable(text)
        return {DEFAULT_SPACE: "", "this_ns": self.module}.get(text, self.locals.get(text, text))

    def _in_variable_space(self, space: str | Var, negated: bool) -> Struct:
        """A literal whose namespace, or that itself, is what a variable stands for; or the negation of that.

        Without a namespace the variable's own stays.
        """
        literal: Term
        if self.kinds[self.at] == VARIABLE:
            literal = self.primary()
        else:
            before, self.space = self.space, ""
            literal = self.literal()
            self.space = before
        name = space if isinstance(space, Var) else Struct(space)
        return Struct(SPACE_MARK, (name, literal), (), negated)

    def _terms(self, loosest: int = ANY) -> tuple[Term, ...]:
        before, self.space = self.space, ""
        terms = [self.expression(loosest)]
        while self.take(","):
            terms.append(self.expression(loosest))
        self.space = before
        return tuple(terms)

    def annotations(self) -> tuple[Term, ...]:
        """Read `[a, b(1), …]`, `[a | T]` or `[| T]`."""
        self.deeper()
        self.expect("[")
        terms = () if self.kinds[self.at] in ("]", "|") else self._terms(NO_BAR)
        if self.take("|"):
            terms += (Struct(ANNOTATION_TAIL, (self._tail(),)),)
        self.expect("]", "',', '|' or ']'")
        self.depth -= 1
        return terms

    def _list(self) -> Term:
        if self.take("]"):
            return NIL
        items = self._terms(NO_BAR)
        tail: Term = NIL
        if self.take("|"):
            tail = self._tail()
        self.expect("]", "',', '|' or ']'")
        return list_of(items, tail)

    def _tail(self) -> Term:
        tail = self.primary()
        if not isinstance(tail, Var | Nil | Cons):
            raise UnexpectedError("a variable or list as tail", "something else")
        return tail

    def trigger(self) -> Trigger:
        """Read `+!g(X)` and the like."""
        sign = self.kinds[self.at]
        if sign not in ("+", "-", "^"):
            raise UnexpectedError("'+', '-' or '^' and what the plan is for")
        self.at += 1
        kind = self.kinds[self.at] if self.kinds[self.at] in ("!", "?") else ""
        if sign == "^" and not kind:
            raise UnexpectedError("'!' or '?' and a goal")
        self.at += bool(kind)
        return Trigger(Operation(sign), TriggerKind(kind), self._target("a goal" if kind else "a belief"))

    def _target(self, expected: str) -> Struct | Var:
        """A literal, or a variable that stands for one."""
        if self.kinds[self.at] in (VARIABLE, SPACE_MARK):
            term = self.primary()
            assert isinstance(term, Var | Struct)
            return term
        return self.literal(expected)

    def quoted(self) -> tuple[Term, ...]:
        """Read the inside of `{ … }`; knows no plans here."""
        raise UnexpectedError("a term")

    def at_end(self) -> bool:
        """True behind the last token."""
        return self.kinds[self.at] == END
