"""What a rewind would do: where it lands, which files, what comes back, and what cannot be undone.

Reads the journal and the snapshots and changes nothing. One pass over the events since the one that is come
back to brings together what was saved and when, who changed files, what reached outside, and what was spent.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from engine.core import events as ev
from engine.core.actions import Reversibility
from engine.core.fold import apply
from engine.core.journal import Event
from engine.core.plan import Op, StepStatus
from engine.core.recovery import ActiveAction
from engine.core.rewind import RewindScope
from engine.core.state import AgentState
from engine.core.store.port import JournalStore
from engine.core.streams import StreamHistory
from engine.sandbox.snapshots.entry import Restoration, SnapshotError
from engine.sandbox.snapshots.workspace import Snapshots
from engine.value import dataclass, field, replace

LISTED = 200
"""Things that cannot be undone that are told one by one."""
PATH_ARGUMENTS = ("path", "source", "target", "destination", "venv_name")
"""Arguments of the sandbox tool's file commands that name what they change."""
PROGRAMS = frozenset({"run", "start", "shell", "create_venv"})
"""Commands of the sandbox tool that may change any file."""
_LETTERS = 160


@dataclass(frozen=True, slots=True)
class RequestedAction:
    """An action that was requested."""

    agent: str
    action: str
    actor: str
    command: str
    args: dict[str, Any]

    @property
    def words(self) -> str:
        """The call as it would be typed, cut to a line."""
        values = " ".join(_plain(value) for value in self.args.values())
        return " ".join(f"{self.command} {values}".split())[:_LETTERS]

    @property
    def who(self) -> str:
        """Whose it was, for a person."""
        person = self.actor.removeprefix("operator:")
        return f"{self.agent} {self.action}" + (f" ({person})" if person != self.actor else "")

    @property
    def paths(self) -> frozenset[str] | None:
        """What it changes, as its arguments name it; None for a program, which may change anything."""
        if self.command in PROGRAMS:
            return None
        named = (str(self.args[name]) for name in PATH_ARGUMENTS if name in self.args)
        return frozenset(posixpath.normpath(name) for name in named)


def _plain(value: Any) -> str:
    return " ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


@dataclass(frozen=True, slots=True)
class SnapshotInterval:
    """From one saving of the files to the next one."""

    snapshot: str
    """The files at its beginning."""
    ref: str
    action: RequestedAction | None
    """The action that the files were saved for; None for a rewind."""


@dataclass
class ChangesSince:
    """What came after an event; `take` each later event of the workspace in order.

    Args:
        stream: the agent that is to go back.
        sharing: the streams of all agents that work on the same files, its own included.
    """

    stream: str
    sharing: Collection[str]
    events: int = 0
    """Events of the agent's own."""
    spans: list[SnapshotInterval] = field(default_factory=list)
    """Savings of the files, oldest first."""
    blind: str = ""
    """The action that changed files before the first of them, unsaved; empty when there is none."""
    outside: list[tuple[str, str]] = field(default_factory=list)
    """What cannot be undone: reference, and what it is, in words."""
    running: set[str] = field(default_factory=set)
    """Other agents whose action ran when the event happened."""
    jobs: list[str] = field(default_factory=list)
    """Background jobs that were started since."""
    messages: int = 0
    calls: int = 0
    tokens: int = 0
    cost_usd: float = 0.0
    actions: int = 0
    """Actions of the agent's own that have started."""
    _requested: dict[tuple[str, str], RequestedAction] = field(default_factory=dict)
    _started: set[tuple[str, str]] = field(default_factory=set)

    def begin(self, action: ActiveAction | None) -> None:
        """Say which action of the agent's own was requested already when the event happened."""
        if action is None:
            return
        request = RequestedAction(self.stream, action.id, action.actor, action.command, action.args)
        self._requested[self.stream, action.id] = request
        if action.snapshot:
            self.spans.append(SnapshotInterval(action.snapshot, action.event, request))

    def take(self, event: Event) -> None:
        """Take in the next event of the workspace."""
        own = event.stream == self.stream
        self.events += own
        if event.kind not in _KINDS or event.stream not in self.sharing:
            return
        payload = ev.payload_of(event)
        match payload:
            case ev.ActionRequested():
                request = RequestedAction(
                    event.stream, payload.action, event.actor, payload.command, payload.args
                )
                self._requested[event.stream, payload.action] = request
            case ev.SnapshotTaken():
                saved_for = self._requested.get((event.stream, payload.action))
                self.spans.append(SnapshotInterval(payload.snapshot, event.ref, saved_for))
            case ev.RewindBegun():
                self.spans.append(SnapshotInterval(payload.saved, event.ref, None))
            case ev.ActionStarted():
                self._start(event, payload, own)
            case ev.ActionOutcomeUnknown() if own:
                words = f"{self._words(event.stream, payload.action)}: its outcome is unknown"
                self.outside.append((event.ref, words))
            case ev.ActionFinished() | ev.ActionCancelled():
                if (event.stream, payload.action) not in self._started and not own:
                    self.running.add(event.stream)
            case ev.JobStarted():
                self.jobs.append(f"{payload.job} {payload.command}"[:_LETTERS])
            case ev.ModelCalled() if own:
                self.calls += 1
                self.tokens += payload.tokens
                self.cost_usd += payload.cost_usd or 0.0
            case ev.ReasonerAdvanced() if own:
                self.messages += len(payload.sent)

    def _start(self, event: Event, started: ev.ActionStarted, own: bool) -> None:
        self._started.add((event.stream, started.action))
        self.actions += own
        if started.mutates and started.snapshot is None and not self.spans and not self.blind:
            self.blind = f"{event.stream} {started.action}"
        if own and started.undo is Reversibility.IRREVERSIBLE:
            self.outside.append((event.ref, self._words(event.stream, started.action)))

    def _words(self, stream: str, action: str) -> str:
        request = self._requested.get((stream, action))
        return f"{action} {request.words}" if request is not None else action


