"""A goal run by the engine of another program: `run` beside a cockpit, a `serve` or another `run`."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from typing import TextIO

from app.commands.goal_engine import Jail
from app.commands.headless import Run, RunOptions
from app.commands.user import NETWORK
from app.gateways.engine_client import EngineClient, EngineLostError
from app.gateways.protocol import RESTARTING
from engine.core import commands as cmd
from engine.core.agents import Health
from engine.core.journal import Event
from engine.core.state import AgentState
from engine.value import dataclass, fields_of


@dataclass(frozen=True, slots=True)
class _Jail:
    refusal: str = ""


class RemoteEngine:
    """The engine of another program, as far as running agents on goals needs it; get it by `of`.

    Args:
        client: a connection to it.
        agent: whose events are followed; empty for all.
    """

    servers = None

    def __init__(self, client: EngineClient, agent: str = "") -> None:
        self._client, self._agent = client, agent
        self.session = str(client.hello["session"])
        self.agents: tuple[str, ...] = ()
        self.health = Health()
        self._faults: dict[str, str] = {}
        self._refusals: dict[str, str] = {}

    @classmethod
    async def of(cls, client: EngineClient, agent: str = "") -> RemoteEngine:
        """The engine with what it has now."""
        engine = cls(client, agent)
        rows = await client.ask("agents")
        engine.agents = tuple(row["agent"] for row in rows)
        engine._faults = {row["agent"]: row["fault"] for row in rows}
        engine._refusals = {row["agent"]: row.get("refusal", "") for row in rows}
        health = await client.ask("health")
        library, prompts, states = (tuple(health[name]) for name in ("library", "prompts", "states"))
        engine.health = Health(library=library, prompts=prompts, states=states, sandbox=health["sandbox"])
        return engine

    async def submit(self, command: cmd.Command, *, operator: str = "") -> cmd.Receipt:
        """Have a command carried out, in the name that the client has."""
        return await self._client.submit(command)

    async def view(self, agent_id: str, /) -> AgentState:
        """The state of an agent."""
        return await self._client.view(agent_id)

    async def head(self) -> int:
        """The place of the newest durable event."""
        return int((await self._client.ask("head"))["seq"])

    def events(self, since: int = 0, *, stream: str | None = None) -> AsyncIterator[Event]:
        """Events behind a place, and new ones."""
        return self._client.events(since, stream or self._agent)

    def fault(self, agent: str) -> str:
        """Why an agent did nothing when this was made."""
        return self._faults.get(agent, "")

    async def faulted(self, agent: str) -> str:
        """Wait until an agent's cycle has ended."""
        while True:
            try:
                return str(await self._client.ask("faulted", agent=agent))
            except EngineLostError as error:
                if str(error) != RESTARTING:
                    raise

    async def durable(self, agent: str) -> None:
        """Nothing to wait for: the engine answers with what is durable."""

    def sandbox(self, agent: str = "") -> Jail:
        """Why an agent could run no programs when this was made."""
        return _Jail(self._refusals.get(agent, self.health.sandbox))


OWN_ENGINE = {"accept": "--accept-tier", "trust": "--trust"}
"""Options of a run that count when a workspace is opened."""


def refused_option(options: RunOptions) -> str:
    """The option that a run beside an open engine cannot have; empty where it has none."""
    network = options.mission is not None and options.mission.network
    given = [OWN_ENGINE[name] for name, value in fields_of(options, *OWN_ENGINE).items() if value]
    given += ["--network"] if os.environ.get(NETWORK) else []
    return next(iter([*given, *(["a mission that needs the network"] if network else [])]), "")


async def run_goal_beside(
    client: EngineClient, options: RunOptions, *, out: TextIO, err: TextIO
) -> dict[str, object]:
    """Run one agent on a goal in the engine of another program; see `run_goal`."""
    engine = await RemoteEngine.of(client, options.agent)
    result = await Run(engine, options, out, err).run()
    return {**result, "journal_head": (await client.ask("head"))["hash"]}
