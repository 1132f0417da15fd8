"""Story S3 of the steering spec, "Hands on": the agent is stuck on an interactive installer."""

from __future__ import annotations

import asyncio
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from tmux_terminal import NEEDS_TMUX, Terminal

from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.fold import fold
from engine.core.goals import GoalStatus
from engine.core.journal import Event
from engine.core.plan import StepStatus
from engine.core.ports import SystemClock
from engine.core.store.sqlite import SqliteJournal
from tests.engine.agent.engine_flight import Flight, act, journal_holds_together
from tests.trusting import trust_folder
from widgets.terminal.screen import BitttyEmulator

pytestmark = [*NEEDS_TMUX, pytest.mark.slow]

SECRET = "correct-horse-battery"
INSTALL = """import getpass
if input("Install here? [y/n] ") != "y":
    raise SystemExit("not installed")
if len(getpass.getpass("Licence key: ")) < 8:
    raise SystemExit("no such licence")
open("installed.txt", "a").write("installed\\n")
print("all is installed")
"""
CHECK = """assert open("installed.txt").read() == "installed\\n", "installed once"
assert "quick" in open("settings.txt").read()
print("checked")
"""


async def prepared(workspace: Path) -> list[str]:
    """A paused agent that is to run the installer, look whether it worked, and report; its steps."""
    flight = Flight(workspace, SystemClock())
    await flight.open()
    await flight.do(cmd.CreateAgent)
    sandbox = workspace / "sandbox"
    for name, text in {
        "install.py": INSTALL,
        "check.py": CHECK,
        "serve.py": "import time\nwhile True:\n    time.sleep(1)\n",
        "settings.txt": "speed = slow\n",
        "hosts.txt": "none\n",
    }.items():
        (sandbox / name).write_text(text)
    steps = await flight.plan(
        act("run", command="python install.py"),
        act("run", command="python check.py"),
        act("write", path="report.txt", content="It is installed."),
    )
    await flight.engine.close()
    return steps


def test_the_operator_does_by_hand_what_the_agent_cannot(
    terminal: Terminal, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    workspace = tmp_path / "ws"
    steps = asyncio.run(prepared(workspace))
    trust_folder(workspace, terminal.home)
    terminal.fly(f"--workspace {workspace}")
    terminal.shows("run python install.py", "PAUSED")
    terminal.keys("Space")
    terminal.shows("Manual intervention")
    terminal.closes("still waits")
    terminal.keys("t")
    terminal.shows("YOU HOLD THE SHELL", "$ ")
    for line, sees in (
        ("python3 install.py", "Install here?"),
        ("y", "Licence key:"),
        (SECRET, "all is installed"),
        (
            "sed -i s/slow/quick/ settings.txt; echo shop >>hosts.txt; export MODE=prod; echo e''dited",
            "edited",
        ),
        ("python3 serve.py & sleep 0.2; echo serv''ing", "serving"),
    ):
        terminal.type(line)
        terminal.keys("Enter")
        terminal.shows(sees)
    assert SECRET not in terminal.screen
    terminal.keys("C-]")
    terminal.shows("Hand the shell back")
    terminal.type("licence entered")
    terminal.keys("Enter")
    terminal.shows(
        "What is the agent to know?",
        "2 files changed: hosts.txt, settings.txt", "1 file added: installed.txt",
        "added: MODE", "python3 serve.py", "your note: licence entered",
    )  # fmt: skip
    # What opens by itself takes no choice at first; what is asked for does.
    terminal.closes("the agent waits until you say")
    terminal.keys("t")
    terminal.shows("What is the agent to know?")
    terminal.keys("Down", "Down", "Space")
    terminal.shows("– variables of the shell")
    terminal.keys("Enter")
    terminal.shows("result by hand")
    terminal.closes("still waits")
    terminal.keys("i")
    terminal.shows("result by hand")
    terminal.keys("h")
    terminal.shows("The result, as the agent should see it")
    terminal.type("installed by hand")
    terminal.keys("Enter")
    terminal.until(lambda: "Manual intervention" not in terminal.screen, "the intervention's end")
    terminal.keys("Space")
    terminal.shows("goal g1 achieved")
    terminal.keys("C-q")
    assert terminal.ends() == 0
    events = asyncio.run(looked_at(workspace))
    waited = told_of(events, steps, workspace)
    with capsys.disabled():
        print(f"\nS3: hand-back to the proposed beliefs in {waited * 1000:.0f} ms")


async def looked_at(workspace: Path) -> list[Event]:
    """The agent's events; the journal holds together, and the agent replays."""
    await journal_holds_together(workspace)
    store = await SqliteJournal.open(workspace, clock=SystemClock(), read_only=True)
    try:
        return await store.read("pilot")
    finally:
        await store.close()


def told_of(events: list[Event], steps: list[str], workspace: Path) -> float:
    """Hold the story's lines to the journal; seconds from handing back to the proposed beliefs."""
    said: list[tuple[Event, Any]] = [(event, ev.payload_of(event)) for event in events]
    state = fold(events)
    sandbox = workspace / "sandbox"

    (goal,) = state.goals.values()
    assert (goal.id, goal.status) == ("g1", GoalStatus.ACHIEVED), "the same goal goes on"
    plan = state.plans["g1"]
    assert [plan.step(one).status for one in steps] == [StepStatus.COMPLETED] * 3  # type: ignore[union-attr]
    shell = next(
        one.action for _, one in said if isinstance(one, ev.ActionRequested) and one.command == "shell"
    )
    place = next(n for n, (_, one) in enumerate(said) if isinstance(one, ev.ChangesOffered))
    later = [one.step for _, one in said[place:] if isinstance(one, ev.ActionRequested)]
    assert later == steps[1:], "nothing is done again"
    assert (sandbox / "installed.txt").read_text() == "installed\n"
    assert (sandbox / "settings.txt").read_text() == "speed = quick\n"
    assert (sandbox / "hosts.txt").read_text() == "none\nshop\n"

    offered = said[place][1]
    values = {offer.key: offer.value for offer in offered.offers}
    assert values["files.changed"] == ["hosts.txt", "settings.txt"]
    assert [one.rpartition(" ")[2] for one in values["operator.processes"]] == ["serve.py"]
    assert values["operator.variables"] == {"added": ["MODE"]}
    assert "operator.variables" not in state.beliefs, "it was rejected"
    assert {"files.changed", "files.added", "operator.processes", "operator.note"} <= set(state.beliefs)

    size = next(one for _, one in said if isinstance(one, ev.ShellResized) and one.action == shell)
    screen = BitttyEmulator(size.columns, size.rows)
    for _, one in said:
        if isinstance(one, ev.ActionOutput) and (one.action, one.stream) == (shell, "terminal"):
            screen.feed(one.text)
    shown = "\n".join(row.text for row in screen.rows(screen.first, screen.end))
    assert "Install here? [y/n] y" in shown
    assert "all is installed" in shown, "the recorded session plays back"
    held = [path for path in workspace.rglob("*") if path.is_file() and SECRET.encode() in path.read_bytes()]
    assert held == [], "what was typed unseen is kept nowhere"

    returned = next(event for event, one in said if isinstance(one, ev.ShellReturned))
    until = datetime.fromisoformat(said[place][0].at) - datetime.fromisoformat(returned.at)
    return until.total_seconds()
