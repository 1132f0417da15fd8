"""The explorer at its start, as the plan generation procedure sees it."""

from __future__ import annotations

from engine.bdi.parser import parse_literal, parse_trigger
from engine.bdi.syntax import Plan
from engine.planning.pgp.answer_parser import Answer, parse_answer
from engine.planning.pgp.documentation import documentation_of
from engine.planning.pgp.prompts import GenerationContext
from engine.tools.worlds.explorer import explorer_program, initial_state, percepts, recorded_answer

KNOWN = documentation_of(explorer_program().docs)
GOAL = parse_trigger("+!reach(home)")
PERCEPTS = tuple(
    parse_literal(f"{one.functor}({','.join(one.args)})[source(percept)]")
    for one in percepts(initial_state())
)


def context(*plans: Plan) -> GenerationContext:
    return GenerationContext(goal=GOAL, beliefs=PERCEPTS, plans=plans, known=KNOWN)


def listing(number: int) -> Answer:
    return parse_answer(recorded_answer(f"listing-5.{number}"), KNOWN.actions)


def answer(text: str) -> Answer:
    return parse_answer(text, KNOWN.actions)
