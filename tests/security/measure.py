"""Running the checks of the catalogue and putting what came of them into columns."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from engine.sandbox.policy import Tier
from engine.sandbox.tier import best_tier, layers
from tests.engine.sandbox.jail_runs import ORDINARY, REPOSITORY, USERS, environment, ids, python_of, room
from tests.security.case import Case, Column, Outcome, Result
from tests.security.inside import script
from tests.security.race import NAIVE

Found = dict[str, str]
"""Outcomes by the name of the attempt."""
Results = dict[Column, tuple[Result, ...]]

_OWNED = "signal by the owner of a socket"
"""The attempt that only the driver can judge: by the signals that arrived."""
INSIDE_S = 600
"""For the attempts of one column; on a quiet machine they take some 20 s."""
_PATIENCE_S = 1_200
"""For each program, and for the tests of each file."""


@dataclass(frozen=True, slots=True)
class Measured:
    """Everything that was run."""

    inside: Mapping[Column, Found | str]
    """Outcomes by column, or why the column cannot be had here."""
    native: Mapping[bool, Found] = field(default_factory=dict)
    """Outcomes by whether root ran them."""
    careless: Found = field(default_factory=dict)
    """Outcomes against commands that follow links wherever they lead."""
    races: Mapping[bool, Mapping[str, Any]] = field(default_factory=dict)
    tests: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """By node id without parameters: parameters and `passed`, `skipped: why` or `failed: why`."""
    changed: Mapping[Column, tuple[str, ...]] = field(default_factory=dict)
    """What lay outside and was changed, seen from outside."""


def columns() -> list[tuple[Column, Tier, str]]:
    """Column, tier and user of everything that this user can try."""
    root = os.getuid() == 0
    users = [(ORDINARY, False), ("this user", True)] if root else [("this user", False)]
    found = [(Column.NO_JAIL, Tier.PATHS, users[0][0])]
    for tier in (Tier.FULL, Tier.KERNEL):
        for user, as_root in users:
            found.append((Column(f"{tier} {'root' if as_root else 'user'}"), tier, user))
    return found


def inside(tier: Tier, user: str) -> tuple[Found, tuple[str, ...]]:
    """Make every attempt in a jail of this tier; outcomes, and what was changed outside."""
    policy = {"accept_paths": True} if tier is Tier.PATHS else {"require": tier}
    with room(user) as place:
        done = place.python(script(), "FACTS", tier=tier, limit_s=INSIDE_S, **policy)
    if done.get("return_code") != 0:
        raise RuntimeError(f"the attempts did not run to their end: {done}")
    found: Found = json.loads(done["stdout"])
    found[_OWNED] = "through" if done["signals"] else "no signal came"
    return found, tuple(done["changed"])


def native(user: str, entries: int, *, careless: bool = False) -> Found:
    """Attack the file commands as this user, or commands that follow links wherever they lead."""
    return dict(_program("tests.security.native", user, str(entries), *(["careless"] if careless else [])))


def race(user: str, seconds: float) -> dict[str, Any]:
    """Race every verb as this user; in memory, where a write need not wait for a disk."""
    return _program("tests.security.race", user, str(seconds), where="/dev/shm")


def _program(module: str, user: str, *words: str, where: str = "/var/tmp") -> dict[str, Any]:
    where = where if os.access(where, os.W_OK) else "/var/tmp"
    with room(user, where) as place:
        done = subprocess.run(
            [python_of(user), "-m", module, str(place.root), *words],
            env=environment(), cwd="/", capture_output=True, text=True, timeout=_PATIENCE_S, check=False,
            **ids(user),
        )  # fmt: skip
    if done.returncode != 0:
        raise RuntimeError(f"{module} as {user}: {done.stderr[-2000:]}")
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


Tell = Callable[[str], object]
"""Is told what was done."""


def run_tests(nodes: Iterable[str], tell: Tell = print) -> dict[str, dict[str, str]]:
    """Run tests of this repository by node id, file by file; outcomes by node id and parameters."""
    found: dict[str, dict[str, str]] = {}
    for path, named in groupby(sorted(set(nodes)), lambda node: node.partition("::")[0]):
        try:
            runs = _run_file(list(named))
        except subprocess.TimeoutExpired:
            runs = {}
        said = [said for outcomes in runs.values() for said in outcomes.values()]
        bad = sum(outcome.startswith("failed") for outcome in said)
        tell(f"{path}: {len(said)} tests, {f'{bad} FAILED' if bad else 'none failed'}")
        found |= runs
    return found


def _run_file(named: list[str]) -> dict[str, dict[str, str]]:
    with tempfile.TemporaryDirectory() as directory:
        report = Path(directory, "report.xml")
        words = ["-q", "-p", "no:cacheprovider", "-n", "2", "--dist", "load", f"--junitxml={report}"]
        subprocess.run(
            [sys.executable, "-m", "pytest", *words, *named],
            cwd=REPOSITORY, capture_output=True, timeout=_PATIENCE_S, check=False,
            env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        )  # fmt: skip
        return _reported(report) if report.exists() else {}


def _reported(report: Path) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for case in ET.parse(report).getroot().iter("testcase"):
        name, _, parameters = case.get("name", "").partition("[")
        node = f"{case.get('classname', '').replace('.', '/')}.py::{name}"
        said = "passed"
        for kind in ("skipped", "failure", "error"):
            if (element := case.find(kind)) is not None:
                said = f"{'skipped' if kind == 'skipped' else 'failed'}: {element.get('message', '')[:200]}"
        found.setdefault(node, {})[parameters.rstrip("]")] = said
    return found


def measure(cases: Iterable[Case], *, seconds: float, entries: int, tell: Tell = print) -> Measured:
    """Run everything that the cases name; the races come last, by themselves.

    What does not come to its end is said, and counts as failed.
    """
    cases = tuple(cases)
    gives = best_tier(layers())
    with ThreadPoolExecutor(1) as beside:
        tests: Future[dict[str, dict[str, str]]] = beside.submit(
            run_tests, [node for case in cases for node in case.tests], tell
        )
        made: dict[Column, Found | str] = {
            column: "only root can try this" for column in Column if column.root and os.getuid() != 0
        }
        changed: dict[Column, tuple[str, ...]] = {}
        for column, tier, user in columns():
            try:
                if tier.strength > gives.strength:
                    made[column] = f"this machine gives {gives}"
                else:
                    made[column], changed[column] = inside(tier, user)
            except pytest.skip.Exception as why:
                made[column] = str(why)
            except (RuntimeError, subprocess.TimeoutExpired, TimeoutError) as error:
                made[column] = {}  # each attempt was not made, which is a failure
                tell(f"{column}: FAILED: {str(error)[:300]}")
            tell(f"{column}: {_counted(made[column])}")
        users = USERS if os.getuid() == 0 else ["this user"]
        attacked, raced = {}, {}
        for user in users:
            attacked[user != ORDINARY and os.getuid() == 0] = native(user, entries)
            tell(f"file commands attacked as {user}")
        careless = native(columns()[0][2], 10, careless=True)
        outcomes = tests.result()
    for user in users:
        raced[user != ORDINARY and os.getuid() == 0] = race(user, seconds)
        tell(f"links raced as {user}")
    return Measured(made, attacked, careless, raced, outcomes, changed)


def _counted(found: Found | str) -> str:
    """What came of a column's attempts, in a line."""
    if isinstance(found, str):
        return f"not tried: {found}"
    through = sum(said == "through" for said in found.values())
    return f"{len(found)} attempts, of which {through} got through or are meant to work"


