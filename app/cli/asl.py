"""AgentSpeak(L) programs run from the command line, several agents together."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TextIO

from app.cli.mas2j import read_project
from app.cli.options import filled, flag, positive, print_error
from engine.bdi.errors import EvaluationError, ProgramError
from engine.bdi.parser import load_program
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

PROJECT = ".mas2j"
"""Ending of Jason's project files."""

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


class ProgramsError(ValueError):
    """Programs that cannot be run; the message has a line for each problem."""


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
        problems += map(str, error.problems)


def _text(path: str) -> str:
    return read_plain(Path(path), LARGEST).decode("utf-8")


def _beside(path: str, files: Sequence[str]) -> str:
    """The path of a program for `.create_agent`: as it is, or in the folder of one of the files."""
    places = (str(Path(file).parent / path) for file in files)
    return path if Path(path).is_file() else next(filter(os.path.isfile, places), path)


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
    problems += map(str, wrong)
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
        say=say,
        warn=warn,
        tracer=_tracer(err) if options.trace else None,
    )
    try:
        for name, program in load_agents(options).items():
            system.add(name, program)
    except EvaluationError as error:
        raise ProgramsError(str(error)) from None
    run.cycles = system.run(options.cycles)
    run.finished = system.stopped or system.idle
    return run


def _tracer(err: TextIO) -> Callable[[TraceEvent], None]:
    def write(record: TraceEvent) -> None:
        details = {each.name: getattr(record, each.name) for each in fields(record)}
        agent, cycle = details.pop("agent"), details.pop("cycle")
        words = clean_line(json.dumps(details, default=str, ensure_ascii=False))
        print(f"{cycle:>6} {agent} {type(record).__name__} {words}", file=err)

    return write


# ------------------------------------------------------------------ the subcommand


def add_arguments(asl: argparse.ArgumentParser) -> None:
    """Declare what it takes."""
    asl.add_argument("files", nargs="*", metavar="FILE")
    asl.add_argument("--agents", nargs="+", default=[], metavar="NAME=FILE")
    asl.add_argument("--cycles", type=positive, metavar="N")
    asl.add_argument(
        "--event-policy",
        dest="policy",
        choices=("skip_irrelevant", "one_per_cycle", "compat"),
        default="skip_irrelevant",
    )
    asl.add_argument("--seed", type=int, default=0, metavar="N")
    asl.add_argument("--trace", action="store_true")


def run(options: argparse.Namespace) -> int:
    """Run the programs until they rest."""
    try:
        run = run_agents(filled(AgentSpeakOptions, options), out=sys.stdout, err=sys.stderr)
    except ProgramsError as error:
        for line in str(error).splitlines():
            print_error(line)
        return 2
    if flag(options, "json"):
        print(json.dumps(run.as_json()), flush=True)
    elif not flag(options, "quiet"):
        sys.stderr.write(f"{run.text}\n")
    return run.exit_code
