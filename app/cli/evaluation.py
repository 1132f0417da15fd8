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
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from app.cli.memory import MemoryOptions, remember
from app.cli.sessions import query_sessions
from app.commands.command_runner import log_fault, run_command_in
from app.commands.headless import DEFAULT_AGENT, EXIT_CODES, Run, RunOptions, Status, open_engine
from engine.agent.shared import EngineConfig
from engine.api.engine import Engine
from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.actions import ResultStatus
from engine.core.folds.actions import BACKGROUND
from engine.core.journal import Event, canonical
from engine.core.ports import Ports
from engine.core.store.sqlite import SqliteJournal
from engine.core.text import clean_line, first_problem
from engine.core.trust import read_plain
from engine.planning.library.missions import Mission, MissionAgent
from engine.sandbox.files import SandboxFiles
from engine.sandbox.paths import PathError
from engine.value import dataclass, field

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
TASK_S = 900.0
"""How long a task may take where nothing else is said."""


class SuiteError(ValueError):
    """A suite that cannot be used; the message says what is wrong, where, and what to do."""


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Checks(_Table):
    """What has to hold once a task has ended."""

    ends: Literal["achieved", "not achieved", "any"] = "achieved"
    """How the goal ends, or the line: `achieved` is exit code 0."""
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
    before: tuple[str, ...] = Field(default=(), strict=False)
    """Lines that are carried out first."""
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
        suite = _samples(path, text) if path.suffix == ".jsonl" else Suite.model_validate(tomllib.loads(text))
    except FileNotFoundError:
        known = ", ".join(suites())
        raise SuiteError(f"there is no suite and no file '{name}'; suites: {known}") from None
    except ValidationError as error:
        raise SuiteError(f"{path}: {first_problem(error)}: correct the value") from error
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise SuiteError(f"{path}: cannot be read: {error}: correct the file") from error
    ids = [task.id for task in suite.tasks]
    if twice := next((each for each in ids if ids.count(each) > 1), ""):
        raise SuiteError(f"{path}: there are two tasks '{twice}': give one another id")
    return suite


def _samples(path: Path, text: str) -> Suite:
    """Questions with their answers, one JSON object a line, as a suite of one level."""
    tasks = []
    for number, line in enumerate(text.splitlines(), 1):
        try:
            sample = json.loads(line) if line.strip() else None
        except ValueError as error:
            raise SuiteError(f"{path}: line {number} is no JSON: {error}: correct the line") from None
        if sample is None:
            continue
        asked, target = (
            (sample.get(key) for key in ("input", "target")) if isinstance(sample, dict) else (0, 0)
        )
        if not isinstance(asked, str) or not isinstance(target, str):
            raise SuiteError(f"{path}: line {number} needs the texts 'input' and 'target'")
        goal = f"write the answer to this, and nothing else, to {ANSWER}: {asked}"
        checks = Checks(ends="any", files={ANSWER: target})
        tasks.append(Task(id=f"sample-{number}", level=1, kind="question", goal=goal, checks=checks))
    return Suite(
        name=re.sub("[^a-z0-9]+", "-", path.stem.lower()).strip("-") or "samples", tasks=tuple(tasks)
    )


# ------------------------------------------------------------------ running


COUNTED = tuple(
    each.kind for each in (ev.PlanAsked, ev.DecisionAsked, ev.GenerationAsked, ev.ModelCalled, ev.PlanAdopted)
)


@dataclass(slots=True)
class Counts:
    """What models took in a run, and how often they had to put an answer right."""

    calls: int = 0
    tokens: int = 0
    usd: float = 0.0
    unpriced: int = 0
    repairs: int = 0
    """Calls behind the first for one question."""
    plans: int = 0
    """Plans that a model was asked for."""
    first_valid: int = 0
    """Of these the ones whose first answer was adopted."""
    _asked: dict[str, list[int]] = field(default_factory=dict)
    """By agent what its open question took: calls, and 1 where a plan is asked for."""

    def take(self, event: Event) -> None:
        """Count an event."""
        match ev.payload_of(event):
            case ev.PlanAsked():
                self._asked[event.stream] = [0, 1]
            case ev.DecisionAsked() | ev.GenerationAsked():
                self._asked[event.stream] = [0, 0]
            case ev.ModelCalled() as call:
                self.calls, self.tokens = self.calls + 1, self.tokens + call.tokens
                self.usd += call.cost_usd or 0.0
                self.unpriced += call.cost_usd is None
                if not call.purpose.startswith(BACKGROUND):
                    self._answered(self._asked.setdefault(event.stream, [0, 0]))
            case ev.PlanAdopted() if (asked := self._asked.pop(event.stream, None)) is not None:
                self.first_valid += asked == [1, 1]
            case _:
                pass

    def _answered(self, asked: list[int]) -> None:
        self.repairs += asked[0] > 0
        self.plans += asked == [0, 1]
        asked[0] += 1

    def as_dict(self) -> dict[str, Any]:
        """As results have it."""
        names = ("calls", "tokens", "unpriced", "repairs", "plans", "first_valid")
        return {name: getattr(self, name) for name in names} | {"usd": round(self.usd, 6)}


