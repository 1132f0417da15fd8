"""What a rewind would do: where it lands, which files, what comes back, and what cannot be undone.

Reads the journal and the snapshots and changes nothing. Source: steering §3 idea 4, §4 T12.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from engine.domain.plan import Op, StepStatus
from engine.domain.rewinding import RewindScope
from engine.domain.state import AgentState
from engine.journal import events as ev
from engine.journal.fold import apply
from engine.journal.past import Past
from engine.journal.store import JournalStore
from engine.snapshots import Changes, Restoration, SnapshotError, Snapshots
from engine.steering.aftermath import Aftermath, Span

LEFT_LISTED = 50
"""Things that snapshots leave out that are told one by one."""
SPANS = 64
"""Newest savings of the files by which it is found out who changed a path."""
SETTLING = 16
"""Events that follow at once from the end of an action, at most."""
_STEP = re.compile(r"s\d+")
_ACTION = re.compile(r"a\d+")
_GOAL = re.compile(r"g\d+")


class RewindError(Exception):
    """It cannot be gone back there; the message says why and what can be done."""


@dataclass(frozen=True, slots=True)
class FilesAt:
    """Where the files of an event are had from."""

    snapshot: str
    """Empty where nothing has changed files since, as far as is known."""
    ref: str = ""
    """The event by which they were saved."""
    exact: bool = True
    note: str = ""
    """How sure it is that these are the files as they were, in words."""


@dataclass(frozen=True, slots=True)
class Preview:
    """What a rewind would do."""

    agent: str
    asked: int
    """The version of the agent's stream that was asked for."""
    to: int
    """The version that it lands on: the nearest at which nothing was half done."""
    scope: RewindScope
    paths: tuple[str, ...]
    then: AgentState
    now: AgentState
    after: Aftermath
    files: FilesAt | None = None
    """None where no files are brought back."""
    restoration: Restoration | None = None
    """What would happen to files; None where nothing, or where that is not known."""
    trouble: str = ""
    """Why files cannot be brought back; empty when they can, or need not."""
    others: tuple[str, ...] = ()
    """Paths that would change and that others than this agent changed since, with who did."""
    lasting: tuple[str, ...] = ()
    """What cannot be undone, a line each."""

    @property
    def changed(self) -> int:
        """Paths that would be written, made, removed or given other permissions."""
        done = self.restoration
        if done is None:
            return 0
        return len(done.written) + len(done.made) + len(done.removed) + len(done.mode_changed) + done.more


async def place_of(store: JournalStore, stream: str, word: str, here: int | None = None) -> int:
    """The version of an agent's stream that a word names.

    Args:
        store: the journal.
        stream: the agent.
        word: an event (`31`, `pilot-1:31`), so many events back (`-40`), `here`; or what is come back before:
            an action (`a7`), a step's first action (`s4`), a goal (`g2`).
        here: the version that is looked at; None for now.

    Raises:
        RewindError: there is nothing of this name.
    """
    head = (await store.head(stream)).version
    named, _, number = word.rpartition(":")
    if named and named != stream:
        raise RewindError(f"{word[:60]} is no event of {stream}; its events are {stream}:1, {stream}:2 …")
    if word == "here":
        if here is None:
            raise RewindError("here is now; look at the past first with [, or name an event such as 31")
        return here
    if re.fullmatch(r"-\d{1,15}", word):
        return max(1, head - int(word[1:]))
    if number.isascii() and number.isdigit() and len(number) <= 15:
        if not 1 <= int(number) <= head:
            raise RewindError(f"there is no event {stream}:{number}; the newest is {head}")
        return int(number)
    kind = next((kind for sort, kind in _NAMED.items() if sort.fullmatch(word)), None)
    if kind is None:
        raise RewindError(
            f"'{word[:40]}' is no point in time: an event such as 31, -40 for forty events back, or what to "
            "come back before: an action a7, a step s4, a goal g2"
        )
    for version, _ in await store.places(stream, (kind.kind,), 1, head):
        event = await store.get(f"{stream}:{version}")
        if event is not None and word in _names(ev.payload_of(event)):
            return version - 1
    raise RewindError(f"{word} is not in the journal of {stream}, or never began")


