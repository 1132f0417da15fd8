"""The `pilothouse` command. Heavy imports wait until the sub-command needs them."""

from __future__ import annotations

import argparse
import asyncio
import io
import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from app.arguments import RECORDED, parser

if TYPE_CHECKING:
    from app.headless import RunOptions
    from engine.sandbox.policy import Tier

EX_SOFTWARE, EX_CONFIG = 70, 78
"""An agent ended by a fault of the program; there is no jail as the policy requires it (sysexits.h)."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code of CONTRACTS.md."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal of another encoding shows what it can
            stream.reconfigure(errors="backslashreplace")
    options = parser().parse_args(argv)
    try:
        return HANDLERS[options.command](options)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # Whoever read our output has gone; there is nobody left to tell.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def _accepted(options: argparse.Namespace) -> Tier | None:
    from engine.sandbox.policy import Tier

    said = getattr(options, "accept_tier", None)
    return Tier(said.upper()) if said else None


def _workspace(options: argparse.Namespace) -> Path:
    chosen = getattr(options, "workspace", None)
    try:
        here = Path.cwd()
    except FileNotFoundError:
        raise SystemExit(_complain("the current directory was deleted; change to another one")) from None
    if chosen is not None:
        return here / Path(chosen)
    return here / "workspace" if (here / "workspace").is_dir() else here


def _flag(options: argparse.Namespace, name: str) -> bool:
    return bool(getattr(options, name, False))


def _say(options: argparse.Namespace, answer: dict[str, Any], text: str) -> None:
    """Print an answer: as JSON on the last line when asked, else as text."""
    from engine.domain.text import clean

    print(json.dumps(answer) if _flag(options, "json") else clean(text, limit=len(text)), flush=True)


def _complain(text: str) -> int:
    from engine.domain.text import clean_line

    sys.stderr.write(f"pilothouse: {clean_line(text)}\n")
    return 2


def _mission(name: str | None) -> Any:
    """The mission with this name, None for no name.

    Raises:
        KeyError: there is none; the message lists those there are.
    """
    from engine.library import load_missions

    if not name:
        return None
    missions = load_missions()
    if name not in missions:
        raise KeyError(f"there is no mission '{name}'; missions: {', '.join(missions)}")
    return missions[name]


# ------------------------------------------------------------------ commands


def _cockpit(options: argparse.Namespace) -> int:
    try:
        mission = _mission(options.mission)
    except KeyError as error:
        return _complain(str(error.args[0]))
    # The screen is drawn on standard error, as Textual does, so that has to be the terminal too.
    terminal = all(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr))
    if not terminal or os.environ.get("TERM") == "dumb":
        if mission is None:
            return _complain("the cockpit needs a terminal; without one use: pilothouse run GOAL")
        # All that `run` can be told and was not is as `run` has it.
        usual = parser().parse_args(["run", "--mission", options.mission])
        return _run(argparse.Namespace(**{**vars(usual), **vars(options), "command": "run"}))
    from app.garbage import hold_off

    hold_off()
    from app.cockpit import fly

    return fly(_workspace(options), mission=mission, theme=options.theme, accept=_accepted(options))


def _run(options: argparse.Namespace) -> int:
    from app.headless import EXIT_CODES, RunOptions, Status, run_goal
    from engine.journal.errors import JournalError

    if options.thinker.startswith(RECORDED):
        return _run_again(options)
    try:
        mission = _mission(options.mission)
    except KeyError as error:
        return _complain(str(error.args[0]))
    if options.fleet is not None and (options.goal.strip() or mission or options.step or options.breaks):
        return _complain("a fleet's file has its goals; say no GOAL, --mission, --step or --break beside it")
    if options.fleet is None and bool(options.goal.strip()) == (mission is not None):
        return _complain("say either a GOAL or --mission NAME")
    run = RunOptions(
        workspace=_workspace(options),
        goal=options.goal,
        mission=mission,
        agent=options.agent,
        max_loops=options.max_loops,
        ask="never-ask" not in options.approve,
        approve=tuple(one for one in options.approve if one not in ("ask", "never-ask")),
        step=options.step,
        timeout_s=options.timeout,
        thinker="" if options.thinker == "auto" else options.thinker,
        events=options.events,
        quiet=_flag(options, "quiet"),
        accept=_accepted(options),
        budget_usd=options.budget_usd,
        budget_tokens=options.budget_tokens,
        budget_actions=options.budget_actions,
        budget_seconds=options.budget_seconds,
        breaks=tuple(options.breaks),
    )
    try:
        if options.fleet is not None:
            return _run_fleet(options, run)
        result = asyncio.run(run_goal(run, out=sys.stdout, err=sys.stderr))
    except (JournalError, ValueError) as error:
        return _complain(_one_line(error))
    status = Status(result["status"])
    return _told(options, EXIT_CODES[status], result, result["message"], head=f"{status}: ")


def _run_fleet(options: argparse.Namespace, usual: RunOptions) -> int:
    from app.fleet import exit_code, run_fleet, table

    result = asyncio.run(run_fleet(options.fleet, usual, out=sys.stdout, err=sys.stderr))
    _say(options, result, table(result))
    return exit_code(result)


def _run_again(options: argparse.Namespace) -> int:
    from app.sessions import run_again
    from engine.journal.errors import JournalError

    if options.goal.strip() or options.mission:
        return _complain("a recorded run has its goal; say neither GOAL nor --mission")
    try:
        file = Path(options.thinker.removeprefix(RECORDED))
        code, answer, text = asyncio.run(run_again(file, options.agent))
    except JournalError as error:
        return _complain(str(error))
    return _complain(text) if code == 2 else _told(options, code, answer, text)


def _one_line(error: Exception) -> str:
    from pydantic import ValidationError

    if isinstance(error, ValidationError):
        first = error.errors()[0]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    return str(error)


def _missions(options: argparse.Namespace) -> int:
    from engine.library import load_missions

    missions = load_missions()
    answer = {
        "missions": [
            {"name": m.name, "title": m.title, "goal": m.goal, "network": m.network, "expect": m.expect}
            for m in missions.values()
        ]
    }
    text = "\n".join(f"{m.name:<14} {m.title}\n{'':<14} {m.summary}" for m in missions.values())
    _say(options, answer, text)
    return 0


def _do(options: argparse.Namespace) -> int:
    from app.doing import do_line

    line, accept = " ".join(options.line), _accepted(options)
    work = do_line(
        _workspace(options),
        line,
        agent=options.agent,
        accept=accept,
        dry=options.dry_run,
        quiet=_flag(options, "quiet"),
    )
    return _answered(options, work)


def _sessions(options: argparse.Namespace) -> int:
    from app.sessions import look_at

    source = getattr(options, "source", None)
    name = getattr(options, "name", "")
    target, at = getattr(options, "target", None), getattr(options, "at", "")
    return _answered(options, look_at(_workspace(options), options.what, name, source, at, target))


def _search(options: argparse.Namespace) -> int:
    from app.searching import search_workspace

    words = " ".join(f'"{each}"' if " " in each and '"' not in each else each for each in options.words)
    work = search_workspace(
        _workspace(options), words, agent=options.agent, kind=options.kind, limit=options.limit
    )
    return _answered(options, work)


def _why(options: argparse.Namespace) -> int:
    from app.inquiring import Way, look

    return _answered(options, look(_workspace(options), options.subject, Way(options.way), options.agent))


def _memory(options: argparse.Namespace) -> int:
    from app.memory import MemoryOptions, add, look

    asked = MemoryOptions(
        text=getattr(options, "text", ""),
        workflow=options.workflow,
        agent=getattr(options, "agent", ""),
        level=getattr(options, "level", None),
        type=getattr(options, "type", None),
        importance=getattr(options, "importance", None),
        tags=tuple(getattr(options, "tags", ())),
        limit=getattr(options, "limit", 10),
        as_of=getattr(options, "as_of", None),
    )
    workspace = _workspace(options)
    work = add(workspace, asked) if options.what == "add" else look(workspace, options.what, asked)
    return _answered(options, work)


def _answered(options: argparse.Namespace, work: Any) -> int:
    """Await `(exit code, answer, text)` and print it."""
    from engine.journal.errors import JournalError

    try:
        code, answer, text = asyncio.run(work)
    except JournalError as error:
        return _complain(str(error))
    if code == 2:
        return _complain(text)
    return _told(options, code, answer, text)


def _told(
    options: argparse.Namespace, code: int, answer: dict[str, Any], text: str, *, head: str = ""
) -> int:
    """Print how it went; what kept the agent from running at all goes to standard error."""
    if code in (EX_SOFTWARE, EX_CONFIG):
        _complain(text)
    if code not in (EX_SOFTWARE, EX_CONFIG) or _flag(options, "json"):
        _say(options, answer, head + text)
    return code


def _coder(options: argparse.Namespace) -> int:
    from app.coder import coder
    from app.settings import Settings
    from engine.engine import SANDBOX_DIRECTORY

    workspace = _workspace(options)
    policy = Settings.load(workspace).engine_config(accept=_accepted(options)).policy
    return asyncio.run(coder(workspace / SANDBOX_DIRECTORY, options.commands, policy=policy))


def _agent(options: argparse.Namespace) -> int:
    from app.building import carried_out
    from app.settings import Settings

    workspace = _workspace(options)
    config = Settings.load(workspace).engine_config(accept=_accepted(options))
    quiet = _flag(options, "quiet") or _flag(options, "json")
    return _answered(options, carried_out(options, workspace, config, quiet=quiet))


def _asl(options: argparse.Namespace) -> int:
    from app.asl import AslOptions, ProgramsError, run_agents

    chosen = AslOptions(
        options.files, options.agents, options.cycles, options.policy, options.seed, options.trace
    )
    try:
        run = run_agents(chosen, out=sys.stdout, err=sys.stderr)
    except ProgramsError as error:
        for line in str(error).splitlines():
            _complain(line)
        return 2
    if _flag(options, "json"):
        print(json.dumps(run.as_json()), flush=True)
    elif not _flag(options, "quiet"):
        sys.stderr.write(f"{run.text}\n")
    return run.exit_code


def _explorer(options: argparse.Namespace) -> int:
    from app.explorer_arguments import answered

    return _answered(options, answered(options))


def _doctor(options: argparse.Namespace) -> int:
    from app.doctor import examine

    return _answered(options, examine(_workspace(options), ask_model=options.model))


def _tools(options: argparse.Namespace) -> int:
    from app.tools import list_tools

    work = list_tools(_workspace(options), log=options.log, trust=options.trust, distrust=options.distrust)
    return _answered(options, work)


def _mcp(options: argparse.Namespace) -> int:
    from app.mcp_serving import ServeOptions, serve
    from engine.journal.errors import JournalError

    asked = ServeOptions(
        _workspace(options), options.http, options.read_only, _accepted(options), options.wait
    )
    try:
        return asyncio.run(serve(asked))
    except JournalError as error:
        return _complain(str(error))


def _bench(options: argparse.Namespace) -> int:
    try:
        from tests.benchmarks import run_all
    except ImportError:
        return _complain("the benchmarks are part of the source tree: run this in a checkout, or make bench")
    rows = run_all(options.name)
    if not rows:
        return _complain(f"there is no benchmark '{options.name}'")
    for row in rows:
        base = row["baseline"]  # what it is measured against may not be installed
        figures = (
            f"{row['ours']:>12,.1f} vs {base if isinstance(base, str) else f'{base:,.1f}':>12} {row['unit']}"
        )
        ratio = "" if row["ratio"] is None else f" ratio {row['ratio']:.2f}"
        print(f"{row['name']:<44} {figures:<44}{ratio}", file=sys.stderr)
        print(json.dumps(row))
    return 0


HANDLERS: dict[str, Callable[[argparse.Namespace], int]] = {
    "cockpit": _cockpit,
    "run": _run,
    "missions": _missions,
    "do": _do,
    "sessions": _sessions,
    "search": _search,
    "memory": _memory,
    "why": _why,
    "agent": _agent,
    "coder": _coder,
    "asl": _asl,
    "tools": _tools,
    "mcp": _mcp,
    "doctor": _doctor,
    "explorer": _explorer,
    "bench": _bench,
}


if __name__ == "__main__":
    sys.exit(main())
