"""The backlog: each thing once, the most urgent first, decided exactly once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest
from running_craft import Craft
from words import TEXT, WordAuditor, component, lay, plug

from app.projection.improve_text import sorted_items
from engine.core.campaigns import AddItem, ApplyCandidate, CancelJob, RollBack, SettleItem
from engine.core.improvement import (
    CampaignStatus,
    Concern,
    Finding,
    ItemStatus,
    JobStatus,
    MastermindSettings,
)
from engine.improve.backlog import is_duplicate

Reopen = Callable[..., Awaitable[Craft]]


def _add(suggestion: str, priority: int = 5, target: str = "texts", **more: object) -> AddItem:
    return AddItem.model_validate({"target": target, "suggestion": suggestion, "priority": priority, **more})


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("Make the mean faster", "make mean faster", True),
        ("mean() in stats.py:12 is slow (3.2 s)", "mean() in stats.py:40 is slow (4 s)", True),
        ("Speed up the mean", "Add a check to the reader", False),
        ("!!!", "!!!", True),
        ("!!!", "???", False),
        ("größere Puffer", "GRÖSSERE PUFFER", True),
    ],
)
def test_what_counts_as_the_same(one: str, other: str, same: bool) -> None:
    assert is_duplicate(one, other) is same


async def test_similar_suggestions_are_one_item_with_the_higher_priority(craft: Craft) -> None:
    """Behaviour 64."""
    await craft.do(_add("Make the mean of the lists faster", 4, evidence=["pilot:3"]))
    assert "i1 says the same" in await craft.do(
        _add("make the mean of lists faster!", 8, evidence=["pilot:9"])
    )
    await craft.do(_add("make the mean of lists faster", 2))
    await craft.do(_add("make the mean of lists faster", 2, target="other"))
    state = craft.mastermind.state
    assert list(state.items) == ["i1", "i2"]
    item = state.items["i1"]
    assert (item.priority, item.merged, item.evidence) == (8, 2, ("pilot:3", "pilot:9"))
    assert len(item.uid) == 16


async def test_findings_about_two_places_stay_two(craft: Craft) -> None:
    backlog = craft.mastermind.backlog
    first = Finding("texts", Concern.SPEED, "a is slow for long lists", path="a.py", name="a")
    assert backlog.add_finding(first).how == "added"
    assert backlog.add_finding(replace(first, line=90)).how == "merged"
    assert backlog.add_finding(replace(first, name="b")).how == "added"
    await craft.mastermind.stream.commit()


async def test_what_was_rejected_is_not_added_again_until_it_has_cooled_down(reopen: Reopen) -> None:
    craft = await reopen()
    await craft.do(_add("shorten the texts"))
    await craft.do(SettleItem(item="i1", approve=False, reason="they are fine"))
    assert "nothing was added" in await craft.do(_add("shorten the texts"), ok=False)
    craft = await reopen(MastermindSettings(cooldown_s=0.0))
    await craft.do(_add("shorten the texts"))
    assert list(craft.mastermind.state.items) == ["i1", "i2"]


async def test_the_order_is_priority_then_age(craft: Craft) -> None:
    for number, priority in enumerate((3, 9, 9, 1)):
        await craft.do(_add(f"suggestion number {'abcd'[number] * 5}", priority))
    assert [item.id for item in sorted_items(craft.mastermind.state)] == ["i2", "i3", "i1", "i4"]
    following = craft.mastermind.backlog.next()
    assert following is not None
    assert following.id == "i2"


async def test_a_unique_prefix_names_an_item_and_an_ambiguous_one_lists_candidates(craft: Craft) -> None:
    """Behaviour 11."""
    words = ("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa", "lambda")
    for word in words:
        await craft.do(_add(f"look after {word * 2}", critical=True))
    item = craft.mastermind.state.items["i3"]
    await craft.do(SettleItem(item=item.uid[:10], approve=True))
    assert craft.mastermind.state.items["i3"].status is ItemStatus.PENDING
    version = craft.mastermind.state.version
    common = next(
        uid[:1]
        for uid in (one.uid for one in craft.mastermind.state.items.values())
        if sum(other.uid.startswith(uid[:1]) for other in craft.mastermind.state.items.values()) > 1
    )
    told = await craft.do(SettleItem(item=common, approve=True), ok=False)
    assert "fits" in told
    assert "items: i" in told
    assert "no item 'zzz'" in await craft.do(SettleItem(item="zzz", approve=True), ok=False)
    assert craft.mastermind.state.version == version
    # An id counts before what begins like it: i1 is not i10.
    await craft.do(SettleItem(item="i1", approve=True))
    assert craft.mastermind.state.items["i10"].status is ItemStatus.PENDING_APPROVAL


async def test_a_critical_target_waits_while_other_work_goes_on_and_is_decided_once(craft: Craft) -> None:
    """Behaviour 66."""
    there = [component("mastermind"), component("texts")]
    plug(craft.mastermind, WordAuditor(there))
    await craft.do(_add("make the mastermind shorter", 10, target="mastermind"))
    await craft.do(_add("make the texts shorter", 2))
    job = await craft.job("coord_process_backlog")
    assert [one["item"] for one in job.answer["items"]] == ["i2"]
    assert craft.mastermind.state.items["i1"].status is ItemStatus.PENDING_APPROVAL
    await craft.do(SettleItem(item="i1", approve=True))
    assert "only what waits" in await craft.do(SettleItem(item="i1", approve=True), ok=False)
    assert craft.mastermind.state.items["i1"].decided_by == "operator:anna"
    await craft.do(SettleItem(item="i1", approve=False))
    assert "cannot be rejected" in await craft.do(SettleItem(item="i1", approve=False), ok=False)


async def test_the_backlog_does_not_grow_when_no_audit_can_be_made(craft: Craft) -> None:
    """Behaviour 65: the analyser's model is down."""
    plug(craft.mastermind, WordAuditor(down="the model does not answer"))
    job = await craft.job("coord_analyze")
    assert job.status is JobStatus.REFUSED
    assert "the model does not answer" in job.message
    assert not craft.mastermind.state.items
    job = await craft.job("coord_improve", "texts")
    assert job.status is JobStatus.FAILED
    assert "no audit could be made" in job.message
    assert craft.mastermind.state.campaigns["k1"].status is CampaignStatus.FAILED
    assert not craft.mastermind.state.items


