"""What has happened in a workspace since an event, as far as going back to it has to do with that.

One pass over the events brings together what was saved and when, who changed files, what reached outside,
and what was spent. Source: steering §3 idea 4 (an explicit list of what cannot be undone).
"""

from __future__ import annotations

import posixpath
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from engine.domain.action import Undo
from engine.domain.state import ActiveAction
from engine.journal import events as ev
from engine.journal.event import Event

LISTED = 200
"""Things that cannot be undone that are told one by one."""
PATH_ARGUMENTS = ("path", "source", "target", "destination", "venv_name")
"""Arguments of the sandbox tool's file commands that name what they change."""
PROGRAMS = frozenset({"run", "start", "shell", "create_venv"})
"""Commands of the sandbox tool that may change any file."""
_LETTERS = 160


@dataclass(frozen=True, slots=True)
class Deed:
    """An action that was requested."""

    agent: str
    action: str
    actor: str
    tool: str
    command: str
    args: dict[str, Any]

    @property
    def words(self) -> str:
        """The call as it would be typed, cut to a line."""
        said = " ".join(_plain(value) for value in self.args.values())
        return " ".join(f"{self.command} {said}".split())[:_LETTERS]

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
class Span:
    """From one saving of the files to the next one."""

    snapshot: str
    """The files at its beginning."""
    ref: str
    deed: Deed | None
    """The action that the files were saved for; None for a rewind."""


@dataclass
class Aftermath:
    """What came after an event; `take` each later event of the workspace in order.

    Args:
        stream: the agent that is to go back.
        sharing: the streams of all agents that work on the same files, its own included.
    """

    stream: str
    sharing: Collection[str]
    events: int = 0
    """Events of the agent's own."""
    spans: list[Span] = field(default_factory=list)
    """Savings of the files, oldest first."""
    blind: str = ""
    """The action that changed files before the first of them, unsaved; empty when there is none."""
    outside: list[tuple[str, str]] = field(default_factory=list)
    """What cannot be undone: reference, and what it is, in words."""
    outside_more: int = 0
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
    _deeds: dict[tuple[str, str], Deed] = field(default_factory=dict)
    _started: set[tuple[str, str]] = field(default_factory=set)

    def begin(self, action: ActiveAction | None) -> None:
        """Say which action of the agent's own was requested already when the event happened."""
        if action is None:
            return
        deed = Deed(self.stream, action.id, action.actor, action.tool, action.command, action.args)
        self._deeds[self.stream, action.id] = deed
        if action.snapshot:
            self.spans.append(Span(action.snapshot, action.event, deed))

    def take(self, event: Event) -> None:
        """Take in the next event of the workspace."""
        own = event.stream == self.stream
        self.events += own
        if event.kind not in _KINDS or event.stream not in self.sharing:
            return
        said = ev.payload_of(event)
        match said:
            case ev.ActionRequested():
                deed = Deed(event.stream, said.action, event.actor, said.tool, said.command, said.args)
                self._deeds[event.stream, said.action] = deed
            case ev.SnapshotTaken():
                self.spans.append(
                    Span(said.snapshot, event.ref, self._deeds.get((event.stream, said.action)))
                )
            case ev.RewindBegun():
                self.spans.append(Span(said.saved, event.ref, None))
            case ev.ActionStarted():
                self._start(event, said, own)
            case ev.ActionOutcomeUnknown() if own:
                self._note(event.ref, f"{self._words(event.stream, said.action)}: its outcome is unknown")
            case ev.ActionFinished() | ev.ActionCancelled():
                if (event.stream, said.action) not in self._started and not own:
                    self.running.add(event.stream)
            case ev.JobStarted():
                self.jobs.append(f"{said.job} {said.command}"[:_LETTERS])
            case ev.ModelCalled() if own:
                self.calls += 1
                self.tokens += said.tokens
                self.cost_usd += said.cost_usd or 0.0
            case ev.ReasonerAdvanced() if own:
                self.messages += len(said.sent)

    def _start(self, event: Event, said: ev.ActionStarted, own: bool) -> None:
        self._started.add((event.stream, said.action))
        self.actions += own
        if said.mutates and said.snapshot is None and not self.spans and not self.blind:
            self.blind = f"{event.stream} {said.action}"
        if own and said.undo is Undo.IRREVERSIBLE:
            self._note(event.ref, self._words(event.stream, said.action))

    def _note(self, ref: str, words: str) -> None:
        if len(self.outside) < LISTED:
            self.outside.append((ref, words))
        else:
            self.outside_more += 1

    def _words(self, stream: str, action: str) -> str:
        deed = self._deeds.get((stream, action))
        return f"{action} {deed.words}" if deed is not None else action


_KINDS = frozenset(
    kind.kind
    for kind in (
        *(ev.ActionRequested, ev.SnapshotTaken, ev.RewindBegun, ev.ActionStarted, ev.ActionOutcomeUnknown),
        *(ev.ActionFinished, ev.ActionCancelled, ev.JobStarted, ev.ModelCalled, ev.ReasonerAdvanced),
    )
)
