"""The sample project has three defects: two are mended by rule, the third is listed with what shows it."""

from __future__ import annotations

import difflib
import random
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from app.cli.examples import copy_example
from engine.core.improvement import Component, ComponentKind, Concern, Proposal, Ruling
from engine.improve.code.findings import examine_project, findings_of_examined
from engine.improve.code.plugin import mechanical_proposals
from engine.improve.code.projects import find_projects, project_box, projects, run_tests
from engine.improve.code.suite import project_suite
from engine.improve.judge.box import BoxError, Boxes
from engine.improve.judge.judge import Judge
from engine.improve.ports import ProposalRequest, Split
from engine.sandbox.policy import SandboxPolicy
from engine.sandbox.tier import JailRefusal, best_jail

HERE = Path(__file__).parent
needs_jail = pytest.mark.skipif(isinstance(best_jail(SandboxPolicy()), JailRefusal), reason="no jail here")


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    copy_example("sample", tmp_path)
    return tmp_path


def changed_lines(before: str, after: str) -> list[str]:
    """The lines of a difference, without its head."""
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), n=0, lineterm="")
    return [line for line in lines if line[:1] in "+-" and line[:3] not in ("+++", "---")]


def test_projects_and_modules_are_components(workspace: Path) -> None:
    (workspace / "sandbox" / "sample" / ".venv").mkdir()
    (workspace / "sandbox" / "sample" / ".venv" / "hidden.py").write_text("x = 1\n")
    (workspace / "sandbox" / "notes.py").write_text("x = 1\n")
    (workspace / "sandbox" / "sample" / "outside.py").symlink_to("/etc/passwd")
    found = {component.id: component for component in projects(workspace)}
    assert list(found) == ["sample", "sample/orders.py", "sample/report.py", "sample/stats.py"]
    assert found["sample"].kind is ComponentKind.PROJECT
    assert found["sample/stats.py"].kind is ComponentKind.MODULE
    assert found["sample/stats.py"].paths == ("sandbox/sample/stats.py",)
    assert "stats" in found["sample/stats.py"].aliases
    assert not any("test" in path or "bench" in path for path in found["sample"].paths)


@needs_jail
@pytest.mark.slow
async def test_the_failing_test_and_the_slow_loop_are_mended_and_the_missing_check_is_listed(
    workspace: Path,
) -> None:
    boxes, component = Boxes(workspace), projects(workspace)[0]
    project = find_projects(workspace)[0]
    seen = await examine_project(boxes, workspace, project)
    found = await findings_of_examined(workspace, component, seen, boxes)
    assert [(one.concern, one.name, one.path, one.line) for one in found] == [
        (
            Concern.TEST,
            "tests/test_stats.py::test_median_of_an_even_number",
            "sandbox/sample/tests/test_stats.py",
            20,
        ),
        (Concern.ROBUSTNESS, "parse_order", "sandbox/sample/orders.py", 22),
        (Concern.SPEED, "membership:customers", "sandbox/sample/orders.py", 42),
    ]
    failing, unchecked, slow = found
    assert "assert 3.5 == 2.5" in failing.text
    assert "parse_order('') raised IndexError" in unchecked.evidence
    assert "says it raises OrderError" in unchecked.text
    assert any("bench_customers grows with the power" in line for line in slow.evidence)

    asked = ProposalRequest(component, workspace, found, random.Random(1))
    proposals = await mechanical_proposals(asked, seen, boxes)
    assert not any(unchecked in one.answers for one in proposals)
    repair = next(one for one in proposals if failing in one.answers)
    faster = next(one for one in proposals if slow in one.answers)
    before = {path: (workspace / path).read_text() for path in component.paths}
    stats, orders = "sandbox/sample/stats.py", "sandbox/sample/orders.py"
    assert changed_lines(before[stats], repair.files[stats] or "") == [
        "-    return (ordered[middle] + ordered[middle + 1]) / 2",
        "+    return (ordered[middle] + ordered[middle - 1]) / 2",
    ]
    assert changed_lines(before[orders], faster.files[orders] or "") == [
        "+    seen_set = set()",
        "-        if order.customer not in seen:",
        "+        if order.customer not in seen_set:",
        "+            seen_set.add(order.customer)",
    ]
    mended = {path: str(text).encode() for path, text in {**repair.files, **faster.files}.items()}
    async with project_box(boxes, workspace, project, mended) as box:
        after = await run_tests(box)
    assert {said["outcome"] for said in after.values()} == {"passed"}
    assert len(after) == len(seen.tests) == 10


