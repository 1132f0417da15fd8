"""Budgets over all shards: each shard's engine may take what was granted to it, and never more.

A grant is a row in the fleet's database that only whoever holds the budget's row changes. It is the budget of
the engine's workspace at the same time, which is recorded in its journal, so it holds after a crash, too. The
engine hears of more after it was granted, and of less before it is given back.
"""

from __future__ import annotations

from typing import Any

from app.cli.fleet.database import Grant, budgets, change_grant
from app.gateways.engine_client import EngineClient

SLICES = 4
"""A shard asks for so many'th parts of its share of what is free."""


class SharedBudgets:
    """What one shard holds of the fleet's budgets."""

    def __init__(self, schema: str, shard: int, shards: int) -> None:
        self._schema, self._shard, self._shards = schema, shard, shards

    async def adjust(self, connection: Any, client: EngineClient) -> None:
        """Hold so much that the engine can go on for a while, and give back what others wait for."""
        for kind in await budgets(connection, self._schema):
            used, limit, held = await _stands(client, kind)
            grant = await self._change(connection, kind, 0.0, starves=held)
            part = _whole(kind, grant.free / 2 if held else grant.free / (self._shards * SLICES))
            if held or used + part > grant.own:
                more = max(used + 2 * part - grant.own, _whole(kind, min(grant.free, 1.0)))
                grant = await self._change(connection, kind, more, starves=held)
            elif grant.starving and (spare := _whole(kind, (grant.own - used) / 2)):
                await _allow(client, kind, grant.own - spare)
                used, _, _ = await _stands(client, kind)  # what began meanwhile counts
                await self._change(connection, kind, max(grant.own - spare, used) - grant.own)
                continue
            if grant.own != limit:
                await _allow(client, kind, grant.own)

    async def _change(self, connection: Any, kind: str, more: float, *, starves: bool = False) -> Grant:
        return await change_grant(connection, self._schema, kind, self._shard, more, starves=starves)


async def _stands(client: EngineClient, kind: str) -> tuple[float, float | None, bool]:
    """What the engine took and may take at once, its limit, and whether that holds an agent."""
    (status,) = await client.ask("budgets")
    line: dict[str, Any] = next(line for line in status["lines"] if line["kind"] == kind)
    return line["taken"] + line["reserved"], line["limit"], bool(status["held"])


async def _allow(client: EngineClient, kind: str, amount: float) -> None:
    limit = amount if kind == "usd" else int(amount)
    await client.ask("submit", command={"do": "set_workspace_budget", kind: limit, "keep": True})


def _whole(kind: str, amount: float) -> float:
    """An amount that can be granted: of dollars millionths, of others whole ones."""
    scale = 1_000_000 if kind == "usd" else 1
    return int(amount * scale) / scale
