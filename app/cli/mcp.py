"""`pilothouse mcp`: serve a workspace to other agents over MCP."""

from __future__ import annotations

import argparse
import asyncio

from app.cli.options import accepted_tier, add_tier_option, print_error, workspace_of
from app.gateways.mcp import ServeOptions, serve
from engine.core.journal import JournalError


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65_535:
        raise argparse.ArgumentTypeError(f"'{text[:20]}' is no port; use 0 to 65535")
    return int(text)


def add_arguments(mcp: argparse.ArgumentParser) -> None:
    """Declare what it takes."""
    mcp.add_argument(
        "--http",
        type=_port,
        metavar="PORT",
        help="over HTTP on this machine only, with a token (PILOTHOUSE_MCP_TOKEN, or one that is shown); "
        "0 takes any free port; without it over standard input and output",
    )
    mcp.add_argument("--read-only", action="store_true", help="only what changes nothing")
    add_tier_option(mcp)


def run(options: argparse.Namespace) -> int:
    """Serve until the client leaves or a signal comes."""
    asked = ServeOptions(workspace_of(options), options.http, options.read_only, accepted_tier(options))
    try:
        return asyncio.run(serve(asked))
    except JournalError as error:
        return print_error(str(error))
