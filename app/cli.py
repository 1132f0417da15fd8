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
from typing import TYPE_CHECKING, Any, NoReturn

from app.explorer_arguments import add_arguments as add_explorer_arguments
from engine import __version__

if TYPE_CHECKING:
    from engine.sandbox.policy import Tier

EX_SOFTWARE, EX_CONFIG = 70, 78
"""An agent ended by a fault of the program; there is no jail as the policy requires it (sysexits.h)."""
RECORDED = "recorded:"
"""Before the file of a run that is to be run again."""
Handler = Callable[[argparse.Namespace], int]


class _Parser(argparse.ArgumentParser):
    """A parser that says what is wrong in one line."""

    def error(self, message: str) -> NoReturn:
        sys.stderr.write(f"{self.prog}: {message} (see {self.prog} --help)\n")
        raise SystemExit(2)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code of CONTRACTS.md."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal of another encoding shows what it can
            stream.reconfigure(errors="backslashreplace")
    options = _parser().parse_args(argv)
    handler: Handler = options.handler
    try:
        return handler(options)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # Whoever read our output has gone; there is nobody left to tell.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def _parser() -> argparse.ArgumentParser:
    common = _common()
    top = _Parser(prog="pilothouse", description="Steer agents live from a terminal.", parents=[_common()])
    top.add_argument("--version", action="version", version=f"pilothouse {__version__}")
    top.add_argument("--mission", metavar="NAME", help="start this mission where the workspace is new")
    top.add_argument("--theme", metavar="NAME", help="colours of the cockpit")
    _tier_option(top)
    top.set_defaults(handler=_cockpit)
    verbs = top.add_subparsers(title="commands", metavar="COMMAND", parser_class=_Parser)

    run = verbs.add_parser("run", parents=[common], help="run one agent on a goal without a screen")
    run.add_argument("goal", nargs="?", default="", help="what is to be done, in plain English")
    run.add_argument("--mission", metavar="NAME", help="a shipped mission instead of a goal")
    run.add_argument("--agent", default="pilot-1", metavar="ID")
    run.add_argument("--max-loops", type=_positive, metavar="N")
    run.add_argument(
        "--thinker",
        type=_thinker,
        default="auto",
        metavar="auto|procedural|claude|recorded:FILE",
        help="who plans; recorded: an exported run once more, with no model and no network",
    )
    run.add_argument(
        "--budget-usd", type=_dollars, metavar="X", help="what models may cost, over all sessions"
    )
    run.add_argument("--budget-tokens", type=_positive, metavar="N")
    run.add_argument("--budget-actions", type=_positive, metavar="N", help="actions that may be started")
    run.add_argument("--budget-seconds", type=_seconds, metavar="S", help="time at work")
    run.add_argument(
        "--approve",
        type=_approval,
        action="append",
        default=[],
        metavar="ask|never-ask|RULE",
        help="never-ask: where the operator would be asked, the goal fails instead; a rule such as "
        "'write paths=src/**' lets these calls run unasked; repeatable",
    )
    run.add_argument(
        "--break",
        action="append",
        default=[],
        dest="breaks",
        metavar="BREAKPOINT",
        help="hold there and end the run, such as: 'tool write path=*.toml'; may be given more than once",
    )
    run.add_argument("--step", action="store_true", help="wait for Enter before each action")
    run.add_argument("--timeout", type=_seconds, metavar="S")
    run.add_argument("--events", action="store_true", help="print every event as one JSON line")
    _tier_option(run)
    run.set_defaults(handler=_run)

    missions = verbs.add_parser("missions", parents=[common], help="the shipped missions")
    missions.set_defaults(handler=_missions)

    do = verbs.add_parser("do", parents=[common], help="one line, as typed in the command bar")
    do.add_argument("line", nargs="+")
    do.add_argument("--agent", default="", metavar="ID")
    _tier_option(do)
    do.set_defaults(handler=_do)

    sessions = verbs.add_parser(
        "sessions", parents=[common], help="the journal: what ran, and whether it is whole"
    )
    what = sessions.add_subparsers(dest="what", metavar="WHAT", required=True, parser_class=_Parser)
    for name, words in (
        ("list", "every session"),
        ("show", "what happened in a session"),
        ("verify", "recompute the hash chain"),
        ("replay", "run recorded agents again and compare"),
    ):
        one = what.add_parser(name, parents=[common], help=words)
        if name in ("show", "replay"):
            one.add_argument("name", nargs="?", default="", help="a session or an agent; all by default")
        if name == "show":
            one.add_argument(
                "--at", default="", metavar="EVENT", help="the agent's state at this event, or now"
            )
        one.add_argument(
            "--from",
            dest="source",
            type=Path,
            metavar="FILE",
            help="an export, not the workspace",
        )
        one.set_defaults(handler=_sessions)
    report = what.add_parser(
        "report",
        parents=[common],
        help="a session or an agent as a file to be read",
    )
    report.add_argument("name", metavar="NAME", help="a session or an agent; '' is the newest session")
    report.add_argument("target", type=Path, metavar="FILE", help="a new file ending in .md or .html")
    report.add_argument("--from", dest="source", type=Path, metavar="FILE", help="an export")
    report.set_defaults(handler=_sessions)
    out = what.add_parser("export", parents=[common], help="the journal as one file for another machine")
    out.add_argument("name", metavar="FILE", help="a new file, such as flight.tar.gz")
    out.set_defaults(handler=_sessions)

    search = verbs.add_parser(
        "search", parents=[common], help="search events, outputs, thoughts, prompts, memories and files"
    )
    search.add_argument("words", nargs="+", metavar="WORDS", help="each must occur")
    search.add_argument("--agent", default="", metavar="ID", help="of this agent only")
    search.add_argument(
        "--kind", default="", metavar="KIND", help="a kind of event such as action, or event, memory, file"
    )
    search.add_argument("--limit", type=_positive, default=100, metavar="N", help="of each source; 100")
    search.set_defaults(handler=_search)

    memory = verbs.add_parser("memory", parents=[common], help="what agents remember")
    _add_memory(memory, common)

    why = verbs.add_parser("why", parents=[common], help="why something is so, answered from the journal")
    why.add_argument(
        "subject",
        metavar="WHAT",
        help="an event (pilot-1:12), action (a3), step, goal, belief's key, error, or a written file's path",
    )
    why.add_argument("--agent", default="", metavar="ID", help="whose, where several agents have it")
    way = why.add_mutually_exclusive_group()
    way.add_argument("--forward", dest="way", action="store_const", const="forward", help="what stands on it")
    way.add_argument(
        "--wrong",
        dest="way",
        action="store_const",
        const="wrong",
        help="what is in doubt if its result is wrong",
    )
    why.set_defaults(handler=_why, way="backward")

    coder = verbs.add_parser("coder", parents=[common], help="an interactive SimpleCoder session")
    coder.add_argument(
        "-c", dest="commands", action="append", metavar="COMMAND", help="run this and end; repeatable"
    )
    _tier_option(coder)
    coder.set_defaults(handler=_coder)

    asl = verbs.add_parser(
        "asl", parents=[common], help="run AgentSpeak(L) programs, several agents together"
    )
    asl.add_argument("files", nargs="*", metavar="FILE", help=".asl programs, or .mas lists of name=file.asl")
    asl.add_argument("--agents", nargs="+", default=[], metavar="NAME=FILE", help="more agents")
    asl.add_argument("--cycles", type=_positive, metavar="N", help="stop after so many cycles of each agent")
    asl.add_argument(
        "--event-policy",
        dest="policy",
        choices=("skip_irrelevant", "one_per_cycle", "compat"),
        default="skip_irrelevant",
        help="what an event without a plan costs; compat: as the thesis' engine in everything",
    )
    asl.add_argument(
        "--seed", type=int, default=0, metavar="N", help="of all chance; the same gives the same run"
    )
    asl.add_argument("--trace", action="store_true", help="every change on standard error")
    asl.set_defaults(handler=_asl)

    doctor = verbs.add_parser("doctor", parents=[common], help="what works on this machine")
    doctor.add_argument("--model", action="store_true", help="ask the model for one word")
    doctor.set_defaults(handler=_doctor)

    explorer = verbs.add_parser(
        "explorer", parents=[common], help="plans for the explorer robot, run and measured"
    )
    add_explorer_arguments(explorer)
    explorer.set_defaults(handler=_explorer)

    bench = verbs.add_parser(
        "bench", parents=[common], help="benchmarks beside their baselines (source tree only)"
    )
    bench.add_argument("name", nargs="?", default="", metavar="NAME")
    bench.set_defaults(handler=_bench)
    return top  # fmt: skip


