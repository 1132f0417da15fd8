"""The `pilothouse` command: a module for each subcommand, imported when it is the one that was typed."""

from __future__ import annotations

import argparse
import io
import os
import signal
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from app.cli.options import Parser, common_options, declare, imported, print_error
from app.commands.user import NETWORK, OPERATOR
from engine import __version__
from engine.core.store import JOURNAL

_LISTED = Path(__file__).with_name("subcommands.txt").read_text("utf-8").splitlines()
SUBCOMMANDS = dict(line.split(" = ", 1) for line in _LISTED)
"""What each is for; its module in `app.cli` runs it."""
EXAMPLES = Path(__file__).with_name("examples.txt")
"""Lines to try, each beginning with its subcommand."""


def _has_page(topic: str) -> bool:
    from app import guide

    return topic in guide.topics()


def _module(name: str) -> Any:
    """The module of a subcommand."""
    return imported("app.cli.explorer_command" if name == "explorer" else f"app.cli.{name}")


class LateParser(Parser):
    """The parser of a subcommand, which learns its arguments when it is asked to parse."""

    subcommand = ""

    def learn(self) -> None:
        """Take the arguments, and the examples."""
        if name := self.subcommand:
            self.subcommand = ""
            declare(self, name)
            self.formatter_class = argparse.RawDescriptionHelpFormatter
            lines = [line for line in EXAMPLES.read_text().splitlines() if line.split()[0] == name]
            self.epilog = "\n".join(["examples:", *(f"  pilothouse {line}" for line in lines)])

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """See `argparse`."""
        self.learn()
        return super().parse_known_args(args, namespace)


def _without_pydantic_plugins() -> None:
    """Have pydantic build validators without searching all installed distributions for its plug-ins.

    The search takes 10 to 20 ms of a start, and a plug-in would watch what is validated here. Pydantic's own
    switch, `PYDANTIC_DISABLE_PLUGINS`, saves nothing: what searches is imported all the same.
    """
    loader: Any = ModuleType("pydantic.plugin._loader")
    loader.get_plugins = tuple
    sys.modules.setdefault(loader.__name__, loader)


def parser(only: str = "", *, whole: bool = False) -> Parser:
    """What parses the command line; `command` of its result is the subcommand's name, or `cockpit`.

    Args:
        only: the subcommand that is the first word, where it is one: no other is made.
        whole: whether all subcommands learn their arguments now, as completion and the manual need them.
    """
    common: Any = common_options()
    top = Parser(prog="pilothouse", description="Steer agents live from a terminal.", parents=[common])
    top.add_argument("--version", action="version", version=f"pilothouse {__version__}")
    declare(top, top.prog)
    top.set_defaults(command="cockpit", trust="")
    subcommands = top.add_subparsers(title="commands", metavar="COMMAND", parser_class=LateParser)
    for name in (only,) if only in SUBCOMMANDS else SUBCOMMANDS:
        subcommand = subcommands.add_parser(name, parents=[common], help=SUBCOMMANDS[name])
        subcommand.set_defaults(command=name)
        subcommand.subcommand = name
        if whole:
            subcommand.learn()
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns its exit code."""
    _set_signals()
    _without_pydantic_plugins()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal of another encoding shows what it can
            stream.reconfigure(errors="backslashreplace")
    words = sys.argv[1:] if argv is None else argv
    options = parser(*words[:1]).parse_args(words)
    if operator := getattr(options, "operator", ""):
        os.environ[OPERATOR] = operator  # the processes that are started for it are this operator's, too
    if journal := getattr(options, "journal", ""):
        os.environ[JOURNAL] = journal
    if network := getattr(options, "network", ""):
        os.environ[NETWORK] = network
    if options.command == "help" and options.topic in SUBCOMMANDS and not _has_page(options.topic):
        return main([options.topic, "--help"])
    try:
        return int(_module(options.command).run(options))
    except KeyboardInterrupt:
        return 130
    except PermissionError as error:
        if error.filename is None:
            raise
        return print_error(f"{error.filename} cannot be used ({error.strerror}): check who may use it")
    except BrokenPipeError:
        # Whoever read our output has gone; there is nobody left to tell.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def _set_signals() -> None:
    """Make SIGINT cancel and block no signal, also under `trap '' INT` or as a script's background job.

    What Python ignores by itself stays, and so does SIGHUP: `nohup` is the wish to outlive the terminal.
    """
    if threading.current_thread() is not threading.main_thread():
        return  # a host's own thread: its signals are the host's
    stays = (signal.SIGKILL, signal.SIGSTOP, signal.SIGPIPE, signal.SIGXFSZ, signal.SIGHUP)
    for number in signal.valid_signals():
        if number not in stays and signal.getsignal(number) is signal.SIG_IGN:
            usual = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
            signal.signal(number, usual)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


if __name__ == "__main__":
    sys.exit(main())
