"""How surely a better plan library is found and promoted, and how seldom one that is no better.

Planted libraries lose about a fifth of their steps by the order of two plans; nulls have other names, another
order of plans that never compete, or another first move. Everything is drawn from seeds, searched without a
model and judged by the sealed judge. The last row audits a journal of 100,000 events.
Run it with `python -m tests.benchmarks.evolving`.
"""

from __future__ import annotations

import asyncio
import json
import random
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from engine.core.improvement import Component, ComponentKind, Proposal, Ruling, Verdict
from engine.core.ports import SystemClock
from engine.core.store.sqlite import SqliteJournal
from engine.improve.judge.judge import Judge
from engine.improve.search.audit import audit
from engine.improve.search.components import PLANS, PLANS_FILE
from engine.improve.search.plan_search import search_library
from engine.improve.search.suites import PlansSuite
from tests.benchmarks.long_session import make
from tests.engine.improve.planted import GOOD, PLANTED, null

PLANTED_RUNS, NULL_RUNS, GOOD_RUNS = 20, 100, 10
COMPONENT = Component(PLANS, ComponentKind.PLANS, "the explorer's plans", (PLANS_FILE,))


async def judged(before: str, after: str, seed: int) -> Verdict:
    """What the judge says of one library beside another."""
    with tempfile.TemporaryDirectory(prefix="evolving-") as place:
        trees = [Path(place, name) for name in ("before", "after")]
        for tree, text in zip(trees, (before, after), strict=True):
            (tree / PLANS_FILE).parent.mkdir(parents=True)
            (tree / PLANS_FILE).write_text(text, encoding="utf-8")
        proposal = Proposal("a change", "search:plans", {PLANS_FILE: after})
        judge, suite = Judge(Path(place, "judge")), PlansSuite(COMPONENT, seed)
        # As a campaign does: what may be seen first, and what is sealed only where that speaks for it.
        seen = await judge.compare(*trees, COMPONENT, proposal, suite, seed=seed, sealed=False)
        if seen.gain is None or seen.gain.mean <= 0:
            return replace(seen, ruling=Ruling.NO_BETTER)
        return await judge.compare(*trees, COMPONENT, proposal, suite, seed=seed)


async def planted(number: int) -> Verdict | None:
    """Search and judgement of a library with a planted loss; None where the search found nothing."""
    before = PLANTED[number % len(PLANTED)]
    found = search_library(before, random.Random(f"planted {number}"))
    return await judged(before, found.text, number) if found is not None else None


def rows() -> list[dict[str, Any]]:
    """The rows of CONTRACTS.md's bench form."""
    return [_row(*one) for one in asyncio.run(_measured())] + [asyncio.run(_audited(100_000))]


async def _measured() -> list[tuple[str, int, int, int, float]]:
    found = []
    begun = time.process_time()
    better = [v for n in range(PLANTED_RUNS) if (v := await planted(n)) and v.ruling is Ruling.BETTER]
    seconds = (time.process_time() - begun) / PLANTED_RUNS
    found.append(("planted 20 % loss found and promoted", len(better), 18, PLANTED_RUNS, seconds))
    begun = time.process_time()
    verdicts = [await judged(*null(n), seed=n) for n in range(NULL_RUNS)]
    nulls = sum(one.ruling is Ruling.BETTER for one in verdicts)
    seconds = (time.process_time() - begun) / NULL_RUNS
    found.append(("null candidates promoted", nulls, 5, NULL_RUNS, seconds))
    begun = time.process_time()
    none = sum(search_library(GOOD, random.Random(f"good {n}")) is None for n in range(GOOD_RUNS))
    seconds = (time.process_time() - begun) / GOOD_RUNS
    found.append(("a good library ends without a proposal", none, GOOD_RUNS, GOOD_RUNS, seconds))
    return found


def _row(name: str, ours: int, baseline: int, runs: int, seconds: float) -> dict[str, Any]:
    return {
        "name": f"{name}, of {runs}",
        "ours": ours,
        "baseline": baseline,
        "unit": "runs",
        "ratio": None,
        "n": runs,
        "seconds": round(seconds, 2),
    }


async def _audited(events: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="evolving-") as place:
        workspace = Path(place)
        await asyncio.to_thread(make, workspace, events)
        store = await SqliteJournal.open(workspace, clock=SystemClock(), read_only=True)
        begun = time.perf_counter()
        found = await audit(workspace, store)
        seconds = time.perf_counter() - begun
        await store.close()
    return {
        "name": f"audit of a journal of {events:,} events",
        "ours": round(seconds * 1000, 1),
        "baseline": 5_000.0,
        "unit": "ms",
        "ratio": round(seconds / 5, 3),
        "n": len(found),
    }


if __name__ == "__main__":
    for row in rows():
        print(json.dumps(row))
