"""`pilothouse explorer`: plans for the explorer robot, run and measured."""

from __future__ import annotations

import argparse
from pathlib import Path

from app.cli.explorer import ExplorerOptions, Mode, explore
from app.cli.options import Answer, filled, run_answer
from app.cli.tables import tables_answer
from engine.planning.pgp.prompts import PromptVariant
from engine.planning.pgp.requests import AskError


def add_arguments(explorer: argparse.ArgumentParser) -> None:
    """Declare what it takes."""
    tried = explorer.add_mutually_exclusive_group()
    tried.add_argument("--plans", default="", metavar="P")
    tried.add_argument("--answer", default="", metavar="FILE")
    tried.add_argument("--thinker", default="", metavar="NAME")
    tried.add_argument("--tables", type=Path, metavar="FOLDER")
    explorer.add_argument("--seeds", default="7", metavar="LIST")
    explorer.add_argument("--compat", dest="main", action="store_const", const="ref_cycles", default="cycles")
    explorer.add_argument("--native", dest="main", action="store_const", const="cycles")
    explorer.add_argument("--pgp", dest="generated", action="store_true")
    explorer.add_argument("--judge", default="", metavar="NAME")
    explorer.add_argument("--prompt", choices=("no-hints", "hints", "hints-and-remarks"))
    explorer.add_argument("--temperature", type=float, metavar="T")
    explorer.add_argument("--keep", type=Path, metavar="FILE")


async def _answer(options: argparse.Namespace) -> Answer:
    """Exit code, and the answer for a program and for a person."""
    try:
        _fit_together(options)
        if options.tables is not None:
            return 0, *await tables_answer(options.tables, options.seeds)
        prompt = PromptVariant(options.prompt) if options.prompt else None
        chosen = filled(ExplorerOptions, options, main=Mode(options.main), prompt=prompt)
        return 0, *await explore(chosen)
    except ValueError as error:
        return 2, {}, str(error)
    except AskError as error:
        return 1, {"failure": str(error)}, f"the thinker gave no answer: {error}"


def _fit_together(options: argparse.Namespace) -> None:
    """See that nothing asked for would be passed over.

    Raises:
        ValueError: two options do not go together; the message says which.
    """
    for name in ("prompt", "temperature", "keep"):
        if getattr(options, name) is not None and not options.thinker:
            raise ValueError(f"--{name} is for --thinker NAME; other plans are what they are")
    if options.tables is not None and options.judge:
        raise ValueError("--tables takes no --judge; --answer FILE --judge NAME scores an answer")


def run(options: argparse.Namespace) -> int:
    """Run and measure the plans."""
    return run_answer(options, _answer(options))
