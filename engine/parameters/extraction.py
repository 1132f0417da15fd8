"""What is missing, taken from the goal by a model: one structured question at temperature 0.

The answer is read strictly and checked by the command's own rules; twice a model may put it right, with
the validator's own words (seed parameter processing; spec mindX §3.4, §7 37).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from pydantic import BaseModel, ConfigDict, Field, create_model

from engine.domain.fence import RULE
from engine.domain.parameters import Extraction, shown
from engine.domain.ports import CommandSpec, Parameter
from engine.domain.text import clean_line
from engine.models import (
    Message,
    ModelClient,
    ModelError,
    ModelErrorKind,
    ModelRequest,
    Text,
    ask_for,
    fence,
)
from engine.models.port import Recorder, unrecorded
from engine.models.repairs import REPAIRS
from engine.parameters.likeness import place
from engine.tools.arguments import check_arguments, expectation

TOOL = "give_parameters"
"""The tool by which a model gives the values."""
MAX_TOKENS = 4_096
"""Longest answer, in tokens."""
TEXT_LIMIT = 100_000
"""Longest text that is taken from an answer, in characters."""
_ROLE = f"""You take the values of a command's missing parameters out of the words of a goal.
Give each of them as the goal says it. Where the goal does not say it, give null: never invent a value,
and never take one from an example. Paths are relative to the agent's directory and stay beneath it.

{RULE}"""
_TYPES: dict[str, Any] = {
    "string": str,
    "integer": int,
    "number": float,
    "boolean": bool,
    "array": list[Any],
    "object": dict[str, Any],
}


@dataclass(frozen=True, slots=True)
class Question:
    """What is to be taken out of a goal."""

    goal: str
    tool: str
    spec: CommandSpec
    missing: tuple[Parameter, ...]
    given: dict[str, Any]
    """The arguments that are there already."""
    cwd: str = "."


class Asker(Protocol):
    """Who takes missing parameters out of a goal: a model, or a recording of one."""

    @property
    def model(self) -> str:
        """The model's name."""

    async def extract(self, question: Question) -> Extraction:
        """What was found; nothing that a model says or fails at raises.

        Raises:
            ModelError: of kind BUDGET; the call was not made.
        """


class ModelAsker:
    """Asks a model.

    Args:
        client: who carries requests to it.
        model: its name, as its endpoint knows it.
        record: told of every request what came of it.
        repairs: how often an answer that cannot be used may be put right.
    """

    def __init__(
        self, client: ModelClient, model: str, record: Recorder = unrecorded, *, repairs: int = REPAIRS
    ) -> None:
        self.model = model
        self._repairs = repairs
        self._client = client
        self._record = record

    async def extract(self, question: Question) -> Extraction:
        """See `Asker`; a failed call is an extraction without values that says why."""
        try:
            given = await ask_for(
                self._client,
                self._request(question),
                _form(question.missing),
                name=TOOL,
                check=lambda form: _problems(question, _values(form)),
                record=self._record,
                repairs=self._repairs,
            )
        except ModelError as error:
            if error.kind is ModelErrorKind.BUDGET:
                raise
            return Extraction(self.model, error=clean_line(error.message))
        repairs = tuple(tuple(map(clean_line, problems)) for problems in given.problems)
        return Extraction(self.model, _values(given.value), repairs)

    def _request(self, question: Question) -> ModelRequest:
        spec = question.spec
        wanted = "\n".join(
            f"- {one.name} ({expectation(one)}): {one.description}" for one in question.missing
        )
        given = json.dumps(question.given, ensure_ascii=False, default=str)
        blocks = (
            Text(f"The command is {question.tool} {spec.name}: {spec.description}", "command"),
            Text(fence("the agent's directory", question.cwd), "session"),
            Text(fence("parameters that are given already", given), "given"),
            Text(f"The missing parameters:\n{wanted}", "missing"),
            Text(f"The goal:\n{question.goal}", "goal"),
        )
        system = (Text(_ROLE, "role"),)
        return ModelRequest(
            self.model, (Message("user", blocks),), system, max_tokens=MAX_TOKENS, temperature=0.0
        )


def _form(missing: Sequence[Parameter]) -> type[BaseModel]:
    """The form of an answer; its fields are named apart, as a parameter may be called `copy` or `json`."""
    fields: dict[str, Any] = {}
    for number, one in enumerate(missing):
        kind = str | list[str] if one.kind == "shell" else _TYPES.get(one.type, Any)
        fields[f"value_{number}"] = (
            kind | None if kind is not Any else Any,
            Field(alias=one.name, description=f"{one.description}; null where the goal does not say it"),
        )
    return create_model(
        "Parameters",
        __config__=ConfigDict(extra="forbid"),
        __doc__="Give the values of the missing parameters.",
        **fields,
    )


def _values(form: BaseModel) -> dict[str, Any]:
    return {name: value for name, value in form.model_dump(by_alias=True).items() if value is not None}


def _problems(question: Question, values: dict[str, Any]) -> tuple[str, ...]:
    """What is wrong with what a model gave, in the validator's words."""
    checked = check_arguments(question.spec, {**question.given, **values})
    found = [problem.message for problem in checked.problems if problem.argument in values]
    for parameter in question.missing:
        value = values.get(parameter.name)
        if isinstance(value, str) and len(value) > TEXT_LIMIT:
            found.append(f"{parameter.name}: it has {len(value)} characters, {TEXT_LIMIT} are the most")
        if parameter.kind == "path" and isinstance(value, str) and place(question.cwd, value) is None:
            found.append(f"{parameter.name}: {shown(value)} is no path beneath the sandbox root")
    return tuple(found)
