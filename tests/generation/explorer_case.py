"""The explorer at its start, as the plan generation procedure sees it."""

from __future__ import annotations

from engine.bdi.parser import parse_literal, parse_trigger
from engine.bdi.syntax import Plan
from engine.generation.pgp.answer import Answer, read_answer
from engine.generation.pgp.context import GenerationContext
from engine.generation.pgp.documentation import documentation_of
from engine.worlds.explorer import beginning, percepts
from engine.worlds.explorer_files import explorer_program, recorded_answer

KNOWN = documentation_of(explorer_program().docs)
GOAL = parse_trigger("+!reach(home)")
PERCEPTS = tuple(
    parse_literal(f"{one.functor}({','.join(one.args)})[source(percept)]") for one in percepts(beginning())
)


def context(*plans: Plan) -> GenerationContext:
    return GenerationContext(goal=GOAL, beliefs=PERCEPTS, plans=plans, known=KNOWN)


def listing(number: int) -> Answer:
    return read_answer(recorded_answer(f"listing-5.{number}"), KNOWN.actions)


def answer(text: str) -> Answer:
    return read_answer(text, KNOWN.actions)
