"""Planted cheats: each is rejected under its name, in every tier and as every user."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.core.improvement import Ruling
from engine.improve.judge.changes import Change, Cheat
from engine.improve.judge.violations import shown_right
from engine.improve.ports import Check, Split
from engine.sandbox.policy import Tier
from tests.engine.improve.cheats.__main__ import judged
from tests.engine.improve.cheats.grounds import Grounds
from tests.engine.improve.cheats.planted import PLANTED, Planted
from tests.engine.sandbox.jail_runs import ORDINARY, environment, free_uid, ids, need, python_of


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Grounds:
    need(Tier.KERNEL)
    return Grounds(tmp_path_factory.mktemp("grounds"))


@pytest.mark.parametrize("planted", PLANTED, ids=lambda one: one.name)
async def test_a_planted_cheat_is_rejected_under_its_name(ground: Grounds, planted: Planted) -> None:
    verdict = await judged(ground, planted)
    assert verdict.ruling is Ruling.REJECTED
    assert planted.cheat in verdict.cheats
    assert any(planted.cheat in reason for reason in verdict.reasons)
    log = [json.loads(line) for line in (ground.judge.store / "log.jsonl").read_text().splitlines()]
    assert log[-1]["cheats"] == list(verdict.cheats)
    assert list(ground.judge.store.iterdir()) == [ground.judge.store / "log.jsonl"]


def test_all_ten_ways_are_planted() -> None:
    ten = [cheat for cheat in Cheat if cheat not in (Cheat.OUTSIDE, Cheat.FORGE)]
    assert len(ten) == 10
    assert {planted.cheat for planted in PLANTED} >= set(ten)


@pytest.fixture
def place() -> Iterator[Path]:
    made = Path(tempfile.mkdtemp(prefix="judge-test-", dir="/var/tmp"))
    yield made
    shutil.rmtree(made, ignore_errors=True)


@pytest.mark.parametrize(
    ("user", "tier", "cheat"),
    [
        (ORDINARY, Tier.FULL, "log"),
        (ORDINARY, Tier.FULL, "leaves a process"),
        (ORDINARY, Tier.KERNEL, "exit"),
        (ORDINARY, Tier.KERNEL, "held-out"),
        ("this user", Tier.KERNEL, "leaves a process"),
        ("this user", Tier.KERNEL, "clock"),
        ("this user", Tier.KERNEL, "log"),
    ],
)
def test_they_are_rejected_in_each_tier_and_as_each_user(
    user: str, tier: Tier, cheat: str, place: Path
) -> None:
    need(tier)
    if ids(user):
        os.chown(place, free_uid(), free_uid())
    words = ["--json", "--no-tests", "--place", str(place), "--tier", tier, "--cheat", cheat]
    done = subprocess.run(
        [python_of(user), "-m", "tests.engine.improve.cheats", *words],
        capture_output=True, text=True, env=environment(), cwd="/", timeout=120, check=False, **ids(user),
    )  # fmt: skip
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert rows, done.stderr
    assert all(row["caught"] for row in rows), rows


def test_a_number_in_the_place_of_another_is_not_shown_right_by_inputs_alone() -> None:
    checks = [Check(f"t{number}", Split.WORK, test=f"t.py::t{number}") for number in range(3)]
    mended = [check.id for check in checks]

    def shown(before: bytes, after: bytes, *more: Check) -> bool:
        some = [*mended, *(check.id for check in more)]
        return shown_right(some, [*checks, *more], [Change("m.py", before, after)])

    assert shown(b"x = n + m\n", b"x = n - m\n")
    assert not shown(b"x = n + 6\ny = 7\n", b"x = n + 7\ny = 7\n")
    assert shown(b"x = n + 6\ny = 7\n", b"x = n + 7\ny = 7\n", Check("s", Split.SEALED, test="t.py::s"))
