"""Evaluations: suites of graded tasks, each run in a workspace of its own through the engine.

A suite is a TOML file with tables `[[tasks]]`, whose fields are those of `Task`, and the names of its levels.
A file of JSON lines with `input` and `target`, as Inspect AI reads it, will do as well.
"""

from __future__ import annotations

import asyncio
import hashlib
import io
import json
import os
import re
import secrets
import sys
import tomllib
from collections.abc import Iterable, Mapping
from contextlib import closing, suppress
from pathlib import Path, PurePosixPath
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from app.cli.memory import MemoryOptions, remember
from app.cli.sessions import query_sessions
from app.commands.command_runner import log_fault, run_command_in
from app.commands.headless import DEFAULT_AGENT, EXIT_CODES, Run, RunOptions, Status, open_engine
from engine.agent.shared import EngineConfig
from engine.api.closed_workspace import recorded
from engine.api.engine import Engine
from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.actions import ResultStatus
from engine.core.folds.actions import BACKGROUND
from engine.core.journal import Event, canonical
from engine.core.ports import Ports
from engine.core.store.places import read_plain
from engine.core.text import clean_line, first_problem
from engine.planning.library.missions import Mission, MissionAgent
from engine.sandbox.files import SandboxFiles
from engine.sandbox.paths import PathError

SHIPPED = Path(__file__).with_name("suites")
LARGEST = 20_000_000
"""Bytes of a suite's file, and of a file that is graded."""
MOST = 10_000
"""Tasks of a suite."""
GRADER = "grader"
"""The agent in whose name programs grade, in the jail."""
ANSWER = "answer.txt"
"""Where the answer to a question of a file of JSON lines is expected."""
GRADING_S = 120
"""How long a grading program may take."""


class SuiteError(ValueError):
    """A suite that cannot be used; the message says what is wrong, where, and what to do."""


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Checks(_Table):
    """What has to hold once a task has ended."""

    achieved: bool = True
    """Whether the goal has to be achieved, or the line to be done."""
    files: dict[str, str] = Field(default_factory=dict)
    """Contents by path, blanks at their ends aside."""
    absent: tuple[str, ...] = Field(default=(), strict=False)
    """Paths at which nothing is."""
    python: str = ""
    """A program that ends in good order where all is well; it runs in the sandbox."""
    says: str = ""
    """A pattern that is found in the line's answer."""

    @field_validator("says")
    @classmethod
    def _pattern(cls, value: str) -> str:
        try:
            re.compile(value)
        except re.error as error:
            raise ValueError(f"'{value[:60]}' is no pattern: {error}") from None
        return value


class Task(_Table):
    """One task, with what grades it."""

    id: str = Field(pattern=r"^[a-z0-9][a-z0-9-]{0,59}$")
    level: int = Field(ge=1, le=9)
    kind: str = Field(min_length=1, max_length=30)
    goal: str = Field(default="", max_length=8_000)
    line: str = Field(default="", max_length=8_000)
    """A line of the command bar instead of a goal."""
    memories: tuple[str, ...] = Field(default=(), strict=False)
    """What the operator had remembered before."""
    files: dict[str, str] = Field(default_factory=dict)
    """What is in the sandbox before."""
    agent: MissionAgent | None = None
    """Who does it, where not any agent will do."""
    max_loops: int = Field(default=100, ge=1)
    checks: Checks
    solution: tuple[dict[str, Any], ...] = Field(default=(), strict=False)
    """What a right model says, by which the suite itself is tested."""

    @field_validator("files")
    @classmethod
    def _inside(cls, value: dict[str, str]) -> dict[str, str]:
        paths = {PurePosixPath(path) for path in Mission._inside(value)}
        if both := next((each for path in paths for each in path.parents if each in paths), None):
            raise ValueError(f"'{both}' is a file and a directory")
        return value

    @model_validator(mode="after")
    def _whole(self) -> Task:
        if bool(self.goal.strip()) == bool(self.line.strip()):
            raise ValueError("a task has either a goal or a line")
        return self

    @property
    def digest(self) -> str:
        """What the task is, without its solution, for comparing results of one version with another's."""
        told = self.model_dump(mode="json", exclude={"solution"})
        return hashlib.sha256(canonical(told).encode()).hexdigest()[:16]


