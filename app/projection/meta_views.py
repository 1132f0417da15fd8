"""The view model of meta-cognition: pure functions of an agent's state and the time."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from math import ceil

from engine.domain.metacognition import BackgroundJob, EndedJob, MetaState, MetaTask
from engine.domain.state import AgentState
from engine.metacognition.runner import SLOTS
from engine.metacognition.stuck import signs_of
from widgets.dialogs.metacognition import BackgroundLine, Gauge, MetaModel, Standing
from widgets.line_pane import Notice

NAMES = {
    MetaTask.ADAPT: "thresholds",
    MetaTask.REFLECT: "reflection",
    MetaTask.CONSOLIDATE: "consolidation",
    MetaTask.OPTIMISE: "focus",
    MetaTask.PROMOTE: "promotion",
    MetaTask.MAINTAIN: "upkeep",
    MetaTask.LINK: "links",
}
ADJUSTABLE = (MetaTask.REFLECT, MetaTask.CONSOLIDATE)
"""Tasks whose threshold the operator can set."""
ENDED_SHOWN = 8
SUCCESSES, LOOPS = "successes", "loops"


def meta(state: AgentState, now: float) -> MetaModel:
    """What the gauges show.

    Args:
        state: the agent.
        now: seconds since 1970, for ages.
    """
    own = state.meta
    if not own.on:
        why = "This agent does not look after its own thinking: its configuration says metacognition is off."
        return MetaModel(state.agent_id, notice=Notice(why))
    return MetaModel(
        agent=state.agent_id,
        gauges=tuple(_gauge(state, task) for task in (*ADJUSTABLE, *_others())),
        running=tuple(_running(job, now) for job in own.running),
        limit=SLOTS,
        ended=tuple(_ended(one, now) for one in reversed(own.ended[-ENDED_SHOWN:])),
        facts=tuple(_facts(own)),
        signals=tuple(sign.text for sign in signs_of(own)),
        feedback=tuple(one.line for one in own.feedback),
    )


def _others() -> Iterator[MetaTask]:
    return (task for task in MetaTask if task not in ADJUSTABLE)


def _gauge(state: AgentState, task: MetaTask) -> Gauge:
    own = state.meta
    value, threshold, unit = _counted(state, task)
    standing = _standing(own, task, value, threshold)
    last = next((one for one in reversed(own.ended) if one.job.task is task), None)
    outcome = f"{last.outcome.value.replace('_', ' ')}: {last.message}" if last is not None else ""
    return Gauge(
        task.value,
        NAMES[task],
        min(value, threshold) if unit == LOOPS else value,
        threshold,
        unit,
        standing,
        _when(state, task, standing, threshold - value, unit),
        why=last.job.why if last is not None else "",
        last=outcome.removesuffix(": "),
        adjustable=task in ADJUSTABLE,
    )


def _counted(state: AgentState, task: MetaTask) -> tuple[float, int, str]:
    """How far the task's counter is, at which it is due, and what is counted."""
    own, settings = state.meta, state.meta.settings
    match task:
        case MetaTask.REFLECT:
            return state.successes_since_reflection, own.reflection_threshold, SUCCESSES
        case MetaTask.CONSOLIDATE:
            return state.successes_since_consolidation, own.consolidation_threshold, SUCCESSES
    every = {
        MetaTask.ADAPT: settings.adapt_every,
        MetaTask.OPTIMISE: settings.optimise_every,
        MetaTask.PROMOTE: settings.promote_every,
        MetaTask.MAINTAIN: settings.maintain_every,
        MetaTask.LINK: settings.link_every,
    }[task]
    return own.loop - own.last.get(task, 0), every, LOOPS


def _standing(own: MetaState, task: MetaTask, value: float, threshold: int) -> Standing:
    if own.doing(task) is not None:
        return "runs"
    if task.needs_memory and not own.memory:
        return "off"
    if task in own.vetoed:
        return "vetoed"
    if task in own.forced:
        return "due"
    if own.loop < own.resting.get(task, 0) or (task is MetaTask.REFLECT and own.loop < own.cooldown_until):
        return "rests"
    idle = task is MetaTask.LINK and not own.unlinked
    overdue = task is MetaTask.CONSOLIDATE and own.overdue
    return "due" if overdue or (value >= threshold and not idle) else "waits"


def _when(state: AgentState, task: MetaTask, standing: Standing, left: float, unit: str) -> str:
    """When the task is due next, in words."""
    own = state.meta
    match standing:
        case "runs":
            return "runs now"
        case "off":
            return "needs memory"
        case "vetoed":
            return "vetoed by you"
        case "due":
            return "due now" if state.action is None else "after this action"
        case "rests":
            until = max(own.resting.get(task, 0), own.cooldown_until if task is MetaTask.REFLECT else 0)
            return f"rests {_count(until - own.loop, LOOPS)}"
    if task is MetaTask.LINK and not own.unlinked:
        return "once something is new"
    return f"in {_count(ceil(left), unit)}"


def _count(number: int, unit: str) -> str:
    """A number of things: `1 loop`, `3 successes`."""
    return f"{number} {unit if number != 1 else {SUCCESSES: 'success', LOOPS: 'loop'}[unit]}"


def _running(job: BackgroundJob, now: float) -> BackgroundLine:
    about = f"{NAMES[job.task]} {job.kind}".rstrip()
    return BackgroundLine(job.id, job.task.value, job.why, passed(job.at, now), name=about)


def _ended(one: EndedJob, now: float) -> BackgroundLine:
    about = f"{NAMES[one.job.task]} {one.job.kind}".rstrip()
    return BackgroundLine(
        one.job.id,
        one.job.task.value,
        one.job.why,
        f"{passed(one.at, now)} ago",
        one.outcome.value,
        one.message,
        name=about,
    )


def passed(at: str, now: float) -> str:
    """How long something has lasted, in a word: `4s`, `3m`, `2h`; empty where nobody knows.

    Args:
        at: when it began, as the journal has it.
        now: seconds since 1970.
    """
    if not at:
        return ""
    seconds = max(0, int(now - datetime.fromisoformat(at).timestamp()))
    return (
        f"{seconds}s" if seconds < 60 else f"{seconds // 60}m" if seconds < 3_600 else f"{seconds // 3_600}h"
    )


def _facts(own: MetaState) -> Iterator[tuple[str, str]]:
    window = len(own.window)
    yield (
        "failures",
        f"{own.failed} of the last {window} actions ({own.failure_rate:.0%})" if window else "none yet",
    )
    yield "loop", f"{own.loop}, reflections so far {own.cycle}"
    busiest = sorted(own.tools.items(), key=lambda item: -(item[1].succeeded + item[1].failed))[:5]
    for call, one in busiest:
        calls = one.succeeded + one.failed
        yield (
            "tool",
            f"{call}: {one.succeeded} of {calls} worked, {one.duration_ms / max(1, calls) / 1000:.1f} s each",
        )
    if own.told:
        yield "told last", own.told[-1].line
