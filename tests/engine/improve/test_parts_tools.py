"""Tools written in the workspace: each is judged by what lies beside it, or not at all."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from engine.api.engine import Engine
from engine.core.campaigns import StartJob
from engine.core.improvement import (
    Campaign,
    CampaignStatus,
    Component,
    ComponentKind,
    JobRecord,
    JobStatus,
    Ruling,
)
from engine.improve.code.projects import project_of, tools
from engine.sandbox.policy import SandboxPolicy
from engine.sandbox.tier import JailRefusal, best_jail

SLOW = '''"""Takes doubles out."""


def once(items: list[int]) -> list[int]:
    seen = []
    for item in items:
        if item not in seen:
            seen.append(item)
    return seen
'''
BENCH = """from once import once


def bench_once(size):
    items = list(range(size)) * 2
    return lambda: once(items)
"""
WRONG = """def largest(items):
    best = items[0]
    for item in items:
        if item < best:
            best = item
    return best
"""
TEST = """from largest import largest


def test_one():
    assert largest([4]) == 4


def test_two():
    assert largest([1, 2]) == 2


def test_three():
    assert largest([3, 9, 4]) == 9
"""
FILES = {
    "once.py": SLOW,
    "bench_once.py": BENCH,
    "largest.py": WRONG,
    "test_largest.py": TEST,
    "greet.py": "def greet(name):\n    return f'hello {name}'\n",
}
needs_jail = pytest.mark.skipif(isinstance(best_jail(SandboxPolicy()), JailRefusal), reason="no jail here")


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[Engine]:
    lay(tmp_path, FILES)
    made = await Engine.open(tmp_path)
    yield made
    await made.close()


def lay(workspace: Path, files: dict[str, str]) -> None:
    place = workspace / "sandbox/tools"
    place.mkdir(parents=True)
    for name, text in files.items():
        (place / name).write_text(text)


async def improve(engine: Engine, ident: str) -> tuple[JobRecord, Campaign]:
    mastermind = await engine.mastermind()
    receipt = await engine.submit(StartJob(verb="coord_improve", argument=ident, seed=7))
    assert receipt.ok, receipt.message
    job = await mastermind.wait(receipt.data["job"])
    return job, list(mastermind.state.campaigns.values())[-1]


def test_each_tool_is_a_component_with_what_is_about_it(tmp_path: Path) -> None:
    lay(tmp_path, {**FILES, "test_more.py": "import greet\n"})
    found = {one.id: one for one in tools(tmp_path)}
    assert set(found) == {"tools/once", "tools/largest", "tools/greet"}
    assert {one.kind for one in found.values()} == {ComponentKind.TOOL}

    def beside(one: Component) -> tuple[tuple[str, ...], tuple[str, ...]]:
        project = project_of(tmp_path, one)
        assert project is not None
        return project.asked, project.benches

    assert beside(found["tools/once"]) == ((), ("bench_once.py",))
    assert beside(found["tools/largest"]) == (("test_largest.py",), ())
    assert beside(found["tools/greet"]) == (("test_more.py",), ())


def test_a_tool_of_a_project_is_a_module_of_it_alone(tmp_path: Path) -> None:
    lay(tmp_path, {**FILES, "pyproject.toml": ""})
    assert tools(tmp_path) == []


@needs_jail
async def test_a_tool_with_nothing_beside_it_cannot_be_judged_and_that_is_said(engine: Engine) -> None:
    job, campaign = await improve(engine, "tools/greet")
    assert job.status is JobStatus.DONE
    assert campaign.status is CampaignStatus.NO_IMPROVEMENT
    assert "tools/greet cannot be judged: it has neither tests nor a benchmark" in job.message
    assert "put test_greet.py beside it" in job.message


@pytest.mark.slow
@needs_jail
async def test_tools_are_mended_by_their_tests_and_made_faster_by_their_benchmarks(engine: Engine) -> None:
    for ident, mark in (("tools/largest", "tests"), ("tools/once", "faster")):
        job, campaign = await improve(engine, ident)
        assert job.status is JobStatus.NEEDS_OPERATOR, job.message
        chosen = campaign.candidate(campaign.chosen)
        assert chosen is not None
        assert chosen.verdict is not None
        assert chosen.verdict.ruling is Ruling.BETTER
        assert set(chosen.files) == {f"sandbox/{ident}.py"}
        mended = ("test_largest.py::test_three", "test_largest.py::test_two") if mark == "tests" else ()
        assert chosen.verdict.mended == mended
        print(job.message)
