"""The command line of `pilothouse agent`."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

KINDS = ("role", "operator", "collaborative", "pipeline", "guided")


def add_arguments(agent: argparse.ArgumentParser, parents: Callable[[], argparse.ArgumentParser]) -> None:
    """Declare what the command takes.

    Args:
        agent: the command.
        parents: makes the options that every level takes.
    """
    what = agent.add_subparsers(dest="what", metavar="WHAT", required=True, parser_class=type(agent))

    def verb(name: str, words: str) -> argparse.ArgumentParser:
        return what.add_parser(name, parents=[parents()], help=words)

    for one in (verb("build", "an agent of a SKILL.md"), verb("watch", "build again after each change")):
        one.add_argument("path", type=Path, metavar="PATH", help="a folder with a SKILL.md, or the file")
        one.add_argument("--strict", action="store_true", help="refuse what the standard's validator refuses")
        one.add_argument("--type", choices=KINDS, default="", help="its type, where the text does not tell")
        one.add_argument(
            "--optional-mcp", action="store_true", help="servers that the skill requires may be down"
        )
        one.add_argument("--trust", action="store_true", help="also where agents can write")
        if one.prog.endswith("build"):
            one.add_argument("--dry-run", action="store_true", help="everything but registering")
            one.add_argument("--live", action="store_true", help="the first handoff asks the model")
    verb("list", "the agents of the workspace")
    for one in (verb("remove", "take an agent away"), verb("versions", "an agent and its earlier versions")):
        one.add_argument("agent", metavar="ID")
    back = verb("rollback", "make an earlier version the one that answers")
    back.add_argument("agent", metavar="ID")
    back.add_argument(
        "version", nargs="?", default="", metavar="VERSION", help="by default the newest earlier one"
    )
