"""`pilothouse agent`: building agents of skills, and what happens to them; `agent_create` uses the same."""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path

from app.cli.beside import answer_in_engine, refused_beside
from app.cli.options import (
    Answer,
    accepted_tier,
    add_tier_option,
    common_options,
    flag,
    imported,
    run_answer,
    workspace_of,
)
from app.gateways.engine_client import EngineClient

KINDS = ("role", "operator", "collaborative", "pipeline", "guided")
WHAT = ("what", "agent", "path", "type", "trust", "dry_run")
"""What is asked of an engine, by the names of the options."""


async def _beside(options: argparse.Namespace, client: EngineClient) -> Answer:
    if accepted_tier(options) is not None:
        return refused_beside(client, "--accept-tier")
    given = await client.ask("agent", **{name: getattr(options, name) for name in WHAT})
    return given["code"], given["answer"], given["text"]


async def _alone(options: argparse.Namespace) -> Answer:
    """Open the workspace for it.

    Raises:
        JournalError: it cannot be opened.
    """
    # Late: beside a running engine none of it is needed.
    settings, building = imported("app.commands.settings"), imported("app.commands.agent_building")
    workspace, replace = workspace_of(options), imported("engine.value").replace
    config = settings.Settings.load(workspace).engine_config(accept=accepted_tier(options))
    # A command line is over when its answer is there: nobody can be asked in between.
    config = replace(config, crew=replace(config.crew, attended=False))
    quiet = flag(options, "quiet") or flag(options, "json")
    serving = partial(imported("app.gateways.socket_server").served, kind="agent")
    async with imported("app.commands.headless").open_engine(workspace, config, serving) as engine:
        answer: Answer = await building.carried_out(engine, options, "operator:cli", quiet=quiet)
    return answer


# ------------------------------------------------------------------ the subcommand


def add_arguments(agent: argparse.ArgumentParser) -> None:
    """Declare what it takes."""

    def parents() -> argparse.ArgumentParser:
        options = common_options()
        add_tier_option(options)
        return options

    agent.set_defaults(agent="", path="", type="", trust=False, dry_run=False)
    what = agent.add_subparsers(dest="what", metavar="WHAT", required=True, parser_class=type(agent))

    def verb(name: str, words: str) -> argparse.ArgumentParser:
        return what.add_parser(name, parents=[parents()], help=words)

    build = verb("build", "an agent of a SKILL.md")
    build.add_argument("path", type=_absolute, metavar="PATH", help="a folder with a SKILL.md, or the file")
    build.add_argument("--type", choices=KINDS, default="", help="its type, where the text does not tell")
    build.add_argument("--trust", action="store_true", help="also where agents can write")
    build.add_argument("--dry-run", action="store_true", help="everything but registering")
    verb("list", "the agents of the workspace")
    verb("remove", "take an agent away").add_argument("agent", metavar="ID", help="as `agent list` has it")


def _absolute(text: str) -> str:
    return str(Path(text).expanduser().absolute())


def run(options: argparse.Namespace) -> int:
    """Build, list or remove agents."""
    beside, alone = partial(_beside, options), partial(_alone, options)
    return run_answer(options, answer_in_engine(workspace_of(options), beside, alone))
