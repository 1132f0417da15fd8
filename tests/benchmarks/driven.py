"""A cockpit that is told from outside how many events its agent is to record; for measuring in a terminal.

Run as `python -m tests.benchmarks.driven WORKSPACE ORDERS NOTES`: lines that arrive on the file descriptor
ORDERS (`rate N` events a second, `burst N` events at once, `run 0`: every agent goes on, `crew N`: so many
handoffs are kept in flight from then on) are carried out in the cockpit's own loop. Where a fourth argument
names an endpoint, its model thinks. The file NOTES gets `d N SECONDS` when event N is durable, `b N` behind a
burst, `h ENDED OPEN` for the crew's handoffs, and `s SECONDS` for each turn of the loop that others had to
wait for longer than a frame, by the clock that all processes share.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from pathlib import Path
from typing import TextIO

from app.cockpit import app as cockpit
from app.cockpit.gc_tuning import disable_gc
from app.commands.settings import Settings
from engine.api.engine import Engine
from engine.core import commands as cmd
from engine.core import crew_commands as cc
from engine.core import events as ev
from engine.crew.ontology.spec_parser import parse_spec
from engine.models.choice import ModelChoice
from engine.models.endpoint import Endpoint

CREW_SPEC = {
    "type": "operator",
    "description": "says what it thinks",
    "handoff": {"receives": {"requires_who": False, "requires_success": False, "min_clarity": 0.0}},
    "instructions": {"system": "Say what you think of it."},
    "model": {"thinking": "off"},
}
"""What agents are that keep handoffs in flight: one answer of a model ends each."""
TURN_S = 0.02
SLICE = 16
"""Events recorded between two turns of the loop."""


class Driven(cockpit.Cockpit):
    """The cockpit, and what its agent is to record."""

    CSS_PATH = str(Path(cockpit.__file__).with_name("cockpit.tcss"))
    orders = -1
    notes: TextIO
    rate = 0
    count = 0

    async def on_mount(self) -> None:
        """Begin to listen once the screen stands."""
        os.set_blocking(self.orders, False)
        asyncio.get_running_loop().add_reader(self.orders, self._ordered)
        self.run_worker(self._record(), name="driven", exit_on_error=False)
        self.run_worker(self._beat(), name="beat", exit_on_error=False)

    def _ordered(self) -> None:
        for line in os.read(self.orders, 1 << 16).decode().splitlines():
            what, _, number = line.partition(" ")
            match what:
                case "rate":
                    self.rate = int(number)
                case "run":
                    self.run_worker(self._run_all(), name="run all", exit_on_error=False)
                case "crew":
                    self.run_worker(self._hand_over(int(number)), name="crew", exit_on_error=False)
                case "burst":
                    self.run_worker(self._burst(int(number)), name="burst", exit_on_error=False)

    async def _beat(self) -> None:
        while True:
            before = time.monotonic()
            await asyncio.sleep(0.005)
            late = time.monotonic() - before - 0.005
            if late > 1 / 30:
                print(f"s {late:.4f}", file=self.notes, flush=True)

    async def _record(self) -> None:
        due, before = 0.0, time.monotonic()
        while True:
            await asyncio.sleep(TURN_S)
            now = time.monotonic()
            due, before = due + self.rate * (now - before), now
            if self.context.engine is not None and due >= 1:
                await self._think(self.context.engine, int(due))
                due -= int(due)

    async def _run_all(self) -> None:
        if self.context.engine is not None:
            for agent in self.context.engine.agents:
                await self.context.engine.submit(cmd.Run(agent=agent))

    async def _hand_over(self, many: int) -> None:
        """Keep handoffs in flight, each to an agent of its own."""
        engine = self.context.engine
        assert engine is not None
        crew = await engine.crew()
        names = [f"crew-{number:02}" for number in range(1, many + 1)]
        for name in names:
            spec = parse_spec({"id": name, "name": name, **CREW_SPEC})
            await engine.submit(cc.RegisterAgent(spec=spec.model_dump(mode="json")))
        while True:
            busy = {one.agent for one in crew.state.open()}
            for name in names:
                if name not in busy:
                    await engine.submit(cc.Delegate(to=name, task=f"Say what {name} thinks of the plan."))
            ended = sum(not one.open for one in crew.state.handoffs.values())
            print(f"h {ended} {len(busy)}", file=self.notes, flush=True)
            await asyncio.sleep(0.05)

    async def _burst(self, many: int) -> None:
        if self.context.engine is not None:
            await self._think(self.context.engine, many)
            print(f"b {many}", file=self.notes, flush=True)

    async def _think(self, engine: Engine, many: int) -> None:
        agent = engine._agents[engine.agents[0]]
        first = self.count + 1
        for number in range(first, first + many):
            agent.append(ev.ThoughtRecorded(text=f"mark{number:07d}"), "agent")
            if not number % SLICE:
                await asyncio.sleep(0)
        self.count += many
        await agent.log.commit()
        print(f"d {self.count} {time.monotonic():.6f}", file=self.notes, flush=True)


def main(workspace: Path, orders: int, notes: Path, endpoint: str = "") -> None:
    """Run it until its terminal is gone, with garbage looked for as `pilothouse` does."""
    disable_gc()
    model = ModelChoice(Endpoint(endpoint), "claude-opus-4-6") if endpoint else None
    with notes.open("w") as file:
        Driven.orders, Driven.notes = orders, file
        Driven(workspace, settings=Settings(home=workspace, model=model)).run()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]), *sys.argv[4:5])
