"""What is offered where the journal of the workspace is not what was written."""

from __future__ import annotations

import asyncio
from pathlib import Path

from app.cockpit.context import CockpitContext
from app.projection.event_lines import line_of
from engine.core.journal import JournalError, JournalUnsound
from engine.core.ports import Ports
from engine.core.store.repair import repair
from engine.core.store.sqlite import SqliteJournal
from engine.core.text import clean_line
from widgets.base.dialog import TextDialog
from widgets.dialogs.damage import UnsoundJournalDialog

LINES = 400
"""Newest events that are shown."""


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
                await app.push_screen_wait(TextDialog("What can be read", await _readable(workspace)))
            elif way in ("restore", "accept"):
                operator, at = self._context.settings.operator, Ports().clock.now()
                await asyncio.to_thread(repair, workspace, accept=way == "accept", operator=operator, at=at)
                return True
            else:
                return False


async def _readable(workspace: Path) -> str:
    """The newest events that can be read, a line each."""
    lines: list[str] = []
    try:
        store = await SqliteJournal.open(workspace, clock=Ports().clock, read_only=True)
        try:
            for event in await store.last(LINES):
                try:
                    line = line_of(event)
                except JournalError as error:
                    lines.append(clean_line(f"{event.ref:<16} {error}"))
                    continue
                if line is not None:
                    lines.append(f"{event.ref:<16} {line.plain()}")
        finally:
            await store.close()
    except JournalError as error:
        lines.append(clean_line(str(error)))
    return "\n".join([f"The newest {LINES} events that can be read", *(lines or ["none"])])
