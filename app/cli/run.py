"""`pilothouse run`: one agent on a goal, a fleet of agents, or a recorded run once more, without a screen."""

from __future__ import annotations

import argparse
import asyncio
import sys
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pydantic import ValidationError

from app.cli.archives import ExportError, unpack_session
from app.cli.beside import UNUSABLE, in_engine, refused_beside
from app.cli.fleet_run import exit_code, fleet_table, run_fleet
from app.cli.options import (
    RECORDED,
    accepted_tier,
    filled,
    find_mission,
    print_answer,
    print_error,
    print_result,
    workspace_of,
)
from app.cli.sessions import run_again
from app.commands.headless import EXIT_CODES, RunOptions, Status, run_goal
from app.gateways.engine_client import EngineClient, EngineLostError
from app.gateways.remote_engine import refused_option, run_goal_beside
from app.gateways.socket_server import served
from engine.core.journal import JournalError
from engine.core.text import first_problem


def run(options: argparse.Namespace) -> int:
    """Run one agent, a fleet, or a recorded run again."""
    if options.thinker.startswith(RECORDED):
        return _run_again(options)
    try:
        mission = find_mission(options.mission)
    except KeyError as error:
        return print_error(str(error.args[0]))
    if mission is not None and mission.command is not None:
        return print_error(f"the crew does that: pilothouse do 'mission {mission.name}'")
    if options.fleet is not None and (options.goal.strip() or mission or options.step or options.breaks):
        return print_error(
            "a fleet's file has its goals; say no GOAL, --mission, --step or --break beside it"
        )
    if options.fleet is None and bool(options.goal.strip()) == (mission is not None):
        return print_error("say either a GOAL or --mission NAME")
    run = filled(
        RunOptions,
        options,
        workspace=workspace_of(options),
        mission=mission,
        ask="never-ask" not in options.approve,
        approve=tuple(each for each in options.approve if each not in ("ask", "never-ask")),
        thinker="" if options.thinker == "auto" else options.thinker,
        accept=accepted_tier(options),
    )
    fleet: Path | None = options.fleet
    try:
        result = asyncio.run(
            in_engine(run.workspace, partial(_beside, fleet, run), partial(_alone, fleet, run))
        )
    except EngineLostError as error:
        lost = f"{error}; what is done the journal says, and `run` resumes what is open"
        if fleet is not None:
            print_error(lost)
            return EXIT_CODES[Status.FAULT]
        result = {"status": Status.FAULT.value, "goal": run.goal, "agent": run.agent, "message": lost}
    except (JournalError, ValueError, *UNUSABLE) as error:
        said, _, lines = _one_line(error).partition("\n")
        print_error(said)
        sys.stderr.write(f"{lines}\n" if lines else "")
        return 2
    if fleet is not None:
        print_answer(options, result, fleet_table(result))
        return exit_code(result)
    status = Status(result["status"])
    return print_result(options, EXIT_CODES[status], result, result["message"], head=f"{status}: ")


async def _beside(fleet: Path | None, run: RunOptions, client: EngineClient) -> dict[str, Any]:
    """Run the goal, or a fleet, in the engine that has the workspace open."""
    if option := refused_option(run):
        raise JournalError(refused_beside(client, option)[2])
    if fleet is not None:
        return await run_fleet(fleet, run, out=sys.stdout, err=sys.stderr, client=client)
    return await run_goal_beside(client, run, out=sys.stdout, err=sys.stderr)


async def _alone(fleet: Path | None, run: RunOptions) -> dict[str, Any]:
    if fleet is not None:
        return await run_fleet(fleet, run, out=sys.stdout, err=sys.stderr)
    return await run_goal(run, out=sys.stdout, err=sys.stderr, serving=partial(served, kind="run"))


def _run_again(options: argparse.Namespace) -> int:
    if options.goal.strip() or options.mission:
        return print_error("a recorded run has its goal; say neither GOAL nor --mission")
    try:
        with TemporaryDirectory() as room:
            unpack_session(Path(options.thinker.removeprefix(RECORDED)), Path(room))
            code, answer = asyncio.run(run_again(Path(room), options.agent))
    except (ExportError, KeyError, JournalError) as error:
        return print_error(str(error.args[0]))
    return print_result(options, code, answer, answer["message"])


def _one_line(error: Exception) -> str:
    return first_problem(error) if isinstance(error, ValidationError) else str(error)
