"""A program made ready to run; many agents share one."""

from __future__ import annotations

from engine.bdi.beliefs import sourced
from engine.bdi.compiler import compile_rule
from engine.bdi.plans import PlanLibrary
from engine.bdi.queries import Clause
from engine.bdi.syntax import Program
from engine.bdi.terms import Struct, Term, canonical, closed, is_ground


class LoadedProgram:
    """A program with its plans and rules compiled and its beliefs in the form in which they are stored."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.plans = PlanLibrary()
        self.plans.load(program.plans)
        self.rules: dict[str, list[Clause]] = {}
        for rule in program.rules:
            self.rules.setdefault(rule.head.indicator, []).append(compile_rule(rule))
        self.beliefs: list[tuple[Struct, tuple[Term, ...]]] = [
            (stored(one.literal), sourced(closed(one.literal.annotations))) for one in program.beliefs
        ]


def stored(literal: Struct) -> Struct:
    """The literal as the belief base keeps it: without annotations, variables in canonical form."""
    plain = literal.with_annotations(()) if literal.annotations else literal
    if is_ground(plain):
        return plain
    made = canonical(plain)
    assert isinstance(made, Struct)
    return made
