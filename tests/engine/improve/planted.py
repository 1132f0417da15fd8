"""Plan libraries with a planted loss, good ones, and changes that make nothing better."""

from __future__ import annotations

import random

from engine.bdi.parser import parse_program
from engine.bdi.printer import plan_text

GOOD = """\
// How the robot gets home.

@here +!reach(O) : there_is(O, here).

@near +!reach(O) : there_is(O, D) <- move(D).

@search +!reach(O) : not there_is(O, _) <- getDirectionToMove(D); move(D); !reach(O).
"""

CAREFUL = """\
@here +!reach(O) : there_is(O, here).

@near +!reach(O) : there_is(O, D) <- move(D).

// Looks where it goes although the direction is free for certain.
@careful +!reach(O) : not there_is(O, _) <- getDirectionToMove(D); !look(D); move(D); !reach(O).

@quick +!reach(O) : not there_is(O, _) <- getDirectionToMove(D); move(D); !reach(O).

@look +!look(D) : free(D).
"""
"""The order of two plans costs a fifth to a third more steps; which way the robot goes stays the same."""

EDGE = """\
@here +!reach(O) : there_is(O, here).

@edge +!reach(O) : obstacle(north) & not there_is(O, north_east)
   <- getDirectionToMove(D); move(D); !reach(O).

@near +!reach(O) : there_is(O, D) <- move(D).

@search +!reach(O) : not there_is(O, _) <- getDirectionToMove(D); move(D); !reach(O).
"""
"""The order of two plans costs a fifth more steps; the robot goes other ways by it, so figures scatter."""

PLANTED = (CAREFUL, EDGE)

NORTH = """\
@here +!reach(O) : there_is(O, here).

@near +!reach(O) : there_is(O, D) <- move(D).

@begin +!reach(O) : free({0}) & not begun <- +begun; move({0}); !reach(O).

@search +!reach(O) <- getDirectionToMove(D); move(D); !reach(O).
"""
"""Goes one way first; as worlds are drawn alike in all directions, none is better than another."""


def null(number: int) -> tuple[str, str]:
    """A library and a change of it that makes nothing better."""
    draws = random.Random(f"null {number}")
    match number % 4:
        case 0:  # other names for variables and labels
            return GOOD, GOOD.replace("(O", "(Thing").replace("D)", "Way)").replace("@near", "@beside")
        case 1:  # plans of which never more than one is applicable, in another order
            plans = list(parse_program(GOOD, "good.asl").plans)
            plans.sort(key=lambda plan: (plan.name == "near", draws.random()))
            here = next(plan for plan in plans if plan.name == "here")
            plans.remove(here)
            return GOOD, "\n\n".join(map(plan_text, [here, *plans])) + "\n"
        case _:  # another way first: figures scatter, and are the same in the mean
            before, after = draws.sample(["north", "south", "east", "west"], 2)
            return NORTH.format(before), NORTH.format(after)
