"""`pilothouse why`: why something is so, answered from the journal."""

from __future__ import annotations

import argparse

from app.cli.options import run_answer, workspace_of
from app.commands.why import Direction, query_why


def add_arguments(why: argparse.ArgumentParser) -> None:
    """Declare what it takes."""
    why.add_argument("subject", metavar="WHAT")
    why.add_argument("--agent", default="", metavar="ID")
    way = why.add_mutually_exclusive_group()
    way.add_argument("--forward", dest="way", action="store_const", const="forward")
    way.add_argument("--wrong", dest="way", action="store_const", const="wrong")
    why.set_defaults(way="backward")


def run(options: argparse.Namespace) -> int:
    """Answer from the journal."""
    return run_answer(
        options, query_why(workspace_of(options), options.subject, Direction(options.way), options.agent)
    )
