"""The command line of `pilothouse explorer`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any


def add_arguments(explorer: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    tried = explorer.add_mutually_exclusive_group()
    tried.add_argument(
        "--plans", default="", metavar="P", help="baseline (the default), an .asl program, or as --answer"
    )
    tried.add_argument(
        "--answer", default="", metavar="FILE", help="a model's raw answer; 5.8 to 5.11 are shipped ones"
    )
    tried.add_argument(
        "--thinker", default="", metavar="NAME", help="who is asked for plans, such as recorded:FILE"
    )
    tried.add_argument(
        "--experiment", type=Path, metavar="FILE", help="a grid of answers and thinkers, in TOML"
    )
    explorer.add_argument(
        "--seeds", default="7", metavar="LIST", help="7 (the thesis' own, the default), 1-100 or 7,20-25"
    )
    explorer.add_argument(
        "--compat",
        dest="main",
        action="store_const",
        const="ref_cycles",
        default="cycles",
        help="success and moves by the thesis' cycle; both are always run",
    )
    explorer.add_argument("--native", dest="main", action="store_const", const="cycles", help="by our own")
    explorer.add_argument(
        "--pgp", action="store_true", help="a program's plans come when the goal finds none, as answers do"
    )
    explorer.add_argument("--judge", default="", metavar="NAME", help="who scores the plans (PRAS)")
    explorer.add_argument(
        "--prompt", choices=("no-hints", "hints", "hints-and-remarks"), help="what a thinker is told"
    )
    explorer.add_argument("--temperature", type=float, metavar="T", help="of a thinker, from 0 to 2")
    explorer.add_argument("--log", type=Path, metavar="FILE", help="write what happens as JSON lines")


async def answered(options: argparse.Namespace) -> tuple[int, dict[str, Any], str]:
    """Exit code, and the answer for a program and for a person."""
    from app.experiment_tables import experiment
    from app.explorer import ExplorerOptions, Mode, explore
    from engine.generation.pgp.asking import AskError
    from engine.generation.pgp.prompt import PromptVariant

    try:
        _fit_together(options)
        if options.experiment is not None:
            return 0, *await experiment(options.experiment)
        chosen = ExplorerOptions(
            plans=options.plans,
            answer=options.answer,
            thinker=options.thinker,
            seeds=options.seeds,
            main=Mode(options.main),
            generated=options.pgp,
            judge=options.judge,
            prompt=PromptVariant(options.prompt) if options.prompt else None,
            temperature=options.temperature,
            log=options.log,
        )
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
    for name in ("prompt", "temperature"):
        if getattr(options, name) is not None and not options.thinker:
            raise ValueError(f"--{name} is for --thinker NAME; other plans are what they are")
    if options.experiment is not None and (options.judge or options.log is not None):
        raise ValueError("--experiment takes no --judge and no --log: its file names the judge")
