"""What holds for every test."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiosqlite
import pytest
import textual.app
import textual.pilot
import textual.screen
from hypothesis import HealthCheck, settings
from textual.css.model import RuleSet
from textual.css.stylesheet import Stylesheet

from engine.core.store import JOURNAL
from tests.postgres_server import PostgresServer, left_out
from tests.settling import settled

# Under `nohup` or from a script, ctrl+c may be ignored here; programs that tests start would take that over.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
signal.pthread_sigmask(signal.SIG_SETMASK, ())

# Programs that tests start keep their marks of trust here, and not with the person who runs the tests.
HOME = tempfile.mkdtemp(prefix="pilothouse-home-")
os.environ["PILOTHOUSE_HOME"] = HOME
os.environ["XDG_RUNTIME_DIR"] = HOME  # and their engines answer here


def pytest_unconfigure() -> None:
    """The user's directory goes with the tests; a journal that a failed test left open holds no process."""
    for left in gc.get_objects():
        if isinstance(left, aiosqlite.Connection):
            left.stop()
    shutil.rmtree(HOME, ignore_errors=True)


# How long an example takes is the machine's affair, and no test asserts it.
settings.register_profile("house", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("house")


TESTS = Path(__file__).parent
FAST = tuple(
    TESTS / name
    for name in (
        *("compatibility", "engine/agent/reasoner", "engine/agent/steering", "engine/bdi", "engine/core"),
        *(
            "engine/crew/ontology",
            "engine/crew/selection",
            "engine/inquiry",
            "engine/memory",
            "engine/models",
        ),
        *("engine/planning", "engine/tools"),
    )
)
"""Directories that make the fast part (`make test-fast`), without their slow tests."""


BOTH_JOURNALS = tuple(
    TESTS / name
    for name in (
        *("engine/core", "engine/memory", "engine/agent/test_fold.py", "engine/agent/test_replay.py"),
        *("engine/agent/test_memory_of_the_engine.py", "engine/agent/test_memory_in_plans.py"),
        *("engine/agent/test_rewinding.py", "engine/agent/test_forking.py", "engine/crew/test_fold.py"),
    )
)
"""What runs on a journal in a file and, where it was asked for, on one in PostgreSQL."""


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """A part of the suite does not even import the other directories."""
    parts = {"fast": FAST, "postgres": (*BOTH_JOURNALS, TESTS / "app")}.get(config.option.markexpr, ())
    if not parts or not collection_path.is_dir():
        return None
    near = any(part.is_relative_to(collection_path) or collection_path.is_relative_to(part) for part in parts)
    return None if near or collection_path == TESTS else True


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files with slow tests come first, so that no worker begins one when the others are done."""
    fast = {path for path in {item.path for item in items} if any(path.is_relative_to(top) for top in FAST)}
    for item in items:
        if item.get_closest_marker("postgres") and (why := left_out()):
            item.add_marker(pytest.mark.skip(reason=why))
        if item.path in fast and not item.get_closest_marker("slow"):
            item.add_marker("fast")
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)


os.environ["PILOTHOUSE_NO_TOUR"] = "1"  # for programs that tests start, too
# As often as the cockpit itself draws: sixty frames a second show the same things with more work.
textual.screen.UPDATE_PERIOD = 1 / 25
textual.app.wait_for_idle = textual.pilot.wait_for_idle = settled  # type: ignore[attr-defined]


_parsed: dict[tuple[object, ...], list[RuleSet]] = {}
_parse = Stylesheet._parse_rules


def _parse_once(sheet: Stylesheet, *args: Any, **more: Any) -> list[RuleSet]:
    """The rules of a style sheet, parsed once for all apps of this process and not by each of them again."""
    key = (*args, *sorted(more.items()), frozenset(sheet._variables.items()))
    if key not in _parsed:
        _parsed[key] = _parse(sheet, *args, **more)
    return _parsed[key]


Stylesheet._parse_rules = _parse_once  # type: ignore[method-assign]

# Python looks after each 700, and a cockpit that opens makes two hundred times as many.
gc.set_threshold(200_000, 20)


def pytest_collection_finish() -> None:
    """What collecting made stays until the end: garbage is not looked for among it again and again."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _no_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test asks the model of the person who runs the tests."""
    for name in list(os.environ):
        if name.startswith(("ANTHROPIC_", "OPENAI_", "PILOTHOUSE_MODEL")):
            monkeypatch.delenv(name)


# ------------------------------------------------------------------ journals in PostgreSQL


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """What runs on both kinds of journal has a second run for PostgreSQL, where that was asked for."""
    path = metafunc.definition.path
    both = any(path.is_relative_to(place) for place in BOTH_JOURNALS)
    if both and not metafunc.definition.get_closest_marker("only_in_a_file") and not left_out():
        places = ["file", pytest.param("postgres", marks=pytest.mark.postgres)]
        metafunc.parametrize("journal_place", places, indirect=True)


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """One server for all tests; each workspace has a schema of its own there."""
    if why := left_out():
        pytest.skip(why)
    server = PostgresServer("fsync=off", "max_connections=200")
    try:
        yield server.start()
    finally:
        server.remove()


@pytest.fixture(autouse=True)
def journal_place(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Where workspaces that the test opens have their journals."""
    place = getattr(request, "param", "file")
    if place == "postgres":
        monkeypatch.setenv(JOURNAL, request.getfixturevalue("postgres").url)
    else:
        monkeypatch.delenv(JOURNAL, raising=False)
    return str(place)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say what was left out, however little is printed."""
    if why := left_out():
        terminalreporter.write_line(f"left out: what is kept in PostgreSQL ({why})", yellow=True)
