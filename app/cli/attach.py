"""`pilothouse attach`: a cockpit on the engine that another process has open."""

from __future__ import annotations

import argparse
from pathlib import Path

from app.cli import cockpit


def add_arguments(attach: argparse.ArgumentParser) -> None:
    """Declare what it takes."""
    attach.add_argument("place", nargs="?", type=Path, metavar="WORKSPACE")
    attach.add_argument("--read-only", action="store_true")
    attach.add_argument("--theme", metavar="NAME")
    attach.set_defaults(mission=None, trust="")


def run(options: argparse.Namespace) -> int:
    """Attach, and stay until the operator leaves."""
    if options.place is not None:
        options.workspace = options.place
    from app.cockpit.app import Attach  # late: the cockpit is large, and most of this needs a terminal

    return cockpit.run(options, Attach.READ_ONLY if options.read_only else Attach.ONLY)
