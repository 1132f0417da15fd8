"""Workflows and lines of thought.

Source: spec master-loop-and-memory §1.2 to §1.4, §1.9 U16, U17 and U20, §2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pydantic import Field

from engine.domain.memory import (
    CognitiveState,
    Thought,
    ThoughtChain,
    ThoughtType,
    Workflow,
    WorkflowStatus,
)
from engine.journal import memory_events as ev
from engine.memory.errors import MemoryRefused
from engine.memory.remembering import think
from engine.memory.requests import (
    Ident,
    Json,
    Key,
    Limit,
    Line,
    MaybeIdent,
    Offset,
    Request,
    Status,
    Tags,
    Text,
    ThoughtKind,
    View,
    answers,
    writes,
)
from engine.memory.tables import ACTIONS, ARTIFACTS, CHAINS, THOUGHTS, WORKFLOWS
from engine.memory.writing import Unit

MAIN_CHAIN = "main reasoning"

# ------------------------------------------------------------------ workflows


class CreateWorkflow(Request[Workflow]):
    """A piece of work begins, with a first line of thought and an empty mind."""

    verb: ClassVar[str] = "create_workflow"
    purpose: ClassVar[str] = "begin a piece of work that actions, thoughts and memories belong to"
    title: Line = Field(min_length=1)
    description: Text = ""
    goal: Text = ""
    tags: Tags = ()
    metadata: Json = Field(default_factory=dict)
    parent_workflow_id: MaybeIdent = ""
    idempotency_key: Key = ""


@writes(CreateWorkflow)
def _create_workflow(unit: Unit, asked: CreateWorkflow) -> Workflow:
    made = unit.made_before(ev.WorkflowCreated, asked.idempotency_key)
    if made:
        return unit.reading.need_workflow(made)
    if asked.parent_workflow_id:
        unit.reading.need(WORKFLOWS, asked.parent_workflow_id, "parent_workflow_id")
    workflow = Workflow(
        id=unit.new_id("w"),
        title=asked.title,
        description=asked.description,
        goal=asked.goal,
        parent=asked.parent_workflow_id,
        tags=asked.tags,
        metadata=asked.metadata,
        created_at=unit.now,
        updated_at=unit.now,
    )
    unit.emit(ev.WorkflowCreated(workflow=workflow, key=asked.idempotency_key))
    chain = ThoughtChain(unit.new_id("c"), workflow.id, MAIN_CHAIN, created_at=unit.now)
    unit.emit(ev.ThoughtChainCreated(chain=chain))
    unit.emit(ev.MindSet(state=CognitiveState(workflow.id, updated_at=unit.now), reason="new"))
    if asked.goal:
        think(unit, chain, ThoughtType.GOAL, asked.goal)
    return workflow


class UpdateWorkflowStatus(Request[Workflow]):
    """A workflow stands elsewhere; what is over stays over."""

    verb: ClassVar[str] = "update_workflow_status"
    purpose: ClassVar[str] = "pause, resume or end a workflow, with a closing thought"
    workflow_id: Ident
    status: Status
    completion_message: Text = ""
    update_tags: Tags = ()
    """Added to those it has."""


@writes(UpdateWorkflowStatus)
def _update_workflow(unit: Unit, asked: UpdateWorkflowStatus) -> Workflow:
    workflow = unit.reading.need_workflow(asked.workflow_id)
    if workflow.status.terminal:
        raise MemoryRefused(f"Workflow {workflow.id} is {workflow.status} and stays so: create a new one.")
    if asked.status is WorkflowStatus.COMPLETED:
        open_ones = unit.reading.many(
            WORKFLOWS, "t.parent = ? and t.status in ('active', 'paused')", (workflow.id,)
        )
        if open_ones:
            names = ", ".join(one.id for one in open_ones)
            raise MemoryRefused(f"Workflow {workflow.id} has open sub-workflows ({names}): end them first.")
    tags = tuple(dict.fromkeys((*workflow.tags, *asked.update_tags)))
    unit.emit(
        ev.WorkflowChanged(
            workflow=workflow.id, status=asked.status, message=asked.completion_message, tags=tags
        )
    )
    if asked.completion_message:
        think(unit, unit.reading.first_chain(workflow.id), ThoughtType.SUMMARY, asked.completion_message)
    return unit.reading.need_workflow(workflow.id)


class ListWorkflows(Request[tuple[Workflow, ...]]):
    """The workflows, newest first."""

    verb: ClassVar[str] = "list_workflows"
    purpose: ClassVar[str] = "list workflows, newest first"
    for_agents: ClassVar[bool] = False
    status: Status | None = None
    tag: Line = ""
    limit: Limit = 10
    offset: Offset = 0


@answers(ListWorkflows)
def _list_workflows(view: View, asked: ListWorkflows) -> tuple[Workflow, ...]:
    parts, values = ["1"], []
    if asked.status is not None:
        parts.append("t.status = ?")
        values.append(str(asked.status))
    if asked.tag:
        live = view.reading.live("g")
        parts.append(f"exists(select 1 from taggings g where g.owner = t.id and g.tag = ? and {live})")
        values.append(asked.tag.strip().lower())
    found = view.reading.many(
        WORKFLOWS,
        " and ".join(parts),
        values,
        order="t.created_at desc, t.id desc",
        limit=asked.limit,
        offset=asked.offset,
    )
    return tuple(found)


class GetWorkflow(Request[Workflow]):
    """A workflow by id."""

    verb: ClassVar[str] = "get_workflow_details"
    purpose: ClassVar[str] = "look at one workflow"
    for_agents: ClassVar[bool] = False
    workflow_id: Ident


@answers(GetWorkflow)
def _get_workflow(view: View, asked: GetWorkflow) -> Workflow:
    return view.reading.need_workflow(asked.workflow_id)


# ------------------------------------------------------------------ thoughts


class RecordThought(Request[Thought]):
    """A thought, word for word; one that matters becomes a memory as well."""

    verb: ClassVar[str] = "record_thought"
    purpose: ClassVar[str] = "write a thought down in a line of thought"
    workflow_id: Ident
    content: Text = Field(min_length=1)
    thought_type: ThoughtKind = ThoughtType.INFERENCE
    thought_chain_id: MaybeIdent = ""
    parent_thought_id: MaybeIdent = ""
    relevant_action_id: MaybeIdent = ""
    relevant_artifact_id: MaybeIdent = ""
    relevant_memory_id: MaybeIdent = ""
    idempotency_key: Key = ""


@writes(RecordThought)
def _record_thought(unit: Unit, asked: RecordThought) -> Thought:
    reading = unit.reading
    workflow = reading.need_workflow(asked.workflow_id).id
    made = unit.made_before(ev.ThoughtAdded, asked.idempotency_key, workflow)
    if made:
        return reading.need(THOUGHTS, made, "idempotency_key")
    chain = reading.first_chain(workflow)
    if asked.thought_chain_id:
        chain = reading.need(CHAINS, asked.thought_chain_id, "thought_chain_id", workflow)
    if asked.parent_thought_id:
        parent = reading.need(THOUGHTS, asked.parent_thought_id, "parent_thought_id")
        reading.need(CHAINS, parent.chain, "parent_thought_id", workflow)
    if asked.relevant_action_id:
        reading.need(ACTIONS, asked.relevant_action_id, "relevant_action_id", workflow)
    if asked.relevant_artifact_id:
        reading.need(ARTIFACTS, asked.relevant_artifact_id, "relevant_artifact_id", workflow)
    if asked.relevant_memory_id:
        reading.need_memory(asked.relevant_memory_id, "relevant_memory_id", workflow)
    return think(
        unit,
        chain,
        asked.thought_type,
        asked.content,
        parent=asked.parent_thought_id,
        action=asked.relevant_action_id,
        artifact=asked.relevant_artifact_id,
        memory=asked.relevant_memory_id,
        key=asked.idempotency_key,
    )


class CreateThoughtChain(Request[ThoughtChain]):
    """Another line of thought begins."""

    verb: ClassVar[str] = "create_thought_chain"
    purpose: ClassVar[str] = "begin another line of thought"
    workflow_id: Ident
    title: Line = Field(min_length=1)
    initial_thought: Text = ""
    initial_thought_type: ThoughtKind = ThoughtType.GOAL


@writes(CreateThoughtChain)
def _create_chain(unit: Unit, asked: CreateThoughtChain) -> ThoughtChain:
    workflow = unit.reading.need_workflow(asked.workflow_id)
    chain = ThoughtChain(unit.new_id("c"), workflow.id, asked.title, created_at=unit.now)
    unit.emit(ev.ThoughtChainCreated(chain=chain))
    if asked.initial_thought:
        think(unit, chain, asked.initial_thought_type, asked.initial_thought)
    return chain


@dataclass(frozen=True, slots=True)
class ChainWithThoughts:
    """A line of thought and its thoughts in order."""

    chain: ThoughtChain
    thoughts: tuple[Thought, ...] = ()


class GetThoughtChain(Request[ChainWithThoughts]):
    """A line of thought by id."""

    verb: ClassVar[str] = "get_thought_chain"
    purpose: ClassVar[str] = "read a line of thought"
    thought_chain_id: Ident
    include_thoughts: bool = True


@answers(GetThoughtChain)
def _get_chain(view: View, asked: GetThoughtChain) -> ChainWithThoughts:
    chain = view.reading.need(CHAINS, asked.thought_chain_id, "thought_chain_id")
    if not asked.include_thoughts:
        return ChainWithThoughts(chain)
    thoughts = view.reading.many(THOUGHTS, "t.chain = ?", (chain.id,), order="t.sequence")
    return ChainWithThoughts(chain, tuple(thoughts))


KEY_THOUGHTS = (
    ThoughtType.GOAL,
    ThoughtType.DECISION,
    ThoughtType.SUMMARY,
    ThoughtType.REFLECTION,
    ThoughtType.REASONING,
    ThoughtType.ANALYSIS,
    ThoughtType.INSIGHT,
    ThoughtType.USER_GUIDANCE,
)
"""Types of thoughts that a thinker is told of (§1.8), with what the operator said (§4)."""


class GetKeyThoughts(Request[tuple[Thought, ...]]):
    """The thoughts that matter, of all lines of thought of a workflow, newest first."""

    verb: ClassVar[str] = "get_key_thoughts"
    purpose: ClassVar[str] = "see the thoughts that matter, newest first"
    for_agents: ClassVar[bool] = False
    workflow_id: Ident
    limit: Limit = 7


@answers(GetKeyThoughts)
def _key_thoughts(view: View, asked: GetKeyThoughts) -> tuple[Thought, ...]:
    reading = view.reading
    workflow = reading.need_workflow(asked.workflow_id).id
    kinds = ", ".join(f"'{kind}'" for kind in KEY_THOUGHTS)
    condition = f"""t.type in ({kinds}) and t.chain in (
        select c.id from chains c where c.workflow = ? and {reading.live("c")})"""
    return tuple(reading.many(THOUGHTS, condition, (workflow,), order="t.row desc", limit=asked.limit))
