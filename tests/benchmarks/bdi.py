"""How fast the AgentSpeak(L) reasoner is, beside `agentspeak` 0.2.2 on the same programs (spec §4).

The programs (a) to (d) are those of the specification. Ours runs full cycles with an event queue, round robin
and indexes; the other calls plans directly. Each figure is the median of rounds that take turns, tracing off.
The other package is GPL-3: it is measured where it is installed (`pip install -e '.[bench]'`) and is no part
of Pilothouse. Run it with `python -m tests.benchmarks.bdi`.
"""

from __future__ import annotations

import gc
import json
import os
import platform
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from engine.bdi.parser import parse_program
from engine.bdi.plans import LoadedProgram
from engine.bdi.system import System

ROUNDS = 3
GOALS = 10_000
FACTS = 5_000
"""Of each of two relations."""


@dataclass(frozen=True, slots=True)
class Program:
    """One program of the comparison."""

    name: str
    text: str
    unit: str
    count: int
    """What one run does, in units."""
    target: float
    """Least ratio that is asked for; above 1 is faster than the other."""
    agents: int = 1
    loading: bool = False
    """True when parsing and loading is measured instead of running."""


def _facts() -> str:
    pairs = (f"p({n},{n * 7 % FACTS}).\nq({n},{n % 100}).\n" for n in range(FACTS))
    return "".join(pairs)


_JOIN = """
!go(100).
+!go(0).
+!go(N) : N > 0 <- !find(N); !go(N-1).
+!find(N) : p(N,K) & q(K,V) & V > 50 <- +found(N).
+!find(N).
"""
_EACH_ANSWER = """
n(0).
!go.
+!go <- for (left(X) & right(Y)) { ?n(C); -+n(C+1) }.
"""
_AGENT = """
!go(10).
+!go(0).
+!go(N) : N > 0 <- !work(N); !go(N-1).
+!work(N) <- +step(N); ?step(N); -step(N).
"""


def _count(goals: int) -> str:
    return f"!count({goals}).\n+!count(0).\n+!count(N) : N > 0 <- !count(N-1).\n"


def programs() -> list[Program]:
    """The programs of the specification's table."""
    facts = _facts()
    sides = "".join(f"left({n}).\nright({n}).\n" for n in range(50))
    plans = "".join(f"+!sel({n},X) <- +done({n}).\n" for n in range(1, 1001))
    select = "!go(1000).\n+!go(0).\n+!go(N) : N > 0 <- !sel(N,N); !go(N-1).\n"
    return [
        Program("bdi (a) nested goals", _count(GOALS), "goals/s", GOALS, 1.0),
        Program("bdi (b) parse and load facts", facts, "facts/s", 2 * FACTS, 1.3, loading=True),
        Program("bdi (b1) joins in contexts", facts + _JOIN, "goals/s", 100, 8.0),
        Program("bdi (b2) one join enumerated", sides + _EACH_ANSWER, "answers/s", 2500, 1.0),
        Program("bdi (c) a thousand agents", _AGENT, "goals/s", 10_000, 1 / 1.5, agents=1000),
        Program("bdi (d) a thousand plans", plans + select, "goals/s", 1000, 8.0),
    ]


def ours(program: Program) -> float:
    """Seconds of one run."""
    begin = time.perf_counter()
    loaded = LoadedProgram(parse_program(program.text))
    system = System()
    for number in range(program.agents):
        system.add(f"agent{number}", loaded)
    loaded_at = time.perf_counter()
    system.run()
    return loaded_at - begin if program.loading else time.perf_counter() - loaded_at


def theirs(program: Program) -> float:
    """The same with the other package."""
    runtime, library = import_module("agentspeak.runtime"), import_module("agentspeak.stdlib")
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "program.asl"
        path.write_text(program.text, encoding="utf-8")
        environment = runtime.Environment()
        begin = time.perf_counter()
        with path.open(encoding="utf-8") as source:
            if program.agents == 1:
                environment.build_agent(source, library.actions)
            else:
                environment.build_agents(source, program.agents, library.actions)
        loaded_at = time.perf_counter()
        environment.run()
        return loaded_at - begin if program.loading else time.perf_counter() - loaded_at


def _measured(run: Callable[[Program], float], program: Program) -> float:
    gc.collect()
    return run(program)


def _compared(
    name: str, program: Program, mine: list[float], against: Program, other: list[float]
) -> dict[str, Any]:
    our = program.count / statistics.median(mine)
    base = against.count / statistics.median(other) if other else None
    return {
        "name": name,
        "ours": round(our),
        "baseline": "not installed" if base is None else round(base),
        "ratio": None if base is None else round(our / base, 2),
        "unit": program.unit,
        "n": program.count,
        "target": round(program.target, 2),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, "
        f"Python {platform.python_version()}",
    }


def _row(program: Program) -> dict[str, Any]:
    installed = find_spec("agentspeak") is not None
    mine: list[float] = []
    other: list[float] = []
    for _ in range(ROUNDS):
        mine.append(_measured(ours, program))
        if installed:
            other.append(_measured(theirs, program))
    return _compared(program.name, program, mine, program, other)


def _linear() -> dict[str, Any]:
    """Ten times as many nested goals beside the first number of them, which shows that time is linear."""
    few, many = (Program("", _count(count), "goals/s", count, 0.8) for count in (GOALS, 10 * GOALS))
    spent: dict[int, list[float]] = {few.count: [], many.count: []}
    for program in (few, many) * ROUNDS:
        spent[program.count].append(_measured(ours, program))
    return _compared("bdi 100,000 nested goals beside 10,000", many, spent[many.count], few, spent[few.count])


def rows() -> list[dict[str, Any]]:
    """One row a program, and one that shows that time is linear; a ratio above 1 is faster."""
    return [*map(_row, programs()), _linear()]


if __name__ == "__main__":
    for found in rows():
        print(json.dumps(found))