def _add_memory(parser: _Parser, common: _Parser) -> None:
    what = parser.add_subparsers(dest="what", metavar="WHAT", required=True, parser_class=_Parser)
    add = what.add_parser("add", parents=[common], help="remember something as the operator")
    search = what.add_parser("search", parents=[common], help="find memories by words and likeness")
    stats = what.add_parser("stats", parents=[common], help="how much there is, and what goes next")
    add.add_argument("text", metavar="TEXT")
    add.add_argument("--agent", default="", metavar="ID", help="to the workflow of this agent's goal")
    add.add_argument("--importance", type=float, metavar="N", help="0 to 10; 5 by default")
    search.add_argument("text", metavar="QUERY")
    search.add_argument("--limit", type=_positive, default=10, metavar="N")
    for one in (add, search):
        one.add_argument("--level", metavar="LEVEL", help="working, episodic, semantic or procedural")
        one.add_argument("--type", metavar="TYPE", help="such as fact, insight, procedure, warning")
        one.add_argument("--tag", dest="tags", action="append", default=[], metavar="TAG", help="repeatable")
    for one in (search, stats):
        one.add_argument(
            "--as-of", type=_positive, metavar="SEQ", help="as it was at this place of the journal"
        )
    for one in (add, search, stats):
        one.add_argument("--workflow", default="", metavar="ID")
        one.set_defaults(handler=_memory)


