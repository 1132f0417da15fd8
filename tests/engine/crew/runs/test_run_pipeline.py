"""Phases with checkpoints, as a run of the engine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from crew_desk import SmallDesk, scene, spec, task

from engine.core.agents import PIPELINE
from engine.crew.ontology.kinds import ErrorCode
from tests.messages_server import Reply, object_call

CLARITY = {"what": "Churn rises every month", "who": "Small shops in Europe", "success": "below 5%"}


def pipe(wanted: int = 2, on_fail: str = "retry", retries: int = 1) -> Any:
    forces = {"check": "min_items", "field": "driving_forces", "n": wanted}
    phases = [
        {"id": "clarify", "name": "Clarify", "inputs": ["task"], "outputs": ["questions"]},
        {
            "id": "analyze",
            "name": "Analyze",
            "inputs": ["questions"],
            "outputs": ["driving_forces"],
            "checkpoint": {"criteria": [forces], "on_fail": on_fail, "max_retries": retries},
        },
        {"id": "report", "name": "Report", "inputs": ["driving_forces"], "outputs": ["report"]},
    ]
    return spec("deep-research", "pipeline", phases=phases, model={"thinking": "off"})


def gives(**outputs: Any) -> Reply:
    return object_call("checkpoint", outputs=outputs)


async def test_each_phase_is_checked_and_what_fails_shows_measured_against_wanted(tmp_path: Path) -> None:
    """Line 38, first half."""
    script = [
        gives(questions="why do they leave?"),
        gives(driving_forces=["price"]),
        gives(driving_forces=["price", "onboarding"]),
        Reply(text="They leave because of onboarding."),
    ]
    async with scene(tmp_path, SmallDesk(pipe()), script) as on:
        result = await on.hand(pipe())
        assert (result.success, result.output) == (True, "They leave because of onboarding.")
        assert result.data["driving_forces"] == ["price", "onboarding"]
        assert "why do they leave?" in on.told(1)
        assert "1 < 2" in on.told(2)
        assert "onboarding" in on.told(3)
        notes = [note for _, what, note in on.desk.kept if what == "pipeline.phase"]
        assert any("analyze: tries again:" in note and "1 < 2" in note for note in notes)
        state = await on.over("deep-research-1")
        assert [step.provenance.clause for step in state.plans["g1"].steps if step.op == "think"] == [
            "clarify",
            "analyze",
            "report",
        ]


async def test_when_retries_are_used_up_the_operator_writes_it_and_it_is_checked_again(
    tmp_path: Path,
) -> None:
    answers = iter([("edit", '{"driving_forces": ["a"]}'), ("edit", '{"driving_forces": ["a", "b"]}')])
    script = [
        gives(questions="q"),
        gives(driving_forces=["x"]),
        gives(driving_forces=["x"]),
        gives(report="r"),
    ]
    desk = SmallDesk(pipe(), says=lambda _: next(answers))
    async with scene(tmp_path, desk, script) as on:
        result = await on.hand(pipe())
        assert result.data["driving_forces"] == ["a", "b"]
        assert [one.reason_code for one in desk.asked] == ["checkpoint", "checkpoint"]
        assert [option.id for option in desk.asked[0].options] == ["retry", "edit", "accept", "abort"]


async def test_accepting_anyway_needs_a_reason_and_abort_keeps_what_there_is(tmp_path: Path) -> None:
    said = iter([("accept", ""), ("accept", "good enough"), ("abort", "")])
    desk = SmallDesk(pipe(), says=lambda _: next(said))
    script = [gives(questions="q"), gives(driving_forces=["x"]), gives(report="r")]
    async with scene(tmp_path, desk, [*script, *script[:2]]) as on:
        strict = pipe(on_fail="ask_user")
        assert (await on.hand(strict)).success
        result = await on.hand(strict)
        assert (result.success, result.error_code) == (False, ErrorCode.CHECKPOINT)
        assert result.data == {"questions": "q", "driving_forces": ["x"]}
        assert "1 < 2" in result.failures[0]


async def test_another_run_skips_what_is_committed_unless_the_phase_has_changed(tmp_path: Path) -> None:
    """Line 38, second half: resume skips committed phases and re-runs after a spec change."""
    script = [gives(questions="q"), gives(driving_forces=["x", "y"]), object_call("give_up", reason="tired")]
    more = [gives(report="done"), gives(driving_forces=["x", "y", "z"]), gives(report="again")]
    async with scene(tmp_path, SmallDesk(pipe()), [*script, *more]) as on:
        assert not (await on.hand(pipe())).success
        held = (await on.over("deep-research-1")).beliefs[PIPELINE].value

        async def again(one: Any) -> list[str]:
            context = task(one)
            run = await on.desk.begin(context, one, **{PIPELINE: held})
            assert (await on.desk.results[context.handoff_id]).success
            plan = (await on.over(run)).plans["g1"]
            return [step.provenance.clause for step in plan.steps if step.op == "think"]

        assert await again(pipe()) == ["report"]
        assert await again(pipe(wanted=3)) == ["analyze", "report"]


async def test_without_a_model_a_pipeline_says_what_needs_one(tmp_path: Path) -> None:
    async with scene(tmp_path, SmallDesk(pipe())) as on:
        result = await on.hand(pipe())
        assert result.error_code is ErrorCode.NO_MODEL
        assert "phases" in str(result.error)


def research(**checkpoint: Any) -> Any:
    named = {"check": "cites_resolve", "of": "log", "field": "evidence[].source"}
    phase = {
        "id": "analyze",
        "name": "Analyze",
        "inputs": ["task"],
        "outputs": ["evidence"],
        "tools": ["simple_coder.ls", "simple_coder.read"],
        "checkpoint": {"criteria": [named], **checkpoint},
    }
    return spec("research", "pipeline", phases=[phase], model={"thinking": "off"})


async def test_a_source_is_an_action_of_the_runs_own_that_succeeded_or_what_was_given(tmp_path: Path) -> None:
    """No source is made up: ids resolve in the run's log (ontology spec §5, deep-research)."""
    look, lost = object_call("simple_coder__ls"), object_call("simple_coder__read", path="nowhere.txt")

    def found(*sources: str) -> Reply:
        return gives(evidence=[{"id": f"e{n}", "source": one} for n, one in enumerate(sources)])

    script = [look, lost, found("a1", "https://made.up/paper"), found("a2"), found("a1", "notes")]
    async with scene(tmp_path, SmallDesk(research(max_retries=2)), script) as on:
        result = await on.hand(research(max_retries=2), metadata={"sources": {"notes": "what we know"}})
        assert "a1: simple_coder ls" in on.told(1), "the model is told the ids"
        assert "'https://made.up/paper' is no action of this run" in on.told(3)
        assert "'a2' is no action of this run" in on.told(4), "it found nothing"
        assert [one["source"] for one in result.data["evidence"]] == ["a1", "notes"]
        assert await on.desk.runs.log("research-1") == {"a1"}
