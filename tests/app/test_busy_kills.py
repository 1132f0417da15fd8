"""`kill -9` of a program whose agent is at work: nothing durable is lost, nothing is repeated or left behind.

Each action appends its own number to a file, which witnesses what ran. At the moment of the kill the program
stands still (SIGSTOP), so that what is durable and what is in flight then is known from outside.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import pytest

from app.gateways.engine_client import EngineClient, EngineLostError
from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.store.schema import read_only_uri
from tests import forking
from tests.engine.agent.kill_flight import journal_of
from tests.patience import PATIENCE_S
from tests.pseudo_terminal import Cockpit
from tests.rounds import rounds

AGENT = "pilot-1"
MARK = """import sys, time
open("witness", "a").write(sys.argv[1] + "\\n")
time.sleep(float(sys.argv[2]))
"""
AT_WORK_S = 0.4
"""How long an action takes, most of which it is in flight."""
KEY_EVERY_S = 3.0
LIVES = 25
"""Kills of one workspace; several keep the journals short, so that checking is cheap."""
Durable = frozenset[tuple[str, int, str]]
"""Stream, version and hash of each event."""


@dataclass
class Tally:
    """What many kills came to; each of them was checked."""

    kills: int = 0
    in_flight: int = 0
    durable: int = 0


@dataclass
class Killed:
    """One workspace whose program is killed again and again."""

    workspace: Path
    dice: random.Random
    tally: Tally
    number: int = 0
    """The last mark that was given out."""
    unknown: str = ""
    """The action that was in flight at the last kill."""

    def make(self) -> None:
        """Make the workspace and its agent."""
        (self.workspace / "sandbox").mkdir(parents=True)
        (self.workspace / "sandbox" / "mark.py").write_text(MARK)
        self.do(f"agent_create bdi_agent {AGENT}")

    def do(self, line: str) -> str:
        """`pilothouse do`; what it wrote."""
        done = forking.run(forking.CLI, "do", line, "--workspace", str(self.workspace), cwd=self.workspace)
        assert "Traceback" not in done.stderr, done.stderr
        return done.stdout + done.stderr

    def marks_to_come(self) -> int:
        """How many marks there are at the next kill."""
        return len(self.witnessed) + self.dice.randint(1, 3)

    def goal(self) -> str:
        """A goal of five actions, each with a mark of its own."""
        marks = range(self.number + 1, self.number + 6)
        self.number = marks[-1]
        return ", ".join(f"run 'python mark.py {mark} {AT_WORK_S}'" for mark in marks)

    @property
    def witnessed(self) -> list[str]:
        """The marks that were made."""
        file = self.workspace / "sandbox" / "witness"
        return file.read_text().splitlines() if file.exists() else []

    def durable(self) -> tuple[Durable, set[str]]:
        """What another process reads in the journal now, and the actions in flight."""
        uri = read_only_uri(self.workspace / ".pilothouse" / "journal.db")
        with closing(sqlite3.connect(uri, uri=True, timeout=PATIENCE_S)) as journal:
            events = frozenset(journal.execute("select stream, version, hash from events"))
            flown = "select json_extract(body, '$.action') from events where stream = ? and kind in ({})"
            began = set(journal.execute(flown.format("'action.started'"), (AGENT,)))
            ended = journal.execute(
                flown.format("'action.finished', 'action.outcome_unknown'"), (AGENT,)
            ).fetchall()
        return events, {action for (action,) in began.difference(ended)}

    def set_running(self, cockpit: Cockpit) -> None:
        """Skip what is unknown and let the agent run, by keys; again where they came too early."""
        before = self.count(ev.AgentResumed.kind)
        for _ in range(int(PATIENCE_S / KEY_EVERY_S)):
            if self.unknown:
                cockpit.press(b"x")
                time.sleep(0.5)
            cockpit.press(b" ")
            end = time.monotonic() + KEY_EVERY_S
            while time.monotonic() < end:
                if self.count(ev.AgentResumed.kind) > before:
                    return
                time.sleep(0.02)
        cockpit.shows(b"the agent at work", limit_s=0)

    def count(self, kind: str) -> int:
        """Durable events of a kind."""
        uri = read_only_uri(self.workspace / ".pilothouse" / "journal.db")
        with closing(sqlite3.connect(uri, uri=True, timeout=PATIENCE_S)) as journal:
            counted = journal.execute("select count(*) from events where kind = ?", (kind,)).fetchone()
            return int(counted[0])

    def kill(
        self,
        pid: int,
        marks: int,
        killed: Callable[[], int],
        seen: Callable[[], Durable],
        err: Path | None = None,
    ) -> None:
        """Kill the program once so many marks were made, while its agent is at work; check what it left."""
        until(lambda: len(self.witnessed) >= marks or not alive(pid), "an action's mark")
        assert alive(pid), f"it ended: {err.read_text() if err is not None else ''}"
        time.sleep(self.dice.uniform(0, AT_WORK_S))  # the moment of the kill is what is tried here
        os.kill(pid, signal.SIGSTOP)
        until(lambda: state_of(pid) in "tTZ", "the program standing still")
        durable, in_flight = self.durable()
        left = descendants(pid)
        assert killed() == -signal.SIGKILL
        durable |= seen()
        until(lambda: not any(started(each) == when for each, when in left.items()), f"the end of {left}")
        events = asyncio.run(journal_of(self.workspace))
        kept = {(event.stream, event.version, event.hash) for event in events}
        assert durable <= kept, f"lost: {sorted(durable - kept)[:5]}"
        assert len(in_flight) <= 1
        (self.unknown,) = in_flight or ("",)
        self.nothing_is_repeated()
        self.tally.kills += 1
        self.tally.in_flight += bool(in_flight)
        self.tally.durable += len(durable)

    def nothing_is_repeated(self) -> None:
        """No mark was made twice, whatever happened since the workspace was made."""
        twice = [mark for mark, times in Counter(self.witnessed).items() if times > 1]
        assert not twice, f"made twice: {twice}"


def until(holds: Callable[[], object], what: str) -> None:
    """Wait until something holds."""
    end = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < end, f"never came true: {what}"
        time.sleep(0.01)


def _stat(pid: int) -> list[str]:
    """State, parent and so on of a process, from its third field; empty where there is none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def state_of(pid: int) -> str:
    """Its state as one letter; `Z` where it has ended."""
    return (_stat(pid) or ["Z"])[0]


