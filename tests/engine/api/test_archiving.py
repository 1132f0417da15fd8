"""Old contents go into a file and come back byte for byte; the journal is sound at every moment."""

from __future__ import annotations

import asyncio
import shutil
import signal
import sqlite3
import sys
import zipfile
from contextlib import closing
from pathlib import Path

import pytest

from app.cli.sessions import archive_contents, query_sessions, redact_contents
from app.commands.settings import Settings
from engine.api.archiving import ArchiveError, live_bytes
from engine.api.engine import Engine
from engine.core import events as ev
from engine.core.actions import ResultStatus
from engine.core.fold import dump_state, fold
from engine.core.journal import WORKSPACE, JournalUnsound
from engine.core.ports import SystemClock
from engine.core.store.blobs import BlobStore
from engine.core.store.repair import repair
from engine.core.store.sqlite import SqliteJournal
from engine.core.store.verify import verify
from engine.core.streams import StreamLog

CLOCK = SystemClock()
SECRET = "hunter2-s3cr3t-XYZ"
WHOLE = b'{"content":"' + b"whole answer " * 400 + b'"}'
REQUEST = {"model": "m", "messages": [{"role": "user", "content": "a long prompt " * 60}]}


class OldClock(SystemClock):
    """A clock that is years late."""

    def now(self) -> str:
        return "2020-01-02T03:04:05.000000Z"


async def fill(workspace: Path, outputs: int = 30) -> Path:
    """A journal of long ago, with outputs, a model's call and a large answer."""
    store = await SqliteJournal.open(workspace, clock=CLOCK)
    about = StreamLog(WORKSPACE, 0, "", OldClock(), store.commit)
    about.append(ev.WorkspaceCreated(workspace="w"), actor="system", causes=(), tick=0)
    log = StreamLog("a", 0, "", OldClock(), store.commit)
    created = ev.AgentCreated(agent_id="a", agent_type="bdi_agent", description="", config=ev.AgentConfig())
    log.append(created, actor="operator:me", causes=(), tick=0)
    for number in range(outputs):
        text = f"{SECRET} line {number} ü\n" * 30
        log.append(ev.ActionOutput(action="a1", stream="stdout", text=text), actor="agent", causes=(), tick=0)
    answer = {"content": [{"type": "text", "text": "said " * 200}], "usage": {"output_tokens": 7}}
    called = ev.ModelCalled(model="m", request=REQUEST, answer=answer, tokens=9)
    log.append(called, actor="agent", causes=(), tick=0)
    blob = await BlobStore(workspace / ".pilothouse" / "blobs").put(WHOLE)
    finished = ev.ActionFinished(action="a1", status=ResultStatus.SUCCESS, result={"content": "…"}, blob=blob)
    log.append(finished, actor="agent", causes=(), tick=0)
    await about.commit()
    await log.commit()
    await store.close()
    return workspace


def rows(workspace: Path) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(workspace / ".pilothouse" / "journal.db")) as database:
        return database.execute("select * from events order by seq").fetchall()


def bulk(workspace: Path) -> dict[str, bytes]:
    store = BlobStore(workspace / ".pilothouse" / "blobs")
    return {path.name: path.read_bytes() for path in store.files()}


def archives(workspace: Path) -> list[Path]:
    return sorted((workspace / ".pilothouse" / "archives").glob("*.zip"))


async def state(workspace: Path) -> str:
    store = await SqliteJournal.open(workspace, clock=CLOCK, read_only=True)
    try:
        return dump_state(fold(await store.read("a")))
    finally:
        await store.close()


async def archive(workspace: Path, **more: object) -> str:
    chosen = {"days": 0, "target": None, "dry": False, **more}
    code, _, words = await archive_contents(workspace, **chosen)  # type: ignore[arg-type]
    assert code == 0, words
    return words


