"""Criteria in words: judged by a call of the run's own, recorded, and never passed where nobody judged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from crew_desk import MODEL, Scene, SmallDesk, returns, scene, spec, task

from app.projection.session_views import check_lines
from engine.core.agents import PIPELINE
from engine.core.budgets import SpendingLimits
from engine.crew.ontology.kinds import Check, ErrorCode, InvalidError
from engine.crew.ontology.results import CriterionResult, HandoffResult
from engine.crew.ontology.spec_parser import parse_spec
from tests.messages_server import Reply, failure, object_call

KIND = "the tone is kind"
SHORT = "it says who is meant"


def rubric(text: str = KIND, **more: Any) -> dict[str, Any]:
    return {"check": "llm_rubric", "rubric": text, **more}


def minto(*rubrics: dict[str, Any], **model: Any) -> Any:
    said = {"system": "You write pyramids.", "quality_criteria": list(rubrics)}
    return spec("minto-pyramid", "operator", instructions=said, model=model)


def pipe(**one: Any) -> Any:
    checkpoint = {"criteria": [{"check": "non_empty", "field": "x"}, rubric(**one)], "max_retries": 1}
    phase = {"id": "p", "name": "P", "inputs": ["task"], "outputs": ["x"], "checkpoint": checkpoint}
    return spec("pipe", "pipeline", phases=[phase], model={"thinking": "off"})


def verdicts(*said: tuple[bool, str]) -> Reply:
    return object_call(
        "give_verdicts",
        verdicts=[{"criterion": n, "passed": ok, "reason": why} for n, (ok, why) in enumerate(said, 1)],
    )


def gives(text: str) -> Reply:
    return object_call("checkpoint", outputs={"x": text})


def of_rubrics(result: HandoffResult) -> list[CriterionResult]:
    return [one for one in result.quality if one.check is Check.LLM_RUBRIC]


def notes(on: Scene) -> list[str]:
    return [note for _, what, note in on.desk.kept if what == "rubric"]


async def test_a_rubric_is_judged_by_one_call_and_what_it_misses_is_put_right(tmp_path: Path) -> None:
    kind = minto(rubric(), rubric(SHORT, hard=False), effort="low")
    script = [
        returns("Fools leave."),
        verdicts((False, "it calls people fools"), (False, "nobody is named")),
        returns("Small shops leave."),
        verdicts((True, "it is neutral"), (False, "which shops?")),
    ]
    async with scene(tmp_path, SmallDesk(kind), script) as on:
        result = await on.hand(kind)
        assert (result.success, result.output, result.usage.calls) == (True, "Small shops leave.", 4)
        asked = on.server.requests[1].body
        assert (asked["model"], asked["output_config"]) == (MODEL, {"effort": "low"})
        for words in ("Fools leave.", "Look at the churn.", KIND, SHORT):
            assert words in on.told(1)
        repair = on.told(2).split("Put exactly this right")[1]
        assert "it calls people fools" in repair
        assert SHORT not in repair  # a warning is not sent back
        assert [(one.passed, one.hard) for one in of_rubrics(result)] == [(True, True), (False, False)]
        assert "it is neutral" in of_rubrics(result)[0].measured
        assert [line for line in result.warnings if "which shops?" in line]
        assert not result.needs_human_input
        assert len(notes(on)) == 2
        assert f"{KIND}: not satisfied ({MODEL}): it calls people fools" in notes(on)[0]
        state = await on.over("minto-pyramid-1")
        assert dict(state.context).keys() >= {"handoff"}  # the prompt that is shown is still the agent's own


async def test_a_checkpoint_fails_by_a_rubric_as_by_any_other_criterion(tmp_path: Path) -> None:
    script = [gives("Fools."), verdicts((False, "rude")), gives("Shops."), verdicts((True, "kind enough"))]
    async with scene(tmp_path, SmallDesk(pipe()), script) as on:
        result = await on.hand(pipe())
        assert (result.success, result.output) == (True, "Shops.")
        assert "rude" in on.told(2).split("Put exactly this right")[1]
        held = (await on.over("pipe-1")).beliefs[PIPELINE].value
        (record,) = held["records"]
        judged = [one for one in record["criteria"] if one["check"] == "llm_rubric"]
        assert [one["passed"] for one in judged] == [True]
        shown = check_lines([CriterionResult.read(one) for one in judged])
        assert (shown[0][0], "kind enough" in shown[0][1]) == ("✓", True)


async def test_a_malformed_verdict_is_asked_for_once_more_and_then_stays_open_with_the_reason(
    tmp_path: Path,
) -> None:
    soft = minto(rubric(hard=False), rubric(SHORT, hard=False))
    wrong = [verdicts((True, "one")), Reply(text="It is fine.")]
    async with scene(tmp_path, SmallDesk(soft), [returns(), *wrong]) as on:
        result = await on.hand(soft)
        assert (result.success, result.usage.calls) == (True, 3)
        assert "one verdict for each criterion" in on.told(2)
        assert [one.passed for one in of_rubrics(result)] == [None, None]
        assert all("not judged" in one.message and MODEL in one.message for one in of_rubrics(result))
        assert not result.needs_human_input


async def test_what_nobody_could_judge_is_the_operators_to_decide(tmp_path: Path) -> None:
    """Hard and not judged is neither passed nor failed: nothing is sent back, and a person is asked."""
    down = failure(500, message="down")
    desk = SmallDesk(pipe(), says=lambda _: ("accept", "I have read it"))
    hard = minto(rubric())
    async with scene(tmp_path, desk, [gives("Shops."), down, returns(), down]) as on:
        result = await on.hand(pipe())
        assert result.success
        (asked,) = on.desk.asked
        assert (asked.reason_code, "not judged" in asked.question, "down" in asked.question) == (
            *("checkpoint", True, True),
        )
        (record,) = (await on.over("pipe-1")).beliefs[PIPELINE].value["records"]
        assert record["accepted"] == "I have read it"
        result = await on.hand(hard)
        assert (result.success, result.needs_human_input) == (True, True)
        assert "down" in result.human_input_reason


async def test_a_budget_that_holds_no_more_calls_leaves_a_rubric_open_and_holds_nobody(
    tmp_path: Path,
) -> None:
    soft = minto(rubric(hard=False))
    async with scene(tmp_path, SmallDesk(soft), [returns()], budget=SpendingLimits(calls=1)) as on:
        result = await on.hand(soft)
        assert (result.success, result.usage.calls) == (True, 1)
        (one,) = of_rubrics(result)
        assert (one.passed, "budget" in one.message) == (None, True)


async def test_a_run_that_is_stopped_while_it_is_judged_leaves_no_call(tmp_path: Path) -> None:
    soft = minto(rubric(hard=False))
    async with scene(tmp_path, SmallDesk(soft), [returns(), Reply(silent=True)]) as on:
        context = task(soft)
        run = await on.desk.begin(context, soft)
        await on.server.held.wait()
        await on.desk.runs.stop(run, "enough")
        await on.server.emptied()
        assert not on.desk.results[context.handoff_id].done()


async def test_without_a_model_a_rubric_says_that_it_needs_one(tmp_path: Path) -> None:
    soft = minto(rubric(hard=False))
    async with scene(tmp_path, SmallDesk(soft)) as on:
        result = await on.hand(soft, metadata={"given": {"output": "as told"}})
        assert result.success
        (one,) = of_rubrics(result)
        assert (one.passed, one.wanted, one.message) == (None, KIND, "not judged: needs a model")
        assert (await on.hand(soft)).error_code is ErrorCode.NO_MODEL


def test_an_answer_that_is_checked_while_it_is_typed_has_no_rubric() -> None:
    steps = [{"id": "a", "title": "A", "validators": [rubric()]}]
    with pytest.raises(InvalidError, match=r"steps\[0\].validators\[0\].check"):
        parse_spec({"id": "g", "name": "G", "type": "guided", "description": "a guide", "steps": steps})
