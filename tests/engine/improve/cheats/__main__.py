"""Judges every planted cheat and prints a table.

Run it with `python -m tests.engine.improve.cheats`; `--help` says what else it takes.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
from pathlib import Path

from engine.core.improvement import Ruling, Verdict
from engine.improve.judge.judge import JudgeBudget
from engine.sandbox.policy import Tier
from tests.engine.improve.cheats.grounds import Grounds, SumsSuite
from tests.engine.improve.cheats.planted import PLANTED, Planted


async def judged(ground: Grounds, planted: Planted, *, tests: bool = True) -> Verdict:
    """The verdict on a cheat; it is told where the judge's store is, as the worst case."""
    files = {
        path: text and text.replace("STORE", str(ground.judge.store)) for path, text in planted.files.items()
    }
    # Those that are not aimed at pytest are judged without it, which is ten times quicker.
    suite = SumsSuite(tests=tests and planted.by_tests)
    budget = JudgeBudget(rounds=2, most=2)
    return await ground.judged(files, suite, told=planted.told, budget=budget)


def caught(planted: Planted, verdict: Verdict) -> bool:
    """Whether it was rejected under its name."""
    return verdict.ruling is Ruling.REJECTED and planted.cheat in verdict.cheats


async def main(asked: argparse.Namespace) -> int:
    """Print a row for each; how many got through."""
    through = 0
    with tempfile.TemporaryDirectory(dir=asked.place) as place:
        ground = Grounds(Path(place), tier=Tier(asked.tier))
        for planted in PLANTED:
            if (planted.by_tests and asked.no_tests) or asked.cheat not in planted.name:
                continue
            verdict = await judged(ground, planted, tests=not asked.no_tests)
            through += not caught(planted, verdict)
            if asked.json:
                row = {"name": planted.name, "ruling": verdict.ruling, "caught": caught(planted, verdict)}
                print(json.dumps(row | {"reasons": verdict.reasons}), flush=True)
                continue
            print(f"{planted.cheat:<24} {planted.tried:<58} {verdict.ruling}", flush=True)
            for reason in verdict.reasons[:3]:
                print(f"{'':<24}   {reason[:150].replace(str(ground.place), '…')}", flush=True)
    if not asked.json:
        print(f"{through} got through")
    return through


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Judge every planted cheat and print a table.")
    parser.add_argument("--no-tests", action="store_true", help="leave out those that are aimed at pytest")
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    parser.add_argument("--tier", default=Tier.FULL, help="a firmer jail is not used")
    parser.add_argument("--place", help="directory for all files")
    parser.add_argument("--cheat", default="", help="only those with this in their name")
    sys.exit(asyncio.run(main(parser.parse_args())) > 0)
