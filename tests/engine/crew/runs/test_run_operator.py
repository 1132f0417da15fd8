"""An operator as a run of the engine: one task in, one checked answer out."""

from __future__ import annotations

from pathlib import Path

from crew_desk import MODEL, SmallDesk, returns, scene, spec

from engine.core.goals import GoalStatus
from engine.crew.ontology.kinds import ConfidenceSource, ErrorCode
from tests.messages_server import Reply, object_call

MINTO = {
    "instructions": {
        "system": "You write pyramids.",
        "quality_criteria": [
            {"check": "min_items", "field": "key_findings", "n": 2, "message": "give two findings"},
            {"check": "max_words", "n": 20, "message": "use 20 words"},
            {"check": "regex", "pattern": "^Answer", "hard": False, "message": "begin with Answer"},
        ],
    }
}


async def test_a_handoff_is_an_ordinary_agent_whose_model_is_told_the_task_and_returns_once(
    tmp_path: Path,
) -> None:
    """Line 7: what the model does not say is empty, and its confidence is 0.0 with source none."""
    minto = spec("minto-pyramid", "operator", instructions={"system": "You write pyramids."})
    async with scene(tmp_path, SmallDesk(minto), [returns()]) as on:
        result = await on.hand(minto, problem_clarity={"what": "Churn rises every month"})
        assert (result.success, result.output) == (True, "Churn comes from onboarding.")
        assert (result.confidence, result.confidence_source) == (0.0, ConfidenceSource.NONE)
        assert (result.key_findings, result.recommendations, result.scores) == ((), (), {})
        assert (result.usage.calls, result.usage.output_tokens, result.usage.input_tokens) == (1, 20, 100)
        state = await on.over("minto-pyramid-1")
        assert state.goals["g1"].status is GoalStatus.ACHIEVED
        assert state.agent_type == "operator"
        told = on.told(0)
        assert "You write pyramids." in told
        assert "Churn rises every month" in told
        assert set(on.offered(0)) == {"return_result", "give_up", "escalate_to_operator"}
        assert on.server.requests[0].body["max_tokens"] == 4096
        assert on.server.requests[0].body["model"] == MODEL


async def test_a_hard_criterion_that_fails_is_sent_back_alone_and_the_result_counts_after(
    tmp_path: Path,
) -> None:
    """Line 35, the repair."""
    minto = spec("minto-pyramid", "operator", **MINTO)
    script = [returns(), returns(key_findings=["one", "two"])]
    async with scene(tmp_path, SmallDesk(minto), script) as on:
        result = await on.hand(minto)
        assert result.success
        assert result.warnings == ("begin with Answer (1 do not match)",)
        repair = on.told(1).split("Put exactly this right")[1]
        assert "give two findings" in repair
        assert "use 20 words" not in repair
        assert "Churn comes from onboarding." in on.told(1)


async def test_after_two_repairs_it_fails_with_the_output_kept(tmp_path: Path) -> None:
    """Line 35, at most twice."""
    minto = spec("minto-pyramid", "operator", **MINTO)
    async with scene(tmp_path, SmallDesk(minto), [returns()] * 3) as on:
        result = await on.hand(minto)
        assert (result.success, result.error_code) == (False, ErrorCode.QUALITY_GATE)
        assert result.output == "Churn comes from onboarding."
        assert [one.passed for one in result.quality] == [False, True, False]
        assert len(on.server.requests) == 3


