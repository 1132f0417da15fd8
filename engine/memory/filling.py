"""Filling in what goes without saying: a workflow that is not named is that of the goal at hand (§3.9).

Source: spec master-loop-and-memory §3.9. Imports memory's whole room, so only where memory is open.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from engine.memory.errors import MemoryInputError
from engine.memory.keeping import FindWorkflow
from engine.memory.memory import Memory
from engine.memory.names import NAMES
from engine.memory.requests import every_request


@dataclass(frozen=True, slots=True)
class AtHand:
    """For whom a request is filled in."""

    agent: str
    goal: str = ""
    """The goal that it pursues; empty for none."""
    workflow: str = ""
    """The workflow that it began for that goal; empty where it is the root goal's own."""


MINE = ("workflow_id", "context_id")
"""Arguments that name a workflow."""


async def filled(
    memory: Memory,
    verb: str,
    arguments: Mapping[str, Any],
    at_hand: AtHand,
    kept: Callable[[], Awaitable[None]],
) -> dict[str, Any]:
    """The arguments of a request, with the workflow of the goal at hand where one must be named and is not.

    Args:
        memory: where it is looked up; it is open.
        verb: the request's name, ours or the seed's.
        arguments: what was given; None counts as left out.
        at_hand: which agent asks, and what it pursues.
        kept: waits until memory holds what was done so far.

    Raises:
        MemoryInputError: there is no such workflow.
    """
    given = {name: value for name, value in arguments.items() if value is not None}
    kind = every_request().get(NAMES.get(verb, verb))
    if kind is not None:
        for name in MINE:
            # Where a request can do without, all workflows are meant.
            if name in kind.model_fields and kind.model_fields[name].is_required() and not given.get(name):
                given[name] = await _workflow(memory, at_hand, kept, name)
        if kind.verb == "create_workflow" and at_hand.goal and not given.get("parent_workflow_id"):
            given["parent_workflow_id"] = await _workflow(memory, at_hand, kept, "parent_workflow_id")
    return given


async def _workflow(memory: Memory, at_hand: AtHand, kept: Callable[[], Awaitable[None]], name: str) -> str:
    if at_hand.workflow:
        return at_hand.workflow
    if at_hand.agent:
        request = FindWorkflow(agent=at_hand.agent, goal=at_hand.goal)
        found = await memory.do(request)
        if not found:
            await kept()
            found = await memory.do(request)
        if found:
            return found
    raise MemoryInputError(name, f"{name}: no goal is at hand whose workflow could be meant: name one.")
