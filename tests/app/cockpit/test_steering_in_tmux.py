"""Features of steering that no story flies, by keys and lines in a real terminal; the guide lists all."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest
from tmux_terminal import NEEDS_TMUX, Terminal

from engine.agent.shared import EngineConfig
from engine.core import commands as cmd
from engine.core.ports import SystemClock
from engine.models.choice import ModelChoice
from engine.models.endpoint import Endpoint
from tests.engine.agent.engine_flight import Flight, act
from tests.messages_server import Reply, Seen, serving
from tests.trusting import trust_folder
from widgets.base.dialog import DEAF_S

pytestmark = [*NEEDS_TMUX, pytest.mark.slow]

MODEL = "claude-sonnet-5-5"
WAIT = "python -c 'import time; time.sleep(1000)'"
LINES = (
    ("break tool write path=*.toml when errors > 2 once", "breakpoint b1"),
    ("break error *", "breakpoint b2"),
    ("break result Traceback", "breakpoint b3"),
    ("break every 50", "breakpoint b4"),
    ("break goal failed", "breakpoint b5"),
    ("budget usd 5 actions 40", "budget: "),
    ("budget actions +10", "50 actions"),
    ("edit {0} write b.txt changed", "edited"),
    ("insert before {1} mkdir src", "inserted"),
    ("move {2} down", "moved"),
    ("result {3} done by hand", "by hand"),
    ("skip {4}", "skipped"),
    ("delete {6}", "deleted"),
    ("believe sky blue", "sky believed"),
    ("undo", "Undo: no longer believe sky"),
    ("allow always run command='git *'", "from now on run"),
    ("revoke r1", "holds no longer"),
    ("approvals ask-changes", "asked before whatever changes something"),
    ("note from here on it works by hand", "noted"),
)
"""Lines, and what the bar says after each."""
VIEWS = (
    ("breaks", "Breakpoints of pilot"),
    ("budget", "actions"),
    ("policy", "network"),
    ("rules", "rule"),
    ("drift", "plan"),
    ("status", "PAUSED"),
    ("search changed", "changed"),
)
"""Lines that show something, and what."""
KEYS = (
    ("B", "Breakpoints of pilot"),
    ("$", "actions"),
    ("P", "network"),
    ("m", "reflect"),
    ("A", "Inbox"),
    ("F", "agents"),
    ("w", "why"),
    ("/", "Search"),
    ("?", "Run exactly one action"),
)
"""The same by keys."""


async def prepared(workspace: Path, url: str = "") -> list[str]:
    """An agent with a plan, paused; or one that asks a model."""
    config = EngineConfig(model=ModelChoice(Endpoint(url), MODEL)) if url else EngineConfig()
    flight = Flight(workspace, SystemClock(), config)
    await flight.open()
    await flight.do(cmd.CreateAgent)
    ids: list[str] = []
    if url:
        await flight.do(cmd.AdoptGoal, text="make the shop ready")
    else:
        steps = [act("write", path=f"{name}.txt", content=name) for name in "abcdef"]
        ids = await flight.plan(*steps, act("run", command=WAIT), act("write", path="end.txt", content="end"))
    await flight.engine.close()
    return ids[1:]


def enter(terminal: Terminal, line: str, *sees: str) -> None:
    """Type a line into the bar."""
    terminal.keys(":")
    terminal.type(line)
    terminal.shows(line[-20:])
    terminal.keys("Enter")
    terminal.shows(*sees)


def leave(terminal: Terminal) -> None:
    """Close what is open, and leave the bar."""
    for _ in range(2):
        terminal.keys("Escape")
        time.sleep(DEAF_S)  # an escape and a key at once are another key
    terminal.until(lambda: "esc" not in terminal.screen, "no dialog")


def stop(terminal: Terminal, key: str, *sees: str) -> None:
    """Stop by a grade of the panel."""
    terminal.keys("X")
    terminal.shows("freeze  ")
    time.sleep(2 * DEAF_S)
    terminal.keys(key)
    terminal.shows(*sees)
    leave(terminal)


def test_what_steers_an_agent_by_lines_and_keys(terminal: Terminal, tmp_path: Path) -> None:
    workspace = tmp_path / "ws"
    steps = asyncio.run(prepared(workspace))
    trust_folder(workspace, terminal.home)
    terminal.fly(f"--workspace {workspace}")
    terminal.shows("PAUSED", "write a.txt")
    terminal.keys("s")
    terminal.shows("✓ s2 write a.txt")
    for line, sees in LINES:
        enter(terminal, line.format(*steps), sees)
        if line == "undo":
            time.sleep(2 * DEAF_S)  # what has just opened takes no key
            terminal.keys("y")
            terminal.shows("undone")
    for line, sees in VIEWS:
        enter(terminal, line, sees)
        leave(terminal)
    for key, sees in KEYS:
        terminal.keys(key)
        terminal.shows(sees)
        leave(terminal)
    enter(terminal, "step over", "May it?")
    time.sleep(2 * DEAF_S)
    leave(terminal)
    enter(terminal, "approve", "✓ s3  write b.txt")
    enter(terminal, "approvals allow", "nothing is asked")
    enter(terminal, "run", "RUNNING")
    leave(terminal)
    terminal.shows("▶ s8  run python")
    stop(terminal, "5", "frozen")
    enter(terminal, "thaw", "thawed")
    leave(terminal)
    stop(terminal, "4", "cancelled")
    terminal.keys(".")
    terminal.shows("STOPPED")
    terminal.keys("C-q")
    assert terminal.ends() == 0


def speaks(_seen: Seen) -> Reply:
    """A model that says something, and then nothing more."""
    return Reply(text="I look at the shop first. " * 20, event_delay_ms=5, after=20, then="hold")


def test_what_a_model_was_told_is_seen_cut_off_and_added_to(terminal: Terminal, tmp_path: Path) -> None:
    workspace = tmp_path / "ws"
    with serving(speaks) as url:
        asyncio.run(prepared(workspace, url))
        trust_folder(workspace, terminal.home)
        terminal.environment = {"ANTHROPIC_BASE_URL": url, "PILOTHOUSE_MODEL": MODEL}
        terminal.fly(f"--workspace {workspace}")
        terminal.shows("PAUSED", "make the")
        terminal.keys("Space")
        terminal.shows("I look at the shop")
        stop(terminal, "3", "cut off")
        terminal.keys("c")
        terminal.shows("Context")
        leave(terminal)
        enter(terminal, "guide now: look at the log first", "in the next prompt")
        leave(terminal)
        terminal.keys("C-q")
        assert terminal.ends() == 0
