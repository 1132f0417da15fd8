"""Projects as other people write them: what is tested is theirs, and what is said of it is so."""

from __future__ import annotations

import random
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from engine.core.improvement import Proposal, Ruling, Verdict
from engine.improve.code.findings import ExaminedProject, examine_project
from engine.improve.code.projects import BoxError, find_projects, project_of, projects
from engine.improve.code.repair import repair_tests, suspiciousness
from engine.improve.code.source import Source
from engine.improve.code.suite import project_suite
from engine.improve.judge.box import Boxes
from engine.improve.judge.changes import Change
from engine.improve.judge.judge import Judge, JudgeBudget
from engine.improve.judge.reach import added_reach
from engine.improve.judge.violations import canaries
from engine.improve.ports import Check, Split
from engine.sandbox.policy import SandboxPolicy
from engine.sandbox.tier import JailRefusal, best_jail
from tests.engine.improve.cheats.red_team import Court, red_team
from tests.rounds import FULL

DOUBLE = 'def double(x):\n    """Twice x: double(4) is 8."""\n    return x + x + 1\n'
needs_jail = pytest.mark.skipif(isinstance(best_jail(SandboxPolicy()), JailRefusal), reason="no jail here")


def lay(root: Path, files: Mapping[str, str], name: str = "own") -> Path:
    for path, text in files.items():
        place = root / "sandbox" / name / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    return root


async def examined(root: Path) -> ExaminedProject:
    return await examine_project(Boxes(root), root, find_projects(root)[0])


async def judged(root: Path, files: Mapping[str, str]) -> Verdict:
    """The verdict on other texts of a project's files, by what is sealed."""
    before, after = root / "before", root / "after"
    for tree in (before, after):
        shutil.copytree(root / "sandbox", tree / "sandbox")
    texts = {f"sandbox/own/{path}": text for path, text in files.items()}
    for path, text in texts.items():
        (after / path).write_text(text)
    component = projects(before)[0]
    suite = await project_suite(before, component, boxes=Boxes(root), seed=1)
    judge, budget = Judge(root / "judge"), JudgeBudget(rounds=6, most=6)
    proposal = Proposal("a change", "test", texts)
    return await judge.compare(before, after, component, proposal, suite, seed=1, budget=budget)


@pytest.mark.parametrize("source", ["def test_uniq():\n    assert 1 == 1\n", "class TestIt:\n    pass\n"])
def test_canaries_have_names_where_a_file_has_hardly_a_word(source: str) -> None:
    node = "tests/test_x.py::test_uniq"
    drawn = canaries([Check(node, Split.WORK, test=node)], {"p/tests/test_x.py": source.encode()}, "p", 3)
    assert len({check.test for check in (*drawn.fails, *drawn.holds)}) == len(drawn.fails) + len(drawn.holds)


@needs_jail
@pytest.mark.parametrize("name", ["anyio", "pluggy"])
async def test_a_module_that_pytest_or_a_plugin_has_loaded_is_the_projects_own(
    tmp_path: Path, name: str
) -> None:
    test = f"import {name}\n\ndef test_own():\n    assert {name}.double(2) == 5\n"
    lay(tmp_path, {f"{name}/__init__.py": DOUBLE, "tests/test_own.py": test}, name)
    seen = await examined(tmp_path)
    assert {result["outcome"] for result in seen.tests.values()} == {"passed"}, seen.tests


@needs_jail
@pytest.mark.parametrize("inner", ["own/__init__.py", "__init__.py"])
async def test_a_package_at_the_root_is_tested_from_a_directory_that_is_none(
    tmp_path: Path, inner: str
) -> None:
    lay(tmp_path, {inner: DOUBLE, "tests/test_own.py": "import own\n\ndef test():\n    own.double(1)\n"})
    assert [result["outcome"] for result in (await examined(tmp_path)).tests.values()] == ["passed"]


@needs_jail
async def test_nothing_is_better_where_no_test_runs(tmp_path: Path) -> None:
    slow = "def work(n):\n    total = 0\n    for i in range(n * 40):\n        total = i\n    return n\n"
    bench = "from own import work\n\ndef bench_work(size):\n    return lambda: work(size)\n"
    test = "import not_there\n\ndef test():\n    pass\n"
    lay(tmp_path, {"own.py": slow, "tests/test_own.py": test, "bench_own.py": bench})
    verdict = await judged(tmp_path, {"own.py": "def work(n):\n    return n\n"})
    assert verdict.ruling is Ruling.NO_BETTER
    assert "none of its tests passes" in verdict.reasons[0]


