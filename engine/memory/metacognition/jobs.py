"""What each background job does, with the inputs that it was given when it began.

A job writes to the workflow of the goal that was pursued then, or to none: it never looks at what the agent
does since. A consolidation brings at most ten episodic memories into one, a reflection looks back in one of
five kinds that take turns. Without a model both are computed from the record, and say that they are.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Annotated

from pydantic import BaseModel, Field

from engine.core.memory import MemoryItem, ReflectionKind
from engine.core.metacognition import MetaTask
from engine.core.text import clean_line, fence
from engine.memory import upkeep
from engine.memory.memories import CreateMemoryLink, GetLinkedMemories, QueryMemories, SuggestLinks
from engine.memory.memory import Memory
from engine.memory.metacognition.job import BackgroundJobResult, JobInputs, ModelQuestion, NoWorkflowError
from engine.memory.metacognition.retrospect import Retrospect, computed, material
from engine.memory.working_memory import AutoUpdateFocus, ChangeWorkingMemory, OptimizeWorkingMemory

ALIKE = 0.5
"""Part of the words that two memories must share to be in one group."""
SHOWN = 300
"""Characters of each memory that go into the text."""
_WORD = re.compile(r"\w+")


class WrittenConsolidation(BaseModel, extra="forbid"):
    """What several memories come to when they are brought together."""

    content: Annotated[str, Field(min_length=1, max_length=20_000)]
    """One text that stands for all of them."""


async def consolidate(inputs: JobInputs, memory: Memory, workflow: str) -> BackgroundJobResult:
    """Bring memories of a workflow together; nothing happens where there are fewer than two.

    Raises:
        MemoryFault, JournalError: memory refused.
        ModelQuestionError: the model could not be asked.
    """
    asking = inputs.asking
    sources = await memory.do(upkeep.ConsolidationCandidates(workflow_id=workflow, limit=inputs.sources))
    if len(sources) < 2:
        return BackgroundJobResult("there are no two episodic memories left to bring together")
    content = grouped(sources) if asking is None else await _written(sources, asking)
    request = upkeep.ConsolidateMemories(
        workflow_id=workflow,
        source_ids=tuple(source.id for source in sources),
        content=content,
        computed=asking is None,
    )
    made = await memory.do(request, **inputs.how)
    head = content.splitlines()[0]
    return BackgroundJobResult(
        f"{len(sources)} memories into {made.id}: {head}",
        feedback=clean_line(content, limit=600),
        computed=asking is None,
        made=made.id,
        sources=made.context["sources"],
    )


async def _written(sources: Sequence[MemoryItem], asking: ModelQuestion) -> str:
    material = "\n".join(f"{memory.id} ({memory.type}): {memory_line(memory)}" for memory in sources)
    question = "Bring these memories together into one text: what holds in general, and what was special."
    written = await asking("consolidation", question, fence("memories", material), WrittenConsolidation)
    assert isinstance(written, WrittenConsolidation)
    return written.content


def memory_line(memory: MemoryItem) -> str:
    """What a memory says, in a line."""
    text = f"{memory.description}: {memory.content}" if memory.description else memory.content
    return clean_line(text, limit=SHOWN)


def grouped(sources: Sequence[MemoryItem]) -> str:
    """The memories as text, those with like words together; the first line counts them."""
    groups: list[list[MemoryItem]] = []
    for memory in sources:
        like = next((group for group in groups if likeness(memory, group[0]) >= ALIKE), None)
        if like is None:
            groups.append([memory])
        else:
            like.append(memory)
    groups.sort(key=len, reverse=True)
    kinds = Counter(memory.type.value for memory in sources)
    types = ", ".join(f"{kind} ×{n}" for kind, n in kinds.most_common())
    lines = [f"{len(sources)} memories ({types}) in {len(groups)} groups of like words, counted."]
    for group in groups:
        ids = ", ".join(memory.id for memory in group)
        much = f"{len(group)} alike, such as" if len(group) > 1 else "1:"
        lines.append(f"{much} {memory_line(group[0])} [{ids}]")
    return "\n".join(lines)


def likeness(memory: MemoryItem, other: MemoryItem) -> float:
    """Part of all words of two memories that both have, 0 to 1."""
    first, second = _words(memory), _words(other)
    every = first | second
    return len(first & second) / len(every) if every else 1.0


def _words(memory: MemoryItem) -> set[str]:
    text = f"{memory.description} {memory.content[:SHOWN]}".casefold()
    return set(_WORD.findall(text))


FEEDBACK = 600
"""Characters of a computed reflection that the thinker gets."""
QUESTIONS = {
    ReflectionKind.SUMMARY: "Sum up what was done and its results.",
    ReflectionKind.PROGRESS: "How far is the goal, what is done of it, and what is not?",
    ReflectionKind.GAPS: "What is missing, what failed and why, and what is not known that should be?",
    ReflectionKind.STRENGTHS: "What worked well and should be done again?",
    ReflectionKind.PLAN: "Do the steps still to come lead to the goal? What should be done otherwise?",
}


class WrittenReflection(BaseModel, extra="forbid"):
    """What a look back at an agent's work finds."""

    findings: Annotated[str, Field(min_length=1, max_length=20_000)]
    """What was found, with what it is based on."""
    advice: Annotated[str, Field(max_length=2_000)] = ""
    """What the planner should know or do otherwise; empty when it should continue as it does."""
    plan_anew: bool = False
    """Whether the steps that are still to come should be planned anew."""


