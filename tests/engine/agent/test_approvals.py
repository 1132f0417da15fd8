"""Approvals at the gate: what is asked, every answer to it, and what the agent does then."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from engine_flight import Flight, QuickClock, act, journal_holds_together, live_state_is_the_fold, python

from engine.agent.shared import EngineConfig
from engine.agent.steering.rules import PRESETS, read_policy
from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.agents import Mode
from engine.core.approvals import Question, Scope
from engine.core.fold import fold
from engine.core.plan import StepStatus
from engine.core.recovery import FailureKind
from engine.core.state import AgentState

WRITE = act("write", path="src/a.py", content="1")


@pytest.fixture
async def asking(tmp_path: Path, open_flight: Callable[..., Any]) -> Flight:
    """A workspace in which whatever changes something is asked about."""
    made: Flight = await open_flight(tmp_path, config=EngineConfig(approvals=PRESETS["ask-changes"]))
    return made


async def asked(flight: Flight, step: str = "") -> Question:
    """The question that the agent waits with."""

    def waits(state: AgentState) -> object:
        question = state.approvals.question
        return question is not None and step in ("", question.step)

    question = (await flight.until(waits)).approvals.question
    assert question is not None
    return question


async def done(flight: Flight) -> AgentState:
    return await flight.until(lambda s: not s.open_goals)


async def test_nothing_is_asked_where_no_policy_is_set(flight: Flight) -> None:
    await flight.plan(WRITE)
    await flight.do(cmd.Run)
    await done(flight)
    assert not await flight.payloads(ev.ApprovalAsked)


async def test_what_changes_is_asked_once_its_arguments_are_settled_and_before_it_is_saved(
    asking: Flight,
) -> None:
    """Behaviour 58."""
    (step, _) = await asking.plan(WRITE, act("ls"))
    await asking.do(cmd.Run)
    question = await asked(asking)
    state = await asking.state()
    assert (question.step, question.call.paths, state.mode) == (step, ("src/a.py",), Mode.WAITING)
    assert "ask" in question.why or "changes" in question.why
    assert state.action is not None
    assert not state.action.started
    assert not await asking.payloads(ev.SnapshotTaken)
    await asking.do(cmd.AnswerApproval, allow=True)
    await done(asking)
    assert (asking.sandbox / "src/a.py").read_text() == "1"
    assert len(await asking.payloads(ev.ApprovalAsked)) == 1, "reading was not asked about"


async def test_a_denial_reaches_the_agent_with_its_reason_and_the_same_call_is_not_asked_again(
    asking: Flight,
) -> None:
    (step,) = await asking.plan(WRITE)
    await asking.do(cmd.Run)
    question = await asked(asking)
    await asking.do(cmd.AnswerApproval, action=question.action, allow=False, reason="not in src")
    state = await asking.until(lambda s: s.intervention)
    assert state.failures[-1].kind is FailureKind.PERMISSION_ERROR
    assert "not in src" in state.failures[-1].message
    assert "not in src" in state.intervention.reason
    assert await asking.started() == []
    await asking.do(cmd.EditStep, step=step, args={"path": "src/a.py", "content": "1"})
    state = await asking.until(lambda s: s.intervention)
    assert len(await asking.payloads(ev.ApprovalAsked)) == 1
    await asking.do(cmd.RetryStep, step=step)
    again = await asked(asking)
    await asking.do(cmd.AnswerApproval, action=again.action, allow=True)
    await done(asking)


async def test_of_two_answers_the_second_is_refused_in_words(asking: Flight) -> None:
    await asking.plan(WRITE)
    await asking.do(cmd.Run)
    question = await asked(asking)
    answers = [
        asking.engine.submit(
            cmd.AnswerApproval(agent="pilot", action=question.action, allow=who == "ann"), operator=who
        )
        for who in ("ann", "bob")
    ]
    receipts = await asyncio.gather(*answers)
    assert [receipt.ok for receipt in receipts] == [True, False]
    assert receipts[1].message == f"{question.action} is answered already: allowed by ann"
    await done(asking)


async def test_a_session_rule_ends_with_the_session_and_an_always_rule_does_not(asking: Flight) -> None:
    for scope, again in ((Scope.SESSION, True), (Scope.ALWAYS, False)):
        await asking.plan(WRITE, act("write", path="src/a.py", content="2"))
        await asking.do(cmd.Run)
        question = await asked(asking)
        receipt = await asking.do(cmd.AnswerApproval, action=question.action, allow=True, scope=scope.value)
        assert "write, only on src/a.py" in receipt.message
        await done(asking)
        await asking.do(cmd.Pause)
        before = len(await asking.payloads(ev.ApprovalAsked))
        await asking.reopen()
        await asking.plan(WRITE)
        await asking.do(cmd.Run)
        if again:
            await asked(asking)
            await asking.do(cmd.AnswerApproval, allow=True)
        await done(asking)
        await asking.do(cmd.Pause)
        assert len(await asking.payloads(ev.ApprovalAsked)) - before == again
    grants = (await asking.state()).approvals.grants
    assert [(grant.id, grant.scope, grant.by) for grant in grants] == [("r2", Scope.ALWAYS, "operator")]
    await asking.do(cmd.RevokeRule, grant="2")
    assert "granted: nothing" in await asking.refused(cmd.RevokeRule, grant="r2")
    await asking.plan(WRITE)
    await asking.do(cmd.Run)
    await asked(asking)


async def test_a_rule_that_does_not_cover_the_call_is_refused_and_nothing_is_allowed(asking: Flight) -> None:
    await asking.plan(WRITE)
    await asking.do(cmd.Run)
    question = await asked(asking)
    why = await asking.refused(
        cmd.AnswerApproval, action=question.action, allow=True, scope="always", rule="write paths=docs/**"
    )
    assert "src/a.py is outside of docs/**" in why
    assert "no NAME=VALUE" in await asking.refused(cmd.AnswerApproval, allow=True, rule="write docs")
    state = await asking.state()
    assert state.approvals.question is not None
    assert not state.approvals.grants
    await asking.do(cmd.AnswerApproval, allow=True, scope="always", rule="write paths=src/**")
    await done(asking)


async def test_other_arguments_are_allowed_once(asking: Flight) -> None:
    (step,) = await asking.plan(WRITE)
    await asking.do(cmd.Run)
    await asked(asking)
    await asking.do(cmd.AnswerApproval, allow=True, args={"path": "b.py", "content": "2"})
    state = await done(asking)
    assert (asking.sandbox / "b.py").read_text() == "2"
    assert not (asking.sandbox / "src").exists()
    assert state.find_step(step)[1].status is StepStatus.COMPLETED  # type: ignore[index]
    assert len(await asking.payloads(ev.ApprovalAsked)) == 1


@pytest.mark.parametrize("what", ["edit", "skip", "stop", "pause", "own call", "delete"])
async def test_whatever_happens_while_it_is_asked_nothing_runs_that_was_not_allowed(
    asking: Flight, what: str
) -> None:
    (step,) = await asking.plan(WRITE)
    await asking.do(cmd.Run)
    first = await asked(asking)
    match what:
        case "edit":
            await asking.do(cmd.EditStep, step=step, args={"path": "other.py", "content": "1"})
            await asking.until(lambda s: not s.approvals.question or s.approvals.question != first)
            assert (await asked(asking)).call.paths == ("other.py",)
        case "skip":
            await asking.do(cmd.SkipStep, step=step)
            assert (await done(asking)).approvals.question is None
        case "stop":
            await asking.do(cmd.Stop)
            await asking.until(lambda s: s.approvals.question is None and s.action is None)
        case "pause":
            await asking.do(cmd.Pause)
            assert (await asking.state()).mode is Mode.WAITING
            await asking.do(cmd.AnswerApproval, allow=True)
            await asking.until(lambda s: s.mode is Mode.PAUSED)
            await asking.do(cmd.Step)
            await done(asking)
            return
        case "own call":
            await asking.do(cmd.CallTool, command="write", args={"path": "mine", "content": "x"})
            await asking.until(lambda s: s.operator_actions)
            await asked(asking)
        case "delete":
            await asking.do(cmd.DeleteAgent)
            return
    assert [one for one in await asking.started() if one] == []


async def test_a_question_outlives_its_session_and_its_answer_counts_in_the_next(asking: Flight) -> None:
    await asking.plan(WRITE)
    await asking.do(cmd.Run)
    question = await asked(asking)
    await asking.reopen()
    state = await asking.state()
    assert state.mode is Mode.WAITING
    assert state.approvals.question == question
    await asking.do(cmd.AnswerApproval, action=question.action, allow=True)
    await asking.do(cmd.Run)
    await done(asking)
    assert len(await asking.payloads(ev.ApprovalAsked)) == 1


async def test_where_nobody_answers_it_is_denied_and_said_so(asking: Flight) -> None:
    await asking.plan(WRITE)
    await asking.do(cmd.Run, ask=False)
    state = await done(asking)
    assert any("nobody is there to approve it" in failure.message for failure in state.failures)
    assert await asking.started() == []


async def test_the_strictest_policy_counts_and_deny_is_stronger_than_any_grant(
    tmp_path: Path, open_flight: Callable[..., Any]
) -> None:
    policy = read_policy(
        {
            "rules": [
                {"answer": "deny", "command": "write", "paths": ["secrets/**"], "reason": "keep out"},
                {"answer": "allow", "command": "write"},
            ]
        }
    )
    flight = await open_flight(tmp_path, config=EngineConfig(approvals=policy))
    await flight.do(cmd.CreateAgent, agent="careful", config={"approvals": "ask-changes"})
    assert "presets: allow" in await flight.refused(cmd.CreateAgent, agent="x", config={"approvals": "loose"})
    state = await flight.state("careful")
    assert set(state.approvals.policies) == {"workspace", "agent"}
    await flight.do(cmd.GrantRule, rule="write paths=**", scope="always")
    await flight.plan(act("write", path="a/../secrets/key", content="x"))
    await flight.do(cmd.Run)
    state = await flight.until(lambda s: s.intervention)
    assert "keep out" in state.intervention.reason


async def test_a_policy_that_changes_between_sessions_is_taken_up_and_replays(tmp_path: Path) -> None:
    flight = Flight(tmp_path, QuickClock(), EngineConfig(approvals=PRESETS["ask-irreversible"]))
    await flight.open()
    await flight.do(cmd.CreateAgent)
    await flight.plan(WRITE, python("print(1)"))
    await flight.do(cmd.Run)
    question = await asked(flight)
    assert question.call.line == "python -c 'print(1)'"
    flight.config = EngineConfig()
    await flight.reopen()
    await flight.do(cmd.Run)
    await done(flight)
    assert len(await flight.payloads(ev.ApprovalsSet)) == 2
    await live_state_is_the_fold(flight, "pilot")
    await flight.engine.close()
    await journal_holds_together(tmp_path)


async def test_what_was_granted_and_asked_for_is_undone(flight: Flight) -> None:
    await flight.do(cmd.SetApprovals, policy="ask-changes")
    await flight.do(cmd.GrantRule, rule="write paths=src/**", scope="always")
    await flight.plan(WRITE)
    await flight.do(cmd.AcceptPlan, goal="g1")
    for words in (
        *("take back the envelope of g1", "step s1 (List .) back", "drop goal g1"),
        *("revoke r1: write paths=src/**", "ask about"),
    ):
        offer = await flight.engine.time_travel.undo_offer("pilot")
        assert words in offer.words
        receipt = await flight.engine.submit(offer.as_command("pilot"))
        assert receipt.ok, receipt.message
    known = (await flight.state()).approvals
    assert (known.envelopes, known.grants, known.policies) == ({}, (), {})


async def test_what_an_answer_says_is_durable_before_its_receipt(asking: Flight) -> None:
    """A kill right behind the receipt of an always takes nothing of it."""
    await asking.plan(WRITE)
    await asking.do(cmd.Run)
    await asked(asking)
    await asking.do(cmd.AnswerApproval, allow=True, scope="always")
    durable = fold(await asking.engine.store.read("pilot"))
    assert [grant.rule.paths for grant in durable.approvals.grants] == [("src/a.py",)]
    await done(asking)


class LaterClock(QuickClock):
    """The session's time goes on as the test says."""

    later = 0.0

    def monotonic(self) -> float:
        return super().monotonic() + self.later


