"""`pilothouse why`: why something is so, answered from the journal."""

from __future__ import annotations

import argparse

from app.cli.options import run_answer, workspace_of
from app.commands.why import Direction, query_why


def run(options: argparse.Namespace) -> int:
    """Answer from the journal."""
    return run_answer(
        options, query_why(workspace_of(options), options.subject, Direction(options.way), options.agent)
    )
