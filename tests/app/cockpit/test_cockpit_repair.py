"""A journal that is not sound: the cockpit offers to look, to go back, and to go on."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from flight import cockpit

from app.cockpit.controllers import repair
from engine.core.ports import SystemClock
from engine.core.store.sqlite import SqliteJournal
from widgets.dialogs.questions import ReadableEventsDialog, UnsoundJournalDialog


async def broken(workspace: Path) -> int:
    """A workspace whose journal was changed at its third event; how many events it has."""
    async with cockpit(workspace) as flight:
        await flight.shows("pilot-1")
    with closing(sqlite3.connect(workspace / ".pilothouse" / "journal.db")) as connection:
        connection.execute("update events set at = '2020' where seq = 3")
        connection.commit()
        ((count,),) = connection.execute("select count(*) from events")
    return int(count)


@pytest.mark.parametrize(("key", "kind"), [("r", "journal.restored"), ("a", "journal.break_accepted")])
async def test_the_offers_are_made_and_done(tmp_path: Path, key: str, kind: str) -> None:
    count = await broken(tmp_path / "ws")
    async with cockpit(tmp_path / "ws", ready=False) as flight:
        await flight.dialog(UnsoundJournalDialog)
        await flight.shows("Its hash does not follow", "2 sound events")
        await flight.press("l")
        await flight.dialog(ReadableEventsDialog)
        await flight.shows("The newest 400 events that can be read")
        await flight.press("escape")
        await flight.dialog(UnsoundJournalDialog)
        await flight.press(key)
        await flight.until(lambda: flight.app.context.engine is not None)
    store = await SqliteJournal.open(tmp_path / "ws", clock=SystemClock(), read_only=True)
    (event,) = await store.last(1, kind=kind)
    await store.close()
    assert event.actor.startswith("operator:")
    assert event.seq == (3 if key == "r" else count + 1)


async def test_leaving_changes_nothing(tmp_path: Path) -> None:
    await broken(tmp_path / "ws")
    before = (tmp_path / "ws" / ".pilothouse" / "journal.db").read_bytes()
    async with cockpit(tmp_path / "ws", ready=False) as flight:
        await flight.dialog(UnsoundJournalDialog)
        await flight.press("escape")
        await flight.until(lambda: not flight.app.is_running)
        assert flight.app.return_code == 2
    assert (tmp_path / "ws" / ".pilothouse" / "journal.db").read_bytes() == before


async def test_all_of_a_damaged_journal_can_be_looked_at_page_by_page(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(repair, "LINES", 2)
    count = await broken(tmp_path / "ws")
    bad = count - 3
    with closing(sqlite3.connect(tmp_path / "ws" / ".pilothouse" / "journal.db")) as connection:
        connection.execute("update events set causes = 'x' where seq = ?", (bad,))
        connection.commit()
    async with cockpit(tmp_path / "ws", ready=False) as flight:
        await flight.dialog(UnsoundJournalDialog)
        await flight.press("l")
        await flight.shows("The newest 2 events")
        await flight.press("o")
        await flight.shows(f"Before place {count - 1}", f"seq {bad}", "cannot be read")
        await flight.press("o")
        await flight.shows(f"Before place {bad}")
        await flight.press("n")
        await flight.shows(f"Before place {count - 1}")
        await flight.press("n")
        await flight.shows("The newest 2 events")
        await flight.press("escape")
        await flight.dialog(UnsoundJournalDialog)
