"""Serves our own tools over MCP to other agents: over standard streams, or HTTP on this machine.

A `Caller` answers each call and takes it through the engine's one gate and pipeline; nothing is executed
here. Over HTTP each request needs the token.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import json
import socket
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import uvicorn
from mcp import MCPError, types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.types import INVALID_PARAMS

from engine import __version__
from engine.core.text import clean_line
from engine.tools.mcp.health import RESULT_LIMIT, truncate_result
from engine.tools.mcp.process import StandardStreams, own_streams
from engine.tools.mcp.transport import message_streams
from engine.value import dataclass

LOOPBACK = "127.0.0.1"
_INSTRUCTIONS = (
    "Tools of a Pilothouse workspace: files and programs in its sandbox, its memory, and its crew of agents. "
    "Each call is recorded in the workspace's journal."
)


@dataclass(frozen=True, slots=True)
class ServedCommand:
    """One command that is served."""

    name: str
    tool: str
    command: str
    description: str
    schema: Mapping[str, Any]
    changes: bool
    """Whether it may change something."""


@dataclass(frozen=True, slots=True)
class CallReply:
    """The result of a call."""

    ok: bool
    data: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Page:
    """A resource or a prompt: its address or name, its title, and what it is."""

    name: str
    title: str
    about: str


class Pages(Protocol):
    """Texts that clients may read."""

    def resources(self) -> Sequence[Page]:
        """The resources that there are now, by their addresses."""

    async def resource(self, uri: str) -> str:
        """The text of a resource; KeyError where there is none."""

    async def prompts(self) -> Sequence[Page]:
        """The prompts, by their names."""

    async def prompt(self, name: str) -> str:
        """The text of a prompt; KeyError where there is none."""


class Caller(Protocol):
    """Executes calls."""

    async def call(self, offer: ServedCommand, args: Mapping[str, Any], client: str) -> CallReply:
        """Execute one call; what is wrong with it is in the answer's `message`.

        Args:
            offer: what is called.
            args: as they were given, unchecked.
            client: what the client calls itself, clean; empty where it does not say.
        """


def build_server(offers: Sequence[ServedCommand], caller: Caller, pages: Pages) -> Server[Any]:
    """The SDK's server of these commands and texts."""
    known = {offer.name: offer for offer in offers}
    listed = [
        types.Tool(
            name=offer.name,
            description=offer.description,
            input_schema=dict(offer.schema),
            annotations=types.ToolAnnotations(read_only_hint=not offer.changes),
        )
        for offer in offers
    ]

    async def list_tools(
        _context: ServerRequestContext[Any], _params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return types.ListToolsResult(tools=listed)

    async def call_tool(
        context: ServerRequestContext[Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        offer = known.get(params.name)
        if offer is None:
            message = f"there is no tool {clean_line(params.name, limit=80)!r}"
            return _result(CallReply(False, {"message": message}))
        return _result(await caller.call(offer, params.arguments or {}, _client(context)))

    async def list_resources(_context: Any, _params: Any) -> types.ListResourcesResult:
        resources = [types.Resource(uri=p.name, name=p.title, description=p.about) for p in pages.resources()]
        return types.ListResourcesResult(resources=resources)

    async def read_resource(
        _context: Any, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        text = await _known(pages.resource(str(params.uri)), "resource", str(params.uri))
        return types.ReadResourceResult(contents=[types.TextResourceContents(uri=params.uri, text=text)])

    async def list_prompts(_context: Any, _params: Any) -> types.ListPromptsResult:
        given = await pages.prompts()
        prompts = [types.Prompt(name=page.name, title=page.title, description=page.about) for page in given]
        return types.ListPromptsResult(prompts=prompts)

    async def get_prompt(_context: Any, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        words = await _known(pages.prompt(params.name), "prompt", params.name)
        text = types.TextContent(type="text", text=words)
        return types.GetPromptResult(messages=[types.PromptMessage(role="user", content=text)])

    return Server(
        "pilothouse",
        version=__version__,
        instructions=_INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_read_resource=read_resource,
        on_list_prompts=list_prompts,
        on_get_prompt=get_prompt,
    )


async def _known(text: Awaitable[str], what: str, name: str) -> str:
    """A text, or the protocol's error where there is none."""
    try:
        return await text
    except KeyError:
        raise MCPError(INVALID_PARAMS, f"there is no {what} {clean_line(name, limit=80)!r}") from None


def _client(context: ServerRequestContext[Any]) -> str:
    params = getattr(context.session, "client_params", None)
    info = getattr(params, "client_info", None)
    name = clean_line(str(getattr(info, "name", "") or ""), limit=60)
    return "".join(char for char in name if char.isalnum() or char in "-_.")[:32]


def _result(reply: CallReply) -> types.CallToolResult:
    data = dict(reply.data)
    text = json.dumps(data, ensure_ascii=False) if reply.ok else str(data.get("message", ""))
    whole = reply.ok and len(text) <= RESULT_LIMIT
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=truncate_result(text) or "it failed and said nothing")],
        structured_content=data if whole else None,
        is_error=not reply.ok,
    )


# ------------------------------------------------------------------ standard streams


async def serve_streams(server: Server[Any], streams: StandardStreams | None = None) -> None:
    """Serve whoever started this program, or is at the other end of these streams, until they close them.

    While it serves, only the protocol reaches standard output; all other output goes to standard error.

    Raises:
        OSError: standard input or output is neither a pipe, a socket nor a terminal.
    """
    ends = own_streams() if streams is None else contextlib.nullcontext(streams)
    async with ends as (reader, writer), message_streams(reader, writer) as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


# ------------------------------------------------------------------ HTTP on this machine


def loopback_socket(port: int) -> socket.socket:
    """A socket that listens on this machine only; port 0 takes any that is free.

    Raises:
        OSError: the port is taken or may not be had.
    """
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((LOOPBACK, port))
        listening.listen(64)
    except OSError:
        listening.close()
        raise
    return listening


async def serve_http(
    server: Server[Any], listening: socket.socket, token: str, ready: Callable[[], None]
) -> None:
    """Serve over streamable HTTP at `/mcp` until cancelled.

    Args:
        server: what is served.
        listening: a socket of this machine's loopback.
        token: what each request has to carry as `Authorization: Bearer TOKEN`.
        ready: called before the first request is taken.
    """
    app = _TokenRequired(server.streamable_http_app(host=LOOPBACK), token)
    config = uvicorn.Config(app, log_config=None, access_log=False, timeout_graceful_shutdown=2)
    http = _Http(config)
    serving = asyncio.ensure_future(http.serve(sockets=[listening]))
    ready()
    try:
        await asyncio.shield(serving)
    finally:
        http.should_exit = True
        await asyncio.gather(serving, return_exceptions=True)


class _Http(uvicorn.Server):
    """Leaves signals to the program, which has a workspace to close."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class _TokenRequired:
    """Lets requests through that carry the token; the rest get 401 and nothing more."""

    def __init__(self, app: Any, token: str) -> None:
        self._app, self._expected = app, f"Bearer {token}".encode()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan" or self._fits(scope):
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        headers = [(b"content-type", b"text/plain"), (b"www-authenticate", b"Bearer")]
        await send({"type": "http.response.start", "status": 401, "headers": headers})
        await send({"type": "http.response.body", "body": b"the token is missing or wrong\n"})

    def _fits(self, scope: Any) -> bool:
        tokens = [value for name, value in scope.get("headers", ()) if name == b"authorization"]
        return scope["type"] == "http" and len(tokens) == 1 and hmac.compare_digest(tokens[0], self._expected)
