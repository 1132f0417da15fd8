"""All shards of a fleet together, as a cockpit or a command line uses them."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from pathlib import Path
from typing import Any

from app.cli.fleet.database import ShardRow, fleet_database, shard_of, shard_rows
from app.cli.fleet.messages import undelivered
from app.gateways.addresses import AddressError
from app.gateways.engine_client import EngineClient, EngineLostError
from app.gateways.protocol import ProtocolError
from app.projection.shard_views import ShardView
from engine.value import replace

ANSWER_S = 10.0
UNUSABLE = (AddressError, ProtocolError, EngineLostError, TimeoutError)


class FleetClient:
    """Asks the engines of all shards; those of other machines answer there."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._clients: dict[int, EngineClient] = {}
        self._turns: defaultdict[int, asyncio.Lock] = defaultdict(asyncio.Lock)
        """Of those who connect to a shard, so that there is one connection."""
        self._views: dict[int, ShardView] = {}
        self.shards: list[ShardRow] = []
        """Where they are, as of the last `look`."""
        self.undelivered: list[str] = []
        """Messages between shards that did not arrive, as of the last `look`."""

    async def look(self) -> list[ShardRow]:
        """Find out where the shards are.

        Raises:
            JournalError: the fleet's database cannot be reached.
        """
        async with fleet_database(self._url) as connection:
            self.shards = await shard_rows(connection)
            self.undelivered = await undelivered(connection)
        return self.shards

    def shard_of(self, agent: str) -> ShardRow:
        """The shard on which an agent lives."""
        return self.shards[shard_of(agent, len(self.shards)) - 1]

    async def ask(self, shard: ShardRow, name: str, **fields: Any) -> Any:
        """Ask a shard's engine.

        Raises:
            AddressError, ProtocolError, EngineLostError, TimeoutError: it cannot be asked.
        """
        async with asyncio.timeout(ANSWER_S):
            async with self._turns[shard.number]:
                client = await self._connected(shard)
            return await client.ask(name, **fields)

    async def _connected(self, shard: ShardRow) -> EngineClient:
        client = self._clients.get(shard.number)
        if client is None or client.ended:
            if client is not None:
                await client.close()
            client = await EngineClient.open(Path(shard.workspace)) if shard.workspace else None
            if client is None:
                place = f" on {shard.node}" if shard.node else ""
                raise EngineLostError(f"{shard.state}{place}, and no engine answers here")
            self._clients[shard.number] = client
        return client

    async def ask_all(self, name: str, **fields: Any) -> list[Any]:
        """What each shard answers, or why it does not, by number."""
        asked = (self.ask(shard, name, **fields) for shard in self.shards)
        return await asyncio.gather(*asked, return_exceptions=True)

    async def views(self) -> list[ShardView]:
        """How each shard is, for the board; of one that does not answer, how it was.

        Raises:
            JournalError: the fleet's database cannot be reached.
        """
        await self.look()
        agents, needs = await asyncio.gather(self.ask_all("agents"), self.ask_all("inbox"))
        for shard, rows, waits in zip(self.shards, agents, needs, strict=True):
            before = self._views.get(shard.number, ShardView(shard.number, shard.name))
            broken = next((each for each in (rows, waits) if isinstance(each, BaseException)), None)
            if broken is None:
                view = replace(before, agents=rows, needs=waits, trouble="")
            else:
                view = replace(before, trouble=str(broken) or "it does not answer")
            self._views[shard.number] = view
        return [self._views[number] for number in sorted(self._views)]

    async def give(self, key: str, goal: str) -> str:
        """Give the agent with this key of the board a goal; what its shard says to that."""
        number, _, agent = key.partition(" ")
        shard = self.shards[int(number) - 1]
        try:
            receipt = await self.ask(
                shard, "submit", command={"do": "adopt_goal", "agent": agent, "text": goal}
            )
        except UNUSABLE as error:
            return f"{shard.name}: {error}"
        return f"{agent} on {shard.name}: {receipt['message']}"

    async def stop_all(self) -> tuple[bool, list[str]]:
        """Stop every agent of every shard at once; whether all were, and a line for each shard."""
        stop = {"do": "stop", "scope": "all"}
        lines, done = [], True
        answers = await self.ask_all("submit", command=stop)
        for shard, answer in zip(self.shards, answers, strict=True):
            if isinstance(answer, BaseException):
                lines.append(f"{shard.name}: not stopped: {answer or type(answer).__name__}")
                done = False
                continue
            receipts = answer["data"].get("receipts", [])
            going = [item["name"] for each in receipts for item in each["running"]]
            rest = f", {len(going)} still being ended" if going else ""
            done &= answer["ok"]
            trouble = "" if answer["ok"] else f": {answer['message']}"
            lines.append(f"{shard.name}: {len(receipts)} agents stopped{rest}{trouble}")
        return done, lines

    async def close(self) -> None:
        """End the connections."""
        for client in self._clients.values():
            await client.close()
