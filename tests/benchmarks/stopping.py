"""How fast a stop stops, and whether its receipt is true: random stops at random instants on busy agents.

Four agents in turn: one whose model speaks (a real server on a socket), one in a command with children and a
daemon that write files all the time, one between many small actions, one with a job and a command. Each stop
has a random grade. Measured from the request, beside the limits of steering §4 T4:

* visible: the stop is durable and in the projection that the cockpit draws from;
* no new action: the gate is closed (and no action starts after it);
* stream cut: the server sees the connection closed;
* tool frozen: every process, as `/proc` of the host shows it, is stopped;
* tree dead: no process is left.

Then, after each receipt: files that changed, actions that started, and whether it listed all that lived.

Run it with `python -m tests.benchmarks.stopping`.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from app.projection.projector import Projector
from engine.agent.shared import EngineConfig
from engine.api.engine import Engine
from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.agents import RunState
from engine.core.journal import Event
from engine.core.sandbox import ItemKind, StopReceipt
from engine.core.state import AgentState
from engine.models.choice import ModelChoice
from engine.models.endpoint import Endpoint, Retries
from tests.benchmarks.cockpit import row
from tests.messages_server import MessagesServer, Reply, Seen

STOPS = 200
SEED = 7
LIMITS_MS = {
    "visible": 50.0,
    "no new action": 100.0,
    "stream cut": 250.0,
    "tool frozen": 250.0,
    "tree dead": 2000.0,
}
PATIENCE_S = 60.0
AFTER_S = 0.05
"""How long the files are watched after a receipt: fifty times what a writer needs for its next letter."""
KINDS = ("model", "command", "between", "job")
GRADES = ("hold", "cut", "cancel", "freeze", "freeze", "freeze", "kill", "kill", "kill")
BUSY = """
import os, sys, time
name = sys.argv[1]
def write(part):
    while True:
        with open(name + part, "a") as file: file.write("x")
        time.sleep(0.001)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0: write(".daemon")
    os._exit(0)
