"""What is no plan is refused with the place and the reason, before anything of it runs."""

from __future__ import annotations

import json
from typing import Any

import pytest
from engine_flight import act

from engine.core.plan import Op, PlanStep
from engine.planning.plan_notation import PlanSyntaxError, parse_plan, problems_of
from engine.tools.belief_tool import BeliefTool
from engine.tools.registry import ToolRegistry
from engine.tools.simple_coder_commands import COMMANDS

SEED_STEP = """[{"type": "EXECUTE_TOOL",
  "params": {"tool_id": "simple_coder", "command": "run", "command": "pip install httpx"}}]"""


class _Coder:
    id, description, commands = "simple_coder", "described only", COMMANDS


@pytest.fixture
def registry() -> ToolRegistry:
    return ToolRegistry([_Coder(), BeliefTool()])  # type: ignore[list-item]


def _nested(depth: int) -> str:
    return "[" * depth + "]" * depth


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[{"type": "EXECUTE_TOOL",\n  "params" {}}]', "line 2 column 12"),
        ("", "line 1 column 1"),
        (SEED_STEP, "the key 'command' appears twice"),
        ('{"type": "EXECUTE_TOOL"}', "a plan is a JSON list of actions, this is an object"),
        ('"ls"', "this is a string"),
        ("null", "this is null"),
        ("[]", "the plan is empty"),
        (
            '[{"type":"EXECUTE_TOOL","params":{"tool_id":"t","command":"c"}}, 7]',
            "step 2: an action is an obj",
        ),
        ('[{"params": {}}]', "step 1: type must be EXECUTE_TOOL or THINK, not None"),
        ('[{"type": "NO_OP"}]', "step 1: type must be EXECUTE_TOOL or THINK, not 'NO_OP'"),
        ('[{"type": "EXECUTE_TOOL"}]', "step 1: params must be an object"),
        ('[{"type": "EXECUTE_TOOL", "params": {"command": "ls"}}]', "step 1: tool_id must be a non-empty"),
        ('[{"type": "EXECUTE_TOOL", "params": {"tool_id": "t", "command": ""}}]', "step 1: command must be"),
        (
            '[{"type": "EXECUTE_TOOL", "params": {"tool_id": "t", "command": "c", "args": []}}]',
            "args must be",
        ),
        (
            '[{"type":"EXECUTE_TOOL","params":{"tool_id":"t","command":"c","a":1,"args":{"a":2}}}]',
            "'a' is given both",
        ),
        ('[{"type": "EXECUTE_TOOL", "params": {}, "prams": {}}]', "unknown key 'prams'"),
        (
            '[{"type": "EXECUTE_TOOL", "params": {"tool_id": "t", "command": "c", "n": NaN}}]',
            "NaN is no JSON",
        ),
        ('[{"type": "EXECUTE_TOOL", "params": {"tool_id": "t", "command": "c", "n": 1e999}}]', "too large"),
        (f"[{'9' * 5000}]", "too many digits"),
        (f"[{_nested(300)}]", "100 deep"),
        (_nested(100_000), "100 deep"),
        (json.dumps([act("ls")] * 501), "501 steps; a plan has at most 500"),
        (
            '[{"type": "EXECUTE_TOOL", "params": {"tool_id": "t", "command": "c"}, "depends_on": "1"}]',
            "depends_on must be a list of step ids",
        ),
    ],
)
def test_what_is_no_plan_is_refused_with_place_and_reason(text: str, said: str) -> None:
    """Behaviours 26, 27 and 28."""
    with pytest.raises(PlanSyntaxError) as refusal:
        parse_plan(text)
    assert said in str(refusal.value)
    assert len(str(refusal.value).splitlines()) == 1


def test_the_seeds_own_plan_is_refused_with_what_to_do() -> None:
    """Behaviour 27."""
    with pytest.raises(PlanSyntaxError, match='put the tool\'s arguments under "args"'):
        parse_plan(SEED_STEP)


def test_the_flat_form_of_the_seed_is_read() -> None:
    flat = '[{"type":"EXECUTE_TOOL","params":{"tool_id":"simple_coder","command":"mkdir","path":"p"}}]'
    (step,) = parse_plan(flat)
    assert (step.tool, step.command, step.args, step.provenance.by) == (
        "simple_coder",
        "mkdir",
        {"path": "p"},
        "operator",
    )


def _steps(*changes: dict[str, Any]) -> tuple[PlanStep, ...]:
    return parse_plan(json.dumps([{**act("ls"), **change} for change in changes]))


@pytest.mark.parametrize(
    ("action", "said"),
    [
        ({"tool_id": "simple_codr", "command": "ls"}, "Did you mean 'simple_coder'?"),
        ({"tool_id": "simple_coder", "command": "mkdr"}, "Did you mean 'mkdir'?"),
        ({"tool_id": "simple_coder", "command": "mkdir"}, "mkdir needs the argument 'path'"),
        ({"tool_id": "simple_coder", "command": "ls", "args": {"pth": "."}}, "Did you mean 'path'?"),
        ({"tool_id": "simple_coder", "command": "mkdir", "args": {"path": True}}, "must be a string"),
    ],
)
def test_a_call_that_cannot_be_made_is_refused_with_the_steps_number(
    registry: ToolRegistry, action: dict[str, Any], said: str
) -> None:
    """Behaviour 28."""
    problems = problems_of(_steps({}, {"params": action}), registry)
    assert len(problems) == 1
    assert problems[0].startswith("step 2: ")
    assert said in problems[0]


def test_prerequisites_must_exist_and_not_go_in_a_circle(registry: ToolRegistry) -> None:
    dangling = problems_of(_steps({"id": "a", "depends_on": ["ghost"]}), registry)
    assert dangling == ("step 1: it depends on 'ghost', which is not in the plan",)
    circle = _steps({"id": "a", "depends_on": ["b"]}, {"id": "b", "depends_on": ["a"]})
    (said,) = problems_of(circle, registry)
    assert "circle" in said
    (alone,) = problems_of(_steps({"id": "a", "depends_on": ["a"]}), registry)
    assert "circle" in alone


def test_ids_are_used_once_and_every_problem_is_listed(registry: ToolRegistry) -> None:
    problems = problems_of(
        _steps({"id": "x"}, {"id": "x"}, {"params": {"tool_id": "no", "command": "c"}}), registry
    )
    assert problems[0] == "step 2: the id 'x' is used twice"
    assert problems[1].startswith("step 3: There is no tool 'no'")
    assert problems_of((), registry) == ("the plan has no steps",)


@pytest.mark.parametrize(
    ("op", "args", "problem"),
    [
        (Op.ACHIEVE, {"goal": " "}, "achieve needs 'goal', a non-empty string"),
        (Op.ADD, {"key": "k"}, "value is missing"),
        (Op.TEST, {"key": 3}, "test needs 'key', a non-empty string"),
        (Op.REMOVE, {"key": "k"}, None),
        (Op.UPDATE, {"key": "k", "value": None}, None),
    ],
)
def test_steps_of_the_other_kinds_are_checked_too(
    registry: ToolRegistry, op: Op, args: dict[str, Any], problem: str | None
) -> None:
    found = problems_of([PlanStep("1", "", op=op, args=args)], registry)
    assert found == (() if problem is None else (f"step 1: {problem}",))
