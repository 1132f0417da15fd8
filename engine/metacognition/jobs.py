"""What each background job does, with what it was given when it began.

A job writes to the workflow of the goal that was pursued then, or nowhere: it never looks at what the agent
has turned to since. Source: spec master-loop-and-memory §3.4 to §3.6, §3.13, §5 item 34.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace

from engine.domain.memory import ReflectionKind
from engine.domain.metacognition import MetaTask
from engine.memory import Memory
from engine.memory.memories import CreateMemoryLink, GetLinkedMemories
from engine.memory.mind import AutoUpdateFocus, ChangeWorkingMemory, OptimizeWorkingMemory
from engine.memory.searching import QueryMemories, SuggestLinks
from engine.memory.upkeep import (
    SWEEP,
    ComputeMemoryStatistics,
    DecayLinkStrengths,
    DeleteExpiredMemories,
    PromoteMemory,
    PromotionCandidates,
)
from engine.metacognition.consolidation import consolidate
from engine.metacognition.reflection import reflect, remember
from engine.metacognition.result import Result
from engine.metacognition.work import Inputs, NoWorkflowError

LIKENESS, LINKS = 0.7, 3
"""How alike memories must be to be linked, and how many links each gets (§3.4)."""
FRESH = 5
"""Newest memories that one job looks at for links."""
AT_LEAST = 5
"""Memories that are in mind at least, as far as some matter; nobody need have put them there."""
MATTERS = 6.0
"""Importance from which on a memory matters: decisions, summaries, insights, and not each single action."""
SWEEPS = 20
"""Sweeps of expired memories in one job at most."""


async def _place(inputs: Inputs) -> tuple[Memory, str]:
    """The memory, and the workflow of the goal for which the job was begun."""
    if inputs.memory is None or inputs.workflow_of is None:
        raise NoWorkflowError("there is no memory in this session")
    found = await inputs.workflow_of(inputs.memory, inputs.agent, inputs.job.goal)
    if not found:
        raise NoWorkflowError(f"goal {inputs.job.goal or 'none'} has no workflow in memory")
    return inputs.memory, found


async def _reflect(inputs: Inputs) -> Result:
    kind = ReflectionKind(inputs.job.kind)
    result, text = await reflect(inputs.past, kind, inputs.asking)
    if inputs.memory is None:
        return result
    try:
        memory, workflow = await _place(inputs)
    except NoWorkflowError:
        return result
    return replace(result, made=await remember(inputs, memory, workflow, text, result))


async def _consolidate(inputs: Inputs) -> Result:
    memory, workflow = await _place(inputs)
    return await consolidate(inputs, memory, workflow)


async def _optimise(inputs: Inputs) -> Result:
    """Cut mind down to size, bring in what matters most where it is all but empty, and turn the focus."""
    memory, workflow = await _place(inputs)
    mind = await memory.do(OptimizeWorkingMemory(context_id=workflow), **inputs.how)
    present = {item.memory.id for item in mind.items}
    if len(present) < AT_LEAST:
        wanted = QueryMemories(workflow_id=workflow, min_importance=MATTERS, limit=2 * AT_LEAST)
        found = [one.memory.id for one in await memory.do(wanted) if one.memory.id not in present]
        if found:
            add = ChangeWorkingMemory(context_id=workflow, add=tuple(found[: AT_LEAST - len(present)]))
            mind = await memory.do(add, **inputs.how)
    focused = await memory.do(AutoUpdateFocus(context_id=workflow), **inputs.how)
    focal = focused.state.focal
    about = f"{focal} is in focus" if focal else "nothing is in focus"
    return Result(f"{len(mind.items)} memories are in mind, {about}", counts={"working": len(mind.items)})


async def _promote(inputs: Inputs) -> Result:
    memory, workflow = await _place(inputs)
    risen = []
    for one in await memory.do(PromotionCandidates(workflow_id=workflow)):
        if await memory.do(PromoteMemory(memory_id=one.id), **inputs.how) is not None:
            risen.append(one.id)
    said = f"{', '.join(risen)} settled" if risen else "no memory has earned the next level"
    return Result(said, sources=tuple(risen), counts={"promoted": len(risen)})


async def _maintain(inputs: Inputs) -> Result:
    memory, workflow = await _place(inputs)
    expired = 0
    for _ in range(SWEEPS):
        gone = await memory.do(DeleteExpiredMemories(), **inputs.how)
        expired += gone
        if gone < SWEEP:
            break
    weaker = await memory.do(DecayLinkStrengths(workflow_id=workflow), **inputs.how)
    counts = {"expired": expired, "weakened": weaker}
    return Result(f"{expired} memories expired, {weaker} links weakened", counts=counts)


async def _adapt(inputs: Inputs) -> Result:
    """Count; the thresholds follow in the agent's own cycle, from its state."""
    if inputs.memory is None:
        return Result("failures counted; there is no memory in this session")
    try:
        memory, workflow = await _place(inputs)
    except NoWorkflowError:
        return Result("failures counted; the goal has no memories yet")
    told = await memory.do(ComputeMemoryStatistics(workflow_id=workflow))
    levels = dict(told.by_level)
    counts = {
        "episodic": levels.get("episodic", 0),
        "total": told.total,
        "unconsolidated": told.unconsolidated_episodic,
    }
    return Result(f"{counts['episodic']} of {told.total} memories are episodic", counts=counts)


async def _link(inputs: Inputs) -> Result:
    memory, workflow = await _place(inputs)
    newest = await memory.do(QueryMemories(workflow_id=workflow, sort_by="created_at", limit=FRESH))
    made = 0
    for found in newest:
        known = await memory.do(
            GetLinkedMemories(memory_id=found.memory.id, direction="outgoing", limit=LINKS)
        )
        left = LINKS - len(known)
        if not left:
            continue
        suggested = await memory.do(
            SuggestLinks(memory_id=found.memory.id, threshold=LIKENESS, max_links=left)
        )
        for one in suggested:
            request = CreateMemoryLink(
                source_memory_id=found.memory.id,
                target_memory_id=one.target.id,
                link_type=one.type,
                strength=max(0.01, min(1.0, one.likeness)),
                description="alike",
            )
            await memory.do(request, **inputs.how)
            made += 1
    return Result(f"{made} links between like memories", counts={"links": made})


DO: dict[MetaTask, Callable[[Inputs], Awaitable[Result]]] = {
    MetaTask.ADAPT: _adapt,
    MetaTask.REFLECT: _reflect,
    MetaTask.CONSOLIDATE: _consolidate,
    MetaTask.OPTIMISE: _optimise,
    MetaTask.PROMOTE: _promote,
    MetaTask.MAINTAIN: _maintain,
    MetaTask.LINK: _link,
}
"""What each task does; see `engine.metacognition.work.perform` for what may be raised."""
