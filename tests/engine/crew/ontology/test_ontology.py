"""The ontology's values: lines 1 to 8 of the spec's checklist (ontology spec §6), without a manager."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from pydantic import ValidationError

from engine.crew.ontology.context import (
    SLOTS,
    HandoffContext,
    HumanRequest,
    Option,
    PreviousAnalysis,
    ProblemClarity,
    capped,
    clarity_from,
)
from engine.crew.ontology.kinds import (
    MOVES,
    AgentType,
    Effect,
    ErrorCode,
    HandoffState,
    IllegalTransition,
    InvalidError,
    RequestKind,
    check_move,
)
from engine.crew.ontology.results import HandoffResult, parse_text_answer, schema_for
from engine.crew.ontology.spec import Receives
from engine.crew.ontology.spec_parser import parse_spec
from engine.crew.thinker.prompt import PROMPT_LIMIT, context_prompt

SPEC = {"id": "x", "name": "X", "description": "d", "type": "operator"}


def context(**more: object) -> HandoffContext:
    return HandoffContext.read({"from_agent": "larry", "to_agent": "pws", "task_description": "t"} | more)


def test_the_mean_is_ready_and_an_agent_that_requires_success_refuses() -> None:
    """Line 1."""
    clarity = ProblemClarity(what="a", what_clarity=1.0, who="b", who_clarity=0.8)
    assert clarity.overall_clarity == pytest.approx(0.6)
    assert clarity.is_ready_for_analysis
    assert "success" in Receives(requires_success=True).refusal(clarity)
    assert not Receives(requires_success=False).refusal(clarity)


def test_admission_is_the_mean_over_what_is_required() -> None:
    """Line 1."""
    pet = clarity_from({"what": "Pet translation", "who": "Pet owners"})
    assert [pet.score(slot) for slot in SLOTS] == [0.6, 0.6, 0.0]
    assert not Receives(min_clarity=0.5).refusal(pet)
    collaborative = parse_spec({**SPEC, "type": "collaborative", "debate": {"sides": SIDES}}).handoff.receives
    assert "success is not said" in collaborative.refusal(pet)


SIDES = [
    {"label": "A", "agent_id": "pws", "stance": "for"},
    {"label": "B", "agent_id": "devil", "stance": "against"},
]


def test_blank_words_are_unclear_and_scores_are_numbers_from_0_to_1() -> None:
    """Line 2."""
    assert ProblemClarity(who="  ", who_clarity=0.9).who_clarity == 0.0
    for wrong in (float("nan"), float("inf"), -0.1, 1.2):
        with pytest.raises(ValidationError, match="who_clarity"):
            ProblemClarity(who="b", who_clarity=wrong)


@pytest.mark.parametrize(
    ("given", "wanted", "overall"),
    [
        (
            [
                ("Customer churn is increasing", 0.9, False),
                ("B2B SaaS startups under $1M ARR", 0.9, False),
                ("Reduce churn to under 5%", 0.9, False),
            ],
            [0.85, 0.85, 0.85],
            0.85,
        ),
        (
            [("make it better", 0.9, False), ("everyone", 0.9, False), ("happy users", 0.9, False)],
            [0.4, 0.4, 0.5],
            0.4333,
        ),
        (
            [
                ("Support queue is 4 hours behind", 1.0, True),
                ("e-commerce shops with <10 agents", 0.95, True),
                ("", 0.9, False),
            ],
            [1.0, 0.95, 0.0],
            0.65,
        ),
        (
            [
                ("Support queue is 4 hours behind", 0.8, False),
                ("SaaS startup", 0.8, False),
                ("response gets faster", 0.8, False),
            ],
            [0.8, 0.6, 0.5],
            0.6333,
        ),
    ],
)
def test_the_worked_scores(given: list[tuple[str, float, bool]], wanted: list[float], overall: float) -> None:
    """Line 3."""
    clarity = ProblemClarity()
    for slot, (text, score, confirmed) in zip(SLOTS, given, strict=True):
        assert capped(slot, text, score, confirmed) == wanted[SLOTS.index(slot)]
        clarity = clarity.updated(slot, text, score, confirmed)
    assert clarity.overall_clarity == pytest.approx(overall, abs=5e-5)


def test_context_and_result_survive_json() -> None:
    """Line 4."""
    given = context(
        timestamp=datetime(2026, 1, 2, 3, tzinfo=timezone(timedelta(hours=2))),
        problem_clarity=clarity_from({"what": "Pet translation", "confirmed": ["what"]}),
        previous_analyses=[PreviousAnalysis(framework_id="minto", handoff_id="h-1234")],
        focus_areas=["price", " price ", "people"],
        metadata={"a": [1, None, "ü"]},
    )
    assert given.timestamp == datetime(2026, 1, 2, 1, tzinfo=UTC)
    assert given.timestamp.tzinfo is UTC
    assert given.focus_areas == ("price", "people")
    assert given.return_to == "larry"
    assert HandoffContext.model_validate_json(given.model_dump_json()) == given
    assert context(timestamp=datetime(2026, 1, 2)).timestamp.tzinfo is UTC
    result = HandoffResult(
        handoff_id=given.handoff_id, from_agent="pws", to_agent="larry", success=True, output="x"
    )
    assert HandoffResult.model_validate_json(result.model_dump_json()) == result
    stored = result.model_dump(mode="json") | {"later": 1}
    assert HandoffResult.loaded(stored) == result
    with pytest.raises(InvalidError, match="later"):
        HandoffResult.read(stored)


@pytest.mark.parametrize(
    ("more", "field"),
    [
        ({"focus_areas": ["a"], "ignore_areas": ["a"]}, "focus_areas"),
        ({"to_agent": "larry"}, "to_agent"),
        ({"handoff_type": "transfer", "return_to": "larry"}, "return_to"),
        ({"timeout_seconds": 0}, "timeout_seconds"),
        ({"priority": 4}, "priority"),
        ({"handoff_type": "escalate"}, "to_agent"),
        ({"handoff_type": "return"}, "in_reply_to"),
        ({"task_description": " "}, "task_description"),
        ({"to_agent": "Not An Id"}, "to_agent"),
        ({"metadata": {"a": "x" * 70_000}}, "metadata"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(more: dict[str, object], field: str) -> None:
    """Line 5."""
    with pytest.raises(InvalidError, match=field):
        context(**more)


def test_success_is_the_absence_of_an_error() -> None:
    """Line 6."""
    ends = {"handoff_id": "h-1", "from_agent": "pws", "to_agent": "larry"}
    for wrong in (
        {"success": True, "output": "x", "error": "no"},
        {"success": False},
        {"success": True},
        {"success": True, "output": "{", "output_format": "json"},
        {"success": True, "output": "x", "needs_human_input": True},
        {"success": True, "output": "x", "state": "running"},
        {"success": True, "output": "x", "suggested_next_agents": ["pws"]},
    ):
        with pytest.raises(ValidationError):
            HandoffResult.model_validate(ends | wrong)
    failed = HandoffResult(
        **ends, success=False, error="no", error_code=ErrorCode.TIMEOUT, state=HandoffState.TIMED_OUT
    )
    with pytest.raises(ValueError, match="no analysis"):
        failed.to_analysis()


def test_what_a_model_did_not_say_is_empty() -> None:
    """Line 7."""
    said = parse_text_answer("It is fine.")
    assert (said.key_findings, said.recommendations, said.confidence) == ((), (), None)
    told = parse_text_answer(
        "# Report\nwords\n## Key findings\n- one\n2. two\n## Other\n- three\n## Recommendations\n* do it\n"
    )
    assert (told.key_findings, told.recommendations) == (("one", "two"), ("do it",))
    block = parse_text_answer('Prose.\n```json\n{"confidence": 0.4, "key_findings": ["a"]}\n```\n')
    assert (block.output, block.confidence, block.key_findings) == ("Prose.", 0.4, ("a",))
    assert (
        "confidence"
        not in schema_for(parse_spec({**SPEC, "handoff": {"returns": {"confidence_score": False}}}))[
            "properties"
        ]
    )


def test_a_spec_tells_everything_that_is_wrong_with_its_place() -> None:
    """Line 8."""
    with pytest.raises(InvalidError) as refused:
        parse_spec(
            {
                "id": "Bad Id",
                "name": "x",
                "description": "d",
                "type": "pipeline",
                "model": {
                    "thinking": "budget",
                    "thinking_budget": 5000,
                    "max_tokens": 4096,
                    "temperature": 0.7,
                },
                "phases": [{"id": "a", "name": "A", "inputs": ["nowhere"]}, {"id": "a", "name": "B"}],
                "handoff": {"supports": {"transfer": True}},
            }
        )
    places = {problem.path for problem in refused.value.problems}
    assert places >= {
        "id",
        "model.thinking_budget",
        "model.temperature",
        "phases[0].inputs[0]",
        "phases[1].id",
        "handoff.supports.transfer",
    }


def test_the_defaults_of_the_types() -> None:
    def made(kind: str, **more: object) -> Receives:
        return parse_spec({**SPEC, "type": kind, **more}).handoff.receives

    assert made("role").min_clarity == 0.3
    assert made("OPERATOR").min_clarity == 0.5
    guided = parse_spec({**SPEC, "type": "guided", "steps": [{"id": "a", "title": "A"}]})
    assert guided.handoff.supports.transfer
    assert guided.handoff.routing.return_behavior == "iterate"
    assert made("collaborative", debate={"sides": SIDES}).required == SLOTS
    with pytest.raises(InvalidError, match="'role', 'operator'"):
        parse_spec({**SPEC, "type": "fuzzer"})


def test_every_move_that_the_table_does_not_allow_is_illegal() -> None:
    for source in HandoffState:
        for target in HandoffState:
            if target in MOVES[source]:
                check_move(source, target)
            else:
                with pytest.raises(IllegalTransition):
                    check_move(source, target)
    assert [state.value for state in HandoffState if state.terminal] == [
        "completed",
        "failed",
        "cancelled",
        "timed_out",
        "rejected",
    ]
    assert AgentType(" GUIDED ") is AgentType.GUIDED


def test_a_prompt_keeps_task_and_clarity_and_cuts_the_oldest_first() -> None:
    old = PreviousAnalysis(
        framework_id="minto", output="a" * 3_000, key_findings=["old finding"], handoff_id="h-1"
    )
    new = PreviousAnalysis(
        framework_id="pws", output="b" * 3_000, key_findings=["new finding"], handoff_id="h-2"
    )
    given = context(task_description="the task", problem_clarity=clarity_from({"what": "Pet translation"}))
    both = given.model_copy(update={"previous_analyses": (old, new)})
    text = context_prompt(both)
    assert text == context_prompt(both)
    assert (
        text.index("the task")
        < text.index("Pet translation")
        < text.index("old finding")
        < text.index("new finding")
    )
    assert "[cut, 2,000 more]" in text
    shorter = context_prompt(both, limit=len(text) - 500)
    assert "a" * 50 not in shorter
    assert "old finding" in shorter
    assert "b" * 50 in shorter
    least = context_prompt(both, limit=10)
    assert "the task" in least
    assert "Pet translation" in least
    assert "new finding" not in least
    assert len(context_prompt(given)) < PROMPT_LIMIT


def test_a_request_can_always_be_answered() -> None:
    asked = {
        "id": "hr-1",
        "agent_id": "pws",
        "reason_code": "x",
        "title": "t",
        "question": "q",
        "created_at": datetime.now(UTC),
    }
    with pytest.raises(ValidationError, match="allow_once"):
        HumanRequest(
            **asked, kind=RequestKind.PERMISSION, options=(Option(id="a", label="a", effect=Effect.RESUME),)
        )
