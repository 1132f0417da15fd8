"""Judges every planted cheat and prints a table.

Run it with `python -m tests.mastermind.cheats [--no-tests] [--json]`.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
from pathlib import Path

from engine.domain.improvement import Ruling, Verdict
from tests.mastermind.cheats.grounds import Grounds, SumsSuite
from tests.mastermind.cheats.planted import PLANTED, Planted


async def judged(ground: Grounds, planted: Planted, *, tests: bool = True) -> Verdict:
    """The verdict on a cheat; it is told where the judge's store is, as the worst case."""
    files = {
        path: text and text.replace("STORE", str(ground.judge.store)) for path, text in planted.files.items()
    }
    # Those that are not aimed at pytest are judged without it, which is ten times quicker.
    suite = SumsSuite(tests=tests and planted.by_tests)
    return await ground.judged(files, suite, claimed=planted.claimed, told=planted.told)


async def main(tests: bool, as_json: bool) -> int:
    """Print a row for each; how many got through."""
    through = 0
    with tempfile.TemporaryDirectory(dir=os.environ.get("JUDGE_GROUNDS")) as place:
        ground = Grounds(Path(place))
        for planted in PLANTED:
            if planted.by_tests and not tests:
                continue
            verdict = await judged(ground, planted, tests=tests)
            caught = verdict.ruling is Ruling.REJECTED and planted.cheat in verdict.cheats
            through += not caught
            if as_json:
                row = {"cheat": planted.cheat, "tried": planted.tried, "ruling": verdict.ruling}
                print(json.dumps(row | {"cheats": verdict.cheats, "reasons": verdict.reasons}), flush=True)
            else:
                print(f"{planted.cheat:<24} {planted.tried:<58} {verdict.ruling}", flush=True)
                for reason in verdict.reasons[:3]:
                    print(f"{'':<24}   {reason[:150].replace(str(ground.place), '…')}", flush=True)
    if not as_json:
        print(f"{through} got through")
    return through


if __name__ == "__main__":
    sys.exit(asyncio.run(main("--no-tests" not in sys.argv, "--json" in sys.argv)) > 0)
