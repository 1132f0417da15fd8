"""What is due, and why: pure functions of an agent's state.

Nothing here knows the time or what runs anywhere else, so that a replay comes to the same. Source: spec
master-loop-and-memory §3.5, §3.6 and §3.16 W13 to W18.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from engine.domain.memory import ReflectionKind
from engine.domain.metacognition import MetaTask
from engine.domain.state import AgentState, RunState
from engine.journal.meta_events import ThresholdsAdapted
from engine.memory.thresholds import adapted_consolidation, adapted_reflection, consolidation_overdue


@dataclass(frozen=True, slots=True)
class Due:
    """Something that is to be begun now."""

    task: MetaTask
    why: str
    about: str = ""
    """Of a reflection: its kind."""


def root_goal(state: AgentState) -> str:
    """The root of the goal being pursued, or of the newest one; empty while there is none."""
    goal = state.goal or next(reversed(state.goals.values()), None)
    return state.lineage(goal.id)[-1].id if goal is not None else ""


def due(state: AgentState) -> tuple[Due, ...]:
    """What is to be begun now, in the order of §3.6; no task runs twice at a time."""
    meta = state.meta
    if not meta.on or state.deleted or state.run is RunState.STOPPED:
        return ()
    return tuple(
        Due(task, why, ReflectionKind.nth(meta.cycle).value if task is MetaTask.REFLECT else "")
        for task, why in _wanted(state)
        if meta.doing(task) is None and not (task.needs_memory and not (meta.memory and root_goal(state)))
    )


def _wanted(state: AgentState) -> Iterator[tuple[MetaTask, str]]:
    meta = state.meta
    by_itself = state.run is RunState.RUNNING and bool(state.open_goals)
    for task in MetaTask:
        if task in meta.forced:
            yield task, "the operator wants it"
        elif by_itself and task not in meta.vetoed and meta.loop >= meta.resting.get(task, 0):
            why = _why(state, task)
            if why:
                yield task, why


def _why(state: AgentState, task: MetaTask) -> str:
    """Why a task is due by itself; empty when it is not."""
    meta = state.meta
    match task:
        case MetaTask.REFLECT:
            return _why_reflect(state)
        case MetaTask.CONSOLIDATE:
            counter, threshold = state.successes_since_consolidation, meta.consolidation_threshold
            if meta.overdue:
                return f"more than {2 * threshold} episodic memories wait"
            return f"{counter:g} successes, threshold {threshold}" if counter >= threshold else ""
        case MetaTask.LINK:
            every = meta.settings.link_every
            if not meta.unlinked or not _passed(state, task, every):
                return ""
            return f"{meta.unlinked} actions brought something new"
    every = {
        MetaTask.ADAPT: meta.settings.adapt_every,
        MetaTask.OPTIMISE: meta.settings.optimise_every,
        MetaTask.PROMOTE: meta.settings.promote_every,
        MetaTask.MAINTAIN: meta.settings.maintain_every,
    }[task]
    return f"every {every} loops" if _passed(state, task, every) else ""


def _passed(state: AgentState, task: MetaTask, every: int) -> bool:
    return state.meta.loop - state.meta.last.get(task, 0) >= every


def _why_reflect(state: AgentState) -> str:
    """Failures and successes are causes of their own, so that a reflection is no cause of the next (W13)."""
    meta = state.meta
    if state.needs_replan and meta.failures:
        return f"{meta.failures} new failure{'s' * (meta.failures > 1)}, and no way on yet"
    if meta.loop < meta.cooldown_until:
        return ""
    counter, threshold = state.successes_since_reflection, meta.reflection_threshold
    return f"{counter:g} successes, threshold {threshold}" if counter >= threshold else ""


def adaptation(state: AgentState) -> ThresholdsAdapted | None:
    """What the thresholds become after a count of memories; None while none waits to be followed."""
    meta, counts = state.meta, state.meta.counts
    if counts is None:
        return None
    reflection = adapted_reflection(
        meta.reflection_threshold,
        len(meta.window),
        meta.failed,
        state.consecutive_errors,
        meta.settings.reflection,
    )
    consolidation = adapted_consolidation(
        meta.consolidation_threshold, counts.episodic, counts.total, meta.settings.consolidation
    )
    return ThresholdsAdapted(
        reflection=reflection,
        consolidation=consolidation,
        calls=len(meta.window),
        failures=meta.failed,
        episodic=counts.episodic,
        total=counts.total,
        overdue=consolidation_overdue(counts.unconsolidated, consolidation),
    )


def replannable(state: AgentState) -> str:
    """The goal whose rest is to be planned anew, as a reflection asked for; empty when there is none now."""
    goal, plan = state.goal, state.plan
    if not state.meta.replan or goal is None or plan is None or not state.config.replans or state.reasons:
        return ""
    if state.open_thought(goal.id) is not None:
        return ""  # whoever decides step by step is told, and decides
    if goal.id != state.meta.replan_goal:
        return ""
    settled = goal.status.terminal or plan.complete or goal.id in state.replans or state.needs_replan
    waits_for_operator = state.intervention is not None or state.handover is not None
    return "" if settled or waits_for_operator or state.retry is not None else goal.id


def waits(state: AgentState) -> bool:
    """Whether something is to be done at the next boundary of the cycle."""
    return state.meta.on and (state.meta.counts is not None or bool(replannable(state)) or bool(due(state)))
