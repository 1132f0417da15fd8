"""The view model of meta-cognition: pure functions of an agent's state and the time.

The context meter's view model: what the thinker was told last, and what it took.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from math import ceil
from typing import Any, Literal

from app.projection.event_lines import WHEN, line_of
from engine.agent.steering.left_out import left_out
from engine.core.events import payload_of
from engine.core.journal import Event
from engine.core.metacognition import BackgroundJob, EndedJob, Feedback, MetaState, MetaTask
from engine.core.plan import PlanGenerated
from engine.core.state import AgentState
from engine.core.text import clean_line, short_duration
from engine.core.thinking import ModelCalled
from engine.memory.metacognition.runner import SLOTS
from engine.memory.metacognition.stuck import signs_of
from widgets.base.facts import ListModel, Section
from widgets.base.line_pane import Notice
from widgets.base.rows import BLANK_MARK, Row, blank, heading
from widgets.base.text_layout import Piece, bar, plain
from widgets.panes.status_bar import count_text

_OF_THE_PROMPT = ("system", "messages", "tools")
BAR_CELLS = 16


def context(state: AgentState, call: ModelCalled | None = None, at: str = "") -> tuple[Section, ...]:
    """What the model of an agent was told last: shares, costs, the words of each block, and the answer.

    Args:
        state: the agent.
        call: its newest call of a model; None where that is not known, or there was none.
        at: when that ended, as the journal has it.
    """
    shares = call.shares if call is not None else state.context
    messages = [Section("Your messages", text)] if (text := _messages(state)) else []
    if not shares:
        return (Section(_nobody_asked(state)), *messages)
    window = call.window if call is not None else state.context_window
    sections = [Section("Shares of the prompt", _shares(shares, window))]
    if call is not None:
        sections.append(Section("Last call", _call(call, at)))
    if spending := _spending(state):
        sections.append(Section("All calls by goal", spending))
    if cuts := _cuts(state):
        sections.append(Section("Left out, and brought back", cuts))
    sections += messages
    if call is not None:
        # Names belong to blocks by their place; a prompt of another making keeps its names without words.
        texts = list(_texts(call.request))
        blocks = zip(shares, texts, strict=True) if len(texts) == len(shares) else ()
        sections += [Section(f"── {name} ──", text) for (name, _), text in blocks]
        sections.append(Section("── sent with it ──", _settings(call.request)))
        if call.answer:
            sections.append(Section("── the answer ──", _answer(call.answer)))
    return tuple(sections)


def _messages(state: AgentState) -> str:
    """What the operator said lately, each with what it led to."""
    given = [entry for entry in (*state.meta.told, *state.meta.feedback) if entry.source == "operator"]
    lines = (f"{clean_line(entry.text, limit=300)}\n  {taken_up(state, entry)}" for entry in given[-5:])
    return "\n".join(lines)


def _cuts(state: AgentState) -> str:
    """What the next prompt leaves out, and what the operator brought back."""
    if not state.config.replans:
        return ""
    dropped, back = list(left_out(state)), state.restored
    lines = [f"left out   {each.what:<6} {clean_line(each.about)}" for each in dropped]
    lines += [f"in again   {each.what:<6} {each.about}: about {each.tokens:,} tokens" for each in back]
    if any(each.what for each in dropped):
        lines.append("r brings the first back; restore_context WHAT another; unpin WHAT lets one go")
    return "\n".join(lines)


def taken_up(state: AgentState, message: Feedback, answer: Event | None = None) -> str:
    """What a message to the thinker led to.

    Args:
        state: the agent.
        message: what the operator said.
        answer: the event of `message.led`.
    """
    if not message.asked:
        when = f"; it waits: {WHEN[message.when]}" if message.when else ""
        return f"not taken up yet{when}"
    if state.reasons:
        return "taken up as a belief, and the event +operator_says(TEXT)[source(operator)]"
    if not message.led:
        return f"in the prompt of {message.asked}; not answered yet"
    payload = payload_of(answer) if answer is not None else None
    what = ""
    if isinstance(payload, PlanGenerated):
        what = f": a plan of {len(payload.steps)} step{'s' * (len(payload.steps) != 1)}"
    elif answer is not None and (line := line_of(answer)) is not None:
        what = f": {line.text}"
    return f"taken up by {message.led}{what}"


def _shares(shares: Sequence[tuple[str, int]], window: int) -> str:
    """A line for each block: its tokens, and its shares of the prompt and of the window."""
    total = sum(tokens for _, tokens in shares)
    of = f"of {count_text(window)}" if window else "window"
    lines = [f"{'block':<13}{'tokens':>8}{'prompt':>8}{of:>10}"]
    for name, tokens in (*shares, ("in all", total)):
        part, of_window = tokens / total if total else 0.0, f"{tokens / window:.1%}" if window else "?"
        drawn = plain(bar(part, BAR_CELLS))
        lines.append(f"{clean_line(name):<13}{tokens:>8,}{part:>8.0%}{of_window:>10}  {drawn}")
    return "\n".join(lines)


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


def _call(call: ModelCalled, at: str) -> str:
    """For what the last call was, what it took, and why there is no whole answer, a line each."""
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
    what = (call.model, call.purpose, call.goal and f"for {call.goal}", at[11:19])
    return "\n".join(filter(None, (" · ".join(filter(None, what)), " · ".join(filter(None, took)), partial)))


def _spending(state: AgentState) -> str:
    """What models took for each goal, and in all; empty before a first call."""
    lines = []
    for goal, spent in state.spent.items():
        known = state.goals.get(goal)
        name = f"{goal} {known.text}" if known is not None else goal or "for no goal"
        calls = f"{spent.calls} call{'s' * (spent.calls != 1)}"
        lines.append(f"{name}: {calls}, {count_text(spent.tokens)} tok, ${spent.usd:.3f}")
    if state.model_calls:
        unknown = f" and {state.unpriced_calls} calls without a known price" if state.unpriced_calls else ""
        took = f"{state.model_calls} calls, {count_text(state.tokens)} tokens, ${state.cost_usd:.3f}"
        lines.append(f"in all {took}{unknown}")
    return "\n".join(lines)


NAMES = {
    MetaTask.ADAPT: "thresholds",
    MetaTask.REFLECT: "reflection",
    MetaTask.CONSOLIDATE: "consolidation",
    MetaTask.OPTIMISE: "focus",
    MetaTask.PROMOTE: "promotion",
    MetaTask.MAINTAIN: "upkeep",
    MetaTask.LINK: "links",
}
Standing = Literal["waits", "due", "runs", "vetoed", "rests", "off"]
STANDINGS: dict[Standing, tuple[str, str]] = {
    "waits": (" ", "dim"),
    "due": ("!", "warning"),
    "runs": ("▶", "success"),
    "vetoed": ("–", "error"),
    "rests": ("‖", "warning"),
    "off": ("·", "dim"),
}
ENDED_SHOWN = 8
SUCCESSES, LOOPS = "successes", "loops"


def metacognition(state: AgentState, now: float) -> ListModel:
    """What is due, what runs and has run, and what may be wrong; keys are `task:reflect`, `job:q4`.

    Args:
        state: the agent.
        now: seconds since 1970, for ages.
    """
    own, title = state.meta, f"Meta-cognition of {state.agent_id}"
    if not own.on:
        why = "This agent does not look after its own thinking: its configuration says metacognition is off."
        return ListModel(title, notice=Notice(why))
    rows = [heading("gauges", "what is due, by what is counted")]
    for task in dict.fromkeys((MetaTask.REFLECT, MetaTask.CONSOLIDATE, *MetaTask)):
        rows += _gauge_rows(state, task)
    rows += [blank("b1"), heading("running", f"in the background {len(own.running)}/{SLOTS}")]
    rows += [_job_row(job, elapsed_text(job.at, now)) for job in own.running]
    rows += [] if own.running else [_text_row("nothing", "nothing runs", "dim")]
    ended = list(reversed(own.ended[-ENDED_SHOWN:]))
    rows += [blank("b2"), heading("ended", "ended lately")] if ended else []
    rows += [_job_row(each.job, f"{elapsed_text(each.at, now)} ago", each) for each in ended]
    for title_, texts, style in (
        ("may be stuck", [sign.text for sign in signs_of(own)], "warning"),
        ("waits for the next prompt", [job.line for job in own.feedback], "text"),
    ):
        if texts:
            rows += [blank(f"blank:{title_}"), heading(title_, title_)]
            rows += [_text_row(f"{title_}:{at}", text, style) for at, text in enumerate(texts)]
    return ListModel(title, rows)


def _text_row(key: str, text: str, style: str) -> Row:
    return Row(key, (Piece(clean_line(text), style),), selectable=False, indent=2, most=4)


def _gauge_rows(state: AgentState, task: MetaTask) -> list[Row]:
    """A task against what makes it due, and below it why it fired last and its result."""
    own = state.meta
    value, threshold, unit = _counted(state, task)
    standing = _standing(own, task, value, threshold)
    glyph, style = STANDINGS[standing]
    shown = min(value, threshold) if unit == LOOPS else value
    due = _when(state, task, standing, threshold - value, unit)
    part, count = shown / threshold if threshold else 0.0, f"{shown:g}/{threshold:g}"
    pieces = (
        Piece(f"{NAMES[task]:<14} ", "dim" if standing == "off" else "strong"),
        *bar(part, BAR_CELLS, style="warning" if part >= 1 else "accent"),
        Piece(f"{count:>8} "),
        Piece(unit, "dim"),
    )
    copy = f"{NAMES[task]} {count} {unit}, {due}"
    rows = [Row(f"task:{task}", pieces, tail=(Piece(due, style),), mark=Piece(glyph, style), copy=copy)]
    last = next((ended for ended in reversed(own.ended) if ended.job.task is task), None)
    if last is not None:
        result = f"{last.outcome.value.replace('_', ' ')}: {last.message}".removesuffix(": ")
        text = " → ".join(filter(None, (last.job.why, result)))
        rows.append(_text_row(f"last:{task}", f"  last: {text}", "dim"))
    return rows


def _job_row(job: BackgroundJob, age: str, ended: EndedJob | None = None) -> Row:
    result, message = (ended.outcome, ended.message) if ended is not None else ("", "")
    style = {"": "success", "done": "dim"}.get(result, "error")
    pieces = (
        Piece(f"{job.id} ", "dim"),
        Piece(f"{NAMES[job.task]} {clean_line(job.kind)}".rstrip() + " ", "strong"),
        Piece(f"{result} ".replace("_", " ") if result else "", style),
        Piece(" → ".join(clean_line(part) for part in (job.why, message) if part)),
    )
    mark = BLANK_MARK if ended else Piece("▶", "success")
    return Row(f"job:{job.id}", pieces, tail=(Piece(age, "dim"),), mark=mark, indent=4, most=3)


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


def elapsed_text(at: str, now: float) -> str:
    """How long something has lasted, in a word: `4s`, `3m`, `2h`; empty where nobody knows.

    Args:
        at: when it began, as the journal has it.
        now: seconds since 1970.
    """
    if not at:
        return ""
    return short_duration(max(0.0, now - datetime.fromisoformat(at).timestamp()))
