"""What the judge says of honest candidates, and how it holds its boxes."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from engine.core.improvement import Component, ComponentKind, Proposal, Ruling
from engine.improve.judge.box import Boxes, BoxLimits
from engine.improve.judge.changes import Cheat, change_violations
from engine.improve.judge.judge import Judge, JudgeBudget
from engine.improve.ports import Call, Check, ExpectedAnswer, Measure, Outcome, Report, Split
from engine.sandbox.policy import SandboxPolicy, Tier
from tests.engine.improve.cheats.grounds import (
    FILES,
    MODULE,
    ROOT,
    SUMS,
    TWICE,
    Grounds,
    SumsSuite,
    lay,
    null,
)
from tests.engine.sandbox.jail_runs import need
from tests.patience import PATIENCE_S
from tests.rounds import rounds

TIMED = SumsSuite(Measure.time(), tests=False, timed="sums:squares", size=300)
RIGHT = SUMS.replace("    if value > high:\n        return low", "    if value > high:\n        return high")
UNMEASURED = SumsSuite(None, tests=False)


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Grounds:
    need(Tier.KERNEL)
    return Grounds(tmp_path_factory.mktemp("grounds"))


@pytest.fixture(scope="module")
def wasteful(tmp_path_factory: pytest.TempPathFactory) -> Grounds:
    need(Tier.KERNEL)
    return Grounds(tmp_path_factory.mktemp("wasteful"), {**FILES, MODULE: TWICE})


@pytest.mark.slow
async def test_a_better_candidate_is_promoted_and_a_null_one_is_not(wasteful: Grounds) -> None:
    for seed in range(1, 1 + rounds(1, full=3)):
        suite = replace(TIMED, seed=seed)
        verdict = await wasteful.judged({MODULE: null(seed, TWICE)}, suite, seed=seed)
        assert verdict.ruling is Ruling.NO_BETTER, verdict
        verdict = await wasteful.judged({MODULE: SUMS}, suite, seed=seed)
        assert verdict.ruling is Ruling.BETTER, verdict
        assert verdict.gain is not None
        assert verdict.gain.unit == "% of processor time saved"


async def test_a_mended_check_counts_when_nothing_else_breaks(ground: Grounds) -> None:
    verdict = await ground.judged({MODULE: RIGHT}, SumsSuite(None), budget=JudgeBudget(again=1))
    assert verdict.ruling is Ruling.BETTER, verdict
    assert "tests/test_sums.py::test_clipped_above" in verdict.mended
    assert verdict.gain is not None
    assert (verdict.gain.unit, verdict.gain.mean) == ("checks passed", float(len(verdict.mended)))


async def test_what_held_and_fails_now_is_broken_whatever_is_gained(ground: Grounds) -> None:
    verdict = await ground.judged({MODULE: RIGHT.replace("number * number", "number * 2")}, UNMEASURED)
    assert verdict.ruling is Ruling.BROKEN
    assert any(name.startswith("squares of") for name in verdict.broken)
    assert any(name.startswith("clipped") for name in verdict.mended)
    assert verdict.gain is None


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("def squares(count):\n    raise MemoryError\n", "not the right answer"),
        ("def squares(count):\n    return [0] * 10**9\n", ""),
        ("def squares(count):\n    import os\n    os._exit(3)\n", "exit code 3"),
        ("def squares(count):\n    import os\n    os.abort()\n", "signal 6"),
        ("def squares(count):\n    while True:\n        pass\n", "longer than it may"),
        ("syntax is not its strength", "not the right answer"),
    ],
)
async def test_a_candidate_that_fails_in_any_way_is_broken_and_no_cheat(
    ground: Grounds, code: str, why: str
) -> None:
    budget = JudgeBudget(limits=BoxLimits(check_s=3.0, memory_bytes=256 * 2**20), again=1)
    verdict = await ground.judged({MODULE: f"{SUMS}\n\n{code}"}, OneFamily(), budget=budget)
    assert verdict.ruling is Ruling.BROKEN, verdict
    assert why in " ".join(verdict.reasons)


async def test_what_does_not_come_out_the_same_each_time_decides_nothing(ground: Grounds) -> None:
    text = SUMS.replace(
        "return total\n", "import random\n    return total + random.SystemRandom().randint(0, 1)\n"
    )
    lay(ground.place / "before", {MODULE: text})
    budget = JudgeBudget(again=10)
    verdict = await ground.judged({MODULE: f"{text}# the same\n"}, OneFamily(), budget=budget, seed=5)
    lay(ground.place / "before", {MODULE: SUMS})
    assert verdict.ruling is Ruling.NO_BETTER, verdict


async def test_what_the_tree_before_answers_is_right_where_nothing_else_is_known(ground: Grounds) -> None:
    sorts = SUMS.replace('    """The values without', '    values.sort()\n    """The values without')
    suite = Differential((Call("sums:distinct", ([3, 1, 3, 2],)), Call("sums:mean", ([],))))
    verdict = await ground.judged({MODULE: sorts}, suite)
    assert verdict.ruling is Ruling.BROKEN, "it changes its argument now"
    verdict = await ground.judged({MODULE: SUMS.replace("total", "summed")}, suite)
    assert verdict.ruling is Ruling.NO_BETTER, verdict


async def test_a_candidate_that_changes_nothing_is_no_better(ground: Grounds) -> None:
    verdict = await ground.judged({}, UNMEASURED)
    assert (verdict.ruling, verdict.reasons) == (Ruling.NO_BETTER, ("it changes nothing",))


async def test_a_suite_may_examine_what_is_no_code(tmp_path: Path) -> None:
    judge = Judge(tmp_path / "judge")
    for side, words in (("before", "one two three four five"), ("after", "one two three")):
        lay(tmp_path / side, {"plans.asl": words})
    component = Component("plans", ComponentKind.PLANS, "Plans", ("plans.asl",))
    proposal = Proposal("shorter", "test", {"plans.asl": "one two three"})
    verdict = await judge.compare(
        tmp_path / "before", tmp_path / "after", component, proposal, Words(), seed=1
    )
    assert verdict.ruling is Ruling.BETTER
    assert verdict.gain is not None
    assert (verdict.gain.mean, verdict.gain.low, verdict.gain.pairs) == (2.0, 2.0, 8)
    back = await judge.compare(tmp_path / "after", tmp_path / "before", component, replace(
        proposal, files={"plans.asl": "one two three four five"}), Words(), seed=1)  # fmt: skip
    assert back.ruling is Ruling.NO_BETTER


async def test_a_judgement_can_be_cancelled_and_leaves_nothing_behind(ground: Grounds) -> None:
    code = f"{SUMS}\n\ndef squares(count):\n    while True:\n        pass\n"
    judging = asyncio.create_task(ground.judged({MODULE: code}, UNMEASURED))
    while not list(ground.judge.store.glob("tmp*/work/config")):
        await asyncio.sleep(0.01)
    judging.cancel()
    async with asyncio.timeout(PATIENCE_S):
        with pytest.raises(asyncio.CancelledError):
            await judging
    assert not list(ground.judge.store.glob("tmp*"))


async def test_a_box_has_no_network_no_secret_and_no_way_out(
    ground: Grounds, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "the secret key")
    (tmp_path / "secret").write_text("the secret")
    code = f"""