@needs_jail
async def test_a_box_tells_what_ended_early_and_keeps_the_host_out_of_reach(workspace: Path) -> None:
    """Behaviour 51, for the tests of a project: what lies outside cannot be read by them."""
    tests = workspace / "sandbox" / "sample" / "tests"
    secret = workspace / "secret.txt"
    secret.write_text("secret")
    (tests / "test_orders.py").unlink()
    (tests / "test_stats.py").write_text(
        f"import pathlib\ndef test_reads():\n    pathlib.Path({str(secret)!r}).read_text()\n"
        "def test_ends():\n    import os; os._exit(0)\n"
    )
    scratch = workspace / "scratch"
    scratch.mkdir()
    boxes, project = Boxes(scratch), find_projects(workspace)[0]
    async with project_box(boxes, workspace, project) as box:
        read = await run_tests(box, ["tests/test_stats.py::test_reads"])
        with pytest.raises(BoxError, match="its process ended with 0 before it reported"):
            await run_tests(box)
    (outcome,) = read.values()
    assert outcome["outcome"] == "failed"
    assert "secret.txt" in outcome["message"]
    assert not list(scratch.iterdir())


def test_nothing_is_found_where_there_is_no_project(tmp_path: Path) -> None:
    assert projects(tmp_path) == []
    nobody = Component("nobody", ComponentKind.PROJECT, "nobody", ("sandbox/nobody.py",))
    assert nobody.id not in {one.id for one in projects(tmp_path)}


@needs_jail
@pytest.mark.slow
async def test_the_suite_tells_a_right_fix_from_one_that_only_passes_the_test(workspace: Path) -> None:
    held_out = workspace / ".pilothouse" / "held_out"
    shutil.copytree(HERE / "held_out", held_out)
    (component, *_), boxes = projects(workspace), Boxes(workspace)
    suite = await project_suite(workspace, component, boxes=boxes, seed=7, held_out=held_out)
    again = await project_suite(workspace, component, boxes=boxes, seed=7, held_out=held_out)
    assert (suite.key, suite.asked) == (again.key, again.asked)
    assert [check.test for check in suite.checks(Split.WORK)][
        -1
    ] == "tests/test_stats.py::test_moving_average"
    sealed = {path for path in suite.material(Split.SEALED) if "held_out" in path}
    assert sealed == {"sandbox/sample/held_out/test_held_out.py"}
    assert not any("held_out" in path for path in suite.material(Split.WORK))
    timed = {check.family: check.measured for check in suite.asked if check.id.startswith("bench_")}
    assert timed == {"bench_customers": True, "bench_totals": False}
    for path in (*component.paths, "sandbox/sample/notes.txt"):
        assert not suite.owns(path)
    for path in ("tests/test_stats.py", "bench_orders.py", "held_out/x.py", "pyproject.toml", "conftest.py"):
        assert suite.owns(f"sandbox/sample/{path}")

    stats, asked = "sandbox/sample/stats.py", [one for one in suite.asked if one.family == "stats:median"]
    suite = replace(suite, asked=tuple(asked), measure=None)
    text = (workspace / stats).read_text()
    right = text.replace("ordered[middle + 1]", "ordered[middle - 1]")
    by_heart = "    if values == [4.0, 1.0, 3.0, 2.0]:\n        return 2.5\n    ordered = "
    learned = text.replace("    ordered = ", by_heart)
    judge = Judge(workspace / "judge")
    before = workspace / "before"
    shutil.copytree(workspace / "sandbox", before / "sandbox")
    mean, other = text.replace("sum(values) /", "1.0 * sum(values) /"), workspace / "other"
    shutil.copytree(before, other)
    (other / stats).write_text(mean)
    drawn, again_drawn, others = (suite.drawn(before, other, seed) for seed in "112")
    assert drawn == again_drawn != others
    assert {check.family for check in drawn if check.drawn} == {"stats:mean", "stats:moving_average"}
    assert all(check.split is Split.SEALED for check in drawn)
    rulings = []
    for number, changed in enumerate((right, learned)):
        after = workspace / f"after{number}"
        shutil.copytree(before, after)
        (after / stats).write_text(changed)
        proposal = Proposal("median", "test", {stats: changed})
        verdict = await judge.compare(before, after, component, proposal, suite, seed=3)
        rulings.append(verdict.ruling)
    assert rulings == [Ruling.BETTER, Ruling.REJECTED]
