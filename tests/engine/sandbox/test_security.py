"""The catalogue of sandbox spec §6: every case has its checks; what can be tried quickly is tried here."""

from __future__ import annotations

import ast
import os
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from app.cli.doctor import check_installation
from engine.sandbox.policy import SandboxPolicy, Tier
from engine.sandbox.tier import layers, remaining_access
from tests.engine.sandbox.jail_runs import REPOSITORY, TIERS, USERS, Room, need
from tests.security import report
from tests.security.case import Column, Outcome
from tests.security.cases import CASES
from tests.security.measure import Measured, columns, inside, native, race, results
from tests.security.native import CHECKS
from tests.security.race import NAIVE, VERBS

WORDS = {
    "stat": "stat and access",
    "access": "stat and access",
    "readlink": "readlink",
    "listxattr": "extended attributes",
    "statfs": "statfs",
    "chdir": "chdir",
    "a process's group": "process",
}
"""How doctor calls what gets through in KERNEL."""
SECONDS = 0.3
"""Of each group's race; `make security` takes longer."""


@cache
def tried(tier: Tier, user: str) -> tuple[dict[str, str], tuple[str, ...]]:
    return inside(tier, user)


def test_the_cases_are_the_hundred_of_the_catalogue() -> None:
    assert [case.number for case in CASES] == list(range(1, 101))
    for case in CASES:
        checks = (*case.inside, *case.seen, *case.works, *case.native, *case.race, *case.tests)
        assert checks, f"case {case.number} has no check"
        assert case.title
        assert case.attempted


def test_every_test_that_a_case_names_exists() -> None:
    missing = []
    for node in {node for case in CASES for node in case.tests}:
        path, _, name = node.partition("::")
        tree = ast.parse((REPOSITORY / path).read_text(encoding="utf-8"))
        names = {one.name for one in tree.body if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef))}
        missing += [] if name in names else [node]
    assert missing == []


def test_every_check_that_was_written_belongs_to_a_case() -> None:
    assert {name for case in CASES for name in case.native} == set(CHECKS)
    assert {name for case in CASES for name in case.race} == set(VERBS)


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("tier", TIERS)
def test_nothing_gets_out_but_what_kernel_cannot_hide(tier: Tier, user: str) -> None:
    """Behaviours 51, 52 and 53."""
    need(tier)
    found, changed = tried(tier, user)
    named = Counter(name for case in CASES for name in (*case.inside, *case.seen, *case.works))
    assert found.keys() == named.keys()
    works = {name for case in CASES for name in case.works}
    seen = {name for case in CASES for name in case.seen} if tier is Tier.KERNEL else set()
    through = {name for name, said in found.items() if said == "through"}
    assert through == works | seen, {name: found[name] for name in through ^ (works | seen)}
    assert changed == ()


def test_without_a_jail_the_attempts_do_get_through() -> None:
    """Else they would prove nothing; what this user may not do anyway is stopped here too."""
    _, tier, user = columns()[0]
    found, _ = tried(tier, user)
    count = Counter("n.a." if said.startswith("n.a.") else said for said in found.values())
    assert tier is Tier.PATHS
    assert count["through"] > 100
    assert count["through"] > 2 * (len(found) - count["through"] - count["n.a."])


@pytest.mark.parametrize("user", USERS)
def test_the_file_commands_withstand_every_attack(user: str) -> None:
    """Behaviour 50."""
    need(Tier.KERNEL)
    found = native(user, 5_000)
    assert set(found) == set(CHECKS)
    assert {name: said for name, said in found.items() if said != "stopped"} == {}


@pytest.mark.parametrize("user", USERS)
def test_no_verb_loses_the_race_against_swapped_links(user: str) -> None:
    need(Tier.KERNEL)
    found = race(user, SECONDS)
    assert set(found) == {NAIVE, *VERBS}
    assert found[NAIVE]["leaks"] > 0, "the swapper is worth nothing"
    assert {verb: found[verb] for verb in VERBS if found[verb]["leaks"]} == {}
    assert all(found[verb]["tries"] for verb in VERBS)


@pytest.mark.parametrize("tier", TIERS)
def test_doctor_names_what_was_measured_to_get_through(tier: Tier) -> None:
    need(tier)
    found, _ = tried(tier, "this user")
    seen = {name for case in CASES for name in case.seen if found[name] == "through"}
    lines = remaining_access(tier, layers())
    told = {line for line in lines if any(WORDS[name] in line for name in seen)}
    assert told == set(lines)
    assert all(any(WORDS[name] in line for line in lines) for name in seen)


async def test_doctor_prints_what_gets_through_in_its_tier(tmp_path: Path) -> None:
    _, answer, text = await check_installation(tmp_path)
    assert answer["sandbox"]["gets_through"] == list(
        remaining_access(Tier(answer["sandbox"]["tier"]), layers())
    )
    assert all(line in text for line in answer["sandbox"]["gets_through"])


# The table


def measured(**outcomes: str) -> Measured:
    """What `make security` would have found in the jail; everything else was not tried."""
    found = {name: "EACCES" for case in CASES for name in (*case.inside, *case.seen)}
    found |= {name: "through" for case in CASES for name in case.works} | outcomes
    return Measured(dict.fromkeys(Column, found))


def test_the_table_fits_into_a_report_and_counts_attempts() -> None:
    lines = report.table(CASES, measured())
    assert len(lines) == 101
    assert max(map(len, lines)) <= report.WIDTH
    assert lines[21].split()[-2:] == ["stopped", "6"]
    assert report.table(CASES, measured(), markdown=True)[1].startswith("|--:|")


def test_what_must_be_stopped_and_gets_through_fails_the_run() -> None:
    case = CASES[20]
    for said, count in (("through", 4), ("EACCES", 0), ("n.a.: not here", 0)):
        found = results(case, measured(read=said))
        assert sum(result.bad for results_ in found.values() for result in results_) == count
    seen = results(CASES[35], measured(stat="through"))
    bad = {
        column for column, found in seen.items() for result in found if result.bad and result.name == "stat"
    }
    assert bad == {Column.FULL_USER, Column.FULL_ROOT}


def test_what_must_work_and_does_not_fails_the_run() -> None:
    broken = results(CASES[68], measured(pipe="EPERM"))[Column.FULL_ROOT]
    assert [
        result.name for result in broken if result.outcome is Outcome.BROKEN and result.name == "pipe"
    ] == ["pipe"]


# Cases that need a word of their own


def test_limits_that_cannot_be_set_mean_125(place: Room, tier: Tier) -> None:
    done = place.run("/bin/touch", "ran", tier=tier, address_bytes=1 << 80)
    assert (done["ended"], done["return_code"]) == ("jail", 125), done
    assert not (place.root / "ran").exists()


def test_root_is_told_that_processes_are_counted_and_not_capped() -> None:
    told = "processes are counted, not capped" in layers()["capabilities"].reason
    assert told == (os.getuid() == 0)


def test_a_grant_of_ports_says_that_every_host_is_meant() -> None:
    text = (REPOSITORY / "app/guide/sandbox.md").read_text(encoding="utf-8")
    assert "a cloud's metadata address" in " ".join(text.split())
    assert "UDP" in "\n".join(SandboxPolicy(network="ports").explain())  # type: ignore[arg-type]
