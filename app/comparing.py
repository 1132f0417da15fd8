"""Two points of an agent's time beside each other: plan, beliefs, goals, counters, memory and files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from app.lines import call_text
from engine.domain.plan import Op, PlanStep
from engine.domain.state import AgentState
from engine.domain.text import clean_line
from engine.engine import Engine
from engine.journal import events as ev
from engine.journal import memory_events
from engine.journal.past import Past
from engine.memory.projection import STREAM
from engine.snapshots import Changes

NOW = "now"
HERE = "here"
WORDS = 200
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


class PastError(Exception):
    """There is no such point in time; the message says what to type."""


@dataclass(frozen=True, slots=True)
class Point:
    """An event of an agent's stream."""

    ref: str
    at: str
    """Recorded clock, ISO 8601 UTC."""
    tick: int


@dataclass(frozen=True, slots=True)
class Change:
    """One thing that differs."""

    sign: str
    """`+` there is more, `-` it is gone, `~` it is another."""
    what: str
    text: str
    """How it was and how it is, in words."""

    @property
    def line(self) -> str:
        """The change on a line."""
        return f"{self.sign} {self.what}: {self.text}" if self.text else f"{self.sign} {self.what}"


@dataclass(frozen=True, slots=True)
class Comparison:
    """What is different at the later of two points."""

    one: Point
    other: Point
    goals: tuple[Change, ...] = ()
    plan: tuple[Change, ...] = ()
    beliefs: tuple[Change, ...] = ()
    counters: tuple[Change, ...] = ()
    memory: tuple[Change, ...] = ()
    """What was written to the workspace's memory between them, oldest first."""
    memory_more: int = 0
    """Further writes to memory."""
    files: tuple[Change, ...] = ()
    files_note: str = ""
    """Of which snapshots the files are, or why they cannot be compared."""

    @property
    def sections(self) -> tuple[tuple[str, tuple[Change, ...], str], ...]:
        """Title, changes and a note of each part."""
        more = f"and {self.memory_more} more" if self.memory_more else ""
        return (
            ("Goals", self.goals, ""),
            ("Plan", self.plan, ""),
            ("Beliefs", self.beliefs, ""),
            ("Counters", self.counters, ""),
            ("Memory written between", self.memory, more),
            ("Files", self.files, self.files_note),
        )

    @property
    def title(self) -> str:
        """The two points."""
        return f"{_point(self.one)} → {_point(self.other)}"

    def text(self) -> str:
        """The comparison as lines."""
        lines = [self.title]
        for title, changes, note in self.sections:
            lines += ["", f"{title}{f' ({note})' if note else ''}"]
            lines += [f"  {change.line}" for change in changes] or ["  no difference"]
        return "\n".join(lines)

    def as_json(self) -> dict[str, Any]:
        """The comparison as JSON."""
        return asdict(self)


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
    one, other = (read_ref(word, agent, at) for word in words)
    if one is None and other is None:
        raise PastError("both points are now: name an event, such as compare 120, or go back with [ first")
    return one, other


async def at_ref(past: Past, version: int | None) -> AgentState:
    """The state at a version, None for the newest durable one.

    Raises:
        PastError: the stream has no such version.
    """
    head = await past.head()
    if version is not None and version > head:
        raise PastError(f"{past.stream}:{version} has not happened yet; the newest event is {head}")
    return await past.state(head if version is None else version)


async def compare(engine: Engine, past: Past, one: int | None, other: int | None) -> Comparison:
    """Two points beside each other, the earlier one first.

    Raises:
        PastError: there is no such version.
        JournalError: the journal cannot be read.
    """
    states = [await at_ref(past, one), await at_ref(past, other)]
    before, after = sorted(states, key=lambda state: state.version)
    memory, more = await _memory(engine, past, before, after)
    files, note = await _files(engine, past, before, after)
    return Comparison(
        _of(before),
        _of(after),
        goals=tuple(_goals(before, after)),
        plan=tuple(_plans(before, after)),
        beliefs=tuple(_beliefs(before, after)),
        counters=tuple(_counters(before, after)),
        memory=memory,
        memory_more=more,
        files=files,
        files_note=note,
    )


