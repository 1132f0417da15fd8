"""Answers clients of a running engine on a Unix socket of this user's.

Each connection is read by a task of its own, and each request answered by one. A client is never waited for
by anything but what it asked for: the engine's events are read from the journal by their places, so that a
follower which stands still costs one page of events and goes on later where it was.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from collections import Counter, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from importlib import import_module
from typing import Any, Protocol

from app.commands.command_runner import log_fault
from app.commands.watchdog import ending_on
from app.gateways import protocol as wire
from app.gateways.addresses import (
    Address,
    AddressError,
    EngineRecord,
    listen,
    new_address,
    note_change,
    peer_of,
    withdraw,
)
from app.gateways.answers import QUESTIONS, Asker, Hello, Question, TerminalInput, validated
from app.gateways.protocol import ProtocolError
from app.gateways.terminal_relay import bytes_of, serve_terminal
from engine import __version__
from engine.api.engine import Engine
from engine.core.journal import Event, JournalError
from engine.core.text import StrictJsonError, clean_line, read_json

CONNECTIONS = 256
REQUESTS = 32
"""Requests of one connection that may be under way."""
HELLO_S = 5.0
"""How long a client has to say who it is."""
LINE_S = 30.0
"""How long a line may take from its first byte to its last."""
PIECE_BYTES = 64 * 1024
BUFFER_BYTES = 256 * 1024
"""What may wait in a connection before whoever writes to it waits."""
LINES_A_TURN = 32
"""Lines of one connection before others get their turn."""
FEW, BURST, SENDS_A_SECOND = 8, 8, 2_000
"""Connections that get each event at once; where there are more, so many sends to a follower in a row, and to
all of them in a second, and what comes meanwhile goes together."""
CACHED, CACHED_BYTES = 4_096, 8 * 1024
"""Events that are kept as they were sent last, for all followers, and how long each may be."""
END_S = 0.5
"""How long closing waits for commands that are under way."""

Stopper = Callable[[bool], Awaitable[dict[str, Any]]]
"""Ends the program that serves; given whether agents come to the end of their actions first."""


class Companion(Protocol):
    """What lives beside an engine that others may use."""

    name: str
    """Under which `health` has its status."""

    @property
    def status(self) -> dict[str, Any]:
        """How it is; `trouble` says what does not work."""

    def begin(self) -> None:
        """Begin."""

    async def close(self) -> None:
        """End; may be called again."""


class EngineServer:
    """Lets other programs of this user use an open engine; `begin` it, and `close` it before the engine.

    Args:
        engine: the open engine.
        kind: what kind of program has it: `cockpit`, `serve`, `run`, `do` or `mcp`.
        stop: ends the program; None where only its own user may.
        unit: the systemd unit that started it; empty for none.
        operator: who operates the engine in its own program; empty for nobody.
        companions: what lives as long as this, and is told of in `health`.
    """

    def __init__(
        self,
        engine: Engine,
        kind: str,
        *,
        stop: Stopper | None = None,
        unit: str = "",
        operator: str = "",
        companions: Sequence[Companion] = (),
    ) -> None:
        self.companions = companions
        self.engine, self.kind, self.stop, self.operator = engine, kind, stop, operator
        self.record = EngineRecord(str(engine.workspace.resolve()), os.getpid(), __version__, kind, unit)
        self.refused: Counter[str] = Counter()
        """What was refused, by the codes of the refusals."""
        self.trouble = ""
        """Why no other program can reach this engine; empty where they can."""
        self.working: set[asyncio.Task[None]] = set()
        """Commands under way that end even when their client has gone."""
        self.turn = asyncio.Lock()
        """Held by the follower whose events are made ready: one in each turn of the loop."""
        self._connections: dict[asyncio.Task[None], Connection] = {}
        self._encoded: dict[int, bytes] = {}
        self._address: Address | None = None
        self._server: asyncio.Server | None = None
        self._changed = asyncio.Event()

    async def begin(self) -> None:
        """Listen; an engine that cannot be reached works all the same, and `trouble` says why."""
        try:
            address = await asyncio.to_thread(new_address, self.engine.workspace)
            listening = await asyncio.to_thread(listen, address, self.record)
        except AddressError as error:
            self.trouble = str(error)
            return
        self._address = address
        self.engine.gateways.append(lambda: self.clients)
        self._server = await asyncio.start_unix_server(self._accept, sock=listening, limit=wire.LINE_BYTES)
        for companion in self.companions:
            companion.begin()

    async def close(self, reason: str = "") -> None:
        """Take no more connections, let commands under way end, and end those that there are."""
        for companion in self.companions:
            await companion.close()
        if self._address is not None:
            await asyncio.to_thread(withdraw, self._address)
        if self._server is not None:
            self._server.close()
        if self.working:
            await asyncio.wait(self.working, timeout=END_S)
        tasks = [*self.working, *self._connections]
        for connection in self._connections.values():
            connection.say_bye(reason)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(0)  # connections are closed by callbacks of their tasks

    async def become(self, kind: str, stop: Stopper) -> None:
        """Go on as another kind of program, which clients may end."""
        self.kind, self.stop, self.record = kind, stop, self.record._replace(kind=kind)
        self.operator = ""
        if self._address is not None:
            await asyncio.to_thread(note_change, self._address, self.record)

    @property
    def busy(self) -> bool:
        """Whether a client works with the engine; one that only watches does not."""
        return bool(self.working) or any(each.holds for each in self._connections.values())

    async def unused(self) -> None:
        """Wait until no client works with the engine."""
        while self.busy:
            self._changed.clear()
            await self._changed.wait()

    @property
    def count(self) -> int:
        """How many connections there are."""
        return len(self._connections)

    @property
    def clients(self) -> list[dict[str, Any]]:
        """Who is connected, with whoever operates the engine in its own program."""
        own = [{"operator": self.operator, "watch": False, "holds": False}] if self.operator else []
        connections = self._connections.values()
        return own + [{**each.asker._asdict(), "holds": each.holds} for each in connections if each.asker]

    def note_change(self, task: asyncio.Task[None] | None = None) -> None:
        """A client has come or gone, or a command has ended."""
        if task is not None:
            self.working.discard(task)
        self._changed.set()

    def encoded(self, event: Event) -> bytes:
        """An event as it is sent; kept, as all followers get the same."""
        if (line := self._encoded.get(event.seq)) is None:
            line = wire.encode(event._asdict())[:-1]
            if len(line) <= CACHED_BYTES:
                self._encoded[event.seq] = line
            if len(self._encoded) > CACHED:
                del self._encoded[next(iter(self._encoded))]
        return line

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._connections) >= 2 * CONNECTIONS:
            writer.close()  # too many even to be told so
            return
        connection = Connection(self, reader, writer)
        task = asyncio.create_task(self._serve(connection, writer), name="client")
        self._connections[task] = connection
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._connections.pop(task).end()
        self.note_change()

    async def _serve(self, connection: Connection, writer: asyncio.StreamWriter) -> None:
        try:
            await connection.serve()
        except ProtocolError as error:
            self.refused[error.code] += 1
            writer.write(wire.error_line(error))
        except (OSError, TimeoutError):
            pass  # the client has gone
        except Exception as error:  # noqa: BLE001 - it is shown under the id that the fault's log has
            writer.write(wire.error_line(ProtocolError("fault", log_fault(self.engine.workspace, error))))

    def admit(self, connection: socket.socket) -> None:
        """See that a client may stay.

        Raises:
            ProtocolError: it may not; the message says why.
        """
        if len(self._connections) > CONNECTIONS:
            raise ProtocolError("connections", f"there are {CONNECTIONS} connections already: end some")
        if peer_of(connection)[1] != os.getuid():
            raise ProtocolError("user", "this engine answers the user who runs it, and nobody else")


class Connection:
    """One client.

    Args:
        server: whose client.
        reader: what it sends.
        writer: where answers go.
    """

    def __init__(
        self, server: EngineServer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._server, self._engine = server, server.engine
        self._reader, self._writer = reader, writer
        self._lock = asyncio.Lock()
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._outliving: set[int] = set()
        self.asker: Asker | None = None
        self.holds = False
        writer.transport.set_write_buffer_limits(high=BUFFER_BYTES)

    async def serve(self) -> None:
        """Answer until the client has gone.

        Raises:
            ProtocolError: it cannot be served any more; the message says why.
        """
        pieces = self._pieces()
        lines = await self._first(pieces)
        self._server.admit(self._writer.get_extra_info("socket"))  # now it is there to be answered
        await self._greet(lines.pop(0))
        while True:
            for number, line in enumerate(lines):
                if await self._take(line):
                    return
                if number % LINES_A_TURN == LINES_A_TURN - 1:
                    await asyncio.sleep(0)
            if (more := await anext(pieces, None)) is None:
                return
            lines = more

    async def _first(self, pieces: AsyncIterator[list[bytes]]) -> list[bytes]:
        try:
            async with asyncio.timeout(HELLO_S):
                async for lines in pieces:
                    if lines:
                        return lines
        except TimeoutError:
            raise ProtocolError("hello.late", f"no hello came within {HELLO_S:g} s") from None
        raise ProtocolError("hello.missing", "the connection ended before a hello came")

    async def _pieces(self) -> AsyncIterator[list[bytes]]:
        """The lines that have come, until the client has gone."""
        splitter, loop = wire.LineSplitter(wire.LINE_BYTES), asyncio.get_running_loop()
        until: float | None = None
        while True:
            try:
                async with asyncio.timeout_at(until):
                    piece = await self._reader.read(PIECE_BYTES)
            except TimeoutError:
                raise ProtocolError("line.slow", f"a line took longer than {LINE_S:g} s to come") from None
            if not piece:
                return
            lines = splitter.feed(piece)
            until = (loop.time() + LINE_S if lines or until is None else until) if splitter.partial else None
            yield lines
            await asyncio.sleep(0)  # what has come already costs no wait, so others would not get their turn

    async def _greet(self, line: bytes) -> None:
        given = _read(line).get("hello")
        if not isinstance(given, dict):
            raise ProtocolError("hello.missing", 'the first line has to be {"hello": {…}}')
        hello = validated(Hello, given, "hello")
        protocol = wire.agreed_protocol(hello.protocol, hello.oldest)
        server, engine = self._server, self._engine
        first = await engine.store.get(1)
        answer = {
            "protocol": protocol,
            "oldest": wire.OLDEST,
            "newest": wire.PROTOCOL,
            "version": __version__,
            "workspace": first.hash if first is not None else "",
            "path": server.record.workspace,
            "kind": server.kind,
            "pid": server.record.pid,
            "session": engine.session,
            "head": await engine.head(),
        }
        self.asker, self.holds = Asker(hello.operator, hello.watch), hello.holds
        server.note_change()
        await self._send(wire.encode({"hello": answer}))

    async def _take(self, line: bytes) -> bool:
        """Begin to answer a request; True where the connection is over."""
        ident: int | None = None
        try:
            message = _read(line)
            ident = _ident(message)
            name, question, arguments = self._understood(message, ident)
        except ProtocolError as error:
            await self._send(self._refusal(error, ident))
            return False
        if name in ("mcp", "terminal"):
            await self._send(wire.encode({"id": ident, "answer": name}))
            await (self._serve_mcp if name == "mcp" else self._serve_terminal)(arguments)
            return True
        task = asyncio.create_task(self._answer(ident, name, arguments), name=f"answer to {name}")
        self._tasks[ident] = task
        if question.outlives:
            self._outliving.add(ident)
        if question.outlives or name == "stop":
            self._server.working.add(task)
            task.add_done_callback(self._server.note_change)
        return False

    def _understood(self, message: Mapping[str, Any], ident: int) -> tuple[str, Question, Any]:
        if ident in self._tasks:
            raise ProtocolError("id", f"the request {ident} is under way; give each an id of its own")
        if len(self._tasks) >= REQUESTS:
            raise ProtocolError("requests", f"{REQUESTS} requests are under way; await some answers")
        name = message.get("ask")
        question = QUESTIONS.get(name) if isinstance(name, str) else None
        if question is None or not isinstance(name, str):
            known = ", ".join(QUESTIONS)
            shown = clean_line(str(name), limit=40)
            raise ProtocolError("ask", f"there is nothing called '{shown}' to ask; there are: {known}")
        assert self.asker is not None
        if question.changes and self.asker.watch:
            raise ProtocolError("watching", f"this client only watches, and {name} may change something")
        arguments = validated(question.arguments, message, name)
        if name == "terminal" and self._engine.terminal(arguments.agent) is None:
            raise ProtocolError("terminal", f"{arguments.agent} has no open shell: take_shell opens one")
        return name, question, arguments

    async def _answer(self, ident: int, name: str, arguments: Any) -> None:
        """Answer a request; it is under way until the client has taken the answer."""
        try:
            line = wire.encode({"id": ident, "answer": await self._answered(ident, name, arguments)})
            if len(line) > wire.ANSWER_BYTES:
                error = ProtocolError("answer.long", f"the answer has over {wire.ANSWER_BYTES:,} bytes")
                line = self._refusal(error, ident)
        except ProtocolError as error:
            line = self._refusal(error, ident)
        except JournalError as error:
            line = wire.error_line(ProtocolError("journal", str(error)), ident)
        except ConnectionError:
            line = b""  # the client has gone
        except Exception as error:  # noqa: BLE001 - it is shown under the id that the fault's log has
            line = wire.error_line(ProtocolError("fault", log_fault(self._engine.workspace, error)), ident)
        try:
            with suppress(ConnectionError):
                await self._send(line)
        finally:
            self._tasks.pop(ident, None)
            self._outliving.discard(ident)

    async def _answered(self, ident: int, name: str, arguments: Any) -> Any:
        answerer, server = QUESTIONS[name].answer, self._server
        if name == "events":
            return await self._follow(ident, arguments)
        if name == "cancel":
            task = self._tasks.get(arguments.request)
            if task is not None and arguments.request != ident:
                task.cancel()
                await asyncio.wait({task})
                self._tasks.pop(arguments.request, None)
            return task is not None
        if name == "stop" and server.stop is not None:
            return await server.stop(arguments.hand_over)
        if answerer is None or self.asker is None:
            raise ProtocolError("stop", f"this engine is a {server.kind}'s (process {os.getpid()}): end that")
        answer = await answerer(self._engine, arguments, self.asker)
        if name == "health":
            answer |= {"refused": dict(server.refused), "clients": server.clients}
            beside = {each.name: each.status for each in server.companions}
            troubles = filter(None, (status["trouble"] for status in beside.values()))
            answer |= {**beside, "states": [*answer["states"], *troubles]}
        return answer

    async def _follow(self, ident: int, arguments: Any) -> str:
        """Send events behind a place, and new ones as they become durable."""
        sent, told, loop = deque[float](maxlen=BURST), False, asyncio.get_running_loop()
        pages = self._engine.store.pages(arguments.since, stream=arguments.stream or None, follow=True)
        async for page in pages:
            place, head = page[0].seq, await self._engine.head()
            if not told and head - place > wire.BEHIND:
                await self._send(wire.encode({"id": ident, "behind": {"place": place, "head": head}}))
            told = head - place > wire.BEHIND // 2
            async with self._server.turn:
                batches = list(self._batches(page))
                await self._engine.pace.checkpoint()
            for batch in batches:
                await self._send(b'{"id":%d,"events":[%b]}\n' % (ident, b",".join(batch)))
            share = BURST * max(0, self._server.count - FEW) / SENDS_A_SECOND
            if len(sent) == BURST and (early := sent[0] + share - loop.time()) > 0:
                await asyncio.sleep(early)
            sent.append(loop.time())
        return "the journal is closed"

    def _batches(self, page: Sequence[Event]) -> Iterator[list[bytes]]:
        """Events as they are sent, so many at a time as fit into a connection's buffer."""
        batch, size = list[bytes](), 0
        for line in map(self._server.encoded, page):
            if batch and size + len(line) > BUFFER_BYTES:
                yield batch
                batch, size = [], 0
            batch.append(line)
            size += len(line)
        yield batch

    async def _serve_mcp(self, given: Any) -> None:
        # Late, and in a thread: the SDK is large.
        mcp = await asyncio.to_thread(import_module, "app.gateways.mcp")
        await mcp.serve_connection(self._engine, self._reader, self._writer, read_only=given.read_only)

    async def _serve_terminal(self, given: Any) -> None:
        if (terminal := self._engine.terminal(given.agent)) is None:
            return  # it has ended meanwhile

        def take(line: bytes) -> None:
            if self.asker is None or self.asker.watch:
                raise ProtocolError("watching", "this client only watches: nothing is typed for it")
            if (holder := self._engine.holder(given.agent)) not in ("", self.asker.operator):
                raise ProtocolError("control", f"{holder} holds {given.agent}: control ask, or control take")
            typed = validated(TerminalInput, _read(line), "terminal")
            if typed.rows and typed.columns:
                terminal.resize(typed.rows, typed.columns)
            terminal.write(bytes_of(typed.typed))
            terminal.answer(bytes_of(typed.reply))

        await serve_terminal(terminal, self._reader, self._writer, take)

    def _refusal(self, error: ProtocolError, ident: int | None) -> bytes:
        self._server.refused[error.code] += 1
        return wire.error_line(error, ident)

    async def _send(self, line: bytes) -> None:
        """Write a line; whoever does waits until the client has taken what it was sent before."""
        async with self._lock:
            self._writer.write(line)
            await self._writer.drain()

    def say_bye(self, reason: str) -> None:
        """Say that the engine ends, where that fits into what waits to be taken."""
        if self.asker is not None and self._writer.transport.get_write_buffer_size() < BUFFER_BYTES:
            self._writer.write(wire.encode({"bye": reason or "the engine ends"}))

    def end(self) -> None:
        """End the connection, and all that only it wanted."""
        for ident, task in list(self._tasks.items()):
            if ident not in self._outliving:
                task.cancel()
        self._writer.close()


def _read(line: bytes) -> dict[str, Any]:
    """A line as an object.

    Raises:
        ProtocolError: it is none.
    """
    try:
        value = read_json(line.decode())
    except (StrictJsonError, UnicodeDecodeError) as error:
        raise ProtocolError("json", f"the line is no JSON: {clean_line(str(error), limit=200)}") from None
    if not isinstance(value, dict):
        raise ProtocolError("json", "a line has to be a JSON object")
    return value


def _ident(message: Mapping[str, Any]) -> int:
    ident = message.get("id")
    if type(ident) is not int or not 0 < ident < 2**53:
        raise ProtocolError("id", "a request has an id, a whole number from 1")
    return ident


@asynccontextmanager
async def served(engine: Engine, kind: str) -> AsyncIterator[EngineServer]:
    """An engine that other programs may use; it stays open for those that work with it."""
    server = EngineServer(engine, kind)
    await server.begin()
    try:
        yield server
        if server.busy:
            sys.stderr.write("the engine stays for other programs that work with it; ctrl+c ends it\n")
            last = asyncio.create_task(server.unused())
            with ending_on((signal.SIGINT, signal.SIGTERM), lambda _number: last.cancel()):
                await asyncio.wait({last})
    finally:
        await server.close()
