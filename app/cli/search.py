"""`pilothouse search`: events, outputs, thoughts, prompts and memories."""

from __future__ import annotations

import argparse

from app.cli.options import positive, run_answer, workspace_of
from app.commands.search import search_workspace


def add_arguments(search: argparse.ArgumentParser) -> None:
    """Declare what it takes."""
    search.add_argument("words", nargs="+", metavar="WORDS")
    search.add_argument("--agent", default="", metavar="ID")
    search.add_argument("--kind", default="", metavar="KIND")
    search.add_argument("--limit", type=positive, default=100, metavar="N")


def run(options: argparse.Namespace) -> int:
    """Search the workspace."""
    words = " ".join(f'"{each}"' if " " in each and '"' not in each else each for each in options.words)
    work = search_workspace(
        workspace_of(options), words, agent=options.agent, kind=options.kind, limit=options.limit
    )
    return run_answer(options, work)
