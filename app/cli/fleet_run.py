"""Running a fleet without a screen: many agents in one process, each to the end of its goal.

A fleet file is TOML with one table for each agent, or for several of a kind:

    [[agents]]
    id = "writer"
    count = 20                                  # writer-1 … writer-20; left out: one, by its id alone
    goal = "write 'hello from {id}' to {id}/hello.txt"
    thinker = "procedural"                      # left out: the usual one
    max_loops = 50                              # left out: no limit

`{id}` in a goal is the agent's own.
"""

from __future__ import annotations

import asyncio
import tomllib
from collections import Counter
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any, TextIO

from pydantic import BaseModel, Field, ValidationError

from app.commands.goal_engine import GoalEngine
from app.commands.headless import (
    EXIT_CODES,
    Run,
    RunOptions,
    Status,
    on_interrupt,
    open_engine,
    print_problems,
)
from app.commands.settings import load_and_say
from app.gateways.engine_client import EngineClient
from app.gateways.remote_engine import RemoteEngine
from app.gateways.socket_server import served
from engine.core.journal import Event
from engine.core.store.places import read_plain
from engine.core.text import clean_line, first_problem
from engine.value import dataclass, replace

LARGEST = 20_000_000
"""Bytes of a fleet file."""
MOST = 1_000
"""Agents of one fleet."""
WORST_FIRST = (
    *(Status.INTERRUPTED, Status.FAULT, Status.NO_JAIL, Status.FAILED, Status.BUDGET_EXCEEDED),
    *(Status.TIMED_OUT, Status.NEEDS_OPERATOR, Status.GOAL_ACHIEVED),
)
"""Of a fleet's ends the first that there is says how all ended."""


class FleetError(ValueError):
    """A fleet file that cannot be used; the message says what is wrong, where, and what to do."""


class _Table(BaseModel, extra="forbid", strict=True, frozen=True):
    id: str = Field(pattern=r"^[a-z][a-z0-9-]{0,39}$")
    count: int | None = Field(default=None, ge=1, le=MOST)
    goal: str = Field(min_length=1, max_length=8_000)
    thinker: str = Field(default="", pattern=r"^(procedural|claude)?$")
    max_loops: int | None = Field(default=None, ge=1)


class _File(BaseModel, extra="forbid", strict=True, frozen=True):
    agents: list[_Table] = Field(min_length=1)


@dataclass(frozen=True, slots=True)
class Member:
    """One agent of a fleet."""

    agent: str
    goal: str
    thinker: str = ""
    max_loops: int | None = None


def load_fleet(path: Path) -> tuple[Member, ...]:
    """The agents of a fleet file, in its order; blocking.

    Raises:
        FleetError: the file cannot be read or is not valid.
    """
    try:
        read = _File.model_validate(tomllib.loads(read_plain(path, LARGEST).decode("utf-8")))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise FleetError(f"{path}: cannot be read: {error}: correct the file") from error
    except ValidationError as error:
        raise FleetError(f"{path}: {first_problem(error)}: correct the value") from error
    members = tuple(member for table in read.agents for member in _members(table))
    twice = [name for name, times in Counter(each.agent for each in members).items() if times > 1]
    if twice:
        raise FleetError(f"{path}: there are two agents '{twice[0]}': give one another id")
    if len(members) > MOST:
        raise FleetError(f"{path}: {len(members)} agents are more than {MOST}: run them in several fleets")
    return members


def _members(table: _Table) -> list[Member]:
    numbers = range(1, table.count + 1) if table.count is not None else ()
    names = [f"{table.id}-{number}" for number in numbers] or [table.id]
    return [Member(name, table.goal.replace("{id}", name), table.thinker, table.max_loops) for name in names]


