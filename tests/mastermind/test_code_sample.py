"""The sample project has three defects: two are mended by rule, the third is listed with what shows it."""

from __future__ import annotations

import difflib
import random
import shutil
from pathlib import Path

import pytest

from engine.domain.improvement import Component, ComponentKind, Concern
from engine.mastermind.code.box import Box, Workshop
from engine.mastermind.code.findings import examine, found_in
from engine.mastermind.code.projects import find_projects, projects
from engine.mastermind.code.proposing import propose
from engine.sandbox import JailRefusal, SandboxPolicy, best_jail

HERE = Path(__file__).parent
needs_jail = pytest.mark.skipif(isinstance(best_jail(SandboxPolicy()), JailRefusal), reason="no jail here")


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    shutil.copytree(HERE / "sample", tmp_path / "sandbox" / "sample")
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
    workshop, component = Workshop.standing(scratch=workspace), projects(workspace)[0]
    project = find_projects(workspace)[0]
    seen = await examine(workshop, workspace, project)
    found = await found_in(workspace, component, seen, workshop)
    assert [(one.concern, one.name, one.path, one.line) for one in found] == [
        (
            Concern.TEST,
            "tests/test_stats.py::test_median_of_an_even_number",
            "sandbox/sample/tests/test_stats.py",
            21,
        ),
        (Concern.ROBUSTNESS, "parse_order", "sandbox/sample/orders.py", 22),
        (Concern.SPEED, "membership:customers", "sandbox/sample/orders.py", 42),
    ]
    failing, unchecked, slow = found
    assert "assert 3.5 == 2.5" in failing.text
    assert "parse_order('') raised IndexError" in unchecked.evidence
    assert "says it raises OrderError" in unchecked.text
    assert any("bench_customers grows with the power" in line for line in slow.evidence)

    proposals = await propose(workspace, component, found, random.Random(1), workshop=workshop, seen=seen)
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
    async with Box(workshop, workspace, project, {**repair.files, **faster.files}) as box:
        after = await box.tests()
    assert {said["outcome"] for said in after.values()} == {"passed"}
    assert len(after) == len(seen.tests) == 11


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
    workshop, project = Workshop.standing(scratch=scratch), find_projects(workspace)[0]
    async with Box(workshop, workspace, project) as box:
        read = await box.tests(["tests/test_stats.py::test_reads"])
        said = await box.work({"mode": "tests", "tests": []}, 30.0)
    (outcome,) = read.values()
    assert outcome["outcome"] == "failed"
    assert "secret.txt" in outcome["message"]
    assert "tests" not in said
    assert "ended without a word" in said["problems"][0]
    assert not list(scratch.iterdir())


def test_nothing_is_found_where_there_is_no_project(tmp_path: Path) -> None:
    assert projects(tmp_path) == []
    nobody = Component("nobody", ComponentKind.PROJECT, "nobody", ("sandbox/nobody.py",))
    assert nobody.id not in {one.id for one in projects(tmp_path)}
