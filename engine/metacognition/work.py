"""A background job, as the loop begins it: what it is given, and that it is done.

What a job does is imported when the first one runs, as a first screen must not wait for it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypedDict

from engine.domain.metacognition import BackgroundJob
from engine.memory import Memory
from engine.metacognition.result import Result
from engine.metacognition.retrospect import Retrospect

if TYPE_CHECKING:
    from engine.metacognition.asking import Asking


class _How(TypedDict):
    actor: str
    causes: tuple[str, ...]


class NoWorkflowError(Exception):
    """The goal has no workflow in memory."""


WorkflowOf = Callable[[Memory, str, str], Awaitable[str]]
"""Finds the workflow of an agent's goal; empty where there is none."""


@dataclass(frozen=True, slots=True)
class Inputs:
    """All that a job works with."""

    job: BackgroundJob
    agent: str
    past: Retrospect
    sources: int = 10
    """Memories that a consolidation brings together at most."""
    memory: Memory | None = None
    workflow_of: WorkflowOf | None = None
    asking: Asking | None = None
    """None where everything is computed."""

    @property
    def how(self) -> _How:
        """Who writes to memory, and the event that it follows from, which must be durable before."""
        return {"actor": "background", "causes": (self.job.event,) if self.job.event else ()}


async def perform(inputs: Inputs) -> Result:
    """Do a job.

    Raises:
        NoWorkflowError: it needs one, and the goal has none.
        MemoryFault, JournalError: memory refused.
        AskingError: the model could not be asked.
    """
    from engine.metacognition.jobs import DO  # what is heavy of it memory has imported when it was opened

    return await DO[inputs.job.task](inputs)
