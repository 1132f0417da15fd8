"""What the journal shows that could go better, counted and with the events that show it; no model is asked.

Failure rates, steps that are slow, the same repair again and again, what people did by hand, retries that
never helped, budgets that were reached, clauses that no recipe covers. Where nothing stands out nothing is
said: an audit that finds nothing says so and claims no success (mindX spec §6.4 and behaviour 70).
"""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator
from pathlib import Path
from statistics import median
from typing import TypeVar

from engine.domain.failure import Strategy
from engine.domain.improvement import Concern, Finding
from engine.domain.text import clean_line
from engine.mastermind.search.components import AGENT_PREFIX, RECIPES, THRESHOLDS, library_of
from engine.mastermind.search.history import BY_HAND, Act, History, read_history
from engine.mastermind.search.planning import library_with, planned, recipe_texts

LEAST_CALLS = 5
"""Calls below which a failure rate says nothing."""
FAILURE_RATE = 0.2
LEAST_REPAIRS = 3
LEAST_HANDS = 2
LEAST_GRANTS = 3
"""Times that the same call was allowed by hand until that is worth a rule."""
SLOW_TIMES, SLOW_MS = 4.0, 500
"""A call is slow at so many times the median of its command, and at least so much above it."""
GIVEN_UP = frozenset({Strategy.FALLBACK_MANUAL.value, Strategy.ABORT_GRACEFULLY.value})
"""Strategies that repair nothing."""
MOST_GAPS = 200
"""Clauses, the newest, of which it is seen whether they are covered by now."""
SHOWN = 12
"""References that a finding names; the counts are of all."""

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)


async def audit(workspace: Path, cancelled: Callable[[], bool] = lambda: False) -> tuple[Finding, ...]:
    """Everything that stands out in a workspace's journal, the worst first; empty where nothing does.

    Raises:
        JournalReadError: the journal cannot be read.
    """
    history = await read_history(workspace, cancelled)

    def look() -> tuple[Finding, ...]:
        library = library_with(recipe_texts(workspace / "recipes"))
        return findings_of(history, lambda clause: not planned(library, clause).uncovered)

    return await asyncio.to_thread(look)


def findings_of(
    history: History, covered: Callable[[str], bool] = lambda _clause: False
) -> tuple[Finding, ...]:
    """What stands out in a history, the worst first.

    Args:
        history: what the journal says.
        covered: whether the recipes of today cover a clause, so that nothing is found that was mended.
    """
    looks = (_failing, _slow, _repairs, _vain, _by_hand, _granted, _budgets)
    found = [finding for look in looks for finding in look(history)]
    found += _uncovered(history, covered)
    return tuple(sorted(found, key=lambda one: (-one.severity, one.target, one.text)))


def _failing(history: History) -> Iterator[Finding]:
    """Commands of an agent that fail too often."""
    mine = [act for act in history.acts if not act.by_operator]
    for (agent, name), acts in _grouped(mine, lambda act: (act.agent, _name(act))).items():
        failed = [act for act in acts if not act.ok]
        rate = len(failed) / len(acts)
        if len(acts) < LEAST_CALLS or rate < FAILURE_RATE:
            continue
        codes = ", ".join(
            f"{code} {n}" for code, n in Counter(a.code or "FAILURE" for a in failed).most_common(3)
        )
        text = f"{name} of {agent} failed in {len(failed)} of {len(acts)} calls ({codes})"
        yield _finding(
            _target(history, agent, failed),
            Concern.FAILURES,
            text,
            (a.ref for a in failed),
            3 + round(6 * rate),
        )


def _slow(history: History) -> Iterator[Finding]:
    """Calls that took many times as long as the same command usually does."""
    done = [act for act in history.acts if act.ok and not act.by_operator and act.command != "wait_job"]
    for name, acts in _grouped(done, _name).items():
        usual = median(act.duration_ms for act in acts)
        slow = [a for a in acts if a.duration_ms > max(SLOW_TIMES * usual, usual + SLOW_MS)]
        if len(acts) < LEAST_CALLS or not slow:
            continue
        for agent, those in _grouped(slow, lambda act: act.agent).items():
            worst = max(those, key=lambda act: act.duration_ms)
            text = (
                f"{name} of {agent} was slow in {len(those)} of {len(acts)} calls: "
                f"{worst.duration_ms} ms at worst, where {usual:.0f} ms is the median"
            )
            yield _finding(_target(history, agent, those), Concern.SPEED, text, (a.ref for a in those), 4)


