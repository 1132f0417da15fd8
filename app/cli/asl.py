"""AgentSpeak(L) programs from the command line: run, several together, checked, laid out, begun."""

from __future__ import annotations

import argparse
import fnmatch
import json
import os
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TextIO

from app.cli.asl_shell import Shell
from app.cli.mas2j import read_project
from app.cli.options import filled, flag, print_error
from engine.bdi.checking import check, unknown_actions
from engine.bdi.errors import EvaluationError, ProgramError, SyntaxProblem
from engine.bdi.formatting import formatted
from engine.bdi.including import load_program
from engine.bdi.library.terms import STANDARD
from engine.bdi.semantics import EventPolicy, Semantics
from engine.bdi.syntax import Program
from engine.bdi.system import System
from engine.bdi.trace import TraceEvent
from engine.core.store.places import read_plain
from engine.core.text import clean, clean_line
from engine.value import dataclass, field, fields

POLICIES = {
    **{policy.value: Semantics(event_policy=policy) for policy in EventPolicy},
    "compat": Semantics.compat(),
}
"""What `--policy` takes: an event policy with Jason's semantics otherwise, or those of the thesis' engine."""

TEMPLATE = Path(__file__).with_name("template.asl")
PROJECT = ".mas2j"
"""Ending of Jason's project files."""

INDENT = "    "
LARGEST = 20_000_000
"""Bytes of one file."""


@dataclass(frozen=True, slots=True)
class AgentSpeakOptions:
    """What to run and how."""

    files: Sequence[str]
    """`.asl` files, each an agent named as the file; `.mas` files that list `name = file.asl`; `.mas2j`."""
    agents: Sequence[str] = ()
    """More agents, as `name=file.asl`."""
    cycles: int | None = None
    policy: str = EventPolicy.SKIP_IRRELEVANT.value
    seed: int = 0
    trace: bool = False
    step: bool = False


class ProgramsError(ValueError):
    """Programs that cannot be run; each line of the message is a problem, or indented, the text of one."""


def load_agents(options: AgentSpeakOptions) -> dict[str, Program]:
    """The agents by name, in the order they were given.

    Raises:
        ProgramsError: a file cannot be read, is not AgentSpeak(L), or a name is given twice.
    """
    agents: dict[str, Program] = {}
    problems: list[str] = []
    for name, path in _named(options, problems):
        if name in agents:
            problems.append(f"{path}: there is an agent '{name}' already; name it with --agents NAME={path}")
        else:
            agents[name] = _load(path, problems)
    for given in options.files:
        if given.endswith(PROJECT):
            _load_project(Path(given), agents, problems)
    if not (agents or problems):
        problems.append("say at least one file")
    if problems:
        raise ProgramsError("\n".join(problems))
    return agents


def _named(options: AgentSpeakOptions, problems: list[str]) -> Iterable[tuple[str, Path]]:
    for given in options.files:
        path = Path(given)
        if path.suffix == PROJECT:
            continue
        if path.suffix == ".mas":
            lines = (line.partition("#")[0].strip() for line in _read(path, problems).splitlines())
            yield from _pairs([line for line in lines if line], path.parent, str(path), problems)
        else:
            yield path.stem, path
    yield from _pairs(options.agents, Path(), "--agents", problems)


def _pairs(
    lines: Iterable[str], directory: Path, where: str, problems: list[str]
) -> Iterable[tuple[str, Path]]:
    for line in lines:
        name, _, file = (part.strip() for part in line.partition("="))
        if name and file:
            yield name, directory / file
        else:
            problems.append(f"{where}: expected name=file.asl, found '{clean_line(line, limit=80)}'")


def _load_project(path: Path, agents: dict[str, Program], problems: list[str]) -> None:
    """The agents of one of Jason's project files, whose programs lie in its folders or beside it."""
    text = _read(path, problems)
    if not text:
        return
    try:
        project = read_project(text, str(path))
        for each in project.agents:
            places = [path.parent / folder / each.file for folder in (*project.paths, "", "src/asl", "asl")]
            place = next((file for file in places if file.is_file()), path.parent / each.file)
            program = each.extended(_load(place, problems))
            for name in each.names:
                if name in agents:
                    problems.append(f"{path}: there is an agent '{name}' already")
                agents[name] = program
    except ProgramError as error:
        problems += _shown(error.problems)


