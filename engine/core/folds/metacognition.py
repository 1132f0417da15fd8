"""Folds metacognition, and what is kept of an agent's past actions.

Nothing here touches the agent's turn: its last action, errors and plan stay those of its own work. Answers of
tools are made comparable by leaving out what differs from call to call, as whether two answers are the same
decides whether an agent that asks again has learned something, goes in a circle, or waits.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from engine.core import events as ev
from engine.core.actions import ActionFinished
from engine.core.agents import RunState
from engine.core.journal import Event, canonical
from engine.core.metacognition import (
    COOLDOWN_LOOPS,
    ENDED_KEPT,
    FEEDBACK_KEPT,
    FEEDBACK_LIMIT,
    REST_LOOPS,
    WINDOW,
    ActionSort,
    BackgroundJob,
    EndedJob,
    Feedback,
    JobOutcome,
    MemoryCounts,
    MetaTask,
    PastAction,
    Stuck,
    ToolStatistics,
)
from engine.core.reasons import Reason
from engine.core.recovery import ActiveAction
from engine.core.restored import RESTORED_KEPT, RestoredText
from engine.core.state import AgentState, count_id, folds
from engine.value import fields_of

LOOKED_AT = 20_000
"""Characters of an answer that are compared; of a longer one its beginning and its end."""
_PASSING = re.compile(
    r"\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?"
    r"|\b\d\d?:\d\d:\d\d(?:[.,]\d+)?\b"
    r"|\b\d+(?:[.,]\d+)?\s?(?:ns|us|µs|ms|s|secs?|seconds?|min|minutes?)\b"
    r"|\b0x[0-9a-fA-F]{4,}\b|\bpid[ =:]+\d+|/tmp/[\w.-]+",
    re.I,
)
"""Times, durations, addresses of memory, ids of processes, names of temporary files."""
_PLACE = re.compile(r"\blines? \d+|:\d+(?::\d+)?\b", re.I)
"""Where in a file something was found, which moves with each edit above it."""
_NAMED = re.compile(r"'[^'\n]*'|\"[^\"\n]*\"|`[^`\n]*`|“[^”\n]*”|(?:\.{0,2}/)?[\w.-]+(?:/[\w.-]+)+/?|\d+")
"""What an error is about: quoted words, paths, numbers."""
_MEASURED = frozenset({"duration_ms", "took_s", "duration_s", "tier"})


def digest(value: Any) -> str:
    """A short name for a value; equal values have the same."""
    return hashlib.sha256(canonical(value).encode("utf-8", "replace")).hexdigest()[:16]


def answer_digest(result: Mapping[str, Any], *, ok: bool) -> str:
    """A short name for what an answer says; the same for answers that differ in times and the like alone.

    Args:
        result: the answer.
        ok: whether it is one; of an error, the place in a file does not count either.
    """
    text = canonical({name: value for name, value in result.items() if name not in _MEASURED})
    if len(text) > LOOKED_AT:
        text = f"{text[: LOOKED_AT // 2]}{len(text)}{text[-LOOKED_AT // 2 :]}"
    text = _PASSING.sub("~", text)
    return digest(text if ok else _PLACE.sub("~", text))


def error_words(code: str, result: Mapping[str, Any]) -> str:
    """What sort of error it was: its code and its last line, without what it is about.

    Args:
        code: the error's code.
        result: the failed call's answer.
    """
    lines = (_last_line(result.get(name)) for name in ("stderr", "stdout", "message"))
    message = _NAMED.sub("#", _PLACE.sub("#", _PASSING.sub("~", next(filter(None, lines), ""))))
    return f"{code} {' '.join(message.split())}"[:200].lower().strip()


def _last_line(value: object) -> str:
    return value.rstrip().rpartition("\n")[2].strip() if isinstance(value, str) else ""


POLLS = frozenset({"wait_job", "jobs", "job_output"})
"""Commands that look after a background job."""
TELLING = ("path", "source", "command", "job", "query", "content")
"""Arguments that say most about a call, the best first."""
_RUNS = frozenset({"run", "start", "stop_job"})
"""Commands of the sandbox tool that may change files and are not edits of one."""
_PAUSE = re.compile(r"^(?:timeout \S+ )?(?:sleep|usleep|wait)\b|\btime\.sleep\(|\bStart-Sleep\b")
_OUTSIDE = re.compile(
    r"^(?:gh|glab|kubectl|docker|podman|aws|gcloud|az|ssh|squeue|sacct|qstat|systemctl|pgrep|ps|ss|netstat|lsof"
    r"|ping|dig|nslookup|host)\b|^git (?:fetch|ls-remote|pull)\b"
)
"""Programs that look at something which changes without the agent."""
_ADDRESS = re.compile(r"\bhttps?://([\w.-]+|\[::1\])|^(?:nc|telnet)(?: -\S+)* ([\w.-]+)")
_HERE = re.compile(r"localhost|127\.\d+\.\d+\.\d+|0\.0\.0\.0|\[::1\]")
_LOOKS = re.compile(
    r"^(?:cat|head|tail|ls|stat|test|grep|egrep|rg|wc|find|file|du|df|diff|cmp|tree|which|curl|wget|nc|telnet"
    r"|date|id|env|pwd)\b|^git (?:status|log|diff|show|branch|ls-files|grep|blame)\b"
)
"""Programs that change nothing here."""


def past_action(
    state: AgentState, action: ActiveAction, payload: ev.ActionFinished, event: Event
) -> PastAction:
    """What the window remembers of an action.

    Args:
        state: the agent's state, with the action still in it.
        action: the action.
        payload: how it ended.
        event: the event that says so.
    """
    code = payload.code.value if payload.code else ""
    telling = next((action.args[name] for name in TELLING if name in action.args), "")
    first = str(telling or next((action.args[name] for name in sorted(action.args)), ""))[:200]
    line = _command_line(action.args)
    place = state.find_step(action.step)
    plan, step = place if place is not None else (None, None)
    return PastAction(
        call=f"{action.tool}.{action.command}",
        digest=digest([state.sandbox.cwd, action.args]),
        subject=f"{action.command} {' '.join(first.split())}"[:80].strip(),
        ok=not code,
        code=code,
        duration_ms=payload.duration_ms,
        polls=action.command in POLLS,
        sort=_sort(action, line),
        answer=answer_digest({"blob": payload.blob} if payload.blob else payload.result, ok=not code),
        error=error_words(code, payload.result) if code else "",
        may_change=_may_change(state, line),
        gap_ms=_between(state.meta.acted_at, action.at),
        decided=f"{plan.id}.{plan.revision}" if plan is not None else "",
        again=step is not None and step.attempts > 1,
        phase=state.meta.phase,
    )


def _command_line(args: Mapping[str, Any]) -> str:
    """The program that a call runs, with its arguments; empty where it runs none."""
    command = args.get("command")
    return " ".join(map(str, command)) if isinstance(command, list) else str(command or "")


def _sort(action: ActiveAction, line: str) -> ActionSort:
    if action.command == "wait_job" or (action.command == "run" and _PAUSE.search(line)):
        return ActionSort.PAUSE
    if action.command in _RUNS:
        looks = _LOOKS.search(line) or _OUTSIDE.search(line) or _ADDRESS.search(line)
        return ActionSort.LOOK if looks else ActionSort.RUN
    return ActionSort.EDIT if action.mutates else ActionSort.LOOK


def _may_change(state: AgentState, line: str) -> bool | None:
    """Whether something that a call looks at can change without the agent; None where that is not known."""
    jobs = state.running_jobs
    address = _ADDRESS.search(line)
    elsewhere = address is not None and not _HERE.fullmatch(address[1] or address[2])
    if jobs or elsewhere or _OUTSIDE.search(line):
        return True
    # What a job was to bring does not come any more once all of them have ended.
    return False if state.jobs else None


def _between(ended: str, begun: str) -> int:
    """Milliseconds from an action's end to the next one's start; 0 where that is not known."""
    try:
        passed = datetime.fromisoformat(begun) - datetime.fromisoformat(ended)
    except ValueError:
        return 0
    return max(0, round(passed.total_seconds() * 1000))


REMEMBERS = frozenset({"store", "store_memory", "keep", "record_artifact", "think", "record_thought"})
"""Commands of the memory tool by which something new is remembered."""
_NAMES = {MetaTask.REFLECT: "reflection", MetaTask.CONSOLIDATE: "consolidation"}

# ------------------------------------------------------------------ the agent's own turns


def acted(state: AgentState, action: ActiveAction, payload: ActionFinished, event: Event) -> None:
    """An action of the agent's own has ended."""
    meta, past = state.meta, past_action(state, action, payload, event)
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


