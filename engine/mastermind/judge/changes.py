"""What a candidate changes, found by the judge itself from the two trees, and what it may not change.

Nothing of the candidate runs here. Source: steering spec §3 idea 13, mindX spec §7 behaviour 68.
"""

from __future__ import annotations

import configparser
import json
import re
import stat
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from engine.domain.improvement import Component, Proposal
from engine.mastermind.judge.box import LEFT_OUT, files_of
from engine.mastermind.judge.cheats import Breach, Cheat
from engine.mastermind.judge.patches import PatchError, patched

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
    old, odd_before = _contents(before)
    new, odd_after = _contents(after)
    changes = [
        Change(path, old.get(path), new.get(path))
        for path in sorted(old.keys() | new.keys())
        if old.get(path) != new.get(path)
    ]
    return tuple(changes), tuple(sorted(odd_after - odd_before))


def _contents(tree: Path) -> tuple[dict[str, bytes], set[str]]:
    files, odd = {}, set()
    for path, status in files_of(tree):
        if stat.S_ISREG(status.st_mode):
            files[path] = (tree / path).read_bytes()
        else:
            odd.add(path)
    return files, odd


def breaches(
    before: Path, after: Path, component: Component, proposal: Proposal, owns: Callable[[str], bool]
) -> tuple[tuple[Change, ...], list[Breach]]:
    """The changes of a candidate, and every rule that they break; blocking.

    Args:
        before: the tree as it is.
        after: the tree with the candidate's files.
        component: names the paths that may change.
        proposal: what the candidate says it is.
        owns: whether a path is the suite's.
    """
    changes, odd = difference(before, after)
    found = [Breach(Cheat.OUTSIDE, f"{path} is a link or a device") for path in odd]
    for path in proposal.files:
        if path.startswith("/") or ".." in path.split("/") or LEFT_OUT & set(path.split("/")):
            found.append(Breach(Cheat.OUTSIDE, f"{path!r} is no path that a candidate may name"))
    for change in changes:
        if owns(change.path) or _steers(change):
            found.append(Breach(Cheat.EDIT_TEST, f"{change.path} belongs to the judging"))
        elif not _within(change.path, component.paths):
            found.append(Breach(Cheat.OUTSIDE, f"{change.path} is no part of {component.id}"))
        found += [Breach(Cheat.GROW_BUDGET, f"{change.path}: {words}") for words in _raised(change)]
    return changes, found + _unlike(changes, proposal)


def _within(path: str, allowed: tuple[str, ...]) -> bool:
    return any(
        one.rstrip("/") in (".", path) or path.startswith(one.rstrip("/") + "/") or fnmatch(path, one)
        for one in allowed
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
    found = []
    for key in sorted(before.keys() | after.keys()):
        old, new, parts = before.get(key), after.get(key), key.split(".")
        if old == new:
            continue
        if any(_FIXED.fullmatch(part) for part in parts):
            found.append(f"{key} is a rule on what is allowed, from {old!r} to {new!r}")
        elif key in before and _limits(parts) and not _lower(old, new):
            found.append(f"{key} is a limit, from {old!r} to {'nothing' if new is None else repr(new)}")
    return found


def _limits(parts: list[str]) -> bool:
    return any(map(_LIMITED.fullmatch, parts)) or bool(_LIMIT.fullmatch(parts[-1]))


def _lower(old: Any, new: Any) -> bool:
    return type(old) in (int, float) and type(new) in (int, float) and bool(new <= old)


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
    found: dict[str, Any] = {}
    for key, item in items:
        found |= _flat(item, f"{above}.{key}" if above else key)
    return found


def _unlike(changes: tuple[Change, ...], proposal: Proposal) -> list[Breach]:
    """Where the candidate is not what it says it is."""
    real = {change.path: change.after for change in changes}
    old = {change.path: change.before for change in changes}
    found = []
    for path in sorted(real.keys() - proposal.files.keys()):
        found.append(Breach(Cheat.FAKE_DIFF, f"{path} is changed and the proposal does not say so"))
    for path, text in sorted(proposal.files.items()):
        data = None if text is None else text.encode("utf-8", "surrogateescape")
        if path in real and real[path] != data:
            found.append(Breach(Cheat.FAKE_DIFF, f"{path} is not what the proposal says it becomes"))
    if proposal.claimed.strip():
        why = _claim(proposal.claimed, old, real)
        found += [Breach(Cheat.FAKE_DIFF, why)] if why else []
    return found


def _claim(claimed: str, old: Mapping[str, bytes | None], real: Mapping[str, bytes | None]) -> str:
    """Why the difference that is claimed is not the real one; empty when it is."""
    texts = {path: None if data is None else data.decode("utf-8", "replace") for path, data in old.items()}
    try:
        said = patched(claimed, texts)
    except PatchError as error:
        return f"the difference that it claims is not the real one: {error}"
    for path, data in real.items():
        text = None if data is None else data.decode("utf-8", "replace")
        if said.get(path) != text and (said.get(path) or "").rstrip("\n") != (text or "").rstrip("\n"):
            return f"the difference that it claims for {path} is not the real one"
    return ""