class Suite(_Table):
    """Tasks by level."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9-]{0,59}$")
    levels: tuple[str, ...] = Field(default=(), strict=False)
    """What the levels are called, from 1."""
    tasks: tuple[Task, ...] = Field(min_length=1, max_length=MOST, strict=False)


def suites() -> list[str]:
    """The names of the shipped suites."""
    return sorted(path.stem for path in SHIPPED.glob("*.toml"))


def load_suite(name: str) -> Suite:
    """A shipped suite by its name, or that of a file; blocking.

    Raises:
        SuiteError: there is none, or it is not valid.
    """
    path = SHIPPED / f"{name}.toml" if name in suites() else Path(name)
    try:
        text = read_plain(path, LARGEST).decode("utf-8")
        given = _samples(path, text) if path.suffix == ".jsonl" else tomllib.loads(text)
        suite = Suite.model_validate(given)
    except FileNotFoundError:
        known = ", ".join(suites())
        raise SuiteError(f"there is no suite and no file '{name}'; suites: {known}") from None
    except ValidationError as error:
        raise SuiteError(f"{path}: {first_problem(error)}: correct the value") from error
    except (KeyError, TypeError) as error:
        raise SuiteError(f"{path}: each line is an object with 'input' and 'target': {error}") from error
    except (OSError, ValueError, RecursionError) as error:
        raise SuiteError(f"{path}: cannot be read: {error}: correct the file") from error
    ids = [task.id for task in suite.tasks]
    if twice := next((each for each in ids if ids.count(each) > 1), ""):
        raise SuiteError(f"{path}: there are two tasks '{twice}': give one another id")
    return suite


def _samples(path: Path, text: str) -> dict[str, Any]:
    """Questions with their answers, one JSON object a line, as a suite of one level."""
    lines = [line for line in text.splitlines() if line.strip()]
    tasks = [
        {
            "id": f"sample-{number}",
            "level": 1,
            "kind": "question",
            "goal": f"write the answer to this, and nothing else, to {ANSWER}: {sample['input']}",
            "checks": {"achieved": False, "files": {ANSWER: sample["target"]}},
        }
        for number, sample in enumerate(json.loads(f"[{','.join(lines)}]".replace("},{", "},\n{")), 1)
    ]
    return {"name": re.sub("[^a-z0-9]+", "-", path.stem.lower()).strip("-") or "samples", "tasks": tasks}


# ------------------------------------------------------------------ running


COUNTED = tuple(
    each.kind for each in (ev.PlanAsked, ev.DecisionAsked, ev.GenerationAsked, ev.ModelCalled, ev.PlanAdopted)
)


FIGURES = ("calls", "tokens", "usd", "unpriced", "repairs", "plans", "first_valid")


def counted(events: Iterable[Event]) -> dict[str, float]:
    """What models took in a run, and how often they had to put an answer right.

    `repairs` are calls behind the first for one question, `plans` those that a model was asked for, and
    `first_valid` the ones of these whose first answer was adopted.
    """
    of: dict[str, float] = dict.fromkeys(FIGURES, 0)
    asked: dict[str, list[int]] = {}  # by agent its question: calls, and 1 where it is for a plan
    for event in events:
        match ev.payload_of(event):
            case ev.PlanAsked():
                asked[event.stream] = [0, 1]
            case ev.DecisionAsked() | ev.GenerationAsked():
                asked[event.stream] = [0, 0]
            case ev.ModelCalled() as call:
                of["calls"] += 1
                of["tokens"] += call.tokens
                of["usd"] += call.cost_usd or 0.0
                of["unpriced"] += call.cost_usd is None
                if not call.purpose.startswith(BACKGROUND):
                    question = asked.setdefault(event.stream, [0, 0])
                    of["repairs"] += question[0] > 0
                    of["plans"] += question == [0, 1]
                    question[0] += 1
            case ev.PlanAdopted():
                of["first_valid"] += asked.pop(event.stream, None) == [1, 1]
    return of


async def run_task(
    task: Task, workspace: Path, config: EngineConfig, how: Mapping[str, Any], *, timeout_s: float
) -> dict[str, Any]:
    """Run a task in a new workspace, grade it, and replay it; a fault of the program is a result, too.

    Args:
        task: what is to be done.
        workspace: a directory that does not exist yet.
        config: how it is opened.
        how: how the task's agent is made, where the task does not say it.
        timeout_s: seconds after which it is cut off.
    """
    clock = Ports().clock
    began = clock.monotonic()
    try:
        await asyncio.to_thread(_furnish, workspace / "sandbox", task)
        async with open_engine(workspace, config) as engine:
            status, answer = await _played(engine, task, workspace, how, timeout_s)
            took = clock.monotonic() - began
            wrong = await _graded(engine, task, status, answer)
        figures, replays = await _looked_back(workspace)
    except Exception as error:  # noqa: BLE001 - a fault of the program is what an evaluation has to count
        status, took, wrong = Status.FAULT.value, clock.monotonic() - began, log_fault(workspace, error)
        figures, replays = counted(()), False
    row = {"task": task.id, "level": task.level, "kind": task.kind, "digest": task.digest, "status": status}
    row |= {"passed": not wrong, "why": clean_line(wrong, limit=400), "replays": replays}
    return {**row, "figures": {**figures, "seconds": round(took, 3)}}


def _furnish(sandbox: Path, task: Task) -> None:
    sandbox.mkdir(parents=True)
    for path, content in task.files.items():
        place = sandbox / PurePosixPath(path)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(content, encoding="utf-8")


async def _played(
    engine: Engine, task: Task, workspace: Path, made: Mapping[str, Any], timeout_s: float
) -> tuple[str, str]:
    """Let the task happen; how it ended, and what was answered."""
    for memory in task.memories:
        await remember(engine.submit, MemoryOptions(text=memory))
    if task.line:
        try:
            async with asyncio.timeout(timeout_s):
                code, _, text = await run_command_in(engine, task.line, quiet=True, operator="evaluation")
        except TimeoutError:
            return Status.TIMED_OUT.value, f"not done after {timeout_s:g} s"
        return next((each.value for each in EXIT_CODES if EXIT_CODES[each] == code), "FAILED"), text
    mission, agent = None, DEFAULT_AGENT
    if task.agent is not None:
        about: dict[str, Any] = dict.fromkeys(("name", "title", "summary"), task.id)
        about |= {"goal": task.goal, "network": False, "expect": "GOAL_ACHIEVED"}
        mission, agent = Mission(**about, agent=task.agent), task.agent.id
    # The workspace is made for the task, and nobody is there to be asked whether a file may be written anew.
    how: dict[str, Any] = {**made, "timeout_s": timeout_s, "ask": False, "quiet": True}
    how["approve"] = ("write",)
    options = RunOptions(workspace, task.goal, mission, agent, task.max_loops, **how)
    done = await Run(engine, options, io.StringIO(), io.StringIO()).run()
    return done["status"], str(done["message"])


async def _graded(engine: Engine, task: Task, status: str, answer: str) -> str:
    """What does not hold of a task that has ended; empty where all does."""
    checks = task.checks
    if checks.achieved and status != Status.GOAL_ACHIEVED:
        return f"{status}: {answer}"
    if checks.says and re.search(checks.says, answer, re.IGNORECASE | re.DOTALL) is None:
        return f"the answer says nothing like {checks.says}: {answer}"
    if wrong := await asyncio.to_thread(_differs, engine.root, checks):
        return wrong
    return await _program(engine, checks.python) if checks.python else ""


def _differs(root: Path, checks: Checks) -> str:
    with closing(SandboxFiles(root)) as files:
        for path, expected in checks.files.items():
            try:
                found = files.read_bytes(path, LARGEST).decode("utf-8", "replace")
            except (PathError, OSError) as error:
                return f"{path}: {error}"
            if found.strip() != expected.strip():
                return f"{path} has {found.strip()[:80]!r} and not {expected.strip()[:80]!r}"
    there = [path for path in checks.absent if os.path.lexists(root / path)]
    return f"{there[0]} is there" if there else ""


async def _program(engine: Engine, code: str) -> str:
    """Run a grading program in the jail; why it is not content, or empty.

    What it prints at its end nobody else knows, so a module of the agent's that ends it early gains nothing.
    """
    token = secrets.token_hex(8)
    whole = f"import sys; sys.path.insert(0, '.')\n{code}\nprint({token!r})"
    if GRADER not in engine.agents:
        await engine.submit(cmd.CreateAgent(agent=GRADER, config={"thinker": "procedural"}), operator=GRADER)
    call = cmd.CallTool(agent=GRADER, command="run", args={"command": ["python", "-I", "-B", "-c", whole]})
    since = await engine.head()
    receipt = await engine.submit(call, operator=GRADER)
    if not receipt.ok:
        return f"the grading program was refused: {receipt.message}"
    ended: ev.Payload | None = None
    with suppress(TimeoutError):
        async with asyncio.timeout(GRADING_S):
            async for event in engine.events(since, stream=GRADER):
                if isinstance(ended := ev.payload_of(event), ev.ActionFinished):
                    break
    if not isinstance(ended, ev.ActionFinished):
        return f"the grading program did not end within {GRADING_S} s"
    if ended.status is ResultStatus.SUCCESS and token in str(ended.result.get("stdout", "")):
        return ""
    return f"graded: {str(ended.result.get('stderr') or ended.result.get('message'))[-300:]}"


async def _looked_back(workspace: Path) -> tuple[dict[str, float], bool]:
    """What the journal says of a run, and whether it replays."""
    async with recorded(workspace) as store:
        figures = counted(await store.of_kinds(COUNTED, 0, sys.maxsize))
    code, answer, _ = await query_sessions(workspace, "replay", "")
    return figures, not code and bool(answer["matches"])
