"""Invented goals and beliefs become admissible; the next prompt explains them (spec BDI §2.5; §7 54)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from engine.generation.pgp.answer import Invention
from engine.generation.pgp.answer_layout import InventionKind
from engine.generation.pgp.documentation import Documentation, Meaning


def with_inventions(known: Documentation, inventions: Iterable[Invention]) -> Documentation:
    """What is known after an answer; of two with the same name and number of arguments the newer counts."""
    goals = {one.template.indicator: one for one in known.admissible_goals}
    beliefs = {one.template.indicator: one for one in known.admissible_beliefs}
    for one in inventions:
        among = goals if one.kind is InventionKind.GOAL else beliefs
        # Braces would be read as places for arguments, and the purpose is a model's text.
        text = one.purpose.replace("{", "(").replace("}", ")")
        among[one.template.indicator] = Meaning(one.template, text)
    return replace(known, admissible_goals=tuple(goals.values()), admissible_beliefs=tuple(beliefs.values()))
