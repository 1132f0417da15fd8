"""The view model of meta-cognition: pure functions of an agent's state and the time.

The context meter's view model: what the thinker was told last, and what it took.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import datetime
from math import ceil
from typing import Any

from app.projection.event_lines import short_duration
from engine.core.metacognition import BackgroundJob, EndedJob, MetaState, MetaTask
from engine.core.state import AgentState
from engine.core.thinking import ModelCalled
from engine.memory.metacognition.runner import SLOTS
from engine.memory.metacognition.stuck import signs_of
from widgets.base.line_pane import Notice
from widgets.dialogs.context_meter import CallLine, ContextBlock, ContextModel, GoalSpending
from widgets.dialogs.metacognition import BackgroundLine, Gauge, MetaModel, Standing
from widgets.panes.status_bar import count_text

_OF_THE_PROMPT = ("system", "messages", "tools")


def context(state: AgentState, call: ModelCalled | None = None, at: str = "") -> ContextModel:
    """What the model of an agent was told last.

    Args:
        state: the agent.
        call: its newest call of a model; None where that is not known, or there was none.
        at: when that ended, as the journal has it.
    """
    shares = call.shares if call is not None else state.context
    texts = list(_texts(call.request)) if call is not None else []
    # Names belong to blocks by their place; a prompt of another making keeps its names without words.
    texts = texts if len(texts) == len(shares) else [""] * len(shares)
    return ContextModel(
        agent=state.agent_id,
        model=call.model if call is not None else state.model,
        window=call.window if call is not None else state.context_window,
        blocks=tuple(
            ContextBlock(name, tokens, text) for (name, tokens), text in zip(shares, texts, strict=True)
        ),
        call=_call(call, at) if call is not None else None,
        goals=tuple(_spending(state)),
        total=_total(state),
        settings=_settings(call.request) if call is not None else "",
        answer=_answer(call.answer) if call is not None and call.answer else "",
        notice=None if shares else Notice(_nobody_asked(state)),
    )


def _nobody_asked(state: AgentState) -> str:
    if not state.reasons and state.config.thinker == "procedural":
        return (
            "No model thinks for this agent: it plans by the plan library, so there is no prompt. "
            "? says how to give new agents a model."
        )
    return "No model was asked yet. The prompt will appear here once one is: give a goal, and press space."


def _texts(request: dict[str, Any]) -> Iterator[str]:
    """The words of each block in the order in which its share was taken."""
    if tools := request.get("tools"):
        yield json.dumps(tools, ensure_ascii=False, indent=2)
    for block in request.get("system", []):
        yield _words(block)
    for message in request.get("messages", []):
        for block in message.get("content", []):
            yield _words(block)


def _words(block: dict[str, Any]) -> str:
    """What a content block says: its text as it is, anything else as JSON."""
    text = block.get("text") if block.get("type") == "text" else None
    return text if isinstance(text, str) else json.dumps(block, ensure_ascii=False, indent=2)


def _settings(request: dict[str, Any]) -> str:
    given = {name: value for name, value in request.items() if name not in _OF_THE_PROMPT}
    return json.dumps(given, ensure_ascii=False, indent=2)


def _answer(answer: dict[str, Any]) -> str:
    blocks: Iterable[dict[str, Any]] = answer.get("content", [])
    texts = [block.get("thinking") if block.get("type") == "thinking" else _words(block) for block in blocks]
    return "\n\n".join(text for text in texts if text)


def _call(call: ModelCalled, at: str) -> CallLine:
    usage = call.answer.get("usage", {}) if call.answer else {}
    counts = (
        ("in", usage.get("input_tokens", 0)),
        ("from the cache", usage.get("cache_read_input_tokens", 0)),
        ("into the cache", usage.get("cache_creation_input_tokens", 0)),
        ("out", usage.get("output_tokens", 0)),
    )
    tokens = " · ".join(f"{count:,} {name}" for name, count in counts if count)
    cost = "price unknown" if call.cost_usd is None else f"${call.cost_usd:.4f}"
    retried = f"{call.retries} retries" if call.retries else ""
    took = (tokens and f"tokens {tokens}", cost, f"{call.duration_ms / 1000:.1f} s", retried)
    partial = "cut off: only part of the answer came" if call.partial and not call.error else call.error
    what = (call.purpose, call.goal and f"for {call.goal}", at[11:19])
    return CallLine(" · ".join(filter(None, what)), " · ".join(filter(None, took)), partial)


def _spending(state: AgentState) -> Iterator[GoalSpending]:
    for goal, spent in state.spent.items():
        known = state.goals.get(goal)
        name = f"{goal} {known.text}" if known is not None else goal
        yield GoalSpending(name, spent.calls, spent.tokens, spent.usd)


def _total(state: AgentState) -> str:
    if not state.model_calls:
        return ""
    unknown = f" and {state.unpriced_calls} calls without a known price" if state.unpriced_calls else ""
    return (
        f"in all {state.model_calls} calls, {count_text(state.tokens)} tokens, ${state.cost_usd:.3f}{unknown}"
    )


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


def metacognition(state: AgentState, now: float) -> MetaModel:
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
        gauges=tuple(_gauge(state, task) for task in dict.fromkeys((*ADJUSTABLE, *MetaTask))),
        running=tuple(_running(job, elapsed_text(job.at, now)) for job in own.running),
        limit=SLOTS,
        ended=tuple(_ended(job, now) for job in reversed(own.ended[-ENDED_SHOWN:])),
        facts=tuple(_facts(own)),
        signals=tuple(sign.text for sign in signs_of(own)),
        feedback=tuple(job.line for job in own.feedback),
    )


def _gauge(state: AgentState, task: MetaTask) -> Gauge:
    own = state.meta
    value, threshold, unit = _counted(state, task)
    standing = _standing(own, task, value, threshold)
    last = next((ended for ended in reversed(own.ended) if ended.job.task is task), None)
    outcome = f"{last.outcome.value.replace('_', ' ')}: {last.message}" if last is not None else ""
    shown = min(value, threshold) if unit == LOOPS else value
    when = _when(state, task, standing, threshold - value, unit)
    return Gauge(
        *(task.value, NAMES[task], shown, threshold, unit),
        standing,
        when,
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
    return own.loop - own.last.get(task, 0), getattr(settings, f"{task.value}_every"), LOOPS


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
    fixed = {"runs": "runs now", "off": "needs memory", "vetoed": "vetoed by you"}
    if standing in fixed:
        return fixed[standing]
    if standing == "due":
        return "due now" if state.action is None else "after this action"
    if standing == "rests":
        until = max(own.resting.get(task, 0), own.cooldown_until if task is MetaTask.REFLECT else 0)
        return f"rests {_count(until - own.loop, LOOPS)}"
    if task is MetaTask.LINK and not own.unlinked:
        return "once something is new"
    return f"in {_count(ceil(left), unit)}"


def _count(number: int, unit: str) -> str:
    """A number of things: `1 loop`, `3 successes`."""
    return f"{number} {unit if number != 1 else {SUCCESSES: 'success', LOOPS: 'loop'}[unit]}"


def _running(job: BackgroundJob, since: str) -> BackgroundLine:
    about = f"{NAMES[job.task]} {job.kind}".rstrip()
    return BackgroundLine(job.id, job.task.value, job.why, since, name=about)


def _ended(ended: EndedJob, now: float) -> BackgroundLine:
    line = _running(ended.job, f"{elapsed_text(ended.at, now)} ago")
    return replace(line, outcome=ended.outcome.value, message=ended.message)


def elapsed_text(at: str, now: float) -> str:
    """How long something has lasted, in a word: `4s`, `3m`, `2h`; empty where nobody knows.

    Args:
        at: when it began, as the journal has it.
        now: seconds since 1970.
    """
    if not at:
        return ""
    return short_duration(max(0.0, now - datetime.fromisoformat(at).timestamp()))


def _facts(own: MetaState) -> Iterator[tuple[str, str]]:
    window = len(own.window)
    yield (
        "failures",
        f"{own.failed} of the last {window} actions ({own.failure_rate:.0%})" if window else "none yet",
    )
    yield "loop", f"{own.loop}, reflections so far {own.cycle}"
    busiest = sorted(own.tools.items(), key=lambda item: -(item[1].succeeded + item[1].failed))[:5]
    for call, use in busiest:
        calls = use.succeeded + use.failed
        mean_s = use.duration_ms / max(1, calls) / 1000
        yield "tool", f"{call}: {use.succeeded} of {calls} worked, {mean_s:.1f} s each"
    if own.told:
        yield "told last", own.told[-1].line