def alive(pid: int) -> bool:
    return state_of(pid) != "Z"


def started(pid: int) -> str:
    """When a living process began, which tells it from another one of the same number."""
    stat = _stat(pid)
    return stat[19] if stat and stat[0] != "Z" else ""


def descendants(pid: int) -> dict[int, str]:
    """All processes below one, with when each began."""
    parents = {
        int(name): int((_stat(int(name)) or [0, 0])[1]) for name in os.listdir("/proc") if name.isdigit()
    }
    below, found = {pid}, dict[int, str]()
    while new := {child for child, parent in parents.items() if parent in below} - below:
        below |= new
        found |= {child: started(child) for child in new}
    return {child: when for child, when in found.items() if when}


def places(root: Path, kills: int, seed: int) -> tuple[Tally, list[Killed]]:
    """So many kills, on workspaces of their own each few."""
    tally, found = Tally(), list[Killed]()
    for number in range(kills):
        if number % LIVES == 0:
            found.append(Killed(root / f"w{number}", random.Random(seed + number), tally))
            found[-1].make()
        else:
            found.append(found[-1])
    return tally, found


def checked(tally: Tally, kills: int) -> None:
    print(tally)
    assert tally.kills == kills
    assert 2 * tally.in_flight >= kills, "too few actions were in flight"


@pytest.mark.slow
def test_a_busy_cockpit_that_is_killed_loses_and_repeats_nothing(tmp_path: Path) -> None:
    kills = rounds(2, full=250)
    tally, lives = places(tmp_path, kills, 20261126)
    for life in lives:
        life.do(f"goal {life.goal()}")
        marks = life.marks_to_come()
        cockpit = Cockpit(life.workspace)
        try:
            cockpit.shows(b"6 Mind", AGENT.encode(), *([b"unknown"] if life.unknown else []))
            cockpit.press(b"\x1b")
            life.set_running(cockpit)
            life.kill(cockpit.pid, marks, cockpit.end, frozenset)
        finally:
            cockpit.end()
    checked(tally, kills)


