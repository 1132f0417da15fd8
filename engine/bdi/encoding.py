"""Terms as data for JSON: flat lists in postfix order, so depth costs nothing; variables stay shared."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from engine.bdi.patterns import UNWRITTEN
from engine.bdi.terms import NIL, Cell, Cons, Struct, Term, Var, children

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"


class SavedStateError(ValueError):
    """Data that is no saved state, or one of another program."""


class Encoder:
    """Turns terms into data and numbers the variables it meets."""

    def __init__(self) -> None:
        self._numbers: dict[int, int] = {}
        self._cells: list[Cell] = []

    def cell(self, cell: Cell) -> int:
        """The number of a variable."""
        number = self._numbers.get(id(cell))
        if number is None:
            number = self._numbers[id(cell)] = len(self._cells)
            self._cells.append(cell)
        return number

    def term(self, term: Term) -> list[Json]:
        """A term; what its variables stand for is kept apart, by `bindings`."""
        tokens: list[Json] = []
        waiting = [term]
        while waiting:
            one = waiting.pop()
            tokens.append(self._token(one))
            waiting.extend(children(one))
        tokens.reverse()
        return tokens

    def terms(self, terms: Iterable[Term]) -> list[Json]:
        """Several."""
        return [self.term(one) for one in terms]

    def _token(self, term: Term) -> Json:
        if isinstance(term, str):
            return f'"{term}'
        if isinstance(term, int | float):
            return term
        if isinstance(term, Cell):
            return None if term is UNWRITTEN else ["cell", self.cell(term)]
        if isinstance(term, Var):
            return ["var", term.name]
        if isinstance(term, Struct):
            return ["struct", term.functor, len(term.args), len(term.annotations), term.negated]
        return "[]" if term is NIL else "[|]"

    def bindings(self) -> list[Json]:
        """What each variable met so far stands for, None where it has no value; call it last."""
        made: list[Json] = []
        while len(made) < len(self._cells):
            ref = self._cells[len(made)].ref
            made.append(None if ref is None else self.term(ref))
        return made


class Decoder:
    """Turns data back into terms."""

    def __init__(self, bindings: Sequence[Json]) -> None:
        self.cells = [Cell() for _ in bindings]
        for cell, data in zip(self.cells, bindings, strict=True):
            if data is not None:
                cell.ref = self.term(data)

    def term(self, data: Json) -> Term:
        """A term; raises SavedStateError for data that is none."""
        if not isinstance(data, list):
            raise SavedStateError("a saved term is not a list")
        stack: list[Term] = []
        for token in data:
            self._push(token, stack)
        if len(stack) != 1:
            raise SavedStateError("a saved term is incomplete")
        return stack[0]

    def terms(self, data: Json) -> tuple[Term, ...]:
        """Several."""
        if not isinstance(data, list):
            raise SavedStateError("saved terms are not a list")
        return tuple([self.term(one) for one in data])

    def literal(self, data: Json) -> Struct:
        """A term that must be a structure."""
        found = self.term(data)
        if not isinstance(found, Struct):
            raise SavedStateError("a saved literal is not a structure")
        return found

    def _push(self, token: Json, stack: list[Term]) -> None:
        match token:
            case None:
                stack.append(UNWRITTEN)
            case "[]":
                stack.append(NIL)
            case "[|]":
                stack[-2:] = [Cons(stack[-2], stack[-1])]
            case str():
                stack.append(token[1:])
            case int() | float():
                stack.append(token)
            case ["cell", int(number)]:
                stack.append(self.cells[number])
            case ["var", str(name)]:
                stack.append(Var(name))
            case ["struct", str(functor), int(args), int(notes), bool(negated)]:
                first = len(stack) - args - notes
                parts = stack[first:]
                stack[first:] = [Struct(functor, tuple(parts[:args]), parts[args:], negated)]
            case _:
                raise SavedStateError(f"a saved term holds {token!r:.40}")