def asked(state: AgentState, event: Event, *, plans: bool) -> None:
    """The thinker is asked: all that waits to be told is in this prompt, but for what waits for a plan."""
    meta = state.meta
    if (meta.feedback or meta.messages) and state.config.replans:
        waits = tuple(feedback for feedback in meta.feedback if feedback.when == "plan" and not plans)
        again = tuple(
            feedback for feedback in meta.messages if feedback.asked and (plans or feedback.when != "plan")
        )
        taken = (*again, *(feedback for feedback in meta.feedback if feedback not in waits))
        fresh = tuple(replace(feedback, asked=event.ref) for feedback in taken)
        before = tuple(feedback for feedback in meta.told if feedback not in again)
        state.meta = replace(meta, feedback=waits, told=(*before, *fresh)[-FEEDBACK_KEPT:])


@folds(ev.PlanGenerated)
def _generated(state: AgentState, payload: ev.PlanGenerated, event: Event) -> None:
    answered(state, event)


def answered(state: AgentState, event: Event) -> None:
    """The thinker has answered a prompt: what that one had is taken up."""
    if any(entry.asked in event.causes and not entry.led for entry in state.meta.told):
        state.meta = replace(
            state.meta,
            told=tuple(
                replace(entry, led=event.ref) if entry.asked in event.causes and not entry.led else entry
                for entry in state.meta.told
            ),
        )


