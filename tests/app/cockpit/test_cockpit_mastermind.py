"""Mastermind in the cockpit: the bar is free at once, what runs is seen, what is better is applied by key."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from flight import Flight, cockpit

from engine.core.improvement import CampaignStatus, ItemStatus, JobStatus
from engine.improve.ports import JobRequest, JobResult, Progress
from tests.engine.improve.running.words import OTHER, TEXT, WordAuditor, component, lay, plug
from tests.rounds import sizes
from widgets.base.dialog import ConfirmDialog
from widgets.dialogs.campaign import CampaignDialog
from widgets.dialogs.lists import BacklogDialog, InboxDialog, JobsDialog
from widgets.dialogs.preview import PreviewDialog
from widgets.panes.command_bar import CommandBar


def bar(flight: Flight) -> CommandBar:
    return flight.app.query_one("#command", CommandBar)


@pytest.mark.parametrize("size", sizes((80, 24), (160, 45)))
async def test_a_campaign_is_previewed_looked_at_applied_and_rolled_back(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    lay(tmp_path / "ws")
    async with cockpit(tmp_path / "ws", size=size) as flight:
        mastermind = await flight.engine.mastermind()
        plug(mastermind)
        text = flight.engine.root / "texts/one.txt"
        before = text.read_text()
        await flight.press("colon", *"improve the texts ?", "enter")
        await flight.dialog(PreviewDialog)
        await flight.shows("improve the texts", "texts is its id", "nothing is done yet")
        assert not mastermind.state.jobs
        await flight.press("enter")
        await flight.dialog(CampaignDialog)
        await flight.shows("Campaign k1 on texts", "? needs you", "better", "a apply")
        await flight.press("enter")
        await flight.shows("+keep this line")
        await flight.press("backspace", "u")
        await flight.shows("it is not applied")
        await flight.press("a")
        await flight.dialog(ConfirmDialog)
        assert text.read_text() == before
        await flight.press("y")
        await flight.shows("✓ applied", "u roll back")
        assert text.read_text() == "keep this line"
        await flight.press("u")
        await flight.shows("↶ rolled back")
        assert text.read_text() == before
        assert "✓ rolled back" not in flight.text


async def test_a_long_command_leaves_the_bar_free_and_is_cancelled_by_key(flight: Flight) -> None:
    """Behaviour 12."""
    mastermind = await flight.engine.mastermind()
    cut = asyncio.Event()

    async def long(asked: JobRequest, progress: Progress) -> JobResult:
        progress.tell(3, 12, "at the third")
        try:
            await asyncio.Event().wait()
        finally:
            cut.set()
        return JobResult(JobStatus.DONE, "never")

    mastermind.register("evolve", long, heavy=True)
    await flight.type("evolve everything")
    await flight.says("j1 begins")
    await flight.shows("j1 evolve 3/12")
    await flight.type("believe colour green")
    await flight.says("colour believed")
    await flight.press("escape", "T")
    await flight.dialog(JobsDialog)
    await flight.shows("▶ j1", "▓▓▓░", "at the third")
    await flight.press("x")
    await flight.until(lambda: mastermind.state.jobs["j1"].status is JobStatus.CANCELLED, "the end")
    assert cut.is_set()
    await flight.shows("■ j1", "cancelled")
    assert "✓ j1" not in flight.text


async def test_a_command_that_raises_leaves_the_cockpit_alive_with_an_id(flight: Flight) -> None:
    """Behaviour 4."""
    mastermind = await flight.engine.mastermind()

    async def broken(asked: JobRequest, progress: Progress) -> JobResult:
        raise RuntimeError("boom")

    mastermind.register("coord_analyze", broken)
    await flight.type("coord_analyze why?")
    await flight.says("j1 coord_analyze failed: RuntimeError: boom", "error")
    ident = mastermind.state.jobs["j1"].error
    assert ident in flight.message
    assert ident in (flight.engine.workspace / ".pilothouse/mastermind.log").read_text()
    assert bar(flight).message[1] == "error"

    def breaks(_agent: object) -> None:
        raise RuntimeError("worse")

    flight.engine.waiting = breaks
    await flight.type("status")
    await flight.says("RuntimeError: worse (error e", "faults.log has the rest")
    await flight.type("believe colour green")
    await flight.says("colour believed")


@pytest.mark.parametrize("size", sizes((80, 24), (120, 35)))
async def test_the_backlog_is_approved_rejected_and_worked_on_by_key(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    lay(tmp_path / "ws")
    async with cockpit(tmp_path / "ws", size=size) as flight:
        mastermind = await flight.engine.mastermind()
        plug(mastermind)
        await flight.press("L")
        await flight.dialog(BacklogDialog)
        await flight.shows("The backlog is empty")
        await flight.press("escape")
        await flight.type("coord_analyze")
        await flight.says("j1 coord_analyze done", "1 added")
        await flight.type("suggest !9 mastermind.toml be careful")
        await flight.says("i2 is in the backlog, pending approval")
        await flight.press("escape", "L")
        await flight.dialog(BacklogDialog)
        await flight.shows("? i2", "1 wait for your approval", "nothing is tried before you approve it")
        await flight.press("a")
        await flight.shows("i2 is approved", "· i2")
        await flight.press("d")
        await flight.shows("i2 is rejected")
        await flight.press("home", "a")
        await flight.shows("only what waits for approval can be approved")
        await flight.press("p")
        await flight.until(
            lambda: any(
                campaign.status is CampaignStatus.NEEDS_OPERATOR and campaign.chosen
                for campaign in mastermind.state.campaigns.values()
            ),
            "its campaign",
        )
        await flight.press("home", "enter")
        await flight.dialog(CampaignDialog)
        await flight.shows("Campaign k1 on texts")
        await flight.press("d")
        await flight.dialog(ConfirmDialog)
        await flight.press("y")
        await flight.shows("■ declined")


async def test_a_job_that_ends_while_a_campaign_is_opened_does_not_take_its_place(tmp_path: Path) -> None:
    lay(tmp_path / "ws")
    async with cockpit(tmp_path / "ws") as flight:
        plug(await flight.engine.mastermind())
        await flight.type("coord_analyze")
        await flight.says("j1 coord_analyze done", "1 added")
        await flight.type("coord_process_backlog")
        await flight.says("j2 coord_process_backlog needs you")
        await flight.until(lambda: len(flight.app.screen_stack) == 2, "its question")
        await flight.press("escape")
        await flight.no_dialog()
        await flight.press("escape", "L")
        await flight.dialog(BacklogDialog)
        campaigns = flight.app.controllers.campaigns
        campaigns.on_backlog_dialog_campaign("i1")
        campaigns.job_over("j2")
        await flight.dialog(CampaignDialog)
        await flight.press("P")
        await flight.shows("Gains in ", "interval")


async def test_what_is_typed_is_explained_and_completed(flight: Flight) -> None:
    await flight.press("colon", *"agent_delete ")
    await flight.shows("agent_delete ID — remove an agent", "agent_delete pilot-1")
    for _ in "agent_delete ":
        await flight.press("backspace")
    await flight.press(*"evolve")
    await flight.until(lambda: flight.app.controllers.mastermind.part is not None, "an open Mastermind")
    await flight.until(lambda: flight.app.controllers.mastermind._components, "components")
    await flight.press("space", *"reci")
    await flight.until(lambda: any("recipes" in one.text for one in bar(flight).completions), "a component")
    await flight.press("ctrl+o")
    await flight.dialog(PreviewDialog)
    await flight.press("escape")
    await flight.until(lambda: bar(flight).input.value == "evolve reci", "the line as it was")


async def test_a_wish_that_is_no_command_is_shown_as_it_is_understood(flight: Flight) -> None:
    await flight.type("make the recipes better")
    await flight.dialog(PreviewDialog)
    await flight.shows("evolve make the recipes better", "recipes is its id")
    await flight.press("escape")
    await flight.no_dialog()
    assert not (await flight.engine.mastermind()).state.jobs


async def test_of_two_close_readings_the_operator_picks_one(tmp_path: Path) -> None:
    lay(tmp_path / "ws")
    async with cockpit(tmp_path / "ws") as flight:
        mastermind = await flight.engine.mastermind()
        there = (component("alpha", TEXT), component("beta", OTHER))
        plug(mastermind, WordAuditor(there))
        await flight.type("evolve --seed 7 alpha and beta")
        await flight.dialog(PreviewDialog)
        await flight.shows("it has several readings", "which one is meant?", "alpha", "beta")
        assert not mastermind.state.campaigns
        await flight.press("escape", "escape", "A")
        await flight.dialog(InboxDialog)
        await flight.shows("question", "evolve alpha and beta")
        await flight.press("enter")
        await flight.dialog(PreviewDialog)
        await flight.press("down", "enter")
        await flight.until(lambda: "k1" in mastermind.state.campaigns, "a campaign")
        chosen = mastermind.state.campaigns["k1"].component
        assert chosen is not None
        assert chosen.id == "beta"
        assert mastermind.state.campaigns["k1"].seed == 7


async def test_steps_of_a_deployment_are_done_once_they_are_approved(flight: Flight) -> None:
    await flight.type("deploy create 2 agents that make the directory src")
    await flight.dialog(ConfirmDialog)
    await flight.shows("Do these", "src")
    assert flight.engine.agents == ("pilot-1",)
    await flight.press("y")
    await flight.until(lambda: len(flight.engine.agents) == 3, "two agents more")


async def test_the_inbox_has_what_mastermind_needs_and_it_is_answered_there(tmp_path: Path) -> None:
    lay(tmp_path / "ws")
    async with cockpit(tmp_path / "ws") as flight:
        mastermind = await flight.engine.mastermind()
        plug(mastermind)
        await flight.type("suggest !9 mastermind.toml be careful")
        await flight.says("i1 is in the backlog, pending approval")
        await flight.type("improve texts")
        await flight.dialog(CampaignDialog)
        await flight.press("escape", "escape", "A")
        await flight.dialog(InboxDialog)
        await flight.shows("Mastermind", "campaign", "k1.1 is better", "backlog", "be careful")
        await flight.press("end", "a")
        await flight.until(
            lambda: mastermind.state.items["i1"].status is ItemStatus.PENDING, "an approved item"
        )
        await flight.shows("i1 is approved")
        await flight.press("home", "enter")
        await flight.dialog(CampaignDialog)
        await flight.press("s")
        await flight.shows("shadow of k1.1: better")
        await flight.press("d")
        await flight.dialog(ConfirmDialog)
        await flight.press("y")
        campaigns = mastermind.state.campaigns
        await flight.until(
            lambda: campaigns["k1"].status is CampaignStatus.DECLINED, "the campaign is declined"
        )
        assert await flight.engine.inbox() == ()
