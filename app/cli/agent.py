"""`pilothouse agent`: building agents of skills, and what happens to them; `agent_create` uses the same."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Mapping
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from app.cli.options import (
    Answer,
    accepted_tier,
    add_tier_option,
    common_options,
    filled,
    flag,
    run_answer,
    workspace_of,
)
from app.commands.settings import Settings, untrusted_line
from engine.agent.shared import EngineConfig
from engine.api.engine import Engine
from engine.core.text import clean_line
from engine.crew.builder.findings import (
    BUILT_IN,
    BuildResult,
    PendingBuild,
    PhaseRecord,
    Status,
    build_report,
    phase_line,
)
from engine.crew.builds import Builds, builds_of
from engine.crew.ports import HandoffError
from engine.crew.state import CrewState


def pending_build(options: argparse.Namespace) -> PendingBuild:
    """The build that a command line asks for."""
    overrides = {"type": options.type} if options.type else {}
    return filled(PendingBuild, options, trust=True if options.trust else None, overrides=overrides)


async def build_agent(builds: Builds, pending: PendingBuild, *, quiet: bool) -> Answer:
    """`pilothouse agent build`."""

    def report(record: PhaseRecord) -> None:
        if not quiet:
            sys.stderr.write(f"{phase_line(record)}\n")

    result = await builds.build(pending, report, actor="operator:cli")
    return exit_code(result), result.as_json(), build_report(result)


def exit_code(result: BuildResult) -> int:
    """0 for an agent that is there, 3 where the operator is needed, else 1."""
    return 0 if result.success else 3 if result.status is Status.NEEDS_OPERATOR else 1


def list_agents(state: CrewState, broken: Mapping[str, str]) -> Answer:
    """`pilothouse agent list`: those of the workspace, and the built-in ones behind them."""
    entries = sorted(state.agents.values(), key=lambda entry: entry.source.startswith(BUILT_IN))
    rows = [
        {
            **{name: getattr(entry.spec, name) for name in ("id", "name", "type", "version", "description")},
            "source": entry.source,
            "warnings": list(entry.warnings),
        }
        for entry in entries
    ]
    lines = []
    for entry in entries:
        spec, mark = entry.spec, " (built-in)" if entry.source.startswith(BUILT_IN) else ""
        about = clean_line(spec.description, limit=80)
        lines.append(f"{spec.id:<28} {spec.type:<14} {spec.version:<10} {about}{mark}")
    lines += [f"{name:<28} {why}" for name, why in broken.items()]
    answer = {"agents": rows, "broken": list(broken)}
    return 0, answer, "\n".join(lines) or "there are no agents; build one: pilothouse agent build PATH"


async def remove_agent(builds: Builds, agent_id: str) -> Answer:
    """`pilothouse agent remove`."""
    try:
        text = await builds.remove(agent_id, actor="operator:cli")
    except HandoffError:
        return 2, {}, await _unknown(builds, agent_id)
    return 0, {"removed": agent_id}, text


async def _unknown(builds: Builds, agent_id: str) -> str:
    there = await asyncio.to_thread(builds.places.ids)
    near = get_close_matches(agent_id, {*there, *builds.registered}, n=3, cutoff=0.3)
    return f"there is no agent {agent_id}" + (f"; the nearest: {', '.join(near)}" if near else "")


async def run_agent_command(options: Any, workspace: Path, config: EngineConfig, *, quiet: bool) -> Answer:
    """What a parsed command line of `pilothouse agent` asks for, in the workspace, which is opened for it.

    Raises:
        JournalError: it cannot be opened, as when a cockpit holds it: there `build` and `agent_remove` do it.
    """
    # A command line is over when its answer is there: nobody can be asked in between.
    crew_settings = replace(config.crew, attended=False)
    engine = await Engine.open(workspace, config=replace(config, crew=crew_settings))
    if left_out := untrusted_line(engine.trust):
        sys.stderr.write(f"{clean_line(left_out, limit=1_000)}\n")
    try:
        crew = await engine.crew()
        builds = builds_of(crew)
        assert builds is not None
        return await _carried_out(options, builds, crew.state, quiet=quiet)
    except OSError as error:
        where = error.filename or workspace
        return 2, {}, clean_line(f"{where}: {error.strerror or error}; it has to be a place to write to")
    finally:
        await engine.close("the command is over")


async def _carried_out(options: Any, builds: Builds, state: CrewState, *, quiet: bool) -> Answer:
    match options.what:
        case "list":
            return list_agents(state, builds.troubles)
        case "remove":
            return await remove_agent(builds, options.agent)
    return await build_agent(builds, pending_build(options), quiet=quiet)


# ------------------------------------------------------------------ the subcommand

KINDS = ("role", "operator", "collaborative", "pipeline", "guided")


def add_arguments(agent: argparse.ArgumentParser) -> None:
    """Declare what it takes."""

    def parents() -> argparse.ArgumentParser:
        options = common_options()
        add_tier_option(options)
        return options

    what = agent.add_subparsers(dest="what", metavar="WHAT", required=True, parser_class=type(agent))

    def verb(name: str, words: str) -> argparse.ArgumentParser:
        return what.add_parser(name, parents=[parents()], help=words)

    build = verb("build", "an agent of a SKILL.md")
    build.add_argument("path", type=Path, metavar="PATH", help="a folder with a SKILL.md, or the file")
    build.add_argument("--type", choices=KINDS, default="", help="its type, where the text does not tell")
    build.add_argument("--trust", action="store_true", help="also where agents can write")
    build.add_argument("--dry-run", action="store_true", help="everything but registering")
    verb("list", "the agents of the workspace")
    verb("remove", "take an agent away").add_argument("agent", metavar="ID")


def run(options: argparse.Namespace) -> int:
    """Build, list or remove agents."""
    workspace = workspace_of(options)
    config = Settings.load(workspace).engine_config(accept=accepted_tier(options))
    quiet = flag(options, "quiet") or flag(options, "json")
    return run_answer(options, run_agent_command(options, workspace, config, quiet=quiet))