def _repairs(history: History) -> Iterator[Finding]:
    """The same failure of the same thing, answered by the same recovery again and again."""
    subjects = {(one.agent, one.step): one.subject for one in history.failures}
    by = _grouped(
        (one for one in history.recoveries if one.helped is not False and one.strategy not in GIVEN_UP),
        lambda one: (one.agent, one.kind, one.strategy, subjects.get((one.agent, one.step), "")),
    )
    for (agent, kind, strategy, subject), those in by.items():
        if len(those) < LEAST_REPAIRS:
            continue
        what = f" of “{clean_line(subject, limit=60)}”" if subject else ""
        text = f"{kind}{what} in {agent} was repaired by {strategy} {len(those)} times: its cause stays"
        yield _finding(f"{AGENT_PREFIX}{agent}", Concern.REPAIRS, text, (one.ref for one in those), 5)


def _vain(history: History) -> Iterator[Finding]:
    """Recoveries that were tried several times and never helped."""
    ended = [one for one in history.recoveries if one.helped is not None and one.strategy not in GIVEN_UP]
    for (kind, strategy), those in _grouped(ended, lambda one: (one.kind, one.strategy)).items():
        if len(those) >= LEAST_REPAIRS and not any(one.helped for one in those):
            text = f"{strategy} after {kind} helped in 0 of {len(those)} tries"
            yield _finding(THRESHOLDS, Concern.REPAIRS, text, (one.ref for one in those), 5)


def _by_hand(history: History) -> Iterator[Finding]:
    """What people did in the place of agents."""
    for (agent, do), those in _grouped(history.hands, lambda one: (one.agent, one.do)).items():
        if len(those) < LEAST_HANDS:
            continue
        goals = {(one.agent, one.goal) for one in those if one.goal}
        of = (
            f", for {len(goals)} of {len([g for g in history.goals if g[0] == agent])} goals" if goals else ""
        )
        text = f"the operator {BY_HAND[do]} of {agent} {len(those)} times{of}"
        if do in ("call_tool", "take_shell"):
            text = f"the operator {BY_HAND[do]} in {agent}'s place {len(those)} times"
        target = _recipes_or(history, agent)
        yield _finding(target, Concern.INTERVENTIONS, text, (one.ref for one in those), 6)


def _granted(history: History) -> Iterator[Finding]:
    """Calls that were allowed once, again and again."""
    for (agent, what), those in _grouped(history.granted, lambda one: (one[1], one[2])).items():
        if len(those) >= LEAST_GRANTS:
            text = (
                f"the operator allowed {what} of {agent} once, {len(those)} times: a rule would say it once"
            )
            yield _finding(
                f"{AGENT_PREFIX}{agent}", Concern.INTERVENTIONS, text, (one[0] for one in those), 3
            )


def _budgets(history: History) -> Iterator[Finding]:
    """Budgets that held an agent."""
    for agent, those in _grouped(history.budgets, lambda one: one[1]).items():
        text = f"{agent} was held by a budget {len(those)} times, last: {clean_line(those[-1][2], limit=120)}"
        yield _finding(f"{AGENT_PREFIX}{agent}", Concern.FAILURES, text, (one[0] for one in those), 5)


def _uncovered(history: History, covered: Callable[[str], bool]) -> Iterator[Finding]:
    """Clauses that no recipe covers, by the word that they begin with."""
    gaps = [gap for goal in history.goals.values() for gap in goal.uncovered]
    asked = sum(1 for goal in history.goals.values() if goal.thinker == "procedural")
    still = [gap for gap in gaps[-MOST_GAPS:] if gap[0].split() and not covered(gap[0])]
    for verb, those in _grouped(still, lambda gap: gap[0].split()[0].casefold()).items():
        shown, word = clean_line(those[-1][0], limit=80), clean_line(verb, limit=40)
        text = f"no recipe covers “{shown}”: {len(those)} of {asked} goals had such a clause with “{word}”"
        severity = min(8, 4 + len(those))
        yield _finding(RECIPES, Concern.INTERVENTIONS, text, (ref for _, ref in those), severity)


def _finding(target: str, concern: Concern, text: str, evidence: Iterable[str], severity: int) -> Finding:
    refs = tuple(evidence)
    return Finding(target, concern, text, refs[:SHOWN], min(10, max(1, severity)), name=str(len(refs)))


def _target(history: History, agent: str, acts: list[Act]) -> str:
    """What to change: the one recipe that all actions are from, else the agent's plans or itself."""
    sources = {act.recipe for act in acts}
    if len(sources) == 1 and (only := sources.pop()).startswith("recipes/"):
        return only.partition(":")[0].removesuffix(".toml")
    return library_of(history.agents.get(agent, {})) or f"{AGENT_PREFIX}{agent}"


def _recipes_or(history: History, agent: str) -> str:
    made = history.agents.get(agent, {})
    return library_of(made) or (f"{AGENT_PREFIX}{agent}" if made.get("type") == "asl_agent" else RECIPES)


def _name(act: Act) -> str:
    return f"{act.tool}.{act.command}"


def _grouped(items: Iterable[T], key: Callable[[T], K]) -> dict[K, list[T]]:
    found: defaultdict[K, list[T]] = defaultdict(list)
    for item in items:
        found[key(item)].append(item)
    return found
