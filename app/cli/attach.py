"""`pilothouse attach`: a cockpit on the engine that another process has open, or the board of a fleet."""

from __future__ import annotations

import argparse
import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from app.cli import cockpit
from app.cli.options import print_error
from engine.core.store import JOURNAL

if TYPE_CHECKING:
    from app.cli.fleet.client import FleetClient
    from app.cockpit.shard_board import ShardBoardApp

FLEET = "fleet://"


def run(options: argparse.Namespace) -> int:
    """Attach, and stay until the operator leaves."""
    if options.place.startswith(FLEET):
        return _board(options)
    options.mission = options.trust = ""
    if options.place:
        options.workspace = Path(options.place)
    from app.cockpit.app import Attach  # late: the cockpit is large, and most of this needs a terminal

    how = Attach.READ_ONLY if options.read_only else Attach.ONLY
    return cockpit.run(options, how, options.agent)


def _board(options: argparse.Namespace) -> int:
    """Show the board of a fleet; an agent that is opened has a cockpit of its own until that is left."""
    from app.cli import fleet

    if (missing := fleet.missing()) or not sys.stdout.isatty():
        return print_error(missing or "the board needs a terminal; without one use: pilothouse fleet status")
    from app.cli.fleet.client import FleetClient
    from app.cli.fleet.database import shard_url
    from app.cockpit.shard_board import ShardBoardApp

    key = ""
    while True:
        key, workspace = asyncio.run(_chosen(ShardBoardApp, FleetClient(options.place), key))
        if not key:
            return 0
        environment = {**os.environ, JOURNAL: shard_url(options.place, int(key.partition(" ")[0]))}
        words = ["attach", workspace, "--agent", key.partition(" ")[2]]
        words += ["--read-only"] if options.read_only else []
        subprocess.run([sys.executable, "-P", "-m", "app.cli", *words], check=False, env=environment)


async def _chosen(app: type[ShardBoardApp], client: FleetClient, selected: str) -> tuple[str, str]:
    """The key of the agent that is to be opened, and its shard's workspace; empty where the board is left."""
    try:
        key = await app(client, selected).run_async() or ""
        return key, client.shards[int(key.partition(" ")[0]) - 1].workspace if key else ""
    finally:
        await client.close()
