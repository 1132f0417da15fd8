"""The typed log of a run with plan generation (spec BDI §2.10; §7 58)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import get_args

import pytest
from json_schema import faults
from pydantic import ValidationError

from engine.planning.pgp import log_events as log

SAMPLES: list[log.LogEvent] = [
    log.EventSelected(event="+!reach(home)"),
    log.IntentionStep(step="goal_run", intention="1", goal="!reach(home)"),
    log.PlanSelected(plan="generated_1", event="+!reach(home)"),
    log.GoalAchieved(goal="reach(home)"),
    log.MessageArrived(sender="bob", performative="tell", content="p"),
    log.ActionAdded(action="move(north)"),
    log.MindChanged(what=log.Kept.BELIEF, change="added", text="free(north)[source(percept)]"),
    log.ActivityChanged(activity="stop"),
    log.GenerationRequested(goal="+!reach(home)", config={"model": "m", "temperature": 0.5}),
    log.PromptSent(role="system", text="You write plans.\n"),
    log.AnswerReceived(completion_id="c-1", text="```yaml"),
    log.EnvironmentChanged(change="data_updated", text="state"),
    log.WorldEvent(name="night", data={"hour": 22}),
    log.GoalSucceeded(goal="move(north)"),
    log.ActionSucceeded(action="move(south)", name="ObjectReached", data={"object": "home"}),
    log.GenerationSucceeded(goal="+!reach(home)", stage="completed", plans=("generated_1",)),
    log.TestGoalFailed(goal="at(X)"),
    log.ActionFailed(action="fly", cause="not_found", reason="there is no action fly/0"),
    log.PlanNotFound(event="+!reach(home)"),
    log.PlanInapplicable(event="+!g", guards={"p1": (log.GuardResult(guard="a", held=False),)}),
    log.GenerationFailed(goal="+!reach(home)", reason="no answer"),
]
NEGATIVE = {"test_goal_failed", "action_failed", "plan_not_found", "plan_inapplicable", "generation_failed"}


def line(event: log.LogEvent) -> log.LogLine:
    return log.LogLine(system="s-1", agent="robot", generation="g-1", cycle=33, event=event)


def test_there_is_a_sample_of_every_kind() -> None:
    assert {type(one) for one in SAMPLES} == set(get_args(log.LogEvent))


@pytest.mark.parametrize("event", SAMPLES, ids=lambda one: one.kind)
def test_every_kind_is_one_line_of_json_and_comes_back_equal(event: log.LogEvent) -> None:
    text = line(event).to_json()
    assert "\n" not in text
    assert json.loads(text)["event"]["kind"] == event.kind
    assert log.LogLine.from_json(text) == line(event)


def test_negative_feedback_stands_at_warning_level_and_nothing_else_does() -> None:
    """§7 58."""
    assert {one.kind for one in SAMPLES if line(one).level is log.Level.WARNING} == NEGATIVE


PATH = Path(log.__file__).parent / "schemas" / "log-line.schema.json"
SCHEMA = json.loads(PATH.read_text(encoding="utf-8"))


def test_the_shipped_schema_is_that_of_the_events() -> None:
    """§7 58: on a difference write this to schemas/log-line.schema.json."""
    schema = json.dumps(log.LogLine.model_json_schema(mode="serialization"), indent=1) + "\n"
    assert PATH.read_text(encoding="utf-8") == schema


@pytest.mark.parametrize("event", SAMPLES, ids=lambda one: one.kind)
def test_every_kind_fits_the_shipped_schema(event: log.LogEvent) -> None:
    """§7 58."""
    assert faults(json.loads(line(event).to_json()), SCHEMA, SCHEMA) == []


def test_what_does_not_fit_is_refused_by_schema_and_reader_alike() -> None:
    good = json.loads(line(SAMPLES[0]).to_json())
    for broken in (
        {**good, "cycle": -1},
        {**good, "more": 1},
        {**good, "level": "loud"},
        {**good, "event": {"kind": "unheard_of"}},
        {**good, "event": {"kind": "event_selected"}},
        {**good, "event": {**good["event"], "token": "x"}},
    ):
        assert faults(broken, SCHEMA, SCHEMA)
        with pytest.raises(ValidationError):
            log.LogLine.from_json(json.dumps(broken))


def test_a_line_cannot_stand_at_another_level_than_its_event() -> None:
    text = line(log.PlanNotFound(event="+!g")).to_json()
    assert json.loads(text)["level"] == "warning"
    with pytest.raises(ValidationError, match="stands at level warning"):
        log.LogLine.from_json(text.replace('"warning"', '"info"'))
