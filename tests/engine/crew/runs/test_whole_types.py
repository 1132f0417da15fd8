"""The shipped agents over a whole engine: lines 33 to 40 and 43 of the checklist (ontology spec §6)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from crew_desk import returns, spec
from whole_crew import CLEAR, Whole, asker, by_name, told, whole

from engine.agent.steering.rules import PRESETS
from engine.core import commands as cmd
from engine.core import crew_commands as cc
from engine.crew.ontology.kinds import AgentType, ErrorCode, HandoffState
from tests.messages_server import Reply, failure, object_call
from tests.messages_server.server import Seen

D = HandoffState
GIVES_UP = object_call("give_up", reason="no idea")
SCORES = {"problem": 22, "solution": 18, "business_case": 20, "people": 12}
PILLARS = {name: {"score": score, "evidence": ["told"]} for name, score in SCORES.items()}


async def test_the_floor_has_one_holder_whatever_happens_to_it(tmp_path: Path) -> None:
    """Line 33, with runs: a model gives the floor, an operator cannot take it, a crash gives it back."""
    larry = (
        object_call("transfer_to", agent="bmc-wizard", reason="a canvas is wanted"),
        Reply(text="What else is it?"),
        object_call("transfer_to", agent="devil", reason="attack it"),
    )
    says = {
        "Larry, the clarifier": larry,
        "The devil's advocate": failure(400, "invalid_request_error", "no"),
    }
    async with whole(tmp_path / "ws", [], by_name(says)) as on:
        refused = await on.engine.submit(cc.Transfer(to="pws-validation"))
        assert not refused.ok
        assert on.crew.state.floor == ()
        await on.do(cc.Transfer(to="larry", reason="hello"))
        offered = {one["name"]: one for one in (await asked_first(on)).body["tools"]}
        assert offered["transfer_to"]["input_schema"]["properties"]["agent"]["enum"] == [
            "bmc-wizard",
            "devil",
        ]
        await on.holds(lambda: on.crew.state.holder == "bmc-wizard")
        assert [one.agent for one in on.crew.state.floor] == ["larry", "bmc-wizard"]
        await on.do(cc.TakeBack())
        assert on.crew.state.holder == "larry"
        await on.holds(lambda: on.by("bmc-wizard")[0].state is D.CANCELLED)
        await on.do(cc.Say(text="go on"))
        await on.holds(lambda: len(on.asks("Larry, the clarifier")) == 2)
        await on.do(cc.Say(text="attack it"))
        request = await on.asked(code="FLOOR_FAILED")
        assert on.by("devil")[0].state is D.FAILED
        assert on.crew.state.holder == "larry"
        assert "larry has the floor again" in request.title
        await on.do(cc.DismissRequest(request=request.id))
        await on.do(cc.CancelHandoff())
        assert on.crew.state.floor == ()
        assert on.left() == []


async def asked_first(on: Whole) -> Seen:
    await on.holds(lambda: on.server.requests)
    return on.server.requests[0]


async def test_larry_asks_one_question_and_recommends_nothing(tmp_path: Path) -> None:
    """Line 34, with the shipped larry: one repair, then the reply is shown with what is wrong with it."""
    replies = (
        Reply(text="What is it? And who has it?"),
        Reply(text="Who has the problem?"),
        object_call("reply", text="You should buy a tool. Is that it?"),
        object_call("reply", text="I recommend a tool. Is that it?"),
    )
    async with whole(tmp_path / "ws", [], lambda _: next(left)) as on:
        left = iter(replies)
        await on.do(cc.Transfer(to="larry"))
        first = await on.asked()
        assert (first.question, first.context) == ("Who has the problem?", "")
        assert "ask exactly one question; there are 2" in told(on.server.requests[1])
        await on.do(cc.Say(text="everybody"))
        await on.holds(lambda: len(on.server.requests) == 4)
        second = await on.asked(code="conversation")
        assert "recommend nothing" in told(on.server.requests[3])
        assert "recommend nothing" in second.context
        await on.do(cc.CancelHandoff())


async def test_a_validation_is_counted_in_code_and_sent_back_twice_at_most(tmp_path: Path) -> None:
    """Lines 35 and 36, with the shipped pws-validation: only what failed is named, PIVOT is not GO."""
    bare = {**PILLARS, "people": {"score": 26, "evidence": ["told"]}}
    poor = returns("GO!", data={"pillars": bare, "verdict": "GO", "total": 90})
    good = returns("GO!", data={"pillars": PILLARS, "verdict": "GO", "total": 90})
    async with whole(tmp_path / "ws", [], lambda _: next(left)) as on:
        left = iter([poor, good, poor, poor, poor])
        result = await on.result(await on.hand("pws-validation"))
        assert (result.data["total"], result.data["verdict"], result.scores["total"]) == (72, "PIVOT", 72)
        repair = told(on.server.requests[1]).split("Put exactly this right")[1]
        assert "pillars.people.score" in repair
        assert not any(pillar in repair for pillar in ("problem", "solution", "business_case"))
        name = await on.hand("pws-validation")
        result = await on.result(name)
        assert (result.state, result.error_code) == (D.FAILED, ErrorCode.QUALITY_GATE)
        assert (result.output, result.partial) == ("GO!", True)
        assert len(on.server.requests) == 2 + 3
        request = await on.asked(name, "QUALITY_GATE")
        assert [one.id for one in request.options] == ["retry", "accept", "takeover", "abort"]


async def test_an_opportunity_is_never_less_than_how_important_it_is(tmp_path: Path) -> None:
    """Line 36, with the shipped jtbd: (4, 9) is 4 and (8, 4) is 12, the largest first."""
    given = [("functional", 4, 9), ("emotional", 8, 4), ("social", 5, 5)]
    jobs = [
        {"kind": kind, "statement": "When I pay, I want a receipt, so I can claim it",
         "importance": importance, "satisfaction": satisfaction, "opportunity": -1}
        for kind, importance, satisfaction in given
    ]  # fmt: skip
    async with whole(tmp_path / "ws", [], lambda _: returns("jobs", data={"jobs": jobs})) as on:
        result = await on.result(await on.hand("jtbd"))
        found = [(one["kind"], one["opportunity"]) for one in result.data["jobs"]]
        assert found == [("emotional", 12), ("social", 5), ("functional", 4)]


async def test_five_hats_are_enough_and_white_is_not_missed(tmp_path: Path) -> None:
    """Line 37, with the shipped six-hats: 5/6 of the confidence; no white, no quorum."""
    lost = {"Ideas"}
    views = ("Facts and figures", "Feelings", "Caution", "Benefits", "Ideas", "Order")

    def answer(seen: Seen) -> Reply:
        name = asker(seen)
        if name == "Six hats":
            return returns(
                "[white] [red] [black] [yellow] and [blue] agree; green is missing.", confidence=0.9
            )
        return GIVES_UP if name in lost else returns(f"{name}: it took 4 hours")

    async with whole(tmp_path / "ws", [], answer, calls=2) as on:
        result = await on.result(await on.hand("six-hats"))
        assert (result.success, result.missing) == (True, ("green",))
        assert result.confidence == pytest.approx(0.9 * 5 / 6)
        assert {asker(seen) for seen in on.server.requests} == {*views, "Six hats"}
        lost |= {"Facts and figures"}
        before = len(on.asks("Six hats"))
        name = await on.hand("six-hats")
        result = await on.result(name)
        assert (result.success, result.error_code) == (False, ErrorCode.QUORUM)
        assert "white is required" in str(result.error)
        assert len(on.asks("Six hats")) == before
        assert (await on.asked(name)).reason_code == "QUORUM"


def researches(seen: Seen) -> Reply:
    said = told(seen)
    if "The phase Clarify" in said:
        asked = [{"question": "why do they leave?", "success": "a cause with a number"}]
        return object_call("checkpoint", outputs={"questions": asked})
    if "The phase Analyze" in said:
        return object_call("checkpoint", outputs={"evidence": []})
    wrong = "is no source" not in said
    report = f"They leave because of onboarding [{'e9' if wrong else 'e1'}]."
    return object_call("checkpoint", outputs={"report": report, "answered": ["why"], "open": ["since when"]})


async def test_research_says_what_fails_survives_a_restart_and_keeps_its_phases(tmp_path: Path) -> None:
    """Line 38, with the shipped deep-research: measured against wanted, resumed, and again after a change."""
    evidence = [{"id": "e1", "source": "survey.csv", "words": "8 of 10 left in week one"}]
    async with whole(tmp_path / "ws", [], researches) as on:
        name = await on.hand("deep-research")
        request = await on.asked(name)
        assert "0 < 1" in request.question
        assert len(on.server.requests) == 2
    async with whole(tmp_path / "ws", [], researches) as on:
        await on.do(cc.ResumeHandoff(handoff=name))
        await on.answer(await on.asked(name), "edit", json.dumps({"evidence": evidence}))
        request = await on.asked(name)
        assert "'survey.csv' is no action of this run" in request.question
        await on.answer(request, "accept", "our own survey, which I have")
        result = await on.result(name)
        assert result.data["evidence"] == evidence
        assert result.data["report"] == "They leave because of onboarding [e1]."
        assert ["The phase Validate" in told(seen) for seen in on.server.requests] == [True, True]
        again = await on.hand("deep-research")
        await on.answer(await on.asked(again), "abort")
        assert not (await on.result(again)).success
        for request in on.crew.needs:
            await on.do(cc.DismissRequest(request=request.id))

        async def second_try(of: str) -> list[str]:
            """The phases that a second try works on, until it asks."""
            before = len(on.server.requests)
            after = (await on.do(cc.RetryHandoff(handoff=of))).data["handoff"]
            await on.answer(await on.asked(after), "abort")
            await on.result(after)
            seen = [told(one) for one in on.server.requests[before:]]
            return [phase for one in seen for phase in ("Clarify", "Analyze") if f"The phase {phase}" in one]

        assert await second_try(again) == ["Analyze"]
        changed = on.spec("deep-research").model_dump(mode="json")
        changed["phases"][0]["description"] = "Ask anew."
        await on.do(cc.RegisterAgent(spec={**changed, "version": "2.0.0"}))
        assert await second_try(again) == ["Clarify", "Analyze"]


async def test_the_canvas_is_filled_over_a_restart(tmp_path: Path) -> None:
    """Lines 39 and 40, with the shipped bmc-wizard: refusals in place, dependants stale, all kept."""
    async with whole(tmp_path / "ws", [], None) as on:
        name = await on.hand("bmc-wizard")

        async def refused(move: str, **more: Any) -> str:
            await on.move(name, move, **more)
            return (await on.asked(name)).context

        assert "nothing before it" in await refused("back")
        assert "required and cannot be skipped" in await refused("skip")
        await on.move(name, "answer", value="bakeries\ncafés")
        await on.move(name, "answer", value="fresh bread at seven")
        for _ in ("channels", "relationships"):
            await on.move(name, "skip", reason="later")
        await on.move(name, "answer", value="Bakeries pay monthly")
        for _ in ("resources", "activities", "partners"):
            await on.move(name, "skip")
        await on.do(cc.GuidedMove(handoff=name, move="save"))
        held = on.of(name).progress
        assert on.of(name).state is D.PAUSED
    async with whole(tmp_path / "ws", [], None) as on:
        assert (on.of(name).state, on.of(name).progress) == (D.PAUSED, held)
        await on.do(cc.ResumeHandoff(handoff=name))
        assert (await on.asked(name)).title == "Cost structure"
        await on.move(name, "answer", value="ovens and rent")
        await on.move(name, "jump", step="segments")
        await on.move(name, "answer", value="bakeries\ncafés")
        await on.move(name, "jump", step="segments")
        await on.move(name, "answer", value="bakeries\nhotels")
        stale = [key for key, step in session(on, name)["steps"].items() if step["status"] == "stale"]
        assert sorted(stale) == ["costs", "revenue", "value"]
        assert "stale: confirm it" in await refused("finish")
        await on.move(name, "confirm", step="value")
        await on.move(name, "confirm", step="revenue")
        await on.move(name, "confirm", step="costs")
        await on.move(name, "finish")
        result = await on.result(name)
        assert (result.success, result.data["segments"]) == (True, "bakeries\nhotels")
        assert "*skipped*: later" in result.output
        assert result.usage.calls == 0
        await on.at_rest()


def session(on: Whole, name: str) -> dict[str, Any]:
    found: dict[str, Any] = on.of(name).progress["crew.guided"]
    return found


GIVEN: dict[str, dict[str, Any]] = {
    "pws-validation": {"output": "as told", "data": {"pillars": PILLARS}},
    "minto-pyramid": {"output": "nothing of it"},
}


async def test_without_a_model_each_does_what_can_be_computed_and_says_what_needs_one(tmp_path: Path) -> None:
    """Line 43, by which the canvas ends; all that is shipped, and nothing is made up."""
    async with whole(tmp_path / "ws", [], None) as on:
        types = {one: on.spec(one).type for one in on.crew.state.agents}
        for name in [one for one, type_ in types.items() if type_ is not AgentType.GUIDED]:
            asked = cc.Delegate(to=name, task="We hire two people.", clarity=CLEAR)
            refused = await on.engine.submit(asked)
            assert (refused.ok, refused.data) == (False, {"code": "NO_MODEL"}), name
            assert "needs a model" in refused.message
        assert not on.crew.state.handoffs
        counted = await on.result(
            await on.hand("pws-validation", metadata={"given": GIVEN["pws-validation"]})
        )
        assert (counted.success, counted.data["verdict"]) == (True, "PIVOT")
        poor = await on.result(await on.hand("minto-pyramid", metadata={"given": GIVEN["minto-pyramid"]}))
        assert (poor.success, poor.error_code) == (False, ErrorCode.QUALITY_GATE)
        assert any("situation" in line for line in poor.failures)
        wizard = await on.hand("bmc-wizard")
        await on.move(wizard, "suggest")
        assert "writing one needs a model" in (await on.asked(wizard)).context
        await on.do(cc.TakeOver(handoff=wizard, text="My own canvas"))
        taken = await on.result(wizard)
        assert (taken.output, taken.from_agent, taken.metadata["by"]) == (
            "My own canvas",
            "bmc-wizard",
            "operator",
        )
        assert on.crew.state.open_requests(wizard) == ()
        together = await on.engine.submit(cc.Parallel(to=("jtbd", "devil"), task="go", clarity=CLEAR))
        assert together.data == {"code": "NO_MODEL"}
        for request in on.crew.needs:
            await on.do(cc.DismissRequest(request=request.id))
        await on.at_rest()


async def test_what_is_allowed_always_holds_for_runs_to_come_of_that_agent(tmp_path: Path) -> None:
    """Line 42, with a tool that the engine asks about: listed, kept over a restart, revoked."""
    local = {"tools": {"local": ["simple_coder.write"]}}
    specs = [spec("writer", "operator", **local), spec("other", "operator", **local)]
    asks = PRESETS["ask-changes"]

    def answer(seen: Seen) -> Reply:
        if "simple_coder write" in told(seen):
            return returns("written")
        return object_call("simple_coder__write", path="a.txt", content=f"by {len(told(seen))}")

    async def waits(on: Whole, agent: str) -> str:
        name = await on.hand(agent)
        await on.holds(lambda: on.of(name).state is D.WAITING_HUMAN)
        return name

    async with whole(tmp_path / "ws", specs, answer, approvals=asks) as on:
        name = await waits(on, "writer")
        await on.do(cmd.AnswerApproval(agent="writer-1", allow=True, scope="always"))
        assert (await on.result(name)).output == "written"
        await on.holds(lambda: on.crew.state.permissions)
        ((who, rule),) = on.crew.state.permissions
        assert (who, rule.split()[0]) == ("writer", "write")
    async with whole(tmp_path / "ws", [], answer, approvals=asks) as on:
        assert (await on.result(await on.hand("writer"))).output == "written"
        name = await waits(on, "other")
        await on.do(cc.CancelHandoff(handoff=name))
        await on.do(cc.RevokePermission(who="writer", tool=rule))
        assert on.crew.state.permissions == {}
        await waits(on, "writer")
        await on.do(cc.CancelHandoff())
        await on.at_rest()
