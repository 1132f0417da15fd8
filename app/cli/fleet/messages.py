"""Messages between agents of different shards, and handoffs of their crews, each carried out once.

What an agent sends stands in its journal. Its shard copies what is for another shard to the fleet's schema,
and moves on its own place in the journal in the same transaction. The receiver's shard gives each message to
its engine under an id of its own, which is answered and not carried out again where it comes again, and then
takes it out. So neither a shard's death nor a lost answer makes of one message none or two.

What is told of a handoff is a message like any other: to the agent's shard that it is handed over or
cancelled, and back how it stands and what it ended with. Where one is refused, the engine that handed over
hears that in its place.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from app.cli.fleet.database import shard_of
from app.gateways.engine_client import EngineClient
from app.gateways.protocol import LINE_BYTES, ProtocolError
from engine.core.command import NOT_RECORDED
from engine.core.crew import HandoffSent
from engine.core.events import ReasonerAdvanced
from engine.core.journal import JournalError
from engine.core.store.leases import Lease, require

AT_ONCE = 100
"""Events or messages that are looked at in one go."""
PLACE = "fleet.sent"
"""In the shard's `meta`: the last event whose messages are on their way."""
FAR = 10_000
"""Events without a message behind which the place moves on all the same."""
_SENT = """
select seq, stream, version, kind, body from events
where kind = $1 and seq > $3 and seq <= $4 and body not like '%"sent":[]%'
union all select seq, stream, version, kind, body from events where kind = $2 and seq > $3 and seq <= $4
order by seq limit $5
"""
LONGEST = LINE_BYTES - 4_096
"""Bytes of a message that an engine can be given."""


class Messages:
    """What the agents of one shard send to other shards, and get from there."""

    def __init__(self, schema: str, shard: int, shards: int) -> None:
        self._table, self._shard, self._shards = f"{schema}.messages", shard, shards
        self._looked = (0, 0)
        """The token of a lease, and up to where nothing is left under it that was not sent."""

    async def send(self, connection: Any, lease: Lease) -> None:
        """Let go what was sent since the last time.

        Raises:
            LeaseLost: another machine has the shard.
        """
        last, kept = await connection.fetchrow(
            "select last_seq, coalesce((select value from meta where key = $1), '0') from journal", PLACE
        )
        place = max(int(kept), self._looked[1] if self._looked[0] == lease.token else 0)
        if place == last:
            return
        events = await connection.fetch(_SENT, ReasonerAdvanced.kind, HandoffSent.kind, place, last, AT_ONCE)
        place = events[-1]["seq"] if len(events) == AT_ONCE else last
        if not events and place - int(kept) < FAR:
            self._looked = lease.token, place
            return
        async with connection.transaction():
            await require(connection, lease)
            for _, stream, version, kind, body in events:
                given = self._handoff if kind == HandoffSent.kind else self._spoken
                for number, (shard, message) in enumerate(given(stream, json.loads(body))):
                    ident = f"{self._shard}-{stream.replace('@', '.')}:{version}.{number}"
                    await self._put(connection, ident, shard, message)
            await connection.execute(
                "insert into meta values($1, $2) on conflict(key) do update set value = $2", PLACE, str(place)
            )
        self._looked = lease.token, place

    def _spoken(self, stream: str, said: dict[str, Any]) -> Iterator[tuple[int, dict[str, Any]]]:
        """What a program sent to agents of other shards."""
        for message in said.get("sent", ()):
            if (shard := shard_of(message["receiver"], self._shards)) != self._shard:
                yield shard, {"sender": stream, **message}

    def _handoff(self, _stream: str, told: dict[str, Any]) -> Iterator[tuple[int, dict[str, Any]]]:
        """What a shard is told of a handoff; its own refuses one whose agent would live here and is not."""
        command, agent, origin = told["command"], told["agent"], told["origin"]
        sender, receiver = f"shard-{self._shard}", agent
        if origin:
            sender, receiver = agent, f"shard-{origin}"
        elif "context" in command:
            command["origin"] = str(self._shard)
        shard = int(origin) if origin else shard_of(agent, self._shards)
        yield shard, {"sender": sender, "receiver": receiver, "command": command}

    async def _put(self, connection: Any, ident: str, shard: int, message: dict[str, Any]) -> None:
        sql = f"insert into {self._table}(id, shard, message) values($1, $2, $3)"
        await connection.execute(sql, ident, shard, json.dumps(message))

    async def receive(self, connection: Any, client: EngineClient) -> None:
        """Give the engine what has come, in the order it was sent; what is refused stays, with why.

        Raises:
            JournalError: the engine cannot record it, and is to be ended.
        """
        rows = await connection.fetch(
            f"select id, message from {self._table} where shard = $1 and refused = '' "
            "order by place limit $2",
            self._shard,
            AT_ONCE,
        )
        for ident, message in rows:
            command = _command(json.loads(message))
            if len(message.encode()) > LONGEST:
                why = f"it has more than {LONGEST:,} bytes"
            else:
                why = await self._refused(client, command, ident)
            if not why:
                await connection.execute(f"delete from {self._table} where id = $1", ident)
                continue
            async with connection.transaction():
                sql = f"update {self._table} set refused = $2 where id = $1"
                await connection.execute(sql, ident, why)
                if (shard := self._answered(command, why)) is not None:
                    await self._put(connection, f"{ident}.refused", *shard)

    async def _refused(self, client: EngineClient, command: dict[str, Any], ident: str) -> str:
        """Give the engine a command; why it refuses it, or nothing.

        Raises:
            JournalError: whether it is carried out is open until another engine reads the journal.
        """
        try:
            receipt = await client.ask("submit", command=command, key=f"message-{ident}")
        except ProtocolError as error:
            if error.code not in ("command", "arguments"):
                raise
            return str(error)
        if receipt["message"].startswith(NOT_RECORDED):
            raise JournalError(receipt["message"])
        return "" if receipt["ok"] else receipt["message"] or "refused"

    def _answered(self, command: dict[str, Any], why: str) -> tuple[int, dict[str, Any]] | None:
        """What is told instead, and to which shard, where work is not taken in or its result is not."""
        report = {"do": "crew_report", "why": why}
        if command["do"] == "crew_take":
            shard, report["state"] = int(command["origin"]), "rejected"
            report["handoff"] = command["context"]["handoff_id"]
        elif command.get("result"):
            shard, report["state"], report["handoff"] = self._shard, "failed", command["handoff"]
        else:
            return None
        return shard, {"sender": f"shard-{self._shard}", "receiver": f"shard-{shard}", "command": report}


def _command(given: dict[str, Any]) -> dict[str, Any]:
    """What an engine is given; what a program said is heard by its receiver."""
    said = {"do": "hear_message", "agent": given["receiver"], **given}
    del said["receiver"]
    command: dict[str, Any] = given.get("command") or said
    return command


async def undelivered(connection: Any) -> list[str]:
    """A line for each of the newest messages that did not arrive, with why."""
    sql = "select shard, message, refused from messages order by place desc limit 10"
    lines = []
    for shard, message, refused in await connection.fetch(sql):
        given = json.loads(message)
        what = _WHAT.get(_command(given)["do"], "message")
        way = f"{what} of {given['sender']} to {given['receiver']} on shard-{shard}"
        lines.append(f"{way} {f'was refused: {refused}' if refused else 'is on its way'}")
    return lines


_WHAT = {"crew_take": "handoff", "crew_cancel": "end of a handoff", "crew_report": "word of a handoff"}
