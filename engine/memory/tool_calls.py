"""Answers the calls of memory as a tool, and what the operator writes; imported once memory is open.

A workflow that must be named and is not is that of the current goal. An agent may write to its own workflows
only.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from engine.core import commands as cmd
from engine.core.ports import CallContext
from engine.memory.commands import NAMES, owner_tag
from engine.memory.errors import MemoryInputError, MemoryRefused
from engine.memory.memories import HybridSearch, UseMemories
from engine.memory.memory import Memory
from engine.memory.note_writer import FindOwners, FindWorkflow
from engine.memory.requests import Request, as_json, every_request, named

WORKFLOW_ARGUMENTS = ("workflow_id", "context_id")
"""Arguments that name a workflow."""

FindCurrent = Callable[[str], Awaitable[str]]
"""Finds the workflow of the goal at hand; takes the name of the argument that it is for."""


def workflow_finder(
    memory: Memory, agent: str, goal: str, begun: str, kept: Callable[[], Awaitable[None]]
) -> FindCurrent:
    """Finds the workflow that is meant where none is named.

    Args:
        memory: where it is looked up; it is open.
        agent: who asks.
        goal: the goal that it pursues; empty for none.
        begun: the workflow that it began for that goal; empty where it is the root goal's own.
        kept: waits until memory holds what was done so far.
    """

    async def find(name: str) -> str:
        if begun:
            return begun
        request = FindWorkflow(agent=agent, goal=goal) if agent else None
        workflow = await memory.do(request) if request is not None else ""
        if request is not None and not workflow:
            await kept()
            workflow = await memory.do(request)
        if not workflow:
            why = "no goal is at hand whose workflow could be meant: name one."
            raise MemoryInputError(name, f"{name}: {why}")
        return workflow

    return find


async def with_default_workflow(
    verb: str, arguments: Mapping[str, Any], current: FindCurrent, *, nested: bool
) -> dict[str, Any]:
    """The arguments of a request, with the workflow of the current goal where one must be named and is not.

    Args:
        verb: the request's name, ours or the seed's.
        arguments: what was given; None counts as left out.
        current: finds the workflow.
        nested: whether a workflow that begins belongs below it.

    Raises:
        MemoryInputError: there is no such workflow.
    """
    given = {name: value for name, value in arguments.items() if value is not None}
    kind = every_request().get(NAMES.get(verb, verb))
    if kind is not None:
        for name in WORKFLOW_ARGUMENTS:
            # Where a request can do without, all workflows are meant.
            if name in kind.model_fields and kind.model_fields[name].is_required() and not given.get(name):
                given[name] = await current(name)
        if kind.verb == "create_workflow" and nested and not given.get("parent_workflow_id"):
            given["parent_workflow_id"] = await current("parent_workflow_id")
    return given


# ------------------------------------------------------------------ agents


async def call_for_agent(
    memory: Memory,
    command: str,
    args: Mapping[str, Any],
    context: CallContext,
    kept: Callable[[], Awaitable[None]],
) -> dict[str, Any]:
    """The answer to a call, as JSON; looking at a memory by id counts as using it, finding it does not.

    Raises:
        MemoryFault, JournalError: it was refused.
    """
    current = workflow_finder(memory, context.agent, context.goal, context.workflow, kept)
    given = await with_default_workflow(command, args, current, nested=bool(context.goal))
    if NAMES.get(command, command) == "create_workflow" and context.agent and not context.by_operator:
        given["tags"] = [*given.get("tags", ()), owner_tag(context.agent)]
    return as_json(await _answer(memory, named(command, given), context))


OWNED = (
    *("workflow_id", "context_id", "parent_workflow_id"),
    *("memory_id", "source_memory_id", "source_action_id"),
)
"""Arguments of a write that name what it changes, or whose workflow it changes."""


async def _answer(memory: Memory, request: Request[Any], context: CallContext) -> Any:
    causes = (context.event,) if context.event else ()
    if request.writes and not context.by_operator:
        await _check_owner(memory, request, context.agent)
    if request.writes:
        return (await memory.write(request, actor=context.actor, causes=causes)).answer
    if isinstance(request, HybridSearch):
        request = request.model_copy(update={"rewrite": True})
    answer = await memory.recall(request, agent=context.agent, cause=context.event)
    if request.verb == "get_memory_by_id":
        used = UseMemories(memory_ids=(answer.memory.id,))
        await memory.write(used, actor=context.actor, causes=causes)
    return answer


async def _check_owner(memory: Memory, request: Request[Any], agent: str) -> None:
    idents = tuple(ident for name in OWNED if (ident := getattr(request, name, "")))
    for workflow, owners in await memory.do(FindOwners(idents=idents)):
        if owners and agent not in owners:
            raise MemoryRefused(
                f"{workflow} is a workflow of {', '.join(owners)}: "
                f"{agent or 'this agent'} may read it and not write to it."
            )


# ------------------------------------------------------------------ the operator

_OF_MIND = frozenset({"change_working_memory", "focus_memory", "focus"})
_NAMING = ("memory_id", "pin", "unpin", "evict", "add")
"""Arguments of these that name a memory."""


async def write_for_operator(
    memory: Memory, command: cmd.Remember, actor: str, goal: str, kept: Callable[[], Awaitable[None]]
) -> cmd.Receipt:
    """See `engine.memory.tool.remember_for_operator`.

    Raises:
        MemoryFault, JournalError: it was refused.
    """
    given = await _with_mind(memory, command)
    current = workflow_finder(memory, command.agent, goal, "", kept)
    given = await with_default_workflow(command.verb, given, current, nested=bool(goal))
    request = named(command.verb, given)
    written = await memory.write(request, actor=actor)
    return cmd.Receipt(
        ok=True,
        message=f"{request.verb} done" if written.event else f"{request.verb}: nothing was to be changed",
        event=written.event,
        data=as_json(written.answer),
    )


async def _with_mind(memory: Memory, command: cmd.Remember) -> Mapping[str, Any]:
    """The arguments; where it is about working memory and names no workflow, that of the memory is meant.

    An operator looks at memories of all work, also of what is over.
    """
    given = command.arguments
    named = next((given[name] for name in _NAMING if given.get(name)), "")
    ident = next(iter(named), "") if isinstance(named, list | tuple) else named
    if command.verb not in _OF_MIND or given.get("context_id") or not ident:
        return given
    details = await memory.recall("get_memory_by_id", {"memory_id": ident, "include_links": False})
    return {**given, "context_id": details.memory.workflow}
