"""Structured answers: one JSON object of a known form, or the reasons why there is none."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Generic, TypeAlias, TypeVar

from pydantic import BaseModel, ValidationError

from engine.core.text import StrictJsonError, clean_line, fence, plain_problem
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
from engine.models.lenient import Notes, Schema, example_of, fitted, small_schema, values_in
from engine.models.messages import Message, ModelAnswer, Text, ToolResult, ToolUse, user_message
from engine.models.request import ModelRequest, ToolSpec
from engine.value import dataclass

SHOWN_PROBLEMS = 3
"""Problems sent to a model at once."""
WARMER = 0.7
"""What is added to the temperature of a model that gives the same wrong answer again."""
LOOKUPS = 2
"""Times that a model may look something up before it answers."""

Form = TypeVar("Form", bound=BaseModel)
Value = TypeVar("Value")
Read: TypeAlias = Callable[[ModelAnswer, Notes], tuple[Value | None, tuple[str, ...]]]
"""What an answer says, or None and all that is wrong with it in sentences; what was put right is noted."""


@dataclass(frozen=True, slots=True)
class Structured(Generic[Value]):
    """An answer of the form that was asked for."""

    value: Value
    answer: ModelAnswer
    """The last answer of the model."""
    problems: tuple[tuple[str, ...], ...] = ()
    """What was wrong before each repair, in order; empty when the first answer was right."""
    notes: tuple[str, ...] = ()
    """What was put right in the answer."""


class LookUp(Exception):  # noqa: N818  a reader's way to say that the model asked for something first
    """The model wants to know more before it answers; the message is what it wanted to know."""


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
    ready: Callable[[Any, Notes], Any] = lambda value, _notes: value,
    example: Callable[[], str] | None = None,
    narrow: Callable[[Schema], Schema] = lambda schema: schema,
    sink: PieceSink = ignore_piece,
    record: Recorder = ignore_call,
    repairs: int = REPAIRS,
) -> Structured[Form]:
    """One JSON object of a form: held to it by the server where that can, else by a tool, else in words.

    Args:
        client: who asks.
        request: the question; it has no tools of its own.
        form: what the object must be, once what code can put right is put right.
        name: the tool's name, which also says what the object is.
        check: what else is wrong with an object of the form, in sentences; they go back to the model.
        ready: what more can be put right in an object before it is held to the form.
        example: gives a right answer in JSON; made from the schema by default.
        narrow: the form's schema as a server is to hold the answer to it: with the names that are there.
        sink: gets the pieces as they come.
        record: gets every call, with notes on what was put right.
        repairs: how often what is wrong goes back to the model.

    Raises:
        NotOfFormError: after all repairs the answer is not of the form, or does not pass the check.
        ModelError: a call failed or was refused.
    """
    schema = small_schema(form)
    known = client.capabilities(request.model)
    tools = known.tools and not known.json_schema
    shown = example or (lambda: json.dumps(example_of(schema), ensure_ascii=False))
    if tools:
        asking = _with_tool(request, form, name, schema)
    else:
        asking = _in_words(request, name, schema, shown() if example else "")
        asking = replace(asking, json_schema=narrow(schema) if known.json_schema else None)

    def read(answer: ModelAnswer, notes: Notes) -> tuple[Form | None, tuple[str, ...]]:
        return _read(answer, form, name, schema, check, ready, notes)

    hint = (lambda: f"One whole example:\n{shown()}") if example or not tools else str
    return await ask_until(client, asking, read, hint=hint, sink=sink, record=record, repairs=repairs)


async def ask_until(
    client: ModelClient,
    asking: ModelRequest,
    read: Read[Value],
    *,
    hint: Callable[[], str] = str,
    sink: PieceSink = ignore_piece,
    record: Recorder = ignore_call,
    repairs: int = REPAIRS,
) -> Structured[Value]:
    """An answer that can be read; what is wrong with one goes back to the model so many times.

    Args:
        client: who asks.
        asking: the question.
        read: reads an answer; it raises `LookUp` where the model asks for something first.
        hint: shows how a right answer looks, beside what is wrong.
        sink: gets the pieces as they come.
        record: gets every call, with notes on what was put right.
        repairs: how often what is wrong goes back to the model.

    Raises:
        NotOfFormError: after all repairs the answer still cannot be read.
        ModelError: a call failed or was refused.
    """
    history: list[tuple[str, ...]] = []
    calls: list[tuple[ModelRequest, ModelAnswer | ModelError]] = []

    def keep(request: ModelRequest, outcome: ModelAnswer | ModelError) -> None:
        calls.append((request, outcome))

    first, before, lookups = asking, None, 0
    while True:
        notes: Notes = []
        value = None
        try:
            answer, problems = await _answer(client, asking, sink, keep)
            if not problems:
                value, problems = read(answer, notes)
        except LookUp as wanted:
            lookups += 1
            if lookups <= LOOKUPS:
                asking = asking.followed_by(*_turns(answer, str(wanted), wrong=False))
                continue
            problems = ("you have looked enough up: give the answer now",)
        finally:
            if notes and isinstance(read_of := calls[-1][1], ModelAnswer):
                calls[-1] = (calls[-1][0], replace(read_of, notes=(*read_of.notes, *notes)))
            for call in calls:
                record(*call)
            calls.clear()
        if value is not None:
            return Structured(value, answer, tuple(history), tuple(notes))
        if len(history) >= repairs:
            raise NotOfFormError(problems, answer, repairs)
        history.append(problems)
        again = before is not None and _said(before) == _said(answer)
        asking = _repaired(first if again else asking, answer, problems, client, hint(), again=again)
        before = answer


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


def _said(answer: ModelAnswer) -> tuple[Any, ...]:
    return answer.text.split(), [(use.name, use.input, use.raw) for use in answer.tool_uses]


def _with_tool(request: ModelRequest, form: type[BaseModel], name: str, schema: Schema) -> ModelRequest:
    tool = ToolSpec(name, (form.__doc__ or name).strip(), schema)
    # Models that refuse a forced tool are asked in words; saying it to the others does no harm.
    rule = Text(f"Answer only by calling the tool `{name}`, once.", "form")
    return replace(request, tools=(tool,), tool_choice=name, system=(*request.system, rule))


def _in_words(request: ModelRequest, name: str, schema: Schema, example: str) -> ModelRequest:
    rule = (
        f"Answer with one JSON object ({name}) and nothing else: no words before or after it, each key once. "
    )
    # A schema beside an example makes weak models repeat the schema.
    shown = json.dumps(schema, ensure_ascii=False, separators=(",", ":"))
    rule += f"For example:\n{example}" if example else f"It must fit this JSON Schema:\n{shown}"
    return replace(request, system=(*request.system, Text(rule, "form")))


def _repaired(
    request: ModelRequest,
    answer: ModelAnswer,
    problems: Sequence[str],
    client: ModelClient,
    hint: str,
    *,
    again: bool,
) -> ModelRequest:
    """The request again, with what the model said and what was wrong with it.

    An answer like the one before is not shown once more, as it would only be repeated: then it is the first
    request, a little warmer.
    """
    listed = "\n".join(f"- {clean_line(problem, limit=500)}" for problem in problems[:SHOWN_PROBLEMS])
    text = f"This cannot be used:\n{fence('what is wrong', listed)}\n"
    text += f"{hint}\nGive the whole corrected answer." if hint else "Give the whole corrected answer again."
    known = client.capabilities(request.model)
    most = min(known.max_output, max(request.max_tokens, known.context_window // 2))
    request = replace(request, max_tokens=min(max(request.max_tokens, 2 * answer.usage.output_tokens), most))
    if not again:
        return request.followed_by(*_turns(answer, text, wrong=True))
    if "temperature" not in known.refuses:
        warmer = (request.temperature or known.temperature or 0.0) + WARMER
        request = replace(request, temperature=min(1.0, warmer))
    *earlier, question = request.messages
    told = Text(f"You gave the same wrong answer twice. {text}", "repair")
    return replace(request, messages=(*earlier, replace(question, content=(*question.content, told))))


def _turns(answer: ModelAnswer, text: str, *, wrong: bool) -> tuple[Message, Message]:
    """What the model said, and what it hears of it."""
    results = tuple(ToolResult(use.id, text, is_error=wrong) for use in answer.tool_uses)
    heard = Message("user", results) if results else user_message(text, name="repair")
    return answer_turn(answer), heard


def _read(
    answer: ModelAnswer,
    form: type[Form],
    name: str,
    schema: Schema,
    check: Callable[[Form], Sequence[str]],
    ready: Callable[[Any, Notes], Any],
    notes: Notes,
) -> tuple[Form | None, tuple[str, ...]]:
    uses = answer.tool_uses
    if uses and uses[0].name != name:
        return None, (f"there is no tool {clean_line(uses[0].name, limit=80)!r}; call `{name}`",)
    try:
        inputs = [input_of(use, notes) for use in uses] if uses else values_in(answer.text, notes)
        given = ready(fitted(one_of(inputs, schema, notes), schema, notes), notes)
        # Through JSON once more: strict in text, pydantic still takes lists for tuples and names for enums.
        value = form.model_validate_json(json.dumps(given), strict=True)
    except StrictJsonError as error:
        return None, (str(error),)
    except ValidationError as error:
        return None, problem_lines(error)
    problems = tuple(check(value))
    return (None, problems) if problems else (value, ())


def one_of(values: Sequence[Any], schema: Schema, notes: Notes) -> Any:
    """The one value that was asked for, of those in an answer.

    Raises:
        StrictJsonError: there are different ones.
    """
    if len(values) == 1:
        return values[0]
    own = [value for value in values if isinstance(value, dict) and set(value) & set(schema["properties"])]
    if len(own) == 1:
        notes.append("other objects around the answer were left out")
        return own[0]
    if own or not all(isinstance(value, dict) for value in values):
        raise StrictJsonError(f"the answer holds {len(values)} different objects: give one")
    return list(values)


def input_of(use: ToolUse, notes: Notes) -> Any:
    """The input of a call; broken JSON is mended and noted.

    Raises:
        StrictJsonError: it is not to be read.
    """
    if not use.fault:
        return use.input
    try:
        (value,) = values_in(use.raw, notes)
    except ValueError:
        shown = clean_line(use.name, limit=80)
        raise StrictJsonError(f"the input of `{shown}` is no usable JSON: {use.fault}") from None
    return value


def problem_lines(error: ValidationError) -> tuple[str, ...]:
    """A validator's complaints, a line each."""
    return tuple(
        f"{'.'.join(map(str, each['loc'])) or 'the object'}: {plain_problem(each['msg'])}"
        for each in error.errors(include_url=False, include_context=False, include_input=False)
    )
