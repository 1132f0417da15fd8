"""One decision of a model: the tools it may call, and what its answer means.

The commands of the registry are offered as tools with their own schemas, and beside them what else may be
decided. Nothing is done here: a call becomes a step that the operator sees before it runs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, WithJsonSchema

from engine.core.memory import ThoughtType
from engine.core.plan import PlanStep, Provenance
from engine.core.text import StrictJsonError, clean_line, read_json
from engine.core.thinking import Decision, DecisionKind, DecisionRequest
from engine.models.lenient import Notes, Schema, fitted, small_schema, values_in
from engine.models.messages import ModelAnswer, ToolUse
from engine.models.request import ToolSpec
from engine.models.structured import LookUp, input_of, problem_lines
from engine.planning.plan_notation import PLAN_LIMIT, PlanSyntaxError, plan_from_json, step_problems
from engine.planning.thinkers.offered import SIMPLE_CODER, Command, OfferedCommands
from engine.tools.registry import ToolRegistry

ACHIEVED = "goal achieved:"
"""Words at the beginning of an answer without a call that say that all is done."""

_CALL = re.compile(r"""["'](?:tool|name|command|function)["']\s*:""")
"""Where a call in words may begin."""

ACTION_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "command": {"type": "string"},
        "args": {"type": "object"},
        "think": {"type": "string"},
        "id": {"type": "string"},
        "description": {"type": "string"},
        "depends_on": {"type": "array", "items": {"type": "string"}},
    },
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


class DescribeTool(_Form):
    """See other commands than those offered here, by what is to be done."""

    words: _Line


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
    "describe_tool": DescribeTool,
}
_SHORT = ("finish", "give_up", "ask_operator")
"""What a small model may decide beside calls of commands."""


def tools_of(
    commands: Sequence[Command], *, may_muse: bool = True, more: bool = False, short: bool = False
) -> tuple[ToolSpec, ...]:
    """What a model may decide, as tools; always the same while it may also think.

    Args:
        commands: those that are offered.
        may_muse: whether it may write a thought down.
        more: whether there are other commands, which can be asked about.
        short: whether only what a small model can use is offered.
    """
    left_out = {"record_thought": not may_muse, "describe_tool": not more}
    names = _SHORT if short else _FORMS
    forms = [(name, _FORMS[name]) for name in names if not left_out.get(name, False)]
    return (
        *(ToolSpec(_tool_name(each), each.spec.description, each.schema) for each in commands),
        *(ToolSpec(name, (form.__doc__ or name).strip(), small_schema(form)) for name, form in forms),
    )


def _tool_name(command: Command) -> str:
    return f"{command.tool}__{command.spec.name}"


def tools_in_words(commands: Sequence[Command], tools: Sequence[ToolSpec]) -> str:
    """The same for a model that knows no tools, a line each."""
    lines = [command.line for command in commands]
    for tool in tools[len(commands) :]:
        required = tool.input_schema.get("required", ())
        lines.append(f"{' '.join((tool.name, *required))} — {tool.description.splitlines()[0]}")
    listed = "\n".join(lines)
    return (
        "Answer with one JSON object and nothing else, the one tool you call, as "
        '{"tool": "simple_coder.mkdir", "input": {"path": "notes"}} or '
        f'{{"tool": "finish", "input": {{"summary": "notes is there"}}}}. The tools:\n{listed}'
    )


def call_schema(commands: Sequence[Command], tools: Sequence[ToolSpec]) -> Schema:
    """The JSON Schema of the one object that `tools_in_words` asks for."""
    calls = [command.called("tool", "input") for command in commands]
    for tool in tools[len(commands) :]:
        properties = {"tool": {"const": tool.name}, "input": tool.input_schema}
        calls.append({"type": "object", "properties": properties, "required": list(properties)})
    return {"anyOf": calls}


def first_call(
    uses: Sequence[ToolUse], why: str, read: Callable[[ToolUse, str], tuple[Decision | None, tuple[str, ...]]]
) -> tuple[Decision | None, tuple[str, ...]]:
    """What the first call of an answer decides; the others are named as deferred."""
    first, *others = uses
    decision, problems = read(first, why)
    if decision is not None and others:
        decision = replace(decision, deferred=tuple(clean_line(use.name, limit=80) for use in others))
    return decision, problems


def calls_in(text: str, notes: Notes) -> tuple[ToolUse, ...]:
    """The calls that a model wrote in words, as `{"tool", "input"}`, `{"name", "arguments"}` or alike.

    Raises:
        StrictJsonError: there is nothing to be read in them.
    """
    values = values_in(text, notes)
    listed = values[0] if len(values) == 1 and isinstance(values[0], list) else values
    return tuple(use for value in listed if isinstance(value, dict) and (use := _call_of(value)) is not None)


