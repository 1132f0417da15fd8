"""Thresholds, specifications and words for a model: what helps is found, and nothing where all is well."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from engine.agent.steering.undo import last_change
from engine.api.engine import Engine
from engine.core import commands as cmd
from engine.core.campaigns import ApplyCandidate, RollBack, StartJob
from engine.core.improvement import Campaign, CampaignStatus, JobRecord, JobStatus, Ruling
from engine.improve.ports import Split
from engine.improve.search.settings import SpecError, read_config, spec_text
from engine.improve.search.trials import MODEL_TASKS, RECIPE_TASKS, drawn_tasks
from tests.engine.with_a_model import Opened, act, opening
from tests.messages_server import MessagesServer, Reply, object_call
from tests.messages_server.server import Seen

HINT = "Replace words by the command replace."
"""What the scripted model has to be told to do it right."""
BETTER = f"{{builtin}}\n{HINT}\n"
CALM = "{builtin}\nBe calm.\n"
HASTY = {"recovery": {"max_consecutive_errors": 1}}
"""It gives up at the first failure."""


def planned(goal: str, told: str) -> dict[str, Any]:
    """A scripted mind: it copies, moves and makes, counts wrong, and replaces when it is told how."""
    if found := re.match(r"copy the file (\S+) to (\S+) and", goal):
        return {"plan": [act("copy", source=found[1], target=found[2])]}
    if found := re.match(r"rename the file (\S+)/(\S+) to (\S+) in", goal):
        return {"plan": [act("move", source=f"{found[1]}/{found[2]}", target=f"{found[1]}/{found[3]}")]}
    if found := re.match(r"create the directory (\S+) and in it the file (\S+) with the text '(.*)'", goal):
        path = f"{found[1]}/{found[2]}"
        return {"plan": [act("mkdir", path=found[1]), act("write", 2, path=path, content=found[3])]}
    if found := re.match(r"in the file (\S+) put the word (\S+) in the place of the word (\S+)", goal):
        if HINT in told:
            return {"plan": [act("replace", path=found[1], old=found[3], new=found[2])]}
        return {"plan": [act("write", path=found[1], content=found[2])]}
    found = re.match(r"write how many lines the file (\S+) has to (\S+), as", goal)
    assert found, goal
    return {"plan": [act("read", path=found[1]), act("write", 2, path=found[2], content="many")]}


def mind(*proposals: dict[str, Any]) -> Callable[[Seen], Reply]:
    """Answers whatever is asked: proposals once, plans by `planned`, every decision by giving up."""
    left = list(proposals)

    def reply(seen: Seen) -> Reply:
        tools = {tool["name"] for tool in seen.body.get("tools", ())}
        told = "".join(block["text"] for block in seen.body["system"])
        if "propose_changes" in tools:
            changes, left[:] = list(left), []
            return object_call("propose_changes", changes=changes)
        if "propose_plan" in tools:
            last = seen.body["messages"][0]["content"][-1]["text"]
            return object_call("propose_plan", **planned(last.partition("The goal to plan for:\n")[2], told))
        return object_call("give_up", reason="it is not made for this")

    return reply


def change(text: str, title: str) -> dict[str, Any]:
    return {"title": title, "why": "tried", "files": [{"path": "prompts/planning.md", "text": text}]}


@pytest.fixture
async def opened(tmp_path: Path) -> AsyncIterator[Opened]:
    async with opening(tmp_path) as open_:
        yield open_


async def improve(engine: Engine, component: str, **said: object) -> tuple[JobRecord, Campaign]:
    mastermind = await engine.mastermind()
    asked = {"verb": "coord_improve", "argument": component, "seed": 7, **said}
    receipt = await engine.submit(StartJob.model_validate(asked))
    assert receipt.ok, receipt.message
    job = await mastermind.wait(receipt.data["job"])
    return job, list(mastermind.state.campaigns.values())[-1]


async def settle(engine: Engine, command: ApplyCandidate | RollBack) -> None:
    receipt = await engine.submit(command)
    assert receipt.ok, receipt.message
    if job := receipt.data.get("job"):
        done = await (await engine.mastermind()).wait(job)
        assert done.status is JobStatus.DONE, done.message


async def test_thresholds_that_give_up_too_soon_are_mended_and_good_ones_are_left(
    opened: Opened, tmp_path: Path
) -> None:
    engine = await opened()
    _, usual = await improve(engine, "thresholds")
    assert (usual.status, usual.candidates) == (CampaignStatus.NO_IMPROVEMENT, ())
    (tmp_path / "thresholds.toml").write_text("[recovery]\nmax_consecutive_errors = 1\n")
    job, campaign = await improve(engine, "thresholds")
    assert job.status is JobStatus.NEEDS_OPERATOR, job.message
    assert campaign.candidates[0].title == "recovery.max_consecutive_errors 1 → 3"
    await settle(engine, ApplyCandidate(campaign=campaign.id))
    assert "max_consecutive_errors = 3" in (tmp_path / "thresholds.toml").read_text()


async def test_a_living_agent_takes_its_better_specification_up_and_goes_back_with_it(
    opened: Opened, tmp_path: Path
) -> None:
    engine = await opened()
    for name, config in (("hasty", HASTY), ("calm", {})):
        assert (await engine.submit(cmd.CreateAgent(agent=name, config=config))).ok
    _, nothing = await improve(engine, "agent:calm")
    assert nothing.status is CampaignStatus.NO_IMPROVEMENT
    job, campaign = await improve(engine, "agent:hasty")
    assert job.status is JobStatus.NEEDS_OPERATOR, job.message
    await settle(engine, ApplyCandidate(campaign=campaign.id))
    assert (await engine.view("hasty")).config.max_consecutive_errors == 3
    assert (tmp_path / "agents" / "hasty.json").is_file()
    await settle(engine, RollBack(campaign=campaign.id))
    assert (await engine.view("hasty")).config.max_consecutive_errors == 1
    assert not (tmp_path / "agents" / "hasty.json").exists()


async def test_settings_of_an_agent_are_changed_checked_and_undone(opened: Opened) -> None:
    engine = await opened()
    assert (await engine.submit(cmd.CreateAgent(agent="pilot", config=HASTY))).ok
    for wrong, said in (
        ({"recovery": {"max_consecutive_errors": 0}}, "max_consecutive_errors"),
        ({"approvals": {}}, "no setting 'approvals'"),
    ):
        refused = await engine.submit(cmd.ConfigureAgent(agent="pilot", settings=wrong))
        assert not refused.ok
        assert said in refused.message
    changed = {"recovery": {"max_consecutive_errors": 5}}
    assert (await engine.submit(cmd.ConfigureAgent(agent="pilot", settings=changed))).ok
    assert (await engine.view("pilot")).config.max_consecutive_errors == 5
    offer = await last_change(engine.store, engine.past("pilot"), await engine.view("pilot"))
    assert offer.words == "recovery as before"
    assert (await engine.submit(offer.as_command("pilot"))).ok
    assert (await engine.view("pilot")).config.max_consecutive_errors == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[]", "is a JSON object with config, description, id, type"),
        ("{", "is no usable JSON"),
        (spec_text("other", {"type": "bdi_agent"}), "is of 'other'"),
        (
            spec_text("pilot", {"type": "bdi_agent", "meta": {"approvals": {}}}),
            "'approvals' is other than before",
        ),
    ],
)
def test_a_specification_may_loosen_nothing(text: str, said: str) -> None:
    with pytest.raises(SpecError, match=re.escape(said)):
        read_config(text, "pilot", {"type": "bdi_agent", "meta": {}})


def test_no_two_splits_share_a_task_and_the_same_seed_gives_the_same() -> None:
    for kinds in (RECIPE_TASKS, MODEL_TASKS):
        goals = {split: {task.goal for task in drawn_tasks(kinds, f"{split} 1", 30)} for split in Split}
        assert sum(map(len, goals.values())) == len(set.union(*goals.values()))
        assert drawn_tasks(kinds, "work 1", 30) == drawn_tasks(kinds, "work 1", 30)


async def test_without_a_model_words_are_refused(opened: Opened) -> None:
    engine = await opened()
    receipt = await engine.submit(StartJob(verb="coord_improve", argument="prompts"))
    job = await (await engine.mastermind()).wait(receipt.data["job"])
    assert job.status is JobStatus.REFUSED
    assert "only a model can propose changes of prompts, and there is no model" in job.message


async def test_words_that_help_are_promoted_and_words_that_do_nothing_are_not(
    opened: Opened, tmp_path: Path
) -> None:
    async with MessagesServer([mind(change(CALM, "calm"), change(BETTER, "say how"))], repeat=True) as server:
        engine = await opened(server)
        broke, _ = await improve(engine, "prompts")
        assert "this campaign may spend nothing" in broke.message
        assert not server.requests
        poor, _ = await improve(engine, "prompts", usd=0.0001)
        assert "no improvement" in poor.message
        job, campaign = await improve(engine, "prompts", usd=5.0)
        rulings = [(one.title, one.verdict and one.verdict.ruling) for one in campaign.candidates]
        assert rulings == [("calm", Ruling.NO_BETTER), ("say how", Ruling.BETTER)]
        assert job.status is JobStatus.NEEDS_OPERATOR, job.message
        better = campaign.candidates[-1].verdict
        assert better is not None
        assert better.mended
        assert all("replace in" in name for name in better.mended)
        assert 0 < campaign.usd < 5
        asked = len(server.requests)
        await settle(engine, ApplyCandidate(campaign=campaign.id))
        assert len(server.requests) == asked
    assert (tmp_path / "prompts/planning.md").read_text() == BETTER