async def reflect(
    past: Retrospect, kind: ReflectionKind, asking: ModelQuestion | None
) -> tuple[BackgroundJobResult, str]:
    """A reflection, and its whole text.

    Raises:
        ModelQuestionError: the model could not be asked.
    """
    if asking is None:
        text = computed(past, kind)
        message = f"{kind}: {text.splitlines()[0]}"
        return BackgroundJobResult(message, feedback=_head(text)), text
    written = await asking(
        "reflection", QUESTIONS[kind], fence("the agent's record", material(past)), WrittenReflection
    )
    assert isinstance(written, WrittenReflection)
    head = written.findings.strip().splitlines()[0]
    feedback = written.advice.strip() or _head(written.findings)
    return BackgroundJobResult(
        f"{kind}: {head}", feedback, computed=False, replan=written.plan_anew
    ), written.findings


async def store_reflection(
    inputs: JobInputs, memory: Memory, workflow: str, text: str, result: BackgroundJobResult
) -> str:
    """Keep a reflection in memory; its id.

    Raises:
        MemoryFault, JournalError: memory refused.
    """
    kind = ReflectionKind(inputs.job.kind)
    request = upkeep.RecordReflection(
        workflow_id=workflow, content=text, reflection_type=kind, computed=result.computed
    )
    return (await memory.do(request, **inputs.how)).id


def _head(text: str) -> str:
    return text if len(text) <= FEEDBACK else f"{text[:FEEDBACK]}…"


LIKENESS, LINKS = 0.7, 3
"""How alike memories must be to be linked, and how many links each gets."""
FRESH = 5
"""Newest memories that one job looks at for links."""
WORKING_MEMORY_MINIMUM = 5
"""Memories that working memory is filled up to, as far as some are important enough."""
IMPORTANT_FROM = 6.0
"""Importance from which on a memory matters: decisions, summaries, insights, and not each single action."""
SWEEPS = 20
"""Sweeps of expired memories in one job at most."""


async def _place(inputs: JobInputs) -> tuple[Memory, str]:
    """The memory, and the workflow of the goal for which the job was begun."""
    if inputs.memory is None or inputs.workflow_of is None:
        raise NoWorkflowError("there is no memory in this session")
    workflow = await inputs.workflow_of(inputs.memory, inputs.agent, inputs.job.goal)
    if not workflow:
        raise NoWorkflowError(f"goal {inputs.job.goal or 'none'} has no workflow in memory")
    return inputs.memory, workflow


async def _reflect(inputs: JobInputs) -> BackgroundJobResult:
    kind = ReflectionKind(inputs.job.kind)
    result, text = await reflect(inputs.past, kind, inputs.asking)
    if inputs.memory is None:
        return result
    try:
        memory, workflow = await _place(inputs)
    except NoWorkflowError:
        return result
    return replace(result, made=await store_reflection(inputs, memory, workflow, text, result))


async def _optimise(inputs: JobInputs, memory: Memory, workflow: str) -> BackgroundJobResult:
    """Cut working memory to size, fill it where it is nearly empty, and set the focus."""
    mind = await memory.do(OptimizeWorkingMemory(context_id=workflow), **inputs.how)
    present = {item.memory.id for item in mind.items}
    if len(present) < WORKING_MEMORY_MINIMUM:
        important = QueryMemories(
            workflow_id=workflow, min_importance=IMPORTANT_FROM, limit=2 * WORKING_MEMORY_MINIMUM
        )
        candidates = [
            match.memory.id for match in await memory.do(important) if match.memory.id not in present
        ]
        if candidates:
            add = ChangeWorkingMemory(
                context_id=workflow, add=tuple(candidates[: WORKING_MEMORY_MINIMUM - len(present)])
            )
            mind = await memory.do(add, **inputs.how)
    focused = await memory.do(AutoUpdateFocus(context_id=workflow), **inputs.how)
    focal = focused.state.focal
    about = f"{focal} is in focus" if focal else "nothing is in focus"
    return BackgroundJobResult(
        f"{len(mind.items)} memories are in mind, {about}", counts={"working": len(mind.items)}
    )


