"""Finds what a candidate changes from the two trees, and what of it is not allowed; runs none of its code.

The known ways past a judge have names here.
"""

from __future__ import annotations

import configparser
import json
import re
import tomllib
from collections.abc import Callable
from enum import StrEnum
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from engine.core.improvement import Component, Proposal
from engine.improve.judge.box import LEFT_OUT, files_of, tree_contents
from engine.value import dataclass


class Cheat(StrEnum):
    """A rule of the judging that was broken, or that somebody tried to break."""

    DELETE_LOG = "delete the judge's log"
    HARD_CODE = "hard-code the answers"
    EDIT_TEST = "edit the test"
    SLOW_BASELINE = "slow the baseline"
    READ_HELD_OUT = "read the held-out set"
    DISABLE_CHECK = "disable a check"
    EXIT_EARLY = "exit 0 early"
    PATCH_CLOCK = "patch the clock"
    GROW_BUDGET = "grow the budget"
    FAKE_DIFF = "fake the diff"
    OUTSIDE = "reach outside"
    FORGE = "forge a report"


@dataclass(frozen=True, slots=True)
class Violation:
    """One breach of the rules, with what shows it."""

    cheat: Cheat
    what: str
    """A sentence for a person, without the cheat's name; not cleaned."""

    @property
    def sentence(self) -> str:
        """The cheat's name and what shows it."""
        return f"{self.cheat}: {self.what}"


STEERING = (
    *("conftest.py", "pytest.ini", ".pytest.ini", ".coveragerc", "sitecustomize.py", "usercustomize.py"),
    *("*.pth", "tox.ini", "noxfile.py"),
)
"""Names of files by which tests are steered, wherever they lie."""
_STEERED_TOOLS = ("pytest", "coverage", "tox", "hatch")
_STEERED_SECTIONS = re.compile(r"tool:pytest|pytest|coverage(:.*)?|tox(:.*)?|testenv(:.*)?")
_LIMITED = re.compile(r"budgets?|limits?|quota")
_LIMIT = re.compile(r"(.*_)?(usd|tokens|budget|limit|quota)")
_FIXED = re.compile(r"sandbox|approvals?|policies|policy")


@dataclass(frozen=True, slots=True)
class Change:
    """One file that is not the same in both trees."""

    path: str
    before: bytes | None
    """None where there was none."""
    after: bytes | None


def difference(before: Path, after: Path) -> tuple[tuple[Change, ...], tuple[str, ...]]:
    """Files that differ, and paths of the candidate that are no regular files and were not so before."""
    old, new = map(tree_contents, (before, after))
    changes = [
        Change(path, old.get(path), new.get(path))
        for path in sorted(old.keys() | new.keys())
        if old.get(path) != new.get(path)
    ]
    was, odd = (
        {path for path, _ in files_of(tree)} - files.keys() for tree, files in ((before, old), (after, new))
    )
    return tuple(changes), tuple(sorted(odd - was))


def change_violations(
    before: Path, after: Path, component: Component, proposal: Proposal, owns: Callable[[str], bool]
) -> tuple[tuple[Change, ...], list[Violation]]:
    """The changes of a candidate, and every rule that they break; blocking.

    Args:
        before: the tree as it is.
        after: the tree with the candidate's files.
        component: names the paths that may change.
        proposal: what the candidate says it is.
        owns: whether a path is the suite's.
    """
    changes, odd = difference(before, after)
    violations = [Violation(Cheat.OUTSIDE, f"{path} is a link or a device") for path in odd]
    for path in proposal.files:
        if path.startswith("/") or ".." in path.split("/") or LEFT_OUT & set(path.split("/")):
            violations.append(Violation(Cheat.OUTSIDE, f"{path!r} is no path that a candidate may name"))
    for change in changes:
        if owns(change.path) or _steers(change):
            violations.append(Violation(Cheat.EDIT_TEST, f"{change.path} belongs to the judging"))
        elif not _within(change.path, component.paths):
            violations.append(Violation(Cheat.OUTSIDE, f"{change.path} is no part of {component.id}"))
        violations += [Violation(Cheat.GROW_BUDGET, f"{change.path}: {words}") for words in _raised(change)]
    return changes, violations + _unlike(changes, proposal)


