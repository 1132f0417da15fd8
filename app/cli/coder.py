"""`pilothouse coder`: an interactive SimpleCoder session."""

from __future__ import annotations

import argparse
import asyncio

from app.cli.options import accepted_tier, workspace_of
from app.commands.coder_shell import coder
from app.commands.settings import Settings
from engine.sandbox.files import SANDBOX_DIRECTORY


def run(options: argparse.Namespace) -> int:
    """Run commands, or read them from the terminal."""
    workspace = workspace_of(options)
    policy = Settings.load(workspace).engine_config(accept=accepted_tier(options)).policy
    return asyncio.run(coder(workspace / SANDBOX_DIRECTORY, options.commands or None, policy=policy))
