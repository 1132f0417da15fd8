"""Recorded events with what each depends on: the causes that it records, and what its body names besides.

What a tool writes by name is on record. What `run` or the operator's shell did to files is known from the
next snapshot (`SnapshotTaken.since`), which is compared with the one before. All agents share one root, so
where
two acted at once the change counts for the one whose snapshot came before it, and for none where one snapshot
was for several.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Self

from engine.core.actions import SnapshotTaken
from engine.core.beliefs import ResultDisputed
from engine.core.journal import Event
from engine.inquiry.relations import Basis, EventRelations, TouchedFiles, body_of, plain_path, texts
from engine.value import dataclass


def touched_files(events: Iterable[Event]) -> dict[tuple[str, str], TouchedFiles]:
    """The files that actions changed without naming them, by stream and action."""
    files: dict[tuple[str, str], TouchedFiles] = {}
    for event in events:
        body = body_of(event) if event.kind == SnapshotTaken.kind else {}
        stream, _, action = str(body.get("since") or "").rpartition(":")
        if stream:
            written, removed = (tuple(texts(body.get(name))) for name in ("written", "removed"))
            files[stream, action] = TouchedFiles(written, removed)
    return files


_ID = re.compile(r"(?:[asgpqj]|bg)[0-9]+", re.I)
_ERRORS = re.compile(r"errors?(?:\s+(\d{1,6}))?", re.I)
_KINDS = {"a": "action", "s": "step", "g": "goal", "p": "plan", "q": "request", "j": "job", "bg": "job"}


class UnknownSubjectError(Exception):
    """The record has nothing of that name; the message says what it may be called."""


@dataclass(frozen=True, slots=True)
class Subject:
    """What is asked about."""

    kind: str
    """`event`, `action`, `step`, `goal`, `plan`, `job`, `request`, `error`, `belief`, `file`."""
    name: str
    refs: tuple[str, ...]
    """Its events in the order of the record, at least one."""

    @property
    def newest(self) -> str:
        """The last of its events, which says how it stands."""
        return self.refs[-1]

    @property
    def first(self) -> str:
        """The first of its events, on which all others of it stand."""
        return self.refs[0]


class Record:
    """Events by reference, with what they depend on and what depends on them."""

    def __init__(self) -> None:
        self._known: dict[str, Event] = {}
        self._names = EventRelations()
        self._bases: dict[str, tuple[Basis, ...]] = {}
        self._followers: dict[str, list[Basis]] = {}

    @classmethod
    def of(cls, events: Iterable[Event]) -> Self:
        """The record of events that come in the order of the workspace, or of one stream."""
        record = cls()
        record.take_in(list(events))
        return record

    def take_in(self, events: Sequence[Event], ahead: Iterable[Event] = ()) -> None:
        """Take the next events in.

        Args:
            events: in their order.
            ahead: some that come after these, in which it stands what these did to files.
        """
        self._names.touched = touched_files((*events, *ahead))
        for event in events:
            self.add(event)

    def event(self, ref: str) -> Event | None:
        """The event with this reference, or None."""
        return self._known.get(ref)

    def add(self, event: Event) -> None:
        """Take the next event in; one that is here already changes nothing."""
        if event.ref not in self._known:
            self._known[event.ref] = event
            self._take(event)

    def _take(self, event: Event) -> None:
        recorded = {event.ref, *event.causes}
        named = [basis for basis in self._names.note(event) if basis.ref and basis.ref not in recorded]
        bases = dict.fromkeys([*(Basis(ref) for ref in event.causes if ref != event.ref), *named])
        self._bases[event.ref] = tuple(bases)
        for basis in bases:
            self._followers.setdefault(basis.ref, []).append(Basis(event.ref, basis.relation))

    @property
    def beliefs(self) -> Mapping[tuple[str, str], str]:
        """Agent and key of each belief held at the end, to the event that adopted it."""
        return self._names.beliefs

    @property
    def files(self) -> Mapping[str, str]:
        """Path of each written file from the sandbox's root, to the end of the action that wrote it last."""
        return self._names.files

    @property
    def disputes(self) -> Mapping[str, str]:
        """The events that the operator marked as wrong, to why."""
        marked: dict[str, str] = {}
        for event in self.of_kind(ResultDisputed.kind):
            body = body_of(event)
            if body.get("lifted"):
                marked.pop(str(body.get("event")), None)
            else:
                marked[str(body.get("event"))] = str(body.get("reason", ""))
        return marked

    def bases(self, ref: str) -> tuple[Basis, ...]:
        """What an event depends on: recorded causes first."""
        return self._bases.get(ref, ())

    def followers(self, ref: str) -> tuple[Basis, ...]:
        """What depends on an event, in the order of the record."""
        return tuple(self._followers.get(ref, ()))

    def newest(self, kind: str, agent: str = "") -> Event | None:
        """The newest event of a kind, or of any where it is empty; of one agent, or of all."""
        fitting = (
            event
            for event in reversed(self._known.values())
            if (not kind or event.kind == kind) and (not agent or event.stream == agent)
        )
        return next(fitting, None)

    def of_kind(self, kind: str) -> Iterable[Event]:
        """All events of a kind, oldest first."""
        return [event for event in self._known.values() if event.kind == kind]

    def done_steps(self, stream: str) -> Mapping[str, str]:
        """The completed steps of an agent, each with the event of its end."""
        return self._names.of(stream).done

    def open_steps(self, stream: str) -> Iterator[tuple[str, tuple[str, ...]]]:
        """The steps of an agent that are not completed, each with the steps that it depends on."""
        known = self._names.of(stream)
        done = set(known.done)
        for step in [step for step in known.steps if step not in done]:
            yield step, tuple(known.steps[step][2])

    def subject(self, what: str, agent: str = "") -> Subject:
        """What is meant by a reference, an id, a belief's key, `error` (or `error N`), or a file's path.

        Args:
            what: as an operator types it.
            agent: whose ids and beliefs are meant; where it is empty, those of the only agent that has one.

        Raises:
            UnknownSubjectError: nothing here is called so.
        """
        what = what.strip()
        if self.event(what) is not None:
            return Subject("event", what, (what,))
        if what.isdecimal() and self.event(ref := f"{agent}:{int(what)}") is not None:
            return Subject("event", ref, (ref,))
        if _ID.fullmatch(what) and (refs := self._find(agent, what.lower())):
            return Subject(_KINDS[what.lower().rstrip("0123456789")], what.lower(), tuple(refs))
        if match := _ERRORS.fullmatch(what):
            return self._error(int(match[1] or 1), agent)
        if refs := self._find(agent, f"belief {what}"):
            return Subject("belief", what, tuple(refs))
        path = plain_path(what)
        if refs := self._find("", f"file {path}"):
            return Subject("file", path, tuple(refs))
        raise UnknownSubjectError(self._unknown(what, agent))

    def _error(self, back: int, agent: str) -> Subject:
        """The newest failure, or one so many places before it, from 1."""
        failures = self._find(agent, "error")
        if not 0 < back <= len(failures):
            had = f"there are {len(failures)}" if failures else "none was recorded"
            raise UnknownSubjectError(f"there is no error {back}: {had}")
        return Subject("error", f"error {back}", (failures[-back],))

    def _find(self, agent: str, name: str) -> list[str]:
        if agent:
            return self._names.named.get((agent, name), [])
        having = [refs for (_, known), refs in self._names.named.items() if known == name]
        return having[0] if len(having) == 1 else []

    def _unknown(self, what: str, agent: str) -> str:
        names = self._names.named
        known = {name.partition(" ")[2] or name for owner, name in names if owner in (agent, "")}
        several = self._owners([what.lower(), f"belief {what}"])
        if not agent and len(several) > 1:
            return f"several agents have '{what[:60]}': {', '.join(several)}; say whose with --agent"
        near = difflib.get_close_matches(what, sorted(known), n=3, cutoff=0.6)
        hint = "give an event (pilot-1:12), an action (a3), a step, a goal, a belief's key, error, or the "
        hint = f"did you mean {' or '.join(near)}?" if near else f"{hint}path of a file that was written"
        return f"the journal has nothing called '{what[:60]}'; {hint}"

    def _owners(self, names: Iterable[str]) -> list[str]:
        """The agents that have something of one of these names."""
        owners = set(names)
        return list(dict.fromkeys(owner for owner, name in self._names.named if owner and name in owners))