def _common() -> _Parser:
    """Options that every level takes; a sub-command's value wins."""
    common = _Parser(add_help=False, argument_default=argparse.SUPPRESS)
    common.add_argument(
        "--workspace", type=Path, metavar="DIR", help="default: ./workspace if it exists, else ."
    )
    common.add_argument(
        "--json", action="store_true", help="one JSON object as the last line of standard output"
    )
    common.add_argument("--quiet", action="store_true", help="no progress on standard error")
    return common


def _approval(text: str) -> str:
    from engine.steering.rules import RuleError, read_rule

    if text not in ("ask", "never-ask"):
        try:
            read_rule(text)
        except RuleError as error:
            raise argparse.ArgumentTypeError(str(error)) from None
    return text


def _tier_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--accept-tier",
        choices=("full", "kernel", "paths"),
        default=argparse.SUPPRESS,
        help="the weakest jail in which programs may run; paths: unconfined where there is none",
    )


def _accepted(options: argparse.Namespace) -> Tier | None:
    from engine.sandbox.policy import Tier

    said = getattr(options, "accept_tier", None)
    return Tier(said.upper()) if said else None


def _positive(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number above 0")
    return int(text)


def _dollars(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"'{text}' is not a number of dollars")
    return value


def _thinker(text: str) -> str:
    if text in ("auto", "procedural", "claude") or (text.startswith(RECORDED) and len(text) > len(RECORDED)):
        return text
    raise argparse.ArgumentTypeError(
        f"there is no thinker '{text[:60]}'; thinkers: auto, procedural, claude, {RECORDED}FILE"
    )


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"'{text}' is not a number of seconds above 0")
    return value


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
        options.__dict__.update(
            goal="", agent="pilot-1", max_loops=None, approve="ask", step=False, timeout=None, events=False
        )
        return _run(options)
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
    if bool(options.goal.strip()) == (mission is not None):
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
        result = asyncio.run(run_goal(run, out=sys.stdout, err=sys.stderr))
    except (JournalError, ValueError) as error:
        return _complain(_one_line(error))
    status = Status(result["status"])
    return _told(options, EXIT_CODES[status], result, result["message"], head=f"{status}: ")


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
    return _answered(options, do_line(_workspace(options), line, agent=options.agent, accept=accept))


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


if __name__ == "__main__":
    sys.exit(main())
