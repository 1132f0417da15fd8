"""How long a selection takes on the embedded graph, beside the pure definition over all agents in memory.

Both choose five among 1,000 and 10,000 agents with four triggers and four chains each, for the same 30
signals, and have to come to the same. Ours is the whole way of a caller: checked, asked in SQLite's thread,
with points and reasons. Run it with `python -m tests.benchmarks.selection`.
"""

from __future__ import annotations

import asyncio
import json
import os
import platform
import random
import sqlite3
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from engine.selection import Edge, Node, Signal, SqliteGraph, choose, facts_of

SIZES = (1_000, 10_000)
SIGNALS = 30
TYPES = ("un-defined", "ill-defined", "well-defined", *(f"kind-{number}" for number in range(17)))


def _graph(size: int) -> tuple[list[Node], list[Edge]]:
    """Agents whose triggers come out of half as many words, and who list one type in twenty."""
    dice = random.Random(size)
    words = [f"word-{number}" for number in range(size // 2)]
    ids = [f"agent-{number}" for number in range(size)]
    nodes = [
        Node(one, one, "operator", tuple(dice.sample(words, 4)), (dice.choice(TYPES),), enabled=True)
        for one in ids
    ]
    ends = [(src, dst) for src in ids for dst in dice.sample(ids, 4) if src != dst]
    edges = [Edge(src, "CHAINS_TO", dst, dice.randint(1, 10) / 10) for src, dst in ends]
    edges += [Edge(one, "USED_BY", f"s{n}", float(dice.random() < 0.7)) for one in ids[::5] for n in range(4)]
    return nodes, edges


def _signals(size: int) -> list[Signal]:
    dice = random.Random(size + 1)
    return [
        Signal(
            tuple(f"word-{dice.randrange(size // 2)}" for _ in range(4)),
            (dice.choice(TYPES),),
            tuple(f"agent-{dice.randrange(size)}" for _ in range(3)),
        )
        for _ in range(SIGNALS)
    ]


async def _measure(path: Path, size: int) -> tuple[list[float], list[float]]:
    """Seconds of each selection, in SQLite and by the pure definition."""
    nodes, edges = _graph(size)
    facts = facts_of(nodes, edges)
    graph = await SqliteGraph.open(path)
    ours, pure = [], []
    try:
        async with graph.transaction() as unit:
            for node in nodes:
                await unit.upsert(node)
            for edge in edges:
                await unit.link(edge.src, edge.rel, edge.dst, **edge.props)
        for signal in _signals(size):
            begin = time.perf_counter()
            found = await graph.select(signal)
            between = time.perf_counter()
            wanted = choose(facts, signal)
            pure.append(time.perf_counter() - between)
            ours.append(between - begin)
            if found != wanted:
                raise AssertionError(f"SQLite and the definition differ for {signal}.")
    finally:
        await graph.close()
    return ours, pure


def rows() -> list[dict[str, Any]]:
    """A row for each size; a ratio above 1 means faster than the pure definition."""
    out = []
    for size in SIZES:
        with tempfile.TemporaryDirectory() as place:
            ours, pure = asyncio.run(_measure(Path(place) / "graph.db", size))
        p50, p95 = statistics.median(ours) * 1e3, statistics.quantiles(ours, n=20)[-1] * 1e3
        each = [1 / statistics.median(times) for times in (ours, pure)]
        out.append(
            {
                "name": f"selection among {size} agents, p50 {p50:.2f} ms, p95 {p95:.2f} ms, "
                "beside the pure definition",
                "ours": round(each[0]),
                "baseline": round(each[1]),
                "ratio": round(each[0] / each[1], 3),
                "unit": "selections/s",
                "n": SIGNALS,
                "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, "
                f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}",
            }
        )
    return out


if __name__ == "__main__":
    for found in rows():
        print(json.dumps(found))