async def test_autonomous_work_keeps_to_its_budget_and_applies_nothing(craft: Craft) -> None:
    lay(craft.workspace, "keep this this line", "and and that that")
    plug(craft.mastermind)
    await craft.job("coord_analyze")
    assert len(craft.mastermind.state.items) == 3
    job = await craft.job("coord_process_backlog", auto=True, candidates=3)
    assert job.status is JobStatus.NEEDS_OPERATOR
    assert job.message.endswith("the budget is used up")
    assert sum(len(one.candidates) for one in craft.mastermind.state.campaigns.values()) <= 4
    assert craft.mastermind.state.autonomous == ""
    assert (craft.workspace / TEXT).read_text() == "keep this this line"


async def test_autonomous_work_is_put_off_while_the_processor_is_busy(craft: Craft, reopen: Reopen) -> None:
    plug(craft.mastermind)
    await craft.job("coord_analyze")
    craft = await reopen(MastermindSettings(interval_s=0.0, busy_percent=0.0))
    plug(craft.mastermind)
    job = await craft.start("coord_process_backlog", auto=True)
    while not any(one.topic == "noted" and "waits" in one.text for one in craft.mastermind.state.log):
        await craft.mastermind.stream.changed()
    (why,) = [one.text for one in craft.mastermind.state.log if "the processor is" in one.text]
    assert why.endswith("% busy, and 0 % is the most")
    assert not craft.mastermind.state.campaigns
    await craft.do(CancelJob(job=job))
    job = await craft.job("coord_process_backlog")
    assert job.status is JobStatus.NEEDS_OPERATOR, "what is asked for is done all the same"


async def test_what_failed_rests_and_what_was_rolled_back_says_so(craft: Craft) -> None:
    proposer, _ = plug(craft.mastermind)
    await craft.job("coord_analyze")
    proposer.null = True
    job = await craft.job("coord_process_backlog")
    assert "no improvement found" in job.message
    assert craft.mastermind.state.items["i1"].status is ItemStatus.FAILED
    job = await craft.job("coord_process_backlog")
    assert "1 that failed rest" in job.message
    proposer.null = False
    await craft.do(_add("this stands there too often", 9))
    await craft.job("coord_process_backlog")
    await craft.do(ApplyCandidate(campaign="k2"))
    await craft.mastermind.wait(list(craft.mastermind.state.jobs)[-1])
    assert craft.mastermind.state.items["i2"].status is ItemStatus.COMPLETED
    await craft.do(RollBack())
    assert craft.mastermind.state.items["i2"].status is ItemStatus.ROLLED_BACK
    assert craft.mastermind.state.items["i2"].attempts == 1


async def test_an_item_in_progress_is_pending_again_after_a_kill(craft: Craft, reopen: Reopen) -> None:
    await craft.do(_add("shorten the texts"))
    craft.mastermind.backlog.move("i1", ItemStatus.IN_PROGRESS)
    await craft.mastermind.stream.commit()
    craft = await reopen()
    item = craft.mastermind.state.items["i1"]
    assert (item.status, item.message) == (ItemStatus.PENDING, "its campaign was cut off")


async def test_hostile_words_come_out_clean(craft: Craft) -> None:
    await craft.do(_add("red \x1b[31m text\u202e\nnext \x00 line", target="te\x1b]0;x\x07xts"))
    item = craft.mastermind.state.items["i1"]
    assert (item.target, item.suggestion) == ("texts", "red text next line")


async def test_what_an_applied_candidate_answers_is_closed_until_it_is_rolled_back(craft: Craft) -> None:
    plug(craft.mastermind)
    await craft.job("coord_analyze")
    await craft.job("coord_improve", "texts")
    await craft.do(ApplyCandidate(campaign="k1"))
    await craft.mastermind.wait("j3")
    item = craft.mastermind.state.items["i1"]
    assert (item.status, item.message) == (ItemStatus.COMPLETED, "k1.1 is applied")
    assert "nothing to work on" in (await craft.job("coord_process_backlog")).message
    await craft.do(RollBack())
    assert craft.mastermind.state.items["i1"].status is ItemStatus.ROLLED_BACK
