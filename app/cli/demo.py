"""`pilothouse demo`: scenes that need no model, each in a workspace of its own that is removed afterwards."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from app.cli.examples import copy_example, crew_missions
from app.cli.options import Answer, flag, print_answer, print_error, run_answer
from app.commands.settings import Settings
from engine.planning.library.missions import DEMO, Mission, load_missions

if TYPE_CHECKING:
    from engine.api.engine import Engine

ALL = "all"
AFTER = (
    "That was a demonstration, in a workspace of its own which is gone. With a model the same agents work on "
    "what you ask: set ANTHROPIC_API_KEY, or ANTHROPIC_BASE_URL for a server of your own, and run pilothouse."
)


def scenes() -> dict[str, Mission]:
    """The missions that are scenes, by their names without the prefix, and those of crews by theirs."""
    missions = load_missions().values()
    shipped = {m.name.removeprefix(DEMO): m for m in missions if m.name.startswith(DEMO)}
    return shipped | crew_missions()


def run(options: argparse.Namespace) -> int:
    """Play scenes in the cockpit, or without a screen where there is no terminal."""
    known = scenes()
    terminal = all(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr))
    on_screen = terminal and os.environ.get("TERM") != "dumb" and not flag(options, "json")
    scene = options.scene or (_asked(known) if on_screen else "")
    if not scene:
        print_answer(options, {"scenes": [*known, ALL]}, _listed(known))
        return 0
    if scene not in (ALL, *known):
        return print_error(f"there is no scene '{scene[:60]}'; scenes: {', '.join((*known, ALL))}")
    code = 0
    for mission in known.values() if scene == ALL else (known[scene],):
        with tempfile.TemporaryDirectory(prefix="pilothouse-demo-", ignore_cleanup_errors=True) as place:
            code = max(code, _play(options, Path(place) / mission.name, mission, on_screen))
    if on_screen:
        print_answer(options, {}, AFTER)
    return code


def _listed(known: dict[str, Mission]) -> str:
    titles = {name: m.title for name, m in known.items()} | {ALL: "one after the other; ctrl+q: the next"}
    return "\n".join(f"{at:>2} {name:<16} {title}" for at, (name, title) in enumerate(titles.items(), 1))


def _asked(known: dict[str, Mission]) -> str:
    """The scene that the operator chooses; empty for none."""
    print(_listed(known))
    try:
        given = input("Which one? ").strip()
    except EOFError:
        return ""
    names = (*known, ALL)
    return names[int(given) - 1] if given.isdecimal() and 0 < int(given) <= len(names) else given


def _play(options: argparse.Namespace, workspace: Path, mission: Mission, on_screen: bool) -> int:
    workspace.mkdir()
    if not mission.name.startswith(DEMO):  # a crew among the examples
        copy_example(mission.name, workspace)
        mission = mission.model_copy(update={"name": f"{DEMO}{mission.name}"})
    settings = replace(Settings.load(workspace, theme=options.theme), model=None, tour=False)
    pace = options.pace if options.pace is not None or on_screen else 0
    if pace is not None:
        settings = replace(settings, recorded_pace=pace)
    if not on_screen:
        return run_answer(options, _without_screen(options, workspace, settings, mission))
    from app.cockpit.app import run_cockpit

    return run_cockpit(workspace, mission=mission, settings=settings)


async def _without_screen(
    options: argparse.Namespace, workspace: Path, settings: Settings, mission: Mission
) -> Answer:
    from app.commands.headless import open_engine

    async with open_engine(workspace, settings.engine_config()) as engine:
        code, answer, text = await _flown(options, engine, mission)
    # A scene that waits for its operator has come to its end.
    waits = code == 3 and mission.expect == "NEEDS_OPERATOR"
    return 0 if waits else code, answer, f"{mission.title}\n{mission.summary}\n\n{text}\n"


async def _flown(options: argparse.Namespace, engine: Engine, mission: Mission) -> Answer:
    from app.commands.command_runner import run_line
    from app.commands.headless import EXIT_CODES, Run, RunOptions, Status
    from engine.core import commands as cmd

    quiet = flag(options, "quiet")
    if mission.agent is None:
        await engine.submit(cmd.CreateAgent(agent="pilot-1"))
        return await run_line(engine, f"mission {mission.name}", agent="", dry=False, quiet=quiet)
    how = RunOptions(engine.workspace, mission=mission, agent=mission.agent.id, quiet=quiet)
    result = await Run(engine, how, sys.stdout, sys.stderr).run()
    return EXIT_CODES[Status(result["status"])], result, f"{result['status']}: {result['message']}"
