"""The shipped debate over a whole engine: lines 26 to 32 of the checklist (ontology spec §6)."""

from __future__ import annotations

from pathlib import Path

from test_run_debate import first_order, judged, round_of, script, turn, who
from whole_crew import told, whole

from engine.core import crew_commands as cc
from engine.crew.ontology.kinds import ErrorCode, HandoffState
from tests.messages_server import object_call

MOTION = "We hire two more people for support."


async def test_a_motion_is_argued_blind_and_judged_by_nobody_of_a_name(tmp_path: Path) -> None:
    """Lines 26, 30 and 31, as the server saw it: eight requests, two at a time."""
    answer = script(lambda _: judged("B", 0.8, "B1"))
    async with whole(tmp_path / "ws", [], answer) as on:
        receipt = await on.do(cc.Debate(motion=MOTION))
        result = await on.result(receipt.data["handoff"])
        assert (result.success, result.confidence) == (True, 0.8)
        assert (result.data["verdict"]["winner"], result.data["calls"]) == ("B", 8)
        assert len(on.server.requests) == 8
        for seen in on.server.requests[:6]:
            other, now = ("B" if who(seen) == "Side A" else "A"), round_of(seen)
            assert (f"claim of {other} in round 0" in told(seen)) == (now > 0)
            assert f"claim of {other} in round {now}" not in told(seen)
        assert [round_of(seen) for seen in on.server.requests[:6]] == [0, 0, 1, 1, 2, 2]
        passes = on.server.requests[6:]
        assert sorted(map(first_order, passes)) == [False, True]
        assert not any(name in seen.said() for seen in passes for name in ("pws-validation", "devil"))
        assert any(line.startswith("dissent: A1") for line in result.open_questions)
        debate = on.of(receipt.data["handoff"])
        assert [one.context.lineage for one in on.crew.state.children(debate.id)] == [
            ("decision-debate",)
        ] * 8
        assert on.crew.needs == ()
        await on.at_rest()


async def test_a_judge_that_turns_with_the_order_leaves_it_to_the_operator(tmp_path: Path) -> None:
    """Lines 29 and 32: one request with both rationales; what the operator says stands beside the verdict."""
    answer = script(lambda seen: judged("A", 0.9) if first_order(seen) else judged("B", 0.8))
    async with whole(tmp_path / "ws", [], answer) as on:
        name = (await on.do(cc.Debate(motion=MOTION))).data["handoff"]
        result = await on.result(name)
        assert (result.data["verdict"]["winner"], result.confidence) == ("undecided", 0.5)
        (request,) = on.crew.needs
        assert (request.reason_code, request.handoff_id) == ("DEBATE_CONTESTED", name)
        assert "A (0.9)" in request.question
        assert "B (0.8)" in request.question
        assert "takeover" in [one.id for one in request.options]
        await on.answer(request, "takeover", "We hire one.")
        after = on.by("decision-debate")[-1]
        assert after.result is not None
        assert (after.result.output, after.context.retry_of) == ("We hire one.", name)
        assert after.result.metadata["by"] == "operator"
        assert on.of(name).result == result, "the judge's stays as it is"
        await on.at_rest()


async def test_a_side_that_fails_twice_leaves_no_verdict(tmp_path: Path) -> None:
    """Line 32, with the request to the operator."""
    answer = script(lambda _: judged("A", 1.0), B1=object_call("give_up", reason="no idea"))
    async with whole(tmp_path / "ws", [], answer) as on:
        name = (await on.do(cc.Debate(motion=MOTION))).data["handoff"]
        result = await on.result(name)
        assert (result.state, result.error_code) == (HandoffState.FAILED, ErrorCode.DEBATE_INCOMPLETE)
        assert "verdict" not in result.data
        assert "claim of A in round 0" in result.output
        assert [who(seen) for seen in on.server.requests].count("Side B") == 3
        assert not any(who(seen) == "Judge" for seen in on.server.requests)
        assert [one.reason_code for one in on.crew.needs] == ["DEBATE_INCOMPLETE"]


async def test_a_reply_to_no_claim_is_sent_back_once(tmp_path: Path) -> None:
    """Lines 27 and 31, through the manager."""
    wrong = turn("A", 2, replies=[{"claim": "B9", "kind": "refute", "text": "no"}], claims=[{"text": "late"}])
    answer = script(lambda _: judged("B", 0.6, "B1"), A2=lambda _: wrong)
    async with whole(tmp_path / "ws", [], answer) as on:
        name = (await on.do(cc.Debate(motion=MOTION))).data["handoff"]
        assert (await on.result(name)).data["calls"] == 9
        again = [seen for seen in on.server.requests if "was sent back, once" in told(seen)]
        assert [(who(seen), round_of(seen)) for seen in again] == [("Side A", 2)]
        last = [one for one in on.of(name).progress["crew.debate"]["turns"] if one["round"] == 2]
        assert [one["no_rebuttal"] for one in last] == [True, False]
        assert any("last round" in line for line in last[0]["dropped"])
