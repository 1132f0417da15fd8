"""Steps with the operator, as a run of the engine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from crew_desk import SmallDesk, scene, spec

from engine.crew.ports import OperatorQuestion
from tests.messages_server import Reply

STEPS = [
    {"id": "segments", "title": "Customer segments", "required": True, "suggest": "name two"},
    {"id": "value", "title": "Value", "required": True, "depends_on": ["segments"]},
    {"id": "extra", "title": "Extra", "depends_on": ["value"]},
]
WIZARD = spec("bmc-wizard", "guided", steps=STEPS)


def moves(*said: Any) -> tuple[Any, list[OperatorQuestion]]:
    told: list[OperatorQuestion] = []
    left: Iterator[Any] = iter(said)

    def says(question: OperatorQuestion) -> Any:
        told.append(question)
        return next(left, None)

    return says, told


async def test_a_session_goes_forth_and_back_and_finishes_without_a_model(tmp_path: Path) -> None:
    """Lines 39 and 40, as a run: refusals are told in place, dependants of a changed answer are stale."""
    says, told = moves(
        ("back", ""),
        ("skip", ""),
        "small shops",
        "they save time",
        ("skip", "not now"),
        '{"move": "jump", "step": "segments"}',
        '{"move": "answer", "value": "large shops"}',
        ("finish", ""),
        ("confirm", "value"),
        ("finish", ""),
    )
    async with scene(tmp_path, SmallDesk(WIZARD, says=says)) as on:
        result = await on.hand(WIZARD)
        assert result.success
        assert result.data == {"segments": "large shops", "value": "they save time"}
        assert "*skipped*: not now" in result.output
        context = [question.context for question in told]
        assert "nothing before it" in context[1]
        assert "required and cannot be skipped" in context[2]
        assert "stale: confirm it" in context[8]
        assert [question.title for question in told[:5]] == [
            "Customer segments",
            "Customer segments",
            "Customer segments",
            "Value",
            "Extra",
        ]
        state = await on.over("bmc-wizard-1")
        assert state.model_calls == 0
        kept = [what for _, what, _ in on.desk.kept]
        assert kept == ["guided.step"] * 10


async def test_a_draft_is_the_models_and_stored_only_by_the_operator(tmp_path: Path) -> None:
    says, told = moves(("suggest", ""), ("take", ""), "time", ("skip", ""), ("finish", ""))
    async with scene(tmp_path, SmallDesk(WIZARD, says=says), [Reply(text="shops and cafés")]) as on:
        result = await on.hand(WIZARD)
        assert result.data["segments"] == "shops and cafés"
        assert "draft: shops and cafés" in told[1].context
        assert "Draft an answer" in on.told(0)
        assert set(on.offered(0)) == {"draft"}
        assert len(on.server.requests) == 1


async def test_a_draft_without_a_model_is_said_to_need_one(tmp_path: Path) -> None:
    says, told = moves(("suggest", ""), "shops", "time", ("skip", ""), ("finish", ""))
    async with scene(tmp_path, SmallDesk(WIZARD, says=says)) as on:
        assert (await on.hand(WIZARD)).success
        assert "needs a model" in told[1].context
