"""Two points of an agent's time beside each other: plan, beliefs, goals, counters, memory and files.

An agent's state at an event, as text and as JSON.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from app.commands.command import Answer, CommandHost, GrammarError, Values, chosen_agent
from app.projection.event_lines import call_text, step_text
from engine.api.workspace_engine import WorkspaceEngine
from engine.core import events as ev
from engine.core import memory_events
from engine.core.fold import dump_state
from engine.core.journal import MEMORY
from engine.core.plan import PlanStep
from engine.core.state import AgentState
from engine.core.streams import StreamHistory
from engine.core.text import clean_line
from engine.sandbox.snapshots.entry import Changes
from engine.value import asdict, dataclass

NOW = "now"
HERE = "here"
VALUE_LIMIT = 200
"""Characters of a value that a comparison shows."""
MEMORIES = 200
"""Writes to memory that are listed."""
_COUNTERS = ("actions", "failed_actions", "operator_actions", "model_calls", "tokens", "cost_usd", "tick")
_MEMORIES: Mapping[str, str] = {
    memory_events.MemoryStored.kind: "+",
    memory_events.MemoryChanged.kind: "~",
    memory_events.MemoryPromoted.kind: "~",
    memory_events.MemoriesConsolidated.kind: "~",
    memory_events.MemoriesForgotten.kind: "-",
}


Line = tuple[str, str]
"""Sign and words: `+` there is more, `-` it goes, `~` it is another, `!` it cannot be undone."""


class PastError(Exception):
    """There is no such point in time; the message says what to type."""


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a comparison or a preview."""

    title: str
    lines: tuple[Line, ...]
    note: str = ""


def parts_text(title: str, parts: Iterable[Part], none: str = "nothing") -> str:
    """Parts as lines."""
    lines = [title]
    for part in parts:
        lines += ["", f"{part.title}{f' ({part.note})' if part.note else ''}"]
        lines += [f"  {sign} {words}" for sign, words in part.lines] or [f"  {none}"]
    return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class Comparison:
    """What is different at the later of two points."""

    title: str
    """The two points."""
    parts: tuple[Part, ...]


def read_ref(text: str, agent: str, at: int | None = None) -> int | None:
    """The version that a word names, None for now.

    Args:
        text: `now`, `here`, a version such as `120`, or a reference such as `pilot-1:120`.
        agent: whose stream it is.
        at: the version that is looked at; None for now.

    Raises:
        PastError: it names nothing of this agent's.
    """
    if text == NOW:
        return None
    if text == HERE:
        return at
    stream, colon, number = text.rpartition(":")
    if colon and stream != agent:
        raise PastError(f"{text[:60]} is no event of {agent}; its events are {agent}:1, {agent}:2 …")
    if not (number.isascii() and number.isdigit()) or len(number) > 15 or int(number) < 1:
        raise PastError(f"'{text[:60]}' is no point in time: now, here, or an event such as {agent}:120")
    return int(number)


def refs_of(text: str, agent: str, at: int | None = None) -> tuple[int | None, int | None]:
    """The two versions that words name; one word is compared with now, none is here and now.

    Raises:
        PastError: a word names nothing, or both are now.
    """
    words = text.split() or [HERE]
    words = [*words, NOW] if len(words) == 1 else words
    first, second = (read_ref(word, agent, at) for word in words)
    if first is None and second is None:
        raise PastError("both points are now: name an event, such as compare 120, or go back with [ first")
    return first, second


async def at_ref(past: StreamHistory, version: int | None) -> AgentState:
    """The state at a version, None for the newest durable one.

    Raises:
        PastError: the stream has no such version.
    """
    head = await past.head()
    if version is not None and version > head:
        raise PastError(f"{past.stream}:{version} has not happened yet; the newest event is {head}")
    return await past.state(head if version is None else version)


async def compare(
    engine: WorkspaceEngine, past: StreamHistory, item: int | None, other: int | None
) -> Comparison:
    """Two points beside each other, the earlier one first.

    Raises:
        PastError: there is no such version.
        JournalError: the journal cannot be read.
    """
    states = [await at_ref(past, item), await at_ref(past, other)]
    before, after = sorted(states, key=lambda state: state.version)
    memory = await _memory(engine, past, before, after)
    return _compared(before, after, memory, await _files(engine, past, before, after))


def _compared(before: AgentState, after: AgentState, *more: Part) -> Comparison:
    """What the two states say of themselves, with more parts behind it."""
    points = (f"{e.agent_id}:{e.version} {e.at[11:19]} tick {e.tick}" for e in (before, after))
    counters = Part("Counters", tuple(_differences(_counts(before), _counts(after))))
    return Comparison(" → ".join(points), (*state_changes(before, after), counters, *more))


