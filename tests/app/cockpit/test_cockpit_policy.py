"""The policy in view, and the cockpit on a machine without a jail."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from flight import cockpit

from engine.sandbox.policy import Tier
from tests.engine.sandbox.jail_runs import REPOSITORY, need
from tests.engine.sandbox.test_jail_degrades import WITHOUT_LANDLOCK
from tests.patience import PATIENCE_S
from widgets.base.dialog import TextDialog


@pytest.mark.parametrize("size", [(80, 24)])
async def test_the_policy_of_an_agent_can_be_read_to_its_end(tmp_path: Path, size: tuple[int, int]) -> None:
    async with cockpit(tmp_path / "ws", size=size) as flight:
        await flight.type('agent_create bdi_agent two {"sandbox": {"memory_bytes": 1073741824}}')
        await flight.until(lambda: "two" in flight.engine.agents, "the second agent")
        await flight.shows(flight.engine.sandbox().tier)
        for agent, memory in (("pilot-1", "4.0 GiB for a command"), ("two", "1.0 GiB for a command")):
            await flight.type(f"agent {agent}")
            await flight.press("escape", "P")
            await flight.dialog(TextDialog)
            await flight.shows("What the agent's programs may do", "openat2")
            await flight.press("end")
            await flight.shows("at least KERNEL")
            await flight.press("home", *["down"] * 12)
            await flight.press("Y")
            await flight.until(lambda memory=memory: memory in flight.app.clipboard, "the whole text")
            await flight.press("q")
            await flight.no_dialog()
        await flight.type("policy")
        await flight.dialog(TextDialog)


def test_without_a_jail_the_operator_chooses_and_nothing_is_silent(tmp_path: Path) -> None:
    need(Tier.KERNEL)
    script = Path(__file__).with_name("without_jail.py")
    front = WITHOUT_LANDLOCK.format("ENOSYS")
    code = f"{front}\nimport runpy, sys; runpy.run_path({str(script)!r}, run_name='__main__')"
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "ws")],
        env={**os.environ, "PYTHONPATH": str(REPOSITORY), "PILOTHOUSE_HOME": str(tmp_path / "home")},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done.stderr[-6_000:]