async def compare_words(engine: Engine, past: Past, text: str, at: int | None = None) -> Comparison:
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
        one, other = (past.stream, *words)[-2:]
        return await compare_agents(engine, one, other)
    return await compare(engine, past, *refs_of(text, past.stream, at))


async def compare_agents(engine: Engine, one: str, other: str) -> Comparison:
    """Two agents as they are now: what they want, plan and believe, their ends, counts, cost and files.

    Raises:
        PastError: they are one.
        JournalError: the journal cannot be read.
    """
    if one == other:
        raise PastError(f"name another agent than {one}")
    before, after = await engine.view(one), await engine.view(other)
    files = await engine.files_between(one, other)
    counted = [{"writes to memory": str(await _writes(engine, agent))} for agent in (one, other)]
    return Comparison(
        _of(before),
        _of(after),
        goals=tuple(_goals(before, after)),
        plan=tuple(_plans(before, after)),
        beliefs=tuple(_beliefs(before, after)),
        counters=(*_counters(before, after), *_differences(*counted)),
        files=() if isinstance(files, str) else tuple(_changed(files)),
        files_note=clean_line(files)
        if isinstance(files, str)
        else f"of {one} and of {other} as they are now",
    )


async def _writes(engine: Engine, agent: str) -> int:
    """How often memory was written to because of an agent."""
    events = engine.events(0, stream=STREAM, follow=False)
    return len([1 async for event in events if any(one.startswith(f"{agent}:") for one in event.causes)])


def state_changes(before: AgentState, after: AgentState) -> tuple[tuple[str, tuple[Change, ...]], ...]:
    """What differs between two states in what an agent wants, plans and believes, by title."""
    return (
        ("Goals", tuple(_goals(before, after))),
        ("Plan", tuple(_plans(before, after))),
        ("Beliefs", tuple(_beliefs(before, after))),
    )


def _of(state: AgentState) -> Point:
    return Point(f"{state.agent_id}:{state.version}", state.at, state.tick)


def _point(point: Point) -> str:
    return f"{point.ref} {point.at[11:19]} tick {point.tick}"


def _differences(
    before: Mapping[str, str], after: Mapping[str, str], names: Mapping[str, str] | None = None
) -> Iterator[Change]:
    """What is gone, what is another, and what is new, each in its order."""
    names = names or {}
    for key in (*before, *(key for key in after if key not in before)):
        was, now, name = before.get(key), after.get(key), names.get(key, key)
        if was is None:
            yield Change("+", _words(name), _words(now or ""))
        elif now is None:
            yield Change("-", _words(name), _words(was))
        elif was != now:
            yield Change("~", _words(name), f"{_words(was)} → {_words(now)}")


def _words(text: str) -> str:
    return clean_line(text, limit=WORDS)


def _goals(before: AgentState, after: AgentState) -> Iterator[Change]:
    def told(state: AgentState) -> dict[str, str]:
        return {
            goal.id: f"{goal.text} [{goal.status.value}, priority {goal.priority}]"
            for goal in state.goals.values()
        }

    return _differences(told(before), told(after))


def _plans(before: AgentState, after: AgentState) -> Iterator[Change]:
    for goal in dict.fromkeys((*before.plans, *after.plans)):
        was, now = before.plans.get(goal), after.plans.get(goal)
        if was == now:
            continue
        steps = _steps(was.steps if was else ()), _steps(now.steps if now else ())
        revisions = f"revision {was.revision if was else 0} → {now.revision if now else 0}"
        if was is None or now is None or was.revision != now.revision:
            yield Change("~" if was and now else "+" if now else "-", f"plan of {goal}", revisions)
        yield from _differences(*steps)
        kept = [step.id for step in (was.steps if was else ())]
        order = [step.id for step in (now.steps if now else ())]
        if [one for one in kept if one in order] != [one for one in order if one in kept]:
            yield Change("~", f"order of {goal}'s steps", _words(" ".join(order)))


