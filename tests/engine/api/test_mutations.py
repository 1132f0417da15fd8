"""Any damage to any file: a workspace opens, or is refused with offers; no event is lost, nothing runs."""

from __future__ import annotations

import asyncio
import io
import random
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from app.cli.sessions import archive_contents
from app.commands.headless import RunOptions, run_goal
from app.commands.settings import Settings
from engine.api.engine import Engine
from engine.core.agents import RunState
from engine.core.journal import JournalUnsound
from engine.core.ports import SystemClock
from engine.core.store.repair import repair
from engine.core.store.sqlite import SqliteJournal
from engine.core.store.verify import verify
from engine.inquiry import index_writer
from tests.rounds import rounds
from tests.trusting import trust_folder

ROUNDS = rounds(12, full=300)
CANARY = "precious"
PROGRAM = """import pathlib
(pathlib.Path.home() / "kept").write_text("x")
print("a long line of output\\n" * 400)
"""
KINDS = {
    *(f".pilothouse/{name}" for name in ("archives", "blobs", "journal.db", "lock", "memory.db", "index.db")),
    *(f".pilothouse/{name}.db.noted" for name in ("journal", "memory", "index")),
    *(f".pilothouse/snapshots/{name}" for name in ("objects", "snapshots", "lock", "stat-cache")),
    *("pilothouse.toml", "thresholds.toml", "mcp.json", "recipes/own.toml", "prompts/own.md"),
    *("sandbox/.home", "sandbox/a.txt", "leave.key"),
}
"""Kinds of files that are damaged; marks of trust besides."""
JOURNAL = (".pilothouse/journal.db", ".pilothouse/journal.db-wal")