_KINDS = frozenset(
    kind.kind
    for kind in (
        *(ev.ActionRequested, ev.SnapshotTaken, ev.RewindBegun, ev.ActionStarted, ev.ActionOutcomeUnknown),
        *(ev.ActionFinished, ev.ActionCancelled, ev.JobStarted, ev.ModelCalled, ev.ReasonerAdvanced),
    )
)


LEFT_LISTED = 50
"""Things that snapshots leave out that are told one by one."""
SPANS = 64
"""Newest savings of the files by which it is found out who changed a path."""
SETTLING = 16
"""Events that follow at once from the end of an action, at most."""
_NAMED: Mapping[str, tuple[type[ev.Payload], str]] = {
    "s": (ev.ActionRequested, "step"),
    "a": (ev.ActionRequested, "action"),
    "g": (ev.GoalAdopted, "goal"),
}
"""What begins with an event: by the letter of its id the event, and the field that has the id."""


class RewindError(Exception):
    """It cannot be gone back there; the message says why and what can be done."""


@dataclass(frozen=True, slots=True)
class FilesAt:
    """Where the files of an event come from."""

    snapshot: str
    """Empty where nothing has changed files since, as far as is known."""
    ref: str = ""
    """The event by which they were saved."""
    exact: bool = True
    note: str = ""
    """How sure it is that these are the files as they were, in words."""


@dataclass(frozen=True, slots=True)
class RewindPreview:
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
    after: ChangesSince
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
        return self.restoration.steps if self.restoration is not None else 0


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
    if not re.fullmatch(r"[sag]\d+", word):
        raise RewindError(
            f"'{word[:40]}' is no point in time: an event such as 31, -40 for forty events back, or what to "
            "come back before: an action a7, a step s4, a goal g2"
        )
    payload_type, name = _NAMED[word[0]]
    for version, _ in await store.places(stream, (payload_type.kind,), 1, head):
        event = await store.get(f"{stream}:{version}")
        if event is not None and getattr(ev.payload_of(event), name) == word:
            return version - 1
    raise RewindError(f"{word} is not in the journal of {stream}, or never began")


@dataclass(frozen=True, slots=True)
class RewindSources:
    """What a preview reads."""

    store: JournalStore
    past: StreamHistory
    snapshots: Snapshots | None
    """Of the files that the agent works on; None where none are taken."""
    sharing: Sequence[str] = field(default_factory=tuple)
    """All agents that work on the same files, this one included."""


