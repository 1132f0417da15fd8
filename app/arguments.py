"""The command line of `pilothouse`: what each of its commands takes."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import NoReturn

from app.agent_arguments import add_arguments as add_agent_arguments
from app.explorer_arguments import add_arguments as add_explorer_arguments
from engine import __version__

RECORDED = "recorded:"
"""Before the file of a run that is to be run again."""


class Parser(argparse.ArgumentParser):
    """A parser that says what is wrong in one line."""

    def error(self, message: str) -> NoReturn:
        """Say it and end."""
        sys.stderr.write(f"{self.prog}: {message} (see {self.prog} --help)\n")
        raise SystemExit(2)


def parser() -> argparse.ArgumentParser:
    """What parses the command line; `command` of what it gives is the command's name, or `cockpit`."""
    common = _common()
    top = Parser(prog="pilothouse", description="Steer agents live from a terminal.", parents=[_common()])
    top.add_argument("--version", action="version", version=f"pilothouse {__version__}")
    top.add_argument("--mission", metavar="NAME", help="start this mission where the workspace is new")
    top.add_argument("--theme", metavar="NAME", help="colours of the cockpit")
    _tier_option(top)
    top.set_defaults(command="cockpit")
    verbs = top.add_subparsers(title="commands", metavar="COMMAND", parser_class=Parser)

    for name, words, add in (
        ("run", "run one agent on a goal without a screen", _add_run),
        ("missions", "the shipped missions", None),
        ("do", "one line, as typed in the command bar", _add_do),
        ("sessions", "the journal: what ran, and whether it is whole", _add_sessions),
        ("search", "search events, outputs, thoughts, prompts, memories and files", _add_search),
        ("memory", "what agents remember", _add_memory),
        ("why", "why something is so, answered from the journal", _add_why),
        ("agent", "build agents of skills, list and remove them", _add_agent),
        ("coder", "an interactive SimpleCoder session", _add_coder),
        ("asl", "run AgentSpeak(L) programs, several agents together", _add_asl),
        ("tools", "the tools that agents have, and how MCP servers are", _add_tools),
        ("mcp", "serve the sandbox and memory of a workspace to other agents over MCP", _add_mcp),
        ("doctor", "what works on this machine", _add_doctor),
        ("explorer", "plans for the explorer robot, run and measured", add_explorer_arguments),
        ("bench", "benchmarks beside their baselines (source tree only)", _add_bench),
    ):
        one = verbs.add_parser(name, parents=[common], help=words)
        one.set_defaults(command=name)
        if add is not None:
            add(one)
    return top


def _add_run(run: Parser) -> None:
    run.add_argument("goal", nargs="?", default="", help="what is to be done, in plain English")
    run.add_argument("--mission", metavar="NAME", help="a shipped mission instead of a goal")
    run.add_argument("--fleet", type=Path, metavar="FILE", help="many agents at once, as a TOML file says")
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


def _add_do(do: Parser) -> None:
    do.add_argument("line", nargs="+")
    do.add_argument("--agent", default="", metavar="ID")
    do.add_argument("--dry-run", action="store_true", help="tell what the line would do, and do nothing")
    _tier_option(do)


def _add_sessions(sessions: Parser) -> None:
    common = _common()
    what = sessions.add_subparsers(dest="what", metavar="WHAT", required=True, parser_class=Parser)
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
            "--from", dest="source", type=Path, metavar="FILE", help="an export, not the workspace"
        )
    report = what.add_parser("report", parents=[common], help="a session or an agent as a file to be read")
    report.add_argument("name", metavar="NAME", help="a session or an agent; '' is the newest session")
    report.add_argument("target", type=Path, metavar="FILE", help="a new file ending in .md or .html")
    report.add_argument("--from", dest="source", type=Path, metavar="FILE", help="an export")
    out = what.add_parser("export", parents=[common], help="the journal as one file for another machine")
    out.add_argument("name", metavar="FILE", help="a new file, such as flight.tar.gz")


def _add_search(search: Parser) -> None:
    search.add_argument("words", nargs="+", metavar="WORDS", help="each must occur")
    search.add_argument("--agent", default="", metavar="ID", help="of this agent only")
    search.add_argument(
        "--kind", default="", metavar="KIND", help="a kind of event such as action, or event, memory, file"
    )
    search.add_argument("--limit", type=_positive, default=100, metavar="N", help="of each source; 100")


def _add_why(why: Parser) -> None:
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
    why.set_defaults(way="backward")


def _add_agent(agent: Parser) -> None:
    def common() -> Parser:
        options = _common()
        _tier_option(options)
        return options

    add_agent_arguments(agent, common)


def _add_coder(coder: Parser) -> None:
    coder.add_argument(
        "-c", dest="commands", action="append", metavar="COMMAND", help="run this and end; repeatable"
    )
    _tier_option(coder)


def _add_asl(asl: Parser) -> None:
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


def _add_doctor(doctor: Parser) -> None:
    doctor.add_argument("--model", action="store_true", help="ask the model for one word")


def _add_tools(tools: Parser) -> None:
    tools.add_argument(
        "--trust",
        action="append",
        default=[],
        type=_server,
        metavar="SERVER",
        help="let this server of the workspace's mcp.json start, now and later; repeatable",
    )
    tools.add_argument(
        "--distrust",
        action="append",
        default=[],
        type=_server,
        metavar="SERVER",
        help="let it not start any more; repeatable",
    )
    tools.add_argument("--log", action="store_true", help="the last lines of servers' standard error, too")


def _server(text: str) -> str:
    if not 0 < len(text) <= 64:
        raise argparse.ArgumentTypeError("a server's name has 1 to 64 characters")
    return text


def _patience(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= 86_400:
        raise argparse.ArgumentTypeError(f"seconds from 0 to 86400 are expected, not '{text[:20]}'")
    return seconds


def _add_mcp(mcp: Parser) -> None:
    mcp.add_argument(
        "--http",
        type=_port,
        metavar="PORT",
        help="over HTTP on this machine only, with a token (PILOTHOUSE_MCP_TOKEN, or one that is told); "
        "0 takes any free port; without it over standard input and output",
    )
    mcp.add_argument(
        "--wait",
        type=_patience,
        default=120.0,
        metavar="SECONDS",
        help="how long a call waits for you where you have to allow it, over HTTP at a terminal; "
        "0 refuses it at once, as over standard streams",
    )
    mcp.add_argument("--read-only", action="store_true", help="only what changes nothing")
    _tier_option(mcp)


def _add_bench(bench: Parser) -> None:
    bench.add_argument("name", nargs="?", default="", metavar="NAME")


def _add_memory(memory: Parser) -> None:
    common = _common()
    what = memory.add_subparsers(dest="what", metavar="WHAT", required=True, parser_class=Parser)
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


def _common() -> Parser:
    """Options that every level takes; a sub-command's value wins."""
    common = Parser(add_help=False, argument_default=argparse.SUPPRESS)
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


def _positive(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number above 0")
    return int(text)


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65_535:
        raise argparse.ArgumentTypeError(f"'{text[:20]}' is no port; use 0 to 65535")
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