def _steps(steps: Iterable[PlanStep]) -> dict[str, str]:
    return {step.id: f"{_step(step)} [{step.status.value}]" for step in steps}


def _step(step: PlanStep) -> str:
    if step.op is Op.THINK:
        return f"think: {step.description}"
    return call_text(step.command or step.op.value, step.args)


def _beliefs(before: AgentState, after: AgentState) -> Iterator[Change]:
    def told(state: AgentState) -> dict[str, str]:
        keyed = {
            key: f"{one.value} ({one.confidence:.0%}, {one.source.value})"
            for key, one in state.beliefs.items()
        }
        return keyed | {key: f"from {', '.join(one.sources)}" for key, one in state.held_beliefs.items()}

    return _differences(told(before), told(after))


def _counters(before: AgentState, after: AgentState) -> Iterator[Change]:
    def told(state: AgentState) -> dict[str, str]:
        counted = {name: str(getattr(state, name)) for name in _COUNTERS}
        return {**counted, "failures": str(len(state.failures)), "mode": state.mode.value}

    return _differences(told(before), told(after))


async def _memory(
    engine: Engine, past: Past, before: AgentState, after: AgentState
) -> tuple[tuple[Change, ...], int]:
    """What was remembered, changed and forgotten between two events, by any agent of the workspace."""
    ends = await past.event(before.version), await past.event(after.version)
    first, last = (event.seq if event is not None else 0 for event in ends)
    found: list[Change] = []
    more = 0
    async for event in engine.events(first, stream=STREAM, follow=False):
        if event.seq > last:
            break
        sign = _MEMORIES.get(event.kind)
        if sign is None:
            continue
        if len(found) < MEMORIES:
            found.append(_remembered(sign, ev.payload_of(event)))
        else:
            more += 1
    return tuple(found), more


def _remembered(sign: str, said: ev.Payload) -> Change:
    match said:
        case memory_events.MemoryStored():
            return Change(sign, said.memory.id, _words(said.memory.content))
        case memory_events.MemoryChanged():
            return Change(sign, said.memory, _words(", ".join(said.changes)))
        case memory_events.MemoryPromoted():
            return Change(sign, said.memory, f"is {said.level.value} now")
        case memory_events.MemoriesConsolidated():
            return Change(sign, said.memory, _words(f"made of {', '.join(said.sources)}"))
        case memory_events.MemoriesForgotten():
            return Change(sign, _words(", ".join(said.memories)), "expired" if said.expired else "forgotten")
    return Change(sign, said.kind, "")


async def _files(
    engine: Engine, past: Past, before: AgentState, after: AgentState
) -> tuple[tuple[Change, ...], str]:
    one, other = await past.saved(before), await past.saved(after)
    if one is None or other is None:
        return (), "no workspace snapshot was taken near these events"
    said = ev.payload_of(one), ev.payload_of(other)
    assert isinstance(said[0], ev.SnapshotTaken)
    assert isinstance(said[1], ev.SnapshotTaken)
    changes = await engine.changed_files(said[0].snapshot, said[1].snapshot)
    if isinstance(changes, str):
        return (), clean_line(changes)
    more = f", and {changes.more} more" if changes.more else ""
    return tuple(_changed(changes)), f"as saved at {one.ref} and {other.ref}{more}"


def _changed(changes: Changes) -> Iterator[Change]:
    told = set(changes.changed)
    lists = (("+", changes.added, ""), ("-", changes.removed, ""), ("~", changes.changed, "other content"))
    for sign, paths, text in lists:
        yield from (Change(sign, _words(path), text) for path in paths)
    yield from (
        Change("~", _words(path), "other permissions") for path in changes.mode_changed if path not in told
    )
