"""Plants, lets campaigns search, and judges what they promote by all tests; run it with `make bench-evolve`.

Packages are fetched by name and version (`packages.txt`). A campaign sees a part of a package's tests; all of
them decide whether a promotion is right. Results go to a file of JSON in the cache's directory.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import statistics
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from engine.improve.code.mutations import mutations
from engine.improve.code.projects import project_box
from engine.improve.code.source import parse_source
from engine.improve.judge.box import Boxes
from tests.benchmarks.evolve.packages import CACHE, Package, listed, opened
from tests.benchmarks.evolve.plan import BUG, SLOW, UNTOUCHED, Planted, failing_in, kinds_of, planned, timed

RIGHT, WRONG, MISSED, LATE, QUIET = (
    "promoted rightly",
    "PROMOTED WRONGLY",
    "missed",
    "did not end",
    "left alone",
)
_REGAINED = 0.5
"""The share of what a slowness costs that a right promotion gives back at least."""


def table_of(planted: Planted, package: Package) -> list[dict[str, Any]]:
    """What the scripted model proposes: a change that does nothing, the code as it was, and a wrong one."""
    if not planted.text:
        return []
    before, path = package.sources[planted.path].text, package.path(planted.path)
    changed = {number + 1 for number, line in enumerate(planted.text.split("\n")) if line not in before}
    source = parse_source(planted.text)
    assert source is not None
    wrong = [source.with_edit(change.edit) for change in mutations(source, frozenset(changed))]
    texts = [f"{planted.text}\n# Looked at.\n", *[text for text in wrong if text != before][:1], before]
    return [
        {"title": f"proposal {number}", "why": "", "files": [{"path": path, "text": text}]}
        for number, text in enumerate(texts)
    ]


def run_campaign(
    workspace: Path, name: str, seed: int, seconds: float, limit_s: float, table: list[dict[str, Any]]
) -> dict[str, Any]:
    """A campaign in a process of its own, with its processor seconds and its seconds by the clock."""
    result, proposals = workspace.parent / "result.json", workspace.parent / "proposals.json"
    proposals.write_text(json.dumps(table))
    program = [sys.executable, "-m", "tests.benchmarks.evolve.campaign"]
    words = [*program, workspace, name, seed, seconds, result, proposals]
    begun = time.monotonic()
    with (workspace.parent / "log.txt").open("wb") as log:
        child = os.posix_spawn(
            sys.executable, [str(word) for word in words], dict(os.environ), setpgroup=0,
            file_actions=[(os.POSIX_SPAWN_DUP2, log.fileno(), 1), (os.POSIX_SPAWN_DUP2, log.fileno(), 2)],
        )  # fmt: skip
    late = False
    while os.waitpid(child, os.WNOHANG) == (0, 0):
        time.sleep(0.2)
        if time.monotonic() - begun > limit_s and not late:
            late = True
            os.killpg(child, signal.SIGKILL)
    done: dict[str, Any] = {"status": LATE, "message": (workspace.parent / "log.txt").read_text()[-500:]}
    if result.is_file() and not late:
        done = json.loads(result.read_text())
    return {"processor_s": seconds} | done | {"seconds": time.monotonic() - begun, "late": late}


async def ruled(planted: Planted, package: Package, boxes: Boxes, done: dict[str, Any]) -> str:
    """Whether what a campaign promoted is right by all tests and, for a slowness, quick again."""
    if "files" not in done:
        return LATE
    if not done["files"]:
        return QUIET if planted.kind == UNTOUCHED else MISSED
    texts = {package.seen.project.inside(path): text for path, text in done["files"].items()}
    if planted.text:
        texts = {planted.path: planted.text} | texts
    async with project_box(boxes, package.root, package.seen.project) as box:
        done["broken"] = sorted(await failing_in(box, package, texts))
        if planted.kind == UNTOUCHED or done["broken"]:
            return WRONG
        if planted.kind == SLOW:
            now = await timed(box, package, planted.bench, planted.path, texts[planted.path])
            quick, slow = planted.seconds
            done["now_s"] = now
            return RIGHT if now and now <= slow - _REGAINED * (slow - quick) else MISSED
    return RIGHT


def table(rows: list[dict[str, Any]]) -> str:
    """The table of what was found, by class."""
    lines = [f"{'':34}{'projects':>9}{'rightly':>9}{'wrongly':>9}{'missed':>8}{'late':>6}"]
    count = Counter((row["kind"], row["name"], row["ruling"]) for row in rows)
    for kind in (BUG, SLOW, UNTOUCHED):
        names = sorted({row["name"] for row in rows if row["kind"] == kind})
        for name in [*(names if kind != UNTOUCHED else ()), None]:
            mine = [
                [number for (k, n, ruling), number in count.items()
                 if k == kind and name in (n, None) and ruling in rulings]
                for rulings in ((RIGHT, QUIET), (WRONG,), (MISSED,), (LATE,))
            ]  # fmt: skip
            right, wrong, missed, late = map(sum, mine)
            title = f"  {name}" if name is not None else f"{kind}, all"
            lines.append(
                f"{title:34}{right + wrong + missed + late:>9}{right:>9}{wrong:>9}{missed:>8}{late:>6}"
            )
    spent = sorted(row["processor_s"] for row in rows)
    p95 = spent[min(len(spent) - 1, round(0.95 * (len(spent) - 1)))]
    lines.append(f"processor seconds of a campaign: median {statistics.median(spent):.0f}, p95 {p95:.0f}")
    return "\n".join(lines)


async def main(asked: argparse.Namespace) -> int:
    """Run the benchmark; 0 where nothing was promoted wrongly and each campaign ended."""
    cache = Path(asked.cache)
    boxes, rows, results = Boxes(), [], cache
    packages, spare = [
        [package for line in listed(spare=late) if (package := await opened(line, cache, boxes))]
        for late in (False, True)
    ]
    known = {package.name: package for package in (*packages, *spare)}
    print(f"{len(packages)} packages; {asked.projects} projects, seed {asked.seed}", flush=True)
    kinds = [
        (number, *kind)
        for number, kind in enumerate(kinds_of(asked.projects, asked.seed), 1)
        if (not asked.only or asked.only in kind) and (not asked.numbers or number in asked.numbers)
    ]
    notes = cache / f"planted-{asked.projects}-{asked.seed}.json"
    async for number, planted in planned(kinds, packages, spare, boxes, asked.seed, notes):
        with tempfile.TemporaryDirectory(prefix="evolve-") as place:
            workspace = Path(place, "workspace")
            package = known[planted.package]
            name = planted.lay(package, workspace)
            done = await asyncio.to_thread(
                run_campaign, workspace, name, asked.seed, asked.seconds, asked.limit,
                table_of(planted, package) if asked.model else [],
            )  # fmt: skip
        done["ruling"] = await ruled(planted, package, boxes, done)
        rows.append({"number": number} | planted.note() | done)
        print(
            f"{number:3} {planted.kind:10}{planted.name:26}{planted.package:16}{done['ruling']:18}"
            f"{done['processor_s']:5.0f} s  {planted.words[:100]}",
            flush=True,
        )
        only = asked.only or "-".join(map(str, asked.numbers))
        model = "-model" * asked.model
        results = cache / f"results-{asked.projects}-{asked.seed}{only and '-' + only}{model}.json"
        results.write_text(json.dumps(rows, indent=1))
    print(table(rows))
    print(f"results: {results}")
    return int(any(row["ruling"] in (WRONG, LATE) for row in rows))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.evolve", description=__doc__)
    parser.add_argument("--projects", type=int, default=60, help="how many; half of them have bugs")
    parser.add_argument("--seed", type=int, default=1, help="draws what is planted where")
    parser.add_argument("--only", default="", help="one kind (bug, slowness, untouched) or one class alone")
    parser.add_argument("--numbers", type=int, nargs="*", default=[], help="these projects alone")
    parser.add_argument("--seconds", type=float, default=120, help="processor seconds that a campaign has")
    parser.add_argument(
        "--limit", type=float, default=900, help="seconds by the clock after which it is ended"
    )
    parser.add_argument("--model", action="store_true", help="a scripted model proposes, too")
    parser.add_argument("--cache", default=str(CACHE))
    sys.exit(asyncio.run(main(parser.parse_args())))
