"""`pilothouse mcp`: serve a workspace to other agents over MCP."""

from __future__ import annotations

import argparse
import asyncio

from app.cli.options import accepted_tier, add_tier_option, complain, workspace_of
from app.gateways.mcp import ServeOptions, serve
from engine.core.journal import JournalError


def _patience(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= 86_400:
        raise argparse.ArgumentTypeError(f"seconds from 0 to 86400 are expected, not '{text[:20]}'")
    return seconds


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
    mcp.add_argument(
        "--wait",
        type=_patience,
        default=120.0,
        metavar="SECONDS",
        help="how long a call waits for you where you have to allow it, over HTTP at a terminal; "
        "0 refuses it at once, as over standard streams",
    )
    mcp.add_argument("--read-only", action="store_true", help="only what changes nothing")
    add_tier_option(mcp)


def run(options: argparse.Namespace) -> int:
    """Serve until the client leaves or a signal comes."""
    asked = ServeOptions(
        workspace_of(options), options.http, options.read_only, accepted_tier(options), options.wait
    )
    try:
        return asyncio.run(serve(asked))
    except JournalError as error:
        return complain(str(error))