def _shown(problems: Iterable[SyntaxProblem]) -> Iterable[str]:
    """Problems of a text with their mends and the lines that they stand in."""
    for problem in problems:
        yield problem.advice
        yield from (f"{INDENT}{clean(line)}" for line in problem.excerpt)


def _text(path: str) -> str:
    return read_plain(Path(path), LARGEST).decode("utf-8")


def _beside(path: str, files: Sequence[str]) -> str:
    """The path of a program for `.create_agent`: as it is, or in the folder of one of the files."""
    places = (str(Path(file).parent / path) for file in files)
    return path if Path(path).is_file() else next(filter(os.path.isfile, places), path)


def _listed(folder: str, pattern: str, files: Sequence[str]) -> Iterator[str]:
    """The files in and beneath a folder that lies in that of a program; ValueError for any other one."""
    glob = pattern.replace(".*", "\0")
    if set(glob) & set("*+?()[]{}|^$\\"):
        raise ValueError("of patterns there are . and .*")
    tops = [Path(file).parent.resolve() for file in files]
    place = next((place for top in tops if (place := (top / folder).resolve()).is_relative_to(top)), None)
    if place is None:
        raise ValueError(f"{folder} lies in no folder of a program")
    for directory, folders, names in os.walk(place):
        folders.sort()
        for name in fnmatch.filter(sorted(names), glob.replace(".", "?").replace("\0", "*")):
            yield f"{folder.removesuffix('/')}/{Path(directory, name).relative_to(place)}"


def _reason(error: OSError | ValueError) -> str:
    if isinstance(error, UnicodeDecodeError):
        return f"not UTF-8 at byte {error.start}"
    return error.strerror or "cannot be read" if isinstance(error, OSError) else str(error)


def _read(path: Path, problems: list[str]) -> str:
    try:
        return _text(str(path))
    except (OSError, ValueError) as error:
        problems.append(f"{path}: {_reason(error)}")
    return ""


def _load(path: Path, problems: list[str]) -> Program:
    """A program with what it includes."""
    try:
        program, wrong = load_program(str(path), _text, os.path.realpath)
    except (OSError, ValueError) as error:
        problems.append(f"{path}: {_reason(error)}")
        return Program()
    problems += _shown(wrong)
    return program


@dataclass(slots=True)
class AgentSpeakRun:
    """How a run went."""

    cycles: int
    finished: bool
    """True when nothing was left to do, or an agent stopped them all."""
    failures: list[dict[str, str]] = field(default_factory=list)
    """Goals that failed and that no plan handled."""

    @property
    def exit_code(self) -> int:
        """0 when it came to its end and nothing failed, else 1."""
        return 0 if self.finished and not self.failures else 1

    def as_json(self) -> dict[str, Any]:
        """The run as one JSON object."""
        return {"cycles": self.cycles, "finished": self.finished, "failures": self.failures}

    @property
    def text(self) -> str:
        """The run in one line."""
        end = "finished" if self.finished else "stopped"
        failed = f", {len(self.failures)} failed" if self.failures else ""
        return f"{end} after {self.cycles} cycles{failed}"


