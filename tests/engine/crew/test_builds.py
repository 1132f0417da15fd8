"""Agents built in an open workspace: the built-in ones, registered by events, proved, cancelled, repaired."""

from __future__ import annotations

import asyncio
import json
import shutil
import signal
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from app.commands.command_runner import run_command_in
from engine.agent.shared import EngineConfig
from engine.api.engine import Engine
from engine.core import crew_commands as cc
from engine.crew.builder.findings import BUILDER_VERSION, PendingBuild, Status
from engine.crew.builds import Builds
from engine.crew.crew import Crew
from engine.planning.library.plan_library import shipped_agents
from tests.engine.agent.engine_flight import journal_holds_together
from tests.engine.crew.builder.corpus import laid, lay, plain, skill
from tests.engine.crew.builder.folders import build
from tests.engine.crew.builder.test_builder import KILLED
from tests.patience import PATIENCE_S
from tests.rounds import rounds

IDS = (
    *("bmc-wizard", "decision-debate", "deep-research", "devil", "jtbd", "judge", "larry"),
    *("minto-pyramid", "pws-validation", "scenario-analysis", "six-hats", "synthesizer"),
)

FEW = ("larry", "six-hats", "bmc-wizard")
BUILT = sorted(IDS, key=FEW.__contains__, reverse=True)[: rounds(len(FEW), full=len(IDS))]
"""Some are built whenever tests run, all in `make endurance`."""


class House:
    """An open workspace with its crew."""

    def __init__(self, engine: Engine, crew: Crew, builds: Builds) -> None:
        self.engine, self.crew, self.builds = engine, crew, builds

    async def do(self, command: Any, *, ok: bool = True) -> Any:
        receipt = await self.engine.submit(command)
        assert receipt.ok is ok, receipt.message
        return receipt

    def source(self, agent: str) -> str:
        return self.crew.state.agents[agent].source


@asynccontextmanager
async def house(workspace: Path) -> AsyncIterator[House]:
    engine = await Engine.open(workspace, config=EngineConfig())
    try:
        crew = await engine.crew()
        assert crew.builds is not None
        yield House(engine, crew, crew.builds)
    finally:
        await engine.close()


