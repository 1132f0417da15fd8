"""The inputs and the result of a background job, and how a model is asked about the record.

What the jobs do is in `jobs`, which is imported when the first one runs, so that the first screen does not
wait for it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypedDict, TypeVar

from pydantic import BaseModel

from engine.core.metacognition import BackgroundJob
from engine.core.text import RULE
from engine.memory.memory import Memory
from engine.memory.metacognition.retrospect import Retrospect
from engine.models.choice import REPAIRS
from engine.models.completion import ModelClient, Recorder, ignore_call
from engine.models.errors import ModelError
from engine.models.messages import Message, Text
from engine.models.prompt_parts import REFLECTION, Parts, built_in
from engine.models.request import ModelRequest
from engine.models.structured import ask_for
from engine.value import dataclass, field

Form = TypeVar("Form", bound=BaseModel)

MAX_TOKENS = 1_000
"""Longest answer."""

ModelQuestion = Callable[[str, str, str, type[BaseModel]], Awaitable[BaseModel]]
"""Asks for an object: its name, what is wanted, the material already fenced, and the object's form."""


class ModelQuestionError(Exception):
    """The model could not be asked, or gave nothing that can be used; the message says why."""


def model_question(
    client: ModelClient,
    model: str,
    record: Recorder = ignore_call,
    parts: Callable[[], Awaitable[Parts]] = built_in,
    *,
    repairs: int = REPAIRS,
) -> ModelQuestion:
    """A way to ask a model.

    Args:
        client: carries the question; it keeps to the agent's budget.
        model: its name.
        record: called with every call.
        parts: reads the workspace's parts of the prompt.
        repairs: how often an answer that cannot be used may be put right.
    """

    async def asking(name: str, question: str, material: str, form: type[BaseModel]) -> BaseModel:
        role = (await parts()).words(REFLECTION, ROLE)
        request = ModelRequest(
            model,
            (Message("user", (Text(material, "record"), Text(question, "question"))),),
            (Text(f"{role}\n\n{RULE}", "role", cache=True),),
            max_tokens=min(MAX_TOKENS, client.capabilities(model).max_output),
        )
        try:
            given = await ask_for(client, request, form, name=name, record=record, repairs=repairs)
        except ModelError as error:
            raise ModelQuestionError(error.message) from error
        return given.value

    return asking


ROLE = """You look back on the work of an agent while it goes on working. You never act and give no
orders: what you find is kept, and told to the agent's planner once. Say only what the record shows, name what
you base it on, and say so where it shows nothing."""
"""The built-in words of the part `reflection`."""


@dataclass(frozen=True, slots=True)
class BackgroundJobResult:
    """The result of a job, for the event of its end."""

    message: str
    """In a line."""
    feedback: str = ""
    """What the thinker is to know."""
    computed: bool = True
    """False where a model wrote it."""
    replan: bool = False
    """Whether another plan is asked for."""
    made: str = ""
    """Id of the reflection or memory that it made."""
    sources: tuple[str, ...] = ()
    """Memories that went into it."""
    counts: dict[str, int] = field(default_factory=dict)
    """What was counted or done, by name."""


class _How(TypedDict):
    actor: str
    causes: tuple[str, ...]


class NoWorkflowError(Exception):
    """The goal has no workflow in memory."""


WorkflowOf = Callable[[Memory, str, str], Awaitable[str]]
"""Finds the workflow of an agent's goal; empty where there is none."""


@dataclass(frozen=True, slots=True)
class JobInputs:
    """All that a job works with."""

    job: BackgroundJob
    agent: str
    past: Retrospect
    sources: int = 10
    """Memories that a consolidation brings together at most."""
    memory: Memory | None = None
    workflow_of: WorkflowOf | None = None
    asking: ModelQuestion | None = None
    """None where everything is computed."""

    @property
    def how(self) -> _How:
        """Who writes to memory, and the event that it follows from, which must be durable before."""
        return {"actor": "background", "causes": (self.job.event,) if self.job.event else ()}
