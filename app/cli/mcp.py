"""`pilothouse mcp`: serve a workspace to other agents over MCP."""

from __future__ import annotations

import argparse
import asyncio

from app.cli.options import accepted_tier, add_tier_option, complain, workspace_of
from app.gateways.mcp import ServeOptions, serve
from engine.core.journal import JournalError


def add_arguments(mcp: argparse.ArgumentParser) -> None:
    """Declare what it takes."""
    mcp.add_argument("--read-only", action="store_true", help="only what changes nothing")
    add_tier_option(mcp)


def run(options: argparse.Namespace) -> int:
    """Serve until the client leaves or a signal comes."""
    asked = ServeOptions(workspace_of(options), options.read_only, accepted_tier(options))
    try:
        return asyncio.run(serve(asked))
    except JournalError as error:
        return complain(str(error))