async def run_task(
    task: Task, workspace: Path, config: EngineConfig, *, thinker: str, timeout_s: float = TASK_S
) -> dict[str, Any]:
    """Run a task in a new workspace, grade it, and replay it; a fault of the program is a result, too.

    Args:
        task: what is to be done.
        workspace: a directory that does not exist yet.
        config: how it is opened.
        thinker: who plans.
        timeout_s: seconds after which it is cut off.
    """
    clock = Ports().clock
    began = clock.monotonic()
    try:
        await asyncio.to_thread(_furnish, workspace / "sandbox", task)
        async with open_engine(workspace, config) as engine:
            status, wrong, answer = await _played(engine, task, workspace, thinker, timeout_s)
            took = clock.monotonic() - began
            wrong = wrong or await _graded(engine, task, status, answer)
        counts, replays = await _looked_back(workspace)
    except Exception as error:  # noqa: BLE001 - a fault of the program is what an evaluation has to count
        status, took, wrong = Status.FAULT.value, clock.monotonic() - began, log_fault(workspace, error)
        counts, replays = Counts(), False
    return {
        "task": task.id,
        "level": task.level,
        "kind": task.kind,
        "digest": task.digest,
        "passed": not wrong,
        "status": status,
        "why": clean_line(wrong, limit=400),
        "crashed": status == Status.FAULT.value,
        "replays": replays,
        "seconds": round(took, 3),
        **counts.as_dict(),
    }


def _furnish(sandbox: Path, task: Task) -> None:
    sandbox.mkdir(parents=True)
    for path, content in task.files.items():
        place = sandbox / PurePosixPath(path)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(content, encoding="utf-8")


async def _played(
    engine: Engine, task: Task, workspace: Path, thinker: str, timeout_s: float
) -> tuple[str, str, str]:
    """Let the task happen; how it ended, what was wrong before it began, and what was answered."""
    agent = task.agent.id if task.agent is not None else DEFAULT_AGENT
    for line in task.before:
        code, _, text = await run_command_in(engine, line, quiet=True, operator="evaluation")
        if code:
            return Status.FAILED.value, f"'{line}' was refused: {text}", text
    for memory in task.memories:
        await remember(engine.submit, MemoryOptions(text=memory))
    if task.line:
        try:
            async with asyncio.timeout(timeout_s):
                code, _, text = await run_command_in(engine, task.line, quiet=True, operator="evaluation")
        except TimeoutError:
            return Status.TIMED_OUT.value, "", f"not done after {timeout_s:g} s"
        return (
            next((each.value for each in EXIT_CODES if EXIT_CODES[each] == code), Status.FAILED.value),
            "",
            text,
        )
    mission = None
    if task.agent is not None:
        about: dict[str, Any] = {"name": task.id, "title": task.id, "summary": task.id, "goal": task.goal}
        mission = Mission(**about, network=False, expect="GOAL_ACHIEVED", agent=task.agent)
    chosen = RunOptions(
        workspace,
        task.goal,
        mission,
        agent,
        task.max_loops,
        ask=False,
        thinker=thinker,
        timeout_s=timeout_s,
        quiet=True,
    )
    done = await Run(engine, chosen, io.StringIO(), io.StringIO()).run()
    return done["status"], "", str(done["message"])


async def _graded(engine: Engine, task: Task, status: str, answer: str) -> str:
    """What does not hold of a task that has ended; empty where all does."""
    checks, achieved = task.checks, status == Status.GOAL_ACHIEVED.value
    if checks.ends != "any" and achieved is not (checks.ends == "achieved"):
        return f"{status}: {answer}"
    if checks.says and re.search(checks.says, answer, re.IGNORECASE | re.DOTALL) is None:
        return f"the answer says nothing like {checks.says}: {answer}"
    if wrong := await asyncio.to_thread(_differs, engine.root, checks):
        return wrong
    return await _program(engine, checks.python) if checks.python else ""


def _differs(root: Path, checks: Checks) -> str:
    files = SandboxFiles(root)
    try:
        for path, expected in checks.files.items():
            try:
                found = files.read_bytes(path, LARGEST).decode("utf-8", "replace")
            except (PathError, OSError) as error:
                return f"{path}: {error}"
            if found.strip() != expected.strip():
                return f"{path} has {found.strip()[:80]!r} and not {expected.strip()[:80]!r}"
        there = [path for path in checks.absent if os.path.lexists(root / path)]
        return f"{there[0]} is there" if there else ""
    finally:
        files.close()


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
    said = "\n".join(str(ended.result.get(name, "")) for name in ("stdout", "stderr", "message")).strip()
    content = ended.status is ResultStatus.SUCCESS and token in said
    return "" if content else f"graded: {said[-300:] or ended.status.value}"


async def _looked_back(workspace: Path) -> tuple[Counts, bool]:
    """What the journal says of a run, and whether it replays."""
    counts = Counts()
    store = await SqliteJournal.open(workspace, clock=Ports().clock, read_only=True)
    try:
        for event in await store.of_kinds(COUNTED, 0, sys.maxsize):
            counts.take(event)
    finally:
        await store.close()
    code, answer, _ = await query_sessions(workspace, "replay", "")
    return counts, not code and bool(answer["matches"])
