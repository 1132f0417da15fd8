"""What a model meant is read; what can be understood in two ways is refused."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel

from engine.core.text import StrictJsonError
from engine.models.lenient import example_of, fitted, small_schema, values_in


class Step(BaseModel):
    """A step."""

    command: str
    args: dict[str, Any] = {}


class Form(BaseModel):
    """A plan."""

    plan: list[Step]
    sure: bool = True


STRICT = {**small_schema(Form), "additionalProperties": False}
LS = {"plan": [{"command": "ls"}]}


@pytest.mark.parametrize(
    "text",
    [
        '{"plan": [{"command": "ls"}]}',
        '[{"command": "ls"}]',
        '{"command": "ls"}',
        "{'plan': [{'command': 'ls',}],}",
        '```json\n{"plan": [{"command": "ls"}]\n```',
        'Sure, {as you wish} here: {"plan": [{"command": "ls"}]} Good luck [you]!',
        '{"title": "Form", "type": "object", "$defs": {}, "maxItems": 500, "plan": [{"command": "ls"}]}',
        '{"type": "object", "properties": {"plan": [{"command": "ls"}]}}',
        '{"name": "propose_plan", "arguments": {"plan": [{"command": "ls"}]}}',
        '{"name": "propose_plan", "arguments": "{\\"plan\\": [{\\"command\\": \\"ls\\"}]}"}',
        '{"plan": {"command": "ls"}, "sure": null}',
        '{"plan": "[{\\"command\\": \\"ls\\"}]"}',
        '{plan: [{command: "ls"}]}',
    ],
)
def test_noise_around_a_right_answer_is_put_right_and_noted(text: str) -> None:
    notes: list[str] = []
    (value,) = values_in(text, notes)
    assert fitted(value, STRICT, notes) == LS
    clean = text.startswith(('{"plan": [{"command": "ls"}]}', "Sure"))
    assert bool(notes) is not clean


@pytest.mark.parametrize("text", ['{"a": 1, "a": 2}', '{"a": NaN,}', "{name}", "no", "[" * 9_000, "[{]"])
def test_what_is_ambiguous_or_no_json_is_refused(text: str) -> None:
    with pytest.raises(StrictJsonError):
        values_in(text, [])


def test_values_are_fitted_to_their_kinds_and_only_where_they_can_mean_one_thing() -> None:
    schema = {
        "type": "object",
        "properties": {"n": {"type": "integer"}, "b": {"type": "boolean"}, "e": {"enum": ["Good"]}},
    }
    assert fitted({"n": "21", "b": "True", "e": "good"}, schema, []) == {"n": 21, "b": True, "e": "Good"}
    assert fitted({"n": "warm", "e": "bad"}, schema, []) == {"n": "warm", "e": "bad"}


def test_the_schema_that_is_sent_is_small_and_its_example_is_of_it() -> None:
    schema = small_schema(Form)
    assert "title" not in str(schema)
    assert "$ref" not in str(schema)
    assert Form.model_validate(example_of(schema))