import os, pathlib, socket
def look(what):
    if what == "net":
        return socket.create_connection(("127.0.0.1", 22), 1)
    if what == "env":
        return [value for value in os.environ.values() if "secret" in value]
    if what == "mode":
        return [oct(pathlib.Path(os.environ[name]).stat().st_mode & 0o777) for name in ("HOME", "TMPDIR")]
    if what == "write":
        return pathlib.Path("sums.py").write_text("")
    return pathlib.Path({str(tmp_path / "secret")!r}).read_text()
"""
    lay(tmp_path / "tree", {**FILES, MODULE: code})
    boxes = Boxes(ground.judge.store, SandboxPolicy(), BoxLimits())
    said = {}
    async with boxes.opened(tmp_path / "tree", UNMEASURED, {}, {}, seed=1) as box:
        for what in ("net", "env", "mode", "write", "read"):
            check = Check(what, Split.WORK, (Call("sums:look", (what,)),))
            said[what] = (await box.ask(check, BoxLimits(), seed=1)).said["answers"][0]
        modes = [path.stat().st_mode & 0o777 for path in (box.place, box.given, box.root)]
        assert not any((box.given / name).exists() for name in ("log.jsonl", "expected"))
    assert modes == [0o700] * 3
    assert said["env"]["value"] == []
    assert said["mode"]["value"] == ["0o700", "0o700"]
    assert all("raises" in said[what] for what in ("net", "write", "read")), said


@pytest.mark.parametrize(
    ("files", "cheat"),
    [
        ({f"{ROOT}/new.py": "x = 1\n"}, Cheat.OUTSIDE),
        ({"recipes/new.toml": ""}, Cheat.OUTSIDE),
        ({f"{ROOT}/pyproject.toml": "[tool.pytest.ini_options]\naddopts = '-k nothing'\n"}, Cheat.EDIT_TEST),
        ({f"{ROOT}/sitecustomize.py": ""}, Cheat.EDIT_TEST),
        ({f"{ROOT}/agent.json": '{"thinker": "procedural"}'}, Cheat.GROW_BUDGET),
        ({f"{ROOT}/agent.json": '{"budget": {"usd": 1.0}, "sandbox": {"network": "on"}}'}, Cheat.GROW_BUDGET),
        ({f"{ROOT}/tests/test_sums.py": None}, Cheat.EDIT_TEST),
    ],
)
def test_what_a_candidate_may_not_change(
    tmp_path: Path, files: Mapping[str, str | None], cheat: Cheat
) -> None:
    """Behaviour 68: files that were not declared are refused; tests and limits are no candidate's."""
    lay(tmp_path / "before", FILES)
    lay(tmp_path / "after", {**FILES, **files})
    _, found = change_violations(
        tmp_path / "before", tmp_path / "after", _component(), Proposal("", "", dict(files)), UNMEASURED.owns
    )
    assert cheat in {one.cheat for one in found}


