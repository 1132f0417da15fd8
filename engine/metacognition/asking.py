"""Asking a model for words about the record, where the agent's configuration wants that."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from pydantic import BaseModel

from engine.domain.fence import RULE
from engine.library.prompt_parts import REFLECTION, Parts, built_in
from engine.models import Message, ModelClient, ModelError, ModelRequest, Recorder, Text, ask_for
from engine.models.port import unrecorded
from engine.models.repairs import REPAIRS

Form = TypeVar("Form", bound=BaseModel)

MAX_TOKENS = 1_000
"""Longest answer (spec master-loop-and-memory §1.8)."""

Asking = Callable[[str, str, str, type[BaseModel]], Awaitable[BaseModel]]
"""Asks for an object: its name, what is wanted, the material already fenced, and the object's form."""


class AskingError(Exception):
    """The model could not be asked, or gave nothing that can be used; the message says why."""


def asking_of(
    client: ModelClient,
    model: str,
    record: Recorder = unrecorded,
    parts: Callable[[], Awaitable[Parts]] = built_in,
    *,
    repairs: int = REPAIRS,
) -> Asking:
    """A way to ask a model.

    Args:
        client: carries the question; it keeps to the agent's budget.
        model: its name.
        record: told of every call.
        parts: reads the workspace's parts of the prompt.
        repairs: how often an answer that cannot be used may be put right.
    """

    async def asking(name: str, wanted: str, material: str, form: type[BaseModel]) -> BaseModel:
        role = (await parts()).words(REFLECTION, ROLE)
        request = ModelRequest(
            model,
            (Message("user", (Text(material, "record"), Text(wanted, "question"))),),
            (Text(f"{role}\n\n{RULE}", "role", cache=True),),
            max_tokens=min(MAX_TOKENS, client.capabilities(model).max_output),
        )
        try:
            given = await ask_for(client, request, form, name=name, record=record, repairs=repairs)
        except ModelError as error:
            raise AskingError(error.message) from error
        return given.value

    return asking


ROLE = """You look back on the work of an agent while it goes on working. You never act and give no
orders: what you find is kept, and told to the agent's planner once. Say only what the record shows, name what
you base it on, and say so where it shows nothing."""
"""The built-in words of the part `reflection`."""
