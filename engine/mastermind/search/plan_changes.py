"""Changes of an AgentSpeak(L) library that can be made without understanding it.

Plans for the same event put in another order, one left out, a step or a part of a context left out, a
context that a plan lacks taken from a sibling. What is not changed stays as it was written, with comments.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from engine.bdi.parser import parse_program
from engine.bdi.printing import item_text, plan_text, text_of, trigger_text
from engine.bdi.syntax import Belief, Doc, Goal, Include, Plan, Program, Rule
from engine.bdi.terms import TRUE, Struct, Term

_Placed = Belief | Rule | Goal | Plan | Doc | Include
MOST_PLANS = 60
"""Plans of a library that is searched; beyond it neighbours are too many to be tried."""


@dataclass(frozen=True, slots=True)
class Change:
    """A library with one thing changed."""

    what: str
    """In words, such as `@near before @search`."""
    text: str


class Library:
    """A library as text, with the place of each plan in it."""

    def __init__(self, text: str, source: str = "library.asl") -> None:
        """Read a library.

        Raises:
            ProgramError: it cannot be read.
        """
        self.text = text
        self.program: Program = parse_program(text, source)
        lines = text.splitlines(keepends=True)
        starts = _starts(self.program, lines)
        ends = [*starts[1:], len(text)]
        plans = {(plan.position.line, plan.position.column): plan for plan in self.program.plans}
        offsets = _offsets(lines)
        self._head = text[: starts[0]] if starts else text
        self._blocks = [text[a:b] for a, b in zip(starts, ends, strict=True)]
        self._plans: dict[int, Plan] = {}
        for place, plan in plans.items():
            at = offsets[place[0] - 1] + place[1] - 1
            number = max(n for n, start in enumerate(starts) if start <= at)
            self._plans[number] = plan

    def changes(self) -> Iterator[Change]:
        """Every library that one change leads to, those that reorder first."""
        if len(self._plans) > MOST_PLANS:
            return
        yield from self._reordered()
        yield from self._without_plan()
        yield from self._shortened()
        yield from self._other_contexts()

    def _rivals(self, number: int) -> list[int]:
        """Plans for the same event as this one, itself included, in order."""
        event = _event(self._plans[number])
        return [other for other, plan in self._plans.items() if _event(plan) == event]

    def _reordered(self) -> Iterator[Change]:
        for number, plan in self._plans.items():
            rivals = self._rivals(number)
            for other in reversed(rivals[: rivals.index(number)]):
                blocks = list(self._blocks)
                moved = blocks.pop(number)
                # The last block of a file may have no line end of its own.
                blocks.insert(other, moved if moved.endswith("\n") else f"{moved}\n\n")
                yield Change(f"{_name(plan)} before {_name(self._plans[other])}", self._joined(blocks))

    def _without_plan(self) -> Iterator[Change]:
        for number, plan in self._plans.items():
            if len(self._rivals(number)) > 1:
                blocks = [*self._blocks[:number], *self._blocks[number + 1 :]]
                yield Change(f"without {_name(plan)}", self._joined(blocks))

    def _shortened(self) -> Iterator[Change]:
        for number, plan in self._plans.items():
            for place, item in enumerate(plan.body):
                shorter = replace(plan, body=plan.body[:place] + plan.body[place + 1 :])
                yield self._replaced(number, shorter, f"{_name(plan)} without {_short(item_text(item))}")

    def _other_contexts(self) -> Iterator[Change]:
        for number, plan in self._plans.items():
            parts = _conjuncts(plan.context)
            for place, part in enumerate(parts):
                left = _conjunction(parts[:place] + parts[place + 1 :])
                what = f"{_name(plan)} also where not {_short(text_of(part))}"
                yield self._replaced(number, replace(plan, context=left), what)
            for other in self._rivals(number):
                for part in _conjuncts(self._plans[other].context) if other != number else ():
                    if part in parts or _without_not(part) in map(_without_not, parts):
                        continue
                    opposite = _without_not(part) if _is_not(part) else Struct("not", (part,))
                    narrower = _conjunction((*parts, opposite))
                    what = f"{_name(plan)} only where {_short(text_of(opposite))}"
                    yield self._replaced(number, replace(plan, context=narrower), what)

    def _replaced(self, number: int, plan: Plan, what: str) -> Change:
        blocks = list(self._blocks)
        blocks[number] = f"{plan_text(plan)}\n\n"
        return Change(what, self._joined(blocks))

    def _joined(self, blocks: list[str]) -> str:
        return f"{(self._head + ''.join(blocks)).rstrip()}\n"


def _offsets(lines: list[str]) -> list[int]:
    found = [0]
    for line in lines:
        found.append(found[-1] + len(line))
    return found


def _starts(program: Program, lines: list[str]) -> list[int]:
    """Where each clause begins, with the comment lines right above it."""
    clauses: tuple[_Placed, ...] = (
        *program.beliefs,
        *program.rules,
        *program.goals,
        *program.plans,
        *program.docs,
        *program.includes,
    )
    offsets = _offsets(lines)
    found = set()
    for line, column in {(one.position.line, one.position.column) for one in clauses}:
        before = lines[line - 1][: column - 1] if line <= len(lines) else ""
        if before.strip():
            found.add(offsets[line - 1] + column - 1)
            continue
        while line > 1 and _is_comment(lines[line - 2]):
            line -= 1
        found.add(offsets[line - 1])
    return sorted(found)


def _is_comment(line: str) -> bool:
    return line.lstrip().startswith("//") and not line.lstrip().startswith("//@")


def _event(plan: Plan) -> tuple[object, ...]:
    literal = plan.trigger.literal
    what = literal.indicator if isinstance(literal, Struct) else "any"
    return plan.trigger.operation, plan.trigger.kind, what


def _name(plan: Plan) -> str:
    return f"@{plan.name}" if plan.name else _short(f"{trigger_text(plan.trigger)} : {text_of(plan.context)}")


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 60 else f"{line[:59]}…"


def _is_not(term: Term) -> bool:
    return isinstance(term, Struct) and term.functor == "not" and len(term.args) == 1


def _without_not(term: Term) -> Term:
    return term.args[0] if isinstance(term, Struct) and _is_not(term) else term


def _conjuncts(context: Term) -> tuple[Term, ...]:
    if context == TRUE:
        return ()
    if isinstance(context, Struct) and context.functor == "&" and not context.annotations:
        return tuple(part for arg in context.args for part in _conjuncts(arg))
    return (context,)


def _conjunction(parts: tuple[Term, ...]) -> Term:
    if not parts:
        return TRUE
    return parts[0] if len(parts) == 1 else Struct("&", parts)
