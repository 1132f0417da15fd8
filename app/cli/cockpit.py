"""`pilothouse` alone: the cockpit."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from app.cli.launcher import Terminal, hold_terminal
from app.cli.options import Parser, accepted_tier, declare, find_mission, print_error, workspace_of
from engine.core.trust import TrustError

if TYPE_CHECKING:
    from app.cockpit.app import Attach
    from app.gateways.socket_server import EngineServer
    from engine.api.engine import Engine


def run(options: argparse.Namespace, attach: Attach | None = None, agent: str = "") -> int:
    """Open the cockpit; a new workspace with a mission and no terminal is run without a screen.

    Args:
        options: the command line's.
        attach: whether only an engine that runs is operated; None for any.
        agent: which one is shown first; empty for the one of last time.
    """
    # The screen is drawn on standard error, as Textual does, so that has to be the terminal too.
    terminal = all(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr))
    held: Terminal | None = None
    on_screen = terminal and os.environ.get("TERM") != "dumb"
    in_browser = attach is not None and "WebDriver" in os.environ.get("TEXTUAL_DRIVER", "")
    if on_screen:
        held_or_code = hold_terminal()
        if isinstance(held_or_code, int):
            return held_or_code
        held = held_or_code
    try:
        mission = find_mission(options.mission)
    except KeyError as error:
        return print_error(str(error.args[0]))
    if held is None and not in_browser:
        if mission is None:
            how = "set TERM to what it is (now: dumb), or without one use" if terminal else "without one use"
            return print_error(f"the cockpit needs a terminal; {how}: pilothouse run GOAL")
        # All that `run` can be told and was not is as `run` has it.
        from app.cli import run as run_command

        usual = Parser()
        declare(usual, "run")
        given = usual.parse_args(["--mission", options.mission])
        return run_command.run(argparse.Namespace(**{**vars(given), **vars(options), "command": "run"}))
    from app.cockpit.gc_tuning import disable_gc

    disable_gc()
    from engine.sandbox.tier import layers

    # What the kernel offers is tried by processes of their own, while the rest is imported here.
    threading.Thread(target=_try, args=(layers,), name="layers of the jail", daemon=True).start()
    from app.cockpit.app import Attach, run_cockpit

    try:
        return run_cockpit(
            workspace_of(options),
            mission=mission,
            theme=options.theme,
            accept=accepted_tier(options),
            trust=options.trust,
            attach=attach or Attach.IF_RUNNING,
            agent=agent,
            go_on=partial(_go_on, held) if held is not None else None,
        )
    except TrustError as error:
        return print_error(str(error))


def _try(layers: Callable[[], object]) -> None:
    with suppress(OSError):  # which the opening engine meets as well, and says
        layers()


async def _go_on(terminal: Terminal, engine: Engine, server: EngineServer) -> int:
    """Serve the engine of a cockpit whose screen is gone, until a signal or a client asks for the end."""
    from app.cli.serve import Ending, log_instead_of_terminal  # late: most cockpits never come here
    from app.commands.watchdog import ending_on

    ending = Ending()
    ending.engine = engine
    with ending_on((signal.SIGINT, signal.SIGTERM), ending.by):
        await server.become("serve", ending.asked)
        with suppress(OSError):
            sys.stdout.write(
                f"the agents go on in process {os.getpid()}: pilothouse attach shows them, "
                "pilothouse serve --stop ends them\n"
            )
            sys.stdout.flush()
        log_instead_of_terminal(engine.workspace)
        terminal.let_go()
        try:
            return await ending.code
        finally:
            await server.close(ending.reason)
            await engine.close(ending.reason)