if os.fork() == 0: write(".child")
write(".main")
"""
PROCESSES = 3
"""That one such program consists of."""


@dataclass
class Measured:
    """What came of all stops."""

    times_ms: dict[str, list[float]] = field(default_factory=lambda: {name: [] for name in LIMITS_MS})
    stops: int = 0
    files_changed: int = 0
    """Files that changed after a receipt by which every process stands or is dead."""
    actions_started: int = 0
    """Actions that started after a receipt."""
    plain_ms: list[float] = field(default_factory=list)
    """Until a plain command to an idle agent was durable and projected: what disk and machine take."""
    alive: int = 0
    """Processes that lived at the stops."""
    listed: int = 0
    """Processes that the receipts named."""
    untrue: list[str] = field(default_factory=list)
    """Receipts that did not fit what there was."""


class Range:
    """A workspace with busy agents, and what can be seen of it from outside."""

    def __init__(self, engine: Engine, server: MessagesServer, seed: int) -> None:
        self.engine, self.server = engine, server
        self.random = random.Random(seed)
        self.measured = Measured()
        self.projector = Projector()
        self._news = asyncio.Event()
        self._events: list[Event] = []
        self._follower = asyncio.create_task(self._follow())

    async def close(self) -> None:
        """Follow no more."""
        self._follower.cancel()
        await asyncio.gather(self._follower, return_exceptions=True)

    async def _follow(self) -> None:
        async for event in self.engine.events(0):
            self.projector.take(event)
            self._events.append(event)
            self._news.set()

    async def until(self, holds: Callable[[], object]) -> float:
        """Wait until something holds of what is durable and projected; when that was."""
        async with asyncio.timeout(PATIENCE_S):
            while not holds():
                self._news.clear()
                await self._news.wait()
        return time.monotonic()

    async def look(self, holds: Callable[[], bool]) -> float:
        """Wait until something holds of the machine; when it was seen."""
        async with asyncio.timeout(PATIENCE_S):
            while not await asyncio.to_thread(holds):
                await asyncio.sleep(0.002)
        return time.monotonic()

    def state(self, agent: str) -> AgentState:
        """As the cockpit has it."""
        return next(state for state in self.projector.states if state.agent_id == agent)

    async def do(self, kind: type[cmd.Command], agent: str, **fields: Any) -> cmd.Receipt:
        """Submit a command that must be carried out."""
        receipt = await self.engine.submit(kind(agent=agent, **fields))
        assert receipt.ok, receipt.message
        return receipt

    # What keeps agents busy

    async def _plan(self, agent: str, steps: Sequence[dict[str, Any]]) -> None:
        await self.do(cmd.AdoptGoal, agent, text="list the files")
        await self.until(lambda: self.state(agent).plan is not None and self.state(agent).open_goals)
        goal = self.state(agent).open_goals[-1].id
        await self.do(cmd.ReplacePlan, agent, goal=goal, plan=json.dumps(steps))
        await self.do(cmd.Run, agent)

    def _writing(self, *names: str) -> Callable[[], bool]:
        files = [
            self.engine.root / f"{name}.{part}" for name in names for part in ("main", "child", "daemon")
        ]
        return lambda: all(file.exists() for file in files)

    async def busy(self, agent: str) -> None:
        """Set an agent to work, and let a random time pass."""
        if agent == "model":
            asked = len(self.server.requests)
            await self.do(cmd.AdoptGoal, agent, text="make something")
            await self.do(cmd.Run, agent)
            async with asyncio.timeout(PATIENCE_S):
                while len(self.server.requests) == asked:
                    await asyncio.sleep(0.002)
        elif agent == "between":
            await self._plan(agent, [_act("write", path=f"n{at}", content="x") for at in range(60)])
            await self.until(lambda: self.state(agent).acting)
        else:
            if agent == "job":
                await self.do(cmd.CallTool, agent, command="start", args={"command": _busy("job")})
                await self.until(lambda: self.state(agent).running_jobs and not self.state(agent).action)
            await self._plan(agent, [_act("run", command=_busy("command"))])
            await self.look(self._writing("command", *(["job"] if agent == "job" else [])))
        await asyncio.sleep(self.random.uniform(0, 0.15))

    # One stop

    async def stop(self, agent: str, grade: str) -> None:
        """Stop a busy agent, measure, and make it ready for the next one."""
        await self.busy(agent)
        before = await asyncio.to_thread(processes, self.engine.root)
        begun = time.monotonic()
        watches = [asyncio.create_task(watch) for watch in self._watches(agent, grade, begun)]
        await self.do(cmd.Stop, agent, grade=grade)
        await asyncio.gather(*watches)
        await self.engine.stopped()
        await self.until(lambda: self._last(agent) is not None and self._last(agent).complete)  # type: ignore[union-attr]
        await self._check(agent, grade, len(before))
        await self._clear(agent)

    def _watches(self, agent: str, grade: str, begun: float) -> list[Any]:
        times, root = self.measured.times_ms, self.engine.root

        async def told(name: str, when: Any) -> None:
            times[name].append((await when - begun) * 1000)

        def stands() -> bool:
            state = self.state(agent)
            return state.run is RunState.STOPPED if grade == "kill" else state.held == grade

        live = self.engine._agents[agent].state
        watches = [told("visible", self.until(stands)), told("no new action", self._gate(live))]
        if agent == "model" and grade != "hold":
            watches.append(told("stream cut", self._emptied()))
        if grade == "freeze" and agent in ("command", "job"):
            watches.append(told("tool frozen", self.look(lambda: _all_stopped(processes(root)))))
        if grade == "kill" and agent in ("command", "job"):
            watches.append(told("tree dead", self.look(lambda: not processes(root))))
        return watches

    async def _gate(self, live: AgentState) -> float:
        while live.run is RunState.RUNNING:
            await asyncio.sleep(0)
        return time.monotonic()

    async def _emptied(self) -> float:
        await self.server.emptied()
        return time.monotonic()

    def _last(self, agent: str) -> StopReceipt | None:
        receipt = self.state(agent).stop_receipt
        commands = [e for e in self._events if e.stream == agent and e.kind == ev.CommandReceived.kind]
        return receipt if receipt is not None and receipt.stop == commands[-1].ref else None

    async def _check(self, agent: str, grade: str, alive: int) -> None:
        """See whether the receipt is true, and stays so."""
        receipt, measured = self._last(agent), self.measured
        assert receipt is not None
        measured.stops += 1
        listed = sum(item.processes for item in (*receipt.stopped, *receipt.running))
        measured.alive += alive
        measured.listed += listed
        if listed != alive:
            measured.untrue.append(f"{agent} {grade}: {listed} of {alive} processes are in {receipt}")
        model = [item.fate for item in (*receipt.stopped, *receipt.running) if item.kind is ItemKind.MODEL]
        if agent == "model" and model != (["ends by itself"] if grade == "hold" else ["cut off"]):
            measured.untrue.append(f"{agent} {grade}: the model is {model}")
        still = grade in ("freeze", "kill") or (grade == "cancel" and agent != "job")
        files, started = _files(self.engine.root), self._started(agent)
        await asyncio.sleep(AFTER_S)
        measured.actions_started += self._started(agent) - started
        if still:
            now = _files(self.engine.root)
            measured.files_changed += sum(now.get(name) != seen for name, seen in files.items())
            measured.files_changed += len(now.keys() - files.keys())

    def _started(self, agent: str) -> int:
        return sum(e.stream == agent and e.kind == ev.ActionStarted.kind for e in self._events)

    async def _clear(self, agent: str) -> None:
        """End what is left, and take the files away."""
        await self.do(cmd.Stop, agent)
        await self.engine.stopped()
        await self.look(lambda: not processes(self.engine.root))
        for goal in self.state(agent).open_goals:
            await self.do(cmd.DropGoal, agent, goal=goal.id)
        await self.until(lambda: not self.state(agent).open_goals)
        begun = time.monotonic()
        await self.do(cmd.Believe, agent, key="stops", value=self.measured.stops)
        at = await self.until(lambda: self.state(agent).belief_values().get("stops") == self.measured.stops)
        self.measured.plain_ms.append((at - begun) * 1000)
        for path in self.engine.root.iterdir():
            if path.is_file():
                path.unlink()


def _act(command: str, /, **args: Any) -> dict[str, Any]:
    return {"type": "EXECUTE_TOOL", "params": {"tool_id": "simple_coder", "command": command, "args": args}}


def _busy(name: str) -> list[str]:
    return ["python", "-c", BUSY, name]


def processes(root: Path) -> dict[int, str]:
    """The state of each process that works in a directory, by process id, as the host sees it."""
    found, wanted = {}, str(root.resolve())
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != os.getpid():
            try:
                if os.readlink(f"/proc/{name}/cwd") != wanted:
                    continue
                words = Path(f"/proc/{name}/stat").read_text(errors="replace").rpartition(")")[2].split()
            except OSError:
                continue
            if words[0] not in "ZX":
                found[int(name)] = words[0]
    return found


def _all_stopped(found: dict[int, str]) -> bool:
    return all(state in "Tt" for state in found.values())


def _files(root: Path) -> dict[str, tuple[int, int]]:
    return {
        entry.name: (entry.stat().st_size, entry.stat().st_mtime_ns)
        for entry in os.scandir(root)
        if entry.is_file()
    }


def _speech(_seen: Seen) -> Reply:
    """A model that goes on speaking for longer than anybody waits, and then says nothing."""
    return Reply(text="and so on " * 60, event_delay_ms=5, after=50, then="hold")


async def measure(workspace: Path, stops: int, seed: int = SEED) -> Measured:
    """That many stops in a workspace of their own."""
    async with MessagesServer([_speech], repeat=True) as server:
        model = ModelChoice(Endpoint(server.url), "claude-opus-4-6", retries=Retries(attempts=1))
        engine = await Engine.open(workspace, config=EngineConfig(model=model))
        range_ = Range(engine, server, seed)
        try:
            for agent in KINDS:
                config = {} if agent == "model" else {"thinker": "procedural"}
                await range_.do(cmd.CreateAgent, agent, config=config)
            await range_.until(lambda: len(list(range_.projector.states)) == len(KINDS))
            for number in range(stops):
                await range_.stop(KINDS[number % len(KINDS)], range_.random.choice(GRADES))
        finally:
            await range_.close()
            await engine.close()
        return range_.measured


def rows(stops: int = STOPS) -> list[dict[str, Any]]:
    """The rows of CONTRACTS.md's bench form."""
    with tempfile.TemporaryDirectory() as place:
        measured = asyncio.run(measure(Path(place), stops))
    found = []
    for name, limit in LIMITS_MS.items():
        times = measured.times_ms[name]
        for share in (50, 95, 99):
            at, label = _share(times, share), f"limit of {limit:g} ms"
            found.append(row(f"stop, {name}, p{share}", [at], [limit], "ms", len(times), baseline=label))
    for share in (50, 95, 99):
        at, base = _share(measured.times_ms["visible"], share), _share(measured.plain_ms, share)
        label = "a plain command to an idle agent"
        found.append(row(f"stop, visible, p{share}", [at], [base], "ms", measured.stops, baseline=label))
    effects = measured.files_changed + measured.actions_started
    n = measured.stops
    found.append(row("stop, effects after a receipt", [effects], [n], "effects", n, baseline="stops"))
    found.append(
        row("stop, processes in the receipt", [measured.listed], [measured.alive], "", n, baseline="alive")
    )
    untrue = row("stop, receipts that are not true", [len(measured.untrue)], [n], "", n, baseline="stops")
    return [*found, {**untrue, "what": measured.untrue}]


def _share(times: Sequence[float], percent: int) -> float:
    """The time that this percentage of all does not exceed."""
    return sorted(times)[max(0, -(-len(times) * percent // 100) - 1)]


if __name__ == "__main__":
    for one in rows():
        print(json.dumps(one))
