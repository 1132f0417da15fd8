"""Redaction: contents go from everywhere, and the journal stays verifiable and replays."""

from __future__ import annotations

import asyncio
import io
import sqlite3
from pathlib import Path

import pytest

from app.cli.sessions import query_sessions, redact_contents
from app.commands.headless import RunOptions, run_goal
from engine.api.redaction import Pattern, RedactionError, redact
from engine.core.journal import Event
from engine.core.ports import SystemClock
from engine.core.store.sqlite import SqliteJournal

SECRET = "hunter2-s3cr3t-XYZ"
PROGRAM = """import sys, time
print("pw hunter2-s3", end="", flush=True)
time.sleep(1.2)
print("cr3t-XYZ end")
"""


async def run(workspace: Path, goal: str) -> str:
    result = await run_goal(RunOptions(workspace, goal), out=io.StringIO(), err=io.StringIO())
    return str(result["status"])


async def events(workspace: Path) -> list[Event]:
    store = await SqliteJournal.open(workspace, clock=SystemClock(), read_only=True)
    try:
        return [event async for event in store.events()]
    finally:
        await store.close()


def holding(workspace: Path) -> list[str]:
    files = (path for path in workspace.rglob("*") if path.is_file())
    return [str(path.relative_to(workspace)) for path in files if SECRET.encode() in path.read_bytes()]


async def test_a_secret_goes_from_journal_blobs_snapshots_and_memory_and_the_chain_stays(tmp_path):
    sandbox = tmp_path / "sandbox"
    sandbox.mkdir()
    (sandbox / "a.txt").write_text("x\n" * 20_000 + f"password {SECRET}\n" + "y\n" * 20_000)
    (sandbox / "p.py").write_text(PROGRAM)
    for goal in ("read a.txt", "run python p.py", f"write {SECRET} to b.txt"):
        assert await run(tmp_path, goal) == "GOAL_ACHIEVED"
    for file in ("a.txt", "b.txt"):
        (sandbox / file).unlink()
    before = await events(tmp_path)
    places = {name.split("/")[1] for name in holding(tmp_path)}
    assert places == {"journal.db", "memory.db", "blobs", "snapshots"}

    code, answer, _ = await redact_contents(tmp_path, SECRET, dry=False)

    assert code == 0
    assert not answer["still"]
    assert holding(tmp_path) == []
    after = await events(tmp_path)
    assert [event.hash for event in after[: len(before)]] == [event.hash for event in before]
    assert after[-1].kind == "journal.redacted"
    assert "cr3t-XYZ" not in "".join(event.body for event in after)
    code, answer, words = await query_sessions(tmp_path, "verify", "")
    assert (code, answer["redacted"]) == (0, len([1 for a, b in zip(before, after, strict=False) if a != b]))
    assert "are redacted" in words
    code, answer, words = await query_sessions(tmp_path, "replay", "")
    assert code == 0, words
    assert await run(tmp_path, "list the files") == "GOAL_ACHIEVED"


async def test_what_stands_in_the_place_of_contents_is_sealed(tmp_path):
    assert await run(tmp_path, f"write {SECRET} to b.txt") == "GOAL_ACHIEVED"
    await redact_contents(tmp_path, SECRET, dry=False)
    with sqlite3.connect(tmp_path / ".pilothouse" / "journal.db") as connection:
        changed = connection.execute("update events set body = replace(body, '[4', '[5')").rowcount
        changed += connection.execute("update events set body = replace(body, 'b.txt', 'c.txt')").rowcount
    assert changed

    assert (await query_sessions(tmp_path, "verify", ""))[0] == 1


async def test_a_pattern_that_the_journal_needs_to_be_read_changes_nothing(tmp_path):
    assert await run(tmp_path, "list the files") == "GOAL_ACHIEVED"
    before = await events(tmp_path)

    with pytest.raises(RedactionError, match="needs to be read"):
        await asyncio.to_thread(redact, tmp_path, Pattern("completed"), operator="me", at="2026")

    assert await events(tmp_path) == before


@pytest.mark.parametrize("text", ["", "abc", "*secret", "a*b*c*d-long-enough", "ab*cd"])
def test_a_pattern_that_would_hit_what_is_not_meant_is_refused(text):
    with pytest.raises(RedactionError, match="PATTERN needs"):
        Pattern(text)


@pytest.mark.parametrize(
    ("pattern", "text", "left"),
    [
        ("sk-ant-*", "key sk-ant-api03-abc end", "key ["),
        ('pass"word\\1', 'x pass"word\\1 y', "x ["),
        ('pass"word\\1', 'x pass\\"word\\\\1 y', "x ["),
        ("Schlüssel1", "x Schl\\u00fcssel1 y", "x ["),
    ],
)
def test_a_pattern_matches_as_it_is_and_as_it_stands_in_json(pattern, text, left):
    redacted = Pattern(pattern).replaced(text)

    assert redacted.startswith(left)
    assert len(redacted) == len(text)
    assert redacted[-1] == text[-1]
    assert not Pattern(pattern).is_in(redacted.encode())
