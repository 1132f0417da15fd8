"""Which files each program changed: the difference of the snapshots before it and before the next action.

What a tool writes by name is on record; what `run` or the operator's shell did to files is not. The root is
one for all agents, so where two acted at once the change is that of the one whose snapshot came before it.
Source: spec steering §3 idea 6 ("file change"), issue "Steering" item 7.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from engine.inquiry.naming import WRITES, body_of, paths_in, plain_path
from engine.inquiry.record import Record
from engine.journal import events as ev
from engine.journal.event import Event
from engine.journal.store import JournalStore

PAIRS = 400
"""Snapshots that are looked at, the newest."""
EARLIER = 50
"""Events before the first of them, among which its action was asked for."""
PATHS = 200
"""Files of one action that are tied to it at most."""


class Difference(Protocol):
    """What happened to files between two snapshots; the names are `engine.snapshots.Changes`'."""

    @property
    def added(self) -> tuple[str, ...]:
        """Paths that were not there before."""

    @property
    def changed(self) -> tuple[str, ...]:
        """Paths with another content."""

    @property
    def removed(self) -> tuple[str, ...]:
        """Paths that are gone."""


Compare = Callable[[str, str], Awaitable[Difference | str]]


@dataclass(slots=True)
class _Saved:
    """An action before which the files were saved."""

    stream: str
    action: str
    snapshot: str
    ended: str = ""
    """The event of its end."""


async def tie_programs(record: Record, store: JournalStore, compare: Compare) -> None:
    """Tie the files that programs changed to the actions that ran them, and to those that named them after.

    Args:
        record: of the same journal.
        store: the journal.
        compare: gives the difference between two snapshots, or why it is not known.

    Raises:
        JournalError: the journal cannot be read.
    """
    taken = await store.last(PAIRS, kind=ev.SnapshotTaken.kind)
    if not taken:
        return
    events = [event async for event in store.events(max(0, taken[0].seq - EARLIER), follow=False)]
    touched = {}
    for saved, after in _pairs(events):
        difference = await compare(saved.snapshot, after)
        if not isinstance(difference, str):
            touched[saved.ended] = difference
    for tie in _ties(events, touched):
        record.tie(tie.path, tie.writer, tie.readers, gone=tie.gone)


@dataclass(slots=True)
class _Tie:
    path: str
    writer: str
    gone: bool
    readers: list[str] = field(default_factory=list)


def _ties(events: Iterable[Event], touched: Mapping[str, Difference]) -> list[_Tie]:
    """Each file of each program, with the requests that named it until it was written again."""
    found: list[_Tie] = []
    now: dict[str, _Tie] = {}
    where: dict[str, str] = {}
    calls: dict[str, dict[str, Any]] = {}
    for event in events:
        if event.kind not in _KINDS:
            continue
        said, cwd = body_of(event), where.get(event.stream, ".")
        if event.kind == ev.ActionRequested.kind:
            calls[event.stream] = said
            for path in () if said.get("command") == "write" else set(paths_in(said.get("args"), cwd)):
                if path in now:
                    now[path].readers.append(event.ref)
        elif event.kind in _ENDS:
            _forget_written(now, calls.get(event.stream, {}), cwd)
            for tie in _changed(event.ref, touched.get(event.ref)):
                found.append(tie)
                now[tie.path] = tie
        session = said.get("session")
        if isinstance(session, dict) and isinstance(session.get("cwd"), str):
            where[event.stream] = session["cwd"]
    return found


def _changed(writer: str, difference: Difference | None) -> list[_Tie]:
    if difference is None:
        return []
    written = sorted({*difference.added, *difference.changed})[:PATHS]
    return [_Tie(path, writer, gone=False) for path in written] + [
        _Tie(path, writer, gone=True) for path in difference.removed[:PATHS]
    ]


def _forget_written(now: dict[str, _Tie], call: Mapping[str, Any], cwd: str) -> None:
    """A tool that writes a file by name has it on record; what stands on it then stands on that."""
    args = call.get("args")
    path = args.get("path") if isinstance(args, dict) and call.get("command") in WRITES else None
    if isinstance(path, str):
        now.pop(plain_path(path, cwd), None)


def _pairs(events: Iterable[Event]) -> list[tuple[_Saved, str]]:
    """Actions that changed the root, each with the snapshot after it."""
    calls: dict[tuple[str, str], str] = {}
    saved: _Saved | None = None
    pairs: list[tuple[_Saved, str]] = []
    for event in events:
        said = body_of(event) if event.kind in _KINDS else {}
        action = (event.stream, str(said.get("action", "")))
        if event.kind == ev.ActionRequested.kind:
            calls[action] = str(said.get("command", ""))
        elif event.kind == ev.SnapshotTaken.kind:
            snapshot = str(said.get("snapshot", ""))
            if saved is not None and saved.ended and saved.snapshot != snapshot:
                pairs.append((saved, snapshot))
            by_program = calls.get(action, "write") not in WRITES
            saved = _Saved(*action, snapshot) if by_program else None
        elif saved is not None and action == (saved.stream, saved.action):
            saved.ended = event.ref
    return pairs


_ENDS = frozenset((ev.ActionFinished.kind, ev.ActionCancelled.kind, ev.ActionOutcomeUnknown.kind))
_KINDS = _ENDS | {
    *(ev.ActionRequested.kind, ev.SnapshotTaken.kind, ev.WorldPerceived.kind, ev.ChangesSettled.kind)
}
"""What is read of the journal; the last two may change an agent's directory."""