async def test_contents_go_into_one_file_and_come_back_byte_for_byte(tmp_path):
    await fill(tmp_path)
    before, blobs, folded = rows(tmp_path), bulk(tmp_path), await state(tmp_path)
    sound = (await query_sessions(tmp_path, "verify", ""))[1]["head"]

    assert "31 events, 1 blob (" in await archive(tmp_path, dry=True)
    assert rows(tmp_path) == before
    words = await archive(tmp_path)

    (file,) = archives(tmp_path)
    now = rows(tmp_path)
    assert "31 events, 1 blob (" in words
    assert [row[-1] for row in now[: len(before)]] == [row[-1] for row in before]
    assert sum(f"[archived in {file.name}]" in str(row[8]) for row in now) == 31
    assert bulk(tmp_path) == {}
    assert await state(tmp_path) == folded
    code, answer, words = await query_sessions(tmp_path, "verify", "")
    assert (code, answer["archived"]) == (0, {file.name: 31})
    assert f"31 events archived in {file.name}, sound" in words
    assert BlobStore(tmp_path / ".pilothouse" / "blobs").read(next(iter(blobs))) == WHOLE
    assert "nothing to archive" in await archive(tmp_path)

    moved = file.rename(tmp_path / "elsewhere.zip")
    assert "is not in .pilothouse/archives" in (await query_sessions(tmp_path, "verify", ""))[2]
    await archive(tmp_path, source=moved)

    assert rows(tmp_path)[: len(before)] == before
    assert bulk(tmp_path) == blobs
    code, answer, _ = await query_sessions(tmp_path, "verify", "")
    assert (code, "archived" in answer) == (0, False)
    assert answer["head"] != sound
    assert "31 events" in await archive(tmp_path, target=tmp_path / "again.zip")


async def test_what_stands_in_the_place_of_archived_contents_is_sealed(tmp_path):
    await fill(tmp_path)
    await archive(tmp_path)
    with closing(sqlite3.connect(tmp_path / ".pilothouse" / "journal.db")) as database:
        database.execute("update events set body = replace(body, '[archived', '[archivex') where seq = 10")
        database.commit()

    code, answer, _ = await query_sessions(tmp_path, "verify", "")

    assert (code, answer["first_bad"]) == (1, "a:9")
    with pytest.raises(JournalUnsound):
        await archive(tmp_path)


async def test_a_damaged_answer_stays_where_it_is(tmp_path):
    await fill(tmp_path)
    (blob,) = BlobStore(tmp_path / ".pilothouse" / "blobs").files()
    blob.write_bytes(WHOLE[:-1])

    assert "31 events, 0 blobs" in await archive(tmp_path)

    assert blob.read_bytes() == WHOLE[:-1]


async def test_what_was_accepted_with_a_break_stays_as_it_was_accepted(tmp_path):
    await fill(tmp_path)
    with closing(sqlite3.connect(tmp_path / ".pilothouse" / "journal.db")) as database:
        database.execute("update events set body = replace(body, 'line 3', 'line 4') where seq = 6")
        database.commit()
    repair(tmp_path, accept=True, operator="me", at="2020-02-02T00:00:00.000000Z")

    assert "nothing to archive" in await archive(tmp_path)

    assert (await query_sessions(tmp_path, "verify", ""))[0] == 0


