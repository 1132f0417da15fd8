"""The collector of garbage stands still while the cockpit starts, and leaves alone what that loaded."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

CHECK = """
import gc
from app.cockpit.gc_tuning import disable_gc, enable_gc
enable_gc()
assert gc.isenabled() and not gc.get_freeze_count(), "nothing was held off"
disable_gc()
assert not gc.isenabled()
kept = [[] for _ in range(1000)]
enable_gc()
assert gc.isenabled() and gc.get_freeze_count() > 1000
came_since = []
seen = gc.get_objects()
assert not any(one is kept[0] for one in seen) and any(one is came_since for one in seen)
"""


COCKPIT = """
import asyncio, gc, sys
from pathlib import Path
from app.cockpit.gc_tuning import disable_gc
disable_gc()
from app.cockpit.app import Cockpit
from app.commands.settings import Settings

async def fly(workspace):
    app = Cockpit(workspace, settings=Settings(home=workspace))
    async with asyncio.timeout(120), app.run_test(size=(120, 35)) as pilot:
        while not app.context.projector.states:
            await pilot.pause()
        await pilot.pause()
        assert gc.isenabled() and gc.get_freeze_count() > 50_000, gc.get_freeze_count()

asyncio.run(fly(Path(sys.argv[1])))
"""


def checked(script: str, *argv: str) -> str:
    done = subprocess.run([sys.executable, "-c", script, *argv], capture_output=True, text=True, check=False)
    return done.stderr if done.returncode else ""


def test_what_was_made_before_collecting_began_is_never_walked() -> None:
    assert not checked(CHECK)


def test_collecting_begins_when_the_first_screen_stands(tmp_path: Path) -> None:
    assert not checked(COCKPIT, str(tmp_path / "flight"))
