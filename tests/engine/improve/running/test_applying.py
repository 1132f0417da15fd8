"""Applying: all of it or nothing, only what was looked at, and back to the same tree."""

from __future__ import annotations

import asyncio
import os
import stat
import sys
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path

import pytest
from running_craft import Craft
from words import OTHER, TEXT, lay, plug

from engine.core.campaigns import ApplyCandidate, RollBack
from engine.core.improvement import CampaignStatus, Component, JobRecord, JobStatus, Proposal
from engine.improve.judge.judge import Judge
from engine.sandbox.policy import Network, SandboxPolicy
from tests.rewinding import tree_hash

Reopen = Callable[..., Awaitable[Craft]]
NEW = "sandbox/texts/deep/er/new.txt"


async def _flown(craft: Craft) -> JobRecord:
    plug(craft.mastermind)
    job = await craft.job("coord_improve", "texts")
    assert job.status is JobStatus.NEEDS_OPERATOR
    return job


async def _applied(craft: Craft, campaign: str = "k1", diff: str = "") -> JobRecord:
    receipt = await craft.engine.submit(ApplyCandidate(campaign=campaign, diff=diff), operator="anna")
    assert receipt.ok, receipt.message
    return await craft.mastermind.wait(receipt.data["job"])


async def test_applied_and_rolled_back_gives_the_same_tree(craft: Craft) -> None:
    (craft.workspace / TEXT).chmod(0o751)
    before = tree_hash(craft.workspace / "sandbox")
    await _flown(craft)
    job = await _applied(craft)
    assert job.status is JobStatus.DONE, job.message
    assert (craft.workspace / TEXT).read_text() == "keep this line"
    assert stat.S_IMODE((craft.workspace / TEXT).stat().st_mode) == 0o751
    assert tree_hash(craft.workspace / "sandbox") != before
    told = await craft.do(RollBack())
    assert "the files are as before" in told
    assert tree_hash(craft.workspace / "sandbox") == before
    campaign = craft.mastermind.state.campaigns["k1"]
    assert campaign.status is CampaignStatus.ROLLED_BACK
    assert campaign.application is not None
    assert campaign.application.tree_before != campaign.application.tree_after
    assert "nothing to roll back" in await craft.do(RollBack(), ok=False)
    assert "only an applied campaign" in await craft.do(RollBack(campaign="k1"), ok=False)


async def test_what_changed_since_the_difference_was_shown_is_not_applied_and_asked_again(
    craft: Craft,
) -> None:
    """Behaviour 67."""
    await _flown(craft)
    (craft.workspace / TEXT).write_text("keep this this other line")
    job = await _applied(craft)
    assert job.status is JobStatus.NEEDS_OPERATOR
    assert f"{TEXT} changed since the difference was made" in job.message
    assert (craft.workspace / TEXT).read_text() == "keep this this other line"
    campaign = craft.mastermind.state.campaigns["k1"]
    assert campaign.status is CampaignStatus.NEEDS_OPERATOR
    assert campaign.application is None
    job = await craft.job("campaign_resume", "k1")
    assert job.status is JobStatus.NEEDS_OPERATOR
    job = await _applied(craft)
    assert job.status is JobStatus.DONE
    assert (craft.workspace / TEXT).read_text() == "keep this other line"


async def test_another_difference_than_the_one_that_was_seen_is_refused(craft: Craft) -> None:
    await _flown(craft)
    told = await craft.do(ApplyCandidate(campaign="k1", diff="0" * 64), ok=False)
    assert "another difference" in told
    assert "no campaign 'k9'" in await craft.do(ApplyCandidate(campaign="k9"), ok=False)


async def test_what_fails_its_validation_is_taken_back_to_the_hash(craft: Craft) -> None:
    """Behaviour 69: every touched file is as before by hash, new directories are gone, and it failed."""
    proposer, comparer = plug(craft.mastermind)

    def other(_component: Component, _tree: Path) -> Iterable[Proposal]:
        return [Proposal("all", "operator", {TEXT: "keep this", OTHER: None, NEW: "keep"})]

    component = (await craft.mastermind.components())[0]
    auditor = craft.mastermind.parts.auditors[0]
    auditor.there = [  # type: ignore[attr-defined]
        type(component)(component.id, component.kind, component.title, (*component.paths, NEW))
    ]
    proposer.other = other
    before = tree_hash(craft.workspace / "sandbox")
    await craft.job("coord_improve", "texts")
    comparer.fails_when = lambda _text: True
    job = await _applied(craft)
    assert job.status is JobStatus.FAILED
    assert "its validation failed: keep is gone; the files are as before" in job.message
    assert tree_hash(craft.workspace / "sandbox") == before
    assert craft.mastermind.state.campaigns["k1"].status is CampaignStatus.FAILED


