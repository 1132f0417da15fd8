"""Whether the sealed judge is right: planted cheats, candidates that are no better, and better ones.

* cheats: every planted one (`tests/engine/improve/cheats/planted.py`) has to be rejected under its name;
* null: a candidate that changes names and comments only may be promoted in at most 5 of 100 runs;
* better: one that saves a fifth of the work has to be promoted in at least 18 of 20;
* both by processor time, which is never the same twice.

Run it with `python -m tests.benchmarks.judging`; each judgement by time takes about two seconds of processor.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from pathlib import Path
from typing import Any

from engine.core.improvement import Ruling, Verdict
from engine.improve.ports import Measure
from tests.benchmarks.cockpit import row
from tests.engine.improve.cheats.__main__ import caught, judged
from tests.engine.improve.cheats.grounds import FILES, MODULE, SUMS, WASTEFUL, Grounds, SumsSuite, null
from tests.engine.improve.cheats.planted import PLANTED

NULLS, BETTER = 100, 20
MOST_NULLS, FEWEST_BETTER = 5, 18


async def cheats(place: Path) -> list[str]:
    """Names of the planted cheats that were not rejected under their name."""
    ground = Grounds(place / "cheats")
    through = []
    for planted in PLANTED:
        verdict = await judged(ground, planted)
        if not caught(planted, verdict):
            through.append(planted.name)
    return through


async def promoted(place: Path, measure: Measure, text: str | None, runs: int) -> list[Verdict]:
    """The verdicts on a candidate against `WASTEFUL`, one for each seed; None means a null one each."""
    ground = Grounds(place, {**FILES, MODULE: WASTEFUL})
    found = []
    for seed in range(1, runs + 1):
        suite = SumsSuite(measure, seed=seed, tests=False, timed="sums:squares")
        found.append(await ground.judged({MODULE: text or null(seed)}, suite, seed=seed))
    return found


def better(verdicts: list[Verdict]) -> int:
    """How many were promoted."""
    return sum(verdict.ruling is Ruling.BETTER for verdict in verdicts)


async def measured(nulls: int = NULLS, planted: int = BETTER) -> list[dict[str, Any]]:
    """The rows."""
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        through = await cheats(place)
        count = len(PLANTED)
        one = row("planted cheats that got through", [len(through)], [count], "", count, baseline="planted")
        found = [{**one, "through": through}]
        null_ones = await promoted(place / "null", Measure.time(), None, nulls)
        good_ones = await promoted(place / "better", Measure.time(), SUMS, planted)
        return found + _rows("time", null_ones, good_ones)


def _rows(how: str, null_ones: list[Verdict], good_ones: list[Verdict]) -> list[dict[str, Any]]:
    nulls, good = better(null_ones), better(good_ones)
    names = (f"null candidates promoted, by {how}", f"better by a fifth, promoted, by {how}")
    seconds = [verdict.seconds for verdict in good_ones]
    gains = [round(verdict.gain.mean, 1) for verdict in good_ones if verdict.gain]
    return [
        row(names[0], [nulls], [MOST_NULLS], "", len(null_ones), baseline="at most"),
        {**row(names[1], [good], [FEWEST_BETTER], "", len(good_ones), baseline="at least"), "gains": gains},
        row(f"one judgement by {how}", seconds, [300.0], "s of processor", len(seconds), baseline="budget"),
    ]


def rows() -> list[dict[str, Any]]:
    """The rows of CONTRACTS.md's bench form."""
    return asyncio.run(measured())


if __name__ == "__main__":
    for one_row in rows():
        print(json.dumps(one_row))
