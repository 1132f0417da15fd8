"""A debate as a run: its sides and its judge are handoffs that know only what they are told."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from crew_desk import SmallDesk, scene, spec

from engine.core.agents import DEBATE
from engine.crew.ontology.kinds import ConfidenceSource, ErrorCode
from tests.messages_server import Reply, object_call
from tests.messages_server.server import Seen

CHURN = "Churn rose to 9 percent in May."
DEVIL = spec("devil", "role", instructions={"system": "You attack plans."})
PWS = spec("pws", "operator", instructions={"system": "You weigh problems."})


def debate(**more: Any) -> Any:
    sides = [
        {"label": "A", "agent_id": "pws", "stance": "the tool pays"},
        {"label": "B", "agent_id": "devil", "stance": "it does not"},
    ]
    return spec(
        "decision-debate",
        "collaborative",
        debate={"motion": "We buy the tool.", "sides": sides, **more},
        handoff={"routing": {"can_delegate_to": ["pws", "devil"]}},
        model={"thinking": "off"},
    )


def who(seen: Seen) -> str:
    said = json.dumps(seen.body["system"])
    return next((name for name in ("Side A", "Side B", "Judge") if f"You are {name}" in said), "")


def round_of(seen: Seen) -> int:
    said = json.dumps(seen.body["messages"])
    return next((n for n in (1, 2, 3, 4) if f"Round {n} of" in said), 0)


def turn(side: str, now: int, **more: Any) -> Reply:
    """A turn that answers the other side's first claim."""
    other = "B1" if side == "A" else "A1"
    data: dict[str, Any] = {"claims": [{"text": f"claim of {side} in round {now}"}]} if now < 2 else {}
    if now:
        data |= {
            "restated": f"{other} says so",
            "replies": [{"claim": other, "kind": "refute", "text": f"no, says {side} in round {now}"}],
        }
        own = "A1" if side == "A" else "B1"
        data["replies"].append({"claim": own, "kind": "defend", "text": "it stands"})
    return object_call("return_result", output="my turn", data={**data, **more})


def judged(winner: str, confidence: float, *decisive: str) -> Reply:
    data = {
        "winner": winner,
        "confidence": confidence,
        "decisive_claim_ids": decisive,
        "reasons": {"evidence": "x"},
    }
    return object_call("return_result", output="judged", data=data)


def script(judge: Callable[[Seen], Reply], **turns: Any) -> Callable[[Seen], Reply]:
    def answer(seen: Seen) -> Reply:
        name = who(seen)
        if name == "Judge":
            return judge(seen)
        side, now = name[-1], round_of(seen)
        made = turns.get(f"{side}{now}")
        return made(seen) if callable(made) else made or turn(side, now)

    return answer


def first_order(seen: Seen) -> bool:
    said = json.dumps(seen.body["messages"])
    return said.index("Side A") < said.index("Side B")


async def test_openings_are_blind_and_the_calls_are_as_planned(tmp_path: Path) -> None:
    """Lines 26, 30, 31: blind openings and rounds, no names before the judge, sides*(1+rounds)+2 calls."""
    answer = script(lambda _: judged("A", 0.8, "A1"))
    async with scene(tmp_path, SmallDesk(PWS, DEVIL), answer) as on:
        result = await on.hand(debate(rounds=2))
        assert result.success
        assert (result.confidence_source, result.data["calls"]) == (ConfidenceSource.JUDGE, 8)
        assert len(on.server.requests) == 2 * 3 + 2
        turns = [(who(seen), round_of(seen), json.dumps(seen.body)) for seen in on.server.requests]
        for name, now, said in turns:
            if name == "Judge":
                assert "pws" not in said
                assert "devil" not in said
                continue
            other = "B" if name.endswith("A") else "A"
            assert f"claim of {other} in round {now}" not in said
            assert (f"claim of {other} in round 0" in said) == (now > 0)
        assert "the last, in which no new claims" in next(said for name, now, said in turns if now == 2)
        passes = [seen for seen in on.server.requests if who(seen) == "Judge"]
        assert sorted(map(first_order, passes)) == [False, True]
        words = [sorted(str(seen.body["messages"]).split("\\n")) for seen in passes]
        assert len(words[0]) == len(words[1])
        assert "You weigh problems." in next(said for name, _, said in turns if name == "Side A")
        kept = [what for _, what, _ in on.desk.kept]
        assert kept.count("debate.turn") == 6
        assert kept.count("debate.ledger") == 3
        assert kept[-1] == "debate.verdict"