async def compare_words(
    engine: WorkspaceEngine, past: StreamHistory, text: str, at: int | None = None
) -> Comparison:
    """Two points of an agent's time, or two agents as they are now, as words of the command bar name them.

    Args:
        engine: the workspace.
        past: of the agent that is meant.
        text: up to two events, or one or two agents' ids.
        at: the version that is looked at; None for now.

    Raises:
        PastError: a word names nothing.
        JournalError: the journal cannot be read.
    """
    words = text.split()
    if words and all(word in engine.agents for word in words):
        return await compare_agents(engine, *(past.stream, *words)[-2:])
    return await compare(engine, past, *refs_of(text, past.stream, at))


async def compare_agents(engine: WorkspaceEngine, item: str, other: str) -> Comparison:
    """Two agents as they are now: what they want, plan and believe, their ends, counts, cost and files.

    Raises:
        PastError: they are one.
        JournalError: the journal cannot be read.
    """
    if item == other:
        raise PastError(f"name another agent than {item}")
    before, after = await engine.view(item), await engine.view(other)
    files = await engine.time_travel.files_between(item, other)
    counted = [{"writes": str(await _writes(engine, agent))} for agent in (item, other)]
    memory = Part("Memory", tuple(_differences(*counted)))
    if isinstance(files, str):
        return _compared(before, after, memory, Part("Files", (), clean_line(files)))
    note = f"of {item} and of {other} as they are now"
    return _compared(before, after, memory, Part("Files", tuple(_changed(files)), note))


async def _writes(engine: WorkspaceEngine, agent: str) -> int:
    """How often memory was written to because of an agent."""
    events = engine.events(0, stream=MEMORY, follow=False)
    return len([1 async for event in events if any(cause.startswith(f"{agent}:") for cause in event.causes)])


def state_changes(before: AgentState, after: AgentState) -> tuple[Part, ...]:
    """What differs between two states in what an agent wants, plans and believes."""
    return (
        Part("Goals", tuple(_differences(_goals(before), _goals(after)))),
        Part("Plan", tuple(_plans(before, after))),
        Part("Beliefs", tuple(_differences(_beliefs(before), _beliefs(after)))),
    )


