"""The SDK's transport over a server's program, and the one over HTTP.

The SDK's own for programs is not used: it knows no jail, and a server would outlive a cockpit that is killed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

import anyio
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.shared.message import SessionMessage
from mcp.types import CONNECTION_CLOSED, jsonrpc_message_adapter
from mcp.types import REQUEST_TIMEOUT as REQUEST_TIMEOUT
from mcp.types import UNSUPPORTED_PROTOCOL_VERSION as UNSUPPORTED_PROTOCOL_VERSION

from engine.tools.mcp.process import ProgramEnvironment, Streams, running_program
from engine.tools.mcp.settings import ServerSettings, expanded

if TYPE_CHECKING:
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream


_LAST_WORDS_S = 0.5
"""How long a program that has closed its output may take to end, so that its last words are heard first."""


@asynccontextmanager
async def _streams(
    settings: ServerSettings,
    around: ProgramEnvironment,
    heard: Callable[[str], None],
    began: Callable[[Streams], None],
    lost: Callable[[], None],
) -> AsyncIterator[tuple[Any, Any]]:
    """A connection's ends as the SDK takes them; arguments and errors as for `connect`."""
    if settings.url:
        headers = expanded(settings.headers, around.environ)
        async with (
            create_mcp_http_client(headers=headers) as client,
            streamable_http_client(settings.url, http_client=client) as ends,
        ):
            yield ends
        return
    async with running_program(settings, around, heard) as streams:
        began(streams)
        async with message_streams(streams.reader, streams.writer, lost, streams.ended) as ends:
            yield ends


@asynccontextmanager
async def message_streams(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    lost: Callable[[], None] = lambda: None,
    ended: asyncio.Future[Any] | None = None,
) -> AsyncIterator[tuple[Any, Any]]:
    """Two byte streams as the SDK takes them: one message a line.

    Args:
        reader: where messages come from.
        writer: where they go.
        lost: called when there are no more.
        ended: what to wait for a moment before that is said.
    """
    into, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    outgoing, out_of = anyio.create_memory_object_stream[SessionMessage](0)
    work = [
        asyncio.create_task(_read(reader, into, lost, ended)),
        asyncio.create_task(_write(writer, out_of, into)),
    ]
    try:
        yield incoming, outgoing
    finally:
        for task in work:
            task.cancel()
        await asyncio.gather(*work, return_exceptions=True)
        for stream in (into, incoming, outgoing, out_of):
            stream.close()


async def _read(
    reader: asyncio.StreamReader,
    into: MemoryObjectSendStream[SessionMessage | Exception],
    lost: Callable[[], None],
    ended: asyncio.Future[Any] | None,
) -> None:
    """Hand on each line as a message; the stream's end, or a line without end, ends the connection."""
    try:
        async with into:
            with suppress(ValueError, ConnectionError, anyio.BrokenResourceError):
                while line := await reader.readline():
                    if line.strip():
                        await into.send(_message(line))
            if ended is not None:
                await asyncio.wait({ended}, timeout=_LAST_WORDS_S)
    finally:
        lost()


def _message(line: bytes) -> SessionMessage | Exception:
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValueError as error:
        return error


async def _write(
    writer: asyncio.StreamWriter,
    out_of: MemoryObjectReceiveStream[SessionMessage],
    into: MemoryObjectSendStream[SessionMessage | Exception],
) -> None:
    try:
        async for envelope in out_of:
            text = envelope.message.model_dump_json(by_alias=True, exclude_unset=True)
            writer.write(text.encode() + b"\n")
            await writer.drain()
    except (OSError, anyio.ClosedResourceError):
        into.close()  # the other side hears that the connection has ended


def connect(
    settings: ServerSettings,
    around: ProgramEnvironment,
    mode: Any,
    *,
    heard: Callable[[str], None],
    began: Callable[[Streams], None],
    lost: Callable[[], None],
) -> AbstractAsyncContextManager[Client]:
    """The SDK's client of a server, to be entered.

    Args:
        settings: of the server.
        around: where it runs.
        mode: how it is greeted.
        heard: receives a program's standard error.
        began: called once a program's streams are open.
        lost: called when a program has closed its output or ended.

    Raises:
        StartError: on entering: its program could not be started.
        MissingVariableError: on entering: a variable that the settings name is not set.
    """
    logging.getLogger("mcp").addHandler(logging.NullHandler())
    logging.getLogger("mcp").propagate = False  # it would write on the operator's screen
    return Client(_streams(settings, around, heard, began, lost), mode=mode, cache=None)


def error_code(error: BaseException) -> int | None:
    """The code of a JSON-RPC error; None for any other error."""
    return error.code if isinstance(error, MCPError) else None


def connection_lost(error: BaseException) -> bool:
    """Whether an error means that the server is not there any more."""
    if isinstance(error, MCPError):
        return error.code == CONNECTION_CLOSED
    over_http = type(error).__module__.partition(".")[0] in ("httpx2", "httpcore2")
    return isinstance(error, ConnectionError) or (over_http and "Timeout" not in type(error).__name__)