def run_agents(options: AgentSpeakOptions, *, out: TextIO, err: TextIO) -> AgentSpeakRun:
    """Run the agents; what they print goes to `out`, failures and the trace to `err`.

    With `step`, lines of standard input say how far.

    Raises:
        ProgramsError: they cannot be loaded.
    """
    run = AgentSpeakRun(0, finished=False)

    def say(name: str, text: str) -> None:
        print(f"[{clean_line(name)}] {clean(text)}", file=out, flush=True)

    def warn(name: str, text: str) -> None:
        run.failures.append({"agent": name, "failure": text})
        print(f"[{clean_line(name)}] {clean_line(text)}", file=err, flush=True)

    system = System(
        semantics=POLICIES[options.policy],
        seed=options.seed,
        read=lambda path: _text(_beside(path, options.files)),
        listed=lambda folder, pattern: _listed(folder, pattern, options.files),
        say=say,
        warn=warn,
        tracer=_tracer(err) if options.trace else None,
    )
    programs = load_agents(options)
    for finding in dict.fromkeys(
        each for one in programs.values() for each in unknown_actions(one, STANDARD)
    ):
        print(clean_line(str(finding)), file=err)
    shell = Shell(system, out) if options.step else None
    if shell is not None:
        system.tracer = shell.show
    try:
        for name, program in programs.items():
            system.add(name, program)
    except EvaluationError as error:
        raise ProgramsError(str(error)) from None
    if shell is not None:
        shell.talk()
    run.cycles = system.rounds if shell is not None else system.run(options.cycles)
    run.finished = system.stopped or system.idle
    return run


def _tracer(err: TextIO) -> Callable[[TraceEvent], None]:
    def write(record: TraceEvent) -> None:
        details = {each.name: getattr(record, each.name) for each in fields(record)}
        agent, cycle = details.pop("agent"), details.pop("cycle")
        words = clean_line(json.dumps(details, default=str, ensure_ascii=False))
        print(f"{cycle:>6} {agent} {type(record).__name__} {words}", file=err)

    return write


# ------------------------------------------------------------------ instead of running


def check_files(options: argparse.Namespace) -> int:
    """Say what is wrong with programs that are to run together; 2 where something is.

    Raises:
        ProgramsError: they cannot be read.
    """
    programs = load_agents(filled(AgentSpeakOptions, options))
    findings = check(list({id(each): each for each in programs.values()}.values()), STANDARD)
    if flag(options, "json"):
        print(json.dumps({"findings": [each._asdict() for each in findings]}))
    else:
        for finding in findings:
            print(clean_line(str(finding)))
        if not findings and not flag(options, "quiet"):
            print(f"{len(programs)} program{'s' * (len(programs) != 1)}, nothing to say", file=sys.stderr)
    return 2 if any(each.wrong for each in findings) else 0


def format_files(options: argparse.Namespace) -> int:
    """Lay programs out, each written only where that changes it.

    Raises:
        ProgramsError: one cannot be read; those before it are done.
        OSError, ValueError: a file cannot be read or written, or not be laid out.
    """
    for file in options.files:
        text = _text(file)
        try:
            laid_out = formatted(text, file)
        except ProgramError as error:
            raise ProgramsError("\n".join(_shown(error.problems))) from None
        if laid_out != text:
            Path(file).write_text(laid_out, "utf-8")
            print(clean_line(file))
    return 0


def new_files(options: argparse.Namespace) -> int:
    """Write a program to begin with; raises OSError where a file is there already, or cannot be written."""
    for file in options.files:
        with Path(file).open("x", encoding="utf-8") as opened:
            opened.write(TEMPLATE.read_text("utf-8"))
        print(f"{clean_line(file)}: try it with pilothouse asl {shlex.quote(file)}, or --step before it")
    return 0


# ------------------------------------------------------------------ the subcommand


def run(options: argparse.Namespace) -> int:
    """Run the programs until they rest, or do what was asked for instead."""
    try:
        for name, work in (("check", check_files), ("format", format_files), ("new", new_files)):
            if getattr(options, name):
                return work(options) if options.files else print_error(f"say which files: --{name} robot.asl")
        run = run_agents(filled(AgentSpeakOptions, options), out=sys.stdout, err=sys.stderr)
    except ProgramsError as error:
        for line in str(error).splitlines():
            sys.stderr.write(f"{line}\n") if line.startswith(INDENT) else print_error(line)
        return 2
    except (OSError, ValueError) as error:
        return print_error(f"{getattr(error, 'filename', '') or 'the program'}: {_reason(error)}")
    if flag(options, "json"):
        print(json.dumps(run.as_json()), flush=True)
    elif not flag(options, "quiet"):
        sys.stderr.write(f"{run.text}\n")
    return run.exit_code