async def test_built_in_agents_are_there_once_with_their_whole_text_and_the_workspaces_go_first(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "skills" / "larry"
    shutil.copytree(next(one for one in shipped_agents() if one.name == "larry"), folder)
    async with house(tmp_path / "ws") as on:
        agents = on.crew.state.agents
        assert tuple(agents) == IDS
        assert all(
            one.source.startswith(f"built-in {BUILDER_VERSION}-") and not one.warnings
            for one in agents.values()
        )
        for shipped in shipped_agents():
            text = (shipped / "SKILL.md").read_text(encoding="utf-8")
            assert text.endswith(agents[shipped.name].spec.instructions.system)
        await on.do(cc.RemoveAgent(who="synthesizer"))
        result = await on.builds.build(PendingBuild(folder))
        assert (result.status, result.spec.version) == (Status.BUILT, "1.0.0")
        assert agents["larry"].warnings == ("it goes before the built-in agent of this id",)
        assert not on.crew.needs
        assert (agents["larry"].runs, on.crew.state.finished(), on.crew.state.clarity) == (0, (), {})
        version = on.crew.state.version
    async with house(tmp_path / "ws") as on:
        assert on.crew.state.version == version, "nothing is registered again"
        assert on.source("larry") == "agents/larry"
        assert "synthesizer" not in on.crew.state.agents, "what the operator took out stays out"
        said = (await on.do(cc.RemoveAgent(who="larry"))).message
        assert said == "larry of the workspace is removed; the built-in one answers again"
        assert on.source("larry").startswith("built-in")
    await journal_holds_together(tmp_path / "ws")


@pytest.mark.parametrize(
    "name", sorted(IDS, key=FEW.__contains__, reverse=True)[: rounds(len(FEW), full=len(IDS))]
)
async def test_every_built_in_agent_is_built_in_seven_phases(tmp_path: Path, name: str) -> None:
    folder = next(one for one in shipped_agents() if one.name == name)
    async with house(tmp_path) as on:
        result = await on.builds.build(PendingBuild(folder))
        assert (result.status, len(result.phases), result.findings) == (Status.BUILT, 7, ())
        assert on.builds.places.agent(name).joinpath("agent.yaml").is_file()
        assert not list(on.crew.state.open())


async def test_a_build_is_events(tmp_path: Path) -> None:
    """Line 55, with the manager."""
    folder = laid(tmp_path / "skills", "comma-tools")
    async with house(tmp_path / "ws") as on:
        first = await on.builds.build(PendingBuild(folder))
        assert (first.status, on.source("comma-tools")) == (Status.BUILT, "agents/comma-tools")
        (build,) = on.crew.state.builds.values()
        assert (build.state, build.agent, [one["passed"] for one in build.phases]) == (
            "built",
            "comma-tools",
            [True] * 7,
        )
        assert "comma-tools" in on.crew.state.agents
        assert (await on.builds.build(PendingBuild(folder))).status is Status.UP_TO_DATE

        (folder / "notes.md").write_text("changed", encoding="utf-8")
        second = await on.builds.build(PendingBuild(folder))
        assert (second.status, second.spec.version) == (Status.BUILT, "1.0.1")
    await journal_holds_together(tmp_path / "ws")


async def test_the_words_of_the_bar_build_as_jobs_that_can_be_cancelled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = laid(tmp_path / "skills", "comma-tools")
    engine = await Engine.open(tmp_path / "ws", config=EngineConfig())
    try:
        code, answer, text = await run_command_in(engine, f"build {folder} --dry-run")
        assert (code, answer["status"], answer["agent"]) == (0, "done", "comma-tools")
        assert "nothing was written" in text
        code, _, text = await run_command_in(engine, f"agent_create {folder}", dry=True)
        assert (code, "builds an agent of a skill in seven phases" in text) == (0, True)
        code, _, text = await run_command_in(engine, f"agent_create {folder}")
        assert (code, "built comma-tools 1.0.0" in text) == (0, True)
        code, _, text = await run_command_in(engine, f"build {folder}/nowhere")
        assert (code, "is no folder with a SKILL.md" in text) == (1, True)

        mastermind, crew = await engine.mastermind(), await engine.crew()
        before = len(crew.state.builds)
        (folder / "notes.md").write_text("changed", encoding="utf-8")
        over = threading.Event()
        monkeypatch.setattr("engine.crew.builder.builder.read_agent", lambda _folder: over.wait(PATIENCE_S))
        line = asyncio.create_task(run_command_in(engine, f"build {folder}"))
        while len(crew.state.builds) == before or len(list(crew.state.builds.values())[-1].phases) < 5:
            await crew.stream.changed()
        line.cancel()
        with pytest.raises(asyncio.CancelledError):
            await line
        over.set()
        job = list(mastermind.state.jobs)[-1]
        assert (await mastermind.wait(job)).status == "cancelled"
        last = list(crew.state.builds.values())[-1]
        assert (last.state, crew.state.agents["comma-tools"].spec.version) == ("cancelled", "1.0.0")
        assert len(last.phases) == 5, "it was reading its files back"
        assert not list((tmp_path / "ws" / ".builds").iterdir())
    finally:
        await engine.close()


@pytest.mark.slow
async def test_what_a_dead_process_was_registering_is_repaired_when_the_crew_is_opened(
    tmp_path: Path,
) -> None:
    """A process is killed before anybody is told of what it swapped in."""
    folder = laid(tmp_path / "skills", "comma-tools")
    workspace = tmp_path / "ws"
    async with house(workspace) as on:
        await on.builds.build(PendingBuild(folder))
    (folder / "notes.md").write_text("changed", encoding="utf-8")
    dying = await _started(KILLED, str(workspace), str(folder), "1.0.1")
    assert await dying.wait() == -signal.SIGKILL
    assert list((workspace / ".builds").glob("*.former"))
    async with house(workspace) as on:
        assert not list((workspace / ".builds").glob("*.former"))
        assert on.crew.state.agents["comma-tools"].spec.version == "1.0.1"
        assert not list(on.crew.state.open())
    await journal_holds_together(workspace)


async def _started(code: str, *given: str) -> asyncio.subprocess.Process:
    root = Path(__file__).parents[3]
    return await asyncio.create_subprocess_exec(sys.executable, "-c", code, *given, cwd=root)


async def test_a_sidecars_parts_are_not_looked_for_in_the_text_and_the_operator_is_no_stranger(
    tmp_path: Path,
) -> None:
    sidecar = {
        "type": "guided",
        "steps": [{"id": "a", "title": "A"}],
        "handoff": {"routing": {"can_be_called_by": ["user", "orchestrator"]}},
    }
    folder = lay(
        tmp_path / "steps", {"SKILL.md": skill(plain("steps")), "agent.yaml": json.dumps(sidecar).encode()}
    )
    result = await build(tmp_path / "ws", folder, dry_run=True)
    assert (result.status, [one.code for one in result.findings]) == (Status.DRY_RUN, [])
