"""What looking after itself does to an agent's state; `engine.journal.fold` applies it with all else.

Nothing here touches the agent's turn: its last action, errors and plan stay those of its own doing (spec
master-loop-and-memory §3.16 W5).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from engine.domain.metacognition import (
    COOLDOWN_LOOPS,
    ENDED_KEPT,
    FEEDBACK_KEPT,
    FEEDBACK_LIMIT,
    REST_LOOPS,
    WINDOW,
    BackgroundJob,
    EndedJob,
    Feedback,
    JobOutcome,
    MemoryCounts,
    MetaTask,
    Stuck,
    ToolStatistics,
)
from engine.domain.state import ActiveAction, AgentState, RunState
from engine.journal import meta_events as ev
from engine.journal.event import Event
from engine.journal.events import ActionFinished
from engine.journal.past_actions import past_action
from engine.journal.payload import Payload

REMEMBERS = frozenset({"store", "store_memory", "keep", "record_artifact", "think", "record_thought"})
"""Commands of the memory tool by which something new is remembered."""
STUCK = "STUCK"
"""How the reason of a pause begins that being stuck brought about."""
_NAMES = {MetaTask.REFLECT: "reflection", MetaTask.CONSOLIDATE: "consolidation"}

# ------------------------------------------------------------------ the agent's own turns


def acted(state: AgentState, action: ActiveAction, said: ActionFinished, event: Event) -> None:
    """An action of the agent's own has ended."""
    meta, past = state.meta, past_action(state, action, said, event)
    brings = past.ok and (action.mutates or (action.tool == "memory" and action.command in REMEMBERS))
    old = meta.tools.get(past.call, ToolStatistics())
    counted = ToolStatistics(
        old.succeeded + past.ok, old.failed + (not past.ok), old.duration_ms + past.duration_ms
    )
    state.meta = replace(
        meta,
        loop=meta.loop + 1,
        window=(*meta.window, past)[-WINDOW:],
        tools={**meta.tools, past.call: counted},
        acted=event.ref,
        acted_at=event.at,
        unlinked=meta.unlinked + brings,
    )


def turned(state: AgentState) -> None:
    """A turn of the agent's has ended that was no action."""
    state.meta = replace(state.meta, loop=state.meta.loop + 1)


def reopened(state: AgentState) -> None:
    """Another session begins: what was wanted at once in the last one is not wanted any more."""
    state.meta = replace(state.meta, forced=())


def turned_to(state: AgentState) -> None:
    """The work is another one now: what was done before counts no more for whether the agent is stuck."""
    if state.meta.window:
        state.meta = replace(state.meta, phase=state.meta.phase + 1)


def failed(state: AgentState) -> None:
    """Something went wrong that was not counted before."""
    state.meta = replace(state.meta, failures=state.meta.failures + 1)


def asked(state: AgentState, event: Event) -> None:
    """The thinker is asked: all that waits to be told is in this prompt."""
    meta = state.meta
    if meta.feedback and state.config.replans:
        told = tuple(replace(one, asked=event.ref) for one in meta.feedback)
        state.meta = replace(meta, feedback=(), told=(*meta.told, *told)[-FEEDBACK_KEPT:])


def goal_over(state: AgentState, goal: str) -> None:
    """A goal has ended: nothing of it is planned anew any more."""
    if state.meta.replan_goal == goal:
        state.meta = replace(state.meta, replan="", replan_goal="")


# ------------------------------------------------------------------ its own events


def _begun(state: AgentState, said: ev.MetacognitionBegun, event: Event) -> None:
    meta, settings = state.meta, said.settings
    if not meta.on:
        meta = replace(
            meta,
            reflection_threshold=settings.reflection.base,
            consolidation_threshold=settings.consolidation.base,
        )
    state.meta = replace(
        meta,
        on=settings.enabled,
        memory=said.memory,
        settings=settings,
        reflection_threshold=settings.reflection.clamp(meta.reflection_threshold),
        consolidation_threshold=settings.consolidation.clamp(meta.consolidation_threshold),
    )


def _started(state: AgentState, said: ev.BackgroundStarted, event: Event) -> None:
    meta = state.meta
    number = said.job.removeprefix("bg")
    if number.isdigit():
        state.next_id["bg"] = max(state.next_id.get("bg", 0), int(number))
    reflects, merges = said.task is MetaTask.REFLECT, said.task is MetaTask.CONSOLIDATE
    counters = {
        MetaTask.REFLECT: state.successes_since_reflection,
        MetaTask.CONSOLIDATE: state.successes_since_consolidation,
    }
    job = BackgroundJob(
        said.job,
        said.task,
        said.why,
        meta.loop,
        said.goal,
        counters.get(said.task, 0.0),
        meta.failures if reflects else 0,
        said.about,
        event.at,
        event.ref,
    )
    state.meta = replace(
        meta,
        running=(*meta.running, job),
        last={**meta.last, said.task: meta.loop},
        forced=tuple(one for one in meta.forced if one is not said.task),
        failures=0 if reflects else meta.failures,
        overdue=meta.overdue and not merges,
        unlinked=0 if said.task is MetaTask.LINK else meta.unlinked,
    )


