"""Answers clients of a running engine on a Unix socket of this user's.

Each connection is read by a task of its own, and each request answered by one. A client is never waited for
by anything but what it asked for: the engine's events are read from the journal by their places, so that a
follower which stands still costs one page of events and goes on later where it was.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections import Counter, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any

from app.commands.command_runner import log_fault
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
from app.gateways.answers import QUESTIONS, Asker, Hello, Question, validated
from app.gateways.protocol import (
    ANSWER_BYTES,
    BEHIND,
    LINE_BYTES,
    OLDEST,
    PROTOCOL,
    LineSplitter,
    ProtocolError,
    agreed_protocol,
    encode,
    error_line,
)
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
SENDS, SENDS_S = 8, 0.1
"""Sends to one follower in so many seconds; what comes meanwhile goes together."""
CACHED = 4_096
"""Newest events that are kept as they are sent, for all followers."""
END_S = 0.5
"""How long closing waits for commands that are under way."""

Stopper = Callable[[bool], Awaitable[dict[str, Any]]]
"""Ends the program that serves; given whether agents come to the end of their actions first."""


class EngineServer:
    """Lets other programs of this user use an open engine; `begin` it, and `close` it before the engine.

    Args:
        engine: the open engine.
        kind: what kind of program has it: `cockpit`, `serve`, `run`, `do` or `mcp`.
        stop: ends the program; None where only its own user may.
        unit: the systemd unit that started it; empty for none.
    """

    def __init__(self, engine: Engine, kind: str, *, stop: Stopper | None = None, unit: str = "") -> None:
        self.engine, self.kind, self.stop = engine, kind, stop
        self.record = EngineRecord(str(engine.workspace.resolve()), os.getpid(), __version__, kind, unit)
        self.refused: Counter[str] = Counter()
        """What was refused, by the codes of the refusals."""
        self.trouble = ""
        """Why no other program can reach this engine; empty where they can."""
        self.working: set[asyncio.Task[None]] = set()
        """Commands under way that end even when their client has gone."""
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
        self._server = await asyncio.start_unix_server(self._accept, sock=listening, limit=LINE_BYTES)

    async def close(self, reason: str = "") -> None:
        """Take no more connections, let commands under way end, and end those that there are."""
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
        if self._address is not None:
            await asyncio.to_thread(note_change, self._address, self.record)

    async def unused(self) -> None:
        """Wait until nobody works with the engine; who only watches is not waited for."""
        while self.working or any(each.holds for each in self._connections.values()):
            self._changed.clear()
            await self._changed.wait()

    @property
    def clients(self) -> list[dict[str, Any]]:
        """Who is connected."""
        return [each.words for each in self._connections.values() if each.asker is not None]

    def note_change(self, task: asyncio.Task[None] | None = None) -> None:
        """A client has come or gone, or a command has ended."""
        if task is not None:
            self.working.discard(task)
        self._changed.set()

    def encoded(self, event: Event) -> bytes:
        """An event as it is sent; kept, as all followers get the same."""
        if (line := self._encoded.get(event.seq)) is None:
            line = self._encoded[event.seq] = encode(event._asdict())[:-1]
            if len(self._encoded) > CACHED:
                del self._encoded[next(iter(self._encoded))]
        return line

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = Connection(self, reader, writer)
        task = asyncio.create_task(self._serve(connection, writer), name="client")
        self._connections[task] = connection
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._connections.pop(task).end()
        self.note_change()

    async def _serve(self, connection: Connection, writer: asyncio.StreamWriter) -> None:
        try:
            self._admit(writer.get_extra_info("socket"))
            await connection.serve()
        except ProtocolError as error:
            self.refused[error.code] += 1
            writer.write(error_line(error))
        except (OSError, TimeoutError):
            pass  # the client has gone
        except Exception as error:  # noqa: BLE001 - it is shown under the id that the fault's log has
            writer.write(error_line(ProtocolError("fault", log_fault(self.engine.workspace, error))))

    def _admit(self, connection: socket.socket) -> None:
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

    @property
    def words(self) -> dict[str, Any]:
        """Who it is."""
        operator, watch = self.asker or Asker("", True)
        return {"operator": operator, "watch": watch, "holds": self.holds}

    async def serve(self) -> None:
        """Answer until the client has gone.

        Raises:
            ProtocolError: it cannot be served any more; the message says why.
        """
        pieces = self._pieces()
        lines = await self._first(pieces)
        await self._greet(lines.pop(0))
        while True:
            for number, line in enumerate(lines):
                if await self._take(line):
                    return
                if number % LINES_A_TURN == LINES_A_TURN - 1:
                    await asyncio.sleep(0)
            try:
                lines = await anext(pieces)
            except StopAsyncIteration:
                return

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
        splitter, loop = LineSplitter(LINE_BYTES), asyncio.get_running_loop()
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
        protocol = agreed_protocol(hello.protocol, hello.oldest)
        server, engine = self._server, self._engine
        first = await engine.store.get(1)
        answer = {
            "protocol": protocol,
            "oldest": OLDEST,
            "newest": PROTOCOL,
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
        await self._send(encode({"hello": answer}))

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
        if name == "mcp":
            await self._send(encode({"id": ident, "answer": "mcp"}))
            await self._serve_mcp(arguments.read_only)
            return True
        follows = name == "events"
        work = self._follow(ident, arguments) if follows else self._answer(ident, question, arguments)
        task = asyncio.create_task(work, name=f"answer to {name}")
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
        return name, question, validated(question.arguments, message, name)

    async def _answer(self, ident: int, question: Question, arguments: Any) -> None:
        try:
            line = encode({"id": ident, "answer": await self._answered(ident, question, arguments)})
        except ProtocolError as error:
            line = self._refusal(error, ident)
        except JournalError as error:
            line = error_line(ProtocolError("journal", str(error)), ident)
        except Exception as error:  # noqa: BLE001 - it is shown under the id that the fault's log has
            line = error_line(ProtocolError("fault", log_fault(self._engine.workspace, error)), ident)
        else:
            if len(line) > ANSWER_BYTES:
                why = f"the answer has more than {ANSWER_BYTES:,} bytes"
                line = self._refusal(ProtocolError("answer.long", why), ident)
        finally:
            self._tasks.pop(ident, None)
            self._outliving.discard(ident)
        with suppress(OSError):
            await self._send(line)

    async def _answered(self, ident: int, question: Question, arguments: Any) -> Any:
        assert self.asker is not None
        if question is QUESTIONS["cancel"]:
            task = self._tasks.get(arguments.request)
            if task is not None and arguments.request != ident:
                task.cancel()
                await asyncio.wait({task})
            return task is not None
        if question is QUESTIONS["stop"]:
            if self._server.stop is None:
                raise ProtocolError(
                    "stop",
                    f"this engine belongs to a {self._server.kind} (process {os.getpid()}): end that one",
                )
            return await self._server.stop(arguments.hand_over)
        assert question.answer is not None
        answer = await question.answer(self._engine, arguments, self.asker)
        if question is QUESTIONS["health"]:
            answer |= {"refused": dict(self._server.refused), "clients": self._server.clients}
        return answer

    async def _follow(self, ident: int, arguments: Any) -> None:
        """Send events behind a place, and new ones as they become durable."""
        sent, told, loop = deque[float](maxlen=SENDS), False, asyncio.get_running_loop()
        try:
            pages = self._engine.store.pages(arguments.since, stream=arguments.stream or None, follow=True)
            async for page in pages:
                head = await self._engine.head()
                if not told and head - page[0].seq > BEHIND:
                    await self._send(encode({"id": ident, "behind": {"place": page[0].seq, "head": head}}))
                told = head - page[0].seq > BEHIND // 2
                events = b",".join(map(self._server.encoded, page))
                await self._send(b'{"id":%d,"events":[%b]}\n' % (ident, events))
                if len(sent) == SENDS and (early := sent[0] + SENDS_S - loop.time()) > 0:
                    await asyncio.sleep(early)
                sent.append(loop.time())
            await self._send(encode({"id": ident, "answer": "the journal is closed"}))
        except JournalError as error:
            await self._send(error_line(ProtocolError("journal", str(error)), ident))
        except OSError:
            pass  # the client has gone
        finally:
            self._tasks.pop(ident, None)

    async def _serve_mcp(self, read_only: bool) -> None:
        from app.gateways.mcp import serve_connection  # late: the SDK is large

        await serve_connection(self._engine, self._reader, self._writer, read_only=read_only)

    def _refusal(self, error: ProtocolError, ident: int | None) -> bytes:
        self._server.refused[error.code] += 1
        return error_line(error, ident)

    async def _send(self, line: bytes) -> None:
        """Write a line; whoever does waits until the client has taken what it was sent before."""
        async with self._lock:
            self._writer.write(line)
            await self._writer.drain()

    def say_bye(self, reason: str) -> None:
        """Say that the engine ends, where that fits into what waits to be taken."""
        if self.asker is not None and self._writer.transport.get_write_buffer_size() < BUFFER_BYTES:
            self._writer.write(encode({"bye": reason or "the engine ends"}))

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
        await server.unused()
    finally:
        await server.close()
