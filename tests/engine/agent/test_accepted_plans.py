"""Accepted plans with a model: a re-plan waits, a denial is told, done is shown or refused."""

from __future__ import annotations

from pathlib import Path

from engine_flight import Flight
from helm_flight import action, helm, told

from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.agents import Mode
from engine.core.goals import GoalStatus
from engine.core.plan import StepStatus
from engine.core.state import AgentState
from engine.inquiry.inbox import NeedKind, needs_of
from tests.messages_server import call, object_call, plan_call
from tests.patience import PATIENCE_S

FIRST = plan_call(action("A", "write", path="a.txt", content="1"), action("B", "read", path="nowhere.txt"))
DECIDES = {"style": "decide"}


def another(path: str) -> object:
    return plan_call(action("C", "write", path=path, content="2"))


async def drifted(flight: Flight) -> AgentState:
    """The agent after its accepted plan has failed and it made another one."""
    await flight.do(cmd.SetApprovals, policy="ask-changes")
    await flight.do(cmd.AdoptGoal, text="make it")
    await flight.do(cmd.Run)
    await flight.until(lambda s: s.approvals.question, patience_s=PATIENCE_S)  # memory opens first
    # The envelope answers the question that waits, too.
    await flight.do(cmd.AcceptPlan, goal="g1", envelope={"commands": ["*"], "paths": ["**"]})
    return await flight.until(lambda s: s.approvals.held and s.approvals.held["g1"].told)


async def test_a_re_plan_of_an_accepted_plan_runs_only_once_it_is_accepted(tmp_path: Path) -> None:
    async with helm(tmp_path, FIRST, another("b.txt")) as (flight, _):
        state = await drifted(flight)
        assert not (flight.sandbox / "b.txt").exists()
        assert [(one.kind, one.thing) for one in needs_of(state)] == [(NeedKind.REPLAN, "g1")]
        (held,) = await flight.payloads(ev.ReplanHeld)
        assert (held.added, held.removed) == (1, 1)
        await flight.do(cmd.AcceptPlan, goal="g1")
        state = await flight.until(lambda s: not s.open_goals)
        assert state.goals["g1"].status is GoalStatus.ACHIEVED
        assert (flight.sandbox / "b.txt").read_text() == "2"


async def test_a_rejected_re_plan_is_asked_for_again_and_may_be_edited(tmp_path: Path) -> None:
    async with helm(tmp_path, FIRST, another("b.txt"), another("c.txt")) as (flight, server):
        await drifted(flight)
        await flight.do(cmd.RejectReplan, goal="g1", reason="not b.txt")
        state = await flight.until(lambda s: s.step and s.step.args.get("path") == "c.txt")
        assert "not b.txt" in told(server, 2)
        assert state.approvals.held
        assert (
            "no re-plan of g1 waits"
            not in (
                await flight.do(cmd.EditStep, step=state.step.id, args={"path": "d.txt", "content": "3"})
            ).message
        )
        state = await flight.until(lambda s: not s.open_goals)
        assert (flight.sandbox / "d.txt").read_text() == "3", "what the operator writes is accepted"
        assert not (flight.sandbox / "c.txt").exists()


async def test_the_reason_of_a_denial_is_told_to_a_thinker_that_decides(tmp_path: Path) -> None:
    write = call("simple_coder__write", {"path": "a.txt", "content": "x"})
    elsewhere = call("simple_coder__write", {"path": "b.txt", "content": "x"})
    done = object_call("finish", summary="it is there")
    async with helm(tmp_path, write, write, elsewhere, done, config=DECIDES) as (flight, server):
        await flight.do(cmd.SetApprovals, policy="ask-changes")
        await flight.do(cmd.AdoptGoal, text="make it")
        await flight.do(cmd.Run)
        await flight.until(lambda s: s.approvals.question)
        await flight.do(cmd.AnswerApproval, allow=False, reason="a.txt is mine")
        state = await flight.until(
            lambda s: s.approvals.question and s.approvals.question.call.paths == ("b.txt",)
        )
        assert "a.txt is mine" in told(server, 1)
        assert len(await flight.payloads(ev.ApprovalAsked)) == 2, (
            "the very same call was not asked about again"
        )
        await flight.do(cmd.AnswerApproval, action=state.approvals.question.action, allow=True)
        await flight.until(lambda s: not s.open_goals)


async def test_done_is_refused_while_a_step_of_the_accepted_plan_shows_nothing(tmp_path: Path) -> None:
    lost = call("simple_coder__read", {"path": "nowhere.txt"})
    done = object_call("finish", summary="it is there")
    async with helm(tmp_path, lost, done, config=DECIDES) as (flight, _):
        await flight.do(cmd.AdoptGoal, text="read it")
        await flight.do(cmd.Step)
        await flight.until(lambda s: s.plan and len(s.plan.steps) == 2)
        await flight.do(cmd.AcceptPlan, goal="g1")
        await flight.do(cmd.Run)
        state = await flight.until(lambda s: s.mode is Mode.INTERVENTION)
        lost_step = state.plans["g1"].steps[0]
        assert lost_step.status is StepStatus.ABANDONED
        assert f"{lost_step.id} of the accepted plan was not done" in state.intervention.reason
        assert state.goals["g1"].status is GoalStatus.ACTIVE
        await flight.do(cmd.AcceptPlan, goal="g1")
        state = await flight.until(lambda s: not s.open_goals)
        assert state.goals["g1"].status is GoalStatus.ACHIEVED
