"""How long an engine's event loop stands still while hostile AgentSpeak programs run, and while they step.

    python -m tests.benchmarks.reasoner_lag [NAME …] [--seconds S]

A gap is what lies between two turns of the loop: by the clock, and in processor time of this process, which
other programs of a busy machine do not lengthen. Garbage is collected as in the cockpit.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from pathlib import Path

from app.cockpit.gc_tuning import disable_gc, enable_gc
from engine.core import commands as cmd
from engine.core import events as ev
from tests.engine.agent.reasoner.reasoner_flight import ReasonerFlight

DOUBLING = "".join(f"X{n + 1} = f(X{n}, X{n}); " for n in range(60))
PROGRAMS = {
    "nothing to do": "!s. +!s <- .wait(100).",
    "endless rule": "r(X) :- r(X + 1). !s. +!s : r(0) <- .print(never). -!s <- !!s.",
    "endless rule in a step": "r(X) :- r(X + 1). !s. +!s <- ?r(0). -!s <- !!s.",
    "findall over an endless rule": "r(0). r(X) :- r(Y) & X = Y + 1. "
    "!s. +!s <- .findall(X, r(X), L). -!s <- !!s.",
    "deep term": "!s. +!s <- !deep(60000, z). "
    "+!deep(0, T) <- .print(T); +held(T); ?held(T); .length([T], _); !!s. "
    "+!deep(N, T) <- !deep(N - 1, f(T)).",
    "wide term": "!s. +!s <- .range(_, 1, 2); .findall(f(X, Y), .range(X, 1, 500) & .range(Y, 1, 200), L); "
    "+wide(L); .sort(L, M); .reverse(M, R); .print(R); .length(R, N); !!s.",
    "shared term": f"!s. +!s <- X0 = a; {DOUBLING} .print(X60); +held(X60). -!s <- !!s.",
    "growing text": '!s. +!s <- !grow("ab"). +!grow(S) <- .concat(S, S, T); !grow(T). -!s <- !!s.',
    "10,000 nested goals": "!s. +!s <- !n(10000); !!s. +!n(0). +!n(N) <- !n(N - 1); +last(N).",
    "cyclic term": "!s. +!s <- X = f(Y); if (Y = X) { .print(X) }; L = [A|B]; if (B = L) { .print(L) }; !!s.",
    "100,000 beliefs": "!s. +!s <- for (.range(X, 1, 100000)) { +b(X, text) }; .abolish(b(_, _)); !!s.",
    "endless printing": "!s. +!s <- while (true) { .print(x) }.",
    "endless goals": "!s. +!s <- !!s; !!s.",
}


class Pulse:
    """Turns of the loop, and the longest gap between two of them."""

    def __init__(self) -> None:
        self.turns = 0
        self.clock = self.processor = 0.0

    async def beat(self) -> None:
        """Take turns until cancelled."""
        clock, processor = time.perf_counter(), time.process_time()
        while True:
            await asyncio.sleep(0.001)
            now, used = time.perf_counter(), time.process_time()
            self.clock, self.processor = max(self.clock, now - clock), max(self.processor, used - processor)
            clock, processor = now, used
            self.turns += 1


async def measured(program: str, seconds: float, *, stepping: bool) -> tuple[Pulse, int]:
    """The loop's turns while an agent with this program lives, and the phases that it came through."""
    with tempfile.TemporaryDirectory() as folder:
        flight = ReasonerFlight(Path(folder))
        await flight.open()
        receipt = await flight.create(program)
        assert receipt.ok, receipt.message
        pulse = Pulse()
        beating = asyncio.create_task(pulse.beat())
        end = time.monotonic() + seconds
        if not stepping:
            await flight.do(cmd.Run)
        while time.monotonic() < end:
            if stepping:
                await flight.submit(cmd.Step)
            await asyncio.sleep(0.02)
        beating.cancel()
        phases = sum(event.phases for event in await flight.payloads(ev.ReasonerAdvanced))
        await flight.submit(cmd.Pause)
        await flight.engine.close()
    return pulse, phases


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="programs, by parts of their names")
    parser.add_argument("--seconds", type=float, default=4.0)
    options = parser.parse_args()
    disable_gc()
    asyncio.run(measured(PROGRAMS["nothing to do"], 1.0, stepping=False))  # imports what is imported once
    enable_gc()
    print(f"{'program':<30} {'':<8} {'turns':>6} {'phases':>8} {'longest gap':>12} {'of processor':>13}")
    for name, program in PROGRAMS.items():
        if options.names and not any(part in name for part in options.names):
            continue
        for stepping in (False, True):
            pulse, phases = asyncio.run(measured(program, options.seconds, stepping=stepping))
            gaps = f"{pulse.clock * 1e3:9.0f} ms {pulse.processor * 1e3:10.0f} ms"
            how = "steps" if stepping else "runs"
            print(f"{name:<30} {how:<8} {pulse.turns:6} {phases:8} {gaps}", flush=True)


if __name__ == "__main__":
    main()