def results(case: Case, measured: Measured) -> Results:
    """What came of a case in each column."""
    return {column: tuple(_in(case, column, measured)) for column in Column}


def _in(case: Case, column: Column, measured: Measured) -> Iterable[Result]:
    found = measured.inside.get(column, "it was not tried")
    bare = column is Column.NO_JAIL
    for name in (*case.inside, *case.seen, *case.works):
        if isinstance(found, str):
            yield Result(name, Outcome.ABSENT, found)
        else:
            allowed = bare or (name in case.seen and column.tier == "KERNEL")
            yield _judged(name, found.get(name, "broken: it was not made"), name in case.works, allowed)
    if not bare:
        yield from _tests(case, column, measured)
    attacked = measured.careless if bare else measured.native.get(column.root, {})
    for name in case.native if attacked else ():
        said = attacked.get(name, "it was not tried")
        yield Result(name, Outcome.STOPPED if said == "stopped" else Outcome.THROUGH, said, bare)
    yield from _races(case, column, measured)


def _judged(name: str, said: str, must_work: bool, allowed: bool) -> Result:
    if said.startswith("n.a.: "):
        return Result(name, Outcome.ABSENT, said.removeprefix("n.a.: "))
    if said.startswith("broken: "):
        return Result(name, Outcome.BROKEN, said)
    if must_work:
        return Result(name, Outcome.WORKS if said == "through" else Outcome.BROKEN, said)
    return Result(name, Outcome.THROUGH if said == "through" else Outcome.STOPPED, said, allowed)


def _races(case: Case, column: Column, measured: Measured) -> Iterable[Result]:
    scores = measured.races.get(column.root, {})
    if not case.race or not scores:
        return
    if column is Column.NO_JAIL:
        leaks = scores[NAIVE]["leaks"]
        yield Result(NAIVE, Outcome.THROUGH if leaks else Outcome.STOPPED, f"{leaks} leaks", allowed=True)
        return
    for verb in case.race:
        score = scores[verb]
        outcome = Outcome.THROUGH if score["leaks"] else Outcome.STOPPED
        yield Result(f"race: {verb}", outcome, score["example"] or f"0 of {score['tries']}")


def _tests(case: Case, column: Column, measured: Measured) -> Iterable[Result]:
    """Tests belong to the columns that their parameters name, and to all of the user's who ran them."""
    for node in case.tests:
        runs = measured.tests.get(node)
        if runs is None:
            yield Result(node, Outcome.BROKEN, "the test did not run")
            continue
        for parameters, said in runs.items():
            if _belongs(parameters, column):
                outcome = Outcome.STOPPED if said == "passed" else Outcome.BROKEN
                outcome = Outcome.ABSENT if said.startswith("skipped") else outcome
                yield Result(f"{node.partition('::')[2]}[{parameters}]", outcome, said)


def _belongs(parameters: str, column: Column) -> bool:
    words = parameters.replace("-", " ").split()
    if any(tier in words for tier in ("FULL", "KERNEL")) and column.tier not in words:
        return False
    root = os.getuid() == 0 and ORDINARY not in parameters
    return root == column.root
