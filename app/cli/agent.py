"""`pilothouse agent`, deprecated: `do` takes the lines `build PATH`, `agents` and `agent_remove ID`."""

from __future__ import annotations

import argparse
import sys

from app.cli import do

LINES = {"build": "build", "list": "agents", "remove": "agent_remove"}


def run(options: argparse.Namespace) -> int:
    """Say what replaces it, and do that."""
    flags = [f"--type {options.type}"] if options.type else []
    flags += ["--trust"] if options.trusted else []
    flags += ["--dry-run"] if options.tried else []
    line = " ".join(filter(None, (LINES[options.verb], options.of, *flags)))
    sys.stderr.write(f"pilothouse agent is deprecated: pilothouse do '{line}'\n")
    options.line, options.agent, options.dry_run, options.trust = [line], "", False, ""
    return do.run(options)
