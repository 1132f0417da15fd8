"""`pilothouse man`: the manual page, made from the parser."""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from collections.abc import Iterator

from app.cli.options import common_options, parsers
from engine import __version__


def run(_options: argparse.Namespace) -> int:
    """Show the page on a terminal; print it elsewhere."""
    from app.cli.main import parser

    page = "\n".join(manual(parser(whole=True)))
    if not sys.stdout.isatty() or not shutil.which("man"):
        print(page)
        return 0
    return subprocess.run(["man", "-l", "-"], input=page, text=True, check=False).returncode


def manual(top: argparse.ArgumentParser) -> Iterator[str]:
    """The lines of the page in roff's man macros."""
    yield f'.TH PILOTHOUSE 1 "" "pilothouse {__version__}" "User Commands"'
    yield from (".SH NAME", f"pilothouse \\- {_text(top.description or '')}", ".SH SYNOPSIS")
    yield r"\fBpilothouse\fR [\fIOPTIONS\fR] [\fICOMMAND\fR \&...]"
    common = {"-h", "--help", *(name for each in common_options()._actions for name in each.option_strings)}
    words = {each.dest: each.help for action in top._actions for each in _subactions(action)}
    for parser in parsers(top):
        name = parser.prog.partition(" ")[2]
        yield f".SH {_text(name.upper() or 'OPTIONS')}" if name.count(" ") == 0 else f".SS {_text(name)}"
        if name:
            yield _text(words.get(name) or "")
        for action in parser._actions:
            told = name and action.option_strings and common.issuperset(action.option_strings)
            if not told and not isinstance(action, argparse._SubParsersAction):
                yield from (".TP", _named(action), _text((action.help or "") % vars(action)))
        if parser.epilog:
            yield from (".PP", ".nf", *map(_text, parser.epilog.splitlines()), ".fi")
    yield from (".SH SEE ALSO", r"\fBpilothouse help\fR: the guide, a page for each topic")


def _subactions(action: argparse.Action) -> list[argparse.Action]:
    return action._get_subactions() if isinstance(action, argparse._SubParsersAction) else []


def _named(action: argparse.Action) -> str:
    """The names of an option, or that of an argument, with what it takes."""
    value = "|".join(map(str, action.choices)) if action.choices else action.metavar or action.dest
    value = f"\\fI{_text(str(value))}\\fR"
    if not action.option_strings:
        return value
    names = ", ".join(f"\\fB{_text(option)}\\fR" for option in action.option_strings)
    return names if action.nargs == 0 else f"{names} {value}"


def _text(text: str) -> str:
    """A text of one line in which roff sees nothing to do."""
    text = text.replace("\\", r"\e").replace("-", r"\-").replace("'", r"\(aq")
    return f"\\&{text}" if text.startswith(".") else text
