"""Messages between agents of different shards, each carried out once.

What an agent sends stands in its journal. Its shard copies what is for another shard to the fleet's schema,
and moves on its own place in the journal in the same transaction. The receiver's shard gives each message to
its engine under an id of its own, which is answered and not carried out again where it comes again, and then
takes it out. So neither a shard's death nor a lost answer makes of one message none or two.
"""

from __future__ import annotations

import json
from typing import Any

from app.cli.fleet.database import shard_of
from app.gateways.engine_client import EngineClient
from engine.core.events import ReasonerAdvanced
from engine.core.store.leases import Lease, require

AT_ONCE = 100
"""Events or messages that are looked at in one go."""
PLACE = "fleet.sent"
"""In the shard's `meta`: the last event whose messages are on their way."""


class Messages:
    """What the agents of one shard send to other shards, and get from there."""

    def __init__(self, schema: str, shard: int, shards: int) -> None:
        self._table, self._shard, self._shards = f"{schema}.messages", shard, shards

    async def send(self, connection: Any, lease: Lease) -> None:
        """Let go what was sent since the last time.

        Raises:
            LeaseLost: another machine has the shard.
        """
        place = int(await connection.fetchval("select value from meta where key = $1", PLACE) or 0)
        events = await connection.fetch(
            "select seq, stream, version, body from events where kind = $1 and seq > $2 "
            """and body not like '%"sent":[]%' order by seq limit $3""",
            ReasonerAdvanced.kind,
            place,
            AT_ONCE,
        )
        if not events:
            return
        async with connection.transaction():
            await require(connection, lease)
            for _, stream, version, body in events:
                for number, message in enumerate(json.loads(body).get("sent", ())):
                    shard = shard_of(message["receiver"], self._shards)
                    if shard != self._shard:
                        await connection.execute(
                            f"insert into {self._table}(id, shard, message) values($1, $2, $3)",
                            f"{stream}:{version}.{number}",
                            shard,
                            json.dumps({"sender": stream, **message}),
                        )
            await connection.execute(
                "insert into meta values($1, $2) on conflict(key) do update set value = $2",
                PLACE,
                str(events[-1]["seq"]),
            )

    async def receive(self, connection: Any, client: EngineClient) -> None:
        """Give the engine what has come, in the order it was sent; what is refused stays, with why."""
        rows = await connection.fetch(
            f"select id, message from {self._table} where shard = $1 and refused = '' "
            "order by place limit $2",
            self._shard,
            AT_ONCE,
        )
        for ident, message in rows:
            given = json.loads(message)
            command = {"do": "hear_message", "agent": given.pop("receiver"), **given}
            receipt = await client.ask("submit", command=command, key=f"message-{ident}")
            if receipt["ok"]:
                await connection.execute(f"delete from {self._table} where id = $1", ident)
            else:
                sql = f"update {self._table} set refused = $2 where id = $1"
                await connection.execute(sql, ident, receipt["message"] or "refused")


async def undelivered(connection: Any) -> list[str]:
    """A line for each of the newest messages that did not arrive, with why."""
    sql = "select shard, message, refused from messages order by place desc limit 10"
    lines = []
    for shard, message, refused in await connection.fetch(sql):
        given = json.loads(message)
        way = f"message of {given['sender']} to {given['receiver']} on shard-{shard}"
        lines.append(f"{way} {f'was refused: {refused}' if refused else 'is on its way'}")
    return lines