def _call_of(value: dict[str, Any]) -> ToolUse | None:
    inner = value.get("function")
    flat = {**value, **inner} if isinstance(inner, dict) else value
    name = next((flat[key] for key in _NAMES if isinstance(flat.get(key), str) and flat[key]), "")
    given = next((flat[key] for key in _INPUTS if isinstance(flat.get(key), (dict, list, str))), None)
    if given is None:
        given = {key: item for key, item in flat.items() if key not in (*_NAMES, "function", "type", "id")}
    if isinstance(given, str) and given.lstrip().startswith("{"):
        with suppress(StrictJsonError):
            given = read_json(given)
    return ToolUse("", name, given if isinstance(given, dict) else {"": given}) if name else None


_NAMES, _INPUTS = ("tool", "name", "command"), ("input", "arguments", "args", "parameters", "params")


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


ONCE = frozenset(
    (SIMPLE_CODER, name)
    for name in ("ls", "cd", "read", "find", "mkdir", "write", "append", "replace", "copy", "move", "rm")
)
"""Calls that nobody means to make twice in a row with the same arguments."""
DONE_ALREADY = "this call was made just now and succeeded: call finish if that was all, or do what is left"


class DecisionReader:
    """Reads the answers to one question for a decision.

    Args:
        registry: every tool that there is.
        request: what was asked.
        by: who answers, for the provenance of steps.
        offered: the commands that agents may call.
    """

    def __init__(
        self, registry: ToolRegistry, request: DecisionRequest, by: str, offered: OfferedCommands
    ) -> None:
        self._registry = registry
        self._request = request
        self._by = by
        self._offered = offered

    def read(self, answer: ModelAnswer, notes: Notes) -> tuple[Decision | None, tuple[str, ...]]:
        """What an answer decides; None and what is wrong with it where that cannot be done.

        Raises:
            LookUp: the model asks what other commands there are.
        """
        if answer.tool_uses:
            return first_call(answer.tool_uses, answer.text.strip(), partial(self._from_call, notes=notes))
        return self._from_words(answer.text.strip(), notes)

    def _from_words(self, text: str, notes: Notes) -> tuple[Decision | None, tuple[str, ...]]:
        """What is decided without a call: an end, a call in JSON, else a thought."""
        if text.casefold().startswith(ACHIEVED):
            return Decision(DecisionKind.FINISH, text[len(ACHIEVED) :].strip() or "done"), ()
        if _CALL.search(text):
            try:
                uses = calls_in(text, notes)
            except StrictJsonError as error:
                return None, (str(error),)
            if not uses:
                return None, ('the object must be {"tool": name, "input": {…}}',)
            return first_call(uses, "", partial(self._from_call, notes=notes))
        if not text:
            return None, ("the answer is empty: call one of the tools",)
        if not self._request.may_muse:
            return None, ("that is a thought; you have thought long enough: call one of the other tools",)
        return Decision(DecisionKind.THINK, text), ()

    def _from_call(self, use: ToolUse, why: str, notes: Notes) -> tuple[Decision | None, tuple[str, ...]]:
        try:
            given = input_of(use, notes)
            form = _FORMS.get(use.name)
            if form is None:
                return self._call(use.name, given, why, notes)
            if form is RecordThought and not self._request.may_muse:
                return None, ("you have thought long enough: call one of the other tools",)
            schema = small_schema(form)
            value = fitted(given, schema, notes)
            if isinstance(value, dict) and "plan" in value:
                value = {**value, "plan": self._offered.plan(value["plan"], notes, whole=False)}
            return self._decision(form.model_validate_json(json.dumps(value), strict=True)), ()
        except ValidationError as error:
            return None, problem_lines(error)
        except (PlanSyntaxError, StrictJsonError) as error:
            return None, (str(error),)

    def _call(self, name: str, given: Any, why: str, notes: Notes) -> tuple[Decision | None, tuple[str, ...]]:
        lone = given.get("") if isinstance(given, dict) and set(given) == {""} else given
        command, args = self._offered.call("", name, lone, clean_line(name, limit=80), notes)
        tool, said = command["tool_id"], command["command"]
        offered = self._offered.named(tool, said)
        if offered is None:
            known = ", ".join((*(each.name for each in self._offered.all), *_FORMS))
            return None, (f"there is no tool {clean_line(name, limit=80)!r}; tools: {known}",)
        if problems := call_problems(self._registry, tool, said, args, self._by):
            return None, tuple(f"{said}: {problem}" for problem in problems)
        if (tool, said) in ONCE and self._was_last(tool, said, args):
            return None, (f"{said}: {DONE_ALREADY}",)
        return Decision(DecisionKind.CALL, why, tool, said, args), ()

    def _was_last(self, tool: str, command: str, args: dict[str, Any]) -> bool:
        """Whether this very call was made last, and succeeded."""
        return any(
            last.ok and (last.tool, last.command, {**last.args, **args}) == (tool, command, last.args)
            for last in self._request.recent[-1:]
        )

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
            case DescribeTool():
                raise LookUp(self._offered.described(given.words))
            case AskOperator():
                return Decision(DecisionKind.ASK, given.question)
        raise AssertionError(given)
