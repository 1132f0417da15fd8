"""Whole processes beside Jason's: loading facts, goals in each other or in a row; memory of an agent.

    JASON=folder python -m tests.benchmarks.jason_speed

Seconds are processor time of the whole process, the least of some rounds that take turns, which is least
disturbed by what else runs; the time on the clock stands beside it. A ratio above 1 is faster than Jason. The
folder holds Jason's classes or its jar; without it only ours is measured.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
import tracemalloc
from pathlib import Path
from typing import NamedTuple

from engine.bdi.parser import parse_program
from engine.bdi.plans import LoadedProgram
from engine.bdi.system import System
from tests.benchmarks.jason_conformance import LOGGING, classpath

ROUNDS = 3
LONGEST_S = 60
AGENTS = 10_000
FACTS = "".join(f"p({n},{n * 7 % 50_000}).\nq({n},{n % 100}).\n" for n in range(50_000))
PROGRAMS = {
    "load 100,000 facts": f"{FACTS}!go.\n+!go <- .print(done); .stopMAS.\n",
    "10,000 goals in each other": "!go.\n+!go <- !count(10000); .print(done); .stopMAS.\n"
    "+!count(0).\n+!count(N) : N > 0 <- !count(N-1).\n",
    "20,000 goals one after the other": "!go(10000).\n+!go(0) <- .print(done); .stopMAS.\n"
    "+!go(N) : N > 0 <- !a(N); !b(N); !!go(N-1).\n+!a(N).\n+!b(N) <- X = N.\n",
}
AGENT = "b(1).\n!go.\n+!go <- +started; .wait({+go}); .print(gone).\n+!other(X) : b(Y) <- +c(X, Y).\n"
ROOT = Path(__file__).parents[2]


class Spent(NamedTuple):
    """What a process took, in seconds."""

    processor: float
    clock: float
    ended: bool


def spent(words: list[str], folder: Path) -> Spent:
    """Run a process to its end, or as long as it may."""
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    process = subprocess.Popen(
        words,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    try:
        out, _ = process.communicate(timeout=LONGEST_S)
    except subprocess.TimeoutExpired:
        process.kill()
        out, _ = process.communicate()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Spent(used, time.monotonic() - begun, b"done" in out and process.returncode != -9)


def compare(name: str, text: str, jason: Path | None) -> str:
    """A line of the table."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "prog.asl").write_text(text)
        (folder / "t.mas2j").write_text("MAS t { agents: prog; }")
        (folder / "logging.properties").write_text(LOGGING)
        ours = [sys.executable, "-m", "app.cli.main", "asl", "prog.asl"]
        theirs = ["java", "-Djava.awt.headless=true", "-cp", classpath(jason)] if jason else []
        theirs += ["jason.infra.local.RunLocalMAS", "t.mas2j", "--log-conf", "logging.properties", "--no-net"]
        mine, other = [], []
        for _ in range(ROUNDS):
            mine.append(spent(ours, folder))
            if jason and (not other or other[-1].ended):
                other.append(spent(theirs, folder))
    here, there = min(mine), min(other) if other else None
    row = f"{name:<34} {here.processor:6.2f} s ({here.clock:.1f} s)"
    if there is None:
        return row
    least = "" if there.ended else "> "
    ratio = there.processor / here.processor
    return f"{row}   Jason {least}{there.processor:.2f} s ({there.clock:.1f} s)   ratio {least}{ratio:.2f}"


def memory_of_agents() -> str:
    """What an agent of a program that all share takes when it has begun and waits."""
    loaded = LoadedProgram(parse_program(AGENT))
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    system = System()
    for number in range(AGENTS):
        system.add(f"agent{number}", loaded)
    system.run(50)
    used = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    waiting = sum(bool(agent.pending) for agent in system.agents.values())
    each, whole = used / AGENTS / 1024, used / 2**20
    return f"{AGENTS:,} agents, {waiting:,} waiting: {each:.1f} KiB an agent, {whole:.0f} MiB in all"


if __name__ == "__main__":
    oracle = Path(os.environ["JASON"]) if os.environ.get("JASON") else None
    for title, program in PROGRAMS.items():
        print(compare(title, program, oracle), flush=True)
    print(memory_of_agents())
