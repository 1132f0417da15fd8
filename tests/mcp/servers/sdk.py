"""A server made with the SDK, over HTTP: `sdk.py PORT-FILE TOKEN`; it writes its port when it listens."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from pathlib import Path
from typing import Any

import uvicorn
from mcp import types
from mcp.server.lowlevel import Server


async def listed(_context: object, _params: object) -> types.ListToolsResult:
    return types.ListToolsResult(
        tools=[types.Tool(name=name, input_schema={"type": "object"}) for name in "ab"]
    )


async def called(_context: object, params: types.CallToolRequestParams) -> types.CallToolResult:
    if params.name == "b":
        os._exit(1)
    return types.CallToolResult(content=[types.TextContent(type="text", text="from afar")])


class TokenRequired:
    """Lets requests through that carry the token; the rest get 401."""

    def __init__(self, app: Any, token: str) -> None:
        self._app, self._expected = app, f"Bearer {token}".encode()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan" or dict(scope["headers"]).get(b"authorization") == self._expected:
            await self._app(scope, receive, send)
            return
        await send({"type": "http.response.start", "status": 401, "headers": []})
        await send({"type": "http.response.body", "body": b""})


async def main() -> None:
    server = Server("afar", on_list_tools=listed, on_call_tool=called)
    listening = socket.create_server(("127.0.0.1", 0))
    app = TokenRequired(server.streamable_http_app(host="127.0.0.1"), sys.argv[2])
    file = Path(sys.argv[1])
    part = file.with_suffix(".part")
    part.write_text(str(listening.getsockname()[1]))
    part.rename(file)
    await uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False)).serve(sockets=[listening])


asyncio.run(main())
