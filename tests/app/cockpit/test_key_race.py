"""Keys typed faster than what they open: none is lost and none reaches anything else, on a crowded machine.

Each race types its keys one after the other without looking, raw as a terminal without the kitty protocol
sends them, then enters a note by the command bar. Keys keep their order, so once the journal has that note
letter by letter, all before it was done; what was recorded is compared with what the keys mean.
"""

from __future__ import annotations

import json
import os
import pkgutil
import sqlite3
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from fcntl import ioctl
from importlib import import_module
from pathlib import Path
from termios import TIOCSWINSZ
from typing import Any

import pytest

import widgets.dialogs
from engine.core.store.schema import read_only_uri
from tests.patience import PATIENCE_S
from tests.pseudo_terminal import Cockpit
from tests.rounds import rounds
from widgets.base.dialog import BoxDialog, ListDialog, RowsDialog

ESC, ENTER = "\x1b", "\r"
DELAYS_S = (0.0, 0.02, 0.05)


@dataclass(frozen=True)
class Race:
    """Keys that open a dialog and go on in it, and close it in the end."""

    keys: tuple[str, ...]
    records: tuple[str, ...] = ()
    """Commands that they mean, in order: the name of each and what of it is to be seen."""
    shows: str = ""
    """What is printed meanwhile in any case, such as the dialog's title."""


RACES: dict[str, Race] = {
    "command bar": Race((":", "note quick", ENTER), ("add_note quick",)),
    "BreakpointsDialog": Race(
        ("B", "I", "tool run", ENTER, "B", "D", ESC),
        ("set_break tool run", "change_break True"),
        "Breakpoints",
    ),
    "BudgetsDialog": Race(("$", ENTER, "7", ENTER, "q"), ("set_budget 7.0",), "Budgets"),
    "PlanApprovalDialog": Race(("V", "y"), ("accept_plan g1",), "Accept the plan"),
    "StopDialog": Race(("X", "2", "q"), ("stop hold",), "Stop pilot-1"),
    "InterventionDialog": Race(
        ("i", "h", "by hand", ESC, ESC), ("intervene", "hand_back"), "Manual intervention"
    ),
    "StepEditor": Race(("e", "{", ESC, ESC), (), "Edit s"),
    "ConfirmDialog": Race(("x", "u", "y"), ("skip_step", "undo"), "Please confirm"),
    "RewindDialog": Race(("[", "R", "n", "\x1b[F"), (), "leave it"),
    "MetaDialog": Race(("m", "v", "q"), ("veto_meta",), "veto"),
    "MemoryBrowser": Race(("M", "/", "words", ESC, "q"), (), "Memory of"),
    "ContextDialog": Race(("c", "q"), (), "Context of"),
    "WhyDialog": Race(("w", "f", "q"), (), "causes"),
    "SearchDialog": Race(("/", "mkdir", ENTER, "q"), (), "Search everything"),
    "InboxDialog": Race(("A", "q"), (), "what needs you"),
    "HelpDialog": Race(("?", "/", "zoom", ENTER, "q"), (), " Help "),
    "GuideScreen": Race(("\x1bOP", "\x1b[B", ESC), (), "The first hour"),
    "palette": Race(("\x10", "recap", ESC), (), "earch for commands"),
    "FleetDialog": Race(("F", "/", "pilot", ENTER, ESC, ESC), (), "Fleet"),
    "HandoffsDialog": Race(("H", "f", "q"), (), "Handoffs"),
    "BacklogDialog": Race(("L", "P", "n", "q"), (), "Work the whole backlog"),
    "JobsDialog": Race(("T", "L", "q"), (), "Backlog"),
    "CampaignDialog": Race(("C", ESC), (), "no campaign"),
    "SelectionDialog": Race((":", "select plan a trip", ENTER, ESC), (), "enter hands it over"),
    "PreviewDialog": Race((":", "note seen", "\x0f", ENTER), ("add_note seen",), "nothing is done yet"),
    "TextDialog": Race((":", "notes", ENTER, "q"), (), "Your notes"),
    "ComparisonDialog": Race((":", "compare 2 5", ENTER, "q"), (), ""),
    "HandBackDialog": Race(
        ("t", "echo hi", "\x1d", "a note", ENTER),
        ("take_shell", "return_shell a note"),
        "Hand the shell back",
    ),
}
"""By what opens."""
ELSEWHERE = {
    "open before the cockpit, which their own tests fly": {
        *("NoJailDialog", "UnsoundJournalDialog", "ReadableEventsDialog", "TrustDialog")
    },
    "open by themselves, and are deaf at first": {
        *("ApprovalDialog", "GeneratedPlansDialog", "HandoverDialog", "PermissionDialog")
    },
    "open over several engines, which their own tests fly": {"ShardsDialog"},
    "open over another dialog, or by a line": {"PictureDialog", "ThemesDialog"},
    "need agents that are at work": {"LeaveDialog", "SessionDialog", "BuilderDialog", "WriteDialog"},
}
"""Dialogs without a race, and why."""
GROUPS = [list(RACES)[at::2] for at in range(2)]
SEEN = {
    "add_note": "text",
    "set_budget": "usd",
    "set_break": "line",
    "change_break": "cleared",
    "stop": "grade",
    "accept_plan": "goal",
    "return_shell": "note",
}
"""What of a command is compared, besides its name."""


