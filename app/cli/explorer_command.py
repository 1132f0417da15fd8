"""`pilothouse explorer`: plans for the explorer robot, run and measured."""

from __future__ import annotations

import argparse
from pathlib import Path

from app.cli.explorer import ExplorerOptions, Mode, explore
from app.cli.options import Answer, filled, run_answer
from app.cli.tables import ask_answers, tables_answer
from engine.planning.pgp.prompts import PromptVariant
from engine.planning.pgp.requests import AskError


async def _answer(options: argparse.Namespace) -> Answer:
    """Exit code, and the answer for a program and for a person."""
    try:
        _fit_together(options)
        if options.what or options.tables is not None:
            folder = options.tables
            if options.model:
                folder = folder or Path("explorer-answers")
                await ask_answers(options.model, folder)
            return 0, *await tables_answer(folder, options.seeds, options.out)
        prompt = PromptVariant(options.prompt) if options.prompt else None
        main = Mode.COMPAT if options.compat else Mode.NATIVE
        chosen = filled(ExplorerOptions, options, prompt=prompt, main=main)
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
    tables = options.what or options.tables is not None
    if tables and (options.judge or options.plans or options.answer or options.thinker):
        raise ValueError(
            "--tables takes no --judge and no plans; --answer FILE --judge NAME scores an answer"
        )
    if not tables and (options.model or options.out):
        raise ValueError("--model and --out are for: explorer tables")


def run(options: argparse.Namespace) -> int:
    """Run and measure the plans."""
    return run_answer(options, _answer(options))
