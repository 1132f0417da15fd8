"""Damaged journals: caches give way, and nothing is built upon what is not sound without the operator."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from engine.core import events as ev
from engine.core.journal import WORKSPACE, Event, JournalUnsound
from engine.core.ports import SystemClock
from engine.core.store.places import is_untouched, set_aside
from engine.core.store.repair import repair
from engine.core.store.sqlite import SqliteJournal
from engine.core.store.verify import Verification, verify
from engine.core.streams import StreamLog, restore

CLOCK = SystemClock()
AT = "2026-11-26T12:00:00.000000Z"


@pytest.fixture
async def workspace(tmp_path: Path) -> Path:
    """A workspace with an agent of 41 events, whose state is kept."""
    store = await SqliteJournal.open(tmp_path, clock=CLOCK)
    about = StreamLog(WORKSPACE, 0, "", CLOCK, store.commit)
    about.append(ev.WorkspaceCreated(workspace="w"), actor="system", causes=(), tick=0)
    log = StreamLog("a", 0, "", CLOCK, store.commit)
    created = ev.AgentCreated(agent_id="a", agent_type="bdi_agent", description="", config=ev.AgentConfig())
    log.append(created, actor="operator:me", causes=(), tick=0)
    for number in range(40):
        log.append(ev.NoteAdded(text=f"note {number}"), actor="operator:me", causes=(), tick=0)
    await about.commit()
    await log.commit()
    await store.save_snapshot("a", 41, 1, "state")
    await store.close()
    return tmp_path


def database(workspace: Path) -> Path:
    return workspace / ".pilothouse" / "journal.db"


def change(workspace: Path, *statements: str) -> None:
    with closing(sqlite3.connect(database(workspace))) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()


async def opened(workspace: Path) -> tuple[Verification, list[Event], tuple[str, ...]]:
    store = await SqliteJournal.open(workspace, clock=CLOCK)
    try:
        return await verify(store), [event async for event in store.events()], store.notes
    finally:
        await store.close()


async def test_a_kept_state_that_is_no_text_is_passed_over(workspace):
    change(workspace, "update snapshots set state = cast(x'ff00' as text)")

    store = await SqliteJournal.open(workspace, clock=CLOCK)
    state, _ = await restore(store, "a")

    assert state.version == 41
    await store.close()


async def test_damage_beside_the_events_is_put_right_and_told(workspace):
    change(workspace, "pragma writable_schema = on", "delete from sqlite_schema where name = 'snapshots'")

    check, events, notes = await opened(workspace)

    assert check.ok
    assert len(events) == 42
    assert "all 42 are in a new file" in notes[0]


async def test_an_unsound_journal_is_not_built_upon_and_the_offers_are_named(workspace):
    change(workspace, "update events set body = '{}' where stream = 'a' and version = 7")
    before = database(workspace).read_bytes()

    with pytest.raises(JournalUnsound) as unsound:
        await opened(workspace)

    assert unsound.value.event == "a:7"
    assert all(offer in str(unsound.value) for offer in ("sessions verify", "--restore", "--accept-break"))
    assert database(workspace).read_bytes() == before


async def test_a_restored_journal_has_the_sound_events_and_keeps_the_old_file(workspace):
    change(workspace, "update events set body = '{}' where stream = 'a' and version = 7")
    old = database(workspace).read_bytes()

    _, done = repair(workspace, accept=False, operator="me", at=AT)
    check, events, _ = await opened(workspace)

    assert check.ok
    assert [event.ref for event in events][-2:] == ["a:6", "workspace:2"]
    assert (events[-1].kind, events[-1].actor) == ("journal.restored", "operator:me")
    assert done.left == 35
    assert (database(workspace).parent / done.kept).read_bytes() == old


async def test_an_accepted_break_keeps_what_can_be_read_and_is_signed(workspace):
    change(workspace, """update events set body = replace(body, 'note', 'fake') where seq = 10""")

    repair(workspace, accept=True, operator="me", at=AT)
    check, events, _ = await opened(workspace)

    assert check.ok
    assert "accepted by operator:me" in check.accepted
    assert len(events) == 43
    change(workspace, """update events set body = replace(body, 'note', 'fake') where seq = 20""")
    with pytest.raises(JournalUnsound, match="changed since"):
        await opened(workspace)


@pytest.mark.parametrize("lost", ["empty", "missing", "directory", "link"])
async def test_a_lost_journal_does_not_become_a_new_one_by_itself(workspace, lost):
    path = database(workspace)
    path.rename(path.with_name("elsewhere"))
    if lost == "empty":
        path.touch()
    elif lost == "directory":
        path.mkdir()
    elif lost == "link":
        path.symlink_to("elsewhere")

    with pytest.raises(JournalUnsound, match="accept-break"):
        await opened(workspace)
    repair(workspace, accept=True, operator="me", at=AT)

    check, events, _ = await opened(workspace)
    assert check.ok
    assert [event.kind for event in events] == ["workspace.created", "journal.break_accepted"]


async def test_a_log_that_is_missing_after_a_kill_is_noticed(tmp_path, workspace):
    store = await SqliteJournal.open(workspace, clock=CLOCK)
    for name in ("journal.db", "journal.db.noted"):
        place = tmp_path / "killed" / ".pilothouse" / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes((workspace / ".pilothouse" / name).read_bytes())
    await store.close()

    with pytest.raises(JournalUnsound, match="log is missing"):
        await opened(tmp_path / "killed")


async def test_nothing_is_written_through_a_link_in_the_place_of_the_lock(tmp_path, workspace):
    (tmp_path / "mine").write_text("precious")
    lock = workspace / ".pilothouse" / "lock"
    lock.unlink()
    lock.symlink_to(tmp_path / "mine")

    assert (await opened(workspace))[0].ok

    assert (tmp_path / "mine").read_text() == "precious"


async def test_blobs_are_not_kept_behind_a_link(tmp_path, workspace):
    (tmp_path / "elsewhere").mkdir()
    (workspace / ".pilothouse" / "blobs").symlink_to(tmp_path / "elsewhere")

    _, _, notes = await opened(workspace)

    assert "blobs was no directory" in notes[0]
    assert not (workspace / ".pilothouse" / "blobs").is_symlink()


async def test_a_file_that_was_changed_since_it_was_closed_is_known(workspace):
    path = database(workspace)
    assert is_untouched(path) is True
    content = path.read_bytes()
    times = path.stat()
    path.write_bytes(content)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert is_untouched(path) is False
    assert set_aside(path).read_bytes() == content