SLOW_S = 0.5
"""Between two keys, so that what each opens is drawn."""


@pytest.fixture
def crowd() -> Iterator[None]:
    """Two busy processes a core, with those that run other tests at the same time."""
    others = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", 1)) - 1
    count = max(0, 2 * (os.cpu_count() or 1) - others)
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    yield
    for process in busy:
        process.kill()
        process.wait()


class Racer:
    """A cockpit into which keys are typed without looking, and what its journal has of them."""

    def __init__(self, workspace: Path) -> None:
        self._journal = workspace / ".pilothouse" / "journal.db"
        self.cockpit = Cockpit(workspace, "--mission", "first-flight")
        self.cockpit.shows(b"held", b"first_flight", b"shows all keys")
        self._notes = 0

    def type(self, keys: tuple[str, ...], delay_s: float = 0.0, *, resizes: bool = False) -> None:
        """Type keys, each at once or after a time; nothing is waited for."""
        for key in keys:
            for stroke in (key,) if key.startswith(ESC) else key:
                os.write(self.cockpit._screen.fd, stroke.encode())
                time.sleep(delay_s)
            for columns, lines in ((40, 10), (100, 30)) if resizes else ():
                ioctl(self.cockpit._screen.fd, TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
                time.sleep(0.05)

    def race(self, race: Race, delay_s: float, *, resizes: bool = False) -> tuple[list[str], bool]:
        """What was recorded of a race, and whether it was seen.

        Args:
            race: its keys.
            delay_s: between two of them.
            resizes: whether the terminal becomes small and large again behind each key.
        """
        since, self._notes = self._last(), self._notes + 1
        note = f"round {self._notes} is over"
        self.cockpit.press(b"")
        self.type((*race.keys, ":", f"note {note}"), delay_s, resizes=resizes)
        self.type((ENTER,))
        end = time.monotonic() + PATIENCE_S
        while (recorded := self._recorded(since))[-1:] != [f"add_note {note}"]:
            if time.monotonic() > end:
                raise AssertionError(f"lost after {recorded}: {self.cockpit._seen[-3000:]!r}")
            time.sleep(0.02)
        seen = race.shows.encode() in self.cockpit._seen
        if "return_shell" in " ".join(recorded):
            self._tell_the_agent(since)
        return recorded[:-1], seen

    def _tell_the_agent(self, since: int) -> None:
        """Answer what opens by itself after a shell was handed back, once it takes keys."""
        self.cockpit.shows(b"What is the agent to know?")
        while "settle_changes" not in self._recorded(since):
            self.type((ENTER,))
            time.sleep(0.2)

    def _last(self) -> int:
        return int(self._rows("select max(seq) from events")[0][0])

    def _recorded(self, since: int) -> list[str]:
        sql = "select body from events where seq > ? and kind like '%command.received' order by seq"
        return [_words(json.loads(body)["command"]) for (body,) in self._rows(sql, since)]

    def _rows(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(read_only_uri(self._journal), uri=True)) as journal:
            return journal.execute(sql, values).fetchall()


def _words(command: dict[str, Any]) -> str:
    name = str(command["do"])
    return f"{name} {command.get(SEEN.get(name, ''), '')}".strip()


@pytest.fixture
def racer(tmp_path: Path) -> Iterator[Racer]:
    racer = Racer(tmp_path / "ws")
    yield racer
    racer.cockpit.end()


@pytest.mark.slow
@pytest.mark.parametrize("names", GROUPS, ids=["even", "odd"])
def test_no_key_is_lost_or_reaches_anything_else(names: list[str], racer: Racer, crowd: None) -> None:
    for number in range(rounds(1, full=8)):
        for at, name in enumerate(names):
            delay_s = DELAYS_S[(number + at) % 3]
            recorded, seen = racer.race(RACES[name], delay_s)
            assert recorded == list(RACES[name].records), (name, delay_s)
            if not seen:  # on a busy machine it may have been closed before it was drawn
                recorded, seen = racer.race(RACES[name], SLOW_S)
                assert recorded == list(RACES[name].records), (name, SLOW_S)
            assert seen, f"{name} never showed '{RACES[name].shows}'"


@pytest.mark.slow
@pytest.mark.parametrize("names", GROUPS, ids=["even", "odd"])
def test_a_terminal_that_becomes_small_and_large_again_keeps_what_is_typed(
    names: list[str], racer: Racer
) -> None:
    for name in names[: rounds(6, full=len(names))]:
        recorded, _ = racer.race(RACES[name], 0.0, resizes=True)
        assert recorded == list(RACES[name].records), name


def _below(kind: type[Any]) -> Iterator[type[Any]]:
    for each in kind.__subclasses__():
        yield each
        yield from _below(each)


def test_every_dialog_has_a_race() -> None:
    for module in pkgutil.iter_modules(widgets.dialogs.__path__):
        import_module(f"widgets.dialogs.{module.name}")
    dialogs = set(_below(BoxDialog))
    names = {kind.__name__ for kind in dialogs - {ListDialog, RowsDialog} if kind.__module__[:7] == "widgets"}
    assert not names - set(RACES) - set().union(*ELSEWHERE.values())