def _differences(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[Line]:
    """What is gone, what is another, and what is new, each in its order."""
    for key in {**before, **after}:
        was, now = before.get(key), after.get(key)
        if was is None or now is None:
            yield "+" if was is None else "-", f"{_words(key)}: {_words(now or was or '')}"
        elif was != now:
            yield "~", f"{_words(key)}: {_words(was)} → {_words(now)}"


def _words(text: str) -> str:
    return clean_line(text, limit=VALUE_LIMIT)


def _goals(state: AgentState) -> dict[str, str]:
    goals = state.goals.values()
    return {goal.id: f"{goal.text} [{goal.status.value}, priority {goal.priority}]" for goal in goals}


def _plans(before: AgentState, after: AgentState) -> Iterator[Line]:
    for goal in dict.fromkeys((*before.plans, *after.plans)):
        was, now = before.plans.get(goal), after.plans.get(goal)
        if was == now:
            continue
        old, new = was.steps if was else (), now.steps if now else ()
        revisions = f"revision {was.revision if was else 0} → {now.revision if now else 0}"
        if was is None or now is None or was.revision != now.revision:
            yield "~" if was and now else "+" if now else "-", f"plan of {goal}: {revisions}"
        yield from _differences(_steps(old), _steps(new))
        if _reordered([step.id for step in old], [step.id for step in new]):
            yield "~", f"order of {goal}'s steps: {_words(' '.join(step.id for step in new))}"


def _reordered(old: Sequence[str], new: Sequence[str]) -> bool:
    """Whether what both have stands in another order."""
    return [each for each in old if each in new] != [each for each in new if each in old]


def _steps(steps: Iterable[PlanStep]) -> dict[str, str]:
    return {step.id: f"{step_text(step)} [{step.status.value}]" for step in steps}


def _beliefs(state: AgentState) -> dict[str, str]:
    keyed = {
        key: f"{belief.value} ({belief.confidence:.0%}, {belief.source.value})"
        for key, belief in state.beliefs.items()
    }
    return keyed | {key: f"from {', '.join(belief.sources)}" for key, belief in state.held_beliefs.items()}


def _counts(state: AgentState) -> dict[str, str]:
    counts = {name: str(getattr(state, name)) for name in _COUNTERS}
    return {**counts, "failures": str(len(state.failures)), "mode": state.mode.value}


async def _memory(
    engine: WorkspaceEngine, past: StreamHistory, before: AgentState, after: AgentState
) -> Part:
    """What was remembered, changed and forgotten between two events, by any agent of the workspace."""
    ends = await past.event(before.version), await past.event(after.version)
    first, last = (event.seq if event is not None else 0 for event in ends)
    events = []
    async for event in engine.events(first, stream=MEMORY, follow=False):
        if event.seq > last:
            break
        if event.kind in _MEMORIES:
            events.append(event)
    listed = (_remembered(_MEMORIES[event.kind], ev.payload_of(event)) for event in events[:MEMORIES])
    more = f"and {len(events) - MEMORIES} more" if len(events) > MEMORIES else ""
    return Part("Memory written between", tuple(listed), more)


def _remembered(sign: str, payload: ev.Payload) -> Line:
    what, text = payload.kind, ""
    match payload:
        case memory_events.MemoryStored(memory=memory):
            what, text = memory.id, memory.content
        case memory_events.MemoryChanged(memory=what, changes=changes):
            text = ", ".join(changes)
        case memory_events.MemoryPromoted(memory=what, level=level):
            text = f"is {level.value} now"
        case memory_events.MemoriesConsolidated(memory=what, sources=sources):
            text = f"made of {', '.join(sources)}"
        case memory_events.MemoriesForgotten(memories=memories, expired=expired):
            what, text = _words(", ".join(memories)), "expired" if expired else "forgotten"
    return sign, f"{what}: {_words(text)}" if text else what


async def _files(engine: WorkspaceEngine, past: StreamHistory, before: AgentState, after: AgentState) -> Part:
    first, second = await past.saved(before), await past.saved(after)
    if first is None or second is None:
        return Part("Files", (), "no workspace snapshot was taken near these events")
    old, new = ev.payload_of(first), ev.payload_of(second)
    assert isinstance(old, ev.SnapshotTaken)
    assert isinstance(new, ev.SnapshotTaken)
    changes = await engine.time_travel.changed_files(old.snapshot, new.snapshot)
    if isinstance(changes, str):
        return Part("Files", (), clean_line(changes))
    more = f", and {changes.more} more" if changes.more else ""
    return Part("Files", tuple(_changed(changes)), f"as saved at {first.ref} and {second.ref}{more}")


def _changed(changes: Changes) -> Iterator[Line]:
    modes = [path for path in changes.mode_changed if path not in changes.changed]
    for sign, paths, text in (
        *(("+", changes.added, ""), ("-", changes.removed, "")),
        *(("~", changes.changed, ": other content"), ("~", modes, ": other permissions")),
    ):
        yield from ((sign, f"{_words(path)}{text}") for path in paths)


# ------------------------------------------------------------------ for the command bar


async def show_past(host: CommandHost, values: Values) -> Answer:
    """The state of the agent at an event."""
    try:
        return 0, *await state_at(host.engine.past(chosen_agent(host)), values["place"])
    except PastError as error:
        raise GrammarError(str(error)) from None


async def show_comparison(host: CommandHost, values: Values) -> Answer:
    """Two points of the agent's time, or two agents, beside each other."""
    try:
        past = host.engine.past(chosen_agent(host))
        comparison = await compare_words(host.engine, past, values["points"])
    except PastError as error:
        raise GrammarError(str(error)) from None
    return 0, asdict(comparison), parts_text(comparison.title, comparison.parts, "no difference")


ROW_LIMIT = 200


async def state_at(past: StreamHistory, ref: str) -> tuple[dict[str, Any], str]:
    """The state that a word names, as JSON and as text.

    Args:
        past: the agent's.
        ref: an event's version or reference, or `now`.

    Raises:
        PastError: there is no such event of this agent's.
        JournalError: the journal cannot be read.
    """
    state = await at_ref(past, read_ref(ref, past.stream))
    answer = {
        "at": f"{past.stream}:{state.version}",
        "time": state.at,
        "newest": await past.head(),
        "mode": state.mode.value,
        "point": state.pause_point.value,
        "state": json.loads(dump_state(state).partition("\n")[2]),
    }
    return answer, _text(state)


def _text(state: AgentState) -> str:
    goals = [f"{goal.id} {goal.status.value}: {goal.text}" for goal in state.goals.values()]
    plan = state.plan
    steps = [_step_line(step) for step in plan.steps] if plan is not None else []
    beliefs = [f"{key} = {belief.value}" for key, belief in state.beliefs.items()]
    beliefs += [held.text for held in state.held_beliefs.values()]
    unsolved = [failure for failure in state.failures if not failure.resolved]
    failures = [f"{each.kind.value} {each.subject}: {each.message}" for each in unsolved]
    lines = [
        f"{state.agent_id}:{state.version} {state.at} tick {state.tick} · {state.mode} ({state.pause_point})",
        f"{state.actions} actions, {state.failed_actions} failed, {state.operator_actions} the operator's, "
        f"{state.tokens} tokens, ${state.cost_usd:.2f}",
    ]
    title = f"Plan of {plan.goal}, revision {plan.revision}" if plan is not None else "Plan"
    parts = {"Goals": goals, title: steps, "Beliefs": beliefs, "Open failures": failures}
    for heading, rows in parts.items():
        lines += ["", heading, *(f"  {clean_line(row, limit=ROW_LIMIT)}" for row in rows or ["none"])]
    return "\n".join(lines)


def _step_line(step: PlanStep) -> str:
    words = call_text(step.command, step.args) if step.command else step.description or step.op.value
    return f"{step.id} {step.status.value}: {words}"