def _within(path: str, allowed: tuple[str, ...]) -> bool:
    return any(
        pattern.rstrip("/") in (".", path)
        or path.startswith(pattern.rstrip("/") + "/")
        or fnmatch(path, pattern)
        for pattern in allowed
    )


def _steers(change: Change) -> bool:
    """Whether it changes how tests are found and run."""
    name = change.path.rpartition("/")[2]
    if any(fnmatch(name, pattern) for pattern in STEERING):
        return True
    if name == "pyproject.toml":
        return _tools(change.before) != _tools(change.after)
    return name == "setup.cfg" and _sections(change.before) != _sections(change.after)


def _tools(data: bytes | None) -> object:
    try:
        tools = tomllib.loads((data or b"").decode()).get("tool", {})
    except (ValueError, AttributeError):
        return data
    return {name: tools.get(name) for name in _STEERED_TOOLS} if isinstance(tools, dict) else tools


def _sections(data: bytes | None) -> object:
    parser = configparser.RawConfigParser(strict=False)
    try:
        parser.read_string((data or b"").decode())
    except (configparser.Error, ValueError):
        return data
    return {name: dict(parser[name]) for name in parser.sections() if _STEERED_SECTIONS.fullmatch(name)}


def _raised(change: Change) -> list[str]:
    """Limits that it raises or drops, and rules on what is allowed that it touches, in words."""
    before, after = _settings(change.path, change.before), _settings(change.path, change.after)
    if before is None or after is None:
        return []
    raised = []
    for key in sorted(before.keys() | after.keys()):
        old: Any = before.get(key)
        new: Any = after.get(key)
        parts = key.split(".")
        limits = any(map(_LIMITED.fullmatch, parts)) or _LIMIT.fullmatch(parts[-1])
        lower = {type(old), type(new)} <= {int, float} and new <= old
        if old != new and any(map(_FIXED.fullmatch, parts)):
            raised.append(f"{key} is a rule on what is allowed, from {old!r} to {new!r}")
        elif old != new and key in before and limits and not lower:
            raised.append(f"{key} is a limit, from {old!r} to {'nothing' if new is None else repr(new)}")
    return raised


def _settings(path: str, data: bytes | None) -> dict[str, Any] | None:
    """The values of a TOML or JSON file by dotted key; None where it is neither."""
    try:
        if path.endswith(".toml"):
            return _flat(tomllib.loads((data or b"").decode()))
        if path.endswith(".json"):
            return _flat(json.loads(data or b"{}"))
    except (ValueError, RecursionError):
        return None
    return None


def _flat(value: Any, above: str = "") -> dict[str, Any]:
    if isinstance(value, dict):
        items = [(str(key), item) for key, item in value.items()]
    elif isinstance(value, list):
        items = [(str(number), item) for number, item in enumerate(value)]
    else:
        return {above: value}
    values: dict[str, Any] = {}
    for key, item in items:
        values |= _flat(item, f"{above}.{key}" if above else key)
    return values


def _unlike(changes: tuple[Change, ...], proposal: Proposal) -> list[Violation]:
    """Where the candidate is not what it says it is."""
    real = {change.path: change.after for change in changes}
    violations = []
    for path in sorted(real.keys() - proposal.files.keys()):
        violations.append(Violation(Cheat.FAKE_DIFF, f"{path} is changed and the proposal does not say so"))
    for path, text in sorted(proposal.files.items()):
        data = None if text is None else text.encode("utf-8", "surrogateescape")
        if path in real and real[path] != data:
            violations.append(Violation(Cheat.FAKE_DIFF, f"{path} is not what the proposal says it becomes"))
    return violations
