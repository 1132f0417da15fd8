"""A client of a running engine: asks, sends commands and follows events over the engine's socket.

Imports neither the engine nor pydantic, so that a command line beside a running engine begins at once; what
hands out events, receipts and states imports them when it is first used.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from app.commands.user import operator_name
from app.gateways.addresses import Address, AddressError, connect, find_engine
from app.gateways.protocol import (
    ANSWER_BYTES,
    OLDEST,
    PROTOCOL,
    RESTARTING,
    LineSplitter,
    ProtocolError,
    encode,
)
from engine import __version__

if TYPE_CHECKING:
    from engine.core.command import Command, Receipt
    from engine.core.journal import Event
    from engine.core.state import AgentState

ANSWER_S = 10.0
"""How long an engine may take to answer a hello."""
LOST_S = 15.0
"""How long another engine is waited for that takes the place of a lost one, before a command is given up."""
TRIES, AGAIN_S = 300, 0.1
"""How often a lost connection is tried again while the engine may still live, and the time between."""
PIECE_BYTES = 256 * 1024


class EngineLostError(Exception):
    """The connection has ended; whether what was sent was still carried out the journal says."""

    meant = False
    """Whether the engine said that it ends, and no other one takes its place."""


def new_key() -> str:
    """A key by which a command is carried out once."""
    return secrets.token_hex(12)


class Wire:
    """One connection, its hello behind it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self._splitter = LineSplitter(ANSWER_BYTES)
        self._lines: list[bytes] = []
        self.hello: dict[str, Any] = {}

    async def send(self, message: dict[str, Any]) -> None:
        """Send a line.

        Raises:
            EngineLostError: the connection has ended.
        """
        try:
            self.writer.write(encode(message))
            await self.writer.drain()
        except OSError as error:
            raise EngineLostError(f"the engine has gone: {error}") from error

    async def next(self) -> dict[str, Any]:
        """The next line.

        Raises:
            EngineLostError: there is none any more.
        """
        while not self._lines:
            try:
                piece = await self.reader.read(PIECE_BYTES)
                self._lines = self._splitter.feed(piece)[::-1]
            except (OSError, ProtocolError) as error:
                raise EngineLostError(f"the engine has gone: {error}") from error
            if not piece:
                raise EngineLostError("the engine has gone")
        try:
            message = json.loads(self._lines.pop())
        except (ValueError, RecursionError) as error:
            raise EngineLostError(f"the engine's answer cannot be read: {error}") from error
        if not isinstance(message, dict):
            raise EngineLostError("the engine's answer cannot be read")
        if "bye" in message:
            lost = EngineLostError(str(message["bye"]))
            lost.meant = message["bye"] != RESTARTING
            raise lost
        return message

    def close(self) -> None:
        """End it."""
        self.writer.close()


async def _greeted(connection: socket.socket, hello: dict[str, Any]) -> Wire:
    """A connection whose engine has answered the hello.

    Raises:
        AddressError: it does not answer.
        ProtocolError: it refuses; the message says why.
        EngineLostError: it has gone.
    """
    connection.setblocking(False)
    wire = Wire(*await asyncio.open_unix_connection(sock=connection))
    try:
        async with asyncio.timeout(ANSWER_S):
            await wire.send({"hello": hello})
            answer = await wire.next()
    except TimeoutError:
        wire.close()
        raise AddressError(f"the engine does not answer within {ANSWER_S:g} s: look at its program") from None
    except BaseException:
        wire.close()
        raise
    if refusal := answer.get("error"):
        wire.close()
        if (error := _refusal(refusal)).code == "hello.late":  # this program stood still meanwhile
            raise EngineLostError(error.message)
        raise error
    wire.hello = answer.get("hello", {})
    return wire


def _refusal(given: Any) -> ProtocolError:
    fields = given if isinstance(given, dict) else {}
    return ProtocolError(str(fields.get("code", "")), str(fields.get("message", given)))