@pytest.mark.parametrize("how", ["flip", "cut", "of another journal", "other body", "more", "no zip", "bomb"])
async def test_no_other_file_is_restored_and_nothing_is_changed(tmp_path, how):
    work = await fill(tmp_path / "work")
    await archive(work)
    (file,) = archives(work)
    bad = tmp_path / "bad.zip"
    if how == "flip":
        content = bytearray(file.read_bytes())
        content[len(content) // 3] ^= 1
        bad.write_bytes(content)
    elif how == "cut":
        bad.write_bytes(file.read_bytes()[:-100])
    elif how == "no zip":
        bad.write_text("no zip")
    elif how == "of another journal":
        await archive(await fill(tmp_path / "other", 31), target=bad)
    else:
        with zipfile.ZipFile(file) as old, zipfile.ZipFile(bad, "w", zipfile.ZIP_DEFLATED) as new:
            for info in old.infolist():
                content = old.read(info)
                if how == "other body" and info.filename == "events.jsonl":
                    content = content.replace(b"line 3", b"line 4")
                if how == "bomb" and info.filename == "manifest.json":
                    content = b" " * (300 << 20)
                new.writestr(info.filename, content)
            if how == "more":
                new.writestr("../../evil", "x")
    before = rows(work)

    with pytest.raises(ArchiveError):
        await archive(work, source=bad)

    assert rows(work) == before
    assert bulk(work) == {}
    assert not (tmp_path / "evil").exists()


async def test_what_was_redacted_does_not_come_back_and_archives_are_named(tmp_path):
    await fill(tmp_path)
    (tmp_path / ".pilothouse" / "archives").mkdir()
    log = "operator wrote " + SECRET
    store = await SqliteJournal.open(tmp_path, clock=CLOCK)
    stream = StreamLog("a", *await store.head("a"), OldClock(), store.commit)
    stream.append(ev.NoteAdded(text=log), actor="operator:me", causes=(), tick=0)
    await stream.commit()
    await store.close()
    await archive(tmp_path)
    (file,) = archives(tmp_path)

    _, answer, _ = await redact_contents(tmp_path, SECRET, dry=False)
    assert answer["still"] == [f".pilothouse/archives/{file.name}"]
    _, answer, _ = await redact_contents(tmp_path, f"archived in {file.name}", dry=False)
    assert answer["events"] == 31
    code, answer, _ = await archive_contents(tmp_path, days=0, target=None, dry=False, source=file)

    assert (code, answer["events"], answer["left"]) == (0, 0, 31)
    assert SECRET not in str(rows(tmp_path))
    assert (await query_sessions(tmp_path, "verify", ""))[0] == 0


CHILD = """
import asyncio, os, signal, sys
from pathlib import Path
from app.cli.sessions import archive_contents
from engine.api import archiving
from engine.core.store.blobs import BlobStore
from engine.core.store.repair import repair
from engine.core.store.sqlite import SqliteJournal

workspace, owner, name, nth, source = sys.argv[1:]
archiving.AT_ONCE = archiving.RESTORED_AT_ONCE = 8
owner = {"journal": SqliteJournal, "blobs": BlobStore, "path": Path}[owner]
wrapped, left = getattr(owner, name), int(nth)

def dies(*args, **kwargs):
    global left
    left -= 1
    if not left:
        os.kill(os.getpid(), signal.SIGKILL)
    return wrapped(*args, **kwargs)

setattr(owner, name, dies)
source = Path(source) if source else None
asyncio.run(archive_contents(Path(workspace), days=0, target=None, dry=False, source=source))
"""
STEPS = [
    *(("path", "chmod", 1), ("path", "replace", 2), ("journal", "commit", 1), ("journal", "commit", 3)),
    *(("journal", "replace_bodies", 1), ("journal", "replace_bodies", 2), ("blobs", "remove", 1)),
    ("journal", "shrink", 1),
]
RESTORING = [("path", "replace", 2), ("journal", "replace_bodies", 1), ("journal", "replace_bodies", 3)]
RESTORING += [("journal", "commit", 1)]


@pytest.mark.parametrize("restoring", [False, True])
async def test_a_kill_at_any_step_loses_nothing(tmp_path, restoring):
    base = await fill(tmp_path / "base")
    before, blobs = rows(base), bulk(base)
    if restoring:
        await archive(base)
    killed = 0
    steps = RESTORING if restoring else STEPS
    for number, (owner, name, nth) in enumerate(steps):
        work = tmp_path / f"w{number}"
        shutil.copytree(base, work)
        source = str(archives(work)[0]) if restoring else ""
        arguments = (str(work), owner, name, str(nth), source)
        child = await asyncio.create_subprocess_exec(
            sys.executable, "-c", CHILD, *arguments, stderr=asyncio.subprocess.DEVNULL
        )
        killed += await child.wait() == -signal.SIGKILL

        store = await SqliteJournal.open(work, clock=CLOCK)
        check = await verify(store, BlobStore(work / ".pilothouse" / "blobs"))
        await store.close()
        assert check.ok, (owner, name, nth, check)
        for file in archives(work):
            await archive(work, source=file)
        assert rows(work)[: len(before)] == before, (owner, name, nth)
        assert bulk(work) == blobs
        await archive(work, target=tmp_path / f"{number}.zip")
        assert not list((work / ".pilothouse" / "archives").glob(".*"))
        shutil.rmtree(work)
    assert killed == len(steps)


@pytest.mark.parametrize("text", ["days = 30", "journal_mb = 1", ""])
async def test_it_is_archived_by_itself_where_the_settings_say_so(tmp_path, text):
    await fill(tmp_path, 1500)
    (tmp_path / "pilothouse.toml").write_text(f"[keeping]\n{text}\n")
    settings = Settings.load(tmp_path)
    assert (settings.keep_days, settings.journal_mb) == (None, None), "a folder that is not trusted says so"
    assert settings.trust is not None
    settings = Settings.load(tmp_path, trust=settings.trust.digest)
    engine = await Engine.open(tmp_path, config=settings.engine_config())
    try:
        while text and not engine.archived:
            await asyncio.sleep(0.02)
        assert bool(engine.archived) is bool(text)
        assert any("archived in" in each for each in engine.health.states) is bool(text)
        assert (await verify(engine.store, engine.blobs)).ok
    finally:
        await engine.close()
    if text == "journal_mb = 1":
        path = tmp_path / ".pilothouse" / "journal.db"
        size = path.stat().st_size
        assert live_bytes(path, BlobStore(tmp_path / ".pilothouse" / "blobs")) < 1_000_000 < size
        assert "nothing to archive" in await archive(tmp_path, days=36_500)
        assert path.stat().st_size < size / 2
    whole = sum("line 1" in str(row[8]) for row in rows(tmp_path))
    assert whole == {"days = 30": 0, "": 611}.get(text, whole)
    assert len(archives(tmp_path)) == bool(text)