async def test_what_nobody_answers_in_time_is_denied_by_the_engine_and_replays(
    tmp_path: Path, open_flight: Callable[..., Any]
) -> None:
    clock = LaterClock()
    config = EngineConfig(approvals=PRESETS["ask-changes"], deny_after_s=600)
    flight: Flight = await open_flight(tmp_path, clock=clock, config=config)
    await flight.plan(WRITE)
    await flight.do(cmd.Run)
    question = await asked(flight)
    (need,) = await flight.engine.inbox()
    assert question.at[:19] <= need.until[:19]
    early = cmd.DenyOverdue(agent="pilot", action=question.action, after_s=1)
    receipt = await flight.engine.submit(early, operator="mallory")
    assert receipt.message == f"{question.action} can still be answered by the operator"

    clock.later = 601
    state = await flight.until(lambda s: s.intervention)
    (denial,) = state.approvals.denied
    assert (denial.by, denial.reason) == ("system", "nobody answered within 600 s")
    (answered,) = await flight.payloads(ev.ApprovalAnswered)
    assert answered.reason.recorded == {"code": "approval.overdue", "seconds": 600.0}
    late = await flight.engine.submit(
        cmd.AnswerApproval(agent="pilot", action=question.action, allow=True), operator="ann"
    )
    assert late.message == f"{question.action} is answered already: denied by system"
    assert await flight.started() == []


async def test_nothing_is_denied_by_itself_without_the_setting(asking: Flight) -> None:
    await asking.plan(WRITE)
    await asking.do(cmd.Run)
    question = await asked(asking)
    assert (await asking.engine.inbox())[0].until == ""
    await asking.refused(cmd.DenyOverdue, action=question.action)
