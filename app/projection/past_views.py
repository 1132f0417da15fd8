"""View models of the past: the timeline, and the status line of a state that is no longer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from app.lines import line_of
from engine.domain.state import AgentState
from engine.domain.text import clean_line
from engine.journal.event import Event
from engine.journal.past import Mark
from widgets.status_bar import StatusModel
from widgets.timeline import TimelineMark, TimelineModel


def timeline(marks: Sequence[Mark], event: Event, head: int) -> TimelineModel:
    """The timeline with the place of an event on it.

    Args:
        marks: of the agent's stream, oldest first.
        event: what is looked at.
        head: the newest version of the stream.
    """
    line = line_of(event)
    words = f"{line.glyph} {line.text}" if line is not None else event.kind
    place = sum(mark.version <= event.version for mark in marks)
    return TimelineModel(
        marks=tuple(TimelineMark(_part(mark.version, head), mark.kind.value) for mark in marks),
        place=_part(event.version, head),
        label=clean_line(f"{event.at[11:19]} {event.ref} {words}"),
        count=f"{place}/{len(marks)}",
    )


def _part(version: int, head: int) -> float:
    return (version - 1) / (head - 1) if head > 1 else 0.0


def status(model: StatusModel, past: AgentState, head: int) -> StatusModel:
    """The status line of a past state: that it is one, which, and how far now is ahead.

    Args:
        model: the status line as that state would have had it.
        past: the state.
        head: the version that the agent has come to by now.
    """
    ahead = head - past.version
    point = f"event {past.version} · {past.at[11:19]} · now is {ahead} event{'s' * (ahead != 1)} ahead"
    return replace(model, mode="PAST", point=point, asks=False)
