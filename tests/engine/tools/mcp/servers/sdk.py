"""A server made with the SDK, over HTTP: `sdk.py PORT-FILE TOKEN`; it writes its port when it listens."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from mcp import types
from mcp.server.lowlevel import Server

from engine.tools.mcp.tool_server import loopback_socket, serve_http


async def listed(_context: object, _params: object) -> types.ListToolsResult:
    return types.ListToolsResult(
        tools=[types.Tool(name=name, input_schema={"type": "object"}) for name in "ab"]
    )


async def called(_context: object, params: types.CallToolRequestParams) -> types.CallToolResult:
    if params.name == "b":
        os._exit(1)
    return types.CallToolResult(content=[types.TextContent(type="text", text="from afar")])


async def main() -> None:
    server = Server("afar", on_list_tools=listed, on_call_tool=called)
    socket = loopback_socket(0)
    file = Path(sys.argv[1])

    def ready() -> None:
        part = file.with_suffix(".part")
        part.write_text(str(socket.getsockname()[1]))
        part.rename(file)

    await serve_http(server, socket, sys.argv[2], ready)


asyncio.run(main())
