"""What trying changes of a failing test costs. Baseline: for each change a `pytest` of its own.

Run it with `python -m tests.benchmarks.code`.
"""

from __future__ import annotations

import asyncio
import json
import os
import platform
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from engine.improve.code.findings import examine_project
from engine.improve.code.projects import find_projects
from engine.improve.code.repair import repair_tests
from engine.improve.judge.box import Boxes

HERE = Path(__file__).resolve().parents[2]
SAMPLE = HERE / "tests" / "mastermind" / "sample"
FAILING = "tests/test_stats.py::test_median_of_an_even_number"


async def _repair(workspace: Path) -> tuple[float, int]:
    """Seconds for all changes of the sample's failing test, and how many there were."""
    boxes, project = Boxes(), find_projects(workspace)[0]
    seen = await examine_project(boxes, workspace, project)
    begin = time.perf_counter()
    kept = await repair_tests(boxes, workspace, seen, seen.sources, [FAILING], random.Random(1))
    return time.perf_counter() - begin, kept[0].tried


def _seconds(work: Any) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def rows() -> list[dict[str, Any]]:
    """Seconds of each, beside its baseline."""
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as directory:
        shutil.copytree(SAMPLE, Path(directory, "sandbox", "sample"))
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir=."]
        place = Path(directory, "sandbox", "sample")
        one = _seconds(lambda: subprocess.run(command, cwd=place, capture_output=True, check=False))
        tried_s, tried = asyncio.run(_repair(Path(directory)))
    machine = (
        f"{platform.system()}, {os.cpu_count()} cores, load {load:.1f}, Python {platform.python_version()}"
    )
    found = [(f"{tried} changes of a failing test, beside a pytest each", tried_s, one * tried, tried)]
    return [
        {
            "name": name,
            "ours": round(ours, 2),
            "baseline": round(baseline, 2),
            "ratio": round(ours / baseline, 2),
            "unit": "s",
            "n": count,
            "machine": machine,
        }
        for name, ours, baseline, count in found
    ]


if __name__ == "__main__":
    for row in rows():
        print(json.dumps(row))
