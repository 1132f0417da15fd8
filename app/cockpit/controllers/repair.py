"""What is offered where the journal of the workspace is not what was written."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

from app.cockpit.context import CockpitContext
from app.projection.event_lines import line_of
from engine.api.closed_workspace import recorded
from engine.core.journal import Event, JournalError, JournalUnsound
from engine.core.ports import Ports
from engine.core.store.repair import repair
from engine.core.store.stored import StoredJournal
from engine.core.text import clean_line
from widgets.dialogs.questions import ReadableEventsDialog, UnsoundJournalDialog

LINES = 400
"""Events of a page."""


class Repair:
    """Offers to look at a journal, to go back, or to go on with the break."""

    def __init__(self, context: CockpitContext) -> None:
        self._context = context

    async def offer(self, error: JournalUnsound) -> bool:
        """Ask until the journal is repaired, or the operator leaves; whether it is repaired.

        Raises:
            JournalError: it cannot be repaired.
        """
        app, workspace = self._context.app, self._context.workspace
        place = error.event or "its beginning"
        while True:
            dialog = UnsoundJournalDialog(f"At {place}: {error.reason}", error.sound)
            way = await app.push_screen_wait(dialog)
            if way == "look":
                await self._look()
            elif way in ("restore", "accept"):
                operator, at = self._context.settings.operator, Ports().clock.now()
                await asyncio.to_thread(repair, workspace, accept=way == "accept", operator=operator, at=at)
                return True
            else:
                return False

    async def _look(self) -> None:
        """Show what can be read, page by page."""
        pages: list[int | None] = [None]
        while True:
            text, first = await _readable(self._context.workspace, pages[-1])
            way = await self._context.app.push_screen_wait(ReadableEventsDialog("What can be read", text))
            if way == "older" and first > 1:
                pages.append(first)
            elif way == "newer" and len(pages) > 1:
                pages.pop()
            elif way not in ("older", "newer"):
                return


async def _readable(workspace: Path, before: int | None) -> tuple[str, int]:
    """The newest events before a place that can be read, a line each, and the place of the first."""
    lines: list[str] = []
    first = 1
    try:
        async with recorded(workspace) as store:
            end = before if before is not None else await store.head_seq() + 1
            first = max(1, end - LINES)
            try:
                events = await store.last(LINES, before=end)
                first = events[0].seq if events else 1
            except JournalError:  # one of them cannot be read, so each is read by itself
                events = [event async for event in _one_by_one(store, range(first, end), lines)]
            lines += map(_line, events)
    except JournalError as error:
        lines.append(clean_line(str(error)))
    which = "The newest" if before is None else f"Before place {before:,}: the newest"
    return "\n".join([f"{which} {LINES} events that can be read", *(filter(None, lines) or ["none"])]), first


async def _one_by_one(store: StoredJournal, places: range, lines: list[str]) -> AsyncIterator[Event]:
    """The events at some places; in `lines`, those that cannot be read."""
    for place in places:
        try:
            if (event := await store.get(place)) is not None:
                yield event
        except JournalError:
            lines.append(f"seq {place:<12} cannot be read")


def _line(event: Event) -> str:
    try:
        line = line_of(event)
    except JournalError as error:
        return clean_line(f"{event.ref:<16} {error}")
    return f"{event.ref:<16} {line.plain()}" if line is not None else ""
