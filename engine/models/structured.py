"""Structured answers: one JSON object of a known form, or the reasons why there is none."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ValidationError

from engine.core.text import StrictJsonError, clean_line, fence, read_json
from engine.models.choice import REPAIRS
from engine.models.completion import (
    ModelClient,
    PieceSink,
    Recorder,
    answer_turn,
    complete,
    ignore_call,
    ignore_piece,
)
from engine.models.errors import ModelError, ModelErrorKind
from engine.models.messages import Message, ModelAnswer, Text, ToolResult, user_message
from engine.models.request import ModelRequest, ToolSpec
from engine.value import dataclass

SHOWN_PROBLEMS = 20
"""Problems sent to a model at once."""

Form = TypeVar("Form", bound=BaseModel)


Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class Structured(Generic[Value]):
    """An answer of the form that was asked for."""

    value: Value
    answer: ModelAnswer
    """The last answer of the model."""
    problems: tuple[tuple[str, ...], ...] = ()
    """What was wrong before each repair, in order; empty when the first answer was right."""


class NotOfFormError(ModelError):
    """The model did not give the form that was asked for, repairs included."""

    def __init__(self, problems: Sequence[str], answer: ModelAnswer | None, repairs: int) -> None:
        super().__init__(
            ModelErrorKind.UNREADABLE,
            f"the model's answer could not be used, {repairs} repairs included: {'; '.join(problems)}",
            answer=answer,
        )
        self.problems = tuple(problems)
        self.repairs = repairs


async def ask_for(
    client: ModelClient,
    request: ModelRequest,
    form: type[Form],
    *,
    name: str,
    check: Callable[[Form], Sequence[str]] = lambda _value: (),
    sink: PieceSink = ignore_piece,
    record: Recorder = ignore_call,
    repairs: int = REPAIRS,
) -> Structured[Form]:
    """One JSON object of a form, by a tool where the model knows tools and in words where it does not.

    Args:
        client: who asks.
        request: the question; it has no tools of its own.
        form: what the object must be; read strictly, repeated keys, NaN and infinities are refused.
        name: the tool's name, which also says what the object is.
        check: what else is wrong with an object of the form, in sentences; they go back to the model.
        sink: gets the pieces as they come.
        record: gets every call.
        repairs: how often what is wrong goes back to the model.

    Raises:
        NotOfFormError: after all repairs the answer is not of the form, or does not pass the check.
        ModelError: a call failed or was refused.
    """
    tools = client.capabilities(request.model).tools
    asking = _with_tool(request, form, name) if tools else _in_words(request, form, name)

    def read(answer: ModelAnswer) -> tuple[Form | None, tuple[str, ...]]:
        return _read(answer, form, name, check)

    return await ask_until(client, asking, read, sink=sink, record=record, repairs=repairs)


async def ask_until(
    client: ModelClient,
    asking: ModelRequest,
    read: Callable[[ModelAnswer], tuple[Value | None, tuple[str, ...]]],
    *,
    sink: PieceSink = ignore_piece,
    record: Recorder = ignore_call,
    repairs: int = REPAIRS,
) -> Structured[Value]:
    """An answer that can be read; what is wrong with one goes back to the model so many times.

    Args:
        client: who asks.
        asking: the question.
        read: what an answer says, or None and everything that is wrong with it, in sentences.
        sink: gets the pieces as they come.
        record: gets every call.
        repairs: how often what is wrong goes back to the model.

    Raises:
        NotOfFormError: after all repairs the answer still cannot be read.
        ModelError: a call failed or was refused.
    """
    history: list[tuple[str, ...]] = []
    while True:
        answer, problems = await _answer(client, asking, sink, record)
        value, problems = read(answer) if not problems else (None, problems)
        if value is not None:
            return Structured(value, answer, tuple(history))
        if len(history) >= repairs:
            raise NotOfFormError(problems, answer, repairs)
        history.append(problems)
        asking = _repaired(asking, answer, problems, client)


async def _answer(
    client: ModelClient, request: ModelRequest, sink: PieceSink, record: Recorder
) -> tuple[ModelAnswer, tuple[str, ...]]:
    try:
        answer = await complete(client, request, sink=sink, record=record)
    except ModelError as error:
        if error.kind is not ModelErrorKind.TRUNCATED or error.answer is None:
            raise
        return error.answer, (error.message,)
    return answer, ()


def _with_tool(request: ModelRequest, form: type[BaseModel], name: str) -> ModelRequest:
    tool = ToolSpec(name, (form.__doc__ or name).strip(), form.model_json_schema())
    # Models that refuse a forced tool are asked in words; saying it to the others does no harm.
    rule = Text(f"Answer only by calling the tool `{name}`, once.", "form")
    return replace(request, tools=(tool,), tool_choice=name, system=(*request.system, rule))


def _in_words(request: ModelRequest, form: type[BaseModel], name: str) -> ModelRequest:
    schema = json.dumps(form.model_json_schema(), ensure_ascii=False)
    rule = (
        f"Answer with one JSON object ({name}) and nothing else: no words before or after it, each key once. "
        f"It must fit this JSON Schema:\n{schema}"
    )
    return replace(request, system=(*request.system, Text(rule, "form")))


def _repaired(
    request: ModelRequest, answer: ModelAnswer, problems: Sequence[str], client: ModelClient
) -> ModelRequest:
    """The request again, with what the model said and what was wrong with it."""
    shown = [clean_line(problem, limit=500) for problem in problems[:SHOWN_PROBLEMS]]
    more = len(problems) - len(shown)
    listed = "\n".join([*(f"- {line}" for line in shown), *([f"- and {more} more"] if more > 0 else [])])
    text = f"This cannot be used:\n{fence('what is wrong', listed)}\nGive the whole corrected answer again."
    most = client.capabilities(request.model).max_output
    request = replace(request, max_tokens=min(max(request.max_tokens, 2 * answer.usage.output_tokens), most))
    results = tuple(ToolResult(use.id, text, is_error=True) for use in answer.tool_uses)
    following = Message("user", results) if results else user_message(text, name="repair")
    return request.followed_by(answer_turn(answer), following)


def _read(
    answer: ModelAnswer, form: type[Form], name: str, check: Callable[[Form], Sequence[str]]
) -> tuple[Form | None, tuple[str, ...]]:
    uses = answer.tool_uses
    if len(uses) > 1:
        return None, (f"the tool `{name}` was to be called once, not {len(uses)} times",)
    try:
        if not uses:
            given = json_object_in(answer.text)
        elif uses[0].name != name:
            return None, (f"there is no tool {uses[0].name!r}; call `{name}`",)
        elif uses[0].fault:
            return None, (f"the input of `{name}` is no usable JSON: {uses[0].fault}",)
        else:
            given = uses[0].input
        # Through JSON once more: strict in text, pydantic still takes lists for tuples and names for enums.
        value = form.model_validate_json(json.dumps(given), strict=True)
    except StrictJsonError as error:
        return None, (str(error),)
    except ValidationError as error:
        return None, tuple(problem_line(details["loc"], details["msg"]) for details in error.errors())
    problems = tuple(check(value))
    return (None, problems) if problems else (value, ())


def problem_line(place: tuple[int | str, ...], message: str) -> str:
    """A validator's complaint about one place of an object, in a line."""
    return f"{'.'.join(map(str, place)) or 'the object'}: {message}"


def json_object_in(text: str) -> Any:
    """The JSON object in a text that may have words or a code fence around it.

    Raises:
        StrictJsonError: there is none, or it is not strict JSON.
    """
    start, end = text.find("{"), text.rfind("}")
    if start < 0 or end < start:
        raise StrictJsonError("the answer holds no JSON object")
    return read_json(text[start : end + 1])
