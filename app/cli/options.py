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
from functools import cache
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
RECORDED = "recorded:"
"""Before the file of a run that is to be run again."""
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


def parsers(top: argparse.ArgumentParser) -> list[argparse.ArgumentParser]:
    """A parser and those of its subcommands, in order."""
    found = [top]
    for action in top._actions:
        if isinstance(action, argparse._SubParsersAction):
            choices: dict[str, Any] = action.choices
            for each in choices.values():
                found += parsers(each)
    return found


# ------------------------------------------------------------------ options


@cache
def _rows() -> dict[str, list[list[str]]]:
    """What `options.txt` says of each command: a name and its value, how it is read, and its help."""
    rows: dict[str, list[list[str]]] = {}
    for line in Path(__file__).with_name("options.txt").read_text("utf-8").splitlines():
        command, *row = line.split(" | ")
        rows.setdefault(command, []).append(row)
    return rows


def declare(parser: argparse.ArgumentParser, command: str) -> None:
    """Have a parser take what `options.txt` says of a command, and of those within it.

    A line is `COMMAND | NAME VALUE | HOW | HELP`, or `COMMAND | @COMMON` for what several take. An option
    without a value is a switch, and a text that is not given is empty. After a value, `?`, `*` and `+` mean
    what they mean to `argparse`, which is told HOW; `or` names those of which one can be given, `type` a
    range, or what reads it here. A command within another has a line without a name; the `usual` one need
    not be said.
    """
    groups: dict[str, Any] = {}
    for name, *rest in _rows().get(command, ()):
        if name.startswith("@"):
            declare(parser, name)
            continue
        (option, _, value), (how, words) = name.partition(" "), rest
        if not option:
            continue
        more: dict[str, Any] = dict(each.split("=", 1) for each in how.split())
        takes: Any = parser
        if group := more.pop("or", ""):
            takes = groups[group] = groups.get(group) or parser.add_mutually_exclusive_group()
        if value[-1:] in ("?", "*", "+"):
            more["nargs"], value = value[-1], value[:-1]
        if kind := more.get("type", ""):
            more["type"] = _whole(kind) if ".." in kind else TYPES[kind]
        if value.startswith("{"):
            more["choices"] = value.strip("{}").split(",")
        elif value:
            more["metavar"] = value
            several = more.get("action") == "append" or more.get("nargs", "?") != "?"
            more.setdefault("default", [] if several else None if kind else "")
        else:
            more.setdefault("action", "store_true")
        if command.startswith("@"):
            more["default"] = argparse.SUPPRESS
        takes.add_argument(option, help=words, **more)
    inner = {each: rows[0] for each, rows in _rows().items() if each.startswith(f"{command} ")}
    if inner:
        needed = all(how != "usual" for _, how, _ in inner.values())
        what = parser.add_subparsers(dest="what", required=needed, metavar="WHAT", parser_class=Parser)
        for each, (_, _, words) in inner.items():
            under = what.add_parser(each.partition(" ")[2], parents=[common_options()], help=words)
            declare(under, each)


def common_options() -> Parser:
    """Options that every level takes; a sub-command's value wins."""
    common = Parser(add_help=False)
    declare(common, "@common")
    return common


def _whole(allowed: str) -> Callable[[str], int]:
    """What reads a whole number from A on, or of a range: A.. or A..B."""
    least, _, most = allowed.partition("..")

    def whole(text: str) -> int:
        if not text.isdigit() or not int(least) <= int(text) <= int(most or text):
            to = f" to {most}" if most else " on"
            raise argparse.ArgumentTypeError(f"'{text[:20]}' is not a whole number from {least}{to}")
        return int(text)

    return whole


def _operator(text: str) -> str:
    """A name that commands may be recorded under."""
    if re.fullmatch(r"[A-Za-z0-9_.-]{1,32}", text) is None:
        raise argparse.ArgumentTypeError(f"'{text}' is no name: 1 to 32 letters, digits, '-', '_' or '.'")
    return text


def _seconds(text: str) -> float:
    """A number of seconds above 0."""
    if not 0 < (value := float(text)) < float("inf"):
        raise argparse.ArgumentTypeError(f"'{text}' is not a number of seconds above 0")
    return value


def _dollars(text: str) -> float:
    """What something may cost."""
    if not 0 <= (value := float(text)) < float("inf"):
        raise argparse.ArgumentTypeError(f"'{text}' is not a number of dollars")
    return value


def _approval(text: str) -> str:
    """Who is asked, or a rule by which calls run unasked."""
    from engine.agent.steering.rules import RuleError, read_rule

    if text not in ("ask", "never-ask"):
        try:
            read_rule(text)
        except RuleError as error:
            raise argparse.ArgumentTypeError(str(error)) from None
    return text


def _thinker(text: str) -> str:
    """Who plans."""
    if text not in ("auto", "procedural", "claude") and not re.fullmatch(f"{RECORDED}(?s:.+)", text):
        raise argparse.ArgumentTypeError(
            f"there is no thinker '{text[:60]}'; thinkers: auto, procedural, claude, {RECORDED}FILE"
        )
    return text


TYPES: dict[str, Callable[[str], object]] = {
    "Path": Path,
    "str": str,
    "int": int,
    "float": float,
    "operator": _operator,
    "seconds": _seconds,
    "dollars": _dollars,
    "approval": _approval,
    "thinker": _thinker,
}
"""What reads a value of `options.txt`."""


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
