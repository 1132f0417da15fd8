"""Approvals in the cockpit: the question, its scope, the inbox, plans to accept."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from flight import cockpit

from app.commands.settings import Settings
from engine.agent.steering.rules import PRESETS
from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.agents import Mode
from engine.core.approvals import Scope
from engine.core.plan import StepStatus
from tests.rounds import sizes
from widgets.dialogs.approvals import ApprovalDialog, PlanApprovalDialog
from widgets.dialogs.lists import InboxDialog

SIZES = sizes((80, 24), (160, 45))


def asking(home: Path) -> Settings:
    return Settings(home=home, approvals=PRESETS["ask-changes"])


@pytest.mark.parametrize("size", SIZES, ids=str)
async def test_a_question_opens_by_itself_and_its_scope_stands_there_before_it_is_given(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    async with cockpit(tmp_path / "ws", settings=asking(tmp_path), size=size) as flight:
        await flight.goal("make a directory 'made' and write 'hi' to made/a.txt")
        await flight.press("space")
        await flight.dialog(ApprovalDialog)
        assert flight.state.mode is Mode.WAITING
        await flight.shows("pilot-1 asks", "mkdir", "made", "it changes something", "allow once", "deny")
        await flight.press("s")  # as it stepped until now
        await flight.shows("a allows it once", "s, pressed again")
        await flight.press("s")
        await flight.shows("Until this session ends", "allows mkdir, only on made")
        await flight.press("escape", "g")
        await flight.shows("From now on, unasked", "allows mkdir, only on made")
        assert not flight.state.approvals.grants, "nothing is given before it is confirmed"
        await flight.press("enter")
        await flight.until(lambda: flight.state.approvals.grants, "the rule")
        await flight.until(lambda: flight.state.approvals.question is not None, "the next question")
        await flight.dialog(ApprovalDialog)
        await flight.shows("write", "made/a.txt")
        await flight.press("a")
        await flight.until(lambda: not flight.state.open_goals, "the goal's end")
        (grant,) = flight.state.approvals.grants
        assert (grant.scope, grant.rule.paths) == (Scope.ALWAYS, ("made",))


async def test_d_denies_with_a_reason_that_the_agent_sees(tmp_path: Path) -> None:
    async with cockpit(tmp_path / "ws", settings=asking(tmp_path)) as flight:
        await flight.goal("make a directory 'made'")
        await flight.press("space")
        await flight.dialog(ApprovalDialog)
        await flight.press("escape")
        await flight.no_dialog()
        await flight.press("d")
        await flight.dialog(ApprovalDialog)
        await flight.press(*"not here", "enter")
        await flight.until(lambda: flight.state.intervention is not None, "the failed step")
        assert "not here" in flight.state.failures[-1].message


async def test_hostile_arguments_are_shown_whole_and_do_nothing_on_the_screen(tmp_path: Path) -> None:
    hostile = "a\x1b]0;owned\x07\u202egnp.exe [bold red]x[/]"
    async with cockpit(tmp_path / "ws", settings=asking(tmp_path)) as flight:
        await flight.goal("make a directory 'made'")
        step = flight.next_step
        edit = {"command": "write", "args": {"path": "x.txt", "content": hostile}}
        await flight.type(f"edit {step} {json.dumps(edit)}")
        await flight.until(lambda: "x.txt" in flight.row(step), "the edited step")
        await flight.press("escape")
        await flight.press("space")
        await flight.dialog(ApprovalDialog)
        await flight.shows("[bold red]x[/]", "\\u001b]0;owned", "x.txt")
        assert "\x1b" not in flight.text
        assert "\u202e" not in flight.text


async def test_the_inbox_answers_questions_of_one_shape_together(tmp_path: Path) -> None:
    async with cockpit(tmp_path / "ws", settings=asking(tmp_path), size=(80, 24)) as flight:
        for name, folder in (("pilot-2", "src"), ("pilot-3", "other")):
            await flight.type(f"agent_create bdi_agent {name}")
            await flight.until(lambda name=name: name in flight.engine.agents, name)
            await flight.type(f"agent {name}")
            await flight.until(lambda name=name: flight.state.agent_id == name, name)
            await flight.goal(f"write 'x' to {folder}/{name}.txt")
            await flight.press("space")
            await flight.dialog(ApprovalDialog)
            await flight.press("escape")
            await flight.no_dialog()
        await flight.shows("✉ 2")
        await flight.press("A")
        await flight.dialog(InboxDialog)
        await flight.shows("2 ask for simple_coder.write", "pilot-2", "pilot-3", "approval")
        await flight.press("a")
        await flight.dialog(ApprovalDialog)
        await flight.shows("2 agents ask", "only on src/pilot-2.txt, other/pilot-3.txt")
        dialog = flight.app.screen
        assert isinstance(dialog, ApprovalDialog)
        dialog.field.value = "write paths=src/**"
        await flight.shows("not covered: pilot-3")
        await flight.press("enter")
        await flight.dialog(InboxDialog)
        await flight.shows("1 of 2 answered", "other/pilot-3.txt is outside of src/**")
        assert [need.agent for need in await flight.engine.inbox()] == ["pilot-3"]
        await flight.until(lambda: len(flight.app.controllers.inbox._needs) == 1, "the other one left")
        await flight.press("a")
        await flight.until(lambda: not flight.state.open_goals, "the answer in place")
        assert isinstance(flight.app.screen, InboxDialog)
        await flight.shows("Nothing needs you")
        await flight.press("escape")
        await flight.no_dialog()
        await flight.until(lambda: "✉" not in flight.text, "an empty inbox")


async def test_a_plan_is_accepted_with_its_envelope_and_runs_unasked(tmp_path: Path) -> None:
    async with cockpit(tmp_path / "ws", settings=asking(tmp_path), size=(100, 30)) as flight:
        await flight.goal("make a directory 'made' and write 'hi' to made/a.txt")
        await flight.press("V")
        await flight.dialog(PlanApprovalDialog)
        await flight.shows("Accept the plan of g1", "mkdir made", "paths=made|made/a.txt", "accept")
        await flight.press("y")
        await flight.until(lambda: "g1" in flight.state.approvals.accepted, "acceptance")
        await flight.type("insert write other.txt beside")
        await flight.press("escape", "space")
        await flight.dialog(ApprovalDialog)
        assert [step.status for step in flight.state.plans["g1"].steps[:2]] == [StepStatus.COMPLETED] * 2
        await flight.shows("leaves the envelope of g1", "other.txt is outside")
        await flight.press("a")
        await flight.until(lambda: not flight.state.open_goals, "the goal's end")
        assert len(await flight.journal(ev.ApprovalAsked)) == 1


async def test_a_learned_rule_is_taken_up_in_the_inbox_with_one_key_and_another_declined(
    tmp_path: Path,
) -> None:
    async with cockpit(tmp_path / "ws", settings=asking(tmp_path)) as flight:
        await flight.goal("write 'hi' to d/a.txt and write 'hi' to d/b.txt")
        await flight.press("space")
        for action in ("a1", "a2"):
            await flight.until(lambda: action in str(flight.state.approvals.question), action)  # noqa: B023
            await flight.dialog(ApprovalDialog)
            await flight.press("a")
        await flight.until(lambda: not flight.state.open_goals, "the goal's end")
        for key in ("d", "g"):
            await flight.engine.submit(cmd.ProposeRules(agent="pilot-1", needed=2))
            await flight.until(lambda: flight.state.approvals.proposals, "the proposal")
            await flight.press("escape", "A")
            await flight.dialog(InboxDialog)
            await flight.shows("allow write, only on d/*.txt", "answers alike")
            await flight.press(key)
            await flight.until(lambda: not flight.state.approvals.proposals, "the answer")
            await flight.press("escape")
            await flight.no_dialog()
            if key == "d":
                assert not flight.state.approvals.grants
                goal = cmd.AdoptGoal(agent="pilot-1", text="write 'hi' to d/c.txt")
                await flight.engine.submit(goal)
                await flight.dialog(ApprovalDialog)
                await flight.press("a")
                await flight.no_dialog()
                await flight.until(lambda: not flight.state.open_goals, "new evidence")
        (grant,) = flight.state.approvals.grants
        assert (grant.scope, grant.rule.paths) == (Scope.ALWAYS, ("d/*.txt",))