class Printed:
    """The events that a run prints, which are durable by then."""

    def __init__(self, pipe: IO[bytes]) -> None:
        self._lines = list[bytes]()
        self._reader = threading.Thread(target=lambda: self._lines.extend(pipe), daemon=True)
        self._reader.start()

    def events(self) -> Durable:
        """All of them, once the program has ended."""
        self._reader.join(PATIENCE_S)
        whole = [json.loads(line) for line in self._lines if line.endswith(b"\n")]
        places = ((*event["ref"].rsplit(":", 1), event["hash"]) for event in whole)
        return frozenset((stream, int(version), digest) for stream, version, digest in places)


@pytest.mark.slow
def test_a_busy_run_that_is_killed_loses_and_repeats_nothing(tmp_path: Path) -> None:
    kills = rounds(2, full=250)
    tally, lives = places(tmp_path, kills, 20261127)
    for life in lives:
        if life.unknown:
            assert "unknown" in life.do("status")
            life.do("skip")
        reading, writing = os.pipe()
        words = ("run", life.goal(), "--events", "--workspace", str(life.workspace))
        err = tmp_path / "err"
        with open(os.devnull, "rb") as nothing, err.open("wb") as said, os.fdopen(reading, "rb") as pipe:
            files = (nothing.fileno(), writing, said.fileno())
            run = forking.start(forking.CLI, *words, cwd=life.workspace, files=files)
            os.close(writing)
            printed = Printed(pipe)

            def killed(run: forking.Forked = run) -> int:
                run.kill()
                return run.wait()

            try:
                life.kill(run.pid, life.marks_to_come(), killed, printed.events, err)
            finally:
                run.kill()
    checked(tally, kills)


class Followed:
    """The events that a client of an engine sees, until that ends."""

    def __init__(self, workspace: Path) -> None:
        self._workspace, self._seen = workspace, set[tuple[str, int, str]]()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._follow()), daemon=True)
        self._thread.start()

    async def _follow(self) -> None:
        client = await EngineClient.open(self._workspace, watch=True)
        assert client is not None
        with suppress(EngineLostError):
            async for event in client.events():
                self._seen.add((event.stream, event.version, event.hash))
        await client.close()

    def events(self) -> Durable:
        """All of them, once the engine has ended."""
        self._thread.join(PATIENCE_S)
        assert self._seen
        return frozenset(self._seen)


async def _set_running(workspace: Path) -> None:
    client = await EngineClient.open(workspace)
    assert client is not None
    receipt = await client.submit(cmd.Run(agent=AGENT))
    assert receipt.ok, receipt.message
    await client.close()


@pytest.mark.slow
def test_a_busy_engine_that_is_killed_loses_nothing_that_a_client_saw(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PILOTHOUSE_HOME", str(tmp_path / "home"))
    kills = rounds(2, full=200)
    tally, lives = places(tmp_path, kills, 20261128)
    for life in lives:
        reading, writing = os.pipe()
        err = tmp_path / "err"
        with open(os.devnull, "rb") as nothing, err.open("wb") as said, os.fdopen(reading, "rb") as pipe:
            files = (nothing.fileno(), writing, said.fileno())
            serve = forking.start(
                forking.CLI, "serve", "--workspace", str(life.workspace), cwd=life.workspace, files=files
            )
            os.close(writing)

            def killed(serve: forking.Forked = serve) -> int:
                serve.kill()
                return serve.wait()

            try:
                assert pipe.readline().startswith(b"serving"), err.read_text()
                if life.unknown:
                    assert "unknown" in life.do("status")
                    life.do("skip")
                followed, marks = Followed(life.workspace), life.marks_to_come()
                life.do(f"goal {life.goal()}")
                asyncio.run(_set_running(life.workspace))
                life.kill(serve.pid, marks, killed, followed.events, err)
            finally:
                serve.kill()
    checked(tally, kills)
