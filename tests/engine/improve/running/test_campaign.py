"""Campaigns: from the audit to the operator, the same for the same seed, never paid for twice."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path

from running_craft import Craft
from words import OTHER, TEXT, WordAuditor, component, lay, plug

from engine.core.campaigns import ApplyCandidate, CancelJob, DeclineCampaign, RollBack
from engine.core.improvement import CampaignStatus, Component, ItemStatus, JobStatus, Proposal, Ruling

Reopen = Callable[..., Awaitable[Craft]]


async def test_what_is_better_waits_for_the_operator_with_its_difference(craft: Craft) -> None:
    plug(craft.mastermind)
    job = await craft.job("coord_improve", "texts")
    assert job.status is JobStatus.NEEDS_OPERATOR, job.message
    assert (craft.workspace / TEXT).read_text() == "keep this this line"
    campaign = craft.mastermind.state.campaigns["k1"]
    assert campaign.status is CampaignStatus.NEEDS_OPERATOR
    assert campaign.chosen == "k1.1"
    assert await craft.mastermind.diff("k1.1") == (
        f"--- {TEXT}\n+++ {TEXT}\n@@ -1 +1 @@\n-keep this this line\n\\ No newline at end of file\n"
        "+keep this line\n\\ No newline at end of file\n"
    )
    assert [one.title for one in campaign.candidates] == [f"{TEXT}: this once"]


async def test_several_improvements_are_built_up_and_judged_as_a_whole(craft: Craft) -> None:
    lay(craft.workspace, "keep this this this line", "and and that")
    plug(craft.mastermind)
    job = await craft.job("evolve", "make the texts shorter")
    assert job.status is JobStatus.NEEDS_OPERATOR
    campaign = craft.mastermind.state.campaigns["k1"]
    whole = campaign.candidate(campaign.chosen)
    assert whole is not None
    assert whole.origin == "campaign"
    assert set(whole.files) == {TEXT, OTHER}
    assert whole.verdict is not None
    assert whole.verdict.gain is not None
    assert whole.verdict.gain.mean >= 2
    assert whole.parent
    await craft.do(ApplyCandidate(campaign="k1", diff=whole.diff))
    assert (await craft.mastermind.wait("j2")).status is JobStatus.DONE
    assert (craft.workspace / OTHER).read_text() == "and that"


async def test_the_same_seed_gives_the_same_campaign(craft: Craft) -> None:
    lay(craft.workspace, "keep this this line", "and and that that")
    plug(craft.mastermind)
    for _ in range(2):
        await craft.job("coord_improve", "texts", seed=11)
    one, other = craft.mastermind.state.campaigns.values()
    assert [c.files for c in one.candidates] == [c.files for c in other.candidates]
    assert [c.verdict for c in one.candidates] == [c.verdict for c in other.candidates]
    assert all(candidate.again for candidate in other.candidates)
    assert other.seconds == 0


async def test_nothing_better_is_a_plain_answer(craft: Craft) -> None:
    """Behaviour 70: nothing found is said as that, and no success at 100 %."""
    lay(craft.workspace, "keep this line")
    plug(craft.mastermind)
    job = await craft.job("coord_improve", "texts")
    assert job.status is JobStatus.DONE
    assert job.message == "nothing was found, so nothing was tried"
    assert craft.mastermind.state.campaigns["k1"].status is CampaignStatus.NO_IMPROVEMENT
    looked = await craft.job("coord_analyze")
    assert looked.message == "1 components were audited, nothing was found"
    assert looked.answer["findings"] == 0


async def test_a_null_candidate_is_not_promoted_and_its_finding_is_kept_in_the_backlog(craft: Craft) -> None:
    proposer, _ = plug(craft.mastermind)
    proposer.null = True
    job = await craft.job("coord_improve", "texts")
    assert job.status is JobStatus.DONE
    assert "no improvement found: 1 candidates were judged" in job.message
    (item,) = craft.mastermind.state.items.values()
    assert item.evidence == (f"{TEXT}:1",)


async def test_a_candidate_that_breaks_what_held_is_shown_with_its_reason(craft: Craft) -> None:
    proposer, _ = plug(craft.mastermind)
    proposer.other = lambda _component, _tree: [Proposal("shorter", "operator", {TEXT: "this"})]
    await craft.job("coord_improve", "texts")
    (candidate,) = craft.mastermind.state.campaigns["k1"].candidates
    assert candidate.verdict is not None
    assert candidate.verdict.ruling is Ruling.BROKEN
    assert candidate.verdict.broken == ("keep",)


async def test_a_candidate_that_touches_undeclared_files_is_blocked(craft: Craft) -> None:
    """Behaviour 68: it is rejected before anything is tried, and nothing of it is written."""
    proposer, comparer = plug(craft.mastermind)
    (craft.workspace / "sandbox/texts/three.txt").write_text("keep")
    hostile = (
        "sandbox/texts/three.txt",
        "pilothouse.toml",
        "../out",
        "/etc/passwd",
        ".pilothouse/journal.db",
    )

    def other(_component: Component, _tree: Path) -> Iterable[Proposal]:
        return [Proposal(f"n{n}", "model:x", {path: "keep"}) for n, path in enumerate(hostile)]

    proposer.other = other
    await craft.job("coord_improve", "texts")
    candidates = craft.mastermind.state.campaigns["k1"].candidates
    assert len(candidates) == len(hostile)
    assert all(one.verdict is not None and one.verdict.ruling is Ruling.REJECTED for one in candidates)
    assert not comparer.asked
    assert (craft.workspace / "sandbox/texts/three.txt").read_text() == "keep"
    assert not (craft.workspace.parent / "out").exists()


async def test_the_budget_ends_a_campaign(craft: Craft) -> None:
    proposer, comparer = plug(craft.mastermind)

    def many(_component: Component, _tree: Path) -> Iterable[Proposal]:
        return [Proposal(f"n{n}", "model:x", {TEXT: f"keep this this line{n}"}) for n in range(50)]

    proposer.other = many
    job = await craft.job("coord_improve", "texts", candidates=4)
    assert "4 candidates were judged; the budget is used up" in job.message
    assert len(comparer.asked) == 4
    assert len(craft.mastermind.state.campaigns["k1"].candidates) == 4


async def test_a_directive_is_resolved_with_its_rule_and_two_close_readings_are_asked(craft: Craft) -> None:
    """Behaviours 33, 36 and 39: the component and the rule that found it; two close ones are asked."""
    there = [component("base_gen"), component("notes"), component("note_taking")]
    plug(craft.mastermind, WordAuditor(there))
    job = await craft.job("evolve", "improve the base generator")
    campaign = craft.mastermind.state.campaigns["k1"]
    assert campaign.component is not None
    assert campaign.component.id == "base_gen"
    assert "generator for gen" in campaign.rule
    job = await craft.job("evolve", "improve foo_tool and note_taking_tool")
    assert job.answer["component"] == "note_taking"
    assert "nothing here is called foo_tool" in job.answer["rule"]
    job = await craft.job("evolve", "improve base gen and note taking")
    assert job.status is JobStatus.NEEDS_OPERATOR
    assert [one["component"] for one in job.answer["choices"]] == ["note_taking", "base_gen"]
    chosen = str(job.answer["choices"][0]["component"])
    job = await craft.job("evolve", "improve them", component=chosen)
    assert job.answer["component"] == chosen
    plug(craft.mastermind)
    job = await craft.job("coord_improve", "texst now")
    assert job.message == "no component is named in 'texst now'; components: texts"
    plug(craft.mastermind, WordAuditor(there))
    job = await craft.job("evolve", "improve foo_tool")
    assert job.status is JobStatus.REFUSED
    assert "components: base_gen, note_taking, notes" in job.message


async def test_what_was_judged_before_an_interruption_is_not_judged_again(
    craft: Craft, reopen: Reopen
) -> None:
    lay(craft.workspace, "keep this this line", "and and that that")
    _, comparer = plug(craft.mastermind)
    comparer.wait = asyncio.Event()
    job = await craft.start("coord_improve", "texts")
    comparer.wait.set()
    while not any(one.verdict for one in craft.mastermind.state.campaigns.get("k1", _NONE).candidates):
        await craft.mastermind.stream.changed()
    comparer.wait.clear()
    await craft.do(CancelJob(job=job))
    paid = craft.mastermind.state.campaigns["k1"].seconds
    judged = sum(one.verdict is not None for one in craft.mastermind.state.campaigns["k1"].candidates)
    assert craft.mastermind.state.campaigns["k1"].status is CampaignStatus.CANCELLED
    craft = await reopen()
    _, comparer = plug(craft.mastermind)
    done = await craft.job("campaign_resume", "k1")
    campaign = craft.mastermind.state.campaigns["k1"]
    assert done.status is JobStatus.NEEDS_OPERATOR, done.message
    titles = [one.title for one in campaign.candidates]
    assert len(titles) == len(set(titles)), "what is the same again is the same candidate"
    assert all(one.verdict is not None for one in campaign.candidates[:judged])
    assert campaign.seconds > paid
    assert len({title for title, sealed in comparer.asked if sealed}) == len(comparer.asked) / 2


async def test_a_campaign_that_was_left_is_no_part_of_the_next(craft: Craft, reopen: Reopen) -> None:
    """Behaviour 19: its goal stays its own, also after reopening, until it is asked for by its id."""
    lay(craft.workspace, "keep this this line", "and and that that")
    _, comparer = plug(craft.mastermind)
    comparer.wait = asyncio.Event()
    job = await craft.start("evolve", "make the first text shorter")
    while "k1" not in craft.mastermind.state.campaigns:
        await craft.mastermind.stream.changed()
    await craft.do(CancelJob(job=job))
    await craft.mastermind.wait(job)
    craft = await reopen()
    left = craft.mastermind.state.campaigns["k1"]
    plug(craft.mastermind)
    done = await craft.job("evolve", "make the texts shorter")
    assert done.status is JobStatus.NEEDS_OPERATOR, done.message
    campaigns = craft.mastermind.state.campaigns
    assert list(campaigns) == ["k1", "k2"]
    assert (campaigns["k1"], campaigns["k1"].status) == (left, CampaignStatus.CANCELLED)
    assert campaigns["k2"].directive == "make the texts shorter"


async def test_declining_rejects_the_item_and_changes_nothing(craft: Craft) -> None:
    plug(craft.mastermind)
    await craft.job("coord_analyze")
    job = await craft.job("coord_process_backlog")
    assert job.status is JobStatus.NEEDS_OPERATOR
    assert craft.mastermind.state.items["i1"].status is ItemStatus.IN_PROGRESS
    await craft.do(DeclineCampaign(campaign="k1", reason="it reads worse"))
    assert craft.mastermind.state.items["i1"].status is ItemStatus.REJECTED
    await craft.do(DeclineCampaign(campaign="k1"), ok=False)
    await craft.do(RollBack(), ok=False)
    assert (craft.workspace / TEXT).read_text() == "keep this this line"


class _NONE:
    candidates = ()
