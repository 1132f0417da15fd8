"""A guided session in a real terminal: its keys arrive, and it is there again after the worst end."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

from test_cockpit_sessions import WIZARD
from tmux_terminal import NEEDS_TMUX, Terminal

from engine.api.engine import Engine
from engine.core import crew_commands as cc
from engine.crew.ontology.spec_parser import parse_spec
from tests.patience import PATIENCE_S
from tests.trusting import trust_folder

pytestmark = NEEDS_TMUX


async def handed_over(workspace: Path) -> None:
    engine = await Engine.open(workspace)
    await engine.submit(cc.RegisterAgent(spec=parse_spec(WIZARD).model_dump(mode="json")))
    receipt = await engine.submit(cc.Delegate(to="bmc-wizard", task="Look at the shop."))
    crew = await engine.crew()
    async with asyncio.timeout(PATIENCE_S):
        while not crew.state.open_requests(str(receipt.data["handoff"])):
            await crew.stream.changed()
    await engine.close()


def opened(terminal: Terminal, workspace: Path) -> None:
    terminal.fly(f"--workspace {workspace}")
    terminal.shows("run/pause", "bmc-wizard")
    terminal.keys("H")
    terminal.shows("bmc-wizard", "waiting")
    terminal.keys("Enter")


def test_the_keys_arrive_and_a_kill_loses_nothing(terminal: Terminal, tmp_path: Path) -> None:
    """Line 40: step, history and answers are there again."""
    workspace = tmp_path / "ws"
    asyncio.run(handed_over(workspace))
    trust_folder(workspace, terminal.home)
    opened(terminal, workspace)
    terminal.shows("Business model", "1/6", "● Customer segments", "answer:")
    terminal.type("small shops")
    terminal.keys("Enter")
    terminal.shows("✓ Customer segments", "ctrl+s send")
    terminal.type("time")
    terminal.keys("C-s")
    terminal.shows("3/6", "● Channel", "one of 1 shop", "answer: ┃")
    terminal.keys("Escape")
    terminal.shows("0–9 answer")
    terminal.type("2too early")  # in one burst
    terminal.keys("Enter")
    terminal.shows("4/6", "» Channel", "● Days", "? waiting")
    os.kill(terminal.pid, signal.SIGKILL)
    terminal.ends()
    opened(terminal, workspace)
    terminal.shows("● Days", "✓ Customer segments", "» Channel", "answer: ┃")
    terminal.keys("Escape")
    terminal.shows("0–9 answer")
    terminal.keys("6")
    terminal.shows("‖ paused")
    terminal.keys("C-q")
