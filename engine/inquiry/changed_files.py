"""Which files each program changed: what its action's snapshot and the next one differ by.

What a tool writes by name is on record; what `run` or the operator's shell did to files is told by the next
snapshot (`SnapshotTaken.since`). The root is one for all agents, so where two acted at once the change is
that of the one whose snapshot came before it, and of nobody where one snapshot was for several. Source: spec
steering §3 idea 6 ("file change").
"""

from __future__ import annotations

from collections.abc import Iterable

from engine.inquiry.naming import Touched, body_of, texts
from engine.journal.event import Event
from engine.journal.events import SnapshotTaken


def touched_files(events: Iterable[Event]) -> dict[tuple[str, str], Touched]:
    """The files that actions changed without naming them, by stream and action."""
    found: dict[tuple[str, str], Touched] = {}
    for event in events:
        said = body_of(event) if event.kind == SnapshotTaken.kind else {}
        stream, _, action = str(said.get("since") or "").rpartition(":")
        if stream:
            found[stream, action] = Touched(
                tuple(texts(said.get("written"))), tuple(texts(said.get("removed")))
            )
    return found
