"""Breakpoints on what a reasoner does, believes, pursues, chooses and fails at."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from engine.bdi.breakpoints import Breakpoint, Breakpoints, Kind
from engine.bdi.parser import parse_literal
from engine.bdi.problems import ProgramError
from engine.bdi.terms import Struct, instantiated
from engine.bdi.trace import ActionRequested, TraceEvent
from engine.bdi.unification import unify
from engine.domain.reasoning import MindBreakpoint

STEP = "step"
"""A breakpoint on an external action, such as `move(_)`."""
LABELLED = "label"
"""Stands for the breakpoint of a plan whose own label says `[breakpoint]`."""


@dataclass(frozen=True, slots=True)
class Reached:
    """A breakpoint that the reasoner came to."""

    breakpoint: str
    what: str


def check_pattern(on: str, pattern: str) -> str:
    """What is wrong with a pattern; empty when it can be used."""
    try:
        if on == STEP:
            parse_literal(pattern, "the action")
        else:
            Breakpoint(Kind(on), pattern)
    except (ProgramError, ValueError) as error:
        return str(error)
    return ""


class Watch:
    """The breakpoints that count now."""

    def __init__(self) -> None:
        self._known: dict[str, MindBreakpoint] = {}
        self._compiled: dict[Breakpoint, list[str]] = {}
        self._mind = Breakpoints()
        self._steps: dict[str, Struct] = {}

    @property
    def known(self) -> tuple[MindBreakpoint, ...]:
        """All breakpoints, those that are switched off too."""
        return tuple(self._known.values())

    def change(self, one: MindBreakpoint, *, cleared: bool) -> None:
        """Set a breakpoint, switch it on or off, or clear it."""
        self._known.pop(one.id, None)
        if not cleared:
            self._known[one.id] = one
        self._arrange(each for each in self._known.values() if each.enabled)

    def _arrange(self, counting: Iterable[MindBreakpoint]) -> None:
        self._steps, self._compiled = {}, {}
        for one in counting:
            if one.on == STEP:
                self._steps[one.id] = parse_literal(one.pattern)
            else:
                self._compiled.setdefault(Breakpoint(Kind(one.on), one.pattern), []).append(one.id)
        self._mind = Breakpoints(self._compiled)

    def reached(self, records: Sequence[TraceEvent]) -> tuple[Reached, ...]:
        """The breakpoints that these records come to, each once."""
        found: dict[str, str] = {}
        for hit in self._mind.hits(records):
            names = self._compiled[hit.breakpoint] if hit.breakpoint is not None else [LABELLED]
            for name in names:
                found.setdefault(name, hit.words)
        for record in records if self._steps else ():
            if isinstance(record, ActionRequested):
                action = parse_literal(record.action)
                for name, pattern in self._steps.items():
                    if unify(instantiated(pattern), instantiated(action), []):
                        found.setdefault(name, f"{record.action} is about to run")
        return tuple(Reached(name, what) for name, what in found.items())