@pytest.fixture(scope="module")
def bases(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A workspace that was closed, with every kind of file, and the same as a kill leaves it."""
    closed, killed = tmp_path_factory.mktemp("closed"), tmp_path_factory.mktemp("killed") / "w"
    asyncio.run(_make(closed, killed))
    return closed, killed


async def _make(closed: Path, killed: Path) -> None:
    (closed / "sandbox").mkdir()
    (closed / "sandbox" / "big.txt").write_text("line\n" * 40_000)
    (closed / "pilothouse.toml").write_text('[cockpit]\nnotify = "off"\n')
    (closed / "recipes").mkdir()
    (closed / "recipes" / "own.toml").write_text("")
    (closed / "prompts").mkdir()
    (closed / "prompts" / "own.md").write_text("Be short.")
    (closed / "thresholds.toml").write_text("")
    (closed / "mcp.json").write_text('{"mcpServers": {}}')
    (closed / "sandbox" / "p.py").write_text(PROGRAM)
    for goal in ("run python p.py", "read big.txt", "", "write hello to a.txt", "read big.txt"):
        if not goal:
            assert (await archive_contents(closed, days=0, target=None, dry=False))[0] == 0
            continue
        result = await run_goal(RunOptions(closed, goal), out=io.StringIO(), err=io.StringIO())
        assert result["status"] == "GOAL_ACHIEVED"
    engine = await Engine.open(closed, config=Settings.load(closed).engine_config())
    index = index_writer.JournalIndex(closed)
    await asyncio.to_thread(index._step, engine.store.last_seq + index_writer.AHEAD)
    await index.close()
    shutil.copytree(closed, killed, symlinks=True)
    await engine.close()


def events(database: Path) -> set[tuple[str, int, str, str]]:
    """What stands in a database, as far as it can be read."""
    try:
        with closing(sqlite3.connect(f"{database.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            return set(connection.execute("select stream, version, hash, body from events"))
    except sqlite3.Error:
        return set()


def grouped(workspace: Path, home: Path) -> dict[str, list[Path]]:
    """The files by their kind."""
    within = (path for top in (workspace, home) for path in top.rglob("*"))
    groups: dict[str, list[Path]] = {}
    for path in sorted(path for path in within if path.is_file() and not path.is_symlink()):
        parts = path.relative_to(workspace.parent).parts[1:]
        groups.setdefault("/".join(parts[:3] if parts[1:2] == ("snapshots",) else parts[:2]), []).append(path)
    return groups


def mutated(workspace: Path, home: Path, canary: Path, dice: random.Random) -> str:
    """Damage one file of a workspace, or of what its user keeps about it; what was done."""
    groups = grouped(workspace, home)
    files = [path for group in groups.values() for path in group]
    path = dice.choice(groups[dice.choice(sorted(groups))])
    how = dice.choice(["flip", "flip", "page", "truncate", "empty", "swap", "delete", "link", "dir", "mode"])
    content = bytearray(path.read_bytes())
    if how == "flip" and content:
        for _ in range(dice.choice([1, 1, 3, 50])):
            content[dice.randrange(len(content))] ^= 1 << dice.randrange(8)
        path.write_bytes(content)
    elif how == "page" and content:
        start = dice.randrange(len(content)) // 4096 * 4096
        content[start : start + 4096] = dice.randbytes(len(content[start : start + 4096]))
        path.write_bytes(content)
    elif how == "truncate" and content:
        path.write_bytes(content[: dice.randrange(len(content))])
    elif how == "swap":
        other = dice.choice(files)
        swapped = other.read_bytes()
        other.write_bytes(content)
        path.write_bytes(swapped)
        how = f"swap {other.relative_to(workspace.parent)}"
    elif how == "mode":
        path.chmod(dice.choice([0o000, 0o444, 0o777]))
    else:
        path.unlink()
        if how == "link":
            path.symlink_to(dice.choice([canary, canary.parent, path.name, "/dev/null", "none"]))
        elif how == "dir":
            path.mkdir()
        elif how == "empty":
            path.touch()
    return f"{how} {path.relative_to(workspace.parent)}"


async def opened_quietly(workspace: Path) -> set[tuple[str, int, str, str]]:
    """Open as an operator does; what the journal holds then. Nothing may run."""
    engine = await Engine.open(workspace, config=Settings.load(workspace).engine_config())
    try:
        for agent in engine.agents:
            if not engine.fault(agent):
                assert (await engine.view(agent)).run is not RunState.RUNNING
        await engine.memory.ready()
        check = await verify(engine.store)
        assert check.ok, check
    finally:
        await engine.close()
    return events(workspace / ".pilothouse" / "journal.db")


def kept_aside(workspace: Path) -> Iterator[Path]:
    return (path for path in (workspace / ".pilothouse").glob("journal.db*.aside-*") if path.is_file())


@pytest.mark.parametrize("part", range(4))
async def test_whatever_is_damaged_it_opens_or_is_refused_with_offers(bases, tmp_path, monkeypatch, part):
    outcomes: dict[str, int] = {}
    for number in range(part, ROUNDS, 4):
        dice = random.Random(f"mutations {number}")
        base = bases[dice.random() < 0.4]
        whole = events(bases[0] / ".pilothouse" / "journal.db")
        workspace, canary = tmp_path / f"w{number}", tmp_path / f"canary{number}" / "file"
        canary.parent.mkdir()
        canary.write_text(CANARY)
        shutil.copytree(base, workspace, symlinks=True)
        durable = whole if base is bases[0] else await _durable(base, tmp_path / f"c{number}")
        home = tmp_path / f"home{number}"
        monkeypatch.setenv("PILOTHOUSE_HOME", str(home))
        trust_folder(workspace)
        assert grouped(workspace, home).keys() >= KINDS
        what = f"{number}: {mutated(workspace, home, canary, dice)}"
        readable = events(workspace / ".pilothouse" / "journal.db") & durable
        outcome = "opened"
        try:
            now = await opened_quietly(workspace)
        except JournalUnsound as error:
            outcome, offers = "refused", str(error)
            accept = dice.random() < 0.7
            repair(workspace, accept=accept, operator="me", at="2026-11-26T12:00:00.000000Z")
            now = await opened_quietly(workspace)
            now |= {event for aside in kept_aside(workspace) for event in events(aside)}
            missing = [offer for offer in ("--restore", "--accept-break") if offer not in offers]
            assert not missing, what
        assert readable <= now, f"{what}: {len(readable - now)} events that could be read are gone"
        if not any(name in what for name in JOURNAL):
            assert durable <= now, f"{what}: {len(durable - now)} events are gone"
            assert outcome == "opened" or "noted" in what, what
        assert canary.read_text() == CANARY, what
        assert [path.name for path in canary.parent.iterdir()] == ["file"], what
        outcomes[outcome] = outcomes.get(outcome, 0) + 1
        shutil.rmtree(workspace)
    print(outcomes)


async def _durable(base: Path, copy: Path) -> set[tuple[str, int, str, str]]:
    """What a killed workspace holds, its log included."""
    shutil.copytree(base, copy, symlinks=True)
    store = await SqliteJournal.open(copy, clock=SystemClock())
    await store.close()
    return events(copy / ".pilothouse" / "journal.db")