class EngineClient:
    """A connection to the engine of a workspace; get one by `open`, and `close` it."""

    def __init__(self, address: Address, hello: dict[str, Any], wire: Wire) -> None:
        self._address, self._hello = address, hello
        self._wire: Wire | None = wire
        self._ids = count(1)
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._reading = asyncio.create_task(self._read(wire), name="engine client")
        self._lock = asyncio.Lock()
        self.ended = ""
        """What the engine said when it ended; empty while it is there."""

    @classmethod
    async def open(
        cls, workspace: Path, operator: str = "", *, watch: bool = False, holds: bool = False
    ) -> EngineClient | None:
        """A client of the engine that has the workspace open; None where none answers.

        Args:
            workspace: its directory.
            operator: in whose name commands are sent; empty for the user's name.
            watch: whether nothing is to be changed.
            holds: whether a program whose own work is over is to stay for this client.

        Raises:
            AddressError: an engine is there and does not answer.
            ProtocolError: it refuses this client; the message says why.
        """
        if (there := await asyncio.to_thread(find_engine, workspace)) is None:
            return None
        hello = {"protocol": PROTOCOL, "oldest": OLDEST, "version": __version__, "watch": watch}
        hello |= {"operator": operator or operator_name(), "holds": holds}
        try:
            return cls(there[0], hello, await _greeted(there[1], hello))
        except EngineLostError:
            return None

    @property
    def hello(self) -> dict[str, Any]:
        """What the engine said of itself: `version`, `kind`, `pid`, `path`, `session`, `head`, …"""
        return self._wire.hello if self._wire is not None else {}

    async def close(self) -> None:
        """End the connection."""
        self._reading.cancel()
        await asyncio.gather(self._reading, return_exceptions=True)
        if self._wire is not None:
            self._wire.close()
            self._wire = None

    async def gone(self) -> None:
        """Wait until the engine has gone, and no other one takes its place."""
        with suppress(EngineLostError):
            while await self._connected():
                await asyncio.wait({self._reading})

    # -------------------------------------------------------------- asking

    async def ask(self, name: str, **fields: Any) -> Any:
        """Ask, and return the answer; a request that is cancelled is cancelled there, too.

        Raises:
            ProtocolError: it is refused.
            EngineLostError: the engine has gone, or the connection.
        """
        wire, ident = await self._connected(), next(self._ids)
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting[ident] = answer
        try:
            await wire.send({"id": ident, "ask": name, **fields})
            return await answer
        except asyncio.CancelledError:
            with suppress(EngineLostError):
                await wire.send({"id": next(self._ids), "ask": "cancel", "request": ident})
            raise
        finally:
            self._waiting.pop(ident, None)

    async def ask_once(self, name: str, **fields: Any) -> Any:
        """Ask for something that is carried out once: where the connection is lost, it is asked again.

        Raises:
            ProtocolError, EngineLostError: see `ask`; no engine has answered again for a while.
        """
        key, until, sent = new_key(), asyncio.get_running_loop().time() + LOST_S, False
        while True:
            try:
                await self._connected()
                sent = True
                return await self.ask(name, key=key, **fields)
            except EngineLostError as error:
                if error.meant or not sent or asyncio.get_running_loop().time() > until:
                    raise
            await asyncio.sleep(AGAIN_S)

    async def _connected(self) -> Wire:
        """The connection, made again where it was lost and the engine is still there."""
        async with self._lock:
            if self._wire is not None and not self._reading.done():
                return self._wire
            if (wire := await self._again()) is None:
                raise EngineLostError(self.ended or "the engine has gone")
            self._wire = wire
            self._reading = asyncio.create_task(self._read(self._wire), name="engine client")
            return self._wire

    async def _read(self, wire: Wire) -> None:
        """Hand answers to those who wait for them."""
        error: Exception = EngineLostError("the engine has gone")
        try:
            while True:
                message = await wire.next()
                answer = self._waiting.pop(message.get("id", 0), None)
                if answer is None or answer.done():
                    continue
                if refusal := message.get("error"):
                    answer.set_exception(_refusal(refusal))
                else:
                    answer.set_result(message.get("answer"))
        except EngineLostError as lost:
            error, self.ended = lost, str(lost)
        finally:
            wire.close()
            for answer in self._waiting.values():
                if not answer.done():
                    answer.set_exception(error)

    async def carry(self, name: str, **fields: Any) -> Wire:
        """A connection of its own that carries another protocol once the engine has answered.

        Raises:
            ProtocolError: it is refused.
            EngineLostError: the engine has gone.
        """
        if (wire := await self._again()) is None:
            raise EngineLostError(self.ended or "the engine has gone")
        refusal: object = "given up"
        try:
            await wire.send({"id": 1, "ask": name, **fields})
            refusal = (await wire.next()).get("error")
        finally:
            if refusal:
                wire.close()
        if refusal:
            raise _refusal(refusal)
        return wire

    async def submit(self, command: Command) -> Receipt:
        """Have a command carried out; what the receipt says is durable. Errors as for `ask`."""
        from engine.core.command import Receipt  # late: see the module

        return Receipt.model_validate(await self.ask_once("submit", command=command.model_dump(mode="json")))

    async def view(self, agent: str, at: int | None = None) -> AgentState:
        """The state of an agent now, or after one of its past versions.

        Raises:
            KeyError: there is no such agent.
            ProtocolError, EngineLostError: see `ask`.
        """
        from engine.core.fold import load_state  # late: see the module

        try:
            answer = await self.ask("view", agent=agent, **({} if at is None else {"at": at}))
        except ProtocolError as error:
            raise KeyError(agent) if error.code == "agent" else error from None
        return load_state(answer["state"])

    async def events(
        self, since: int = 0, stream: str = "", *, behind: Callable[[int], None] = lambda _head: None
    ) -> AsyncIterator[Event]:
        """Durable events after a place of the journal, each once, then new ones as they come.

        It has a connection of its own, made again where it is lost, and ends with the engine. While who
        takes the events is slow, the engine sends no more.

        Args:
            since: the place (`seq`) of the last event already known.
            stream: only this stream's.
            behind: called with the journal's head where the next event is more than 5,000 places before it.

        Raises:
            ProtocolError: it is refused.
        """
        from engine.core.journal import Event  # late: see the module

        place, over = since, False
        while not over and (wire := await self._again()) is not None:
            try:
                await wire.send({"id": 1, "ask": "events", "since": place, "stream": stream})
                while "answer" not in (message := await wire.next()):
                    if refusal := message.get("error"):
                        raise _refusal(refusal)
                    if late := message.get("behind"):
                        behind(late["head"])
                    for fields in message.get("events", ()):
                        place = fields["seq"]
                        yield Event(**{**fields, "causes": tuple(fields["causes"])})
                over = True
            except EngineLostError as lost:
                self.ended = str(lost)
            finally:
                wire.close()

    async def _again(self) -> Wire | None:
        """Another connection to the engine, or to the one that takes its place; None where there is none."""
        for _ in range(TRIES):  # and not for so many seconds, as this program may stand still meanwhile
            with suppress(AddressError, EngineLostError):
                if (connection := await asyncio.to_thread(connect, self._address)) is not None:
                    return await _greeted(connection, self._hello)
                if self.ended != RESTARTING:
                    return None
            await asyncio.sleep(AGAIN_S)
        return None
