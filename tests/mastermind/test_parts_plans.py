"""Plan libraries that are not the explorer's: looked for and judged by recorded goals, run again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from engine.actions.saving import SnapshotRule
from engine.domain import commands as cmd
from engine.domain.improvement import CampaignStatus, Ruling
from engine.domain.mastermind import Campaign, JobRecord, JobStatus
from engine.domain.mastermind_commands import StartJob
from engine.engine import Engine, EngineConfig
from engine.mastermind.search.recorded_goals import exact, read_recordings, rerun

NOTE = """// Copies a file, and looks around for nothing.
@note
+!note(F) <- ls(All); read(F, Text); write("out.txt", Text).
"""
LEAN = """@note
+!note(F) <- read(F, Text); write("out.txt", Text).
"""
GOALS = 16


async def opened(workspace: Path) -> Engine:
    return await Engine.open(workspace, config=EngineConfig(snapshots=SnapshotRule.OFF))


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[Engine]:
    (tmp_path / "plans").mkdir()
    (tmp_path / "plans/note.asl").write_text(NOTE)
    made = await opened(tmp_path)
    yield made
    await made.close()


async def pursue(engine: Engine, agent: str, program: str, goals: list[str]) -> None:
    """Have an agent of a program pursue goals, one after the other."""
    config = {"program": program, "source": "note.asl", "generation": {"on": False}}
    assert (await engine.submit(cmd.CreateAgent(agent=agent, agent_type="asl_agent", config=config))).ok
    for text in goals:
        adopted = await engine.submit(cmd.AdoptGoal(agent=agent, text=text))
        assert adopted.ok, adopted.message
        await engine.submit(cmd.Run(agent=agent, ask=False))
        async with asyncio.timeout(20):
            async for event in engine.events(0):
                if event.stream == agent and event.kind == "goal.ended" and at_rest(engine, agent):
                    break


def at_rest(engine: Engine, agent: str) -> bool:
    return not engine._agents[agent].state.open_goals


def laid(workspace: Path, count: int) -> list[str]:
    for number in range(count):
        (workspace / f"sandbox/f{number}.txt").write_text(f"words {number}")
    return [f'note("f{number}.txt")' for number in range(count)]


async def improve(engine: Engine, ident: str) -> tuple[JobRecord, Campaign]:
    mastermind = await engine.mastermind()
    receipt = await engine.submit(StartJob(verb="coord_improve", argument=ident, seed=7))
    assert receipt.ok, receipt.message
    job = await mastermind.wait(receipt.data["job"])
    return job, list(mastermind.state.campaigns.values())[-1]


async def test_goals_are_run_again_exactly_and_what_leaves_the_record_is_said(engine: Engine) -> None:
    await pursue(engine, "scribe", NOTE, [*laid(engine.workspace, 2), 'note("none.txt")'])
    (recording,) = await asyncio.to_thread(read_recordings, engine.workspace)
    assert [one.status for one in recording.goals] == ["achieved", "achieved", "failed"]
    cycles, why = exact([recording], NOTE)
    assert (len(cycles), why) == (3, ())
    saved = [done.cycles for done in rerun(recording, LEAN)]
    assert all(new < old for new, old in zip(saved, cycles.values(), strict=True))
    for program, said in (
        ('+!note(F) <- read(F, T); write("out.txt", T); write("more.txt", T).', "would answer"),
        ("+!note(F) <- read(F, T).", 'write {"content": "words 0", "path": "out.txt"} is left out'),
        ('+!note(F) <- write("out.txt", "words 0"); read(F, T).', "would answer"),
    ):
        (done,) = rerun(recording, program)
        assert said in done.left


async def test_a_record_ends_where_something_came_in_from_outside(engine: Engine) -> None:
    goals = laid(engine.workspace, 3)
    await pursue(engine, "scribe", NOTE, goals[:2])
    call = cmd.CallTool(
        agent="scribe", tool="simple_coder", command="write", args={"path": "x", "content": ""}
    )
    assert (await engine.submit(call)).ok
    async with asyncio.timeout(20):
        async for event in engine.events(0):
            if event.kind == "action.finished" and '"Wrote 0 bytes' in event.body:
                break
    (recording,) = await asyncio.to_thread(read_recordings, engine.workspace)
    assert len(recording.goals) == 2
    assert recording.cut.startswith("the operator did something in between (scribe:")


async def test_a_library_without_enough_of_a_record_is_refused_in_a_sentence(engine: Engine) -> None:
    job, campaign = await improve(engine, "plans/note")
    assert campaign.status is CampaignStatus.NO_IMPROVEMENT
    assert "no recorded run with plans/note.asl: let agents that were created with it" in job.message
    await pursue(engine, "scribe", NOTE, laid(engine.workspace, 2))
    job, campaign = await improve(engine, "plans/note")
    assert job.status is JobStatus.DONE
    assert "plans/note.asl has 2 recorded goals, no two alike, that can be run again exactly" in job.message


async def test_a_step_that_serves_nothing_is_found_and_a_lean_library_is_left_alone(engine: Engine) -> None:
    await pursue(engine, "scribe", NOTE, laid(engine.workspace, GOALS))
    job, campaign = await improve(engine, "plans/note")
    assert job.status is JobStatus.NEEDS_OPERATOR, job.message
    chosen = campaign.candidate(campaign.chosen)
    assert chosen is not None
    assert chosen.verdict is not None
    assert chosen.verdict.ruling is Ruling.BETTER
    assert chosen.title == "@note without ls(All)"
    gain = chosen.verdict.gain
    assert gain is not None
    assert gain.pairs == 8
    print(job.message)
    (engine.workspace / "plans/note.asl").write_text(LEAN)
    job, campaign = await improve(engine, "plans/note")
    assert campaign.status is CampaignStatus.NO_IMPROVEMENT, job.message