def test_links_hidden_places_and_ways_out_are_no_candidates(tmp_path: Path) -> None:
    lay(tmp_path / "before", FILES)
    lay(tmp_path / "after", FILES)
    os.symlink("/etc/passwd", tmp_path / "after" / ROOT / "link")
    files = dict.fromkeys(
        ("../out.py", "/etc/x", f"{ROOT}/.git/hooks/post-commit", f"{ROOT}/__pycache__/a.pyc"), ""
    )
    _, found = change_violations(
        tmp_path / "before", tmp_path / "after", _component(), Proposal("", "", files), UNMEASURED.owns
    )
    assert [one.cheat for one in found] == [Cheat.OUTSIDE] * 5


def _component() -> Component:
    return Component("sums", ComponentKind.PROJECT, "Sums", (MODULE, f"{ROOT}/agent.json"))


def _proposal() -> Proposal:
    return Proposal("a change", "test", {MODULE: SUMS})


class OneFamily(SumsSuite):
    """Squares only, without a measure."""

    def __init__(self) -> None:
        super().__init__(None, tests=False)

    def checks(self, split: Split) -> tuple[Check, ...]:
        return (
            tuple(replace(check, family="") for check in self._squares(split)[:1])
            if split is Split.WORK
            else ()
        )


class Differential(SumsSuite):
    """Calls whose right answers only the tree before knows."""

    def __init__(self, calls: tuple[Call, ...]) -> None:
        super().__init__(None, tests=False)
        object.__setattr__(self, "calls", calls)

    @property
    def key(self) -> str:
        return "differential"

    def checks(self, split: Split) -> tuple[Check, ...]:
        calls: tuple[Call, ...] = self.__dict__["calls"]
        made = tuple(Check(f"{call.target} {split}", split, (call,)) for call in calls)
        return made if split is Split.SEALED else ()


@dataclass(frozen=True)
class Words:
    """Counts words: the fewer the better, and `one` has to be there."""

    key: str = "words"
    measure: Measure = field(default_factory=lambda: Measure("words"))

    def checks(self, split: Split) -> tuple[Check, ...]:
        if split is not Split.SEALED:
            return ()
        return tuple(
            Check(f"word {n}", split, data=n, measured=True, expected=(ExpectedAnswer(n),)) for n in range(8)
        )

    def owns(self, path: str) -> bool:
        return False

    async def examine(self, tree: Path, check: Check, *, seed: int) -> Report:
        words = (tree / "plans.asl").read_text().split()
        held: Any = Outcome.HOLDS if "one" in words else Outcome.FAILS
        return Report(check.id, held, cost=float(len(words)))
