"""Finds in the journal what could go better: counted, with the events that show it; no model is asked."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import TypeVar

from engine.core.improvement import Component, Concern, Finding
from engine.core.journal import JournalReadError
from engine.core.recovery import Strategy
from engine.core.store.port import JournalStore
from engine.core.text import clean_line
from engine.improve.ports import AuditUnavailable, Progress
from engine.improve.search.components import (
    AGENT_PREFIX,
    RECIPES,
    SEARCHED,
    THRESHOLDS,
    components,
    library_of,
)
from engine.improve.search.history import BY_HAND, History, PastAction, read_created, read_history
from engine.improve.search.recipes import library_with, plan_goal, recipe_texts

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
"""Clauses, the newest, of which it is checked whether they are covered by now."""
SHOWN = 12
"""References that a finding names; the counts are of all."""

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)


class JournalAuditor:
    """Knows the components that are no projects, and finds what the journal shows of them.

    Args:
        workspace: its directory.
        store: its journal.
        agents: gives the ids of the agents that exist.
        model: the name of the model that thinks; empty where there is none.
    """

    name = "journal"

    def __init__(
        self,
        workspace: Path,
        store: JournalStore,
        agents: Callable[[], Sequence[str]] = lambda: (),
        model: str = "",
    ) -> None:
        self._workspace, self._store, self._agents, self._model = workspace, store, agents, model

    def fits(self, component: Component) -> bool:
        """Whether agents leave traces of such a component in the journal."""
        return component.kind in SEARCHED

    async def components(self) -> Sequence[Component]:
        """All components beside projects; agents are those that exist now."""
        here = set(self._agents())
        created = await read_created(self._store) if here else {}
        known = {name: str(made["type"]) for name, made in created.items() if name in here}
        return await asyncio.to_thread(components, self._workspace, known, self._model)

    async def audit(
        self, component: Component, tree: Path, context: str, progress: Progress
    ) -> Sequence[Finding]:
        """What the journal shows about a component.

        Raises:
            AuditUnavailable: the journal cannot be read.
        """
        try:
            findings = await audit(self._workspace, self._store, lambda: progress.cancelled)
        except JournalReadError as error:
            raise AuditUnavailable(str(error)) from error
        return [finding for finding in findings if finding.target == component.id]


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
    looks = (_failing, _slow, _repairs, _vain, _by_hand, _granted, _budgets)
    findings = [finding for look in looks for finding in look(history)]
    findings += _uncovered(history, covered)
    return tuple(sorted(findings, key=lambda finding: (-finding.severity, finding.target, finding.text)))


def _failing(history: History) -> Iterator[Finding]:
    """Commands of an agent that fail too often."""
    mine = [act for act in history.acts if not act.by_operator]
    for (agent, name), acts in _grouped(mine, lambda act: (act.agent, _name(act))).items():
        failed = [act for act in acts if not act.ok]
        rate = len(failed) / len(acts)
        if len(acts) < LEAST_CALLS or rate < FAILURE_RATE:
            continue
        counts = Counter(act.code or "FAILURE" for act in failed).most_common(3)
        codes = ", ".join(f"{code} {count}" for code, count in counts)
        text = f"{name} of {agent} failed in {len(failed)} of {len(acts)} calls ({codes})"
        target = _target(history, agent, failed)
        yield _finding(target, Concern.FAILURES, text, (act.ref for act in failed), 3 + round(6 * rate))


def _slow(history: History) -> Iterator[Finding]:
    """Calls that took many times as long as the same command usually does."""
    done = [act for act in history.acts if act.ok and not act.by_operator and act.command != "wait_job"]
    for name, acts in _grouped(done, _name).items():
        usual = median(act.duration_ms for act in acts)
        slow = [act for act in acts if act.duration_ms > max(SLOW_TIMES * usual, usual + SLOW_MS)]
        if len(acts) < LEAST_CALLS:
            continue
        for agent, those in _grouped(slow, lambda act: act.agent).items():
            worst = max(act.duration_ms for act in those)
            text = (
                f"{name} of {agent} was slow in {len(those)} of {len(acts)} calls: "
                f"{worst} ms at worst, where {usual:.0f} ms is the median"
            )
            target = _target(history, agent, those)
            yield _finding(target, Concern.SPEED, text, (act.ref for act in those), 4)


def _repairs(history: History) -> Iterator[Finding]:
    """The same failure of the same thing, answered by the same recovery again and again."""
    repairs = [
        (recovery, history.subjects.get((recovery.agent, recovery.step), ""))
        for recovery in history.recoveries
        if recovery.helped is not False and recovery.strategy not in GIVEN_UP
    ]
    groups = _grouped(repairs, lambda pair: (pair[0].agent, pair[0].kind, pair[0].strategy, pair[1]))
    for (agent, kind, strategy, subject), those in groups.items():
        if len(those) >= LEAST_REPAIRS:
            what = f" of “{clean_line(subject, limit=60)}”" if subject else ""
            text = f"{kind}{what} in {agent} was repaired by {strategy} {len(those)} times: its cause stays"
            refs = (recovery.ref for recovery, _ in those)
            yield _finding(f"{AGENT_PREFIX}{agent}", Concern.REPAIRS, text, refs, 5)


def _vain(history: History) -> Iterator[Finding]:
    """Recoveries that were tried several times and never helped."""
    ended = [
        recovery
        for recovery in history.recoveries
        if recovery.helped is not None and recovery.strategy not in GIVEN_UP
    ]
    groups = _grouped(ended, lambda recovery: (recovery.kind, recovery.strategy))
    for (kind, strategy), those in groups.items():
        if len(those) >= LEAST_REPAIRS and not any(recovery.helped for recovery in those):
            text = f"{strategy} after {kind} helped in 0 of {len(those)} tries"
            yield _finding(THRESHOLDS, Concern.REPAIRS, text, (recovery.ref for recovery in those), 5)


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
        made = history.agents.get(agent, {})
        target = f"{AGENT_PREFIX}{agent}" if made.get("type") == "asl_agent" else RECIPES
        refs = (hand.ref for hand in those)
        yield _finding(library_of(made) or target, Concern.INTERVENTIONS, text, refs, 6)


def _granted(history: History) -> Iterator[Finding]:
    """Calls that were allowed once, again and again."""
    for (agent, what), those in _grouped(history.granted, lambda granted: granted[1:]).items():
        if len(those) >= LEAST_GRANTS:
            text = (
                f"the operator allowed {what} of {agent} once, {len(those)} times: a rule would say it once"
            )
            refs = (ref for ref, _, _ in those)
            yield _finding(f"{AGENT_PREFIX}{agent}", Concern.INTERVENTIONS, text, refs, 3)


def _budgets(history: History) -> Iterator[Finding]:
    """Budgets that held an agent."""
    for agent, those in _grouped(history.budgets, lambda breach: breach[1]).items():
        text = f"{agent} was held by a budget {len(those)} times, last: {clean_line(those[-1][2], limit=120)}"
        yield _finding(f"{AGENT_PREFIX}{agent}", Concern.FAILURES, text, (breach[0] for breach in those), 5)


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


def _target(history: History, agent: str, acts: Sequence[PastAction]) -> str:
    """What to change: the one recipe that all actions are from, else the agent's plans or itself."""
    sources = {act.recipe for act in acts}
    if len(sources) == 1 and (only := sources.pop()).startswith("recipes/"):
        return only.partition(":")[0].removesuffix(".toml")
    return library_of(history.agents.get(agent, {})) or f"{AGENT_PREFIX}{agent}"


def _name(act: PastAction) -> str:
    return f"{act.tool}.{act.command}"


def _grouped(items: Iterable[T], key: Callable[[T], K]) -> dict[K, list[T]]:
    groups: defaultdict[K, list[T]] = defaultdict(list)
    for item in items:
        groups[key(item)].append(item)
    return groups
