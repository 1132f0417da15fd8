"""Processor time of a start: `pilothouse do status`, and the cockpit up to its first full screen.

It is user and system time of the process with its children, so that other work on the machine counts little;
the baselines (an import of pydantic, a bare Textual app) run in turn with ours. The row of wall time of the
first screen is `cockpit`'s. Run it with `python -m tests.benchmarks.starting`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.benchmarks.cockpit import BARE, Screen, pilothouse, row

ROUNDS = int(os.environ.get("PILOTHOUSE_BENCH_ROUNDS", "7"))
MODELS = [sys.executable, "-c", "import asyncio, sqlite3, pydantic"]


def _used(argv: Sequence[str]) -> float:
    """Processor seconds of a program that ends by itself."""
    process = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, _, usage = os.wait4(process.pid, 0)
    return usage.ru_utime + usage.ru_stime


def _used_until(argv: Sequence[str], *texts: bytes) -> float:
    """Processor seconds of a program and its children until it has printed all texts."""
    with Screen(argv) as screen:
        screen.wait_for(*texts)
        fields = Path(f"/proc/{screen.cockpit}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


GIVEN = """delegate jtbd what is new given='{"output": "as told"}'"""


def _with_streams(workspace: str) -> None:
    """An agent, a stream of Mastermind's and one of the crew's."""
    lines = ("agent_create bdi_agent pilot-1", "coord_suggest make tests faster", GIVEN)
    for line in lines:
        done = pilothouse("do", "--workspace", workspace, line)
        subprocess.run(done, check=False, capture_output=True)


def _status(name: str, workspace: str) -> dict[str, Any]:
    ours, base = [], []
    for _ in range(ROUNDS + 1):
        base.append(_used(MODELS))
        ours.append(_used(pilothouse("do", "--workspace", workspace, "status")))
    # The first run writes bytecode.
    return row(
        f"do status, {name}, processor", ours[1:], base[1:], "s", ROUNDS, baseline="importing pydantic"
    )


def _first_screen(workspace: str) -> dict[str, Any]:
    subprocess.run(
        pilothouse("run", "--workspace", workspace, "--mission", "first-flight", "--quiet"), check=True
    )
    ours, base = [], []
    for _ in range(ROUNDS):
        base.append(_used_until([sys.executable, "-c", BARE], b"last of all"))
        cockpit = pilothouse("--workspace", workspace)
        ours.append(_used_until(cockpit, b"6 Mind", b"flight_plan.py", b"achieved"))
    return row("cockpit, first full screen, processor", ours, base, "s", ROUNDS, baseline="bare app")


def rows() -> list[dict[str, Any]]:
    """The rows of CONTRACTS.md's bench form."""
    with tempfile.TemporaryDirectory() as empty, tempfile.TemporaryDirectory() as busy:
        _with_streams(busy)
        status = [_status("empty workspace", empty), _status("Mastermind and crew", busy)]
    with tempfile.TemporaryDirectory() as flown:
        return [*status, _first_screen(flown)]


if __name__ == "__main__":
    for figures in rows():
        print(json.dumps(figures))
