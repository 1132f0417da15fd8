"""Envelopes and accepted plans: what runs unasked, what leaves them, and plans that drift."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from engine_flight import Flight, act, python

from engine.agent.shared import EngineConfig
from engine.agent.steering.rules import PRESETS
from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.approvals import Answer, Policy, Rule
from engine.core.state import AgentState
from engine.inquiry.inbox import NeedKind
from tests.patience import PATIENCE_S

WORK = 100
HAZARDS = (
    *(
        act("write", path=f"{place}/f{n}", content="x")
        for n in range(4)
        for place in ("etc", "../up", "srcs")
    ),
    *(
        act("write", path=path, content="x")
        for path in ("src/../.env", "src/pkg/../../top", "/etc/passwd", ".")
    ),
    *(act("rm", path=f"src/f{n}.py") for n in range(6)),
    *(act("move", source=f"src/f{n}.py", target=f"old/f{n}.py") for n in range(4)),
    *(
        act("run", command=f"git push {remote}")
        for remote in ("origin main", "--force", "https://a.example/x")
    ),
    *(act("run", command=["curl", f"https://h{n}.example/x"]) for n in range(4)),
    *(act("run", command=f"pip install p{n}") for n in range(4)),
    *(act("run", command=line) for line in ("rm -rf src", "python -c 'import os'", "git reset --hard")),
    *(act("start", command=f"python -m http.server {port}") for port in (80, 8000)),
    *(act("copy", source="src/f1.py", target=f"out/f{n}") for n in range(4)),
    *(act("create_venv", venv_name=f"v{n}") for n in range(2)),
    *(act("mkdir", path=path) for path in ("dist", "src2")),
)
"""Fifty things that an accepted plan of writing beneath src does not cover."""


@pytest.fixture
async def asking(tmp_path: Path, open_flight: Callable[..., Any]) -> Flight:
    made: Flight = await open_flight(tmp_path, config=EngineConfig(approvals=PRESETS["ask-changes"]))
    return made


def answers(state: AgentState) -> object:
    return state.approvals.question is not None or not state.open_goals or state.intervention is not None


async def test_a_hundred_actions_in_an_envelope_ask_nothing_and_every_hazard_is_caught(
    asking: Flight,
) -> None:
    """T15: at most five questions for a hundred actions, and fifty of fifty hazards stopped."""
    assert len(HAZARDS) == 50
    work = [act("write", path=f"src/f{n}.py", content=f"{n}") for n in range(WORK - 20)]
    work += [act("read", path=f"src/f{n}.py") for n in range(20)]
    await asking.plan(*work)
    await asking.do(cmd.AcceptPlan, goal="g1", envelope={"paths": ["src/**"]})
    await asking.do(cmd.Run)
    await asking.until(lambda s: not s.open_goals, patience_s=PATIENCE_S)
    assert len(await asking.started()) == WORK
    assert not await asking.payloads(ev.ApprovalAsked)
    await asking.do(cmd.Pause)

    await asking.plan(act("write", path="src/f1.py", content="x"))
    await asking.do(cmd.AcceptPlan, goal="g2", envelope={"paths": ["src/**"]})
    steps = []
    for hazard in HAZARDS:
        call = hazard["params"]
        await asking.do(cmd.InsertStep, command=call["command"], args=call["args"])
        steps.append((await asking.state()).plans["g2"].steps[-1].id)
    await asking.do(cmd.Run)
    caught = []
    while True:
        state = await asking.until(
            lambda s: answers(s) and (not s.approvals.question or s.approvals.question.step not in caught)
        )
        if state.approvals.question is None:
            break
        caught.append(state.approvals.question.step)
        assert "leaves the envelope of g2" in state.approvals.question.why
        await asking.do(cmd.SkipStep, step=caught[-1])
    assert caught == steps
    assert len(await asking.started()) == WORK + 1


async def test_an_envelope_is_proposed_from_the_plan_and_ends_with_its_goal(asking: Flight) -> None:
    plan = (
        act("mkdir", path="app"),
        act("cd", path="app"),
        act("write", path="main.py", content="1"),
        python("1"),
    )
    await asking.plan(*plan)
    proposed = asking.engine.propose(await asking.state(), "g1")
    assert proposed is not None
    assert proposed.paths == ("app", "app/main.py")
    assert (proposed.programs, proposed.hosts, proposed.irreversible) == (("python -c 1",), (), True)
    assert "begin" not in await asking.refused(cmd.AcceptPlan, goal="g1", envelope={"paths": ["/etc"]})
    await asking.do(cmd.AcceptPlan, goal="g1")
    await asking.do(cmd.Run)
    state = await asking.until(lambda s: not s.open_goals)
    assert not await asking.payloads(ev.ApprovalAsked)
    assert not state.approvals.envelopes
    assert not state.approvals.accepted


async def test_denials_of_a_policy_hold_within_an_envelope(
    tmp_path: Path, open_flight: Callable[..., Any]
) -> None:
    policy = Policy((Rule(Answer.DENY, command="write", paths=("src/key",), reason="the key stays"),))
    flight = await open_flight(tmp_path, config=EngineConfig(approvals=policy))
    await flight.plan(act("write", path="src/key", content="x"))
    await flight.do(cmd.AcceptPlan, goal="g1", envelope={"paths": ["**"]})
    await flight.do(cmd.Run)
    state = await flight.until(lambda s: s.intervention)
    assert "the key stays" in state.intervention.reason


async def test_the_agents_own_change_of_an_accepted_plan_waits_and_the_operators_does_not(
    asking: Flight,
) -> None:
    """Recovery puts another program in place of the one that failed: not what was accepted."""
    (step,) = await asking.plan(act("run", command="python3x -c 1"))
    other = act("run", command="nosuchprogram")
    await asking.do(cmd.ReplacePlan, goal="g1", plan=__import__("json").dumps([other]))
    await asking.do(cmd.AcceptPlan, goal="g1")
    assert (await asking.state()).approvals.accepted["g1"].required != (step,)
    await asking.do(cmd.EditStep, step=(await asking.state()).step.id, args={"command": "python -c 1"})
    state = await asking.state()
    assert not state.approvals.held
    assert state.approvals.accepted["g1"].steps[-1].args == {"command": "python -c 1"}
    await asking.do(cmd.Run)
    state = await asking.until(answers)
    question = state.approvals.question
    assert question is not None, (
        "what the operator wrote is on plan, but the envelope was for another program"
    )
    assert "none of its programs" in question.why
    await asking.do(cmd.AnswerApproval, allow=True)
    await asking.until(lambda s: not s.open_goals)


async def test_questions_of_all_agents_are_in_one_inbox_and_are_answered_together(asking: Flight) -> None:
    from app.commands.inbox import answer_all, answered_text

    for number in range(5):
        name = f"w{number}"
        await asking.do(cmd.CreateAgent, agent=name)
        folder = "other" if number == 3 else "src"
        goal = await asking.do(cmd.AdoptGoal, agent=name, text=f"write 'x' to {folder}/{name}.txt")
        assert goal.ok
        await asking.do(cmd.Run, agent=name)
    for number in range(5):
        await asking.until(lambda s: s.approvals.question, f"w{number}")
    needs = await asking.engine.inbox()
    assert [need.kind for need in needs] == [NeedKind.APPROVAL] * 5
    assert {need.group for need in needs} == {"simple_coder.write"}
    assert all(need.since for need in needs)
    done = await answer_all(asking.engine, "ann", needs, allow=True, scope="once", words="write paths=src/**")
    assert [need.agent for need, receipt in done if not receipt.ok] == ["w3"]
    assert "4 of 5 answered" in answered_text(done)
    assert "other/w3.txt is outside of src/**" in answered_text(done)
    for number in (0, 1, 2, 4):
        await asking.until(lambda s: not s.open_goals, f"w{number}")
    assert [need.agent for need in await asking.engine.inbox()] == ["w3"]
    answered = await asking.payloads(ev.ApprovalAnswered, "w0")
    assert [one.allowed for one in answered] == [True]
