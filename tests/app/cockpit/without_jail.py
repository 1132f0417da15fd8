"""What the operator meets in the cockpit of a machine without a jail; run in a process of its own.

`test_cockpit_policy.py` starts it behind a filter that takes Landlock away.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from engine.core import events as ev
from tests.app.cockpit.flight import Flight, cockpit
from widgets.base.dialog import TextDialog
from widgets.dialogs.questions import NoJailDialog


async def run_python(flight: Flight) -> None:
    await flight.type("! run python -c 'print(6 * 7)'")


async def accepted(flight: Flight) -> list[str]:
    """Who accepted what in this journal."""
    events = flight.engine.events(0, stream="workspace", follow=False)
    return [e.actor async for e in events if isinstance(ev.payload_of(e), ev.TierAccepted)]


async def refuse_then_accept(workspace: Path) -> None:
    async with cockpit(workspace, size=(80, 24)) as flight:
        await flight.dialog(NoJailDialog)
        await flight.shows("requires the jail KERNEL", "mend", "CONFIG_SECURITY_LANDLOCK", "q leave")
        await flight.press("p", "n")
        await flight.press("f")
        await flight.no_dialog()
        await flight.shows("PROGRAMS REFUSED")
        await run_python(flight)
        await flight.until(lambda: "No command may run" in flight.session_text, "the refusal")
        await flight.type("! mkdir made")
        await flight.until((flight.engine.root / "made").is_dir, "the directory")
        assert await accepted(flight) == []

        await flight.type("accept_tier full")
        await flight.says("this machine gives PATHS, not FULL")
        await flight.type("accept_tier paths")
        await flight.says("commands are NOT confined")
        await flight.shows("NOT CONFINED")
        await run_python(flight)
        await flight.until(lambda: "42" in flight.session_text.splitlines(), "the program's output")
        assert await accepted(flight) == ["operator:operator"]
        await flight.press("escape", "P")
        await flight.dialog(TextDialog)
        await flight.shows("NOT confined", "✗ landlock")
        await flight.press("escape")


async def accept_by_two_keys_or_leave(workspace: Path) -> None:
    async with cockpit(workspace) as flight:
        await flight.dialog(NoJailDialog)  # what was accepted ended with its session
        await flight.press("p", "y")
        await flight.no_dialog()
        await flight.shows("PATHS · programs NOT CONFINED")
        assert len(await accepted(flight)) == 2
    async with cockpit(workspace) as flight:
        await flight.dialog(NoJailDialog)
        await flight.press("q")
        await flight.until(lambda: not flight.app.is_running, "the end")


async def main(workspace: Path) -> None:
    await refuse_then_accept(workspace)
    await accept_by_two_keys_or_leave(workspace)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
