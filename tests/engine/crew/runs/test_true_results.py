"""What is said of a run is what its handoff came to: its end, its checks, its cost, its group, its retry."""

from __future__ import annotations

import asyncio
from pathlib import Path

from crew_desk import as_killed, returns, spec
from test_run_debate import judged, round_of, script, turn, who
from whole_crew import Whole, whole

from app.commands.crew_runner import result_text
from app.projection.handoff_views import handoff_facts
from app.projection.pane_views import goal_stack
from engine.core import crew_commands as cc
from engine.core.goals import GoalStatus
from engine.crew.handoffs.schedule import time_of
from engine.crew.ontology.kinds import ErrorCode, HandoffState
from engine.crew.ontology.results import HandoffResult, Usage
from tests.messages_server import Reply, object_call
from tests.messages_server.server import Seen
from widgets.base.text_layout import plain

MOTION = "We hire two more people for support."
GATES = [
    {"check": "min_words", "args": {"n": 20}},
    {"check": "min_items", "field": "key_findings", "args": {"n": 3}, "message": "name three findings"},
    {"check": "no_placeholder"},
]
PHASES = [
    {
        "id": "p",
        "name": "P",
        "inputs": ["task"],
        "outputs": ["x"],
        "checkpoint": {
            "criteria": [{"check": "min_words", "field": "x", "args": {"n": 9}}],
            "on_fail": "abort",
        },
    }
]


def facts(on: Whole, handoff: str) -> list[tuple[str, str]]:
    shown = handoff_facts(on.crew.state, handoff, time_of(on.engine.clock))
    return [(fact.label, fact.text) for fact in shown]


async def goal_row(on: Whole, handoff: str) -> str:
    """How the goal of a handoff's run stands in the pane, once it has ended."""
    run = on.of(handoff).run
    await on.holds(lambda: not on.run(run).open_goals)
    rows = goal_stack([on.run(run)], run).rows
    return "|".join(plain(row.pieces) for row in rows if not row.key.startswith("agent"))


async def test_what_a_gate_rejects_is_a_list_and_its_goal_is_not_achieved(tmp_path: Path) -> None:
    writer = spec("writer", "operator", instructions={"quality_criteria": GATES})
    async with whole(tmp_path / "ws", [writer], lambda _: returns("too short")) as on:
        name = await on.hand("writer")
        result = await on.result(name)
        assert (result.error_code, result.error) == (ErrorCode.QUALITY_GATE, "2 of 3 checks not passed")
        assert result.failures == (
            "✗ output min_words: 2 < 20 words, wanted at least 20 words",
            "✗ key_findings min_items: 0 < 3, wanted at least 3 · name three findings",
        )
        checks = [text for label, text in facts(on, name) if label == "check"]
        assert checks == [*result.failures, "✓ output no_placeholder: nothing left to fill in"]
        rejected = "rejected by its quality gate: 2 of 3 checks not passed"
        assert ("error", f"QUALITY_GATE {rejected}") in facts(on, name)
        assert not any("cut off" in text for _, text in facts(on, name))
        assert result_text(on.of(name)).splitlines()[:3] == [
            f"✗ {name} writer failed QUALITY_GATE: {rejected}",
            *result.failures,
        ]
        question = (await on.asked(name)).question.splitlines()
        assert question == [result.error, *result.failures]
        assert (await goal_row(on, name)).startswith("✗ ")
        goal = on.run(on.of(name).run).goals["g1"]
        assert (goal.status, str(goal.reason)) == (GoalStatus.FAILED, rejected)


async def test_a_pipeline_whose_checkpoint_ends_it_has_not_achieved_its_goal(tmp_path: Path) -> None:
    answer = object_call("checkpoint", outputs={"x": "too short"})
    async with whole(tmp_path / "ws", [spec("pipe", "pipeline", phases=PHASES)], lambda _: answer) as on:
        name = await on.hand("pipe")
        result = await on.result(name)
        assert (str(result.end.code), result.failures) == (
            "end.gate",
            ("✗ x min_words: 2 < 9 words, wanted at least 9 words",),
        )
        assert (await goal_row(on, name)).startswith("✗ ")


def test_each_end_is_said_once_for_all() -> None:
    def ended(code: ErrorCode, state: HandoffState = HandoffState.FAILED) -> str:
        return HandoffResult(
            handoff_id="h-1",
            from_agent="a",
            to_agent="user",
            success=False,
            error="why",
            error_code=code,
            state=state,
            partial=True,
        ).end

    assert ended(ErrorCode.CANCELLED, HandoffState.CANCELLED) == "cut off: why"
    assert ended(ErrorCode.TIMEOUT, HandoffState.TIMED_OUT) == "cut off: why"
    assert ended(ErrorCode.CYCLE, HandoffState.REJECTED) == "refused: why"
    assert ended(ErrorCode.DEBATE_VOID) == "void: why"
    assert ended(ErrorCode.QUORUM) == "why"