async def preview(
    around: RewindSources,
    now: AgentState,
    to: int,
    scope: RewindScope,
    paths: Sequence[str] = (),
    *,
    looks: bool = True,
) -> RewindPreview:
    """What going back to an event would do.

    Args:
        around: what is read.
        now: the agent's present state, all of it durable.
        to: a version of its stream.
        scope: state, files or both.
        paths: the only paths that are to be brought back; none for all.
        looks: whether the files are looked at; without it is only found out where they come from.

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
    after = await _aftermath(around, then, then.version)
    bare = RewindPreview(now.agent_id, asked, then.version, scope, tuple(paths), then, now, after)
    whole = bare if scope is RewindScope.STATE else await _with_files(around, bare, looks=looks)
    # HOME and TMPDIR of programs are not what anybody means by files.
    own = around.snapshots.policy.cache_paths if around.snapshots is not None else ()
    return replace(whole, lasting=tuple(_lasting(whole, own)))


async def _with_files(around: RewindSources, bare: RewindPreview, *, looks: bool) -> RewindPreview:
    """The preview with what it says of files."""
    files = _files_at(bare.then, bare.after)
    if around.snapshots is None:
        return replace(bare, trouble="no snapshots of the files are taken here")
    if not files.snapshot or not looks:
        return replace(bare, files=files)
    try:
        done = await around.snapshots.restore(files.snapshot, paths=bare.paths or None, dry_run=True)
        others = await _others(around.snapshots, bare.agent, bare.after, done)
    except SnapshotError as error:
        return replace(bare, files=files, trouble=str(error))
    return replace(bare, files=files, restoration=done, others=others)


async def _at_rest(past: StreamHistory, then: AgentState) -> AgentState:
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


async def _aftermath(around: RewindSources, then: AgentState, to: int) -> ChangesSince:
    event = await around.past.event(to)
    after = ChangesSince(then.agent_id, frozenset(around.sharing))
    after.begin(then.action)
    async for later in around.store.events(event.seq if event is not None else 0, follow=False):
        after.take(later)
    return after


def _files_at(then: AgentState, after: ChangesSince) -> FilesAt:
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
    before = f"{span.action.who} {span.action.words}" if span.action is not None else "a rewind"
    note = f"as saved at {span.ref}, before {before}"
    if doubts:
        return FilesAt(span.snapshot, span.ref, exact=False, note=f"{note}; {'; '.join(doubts)}")
    return FilesAt(span.snapshot, span.ref, note=note)


async def _others(
    snapshots: Snapshots, agent: str, after: ChangesSince, done: Restoration
) -> tuple[str, ...]:
    """Paths that would change and that others changed since, with who did, as well as that can be known."""
    paths = {*done.written, *done.made, *done.removed, *done.mode_changed}
    digests: dict[str, str] = {}
    spans = after.spans[-SPANS:]
    for span, following in zip(spans, [*spans[1:], None], strict=False):
        if not paths:
            break
        if following is None:
            now = await snapshots.take(label=f"{agent}: looked at before a rewind")
            changes = await snapshots.diff(span.snapshot, now.id)
        else:
            changes = await snapshots.diff(span.snapshot, following.snapshot)
        for path in (*changes.added, *changes.removed, *changes.changed, *changes.mode_changed):
            who = _other(span, path, agent)
            if who and _concerned(path, paths):
                digests[path] = who
    return tuple(f"{path}: {who}" for path, who in digests.items())


def _concerned(path: str, target: Collection[str]) -> bool:
    """Whether a path, or a directory that it lies in, is among those that would change."""
    parts = path.split("/")
    return any("/".join(parts[:length]) in target for length in range(1, len(parts) + 1))


def _other(span: SnapshotInterval, path: str, agent: str) -> str:
    """Who else changed a path between two savings; empty where it was the agent itself, or may have been."""
    action = span.action
    if action is None:
        return "a rewind, or outside of Pilothouse"
    if action.agent != agent:
        return f"{action.who} {action.words}"
    if action.paths is None or any(_may_be(name, path) for name in action.paths):
        return ""
    return f"changed outside of any action, after {action.who}"


def _may_be(name: str, path: str) -> bool:
    """Whether an action that names one thing may have changed a path: that, below it, or made on the way."""
    return name == "." or f"/{name}/" in f"/{path}/" or f"/{path}/" in f"/{name}/"


def _lasting(matches: RewindPreview, caches: Collection[str]) -> Sequence[str]:
    after = matches.after
    lines = [f"{ref} {words}" for ref, words in after.outside[:LISTED]]
    if len(after.outside) > LISTED:
        lines.append(f"and {len(after.outside) - LISTED} more actions that may have reached outside")
    if after.messages:
        lines.append(f"{after.messages} messages to other agents were sent")
    if after.calls:
        lines.append(
            f"{after.calls} calls of a model: {after.tokens:,} tokens, ${after.cost_usd:.2f} are spent"
        )
    for job in matches.now.running_jobs:
        lines.append(f"background {job.id} goes on: {job.command}"[:200])
    if matches.restoration is not None:
        left = [item for item in matches.restoration.left if item.path not in caches]
        lines += [f"{item.path}: {item.why}" for item in left[:LEFT_LISTED]]
        if len(left) > LEFT_LISTED:
            lines.append(f"and {len(left) - LEFT_LISTED} more that snapshots leave out")
    if after.actions:
        lines.append("what memory was told of these actions stays in memory")
    return lines