async def test_an_older_campaign_is_rolled_back_unless_its_files_moved_on(craft: Craft) -> None:
    lay(craft.workspace, "keep this this line", "and and that")
    proposer, _ = plug(craft.mastermind)

    def only(path: str) -> Callable[[Component, Path], Iterable[Proposal]]:
        text = {TEXT: "keep this line", OTHER: "and that"}[path]
        return lambda _component, _tree: [Proposal(path, "operator", {path: text})]

    before = (craft.workspace / TEXT).read_text()
    for number, path in enumerate((TEXT, OTHER), 1):
        proposer.other = only(path)
        await craft.job("coord_improve", "texts", seed=number)
        await _applied(craft, f"k{number}")
    told = await craft.do(RollBack(campaign="k1"))
    assert "others of the component have changed since" in told
    assert (craft.workspace / TEXT).read_text() == before
    assert (craft.workspace / OTHER).read_text() == "and that"
    (craft.workspace / OTHER).write_text("mine")
    told = await craft.do(RollBack(), ok=False)
    assert f"{OTHER} was changed since, by hand or by an agent" in told
    assert (craft.workspace / OTHER).read_text() == "mine"


async def test_a_link_in_the_way_is_not_followed(
    craft: Craft, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("outside")
    (outside / "one.txt").write_text("keep this this line")
    await _flown(craft)
    texts = craft.workspace / "sandbox/texts"
    texts.rename(craft.workspace / "sandbox/moved")
    texts.symlink_to(outside)
    job = await _applied(craft)
    assert job.status in (JobStatus.REFUSED, JobStatus.NEEDS_OPERATOR), job.message
    assert (outside / "one.txt").read_text() == "keep this this line"
    assert sorted(one.name for one in outside.iterdir()) == ["one.txt"]


async def test_a_disk_that_refuses_leaves_nothing_half_written(
    craft: Craft, monkeypatch: pytest.MonkeyPatch
) -> None:
    proposer, _ = plug(craft.mastermind)
    files = {TEXT: "keep this line", OTHER: "that"}
    proposer.other = lambda _component, _tree: [Proposal("both", "operator", files)]
    before = tree_hash(craft.workspace / "sandbox")
    await craft.job("coord_improve", "texts")
    real, calls = os.replace, []

    def full(*args: object, **kwargs: object) -> None:
        if "src_dir_fd" in kwargs:
            calls.append(args)
            if len(calls) == 2:
                raise OSError(28, "No space left on device")
        real(*args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "replace", full)
    job = await _applied(craft)
    assert job.status is JobStatus.FAILED
    assert "No space left on device; the files are as before" in job.message
    assert tree_hash(craft.workspace / "sandbox") == before


async def test_agents_cannot_apply(craft: Craft) -> None:
    said = [tool.id + " ".join(tool.commands) for tool in craft.engine.registry]
    assert not [one for one in said if "mastermind" in one or "coord" in one or "apply" in one]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "when", "ends"),
    [
        (1, "before", CampaignStatus.NEEDS_OPERATOR),
        (2, "before", CampaignStatus.NEEDS_OPERATOR),
        (2, "after", CampaignStatus.NEEDS_OPERATOR),
        (3, "after", CampaignStatus.ROLLED_BACK),
        (4, "after", CampaignStatus.ROLLED_BACK),
    ],
)
async def test_killed_while_it_writes_or_goes_back_the_tree_is_as_before(
    tmp_path: Path, reopen: Reopen, number: int, when: str, ends: CampaignStatus
) -> None:
    lay(tmp_path, "keep this this line", "and and that")
    before = tree_hash(tmp_path / "sandbox")
    craft = await reopen()
    proposer, _ = plug(craft.mastermind)
    files = {TEXT: "keep this line", OTHER: "and that"}
    proposer.other = lambda _component, _tree: [Proposal("both", "operator", files)]
    await craft.job("coord_improve", "texts")
    await craft.close()
    here = Path(__file__)
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        *(str(here.with_name("applier.py")), str(tmp_path), str(number), when),
        env={**os.environ, "PYTHONPATH": f"{here.parent}:{here.parents[4]}"},
    )
    assert await child.wait() == -9
    craft = await reopen()
    assert tree_hash(tmp_path / "sandbox") == before
    campaign = craft.mastermind.state.campaigns["k1"]
    assert campaign.status is ends
    assert "the session ended while its files were written; the files are as before" in campaign.message
    if ends is CampaignStatus.NEEDS_OPERATOR:
        plug(craft.mastermind)
        assert (await _applied(craft)).status is JobStatus.DONE
        assert (tmp_path / OTHER).read_text() == "and that"


def test_the_judge_holds_programs_as_the_sandbox_does_when_a_campaign_begins(tmp_path: Path) -> None:
    policies = [SandboxPolicy()]
    judge = Judge(tmp_path, lambda: policies[-1])
    policies.append(SandboxPolicy().with_network(Network.PORTS))
    assert judge.policy == policies[0], "not in the middle of something"
    judge.prepare()
    assert judge.policy == policies[1]