def goal_over(state: AgentState, goal: str) -> None:
    """A goal has ended: nothing of it is planned anew any more."""
    if state.meta.replan_goal == goal:
        state.meta = replace(state.meta, replan="", replan_goal="")


# ------------------------------------------------------------------ its own events


@folds(ev.MetacognitionBegun)
def _begun(state: AgentState, payload: ev.MetacognitionBegun, event: Event) -> None:
    meta, settings = state.meta, payload.settings
    if not meta.on:
        meta = replace(
            meta,
            reflection_threshold=settings.reflection.base,
            consolidation_threshold=settings.consolidation.base,
        )
    state.meta = replace(
        meta,
        on=settings.enabled,
        memory=payload.memory,
        settings=settings,
        reflection_threshold=settings.reflection.clamp(meta.reflection_threshold),
        consolidation_threshold=settings.consolidation.clamp(meta.consolidation_threshold),
    )


@folds(ev.BackgroundStarted)
def _started(state: AgentState, payload: ev.BackgroundStarted, event: Event) -> None:
    meta = state.meta
    count_id(state, payload.job)
    task, reflects, merges = (
        payload.task,
        payload.task is MetaTask.REFLECT,
        payload.task is MetaTask.CONSOLIDATE,
    )
    counter = state.successes_since_reflection if reflects else 0.0
    counter = state.successes_since_consolidation if merges else counter
    failures = meta.failures if reflects else 0
    about = (payload.goal, counter, failures, payload.about, event.at, event.ref)
    job = BackgroundJob(payload.job, task, payload.why, meta.loop, *about)
    state.meta = replace(
        meta,
        running=(*meta.running, job),
        last={**meta.last, payload.task: meta.loop},
        forced=tuple(task for task in meta.forced if task is not payload.task),
        failures=0 if reflects else meta.failures,
        overdue=meta.overdue and not merges,
        unlinked=0 if payload.task is MetaTask.LINK else meta.unlinked,
    )


@folds(ev.BackgroundEnded)
def _ended(state: AgentState, payload: ev.BackgroundEnded, event: Event) -> None:
    meta = state.meta
    job = meta.job(payload.job)
    if job is None:
        return
    over = EndedJob(job, payload.outcome, payload.message, event.at, event.ref)
    state.meta = replace(
        meta,
        running=tuple(running for running in meta.running if running is not job),
        ended=(*meta.ended, over)[-ENDED_KEPT:],
    )
    if payload.outcome is JobOutcome.DONE:
        _succeeded(state, job, payload, event)
        return
    # What it was begun for still waits: counters go back on success only.
    meta = state.meta
    resting = {**meta.resting, job.task: meta.loop + REST_LOOPS}
    state.meta = replace(meta, resting=resting, failures=meta.failures + job.failures)