_NAMED: Mapping[re.Pattern[str], type[ev.Payload]] = {
    _STEP: ev.ActionRequested,
    _ACTION: ev.ActionRequested,
    _GOAL: ev.GoalAdopted,
}


def _names(said: ev.Payload) -> Collection[str]:
    match said:
        case ev.ActionRequested():
            return said.action, said.step
        case ev.GoalAdopted():
            return (said.goal,)
    return ()


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a preview reads."""

    store: JournalStore
    past: Past
    snapshots: Snapshots | None
    """Of the files that the agent works on; None where none are taken."""
    sharing: Sequence[str] = field(default_factory=tuple)
    """All agents that work on the same files, this one included."""


async def preview(
    around: Surroundings,
    now: AgentState,
    to: int,
    scope: RewindScope,
    paths: Sequence[str] = (),
    *,
    looks: bool = True,
) -> Preview:
    """What going back to an event would do.

    Args:
        around: what is read.
        now: the agent's present state, all of it durable.
        to: a version of its stream.
        scope: state, files or both.
        paths: the only paths that are to be brought back; none for all.
        looks: whether the files are looked at; without it is only found out where they are had from.

    Raises:
        RewindError: it cannot be gone back there.
        JournalError: the journal cannot be read.
    """
    asked, then = to, await around.past.state(to)
    if then.version != to or to < 1:
        raise RewindError(f"there is no event {around.past.stream}:{to}; the newest is {then.version}")
    if now.forked is not None and then.forked is None:
        raise RewindError(
            f"{now.agent_id} began at event 2, as a fork; before that it was {now.forked.parent}"
        )
    then = await _at_rest(around.past, then)
    to = then.version
    after = await _aftermath(around, then, to)
    bare = Preview(now.agent_id, asked, to, scope, tuple(paths), then, now, after)
    if scope is RewindScope.STATE:
        return replace(bare, lasting=tuple(_lasting(bare)))
    files = _files_at(then, after)
    if around.snapshots is None:
        return replace(
            bare, trouble="no snapshots of the files are taken here", lasting=tuple(_lasting(bare))
        )
    if not files.snapshot or not looks:
        return replace(bare, files=files, lasting=tuple(_lasting(bare)))
    try:
        done = await around.snapshots.restore(files.snapshot, paths=paths or None, dry_run=True)
        others = await _others(around.snapshots, now.agent_id, after, done)
    except SnapshotError as error:
        return replace(bare, files=files, trouble=str(error), lasting=tuple(_lasting(bare)))
    found = replace(bare, files=files, restoration=done, others=others)
    own = around.snapshots.policy.cache_paths  # HOME and TMPDIR of programs, which nobody means by files
    return replace(found, lasting=tuple(_lasting(found, own)))


async def _at_rest(past: Past, then: AgentState) -> AgentState:
    """The nearest state at which nothing was half done.

    That is the one before an action or a rewind that was under way, and the one behind what follows at once
    from an action that had just ended.
    """
    begun = then.action.event if then.acting and then.action is not None else ""
    if then.rewinding is not None:
        begun = then.rewinding.event
    if begun:
        return await past.state(int(begun.rpartition(":")[2]) - 1)
    if not _unsettled(then):
        return then
    version = then.version
    for event in await past.events(version + 1, version + SETTLING):
        apply(then, event)
        if then.acting or not _unsettled(then):
            break
    return await past.state(version) if then.acting or _unsettled(then) else then


def _unsettled(state: AgentState) -> bool:
    """Whether an action has ended and what follows from that for the plan is still to come."""
    runs = state.action is None and any(
        step.status is StepStatus.RUNNING and step.op is not Op.ACHIEVE
        for plan in state.plans.values()
        for step in plan.steps
    )
    recovers = state.needs_replan and state.intervention is None and state.retry is None
    return not state.reasons and (runs or recovers)


async def _aftermath(around: Surroundings, then: AgentState, to: int) -> Aftermath:
    event = await around.past.event(to)
    after = Aftermath(then.agent_id, frozenset(around.sharing))
    after.begin(then.action)
    async for later in around.store.events(event.seq if event is not None else 0, follow=False):
        after.take(later)
    return after


def _files_at(then: AgentState, after: Aftermath) -> FilesAt:
    """The files after an event are those that were saved next, unless something changed them before that."""
    if then.action is not None and then.action.snapshot:
        span = after.spans[0]
        return FilesAt(span.snapshot, span.ref, note=f"as saved right before {then.action.id}")
    jobs = [job.id for job in then.running_jobs]
    doubts = [f"{agent} was in the middle of an action" for agent in sorted(after.running)]
    if jobs:
        doubts.append(f"background {', '.join(jobs)} ran and may have changed files")
    if after.blind:
        doubts.append(f"{after.blind} changed files without their being saved first")
    if not after.spans:
        if after.blind:
            return FilesAt("", exact=False, note=f"{after.blind} changed files, and none were saved since")
        return FilesAt("", note="no action has changed files since; they stay as they are")
    span = after.spans[0]
    before = f", before {span.deed.who} {span.deed.words}" if span.deed is not None else ", before a rewind"
    note = f"as saved at {span.ref}{before}"
    if doubts:
        return FilesAt(span.snapshot, span.ref, exact=False, note=f"{note}; {'; '.join(doubts)}")
    return FilesAt(span.snapshot, span.ref, note=note)


async def _others(snapshots: Snapshots, agent: str, after: Aftermath, done: Restoration) -> tuple[str, ...]:
    """Paths that would change and that others changed since, with who did, as well as that can be known."""
    wanted = {*done.written, *done.made, *done.removed, *done.mode_changed}
    found: dict[str, str] = {}
    spans = after.spans[-SPANS:]
    for span, following in zip(spans, [*spans[1:], None], strict=False):
        if not wanted:
            break
        if following is None:
            now = await snapshots.take(label=f"{agent}: looked at before a rewind")
            changes = await snapshots.diff(span.snapshot, now.id)
        else:
            changes = await snapshots.diff(span.snapshot, following.snapshot)
        for path in _paths(changes):
            who = _other(span, path, agent)
            if who and _concerned(path, wanted):
                found[path] = who
    return tuple(f"{path}: {who}" for path, who in found.items())


def _paths(changes: Changes) -> Sequence[str]:
    return (*changes.added, *changes.removed, *changes.changed, *changes.mode_changed)


def _concerned(path: str, wanted: Collection[str]) -> bool:
    """Whether a path, or a directory that it lies in, is among those that would change."""
    parts = path.split("/")
    return any("/".join(parts[:length]) in wanted for length in range(1, len(parts) + 1))


def _other(span: Span, path: str, agent: str) -> str:
    """Who else changed a path between two savings; empty where it was the agent itself, or may have been."""
    deed = span.deed
    if deed is None:
        return "a rewind, or outside of Pilothouse"
    if deed.agent != agent:
        return f"{deed.who} {deed.words}"
    named = deed.paths
    if named is None or any(
        path == name
        or path.endswith(f"/{name}")
        or name == "."
        or f"/{name}/" in f"/{path}/"
        or _below(name, path)
        for name in named
    ):
        return ""
    return f"changed outside of any action, after {deed.who}"


def _below(name: str, path: str) -> bool:
    """Whether making what an action names made this directory on the way."""
    return f"/{name}".endswith(f"/{path}") or name.startswith(f"{path}/") or f"/{path}/" in f"/{name}"


def _lasting(found: Preview, caches: Collection[str] = ()) -> Sequence[str]:
    after = found.after
    lines: list[str] = []
    lines += [f"{ref} {words}" for ref, words in after.outside]
    if after.outside_more:
        lines.append(f"and {after.outside_more} more actions that may have reached outside")
    if after.messages:
        lines.append(f"{after.messages} messages to other agents were sent")
    if after.calls:
        lines.append(
            f"{after.calls} calls of a model: {after.tokens:,} tokens, ${after.cost_usd:.2f} are spent"
        )
    for job in found.now.running_jobs:
        lines.append(f"background {job.id} goes on: {job.command}"[:200])
    if found.restoration is not None:
        left = [one for one in found.restoration.left if one.path not in caches]
        lines += [f"{one.path}: {one.why}" for one in left[:LEFT_LISTED]]
        if len(left) > LEFT_LISTED:
            lines.append(f"and {len(left) - LEFT_LISTED} more that snapshots leave out")
    if after.actions:
        lines.append("what memory was told of these actions stays in memory")
    return lines
