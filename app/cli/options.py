"""What all subcommands have in common: their parser, their options, and how answers are printed."""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import re
import sys
from collections.abc import Callable, Coroutine
from dataclasses import fields
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, cast

from engine.core.text import clean, clean_line

if TYPE_CHECKING:
    from engine.planning.library.missions import Mission
    from engine.sandbox.policy import Tier

T = TypeVar("T")
Answer = tuple[int, dict[str, Any], str]
"""Exit code, JSON answer, text."""
EX_SOFTWARE, EX_CONFIG = 70, 78
"""An agent ended by a fault of the program; there is no jail as the policy requires it (sysexits.h)."""


class Parser(argparse.ArgumentParser):
    """A parser that says what is wrong in one line."""

    def error(self, message: str) -> NoReturn:
        """Say it and end."""
        sys.stderr.write(f"{self.prog}: {message} (see {self.prog} --help)\n")
        raise SystemExit(2)


def imported(name: str) -> Any:
    """A module that is imported late; what importing makes stays, so no garbage is looked for among it."""
    gc.disable()
    try:
        return import_module(name)
    finally:
        gc.freeze()
        gc.enable()


def words_of(file: str) -> dict[str, str]:
    """The texts of a file beside this one, by their names: a line each, `NAME = TEXT`."""
    lines = Path(__file__).with_name(file).read_text("utf-8").splitlines()
    return dict(line.split(" = ", 1) for line in lines)


def parsers(top: argparse.ArgumentParser) -> list[argparse.ArgumentParser]:
    """A parser and those of its subcommands, in order."""
    found = [top]
    for action in top._actions:
        if isinstance(action, argparse._SubParsersAction):
            choices: dict[str, Any] = action.choices
            for each in choices.values():
                found += parsers(each)
    return found


def explain(top: argparse.ArgumentParser) -> None:
    """Give each option without a help its line of `options.txt`: that of its subcommand, or of all."""
    helps = words_of("options.txt")
    for parser in parsers(top):
        for action in parser._actions:
            option = (action.option_strings or [action.dest])[-1]
            own = f"{parser.prog.partition(' ')[2]} {option}".strip()
            action.help = action.help or helps.get(own, helps.get(option))


# ------------------------------------------------------------------ options


def common_options() -> Parser:
    """Options that every level takes; a sub-command's value wins."""
    common = Parser(add_help=False, argument_default=argparse.SUPPRESS)
    common.add_argument("--workspace", type=Path, metavar="DIR")
    common.add_argument("--json", action="store_true")
    common.add_argument("--operator", type=_operator, metavar="NAME")
    common.add_argument("--quiet", action="store_true")
    common.add_argument("--journal", metavar="URL")
    return common


def _operator(text: str) -> str:
    """A name that commands may be recorded under."""
    if re.fullmatch(r"[A-Za-z0-9_.-]{1,32}", text) is None:
        raise argparse.ArgumentTypeError(f"'{text}' is no name: 1 to 32 letters, digits, '-', '_' or '.'")
    return text


def add_tier_option(parser: argparse.ArgumentParser) -> None:
    """Add the options for the weakest jail and for the network."""
    parser.add_argument("--accept-tier", choices=("full", "kernel", "paths"), default=argparse.SUPPRESS)
    parser.add_argument("--network", choices=("off", "ports", "on"), default=argparse.SUPPRESS)


def add_trust_option(parser: argparse.ArgumentParser) -> None:
    """Add the option that trusts what is in the workspace."""
    parser.add_argument("--trust", default=argparse.SUPPRESS, metavar="DIGEST")


def positive(text: str) -> int:
    """A whole number above 0."""
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number above 0")
    return int(text)


def days(text: str) -> int:
    """A whole number of days."""
    if not text.isdigit() or len(text) > 5:
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number of days")
    return int(text)


def seconds(text: str) -> float:
    """A number of seconds above 0."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"'{text}' is not a number of seconds above 0")
    return value


# ------------------------------------------------------------------ what was chosen


def accepted_tier(options: argparse.Namespace) -> Tier | None:
    """The weakest jail that is accepted; None for what the settings say."""
    from engine.sandbox.policy import Tier

    tier = getattr(options, "accept_tier", None)
    return Tier(tier.upper()) if tier else None


def workspace_of(options: argparse.Namespace) -> Path:
    """The workspace's directory: `./workspace` where it exists, else here."""
    chosen = getattr(options, "workspace", None)
    try:
        here = Path.cwd()
    except FileNotFoundError:
        raise SystemExit(print_error("the current directory was deleted; change to another one")) from None
    if chosen is not None:
        workspace = here / Path(chosen)
        if not workspace.parent.exists():
            raise SystemExit(
                print_error(f"{workspace.parent} does not exist: make it, or correct --workspace")
            )
        return workspace
    return here / "workspace" if (here / "workspace").is_dir() else here


def flag(options: argparse.Namespace, name: str) -> bool:
    """Whether an option that every level takes was given."""
    return bool(getattr(options, name, False))


def filled(kind: Callable[..., T], options: argparse.Namespace, **more: Any) -> T:
    """A data class from the options that have the names of its fields; others are as usual."""
    names = (each.name for each in fields(cast(Any, kind)) if hasattr(options, each.name))
    return kind(**{**{name: getattr(options, name) for name in names}, **more})


def find_mission(name: str | None) -> Mission | None:
    """The mission with this name, None for no name.

    Raises:
        KeyError: there is none; the message lists those there are.
    """
    from engine.planning.library.missions import load_missions

    if not name:
        return None
    missions = load_missions()
    if name not in missions:
        raise KeyError(f"there is no mission '{name}'; missions: {', '.join(missions)}")
    return missions[name]


# ------------------------------------------------------------------ answers


def print_answer(options: argparse.Namespace, answer: dict[str, Any], text: str) -> None:
    """Print an answer: as JSON on the last line when asked, else as text."""
    print(json.dumps(answer) if flag(options, "json") else clean(text, limit=len(text)), flush=True)


def print_error(text: str) -> int:
    """Say on standard error what is wrong; the exit code 2."""
    sys.stderr.write(f"pilothouse: {clean_line(text)}\n")
    return 2


def _journal_error() -> type[Exception]:
    from engine.core.journal import JournalError  # late: it imports pydantic

    return JournalError


def run_answer(options: argparse.Namespace, work: Coroutine[Any, Any, Answer]) -> int:
    """Await `(exit code, answer, text)` and print it."""
    try:
        code, answer, text = asyncio.run(work)
    except _journal_error() as error:  # only looked at where something was raised
        return print_error(str(error))
    if code == 2:
        return print_error(text)
    return print_result(options, code, answer, text)


def print_result(
    options: argparse.Namespace, code: int, answer: dict[str, Any], text: str, *, head: str = ""
) -> int:
    """Print a result; its exit code. What kept the agent from running at all goes to standard error."""
    if code in (EX_SOFTWARE, EX_CONFIG):
        print_error(text)
    if code not in (EX_SOFTWARE, EX_CONFIG) or flag(options, "json"):
        print_answer(options, answer, head + text)
    return code
