"""What of a plan cannot be right, by the files that are there now: nothing is executed."""

from __future__ import annotations

import posixpath
import re
import shlex
import stat
from collections.abc import Callable, Iterator, Sequence
from difflib import get_close_matches
from itertools import islice
from typing import Any

from engine.core.journal import canonical
from engine.core.plan import Op, PlanStep
from engine.models.lenient import Notes
from engine.planning.thinkers.offered import SIMPLE_CODER
from engine.sandbox.file_search import walk
from engine.sandbox.files import SandboxFiles
from engine.sandbox.paths import PathError, name_text
from engine.tools.command_line import CommandLineError, split_command
from engine.tools.registry import ToolRegistry
from engine.value import dataclass

KNOWN = 200
"""Names of files that are compared with those in a plan."""
_FILE_NAME = re.compile(r"(?<![\w/.-])[\w-]+(?:/[\w-]+)*\.[a-z]{2,5}(?![\w/-]|\.\w)")
SHOWN = 8
"""Names that a fault lists."""


@dataclass(frozen=True, slots=True)
class Files:
    """What is in the sandbox when a plan is checked."""

    names: tuple[str, ...]
    """Paths from the root, the highest first; not all where there are many."""
    is_directory: Callable[[str], bool | None]
    """Whether a path is a directory's; None where nothing is there."""


def files_now(files: SandboxFiles) -> Files | None:
    """What is in a sandbox; None where its root cannot be read; blocking."""

    def is_directory(path: str) -> bool | None:
        try:
            entry = files.entry(path) if path != "." else None
        except PathError:
            return False  # the tool itself says what is wrong with it
        return path == "." or None if entry is None else stat.S_ISDIR(entry.st_mode)

    try:
        files.check_root()
        return Files(tuple(path for path, _ in islice(walk(files), KNOWN)), is_directory)
    except PathError:
        return None


_MAKES = {"write": "path", "append": "path", "mkdir": "path", "copy": "target", "move": "target"} | {
    "create_venv": "venv_name"
}
_TAKES = {"rm": "path", "move": "source"}


def plan_faults(steps: Sequence[PlanStep], registry: ToolRegistry, cwd: str, files: Files) -> Iterator[str]:
    """A sentence for each path that a step needs and that neither is there nor is made before.

    From a program on nothing is certain, as it may make any file. Names like one that is there are put right
    when the step runs.
    """
    made: dict[str, bool] = {}
    """What the steps before make of each path; False where they take it away."""
    for number, step in enumerate(steps, 1):
        if step.op is not Op.ACT or step.tool != SIMPLE_CODER:
            continue
        for path in _needed(step, registry):
            at = _at(cwd, path)
            there = [name for name in (*files.names, *made) if made.get(name, True)]
            known = made.get(at, files.is_directory(at) is not None)
            if not known and not get_close_matches(at, there, 1, 0.8):
                listed = ", ".join(map(name_text, there[:SHOWN])) or "nothing"
                yield f"step {number}: {step.command}: there is no {path!r} at that point; there is {listed}"
        target = step.args.get("target") if step.command == "move" else None
        at = _at(cwd, target) if isinstance(target, str) else ""
        if made.get(at, at in files.names and files.is_directory(at) is False):
            yield f"step {number}: move: there is {target!r} already: give it another name first"
        if step.command in ("run", "start"):
            try:
                split_command(step.args.get("command", ""))
            except CommandLineError as error:
                yield f"step {number}: {step.command}: {error}"
            return
        if step.command == "cd":
            cwd = _at(cwd, str(step.args.get("path", ".")))
        _apply(step, cwd, made)


def unmentioned(goal: str, plan: Any) -> Iterator[str]:
    """A sentence for each file that a goal names and a plan does not mention, nor say to be uncovered."""
    said = canonical(plan)
    for name in dict.fromkeys(_FILE_NAME.findall(goal)):
        if name not in said and posixpath.basename(name) not in said:
            yield f"no step mentions {name}, which the goal names: a program that writes it has to open it"


def without_repeats(steps: Sequence[PlanStep], cwd: str, files: Files, notes: Notes) -> list[PlanStep]:
    """The steps without those that change nothing: the one before again, or a directory that is there."""
    kept: list[PlanStep] = []
    for number, step in enumerate(steps, 1):
        same = bool(kept) and kept[-1].op is Op.ACT and _call(kept[-1]) == _call(step)
        made = _call(step)[:2] == (SIMPLE_CODER, "mkdir") and files.is_directory(
            _at(cwd, str(step.args.get("path", "")))
        )
        needed = any(step.id in other.depends_on for other in steps)
        if (same or (made and len(steps) > 1)) and step.op is Op.ACT and not needed:
            notes.append(f"step {number}: it has no effect and was left out")
            continue
        if step.command == "cd":
            cwd = _at(cwd, str(step.args.get("path", ".")))
        kept.append(step)
    return kept


def _call(step: PlanStep) -> tuple[object, ...]:
    return step.tool, step.command, step.args


def _at(cwd: str, path: str) -> str:
    return posixpath.normpath(posixpath.join(cwd, path))


def _needed(step: PlanStep, registry: ToolRegistry) -> Iterator[str]:
    """Paths that must be there for a step to be of any use."""
    spec = registry.spec(step.tool, step.command)
    for parameter in spec.parameters if spec is not None else ():
        value = step.args.get(parameter.name)
        if isinstance(value, str) and value and (parameter.exists or step.command == "activate_venv"):
            yield value
    command = step.args.get("command")
    if step.command == "run" and isinstance(command, str):
        try:
            words = shlex.split(command)
        except ValueError:
            return
        if len(words) > 1 and words[0] in ("python", "python3") and words[1].endswith(".py"):
            yield words[1]


def _apply(step: PlanStep, cwd: str, made: dict[str, bool]) -> None:
    """Note what will be there after a step, and what will not."""
    path = step.args.get(_MAKES.get(step.command, ""))
    if isinstance(path, str) and path:
        at = _at(cwd, path)
        while at and at not in (".", "/"):
            made[at] = True
            at = posixpath.dirname(at)
    taken = step.args.get(_TAKES.get(step.command, ""))
    if isinstance(taken, str) and taken:
        made[_at(cwd, taken)] = False