async def test_a_quote_that_is_not_there_lowers_the_confidence(tmp_path: Path) -> None:
    """Line 28: 0.75 becomes 0.5625."""
    evidence = lambda quote: [{"source": "may", "quote": quote}]  # noqa: E731
    claims = [
        {"text": "churn rose", "evidence": evidence("rose to 9 percent")},
        {"text": "more"},
        {"text": "churn doubled", "evidence": evidence("it doubled")},
    ]
    opening = object_call("return_result", output="x", data={"claims": claims})
    answer = script(lambda seen: judged("A", 0.8 if first_order(seen) else 0.7, "A1", "A3"), A0=opening)
    async with scene(tmp_path, SmallDesk(PWS, DEVIL), answer) as on:
        result = await on.hand(debate(rounds=1), metadata={"sources": {"may": CHURN}})
        assert round(result.confidence, 6) == 0.5625
        told = [
            who(seen) for seen in on.server.requests if "source may, to be quoted" in json.dumps(seen.body)
        ]
        assert sorted(told) == ["Side A", "Side A", "Side B", "Side B"]
        assert result.data["ledger"]["unverified"] == 1
        assert any("A3 (unverified)" in line for line in result.key_findings)
        assert any(line.startswith("dissent: B1") for line in result.open_questions)


async def test_a_judge_that_turns_with_the_order_decides_nothing(tmp_path: Path) -> None:
    """Line 29: undecided, contested, at most 0.5, and the operator is told both rationales."""
    answer = script(lambda seen: judged("A", 0.9) if first_order(seen) else judged("B", 0.8))
    async with scene(tmp_path, SmallDesk(PWS, DEVIL), answer) as on:
        result = await on.hand(debate(rounds=1))
        assert (result.data["verdict"]["winner"], result.confidence) == ("undecided", 0.5)
        assert result.needs_human_input
        assert "A (0.9)" in result.human_input_reason
        assert "B (0.8)" in result.human_input_reason


async def test_a_rebuttal_of_no_claim_is_sent_back_once_and_then_stored_as_none(tmp_path: Path) -> None:
    """Line 27; and line 31, that new claims of the last round are not taken."""
    wrong = turn("A", 1, replies=[{"claim": "B9", "kind": "refute", "text": "no"}])
    answer = script(lambda _: judged("B", 0.6, "B1"), A1=lambda seen: wrong)
    async with scene(tmp_path, SmallDesk(PWS, DEVIL), answer) as on:
        result = await on.hand(debate(rounds=1))
        assert result.data["calls"] == 2 * 2 + 2 + 1
        again = [seen for seen in on.server.requests if "was sent back, once" in seen.said()]
        assert [who(seen) for seen in again] == ["Side A"]
        (kept,) = [one.progress[DEBATE] for one in on.desk.handoffs.values() if DEBATE in one.progress]
        last = [one for one in kept["turns"] if one["round"] == 1]
        assert [one["no_rebuttal"] for one in last] == [True, False]
        assert any("new claim in the last round" in line for line in last[0]["dropped"])


async def test_a_side_that_fails_twice_leaves_no_verdict(tmp_path: Path) -> None:
    """Line 32: DEBATE_INCOMPLETE and the transcript kept."""
    answer = script(lambda _: judged("A", 1.0), B1=object_call("give_up", reason="no idea"))
    async with scene(tmp_path, SmallDesk(PWS, DEVIL), answer) as on:
        result = await on.hand(debate(rounds=2))
        assert (result.success, result.error_code) == (False, ErrorCode.DEBATE_INCOMPLETE)
        assert "verdict" not in result.data
        assert "claim of A in round 0" in result.output
        assert not any(who(seen) == "Judge" for seen in on.server.requests)


async def test_nothing_new_ends_it_early_and_a_judge_naming_what_fell_is_asked_again(tmp_path: Path) -> None:
    """Line 31, the early stop; §1.11, 6: a decisive claim that does not stand invalidates the answer."""
    said: list[int] = []

    def judge(seen: Seen) -> Reply:
        said.append(1)
        return judged("A", 0.9, "A1") if "sent back, once" in seen.said() else judged("A", 0.9, "A7")

    quiet = {"restated": "so they say", "replies": [], "claims": []}
    answer = script(judge, **{f"{side}{now}": turn(side, 1, **quiet) for side in "AB" for now in (1, 2)})
    async with scene(tmp_path, SmallDesk(PWS, DEVIL), answer) as on:
        result = await on.hand(debate(rounds=3))
        assert result.success
        assert "nothing new" in result.output
        assert len(said) == 4
        assert max(map(round_of, on.server.requests)) == 1


async def test_the_operator_steps_through_it(tmp_path: Path) -> None:
    """§1.11, 9: a question that both sides answer, then time is called."""
    moves = iter([("note", "What does it cost?"), ("time", "")])
    desk = SmallDesk(PWS, DEVIL, says=lambda _: next(moves))
    answer = script(lambda _: judged("A", 0.8, "A1"))
    async with scene(tmp_path, desk, answer) as on:
        result = await on.hand(debate(rounds=3), metadata={"step_mode": True})
        assert "called by the operator" in result.output
        asked = [seen for seen in on.server.requests if "What does it cost?" in seen.said()]
        assert {who(seen) for seen in asked if round_of(seen) == 1} == {"Side A", "Side B"}
        assert [one.reason_code for one in desk.asked] == ["debate.round", "debate.round"]


async def test_without_a_model_there_is_no_verdict(tmp_path: Path) -> None:
    async with scene(tmp_path, SmallDesk(PWS, DEVIL)) as on:
        result = await on.hand(debate())
        assert (result.success, result.output, result.error_code) == (False, "", ErrorCode.NO_MODEL)
        assert len(on.desk.handoffs) == 3