@needs_jail
async def test_what_pytest_cannot_begin_is_said(tmp_path: Path) -> None:
    tests = {"tests/conftest.py": "1 / 0\n", "tests/test_own.py": "def test(): ...\n"}
    lay(tmp_path, {"own.py": DOUBLE, **tests})
    seen = await examined(tmp_path)
    assert "ImportError while loading conftest" in seen.problem
    with pytest.raises(BoxError, match="while loading conftest"):
        await project_suite(tmp_path, projects(tmp_path)[0], boxes=Boxes(tmp_path), seed=1, seen=seen)


@needs_jail
async def test_changes_that_hang_end_soon_and_that_they_ran_out_of_time_is_said(tmp_path: Path) -> None:
    hangs = "def work(n):\n    while n > 0:\n        n -= 1\n    return n + 1\n"
    test = "from own import work\n\ndef test_own():\n    assert work(3) == 7\n"
    lay(tmp_path, {"own.py": hangs, "tests/test_own.py": test})
    seen = await examined(tmp_path)
    seen.suite_s = 0.0
    with pytest.raises(BoxError, match="ran out of time"):
        await repair_tests(Boxes(tmp_path), tmp_path, seen, seen.sources, [*seen.tests], random.Random(1))


def test_changes_are_put_in_order_without_reading_the_module_again(monkeypatch: pytest.MonkeyPatch) -> None:
    from engine.improve.code import repair

    body = "".join(f"def work{number}(a, b):\n    return a + b * {number}\n\n" for number in range(400))
    source, tests = Source(body), {"t": {"outcome": "failed", "lines": {"m.py": list(range(1, 1200))}}}
    monkeypatch.setattr("ast.parse", lambda *_: pytest.fail("the module was read again"))
    ordered = repair._ordered({"m.py": source}, suspiciousness(tests, ["t"]), random.Random(1))
    assert len(ordered) == repair.MOST
    assert len({text for *_, text in ordered}) == repair.MOST


@needs_jail
async def test_taking_an_unused_import_away_is_neither_a_cheat_nor_slower(tmp_path: Path) -> None:
    text = "import time\n\n\ndef work(n):\n    t = 0\n    for i in range(n):\n        t += i\n    return t\n"
    bench = "from own import work\n\ndef bench_work(size):\n    return lambda: work(size * 9)\n"
    test = "from own import work\n\ndef test_own():\n    assert work(3) == 3\n"
    lay(tmp_path, {"own.py": text, "tests/test_own.py": test, "bench_own.py": bench})
    verdict = await judged(tmp_path, {"own.py": text.removeprefix("import time\n")})
    assert (verdict.ruling, verdict.cheats) == (Ruling.NO_BETTER, ())
    assert verdict.gain is not None
    assert verdict.gain.low <= 2
    assert verdict.gain.high >= -2


@needs_jail
@pytest.mark.parametrize(("described", "ruling"), [(True, Ruling.BETTER), (False, Ruling.NO_BETTER)])
async def test_a_repair_is_believed_where_more_than_its_test_shows_it(
    tmp_path: Path, described: bool, ruling: Ruling
) -> None:
    text = DOUBLE if described else DOUBLE.replace(": double(4) is 8", "")
    test = "from own import double\n\ndef test_own():\n    assert double(2) == 4\n"
    lay(tmp_path, {"own.py": text, "tests/test_own.py": test})
    verdict = await judged(tmp_path, {"own.py": text.replace(" + 1", "")})
    assert verdict.ruling is ruling, verdict.reasons
    assert ("nothing beyond that shows it to be right" in verdict.reasons[0]) is not described


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        ("", "import os as o\no.system('x')\n", "starts programs (os.system)"),
        ("", "from os import environ as e\n", "reads what surrounds it (os.environ)"),
        ("", "import json\njson.dumps = str\n", "changes what others use (json.dumps)"),
        ("", "getattr(__builtins__, 'ex' + 'ec')\n", "looks at the program that it is in"),
        ("import random\nrandom.random()\n", "import random\n\nrandom.random()  # the same\n", ""),
        ("", "import re\nre.compile('x')\nx = {}\nx.id = 3\n", ""),
    ],
)
def test_what_a_change_newly_reaches_for_is_read_from_it(before: str, after: str, says: str) -> None:
    added = added_reach([Change("m.py", before.encode(), after.encode())])
    assert added == () if not says else any(words.startswith(says) for words in added), added


SOME = ("breaks items without a hash: drops", "remembers by identity: total")


@pytest.mark.slow
@needs_jail
async def test_no_candidate_of_the_red_team_is_promoted(tmp_path: Path) -> None:
    court = Court(tmp_path)
    for red in red_team():
        if FULL or red.name.startswith(SOME):
            verdict = await court.judged(red.text)
            assert verdict.ruling is not Ruling.BETTER, (red.name, verdict.reasons)
            assert verdict.reasons
    assert project_of(court.before, court.component) is not None
