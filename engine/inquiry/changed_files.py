"""Which files each program changed: the difference of the snapshots before it and before the next action.

What a tool writes by name is on record; what `run` or the operator's shell did to files is not. The root is
one for all agents, so where two acted at once the change is that of the one whose snapshot came before it.
Source: spec steering §3 idea 6 ("file change"), issue "Steering" item 7.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

from engine.inquiry.naming import WRITES, Touched, body_of
from engine.journal import events as ev
from engine.journal.event import Event

PAIRS = 400
"""Pairs of snapshots that are compared at most, the newest."""
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


async def touched_files(events: Iterable[Event], compare: Compare) -> dict[str, Touched]:
    """The files that programs changed, by the event with which their action ended.

    Args:
        events: of all streams, in their order.
        compare: gives the difference between two snapshots, or why it is not known.
    """
    found: dict[str, Touched] = {}
    for saved, after in _pairs(events)[-PAIRS:]:
        difference = await compare(saved.snapshot, after)
        if not isinstance(difference, str):
            written = sorted({*difference.added, *difference.changed})[:PATHS]
            found[saved.ended] = Touched(tuple(written), tuple(difference.removed[:PATHS]))
    return found


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
            named = calls.get(action, "") in WRITES
            saved = None if named else _Saved(*action, snapshot)
        elif saved is not None and action == (saved.stream, saved.action):
            saved.ended = event.ref
    return pairs


_ENDS = frozenset((ev.ActionFinished.kind, ev.ActionCancelled.kind, ev.ActionOutcomeUnknown.kind))
_KINDS = _ENDS | {ev.ActionRequested.kind, ev.SnapshotTaken.kind}