def _succeeded(state: AgentState, job: BackgroundJob, payload: ev.BackgroundEnded, event: Event) -> None:
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
            counts = payload.counts
            changes["counts"] = MemoryCounts(
                counts.get("episodic", 0), counts.get("total", 0), counts.get("unconsolidated", 0), event.ref
            )
    reads = state.config.replans and not state.reasons
    if payload.feedback and reads:
        source = _NAMES.get(job.task, job.task.value)
        changes["feedback"] = _with(meta.feedback, payload.feedback, source, event, computed=payload.computed)
    if payload.replan and reads and state.goal is not None and not state.goal.status.terminal:
        changes |= {"replan": event.ref, "replan_goal": state.goal.id}
    if payload.replan:
        changes["cooldown_until"] = meta.loop + COOLDOWN_LOOPS
    state.meta = replace(meta, **changes)


def _with(
    waiting: tuple[Feedback, ...], text: str, source: str, event: Event, **more: Any
) -> tuple[Feedback, ...]:
    """What waits, with one more; where too much waits the oldest goes, the operator's words last of all."""
    kept = [*waiting, Feedback(text[:FEEDBACK_LIMIT], source, event.ref, **more)]
    while len(kept) > FEEDBACK_KEPT:
        kept.remove(next((feedback for feedback in kept if feedback.source != "operator"), kept[0]))
    return tuple(kept)


@folds(ev.ThresholdsAdapted)
def _adapted(state: AgentState, payload: ev.ThresholdsAdapted, event: Event) -> None:
    state.meta = replace(
        state.meta,
        reflection_threshold=payload.reflection,
        consolidation_threshold=payload.consolidation,
        overdue=payload.overdue,
        counts=None,
    )


@folds(ev.ThresholdsSet)
def _set(state: AgentState, payload: ev.ThresholdsSet, event: Event) -> None:
    meta = state.meta
    state.meta = replace(
        meta,
        reflection_threshold=payload.reflection or meta.reflection_threshold,
        consolidation_threshold=payload.consolidation or meta.consolidation_threshold,
    )


@folds(ev.MetaForced)
def _forced(state: AgentState, payload: ev.MetaForced, event: Event) -> None:
    if payload.task not in state.meta.forced:
        state.meta = replace(state.meta, forced=(*state.meta.forced, payload.task))


@folds(ev.MetaVetoed)
def _vetoed(state: AgentState, payload: ev.MetaVetoed, event: Event) -> None:
    meta = state.meta
    others = tuple(task for task in meta.vetoed if task is not payload.task)
    forced = tuple(task for task in meta.forced if task is not payload.task)
    state.meta = (
        replace(meta, vetoed=others)
        if payload.lifted
        else replace(meta, vetoed=(*others, payload.task), forced=forced)
    )


@folds(ev.GuidanceGiven)
def _guided(state: AgentState, payload: ev.GuidanceGiven, event: Event) -> None:
    meta = state.meta
    if state.reasons:  # it is a belief at once
        heard = Feedback(payload.text[:FEEDBACK_LIMIT], "operator", event.ref, asked=event.ref, led=event.ref)
        state.meta = replace(meta, told=(*meta.told, heard)[-FEEDBACK_KEPT:])
    else:
        waiting = _with(meta.feedback, payload.text, "operator", event, when=payload.when)
        state.meta = replace(meta, feedback=waiting)
    turned_to(state)


@folds(ev.ContextRestored)
def _restored(state: AgentState, payload: ev.ContextRestored, event: Event) -> None:
    _released(state, payload, event)
    fresh = RestoredText(**fields_of(payload, "what", "about", "text", "tokens"), event=event.ref)
    state.restored = (*state.restored, fresh)[-RESTORED_KEPT:]


@folds(ev.ContextReleased)
def _released(state: AgentState, payload: ev.ContextReleased | ev.ContextRestored, event: Event) -> None:
    state.restored = tuple(each for each in state.restored if each.what != payload.what)


@folds(ev.StuckNoticed)
def _stuck(state: AgentState, payload: ev.StuckNoticed, event: Event) -> None:
    signs = payload.signs
    state.meta = replace(state.meta, stuck=Stuck(signs, event.ref, event.at) if signs else None)
    if signs and payload.holds and state.run is RunState.RUNNING:
        state.run, state.run_event, state.grants = RunState.PAUSED, event.ref, 0
        state.run_reason = Reason("run.stuck", signs=tuple(sign.text for sign in signs))


@folds(ev.ReplanAsked)
def _replan(state: AgentState, payload: ev.ReplanAsked, event: Event) -> None:
    state.meta = replace(state.meta, replan="", replan_goal="")
    state.replans[payload.goal] = event.ref
