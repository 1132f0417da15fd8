"""Plans whose goals wait for each other in a circle can never end, and are refused."""

from __future__ import annotations

import pytest

from engine.bdi.parser import parse_plan, parse_trigger
from engine.planning.pgp.validation import endless_plans


def circles(*plans: str, known: tuple[str, ...] = ()) -> dict[int, str]:
    """Plans in AgentSpeak, and triggers of the agent's own; the circles by the plan's place."""
    triggers = [parse_trigger(one) for one in known]
    found = endless_plans([parse_plan(one) for one in plans], triggers)
    return {place: why.rpartition(": ")[2] for place, why in found.items()}


@pytest.mark.parametrize(
    ("plans", "circle"),
    [
        (["+!a <- !a."], {0: "+!a → +!a"}),
        (["+!a <- move; !b; move.", "+!b <- !a."], {0: "+!a → +!b → +!a", 1: "+!b → +!a → +!b"}),
        (["+!a(X) : not at(X) <- move; !a(X)."], {0: "+!a(X) → +!a(X)"}),
        (["+!a <- !b.", "+!b <- !b."], {0: "+!a → +!b → +!b", 1: "+!b → +!b"}),
    ],
)
def test_a_circle_is_named_goal_by_goal(plans: list[str], circle: dict[int, str]) -> None:
    assert circles(*plans) == circle


@pytest.mark.parametrize(
    ("plans", "known"),
    [
        (["+!a(X) : at(X).", "+!a(X) : not at(X) <- move; !a(X)."], ()),
        (["+!a <- !b; !c."], ()),
        (["+!a <- !!a."], ()),
        (["+!a <- move; !a."], ("+!a",)),
        (["+!a <- move; !a."], ("-!a",)),
        (["+!a(0).", "+!a(N) <- !a(M)."], ()),
        (["+!a(one) <- !a(two)."], ()),
        (["+!a <- if (tired) { !a }."], ()),
    ],
)
def test_recursion_that_can_end_is_no_circle(plans: list[str], known: tuple[str, ...]) -> None:
    assert circles(*plans, known=known) == {}


def test_a_plan_beside_a_circle_is_left_alone() -> None:
    assert circles("+!a <- move.", "+!b <- !b.", "+!a : tired <- !b.") == {
        1: "+!b → +!b",
        2: "+!a → +!b → +!b",
    }
