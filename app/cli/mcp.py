"""`pilothouse mcp`: serve a workspace to other agents over MCP."""

from __future__ import annotations

import argparse
import asyncio
from functools import partial

from app.cli.beside import UNUSABLE, in_engine, refused_beside, until_signal
from app.cli.options import accepted_tier, print_error, workspace_of
from app.commands.headless import open_engine
from app.commands.settings import Settings
from app.gateways.attached_engine import AttachedEngine
from app.gateways.engine_client import EngineClient
from app.gateways.mcp import carried, serve_over_http, server_of
from app.gateways.socket_server import served
from engine.core.journal import JournalError
from engine.tools.mcp.tool_server import serve_streams


async def _serve_alone(options: argparse.Namespace) -> int:
    """Serve until the client leaves or a signal comes; the exit code.

    Raises:
        JournalError: the workspace cannot be opened, or the port cannot be had.
    """
    workspace = workspace_of(options)
    config = Settings.load(workspace).engine_config(accept=accepted_tier(options))
    async with open_engine(workspace, config, partial(served, kind="mcp")) as engine:
        server = await server_of(engine, read_only=options.read_only)
        work = serve_streams(server) if options.http is None else serve_over_http(server, options.http)
        return await until_signal(work)


async def _serve_beside(options: argparse.Namespace, client: EngineClient) -> int:
    """Carry the protocol between standard streams and an engine that runs; the exit code.

    Raises:
        JournalError: an option counts only when a workspace is opened, or the port cannot be had.
        ProtocolError, EngineLostError: the engine refuses, or has gone.
    """
    if accepted_tier(options) is not None:
        raise JournalError(refused_beside(client, "--accept-tier")[2])
    if options.http is not None:
        return await _over_http(options)
    wire = await client.carry("mcp", read_only=options.read_only)
    return await until_signal(carried(wire.reader, wire.writer))


async def _over_http(options: argparse.Namespace) -> int:
    """Serve the engine that runs over HTTP from here; the exit code.

    Raises:
        JournalError: the engine has gone, or the port cannot be had.
    """
    workspace = workspace_of(options)
    config = Settings.load(workspace).engine_config(model=False)
    engine = await AttachedEngine.attach(workspace, config, operator="mcp")
    if engine is None:
        raise JournalError("the engine has gone: try again")
    try:
        await engine.look_at_tools()
        server = await server_of(engine, read_only=options.read_only)
        return await until_signal(serve_over_http(server, options.http))
    finally:
        await engine.close()


# ------------------------------------------------------------------ the subcommand


def run(options: argparse.Namespace) -> int:
    """Serve until the client leaves or a signal comes."""
    beside, alone = partial(_serve_beside, options), partial(_serve_alone, options)
    try:
        return asyncio.run(in_engine(workspace_of(options), beside, alone))
    except (JournalError, *UNUSABLE) as error:
        return print_error(str(error))