def _ended(state: AgentState, said: ev.BackgroundEnded, event: Event) -> None:
    meta = state.meta
    job = meta.job(said.job)
    if job is None:
        return
    over = EndedJob(job, said.outcome, said.message, event.at, event.ref)
    state.meta = replace(
        meta,
        running=tuple(one for one in meta.running if one is not job),
        ended=(*meta.ended, over)[-ENDED_KEPT:],
    )
    if said.outcome is JobOutcome.DONE:
        _succeeded(state, job, said, event)
        return
    # What it was begun for still waits: counters go back on success only (W18).
    meta = state.meta
    resting = {**meta.resting, job.task: meta.loop + REST_LOOPS}
    state.meta = replace(meta, resting=resting, failures=meta.failures + job.failures)


def _succeeded(state: AgentState, job: BackgroundJob, said: ev.BackgroundEnded, event: Event) -> None:
    meta = state.meta
    changes: dict[str, Any] = {
        "resting": {task: loop for task, loop in meta.resting.items() if task is not job.task}
    }
    match job.task:
        case MetaTask.REFLECT:
            state.successes_since_reflection = max(0.0, state.successes_since_reflection - job.counter)
            changes["cycle"] = meta.cycle + 1
        case MetaTask.CONSOLIDATE:
            state.successes_since_consolidation = max(0.0, state.successes_since_consolidation - job.counter)
        case MetaTask.ADAPT:
            counts = said.counts
            changes["counts"] = MemoryCounts(
                counts.get("episodic", 0), counts.get("total", 0), counts.get("unconsolidated", 0), event.ref
            )
    reads = state.config.replans and not state.reasons
    if said.feedback and reads:
        source = _NAMES.get(job.task, job.task.value)
        changes["feedback"] = _with(meta.feedback, said.feedback, source, event, computed=said.computed)
    if said.replan and reads and state.goal is not None and not state.goal.status.terminal:
        changes |= {"replan": event.ref, "replan_goal": state.goal.id}
    if said.replan:
        changes["cooldown_until"] = meta.loop + COOLDOWN_LOOPS
    state.meta = replace(meta, **changes)


def _with(
    waiting: tuple[Feedback, ...], text: str, source: str, event: Event, *, computed: bool = False
) -> tuple[Feedback, ...]:
    """What waits, with one more; where too much waits the oldest goes, the operator's words last of all."""
    kept = [*waiting, Feedback(text[:FEEDBACK_LIMIT], source, event.ref, computed)]
    while len(kept) > FEEDBACK_KEPT:
        kept.remove(next((one for one in kept if one.source != "operator"), kept[0]))
    return tuple(kept)


def _adapted(state: AgentState, said: ev.ThresholdsAdapted, event: Event) -> None:
    state.meta = replace(
        state.meta,
        reflection_threshold=said.reflection,
        consolidation_threshold=said.consolidation,
        overdue=said.overdue,
        counts=None,
    )


def _set(state: AgentState, said: ev.ThresholdsSet, event: Event) -> None:
    meta = state.meta
    state.meta = replace(
        meta,
        reflection_threshold=said.reflection or meta.reflection_threshold,
        consolidation_threshold=said.consolidation or meta.consolidation_threshold,
    )


def _forced(state: AgentState, said: ev.MetaForced, event: Event) -> None:
    if said.task not in state.meta.forced:
        state.meta = replace(state.meta, forced=(*state.meta.forced, said.task))


def _vetoed(state: AgentState, said: ev.MetaVetoed, event: Event) -> None:
    meta = state.meta
    others = tuple(one for one in meta.vetoed if one is not said.task)
    forced = tuple(one for one in meta.forced if one is not said.task)
    state.meta = (
        replace(meta, vetoed=others)
        if said.lifted
        else replace(meta, vetoed=(*others, said.task), forced=forced)
    )


def _guided(state: AgentState, said: ev.GuidanceGiven, event: Event) -> None:
    state.meta = replace(state.meta, feedback=_with(state.meta.feedback, said.text, "operator", event))
    turned_to(state)


def _stuck(state: AgentState, said: ev.StuckNoticed, event: Event) -> None:
    signs = said.signs
    state.meta = replace(state.meta, stuck=Stuck(signs, event.ref, event.at) if signs else None)
    if signs and said.holds and state.run is RunState.RUNNING:
        state.run, state.run_event, state.grants = RunState.PAUSED, event.ref, 0
        state.run_reason = f"{STUCK}: {state.meta.stuck.text if state.meta.stuck else ''}"


def _replan(state: AgentState, said: ev.ReplanAsked, event: Event) -> None:
    state.meta = replace(state.meta, replan="", replan_goal="")
    state.replans[said.goal] = event.ref


HANDLERS: dict[type[Payload], Callable[[AgentState, Any, Event], None]] = {
    ev.MetacognitionBegun: _begun,
    ev.BackgroundStarted: _started,
    ev.BackgroundEnded: _ended,
    ev.ThresholdsAdapted: _adapted,
    ev.ThresholdsSet: _set,
    ev.MetaForced: _forced,
    ev.MetaVetoed: _vetoed,
    ev.GuidanceGiven: _guided,
    ev.ReplanAsked: _replan,
    ev.StuckNoticed: _stuck,
}
