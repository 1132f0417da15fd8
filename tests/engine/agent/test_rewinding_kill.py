"""Kill -9 while files are brought back: found on reopening, repeatable, nothing lost (story S4, step 3)."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from engine_flight import Flight, act, python

from engine.core import commands as cmd
from tests.rewinding import tree_hash
from tests.rounds import rounds

KILLS = rounds(2, full=12)
MANY = "import os\nfor n in range(300): open(f'file{n}', 'w').write(str(n) * 50)"
OTHER = "import os\nfor n in range(300): open(f'file{n}', 'w').write('other' * n)"


@pytest.mark.slow
async def test_whenever_it_is_killed_the_same_rewind_gives_the_same_tree(
    tmp_path: Path, open_flight: Callable[..., Any]
) -> None:
    flight: Flight = await open_flight(tmp_path)
    await flight.plan(python(MANY), python(OTHER), act("ls", path="."))
    places = []
    for number in (1, 2):
        await flight.do(cmd.Step)
        await flight.until(lambda s, n=number: s.actions == n and not s.acting and not s.grants)  # type: ignore[misc]
        await flight.until_durable(flight.agent)
        places.append(((await flight.state()).version, tree_hash(flight.sandbox)))
    (first, tree), (second, _) = places
    chance, cut = random.Random(4), 0
    for _ in range(KILLS):
        await flight.engine.close()
        await _rewind_until_killed(tmp_path, first, second, chance.uniform(0.0, 0.03))
        await flight.open()
        state = await flight.state()
        assert state.rewinding is None
        cut += state.intervention is not None
        if state.intervention is not None:
            assert "does it again" in state.intervention.reason
        await flight.do(cmd.Rewind, to=first)
        assert tree_hash(flight.sandbox) == tree
    assert cut, "no kill came while files were changed"


async def _rewind_until_killed(workspace: Path, first: int, second: int, after_s: float) -> None:
    here = Path(__file__)
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        str(here.with_name("rewinder.py")),
        *(str(workspace), str(first), str(second)),
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(here.parents[3])},
    )
    assert child.stdout is not None
    watched = workspace / "sandbox" / "file7"
    await child.stdout.readline()
    before = watched.stat().st_ino
    while watched.stat().st_ino == before:  # a file that is brought back is another one
        await asyncio.sleep(0)
    await asyncio.sleep(after_s)  # the moment of the kill is what is tried here
    child.send_signal(signal.SIGKILL)
    await child.wait()