async def test_numbers_are_computed_and_overwrite_what_the_model_wrote(tmp_path: Path) -> None:
    """Line 36: 22/18/20/12 gives 72 and PIVOT even if the model wrote GO; JTBD (4,9) gives 4."""
    pws = spec("pws", "operator", compute="pws")
    jtbd = spec("jtbd", "operator", compute="jtbd")
    scores = dict(zip(("problem", "solution", "business_case", "people"), (22, 18, 20, 12), strict=True))
    pillars = {name: {"score": score, "evidence": ["told"]} for name, score in scores.items()}
    jobs = [{"kind": "functional", "importance": 4, "satisfaction": 9, "opportunity": -1}]
    script = [
        returns("GO", data={"pillars": pillars, "verdict": "GO", "total": 90}),
        returns("jobs", data={"jobs": jobs}),
    ]
    async with scene(tmp_path, SmallDesk(pws, jtbd), script) as on:
        result = await on.hand(pws)
        assert (result.data["total"], result.data["verdict"]) == (72, "PIVOT")
        assert result.scores["total"] == 72
        assert any("'GO' becomes 'PIVOT'" in line for line in result.warnings)
        assert (await on.hand(jtbd)).data["jobs"][0]["opportunity"] == 4


async def test_without_a_model_what_was_given_is_counted_and_the_rest_says_what_it_needs(
    tmp_path: Path,
) -> None:
    pws = spec("pws", "operator", compute="pws")
    given = {"output": "as told", "data": {"problem": 20, "solution": 20, "business_case": 20, "people": 20}}
    async with scene(tmp_path, SmallDesk(pws)) as on:
        result = await on.hand(pws, metadata={"given": given})
        assert (result.success, result.data["verdict"]) == (True, "GO")
        result = await on.hand(pws)
        assert (result.success, result.error_code) == (False, ErrorCode.NO_MODEL)
        assert "needs a model" in str(result.error)
        assert not result.output


async def test_only_allowed_tools_are_offered_and_eight_calls_are_the_most(tmp_path: Path) -> None:
    writer = spec("writer", "operator", tools={"local": ["simple_coder.ls", "simple_coder.write", "no.such"]})
    look = object_call("simple_coder__ls")
    wrong = object_call("simple_coder__run", command="ls")
    async with scene(tmp_path, SmallDesk(writer), [wrong, *[look] * 8, returns()]) as on:
        assert (await on.hand(writer)).success
        assert {"simple_coder__ls", "simple_coder__write"} <= set(on.offered(0))
        assert "simple_coder__run" not in on.offered(0)
        assert "there is no tool" in on.told(1)
        assert set(on.offered(9)) == {"return_result", "give_up"}


async def test_words_without_a_call_are_read_for_what_they_hold(tmp_path: Path) -> None:
    minto = spec("minto-pyramid", "operator")
    words = "Churn is high.\n\n## Key findings\n- onboarding is slow\n\n## Open questions\n- since when?"
    async with scene(tmp_path, SmallDesk(minto), [Reply(text=words)]) as on:
        result = await on.hand(minto)
        assert result.key_findings == ("onboarding is slow",)
        assert result.open_questions == ("since when?",)


async def test_tier_and_thinking_of_the_specification_are_sent_as_the_model_takes_them(
    tmp_path: Path,
) -> None:
    deep = spec(
        "deep",
        "operator",
        model={"tier": "deep", "thinking": "adaptive", "max_tokens": 3000, "effort": "low"},
    )
    budget = spec(
        "budget",
        "operator",
        model={"id": "claude-haiku-4-5", "thinking": "budget", "thinking_budget": 1500, "effort": "high"},
    )
    tiers = {"deep": "claude-opus-5-5"}
    async with scene(tmp_path, SmallDesk(deep, budget), [returns(), returns()], tiers=tiers) as on:
        await on.hand(deep)
        await on.hand(budget)
        first, second = (one.body for one in on.server.requests)
        assert (first["model"], first["thinking"]["type"], first["max_tokens"]) == (
            "claude-opus-5-5",
            "adaptive",
            3000,
        )
        assert first["output_config"] == {"effort": "low"}
        assert second["model"] == "claude-haiku-4-5"
        assert "output_config" not in second
        assert second["thinking"] == {"type": "enabled", "budget_tokens": 1500}
        assert "temperature" not in second
