"""One decision of a model: the tools it may call, and what its answer means.

The commands of the registry are offered as tools with their own schemas, and beside them what else may be
decided. Nothing is done here: a call becomes a step that the operator sees before it runs.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, WithJsonSchema

from engine.core.journal import canonical
from engine.core.memory import ThoughtType
from engine.core.plan import PlanStep, Provenance
from engine.core.text import StrictJsonError, clean_line
from engine.core.thinking import Decision, DecisionKind, DecisionRequest
from engine.models.messages import ModelAnswer, ToolUse
from engine.models.request import ToolSpec
from engine.models.structured import json_object_in, problem_line
from engine.planning.plan_notation import PLAN_LIMIT, PlanSyntaxError, plan_from_json, step_problems
from engine.tools.registry import ToolRegistry

ACHIEVED = "goal achieved:"
"""Words at the beginning of an answer without a call that say that all is done."""

ACTION_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "type": {"enum": ["EXECUTE_TOOL", "THINK"]},
        "id": {"type": "string"},
        "description": {"type": "string"},
        "params": {
            "type": "object",
            "properties": {
                "tool_id": {"type": "string"},
                "command": {"type": "string"},
                "args": {"type": "object"},
            },
            "required": ["tool_id", "command", "args"],
            "additionalProperties": False,
        },
        "depends_on": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["type", "id", "description"],
    "additionalProperties": False,
}
Action = Annotated[Any, WithJsonSchema(ACTION_SCHEMA)]
"""An action of a plan, as a model is told of it; the notation judges it."""

_Words = Annotated[str, Field(min_length=1, max_length=20_000)]
_Line = Annotated[str, Field(min_length=1, max_length=2_000)]


class _Form(BaseModel):
    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)


class RecordThought(_Form):
    """Write a thought down and decide again. Use it to work something out, not to say what you will do."""

    content: _Words
    thought_type: ThoughtType = ThoughtType.INFERENCE


class UpdatePlan(_Form):
    """Put other steps in place of those of the plan that have not run."""

    plan: list[Action] = Field(min_length=1, max_length=PLAN_LIMIT)


class PushSubGoal(_Form):
    """Adopt a smaller goal that has to be reached before this one can continue."""

    description: _Words
    acceptance_criteria: list[_Line] = Field(default_factory=list, max_length=20)
    """What must be shown to hold at its end."""


class Finish(_Form):
    """Say that what is asked for is done, with the result."""

    summary: _Words
    evidence: list[_Line] = Field(default_factory=list, max_length=20)
    """For each criterion of the goal, in their order, the id of the step that shows it."""


class GiveUp(_Form):
    """Say that it cannot be done, and why."""

    reason: _Words


class AskOperator(_Form):
    """Ask the operator what only they can know or decide. Nothing runs until they answer."""

    question: _Words


_FORMS: dict[str, type[_Form]] = {
    "record_thought": RecordThought,
    "update_plan": UpdatePlan,
    "push_sub_goal": PushSubGoal,
    "finish": Finish,
    "give_up": GiveUp,
    "ask_operator": AskOperator,
}


def tools_of(registry: ToolRegistry, *, may_muse: bool = True) -> tuple[ToolSpec, ...]:
    """Everything that a model may decide, as tools; always the same while it may also think."""
    commands = (
        ToolSpec(entry["name"], entry["description"], entry["input_schema"]) for entry in registry.schemas()
    )
    others = (
        ToolSpec(name, (form.__doc__ or name).strip(), form.model_json_schema())
        for name, form in _FORMS.items()
        if may_muse or form is not RecordThought
    )
    return (*commands, *others)


def tools_in_words(registry: ToolRegistry, *, may_muse: bool) -> str:
    """The same for a model that knows no tools."""
    lines = [
        canonical({"tool": tool.name, "what": tool.description, "input": tool.input_schema})
        for tool in tools_of(registry, may_muse=may_muse)
    ]
    listed = "\n".join(lines)
    return (
        'Answer with one JSON object {"tool": name, "input": {…}} and nothing else: the one tool you call. '
        f"The tools, with the JSON Schema of their input:\n{listed}"
    )


def first_call(
    answer: ModelAnswer, read: Callable[[ToolUse, str], tuple[Decision | None, tuple[str, ...]]]
) -> tuple[Decision | None, tuple[str, ...]]:
    """What the first call of an answer decides; the others are named as deferred."""
    first, *others = answer.tool_uses
    decision, problems = read(first, answer.text.strip())
    if decision is not None and others:
        decision = replace(decision, deferred=tuple(clean_line(use.name, limit=80) for use in others))
    return decision, problems


def call_in(text: str) -> ToolUse | None:
    """The call that an object in a model's words is; None where it is none.

    Raises:
        StrictJsonError: there is no object in them.
    """
    given = json_object_in(text)
    if set(given) - {"input"} != {"tool"} or not isinstance(given.get("input", {}), dict):
        return None
    return ToolUse("", str(given["tool"]), given.get("input", {}))


def call_problems(
    registry: ToolRegistry, tool: str, command: str, args: dict[str, Any], by: str
) -> tuple[str, ...]:
    """Why a call cannot be made as it is, each reason once."""
    step = PlanStep("1", command, tool=tool, command=command, args=args, provenance=Provenance(by))
    missing = (
        problem.message
        for problem in registry.validate(tool, command, args)
        if problem.argument and problem.argument not in args
    )
    return tuple(dict.fromkeys((*step_problems(step, registry, settled_later=True), *missing)))


class DecisionReader:
    """Reads answers to one request.

    Args:
        registry: the tools that may be called.
        request: what was asked.
        by: thinker and model, for the provenance of steps.
        arguments: checks the arguments of calls.
    """

    def __init__(self, registry: ToolRegistry, request: DecisionRequest, by: str) -> None:
        self._registry = registry
        self._request = request
        self._by = by
        self._commands = {entry["name"]: (entry["tool"], entry["command"]) for entry in registry.schemas()}

    def read(self, answer: ModelAnswer) -> tuple[Decision | None, tuple[str, ...]]:
        """What an answer decides; None and what is wrong with it where that cannot be done."""
        if not answer.tool_uses:
            return self._from_words(answer.text.strip())
        return first_call(answer, self._from_call)

    def _from_words(self, text: str) -> tuple[Decision | None, tuple[str, ...]]:
        """What is decided without a call: an end, a call in JSON, else a thought."""
        if text.casefold().startswith(ACHIEVED):
            return Decision(DecisionKind.FINISH, text[len(ACHIEVED) :].strip() or "done"), ()
        if '"tool"' in text:
            try:
                use = call_in(text)
            except StrictJsonError as error:
                return None, (str(error),)
            if use is None:
                return None, ('the object must be {"tool": name, "input": {…}}',)
            return self._from_call(use, "")
        if not text:
            return None, ("the answer is empty: call one of the tools",)
        if not self._request.may_muse:
            return None, ("that is a thought; you have thought long enough: call one of the other tools",)
        return Decision(DecisionKind.THINK, text), ()

    def _from_call(self, use: ToolUse, why: str) -> tuple[Decision | None, tuple[str, ...]]:
        if use.fault:
            return None, (f"the input of `{clean_line(use.name, limit=80)}` is no usable JSON: {use.fault}",)
        if use.name in self._commands:
            return self._call(use, why)
        form = _FORMS.get(use.name)
        if form is None or (form is RecordThought and not self._request.may_muse):
            known = ", ".join((*self._commands, *_FORMS))
            return None, (f"there is no tool {clean_line(use.name, limit=80)!r}; tools: {known}",)
        try:
            given = form.model_validate_json(json.dumps(use.input), strict=True)
        except ValidationError as error:
            return None, tuple(problem_line(details["loc"], details["msg"]) for details in error.errors())
        try:
            return self._decision(given), ()
        except PlanSyntaxError as error:
            return None, (str(error),)

    def _call(self, use: ToolUse, why: str) -> tuple[Decision | None, tuple[str, ...]]:
        tool, command = self._commands[use.name]
        if problems := call_problems(self._registry, tool, command, use.input, self._by):
            return None, tuple(f"{use.name}: {problem}" for problem in problems)
        return Decision(DecisionKind.CALL, why, tool, command, dict(use.input)), ()

    def _decision(self, given: _Form) -> Decision:
        match given:
            case RecordThought():
                return Decision(DecisionKind.THINK, given.content, thought_type=given.thought_type)
            case UpdatePlan():
                steps = plan_from_json(given.plan, by=self._by)
                return Decision(DecisionKind.PLAN, f"{len(steps)} steps", steps=steps)
            case PushSubGoal():
                criteria = tuple(map(clean_line, given.acceptance_criteria))
                return Decision(DecisionKind.SUBGOAL, given.description, criteria=criteria)
            case Finish():
                return Decision(DecisionKind.FINISH, given.summary, evidence=tuple(given.evidence))
            case GiveUp():
                return Decision(DecisionKind.GIVE_UP, given.reason)
            case AskOperator():
                return Decision(DecisionKind.ASK, given.question)
        raise AssertionError(given)
