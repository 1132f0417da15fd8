"""Requests about workflows, their thoughts, actions and artifacts."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from engine.core import memory as core
from engine.core import memory_events as ev
from engine.core.reasons import Reason
from engine.memory import requests as rq
from engine.memory import scoring
from engine.memory.errors import MemoryInputError, MemoryRefused
from engine.memory.requests import Request, View
from engine.memory.tables import ACTIONS, ARTIFACTS, CHAINS, DEPENDENCIES, THOUGHTS, WORKFLOWS, Reading
from engine.memory.writer import Unit, remember, think
from engine.value import dataclass


class CreateWorkflow(Request[core.Workflow]):
    """A piece of work begins, with a first line of thought and an empty mind."""

    title: rq.Line = Field(min_length=1)
    description: rq.Text = ""
    goal: rq.Text = ""
    tags: rq.Tags = ()
    metadata: rq.Json = Field(default_factory=dict)
    parent_workflow_id: rq.MaybeIdent = ""
    idempotency_key: rq.Key = ""

    def write(self, unit: Unit) -> core.Workflow:
        made = unit.made_before(ev.WorkflowCreated, self.idempotency_key)
        if made:
            return unit.reading.need_workflow(made)
        unit.reading.check(WORKFLOWS, self.parent_workflow_id, "parent_workflow_id", "")
        given = self.values("idempotency_key")
        workflow = core.Workflow(id=unit.new_id("w"), **given, created_at=unit.now, updated_at=unit.now)
        unit.emit(ev.WorkflowCreated(workflow=workflow, key=self.idempotency_key))
        chain = core.ThoughtChain(unit.new_id("c"), workflow.id, "main reasoning", created_at=unit.now)
        unit.emit(ev.ThoughtChainCreated(chain=chain))
        state = core.CognitiveState(workflow.id, updated_at=unit.now)
        unit.emit(ev.MindSet(state=state, reason=Reason("memory.new")))
        if self.goal:
            think(unit, chain, core.ThoughtType.GOAL, self.goal)
        return workflow


class UpdateWorkflowStatus(Request[core.Workflow]):
    """A workflow stands elsewhere; what is over stays over."""

    workflow_id: rq.Ident
    status: rq.Word[core.WorkflowStatus]
    completion_message: rq.Text = ""
    update_tags: rq.Tags = ()
    """Added to those it has."""
    idempotency_key: rq.Key = ""

    def write(self, unit: Unit) -> core.Workflow:
        workflow = unit.reading.need_workflow(self.workflow_id)
        if unit.made_before(ev.WorkflowChanged, self.idempotency_key, workflow.id):
            return workflow
        if workflow.status.terminal:
            raise MemoryRefused(
                f"Workflow {workflow.id} is {workflow.status} and stays so: create a new one."
            )
        if self.status is core.WorkflowStatus.COMPLETED:
            names = ", ".join(child.id for child in open_below(unit.reading, workflow.id))
            if names:
                raise MemoryRefused(
                    f"Workflow {workflow.id} has open sub-workflows ({names}): end them first."
                )
        tags = tuple(dict.fromkeys((*workflow.tags, *self.update_tags)))
        said = self.completion_message
        changed = self.values("completion_message", "update_tags")
        unit.emit(ev.WorkflowChanged(**changed, message=said, tags=tags))
        if said:
            think(unit, unit.reading.first_chain(workflow.id), core.ThoughtType.SUMMARY, said)
        return unit.reading.need_workflow(workflow.id)


def open_below(reading: Reading, workflow: str) -> list[core.Workflow]:
    """The workflows begun below one that are not over."""
    children = (reading.find(WORKFLOWS, ident) for ident in reading.below(workflow))
    return [child for child in children if child is not None and not child.status.terminal]


class GetWorkflow(Request[core.Workflow]):
    """A workflow by id."""

    verb: ClassVar[str] = "get_workflow_details"
    workflow_id: rq.Ident

    def answer(self, view: View) -> core.Workflow:
        return view.reading.need_workflow(self.workflow_id)


class RecordThought(Request[core.Thought]):
    """A thought, word for word; one that matters becomes a memory as well."""

    workflow_id: rq.Ident
    content: rq.Text = Field(min_length=1)
    thought_type: rq.Word[core.ThoughtType] = core.ThoughtType.INFERENCE
    thought_chain_id: rq.MaybeIdent = ""
    parent_thought_id: rq.MaybeIdent = ""
    relevant_action_id: rq.MaybeIdent = ""
    relevant_artifact_id: rq.MaybeIdent = ""
    relevant_memory_id: rq.MaybeIdent = ""
    idempotency_key: rq.Key = ""

    def write(self, unit: Unit) -> core.Thought:
        reading = unit.reading
        workflow = reading.need_workflow(self.workflow_id).id
        made = unit.made_before(ev.ThoughtAdded, self.idempotency_key, workflow)
        if made:
            return reading.need(THOUGHTS, made, "idempotency_key")
        chain = reading.first_chain(workflow)
        if self.thought_chain_id:
            chain = reading.need(CHAINS, self.thought_chain_id, "thought_chain_id", workflow)
        if self.parent_thought_id:
            parent = reading.need(THOUGHTS, self.parent_thought_id, "parent_thought_id")
            reading.need(CHAINS, parent.chain, "parent_thought_id", workflow)
        reading.check(ACTIONS, self.relevant_action_id, "relevant_action_id", workflow)
        reading.check(ARTIFACTS, self.relevant_artifact_id, "relevant_artifact_id", workflow)
        if self.relevant_memory_id:
            reading.need_memory(self.relevant_memory_id, "relevant_memory_id", workflow)
        about = self.values("workflow_id", "content", "thought_type", "thought_chain_id", "idempotency_key")
        return think(unit, chain, self.thought_type, self.content, **about, key=self.idempotency_key)


class CreateThoughtChain(Request[core.ThoughtChain]):
    """Another line of thought begins."""

    workflow_id: rq.Ident
    title: rq.Line = Field(min_length=1)
    initial_thought: rq.Text = ""
    initial_thought_type: rq.Word[core.ThoughtType] = core.ThoughtType.GOAL

    def write(self, unit: Unit) -> core.ThoughtChain:
        workflow = unit.reading.need_workflow(self.workflow_id)
        chain = core.ThoughtChain(unit.new_id("c"), workflow.id, self.title, created_at=unit.now)
        unit.emit(ev.ThoughtChainCreated(chain=chain))
        if self.initial_thought:
            think(unit, chain, self.initial_thought_type, self.initial_thought)
        return chain


@dataclass(frozen=True, slots=True)
class ChainWithThoughts:
    """A line of thought and its thoughts in order."""

    chain: core.ThoughtChain
    thoughts: tuple[core.Thought, ...] = ()


class GetThoughtChain(Request[ChainWithThoughts]):
    """A line of thought by id."""

    thought_chain_id: rq.Ident
    include_thoughts: bool = True

    def answer(self, view: View) -> ChainWithThoughts:
        chain = view.reading.need(CHAINS, self.thought_chain_id, "thought_chain_id")
        if not self.include_thoughts:
            return ChainWithThoughts(chain)
        thoughts = view.reading.many(THOUGHTS, "t.chain = ?", (chain.id,), order="t.sequence")
        return ChainWithThoughts(chain, tuple(thoughts))


_KEY_WORDS = "goal decision summary reflection reasoning analysis insight user_guidance"
KEY_THOUGHTS = tuple(map(core.ThoughtType, _KEY_WORDS.split()))
"""Types of thoughts that a thinker gets, with what the operator said."""


class GetKeyThoughts(Request[tuple[core.Thought, ...]]):
    """The thoughts that matter, of all lines of thought of a workflow, newest first."""

    workflow_id: rq.Ident
    limit: rq.Limit = 7

    def answer(self, view: View) -> tuple[core.Thought, ...]:
        reading = view.reading
        workflow = reading.need_workflow(self.workflow_id).id
        kinds = ", ".join(f"'{kind}'" for kind in KEY_THOUGHTS)
        condition = f"""t.type in ({kinds}) and t.chain in (
            select c.id from chains c where c.workflow = ? and {reading.live("c")})"""
        return tuple(reading.many(THOUGHTS, condition, (workflow,), order="t.row desc", limit=self.limit))


class RecordActionStart(Request[core.RecordedAction]):
    """An action begins; an episodic memory records it."""

    workflow_id: rq.Ident
    action_type: rq.Word[core.ActionType]
    reasoning: rq.Text = ""
    tool_name: rq.Line = ""
    tool_args: rq.Json = Field(default_factory=dict)
    title: rq.Line = ""
    parent_action_id: rq.MaybeIdent = ""
    tags: rq.Tags = ()
    idempotency_key: rq.Key = ""

    def write(self, unit: Unit) -> core.RecordedAction:
        workflow = unit.reading.need_workflow(self.workflow_id)
        made = unit.made_before(ev.ActionRecorded, self.idempotency_key, workflow.id)
        if made:
            return unit.reading.need(ACTIONS, made, "idempotency_key")
        if workflow.status.terminal:
            raise MemoryRefused(f"Workflow {workflow.id} is {workflow.status}: no action can begin in it.")
        if self.action_type is core.ActionType.TOOL_USE and not self.tool_name:
            raise MemoryInputError("tool_name", "tool_name: an action of type tool_use must name its tool.")
        unit.reading.check(ACTIONS, self.parent_action_id, "parent_action_id", workflow.id)
        before = unit.reading.last_in(ACTIONS, workflow.id)
        title = self.title or self.tool_name or str(self.action_type)
        memory = remember(
            unit,
            workflow.id,
            f"Action {title}" + (f": {self.reasoning}" if self.reasoning else ""),
            type=core.MemoryType.ACTION_LOG,
            description=f"Action {title}",
            tags=("action_start", str(self.action_type)),
            action=unit.new_id("a", ahead=1),
        )
        action = core.RecordedAction(
            id=unit.new_id("a"),
            **self.values("title", "idempotency_key"),
            title=title,
            memory=memory.id,
            sequence=before + 1,
            started_at=unit.now,
        )
        unit.emit(ev.ActionRecorded(action=action, key=self.idempotency_key))
        return action


class RecordActionCompletion(Request[core.RecordedAction]):
    """An action is over; its memory says how it went, and the result is kept whole."""

    big: ClassVar[tuple[str, ...]] = ("tool_result",)
    action_id: rq.Ident
    status: rq.Word[core.ActionStatus] = core.ActionStatus.COMPLETED
    tool_result: rq.Big = ""
    summary: rq.Text = ""
    conclusion_thought: rq.Text = ""
    conclusion_thought_type: rq.Word[core.ThoughtType] = core.ThoughtType.INFERENCE
    idempotency_key: rq.Key = ""

    def write(self, unit: Unit) -> core.RecordedAction:
        action = unit.reading.need(ACTIONS, self.action_id, "action_id")
        if unit.made_before(ev.ActionEnded, self.idempotency_key, action.workflow):
            return action
        if not self.status.terminal:
            raise MemoryInputError("status", "status: an action ends completed, failed or skipped.")
        if action.status.terminal:
            raise MemoryRefused(f"Action {action.id} is {action.status} already: it ends only once.")
        result = unit.content("tool_result", self.tool_result)
        ended = self.values("tool_result", "conclusion_thought", "conclusion_thought_type")
        unit.emit(ev.ActionEnded(workflow=action.workflow, result=result, **ended))
        memory = unit.reading.find_memory(action.memory)
        if memory is not None:
            parts = [f"{self.status}", self.summary, self.tool_result[:50]]
            changes = {
                "content": "\n".join([memory.content, *filter(None, parts)])[:64_000],
                "importance": scoring.ended_importance(memory.importance, self.status),
            }
            unit.emit(ev.MemoryChanged(workflow=action.workflow, memory=memory.id, changes=changes))
        if self.conclusion_thought:
            chain = unit.reading.first_chain(action.workflow)
            think(unit, chain, self.conclusion_thought_type, self.conclusion_thought, action=action.id)
        return unit.reading.need(ACTIONS, action.id, "action_id")


@dataclass(frozen=True, slots=True)
class ActionDetails:
    """An action with what it needs and what needs it."""

    action: core.RecordedAction
    needs: tuple[core.Dependency, ...] = ()
    needed_by: tuple[core.Dependency, ...] = ()


class GetActionDetails(Request[tuple[ActionDetails, ...]]):
    """Actions by id."""

    action_id: rq.MaybeIdent = ""
    action_ids: tuple[rq.Ident, ...] = Field(default=(), strict=False, max_length=100)
    include_dependencies: bool = False

    def answer(self, view: View) -> tuple[ActionDetails, ...]:
        idents = tuple(ident for ident in (self.action_id, *self.action_ids) if ident)
        if not idents:
            raise MemoryInputError("action_id", "action_id: name an action, or several in action_ids.")
        reading = view.reading
        details = [ActionDetails(reading.need(ACTIONS, ident, "action_id")) for ident in idents]
        if self.include_dependencies:
            ends = ("t.source = ?", "t.target = ?")
            details = [
                ActionDetails(action, *(tuple(reading.many(DEPENDENCIES, end, (action.id,))) for end in ends))
                for action in (each.action for each in details)
            ]
        return tuple(details)


class GetRecentActions(Request[tuple[core.RecordedAction, ...]]):
    """The newest actions of a workflow, newest first, with their results."""

    workflow_id: rq.Ident
    limit: rq.Limit = 5
    action_type: rq.Word[core.ActionType] | None = None
    status: rq.Word[core.ActionStatus] | None = None

    def answer(self, view: View) -> tuple[core.RecordedAction, ...]:
        view.reading.need_workflow(self.workflow_id)
        fits = view.reading.where(workflow=self.workflow_id, type=self.action_type, status=self.status)
        return tuple(view.reading.many(ACTIONS, *fits, order="t.sequence desc", limit=self.limit))


class AddActionDependency(Request[core.Dependency]):
    """An action needs another one; saying so again changes nothing."""

    source_action_id: rq.Ident
    target_action_id: rq.Ident
    dependency_type: rq.Line = Field(default="requires", min_length=1)

    def write(self, unit: Unit) -> core.Dependency:
        source = unit.reading.need(ACTIONS, self.source_action_id, "source_action_id")
        unit.reading.need(ACTIONS, self.target_action_id, "target_action_id", source.workflow)
        known = unit.reading.find(
            DEPENDENCIES, self.source_action_id, self.target_action_id, self.dependency_type
        )
        if known is not None:
            return known
        if _reaches(unit.reading, self.target_action_id, self.source_action_id):
            raise MemoryRefused(
                f"{self.target_action_id} depends on {self.source_action_id} already: "
                "two actions cannot wait for one another."
            )
        dependency = core.Dependency(
            self.source_action_id, self.target_action_id, self.dependency_type, unit.now
        )
        unit.emit(ev.DependencyAdded(workflow=source.workflow, dependency=dependency))
        return dependency


def _reaches(reading: Reading, source: str, target: str) -> bool:
    """Whether an action is, or depends on, another one."""
    live = reading.live("d")
    rows = reading.rows(
        f"""with recursive reached(id) as (
            select d.target from dependencies d where d.source = ? and {live}
            union select d.target from dependencies d join reached r on d.source = r.id and {live}
        ) select 1 from reached where id = ?""",
        source,
        target,
    )
    return source == target or bool(rows)


class RecordArtifact(Request[core.Artifact]):
    """The work made something; its text is kept byte for byte."""

    big: ClassVar[tuple[str, ...]] = ("content",)
    workflow_id: rq.Ident
    name: rq.Line = Field(min_length=1)
    artifact_type: rq.Word[core.ArtifactType]
    action_id: rq.MaybeIdent = ""
    description: rq.Text = ""
    path: rq.Line = ""
    content: rq.Big = ""
    metadata: rq.Json = Field(default_factory=dict)
    is_output: bool = False
    tags: rq.Tags = ()
    idempotency_key: rq.Key = ""

    def write(self, unit: Unit) -> core.Artifact:
        workflow = unit.reading.need_workflow(self.workflow_id)
        made = unit.made_before(ev.ArtifactRecorded, self.idempotency_key, workflow.id)
        if made:
            return unit.reading.need(ARTIFACTS, made, "idempotency_key")
        unit.reading.check(ACTIONS, self.action_id, "action_id", workflow.id)
        title = f"Artifact {self.name} ({self.artifact_type})"
        memory = remember(
            unit,
            workflow.id,
            title + (f": {self.description}" if self.description else ""),
            type=core.MemoryType.ARTIFACT_CREATION,
            importance=6.0 if self.is_output else 5.0,
            description=title,
            tags=self.tags,
            action=self.action_id,
            artifact=unit.new_id("f", ahead=1),
        )
        artifact = core.Artifact(
            id=unit.new_id("f"),
            **self.values("content", "idempotency_key"),
            content=unit.content("content", self.content) if self.content else None,
            memory=memory.id,
            created_at=unit.now,
        )
        unit.emit(ev.ArtifactRecorded(artifact=artifact, key=self.idempotency_key))
        return artifact


class GetArtifacts(Request[tuple[core.Artifact, ...]]):
    """Artifacts of a workflow, newest first."""

    workflow_id: rq.Ident
    artifact_type: rq.Word[core.ArtifactType] | None = None
    tag: rq.Line = ""
    is_output: bool | None = None
    limit: rq.Limit = 10

    def answer(self, view: View) -> tuple[core.Artifact, ...]:
        view.reading.need_workflow(self.workflow_id)
        fits = view.reading.where(
            self.tag, workflow=self.workflow_id, type=self.artifact_type, is_output=self.is_output
        )
        return tuple(view.reading.many(ARTIFACTS, *fits, order="t.row desc", limit=self.limit))


class GetArtifact(Request[core.Artifact]):
    """An artifact by id."""

    verb: ClassVar[str] = "get_artifact_by_id"
    artifact_id: rq.Ident

    def answer(self, view: View) -> core.Artifact:
        return view.reading.need(ARTIFACTS, self.artifact_id, "artifact_id")
