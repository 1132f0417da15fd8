"""Arguments that are paths, against what is in the workspace.

Only a path that has to be there and is not can be wrong for certain, and only where it can mean one thing.
What it is changed into is always something that was found beneath the root.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from engine.domain.action import ErrorCode
from engine.domain.parameters import Correction, Entry, Survey, shown
from engine.domain.ports import CommandSpec, Parameter
from engine.parameters.components import bearers, is_name, name_handles
from engine.parameters.likeness import differences, handles, near, place
from engine.tools.arguments import Problem

_PLACEHOLDER = re.compile(r"(?:\./|/)?path/to/(?=.)", re.I)
READINGS = 5
"""Readings of one path that are named."""


@dataclass(frozen=True, slots=True)
class PathQuestion:
    """Whether what an argument names is there."""

    argument: str
    path: str
    exists: str
    """See `Parameter.exists`; empty for a placeholder, which is wrong unless such a directory is there."""


@dataclass(frozen=True, slots=True)
class Enquiry:
    """What is to be looked up in the workspace for one call."""

    paths: tuple[PathQuestion, ...] = ()
    names: tuple[str, ...] = ()
    """Components that the goal names."""
    for_missing: bool = False
    """True when a missing argument may be one of these components."""

    def __bool__(self) -> bool:
        """Whether there is anything to look up."""
        return bool(self.paths) or self.for_missing

    def handles(self) -> frozenset[str]:
        """The folded names of everything that may be meant."""
        found: set[str] = set()
        for question in self.paths:
            found |= handles(question.path)
            found |= name_handles(question.path)
        for name in self.names:
            found |= name_handles(name)
        return frozenset(found)


def path_parameters(spec: CommandSpec) -> tuple[Parameter, ...]:
    """The arguments of a command that are paths: the seed's path-parameter map, as the command tells it."""
    return tuple(parameter for parameter in spec.parameters if parameter.kind == "path")


def placeholder(path: str) -> str:
    """What stands behind `path/to/` in a path; empty when the path is no such placeholder."""
    found = _PLACEHOLDER.match(path.replace("\\", "/"))
    return path[found.end() :] if found else ""


def questions(spec: CommandSpec, args: Mapping[str, Any], goal: str) -> tuple[PathQuestion, ...]:
    """Which arguments have to be compared with the workspace."""
    found = []
    for parameter in path_parameters(spec):
        value = args.get(parameter.name)
        if not isinstance(value, str) or not value:
            continue
        # Who says `path/to/` in the goal means it.
        stands_in = bool(placeholder(value)) and value not in goal
        if parameter.exists or stands_in:
            found.append(PathQuestion(parameter.name, value, parameter.exists))
    return tuple(found)


def fitting(entries: Iterable[Entry], exists: str) -> tuple[Entry, ...]:
    """The entries of a kind: `file`, `directory` or `any`."""
    return tuple(entry for entry in entries if exists == "any" or entry.directory == (exists == "directory"))


def put_right(command: str, question: PathQuestion, cwd: str, survey: Survey) -> Correction | Problem | str:
    """What a path that is not there can mean: one thing, several, or in words why nothing certain."""
    entries = fitting(survey.entries, question.exists) if question.exists else ()
    readings, rule, why = _readings(question, cwd, entries)
    if readings and not survey.whole:
        return (
            f"{shown(question.path)} is not there; the workspace is too large to be sure what else it means"
        )
    if len(readings) == 1:
        after = from_directory(cwd, readings[0])
        return Correction(
            question.argument, question.path, after, rule, why or _why_near(question, cwd, after)
        )
    if readings:
        text = f"{command}: {question.argument}: {shown(question.path)} is not there; it can mean"
        return Problem(ErrorCode.NOT_FOUND, f"{text} {one_of(cwd, readings)}: say which.", question.argument)
    if placeholder(question.path):
        text = (
            f"{command}: {question.argument}: {shown(question.path)} stands in for a path: say which it is."
        )
        return Problem(ErrorCode.BAD_ARGUMENTS, text, question.argument)
    return f"{shown(question.path)} is not there, and nothing near it"


def _readings(
    question: PathQuestion, cwd: str, entries: tuple[Entry, ...]
) -> tuple[tuple[Entry, ...], str, str]:
    """What a path can mean, by which rule, and why; the first rule that finds anything decides."""
    wanted = place(cwd, question.path)
    if wanted is not None and (hits := tuple(entry for entry in entries if near(wanted, entry.path))):
        return hits, "near path", ""
    if is_name(question.path) and (hits := bearers(question.path, entries)):
        return hits, "component", "a component's name is no path, and only this bears it"
    name = placeholder(question.path)
    if name and "/" not in name:
        named = tuple(entry for entry in entries if near(name, entry.path.rpartition("/")[2]))
        hits = named or (bearers(name, entries) if is_name(name) else ())
        return (
            hits,
            "placeholder",
            f"{shown(question.path)} stands in for a path, and only this bears the name",
        )
    return (), "", ""


def _why_near(question: PathQuestion, cwd: str, after: str) -> str:
    wanted, there = place(cwd, question.path) or "", place(cwd, after) or ""
    if "\\" in question.path:
        wanted = wanted.replace("/", "\\")
    return f"it is not there, and only this differs in nothing but {differences(wanted, there)}"


def from_directory(cwd: str, entry: Entry) -> str:
    """An entry as it is named from the working directory."""
    return posixpath.relpath(entry.path, cwd)


def one_of(cwd: str, readings: tuple[Entry, ...]) -> str:
    """Several entries in words."""
    named = [shown(from_directory(cwd, entry)) for entry in readings[:READINGS]]
    more = f" or {len(readings) - READINGS} more" if len(readings) > READINGS else ""
    return " or ".join(named) + more
