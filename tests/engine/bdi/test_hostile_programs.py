"""Programs that try to hang their interpreter or to fill the memory, mutated ones too: each step ends."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from engine.bdi.agent import BdiAgent
from engine.bdi.errors import ProgramError
from engine.bdi.parser import parse_program
from engine.bdi.saved_state import SavedStateError
from engine.bdi.semantics import Limits
from tests.engine.bdi.mutations import mutated_program
from tests.engine.bdi.programs import hostile_program
from tests.rounds import rounds

LIMITS = Limits(
    beliefs=2_000,
    belief_size=5_000_000,
    intentions=200,
    frames=2_000,
    events=2_000,
    query_steps=5_000,
    size=20_000,
)
PHASES = 300
WALK = 20_000
"""Parts of a term, as the other limits less than usual, so that many programs come to them."""
PROCESSOR_S = 60
"""For the phases of one program, far beyond what any takes."""
ADDRESS_BYTES = 1 << 30
PROGRAMS = rounds(50, full=50_000)
PATIENCE_S = rounds(300, full=20_000)

RUNNER = """
import json, resource, signal, sys
resource.setrlimit(resource.RLIMIT_AS, ({bytes}, {bytes}))
from engine.bdi import saved_state, terms, unification
terms.WALK = unification.WALK = saved_state.PARTS = {walk}
from tests.engine.bdi.test_hostile_programs import MAKERS, live
read = 0
for seed in range({first}, {last}):
    signal.setitimer(signal.ITIMER_PROF, {seconds})
    print(json.dumps(seed), flush=True)
    read += live(MAKERS["{maker}"](seed))
print(json.dumps([read]))
"""


MAKERS = {"hostile": hostile_program, "mutated": mutated_program}


def live(text: str) -> bool:
    """Run a program for a while; whether it could be read."""
    try:
        program = parse_program(text)
    except ProgramError:
        return False
    said: list[str] = []
    agent = BdiAgent("a", program, limits=LIMITS, say=said.append, tracer=lambda record: None)
    for number in range(PHASES):
        agent.advance(float(number))
        if agent.idle and agent.next_timer is None:
            break
        said.clear()
    with suppress(SavedStateError):
        agent.save()
    return True


@pytest.mark.parametrize("share", range(2))
@pytest.mark.parametrize(("maker", "readable"), [("hostile", 0.9), ("mutated", 0.35)])
def test_every_step_of_such_a_program_ends_in_bounded_memory(share: int, maker: str, readable: float) -> None:
    """Each program has its own processor time, and the worker no more than a gigabyte of addresses."""
    first, last = share * PROGRAMS // 2, (share + 1) * PROGRAMS // 2
    code = RUNNER.format(
        bytes=ADDRESS_BYTES, walk=WALK, first=first, last=last, seconds=PROCESSOR_S, maker=maker
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE_S, check=False,
        cwd=Path(__file__).parents[3],
    )  # fmt: skip
    lines = done.stdout.splitlines()
    assert done.returncode == 0, f"program {lines[-1:]}: {done.stderr[-3000:]}\n{_text(lines, maker)}"
    (read,) = json.loads(lines[-1])
    print(f"{last - first} {maker} programs, {read} could be read")
    assert read > (last - first) * readable, "too many programs cannot be read"


def _text(lines: list[str], maker: str) -> str:
    return MAKERS[maker](int(lines[-1])) if lines and lines[-1].isdigit() else ""
