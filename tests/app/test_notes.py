"""An operator's note: in the journal, on the timeline, and in reports."""

from __future__ import annotations

from pathlib import Path

from app.cli.sessions import query_sessions
from app.commands.command_runner import run_command
from app.commands.headless import open_engine
from app.projection.event_lines import line_of
from engine.core import events as ev
from engine.core.streams import MarkKind


async def test_a_note_stands_in_the_journal_on_the_timeline_and_in_a_report(tmp_path: Path) -> None:
    await run_command(tmp_path, "agent_create bdi_agent pilot")
    code, _, text = await run_command(tmp_path, "note wrong branch from here")
    assert (code, text) == (0, "noted")
    async with open_engine(tmp_path) as engine:
        (event,) = await engine.store.last(1, "pilot", kind=ev.NoteAdded.kind)
        assert line_of(event).text == "note: wrong branch from here"
        assert event.actor.startswith("operator")
        marks = await engine.past("pilot").marks()
        assert [mark.kind for mark in marks if mark.version == event.version] == [MarkKind.OPERATOR]
    code, _, _ = await query_sessions(tmp_path, "report", "pilot", tmp_path / "report.md")
    assert code == 0
    assert "wrong branch from here" in (tmp_path / "report.md").read_text()


async def test_a_note_without_a_text_is_refused(tmp_path: Path) -> None:
    await run_command(tmp_path, "agent_create bdi_agent pilot")
    assert (await run_command(tmp_path, "note"))[::2] == (2, "the note is missing · usage: note TEXT")


async def test_notes_are_listed_with_their_events(tmp_path: Path) -> None:
    await run_command(tmp_path, "agent_create bdi_agent pilot")
    assert (await run_command(tmp_path, "notes"))[2] == "no notes yet; note TEXT makes one"
    await run_command(tmp_path, "note wrong branch from here")
    code, answer, text = await run_command(tmp_path, "notes")
    assert (code, answer["notes"][0]["text"]) == (0, "wrong branch from here")
    assert text.startswith(answer["notes"][0]["event"])