async def _promote(inputs: JobInputs, memory: Memory, workflow: str) -> BackgroundJobResult:
    risen = []
    for candidate in await memory.do(upkeep.PromotionCandidates(workflow_id=workflow)):
        if await memory.do(upkeep.PromoteMemory(memory_id=candidate.id), **inputs.how) is not None:
            risen.append(candidate.id)
    message = f"{', '.join(risen)} settled" if risen else "no memory has earned the next level"
    return BackgroundJobResult(message, sources=tuple(risen), counts={"promoted": len(risen)})


async def _maintain(inputs: JobInputs, memory: Memory, workflow: str) -> BackgroundJobResult:
    expired = 0
    for _ in range(SWEEPS):
        gone = await memory.do(upkeep.DeleteExpiredMemories(), **inputs.how)
        expired += gone
        if gone < upkeep.SWEEP:
            break
    weaker = await memory.do(upkeep.DecayLinkStrengths(workflow_id=workflow), **inputs.how)
    counts = {"expired": expired, "weakened": weaker}
    return BackgroundJobResult(f"{expired} memories expired, {weaker} links weakened", counts=counts)


async def _adapt(inputs: JobInputs) -> BackgroundJobResult:
    """Count; the thresholds follow in the agent's own cycle, from its state."""
    if inputs.memory is None:
        return BackgroundJobResult("failures counted; there is no memory in this session")
    try:
        memory, workflow = await _place(inputs)
    except NoWorkflowError:
        return BackgroundJobResult("failures counted; the goal has no memories yet")
    statistics = await memory.do(upkeep.ComputeMemoryStatistics(workflow_id=workflow))
    levels = dict(statistics.by_level)
    counts = {
        "episodic": levels.get("episodic", 0),
        "total": statistics.total,
        "unconsolidated": statistics.unconsolidated_episodic,
    }
    return BackgroundJobResult(
        f"{counts['episodic']} of {statistics.total} memories are episodic", counts=counts
    )


async def _link(inputs: JobInputs, memory: Memory, workflow: str) -> BackgroundJobResult:
    newest = await memory.do(QueryMemories(workflow_id=workflow, sort_by="created_at", limit=FRESH))
    made = 0
    for match in newest:
        known = await memory.do(
            GetLinkedMemories(memory_id=match.memory.id, direction="outgoing", limit=LINKS)
        )
        left = LINKS - len(known)
        if not left:
            continue
        suggested = await memory.do(
            SuggestLinks(memory_id=match.memory.id, threshold=LIKENESS, max_links=left)
        )
        for suggestion in suggested:
            request = CreateMemoryLink(
                source_memory_id=match.memory.id,
                target_memory_id=suggestion.target.id,
                link_type=suggestion.type,
                strength=max(0.01, min(1.0, suggestion.likeness)),
                description="alike",
            )
            await memory.do(request, **inputs.how)
            made += 1
    return BackgroundJobResult(f"{made} links between like memories", counts={"links": made})


_JOBS: dict[MetaTask, Callable[[JobInputs], Awaitable[BackgroundJobResult]]] = {
    MetaTask.ADAPT: _adapt,
    MetaTask.REFLECT: _reflect,
}
_IN_MEMORY: dict[MetaTask, Callable[[JobInputs, Memory, str], Awaitable[BackgroundJobResult]]] = {
    MetaTask.CONSOLIDATE: consolidate,
    MetaTask.OPTIMISE: _optimise,
    MetaTask.PROMOTE: _promote,
    MetaTask.MAINTAIN: _maintain,
    MetaTask.LINK: _link,
}
"""Work on the memories of the goal's workflow, which can do without neither."""


async def run_job(inputs: JobInputs) -> BackgroundJobResult:
    """Do a job.

    Raises:
        NoWorkflowError: it needs one, and the goal has none.
        MemoryFault, JournalError: memory refused.
        ModelQuestionError: the model could not be asked.
    """
    if (job := _JOBS.get(inputs.job.task)) is not None:
        return await job(inputs)
    return await _IN_MEMORY[inputs.job.task](inputs, *await _place(inputs))
