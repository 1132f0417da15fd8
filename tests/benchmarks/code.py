"""What reading a whole tree of Python costs, and what trying changes of a failing test costs.

The tree is this project's own. Baselines: parsing each file once; reading each file once; for each change a
`pytest` of its own. Run it with `python -m tests.benchmarks.code`.
"""

from __future__ import annotations

import ast
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

from engine.improve.code.analysis import analyze
from engine.improve.code.findings import examine_project
from engine.improve.code.projects import find_projects
from engine.improve.code.repair import repair_test
from engine.improve.code.source import SkippedFiles, walk_files
from engine.improve.judge.box import Boxes

HERE = Path(__file__).resolve().parents[2]
SAMPLE = HERE / "tests" / "mastermind" / "sample"
FAILING = "tests/test_stats.py::test_median_of_an_even_number"


async def _repair(workspace: Path) -> tuple[float, int]:
    """Seconds for all changes of the sample's failing test, and how many there were."""
    boxes, project = Boxes(), find_projects(workspace)[0]
    seen = await examine_project(boxes, workspace, project)
    begin = time.perf_counter()
    kept = await repair_test(boxes, workspace, project, seen.tests, seen.sources, FAILING, random.Random(1))
    return time.perf_counter() - begin, kept[0].tried


def _seconds(work: Any) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def rows() -> list[dict[str, Any]]:
    """Seconds of each, beside its baseline."""
    paths = [HERE / path for path in walk_files(HERE, SkippedFiles())]
    code = [path for path in paths if path.suffix == ".py"]
    load = os.getloadavg()[0]
    parse = _seconds(lambda: [ast.parse(path.read_bytes()) for path in code])
    boxes = Boxes()
    report = _seconds(lambda: asyncio.run(analyze(HERE, boxes=boxes)))
    with tempfile.TemporaryDirectory() as directory:
        shutil.copytree(SAMPLE, Path(directory, "sandbox", "sample"))
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir=."]
        place = Path(directory, "sandbox", "sample")
        one = _seconds(lambda: subprocess.run(command, cwd=place, capture_output=True, check=False))
        tried_s, tried = asyncio.run(_repair(Path(directory)))
    machine = (
        f"{platform.system()}, {os.cpu_count()} cores, load {load:.1f}, Python {platform.python_version()}"
    )
    found = [
        (f"analyze_codebase of {len(code)} files, beside parsing them", report, parse, 1),
        (f"{tried} changes of a failing test, beside a pytest each", tried_s, one * tried, tried),
    ]
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
