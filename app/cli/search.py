"""`pilothouse search`: events, outputs, thoughts, prompts and memories."""

from __future__ import annotations

import argparse

from app.cli.options import run_answer, workspace_of
from app.commands.search import search_workspace


def run(options: argparse.Namespace) -> int:
    """Search the workspace."""
    words = " ".join(f'"{each}"' if " " in each and '"' not in each else each for each in options.words)
    work = search_workspace(
        workspace_of(options), words, agent=options.agent, kind=options.kind, limit=options.limit
    )
    return run_answer(options, work)