async def test_openings_without_a_claim_make_a_debate_void_that_no_judge_is_paid_for(tmp_path: Path) -> None:
    silent = object_call("return_result", output="nothing to say", data={"claims": []})
    answer = script(lambda _: judged("A", 0.9), A0=silent, B0=silent)
    async with whole(tmp_path / "ws", [], answer) as on:
        name = (await on.do(cc.Debate(motion=MOTION))).data["handoff"]
        result = await on.result(name)
        assert (result.error_code, result.state) == (ErrorCode.DEBATE_VOID, HandoffState.FAILED)
        assert str(result.end).startswith("void: side A and side B made no claim in the openings, twice")
        asked = [(who(seen), round_of(seen)) for seen in on.server.requests]
        assert sorted(asked) == [("Side A", 0)] * 2 + [("Side B", 0)] * 2
        assert (await on.asked(name)).reason_code == "DEBATE_INCOMPLETE"
        assert (await goal_row(on, name)).startswith("✗ ")


async def test_an_opening_that_is_sent_back_and_then_claims_something_counts(tmp_path: Path) -> None:
    silent = object_call("return_result", output="nothing", data={"claims": []})
    answer = script(
        lambda _: judged("A", 0.9, "A1"),
        A0=lambda seen: turn("A", 0) if "sent back, once" in seen.said() else silent,
    )
    async with whole(tmp_path / "ws", [], answer) as on:
        name = (await on.do(cc.Debate(motion=MOTION, rounds=1))).data["handoff"]
        assert (await on.result(name)).data["calls"] == 7


async def test_a_killed_debate_ends_its_group_shows_its_cost_and_goes_on_behind_its_round(
    tmp_path: Path,
) -> None:
    held = Reply(text="x", after=1, then="hold")
    answer = script(lambda _: judged("A", 0.9, "A1"), B1=held)
    async with whole(tmp_path / "ws", [], answer) as on:
        name = (await on.do(cc.Debate(motion=MOTION))).data["handoff"]
        await on.holds(lambda: [round_of(seen) for seen in on.server.requests].count(1) == 2)
        await on.holds(lambda: sum(one.open for one in on.crew.state.children(name)) == 1)
        await on.crew.stream.commit()
        killed = as_killed(on.engine.workspace, tmp_path / "killed")
        await on.do(cc.CancelHandoff(handoff=name))
        await on.at_rest()

    def after(seen: Seen) -> Reply:
        assert round_of(seen) or who(seen) == "Judge", "the openings are stored"
        return script(lambda _: judged("A", 0.9, "A1"))(seen)

    async with whole(killed, [], after) as on:
        assert all(group.ended for group in on.crew.state.groups.values())
        assert [group.ok for group in on.crew.state.groups.values()] == [True, True]
        assert on.of(name).state is HandoffState.FAILED
        assert (await goal_row(on, name)).startswith("– ")
        assert on.run(on.of(name).run).goals["g1"].reason == "cut off: process ended"
        spent = on.crew.state.spent(name)
        assert (spent.calls, spent.input_tokens, spent.output_tokens) == (3, 300, 60)
        assert spent.usd > 0
        assert sum(on.crew.state.spent(group).calls for group in on.crew.state.groups) == 3
        assert any(
            label == "usage" and text.startswith("3 model calls, 300 + 60 tokens, $0.00")
            for label, text in facts(on, name)
        )
        again = (await on.do(cc.RetryHandoff(handoff=name))).data["handoff"]
        assert (await on.result(again)).success
        assert sorted(round_of(seen) for seen in on.server.requests) == [0, 0, 1, 1, 2, 2]
        assert on.crew.state.spent(again).calls == 6


async def test_what_a_killed_handoff_waited_for_below_it_does_not_run_on(tmp_path: Path) -> None:
    """A child that was queued, or waited for the operator, ends with who had asked for it."""
    boss = spec("boss", "operator", handoff={"routing": {"can_delegate_to": ["asks"]}})
    asks = spec("asks", "guided", steps=[{"id": "a", "title": "A"}])
    async with whole(
        tmp_path / "ws", [boss, asks], lambda _: object_call("delegate", to="asks", task="ask")
    ) as on:
        name = await on.hand("boss")
        await on.asked(code="guided")
        await on.crew.stream.commit()
        (child,) = on.crew.state.children(name)
        for run in on.crew.state.by_run:
            while (await on.engine.store.head(run)).version < on.run(run).version:
                await asyncio.sleep(0.002)
        killed = as_killed(on.engine.workspace, tmp_path / "killed")
        await on.do(cc.CancelHandoff(handoff=name))
        await on.at_rest()
    async with whole(killed, [], lambda _: returns("never")) as on:
        assert (on.of(name).state, on.of(child.id).state) == (HandoffState.FAILED, HandoffState.CANCELLED)
        assert on.of(child.id).moves[-1].reason.endswith(f"{name} ends: process ended")
        assert on.crew.needs == ()
        assert on.crew.state.spent(name) != Usage()
        await on.at_rest()
