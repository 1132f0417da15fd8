"""Time of a start: `pilothouse do status`, and the cockpit up to its first full screen.

Processor time is user and system time of the process with its children, so that other work on the machine
counts little; the baselines (an import of pydantic, a bare Textual app) run in turn with ours. Wall time is
compared with the limit of 250 ms, and with Posting (Apache-2.0), whose Textual is another version: it is
installed into an environment of its own, and left out where no index has it. The row of wall time beside a
bare app is `cockpit`'s. Run it with `python -m tests.benchmarks.starting`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.benchmarks.cockpit import BARE, Screen, pilothouse, row

ROUNDS = int(os.environ.get("PILOTHOUSE_BENCH_ROUNDS", "7"))
MODELS = [sys.executable, "-c", "import asyncio, sqlite3, pydantic"]
STATUS_LIMIT_S = 0.25
POSTING = ("posting==2.11.1", "tree-sitter<0.26")
"""The newest tree-sitter ends it with a segmentation fault."""


def _used(argv: Sequence[str]) -> tuple[float, float]:
    """Processor and wall seconds of a program that ends by itself."""
    began = time.perf_counter()
    process = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, _, usage = os.wait4(process.pid, 0)
    return usage.ru_utime + usage.ru_stime, time.perf_counter() - began


def _used_until(argv: Sequence[str], *texts: bytes) -> tuple[float, float]:
    """Processor seconds of a program and its children, and wall seconds, until it has printed all texts."""
    with Screen(argv) as screen:
        wall = screen.wait_for(*texts) - screen.began
        fields = Path(f"/proc/{screen.cockpit}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK"), wall


GIVEN = """delegate jtbd what is new given='{"output": "as told"}'"""


def _with_streams(workspace: str) -> None:
    """An agent, a stream of Mastermind's and one of the crew's."""
    lines = ("agent_create bdi_agent pilot-1", "coord_suggest make tests faster", GIVEN)
    for line in lines:
        done = pilothouse("do", "--workspace", workspace, line)
        subprocess.run(done, check=False, capture_output=True)


def _flown(workspace: str) -> None:
    run = pilothouse("run", "--workspace", workspace, "--mission", "first-flight", "--quiet")
    subprocess.run(run, check=True)


def _status(name: str, workspace: str) -> list[dict[str, Any]]:
    ours, base = [], []
    for _ in range(ROUNDS + 1):
        base.append(_used(MODELS)[0])
        ours.append(_used(pilothouse("do", "--workspace", workspace, "status")))
    # The first run writes bytecode.
    used, wall = zip(*ours[1:], strict=True)
    limit = [STATUS_LIMIT_S]
    return [
        row(f"do status, {name}, processor", used, base[1:], "s", ROUNDS, baseline="importing pydantic"),
        row(f"do status, {name}, wall time", wall, limit, "s", ROUNDS, baseline="limit of 250 ms"),
    ]


def _posting(place: str) -> list[str]:
    """The command line of Posting, installed below a directory; empty where it cannot be."""
    venv.create(place, with_pip=True)
    pip = [f"{place}/bin/python", "-m", "pip", "install", "--quiet", "--only-binary", ":all:", *POSTING]
    if subprocess.run(pip, check=False, capture_output=True).returncode:
        return []
    home = [f"{name}={place}" for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME")]
    Path(place, "collection").mkdir()
    return ["/usr/bin/env", *home, f"{place}/bin/posting", "--collection", f"{place}/collection"]


def _first_screen(workspace: str, posting: Sequence[str]) -> list[dict[str, Any]]:
    ours, base, theirs = [], [], []
    for _ in range(ROUNDS + 1):
        base.append(_used_until([sys.executable, "-c", BARE], b"last of all")[0])
        cockpit = pilothouse("--workspace", workspace)
        ours.append(_used_until(cockpit, b"6 Mind", b"flight_plan.py", b"achieved"))
        if posting:
            theirs.append(_used_until(posting, b"Collection", b"Response")[1])
    used, wall = zip(*ours[1:], strict=True)
    name = "cockpit, first full screen"
    rows = [row(f"{name}, processor", used, base[1:], "s", ROUNDS, baseline="bare app")]
    if posting:
        rows.append(row(f"{name}, wall time", wall, theirs[1:], "s", ROUNDS, baseline="Posting"))
    return rows


def rows() -> list[dict[str, Any]]:
    """The rows of CONTRACTS.md's bench form."""
    with tempfile.TemporaryDirectory() as empty, tempfile.TemporaryDirectory() as busy:
        _with_streams(busy)
        status = [*_status("empty workspace", empty), *_status("Mastermind and crew", busy)]
    with tempfile.TemporaryDirectory() as flown, tempfile.TemporaryDirectory() as place:
        _flown(flown)
        return [*status, *_status("after a mission", flown), *_first_screen(flown, _posting(place))]


if __name__ == "__main__":
    for figures in rows():
        print(json.dumps(figures))