class Fleet:
    """One headless run of many agents."""

    def __init__(
        self, engine: GoalEngine, members: tuple[Member, ...], options: RunOptions, out: TextIO, err: TextIO
    ) -> None:
        self._engine, self._members, self._options, self._err = engine, members, options, err
        self._news: dict[str, asyncio.Queue[Event]] = {member.agent: asyncio.Queue() for member in members}
        self._runs = {
            member.agent: Run(engine, self._of(member), out, err, events=self._events(member.agent))
            for member in members
        }

    def _of(self, member: Member) -> RunOptions:
        return replace(
            self._options,
            agent=member.agent,
            goal=member.goal,
            thinker=member.thinker or self._options.thinker,
            max_loops=member.max_loops or self._options.max_loops,
        )

    async def _events(self, agent: str) -> AsyncIterator[Event]:
        while True:
            yield await self._news[agent].get()

    async def run(self) -> dict[str, Any]:
        """Run all goals at once; how each ended, in the file's order."""
        loop = asyncio.get_running_loop()
        began, since = loop.time(), await self._engine.head()
        print_problems(self._engine, self._err)
        follower = asyncio.create_task(self._follow(since), name="events of the fleet")
        try:
            with on_interrupt(self._interrupt):
                ends = await asyncio.gather(*(run.run() for run in self._runs.values()))
        finally:
            follower.cancel()
            await asyncio.gather(follower, return_exceptions=True)
        statuses = [Status(end["status"]) for end in ends]
        worst = next(status for status in WORST_FIRST if status in statuses)
        counts = Counter(status.value for status in statuses)
        return {
            "status": worst.value,
            "agents": [
                {**end, "agent": member.agent} for member, end in zip(self._members, ends, strict=True)
            ],
            "counts": dict(counts),
            "actions": sum(end.get("actions", 0) for end in ends),
            "events": await self._engine.head() - since,
            "session": self._engine.session,
            "duration_s": round(loop.time() - began, 3),
            "message": f"{counts[Status.GOAL_ACHIEVED.value]} of {len(ends)} goals achieved",
        }

    def _interrupt(self) -> None:
        for run in self._runs.values():
            run.interrupt()

    async def _follow(self, since: int) -> None:
        """Follow the journal once for all, and show each event to the run of its agent."""
        async for event in self._engine.events(since):
            if (run := self._runs.get(event.stream)) is not None:
                run.show(event)
                self._news[event.stream].put_nowait(event)


async def run_fleet(
    file: Path, options: RunOptions, *, out: TextIO, err: TextIO, client: EngineClient | None = None
) -> dict[str, Any]:
    """Run the agents of a fleet file; the answer has one object of `run --json` for each of them.

    Args:
        file: names them.
        options: how they run.
        out: where events are printed.
        err: where lines for people are printed.
        client: of the engine that runs; None for one of this process.

    Raises:
        FleetError: the file cannot be used.
        JournalError: the workspace cannot be opened.
    """
    members = await asyncio.to_thread(load_fleet, file)
    if client is not None:
        remote = await RemoteEngine.of(client)
        result = await Fleet(remote, members, options, out, err).run()
        return {**result, "journal_head": (await client.ask("head"))["hash"]}
    config = load_and_say(options.workspace, trust=options.trust).engine_config(accept=options.accept)
    async with open_engine(options.workspace, config, partial(served, kind="run")) as engine:
        result = await Fleet(engine, members, options, out, err).run()
    return {**result, "journal_head": engine.final_head}


def fleet_table(result: dict[str, Any]) -> str:
    """How each agent ended, one line each, and all together below."""
    wide = max(len(end["agent"]) for end in result["agents"])
    lines = [
        f"{end['agent']:<{wide}}  {end['status']:<15}  {end.get('actions', 0):>4} actions"
        f"  {end.get('duration_s', 0.0):>8.1f} s  {clean_line(str(end['message']))}".rstrip()
        for end in result["agents"]
    ]
    total = (
        f"{result['message']}: {result['actions']} actions, {result['events']} events "
        f"in {result['duration_s']:.1f} s"
    )
    return "\n".join([*lines, total])


def exit_code(result: dict[str, Any]) -> int:
    """0 when every goal was achieved, else the code of how the worst one ended."""
    return EXIT_CODES[Status(result["status"])]
