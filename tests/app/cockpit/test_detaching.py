"""Cockpits that let go of an engine, lose their terminal, and operate the engine of another process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from app.gateways.addresses import addresses_of, read_record
from tests.patience import PATIENCE_S
from tests.pseudo_terminal import Cockpit

PROGRAM = """
import time
with open("ticks", "a") as file:
    for _ in range({n}):
        print("x", end="", file=file, flush=True)
        time.sleep(0.5)
    file.write(".")
"""


def pilothouse(workspace: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "app.cli", *words, "--workspace", str(workspace)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE_S)


def until(holds: Callable[[], object], what: str) -> None:
    end = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < end, f"never came true: {what}"
        time.sleep(0.05)


def alive(pid: int) -> bool:
    """Whether a process is there; one that nobody waits for may stay as a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def kind_of_engine(workspace: Path) -> str:
    records = map(read_record, addresses_of(workspace))
    return next((record.kind for record in records if record is not None), "")


def ticks(workspace: Path) -> str:
    file = workspace / "sandbox" / "ticks"
    return file.read_text() if file.exists() else ""


def notes(workspace: Path) -> list[str]:
    done = pilothouse(workspace, "do", "notes", "--json")
    return [note["text"] for note in json.loads(done.stdout.splitlines()[-1])["notes"]]


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("PILOTHOUSE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "none"))
    place = tmp_path / "ws"
    yield place
    pilothouse(place, "serve", "--stop")


def at_work(workspace: Path, count: int = 8) -> Cockpit:
    """A cockpit whose agent runs a program that ticks twice a second."""
    (workspace / "sandbox").mkdir(parents=True)
    (workspace / "sandbox" / "ticking.py").write_text(PROGRAM.format(n=count))
    cockpit = Cockpit(workspace)
    cockpit.shows(b"press : and type")
    cockpit.enter("! run python ticking.py")
    until(lambda: ticks(workspace), "the program")
    return cockpit


def ended_well(workspace: Path, count: int = 8) -> None:
    """The program came to its end, once, and the journal has its success."""
    until(lambda: ticks(workspace).endswith("."), "the end of the program")
    assert ticks(workspace) == "x" * count + "."

    def finished() -> bool:
        done = pilothouse(workspace, "do", "status", "--json")
        return '"acting": true' not in done.stdout

    until(finished, "the end of the action")
    done = pilothouse(workspace, "search", "kind:action", "--json")
    assert "OUTCOME_UNKNOWN" not in done.stdout


def test_a_program_goes_on_after_detaching_and_attach_shows_its_end(workspace: Path) -> None:
    cockpit = at_work(workspace)
    cockpit.press(b"\x11")
    cockpit.shows(b"leave agents running")
    engine = cockpit.pid
    cockpit.press(b"l")
    cockpit.shows(b"the agents go on in process")
    assert cockpit.end(0) == 0
    assert kind_of_engine(workspace) == "serve"
    os.kill(engine, signal.SIGCONT)  # as a shell or an operator may: the terminal is not taken again
    ended_well(workspace)
    os.kill(engine, 0)
    again = Cockpit(workspace, "attach")
    again.shows(b"attached", b"ticking.py", b"exit 0")
    again.press(b"\x11")
    until(lambda: again.ended, "the end of the attached cockpit")
    assert again.end(0) == 0
    os.kill(engine, 0)
    assert pilothouse(workspace, "serve", "--stop").returncode == 0


@pytest.mark.parametrize("lost", ["terminal", "launcher"])
def test_a_program_goes_on_where_the_terminal_is_lost(workspace: Path, lost: str) -> None:
    cockpit = at_work(workspace)
    if lost == "terminal":
        cockpit.close_terminal()
    else:
        os.kill(cockpit.launcher, signal.SIGKILL)
    until(lambda: kind_of_engine(workspace) == "serve", "the engine going on")
    ended_well(workspace)
    cockpit.end(0)


def test_a_setting_ends_the_engine_with_its_terminal(workspace: Path, tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "pilothouse.toml").write_text('[serve]\non_lost = "close"\n')
    cockpit = at_work(workspace, count=60)
    engine = cockpit.pid
    os.kill(cockpit.launcher, signal.SIGKILL)
    until(lambda: not alive(engine), "the end of the engine")
    assert len(ticks(workspace)) < 60
    cockpit.end(0)


def test_nothing_of_the_engine_ends_with_an_attached_cockpit_that_is_killed(workspace: Path) -> None:
    done = pilothouse(workspace, "do", "agent_create bdi_agent pilot-1")
    assert done.returncode == 0, done.stderr
    (workspace / "sandbox" / "ticking.py").write_text(PROGRAM.format(n=8))
    assert pilothouse(workspace, "serve", "--background").returncode == 0
    cockpit = Cockpit(workspace)
    cockpit.shows(b"attached")
    cockpit.enter("! run python ticking.py")
    until(lambda: ticks(workspace), "the program")
    assert cockpit.end(signal.SIGKILL) == -signal.SIGKILL
    ended_well(workspace)


def test_a_lost_engine_is_said_and_the_next_one_is_followed_without_a_gap(workspace: Path) -> None:
    pilothouse(workspace, "do", "agent_create bdi_agent pilot-1")
    served = pilothouse(workspace, "serve", "--background")
    cockpit = Cockpit(workspace, "attach")
    cockpit.shows(b"attached")
    os.kill(int(served.stdout.partition("process ")[2].partition(")")[0]), signal.SIGKILL)
    cockpit.shows(b"connection lost")
    cockpit.press(b"")
    assert pilothouse(workspace, "do", "note unseen").returncode == 0
    assert pilothouse(workspace, "serve", "--background").returncode == 0
    cockpit.shows(b"attached", b"unseen")
    cockpit.enter("note and now")
    until(lambda: notes(workspace) == ["unseen", "and now"], "both notes")
    cockpit.end(signal.SIGTERM)


def test_who_only_watches_sends_nothing(workspace: Path) -> None:
    pilothouse(workspace, "do", "agent_create bdi_agent pilot-1")
    pilothouse(workspace, "serve", "--background")
    cockpit = Cockpit(workspace, "attach", "--read-only")
    cockpit.shows(b"watching", b"PAUSED")
    for limit_s in (10.0, PATIENCE_S):  # what the cockpit itself says while it opens may take its place
        cockpit.enter("note not sent")
        with suppress(*[TimeoutError] if limit_s < PATIENCE_S else []):
            cockpit.shows(b"only watches", limit_s=limit_s)
            break
    assert notes(workspace) == []
    cockpit.end(signal.SIGTERM)


def test_attach_without_an_engine_says_so(workspace: Path) -> None:
    workspace.mkdir()
    cockpit = Cockpit(workspace, "attach")
    cockpit.shows(b"no engine has")
    until(lambda: cockpit.ended, "the end of the cockpit")
    assert cockpit.end(0) == 2
