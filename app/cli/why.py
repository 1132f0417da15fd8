"""`pilothouse why`: why something is so, answered from the journal."""

from __future__ import annotations

import argparse

from app.cli.options import run_answer, workspace_of
from app.commands.why import Direction, query_why


def add_arguments(why: argparse.ArgumentParser) -> None:
    """Declare what it takes."""
    why.add_argument(
        "subject",
        metavar="WHAT",
        help="an event (pilot-1:12), action (a3), step, goal, belief's key, error, or a written file's path",
    )
    why.add_argument("--agent", default="", metavar="ID", help="whose, where several agents have it")
    way = why.add_mutually_exclusive_group()
    way.add_argument(
        "--forward", dest="way", action="store_const", const="forward", help="what depends on it"
    )
    way.add_argument(
        "--wrong",
        dest="way",
        action="store_const",
        const="wrong",
        help="what is in doubt if its result is wrong",
    )
    why.set_defaults(way="backward")


def run(options: argparse.Namespace) -> int:
    """Answer from the journal."""
    return run_answer(
        options, query_why(workspace_of(options), options.subject, Direction(options.way), options.agent)
    )
