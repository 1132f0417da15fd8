"""With autonomous mode off nothing that is there is replaced without the operator; a toggle is a request."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from engine_flight import Flight, act

from engine.agent.shared import EngineConfig
from engine.agent.steering.rules import read_policy
from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.agents import Mode
from engine.core.approvals import Question
from engine.core.goals import GoalStatus
from engine.core.recovery import FailureKind
from engine.core.state import AgentState

TOGGLE = act("toggle_autonomous_mode")


def write(content: str, path: str = "notes.txt") -> dict[str, Any]:
    return act("write", path=path, content=content)


@pytest.fixture
async def theirs(flight: Flight) -> Flight:
    """A workspace with a file of somebody else's."""
    (flight.sandbox / "notes.txt").write_text("theirs")
    return flight


async def asked(flight: Flight) -> Question:
    question = (await flight.until(lambda s: s.approvals.question)).approvals.question
    assert question is not None
    return question


async def done(flight: Flight) -> AgentState:
    return await flight.until(lambda s: not s.open_goals)


async def test_to_replace_what_others_wrote_waits_for_the_operator(theirs: Flight) -> None:
    """Behaviour 58."""
    await theirs.plan(write("mine"))
    await theirs.do(cmd.Run)
    question = await asked(theirs)
    assert question.why == "it replaces 6 bytes of notes.txt, and autonomous mode is off"
    assert ((await theirs.state()).mode, await theirs.started()) == (Mode.WAITING, [])
    assert (theirs.sandbox / "notes.txt").read_text() == "theirs"
    await theirs.do(cmd.AnswerApproval, allow=True)
    await done(theirs)
    assert (theirs.sandbox / "notes.txt").read_text() == "mine"


async def test_a_denied_replacement_leaves_the_file_and_its_step_fails(theirs: Flight) -> None:
    """Behaviour 58."""
    await theirs.plan(write("mine"))
    await theirs.do(cmd.Run)
    await asked(theirs)
    await theirs.do(cmd.AnswerApproval, allow=False, reason="keep it")
    state = await theirs.until(lambda s: s.intervention)
    assert state.failures[-1].kind is FailureKind.PERMISSION_ERROR
    assert "keep it" in state.failures[-1].message
    assert (theirs.sandbox / "notes.txt").read_text() == "theirs"


async def test_with_nobody_to_ask_nothing_is_replaced(theirs: Flight) -> None:
    """Behaviour 58."""
    await theirs.plan(write("mine"))
    await theirs.do(cmd.Run, ask=False)
    state = await done(theirs)
    assert state.goals["g1"].status is GoalStatus.FAILED
    assert "nobody is there to approve it (it replaces 6 bytes of notes.txt" in state.goals["g1"].reason
    assert (theirs.sandbox / "notes.txt").read_text() == "theirs"


async def test_what_destroys_nothing_of_others_is_not_asked_about(theirs: Flight) -> None:
    """Behaviour 58."""
    (theirs.sandbox / "empty").touch()
    (theirs.sandbox / "d").mkdir()
    await theirs.plan(
        write("new", "new.txt"),
        write("newer", "./d/../new.txt"),  # its own words of before
        write("theirs"),
        write("theirs and mine"),
        act("append", path="notes.txt", content="!"),
        act("replace", path="notes.txt", old="mine", new="ours"),
        write("x", "empty"),
        act("cd", path="d"),
        write("newest", "../new.txt"),
        act("copy", source="../new.txt", target="copied"),
    )
    await theirs.do(cmd.Run)
    state = await done(theirs)
    assert (state.goals["g1"].status, state.actions) == (GoalStatus.ACHIEVED, 10)
    assert (theirs.sandbox / "notes.txt").read_text() == "theirs and ours!"
    assert (theirs.sandbox / "d/copied").read_text() == "newest"
    assert not await theirs.payloads(ev.ApprovalAsked)
    assert not await theirs.payloads(ev.OperatorNeeded)


async def test_what_was_changed_since_the_agent_wrote_it_is_not_its_own_any_more(flight: Flight) -> None:
    """Behaviour 58."""
    steps = await flight.plan(write("one"), write("two"))
    await flight.do(cmd.SetBreakpoint, step=steps[1])
    await flight.do(cmd.Run)
    await flight.until(lambda s: s.breakpoint_hit)
    (flight.sandbox / "notes.txt").write_text("one, and a word of mine")
    await flight.reopen()
    await flight.do(cmd.Run)
    assert "it replaces 23 bytes" in (await asked(flight)).why
    await flight.do(cmd.AnswerApproval, allow=True, scope="session")
    await done(flight)
    (flight.sandbox / "notes.txt").write_text("once more")
    await flight.do(cmd.Pause)
    await flight.plan(write("three"))
    await flight.do(cmd.Run)
    await done(flight)
    assert (flight.sandbox / "notes.txt").read_text() == "three"
    assert len(await flight.payloads(ev.ApprovalAsked)) == 1, "the rule of the session answers"


async def test_autonomous_mode_or_a_rule_of_the_operators_lets_it_be_replaced(
    theirs: Flight, tmp_path: Path, open_flight: Callable[..., Any]
) -> None:
    """Behaviour 58."""
    await theirs.do(cmd.CallTool, command="toggle_autonomous_mode")
    await theirs.until(lambda s: s.sandbox.autonomous)
    await theirs.plan(write("mine"))
    await theirs.do(cmd.Run)
    await done(theirs)
    assert (theirs.sandbox / "notes.txt").read_text() == "mine"
    rules = {"rules": [{"answer": "allow", "command": "write", "paths": ["notes.*"]}]}
    ruled = await open_flight(tmp_path / "ruled", config=EngineConfig(approvals=read_policy(rules)))
    for name in ("notes.txt", "other.txt"):
        (ruled.sandbox / name).write_text("theirs")
    await ruled.plan(write("mine"), write("mine", "other.txt"))
    await ruled.do(cmd.Run)
    assert (await asked(ruled)).call.paths == ("other.txt",)
    assert (ruled.sandbox / "notes.txt").read_text() == "mine"


async def test_an_agents_toggle_is_a_request_and_only_this_answer_counts(flight: Flight) -> None:
    """Behaviour 58."""
    await flight.do(cmd.GrantRule, rule="*", scope="always")
    await flight.plan(TOGGLE)
    await flight.do(cmd.Run)
    question = await asked(flight)
    assert question.why == "the agent requests that autonomous mode is switched on"
    assert "a request is allowed once" in await flight.refused(cmd.AnswerApproval, allow=True, scope="always")
    assert not (await flight.state()).sandbox.autonomous
    await flight.do(cmd.AnswerApproval, allow=False)
    state = await flight.until(lambda s: s.intervention)
    assert not state.sandbox.autonomous
    await flight.do(cmd.RetryStep, step=question.step)
    await asked(flight)
    await flight.do(cmd.AnswerApproval, allow=True)
    state = await done(flight)
    assert state.sandbox.autonomous


async def test_with_nobody_to_ask_a_toggle_has_no_effect(flight: Flight) -> None:
    """Behaviour 58."""
    await flight.plan(TOGGLE)
    await flight.do(cmd.Run, ask=False)
    state = await done(flight)
    assert (state.goals["g1"].status, state.sandbox.autonomous) == (GoalStatus.FAILED, False)
    assert await flight.started() == []
