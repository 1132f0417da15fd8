"""`pilothouse do`: one line, as typed in the command bar."""

from __future__ import annotations

import argparse

from app.cli.options import accepted_tier, add_tier_option, add_trust_option, flag, run_answer, workspace_of
from app.commands.command_runner import run_command


def add_arguments(do: argparse.ArgumentParser) -> None:
    """Declare what it takes."""
    do.add_argument("line", nargs="+")
    do.add_argument("--agent", default="", metavar="ID")
    do.add_argument("--dry-run", action="store_true", help="tell what the line would do, and do nothing")
    add_tier_option(do)
    add_trust_option(do)


def run(options: argparse.Namespace) -> int:
    """Carry the line out."""
    line, accept = " ".join(options.line), accepted_tier(options)
    work = run_command(
        workspace_of(options),
        line,
        agent=options.agent,
        accept=accept,
        dry=options.dry_run,
        quiet=flag(options, "quiet"),
        trust=options.trust,
    )
    return run_answer(options, work)
