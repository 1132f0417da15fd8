"""Finds in the journal what could go better: counted, with the events that show it; no model is asked."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator
from pathlib import Path
from typing import TypeVar

from engine.core.improvement import Concern, Finding
from engine.core.store.port import JournalStore
from engine.core.text import clean_line
from engine.improve.search.components import RECIPES, library_of
from engine.improve.search.history import BY_HAND, History, read_history
from engine.improve.search.recipes import library_with, plan_goal, recipe_texts

LEAST_HANDS = 2
MOST_GAPS = 200
"""Clauses, the newest, of which it is checked whether they are covered by now."""
SHOWN = 12
"""References that a finding names; the counts are of all."""

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)


async def audit(
    workspace: Path, store: JournalStore, cancelled: Callable[[], bool] = lambda: False
) -> tuple[Finding, ...]:
    """Everything that stands out in a workspace's journal, the worst first.

    Raises:
        JournalReadError: the journal cannot be read.
    """
    history = await read_history(store, cancelled)

    def look() -> tuple[Finding, ...]:
        library = library_with(recipe_texts(workspace / RECIPES))
        return findings_of(history, lambda clause: not plan_goal(library, clause).uncovered)

    return await asyncio.to_thread(look)


def findings_of(
    history: History, covered: Callable[[str], bool] = lambda _clause: False
) -> tuple[Finding, ...]:
    """What stands out in a history, the worst first.

    Args:
        history: what the journal says.
        covered: whether the recipes of today cover a clause.
    """
    findings = [*_by_hand(history), *_uncovered(history, covered)]
    return tuple(sorted(findings, key=lambda finding: (-finding.severity, finding.target, finding.text)))


def _by_hand(history: History) -> Iterator[Finding]:
    """What people did in the place of agents."""
    for (agent, do), those in _grouped(history.hands, lambda hand: (hand.agent, hand.do)).items():
        if len(those) < LEAST_HANDS:
            continue
        goals = len({hand.goal for hand in those if hand.goal})
        every = sum(owner == agent for owner, _ in history.goals)
        text = f"the operator {BY_HAND[do]} of {agent} {len(those)} times"
        text += f", for {goals} of {every} goals" if goals else ""
        if do in ("call_tool", "take_shell"):
            text = f"the operator {BY_HAND[do]} in {agent}'s place {len(those)} times"
        target = library_of(history.agents.get(agent, {})) or RECIPES
        yield _finding(target, Concern.INTERVENTIONS, text, (hand.ref for hand in those), 6)


def _uncovered(history: History, covered: Callable[[str], bool]) -> Iterator[Finding]:
    """Clauses that no recipe covers, by the word that they begin with."""
    gaps = [gap for goal in history.goals.values() for gap in goal.uncovered]
    asked = sum(goal.thinker == "procedural" for goal in history.goals.values())
    still = [gap for gap in gaps[-MOST_GAPS:] if gap[0].split() and not covered(gap[0])]
    for verb, those in _grouped(still, lambda gap: gap[0].split()[0].casefold()).items():
        shown, word = clean_line(those[-1][0], limit=80), clean_line(verb, limit=40)
        text = f"no recipe covers “{shown}”: {len(those)} of {asked} goals had such a clause with “{word}”"
        yield _finding(
            RECIPES, Concern.INTERVENTIONS, text, (ref for _, ref in those), min(8, 4 + len(those))
        )


def _finding(target: str, concern: Concern, text: str, evidence: Iterable[str], severity: int) -> Finding:
    refs = tuple(evidence)
    return Finding(target, concern, text, refs[:SHOWN], min(10, max(1, severity)), name=str(len(refs)))


def _grouped(items: Iterable[T], key: Callable[[T], K]) -> dict[K, list[T]]:
    groups: defaultdict[K, list[T]] = defaultdict(list)
    for item in items:
        groups[key(item)].append(item)
    return groups
