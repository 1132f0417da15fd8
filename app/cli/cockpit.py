"""`pilothouse` alone: the cockpit."""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING

from app.cli.options import Parser, accepted_tier, find_mission, print_error, workspace_of
from engine.core.trust import TrustError

if TYPE_CHECKING:
    from app.cockpit.app import Attach


def run(options: argparse.Namespace, attach: Attach | None = None) -> int:
    """Open the cockpit; a new workspace with a mission and no terminal is run without a screen.

    Args:
        options: the command line's.
        attach: whether only an engine that runs is operated; None for any.
    """
    try:
        mission = find_mission(options.mission)
    except KeyError as error:
        return print_error(str(error.args[0]))
    # The screen is drawn on standard error, as Textual does, so that has to be the terminal too.
    terminal = all(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr))
    if not terminal or os.environ.get("TERM") == "dumb":
        if mission is None:
            return print_error("the cockpit needs a terminal; without one use: pilothouse run GOAL")
        # All that `run` can be told and was not is as `run` has it.
        from app.cli import run as run_command

        usual = Parser()
        run_command.add_arguments(usual)
        given = usual.parse_args(["--mission", options.mission])
        return run_command.run(argparse.Namespace(**{**vars(given), **vars(options), "command": "run"}))
    from app.cockpit.gc_tuning import disable_gc

    disable_gc()
    from app.cockpit.app import Attach, run_cockpit

    try:
        return run_cockpit(
            workspace_of(options),
            mission=mission,
            theme=options.theme,
            accept=accepted_tier(options),
            trust=options.trust,
            attach=attach or Attach.IF_RUNNING,
        )
    except TrustError as error:
        return print_error(str(error))
