"""Actions, what they depend on, and what they brought forth.

Source: spec master-loop-and-memory §1.2 to §1.4, §1.9 U18 and U20, §2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pydantic import Field

from engine.domain.memory import (
    ActionStatus,
    ActionType,
    Artifact,
    Dependency,
    MemoryItem,
    MemoryLevel,
    MemoryType,
    RecordedAction,
    ThoughtType,
)
from engine.journal import memory_events as ev
from engine.memory import scoring
from engine.memory.errors import MemoryInputError, MemoryRefused
from engine.memory.reading import Reading
from engine.memory.remembering import remember, think
from engine.memory.requests import (
    Big,
    Deed,
    Ended,
    Ident,
    Json,
    Key,
    Limit,
    Line,
    MaybeIdent,
    Request,
    Tags,
    Text,
    ThoughtKind,
    View,
    Ware,
    answers,
    writes,
)
from engine.memory.tables import ACTIONS, ARTIFACTS, DEPENDENCIES
from engine.memory.writing import Unit

# ------------------------------------------------------------------ actions


class RecordActionStart(Request[RecordedAction]):
    """An action begins; an episodic memory tells of it."""

    verb: ClassVar[str] = "record_action_start"
    for_agents: ClassVar[bool] = False
    workflow_id: Ident
    action_type: Deed
    reasoning: Text = ""
    tool_name: Line = ""
    tool_args: Json = Field(default_factory=dict)
    title: Line = ""
    parent_action_id: MaybeIdent = ""
    tags: Tags = ()
    idempotency_key: Key = ""


@writes(RecordActionStart)
def _start_action(unit: Unit, asked: RecordActionStart) -> RecordedAction:
    workflow = unit.reading.need_workflow(asked.workflow_id)
    made = unit.made_before(ev.ActionRecorded, asked.idempotency_key, workflow.id)
    if made:
        return unit.reading.need(ACTIONS, made, "idempotency_key")
    if workflow.status.terminal:
        raise MemoryRefused(f"Workflow {workflow.id} is {workflow.status}: no action can begin in it.")
    if asked.action_type is ActionType.TOOL_USE and not asked.tool_name:
        raise MemoryInputError("tool_name", "tool_name: an action of type tool_use must name its tool.")
    if asked.parent_action_id:
        unit.reading.need(ACTIONS, asked.parent_action_id, "parent_action_id", workflow.id)
    ((before,),) = unit.reading.rows(
        "select coalesce(max(sequence), 0) from actions where workflow = ? and died is null", workflow.id
    )
    title = asked.title or asked.tool_name or str(asked.action_type)
    memory = remember(
        unit,
        MemoryItem(
            id="",
            workflow=workflow.id,
            content=f"Action {title}" + (f": {asked.reasoning}" if asked.reasoning else ""),
            type=MemoryType.ACTION_LOG,
            ttl=scoring.TTL_S[MemoryLevel.EPISODIC],
            description=f"Action {title}",
            tags=("action_start", str(asked.action_type)),
            action=unit.new_id("a", ahead=1),
        ),
    )
    action = RecordedAction(
        id=unit.new_id("a"),
        workflow=workflow.id,
        type=asked.action_type,
        title=title,
        reasoning=asked.reasoning,
        tool=asked.tool_name,
        args=asked.tool_args,
        parent=asked.parent_action_id,
        memory=memory.id,
        tags=asked.tags,
        sequence=before + 1,
        started_at=unit.now,
    )
    unit.emit(ev.ActionRecorded(action=action, key=asked.idempotency_key))
    return action


class RecordActionCompletion(Request[RecordedAction]):
    """An action is over; its memory says how it went, and the result is kept whole."""

    verb: ClassVar[str] = "record_action_completion"
    for_agents: ClassVar[bool] = False
    big: ClassVar[tuple[str, ...]] = ("tool_result",)
    action_id: Ident
    status: Ended = ActionStatus.COMPLETED
    tool_result: Big = ""
    summary: Text = ""
    conclusion_thought: Text = ""
    conclusion_thought_type: ThoughtKind = ThoughtType.INFERENCE
    idempotency_key: Key = ""


@writes(RecordActionCompletion)
def _end_action(unit: Unit, asked: RecordActionCompletion) -> RecordedAction:
    action = unit.reading.need(ACTIONS, asked.action_id, "action_id")
    if unit.made_before(ev.ActionEnded, asked.idempotency_key, action.workflow):
        return action
    if not asked.status.terminal:
        raise MemoryInputError("status", "status: an action ends completed, failed or skipped.")
    if action.status.terminal:
        raise MemoryRefused(f"Action {action.id} is {action.status} already: it ends only once.")
    unit.emit(
        ev.ActionEnded(
            workflow=action.workflow,
            action=action.id,
            status=asked.status,
            result=unit.content("tool_result", asked.tool_result),
            summary=asked.summary,
            key=asked.idempotency_key,
        )
    )
    memory = unit.reading.find_memory(action.memory)
    if memory is not None:
        told = [f"{asked.status}", asked.summary, asked.tool_result[:50]]
        changes = {
            "content": "\n".join([memory.content, *filter(None, told)])[:64_000],
            "importance": scoring.ended_importance(memory.importance, asked.status),
        }
        unit.emit(ev.MemoryChanged(workflow=action.workflow, memory=memory.id, changes=changes))
    if asked.conclusion_thought:
        chain = unit.reading.first_chain(action.workflow)
        think(unit, chain, asked.conclusion_thought_type, asked.conclusion_thought, action=action.id)
    return unit.reading.need(ACTIONS, action.id, "action_id")


@dataclass(frozen=True, slots=True)
class ActionDetails:
    """An action with what it needs and what needs it."""

    action: RecordedAction
    needs: tuple[Dependency, ...] = ()
    needed_by: tuple[Dependency, ...] = ()


class GetActionDetails(Request[tuple[ActionDetails, ...]]):
    """Actions by id."""

    verb: ClassVar[str] = "get_action_details"
    purpose: ClassVar[str] = "look at actions by id, with what they depend on"
    action_id: MaybeIdent = ""
    action_ids: tuple[Ident, ...] = Field(default=(), strict=False, max_length=100)
    include_dependencies: bool = False


@answers(GetActionDetails)
def _action_details(view: View, asked: GetActionDetails) -> tuple[ActionDetails, ...]:
    idents = tuple(one for one in (asked.action_id, *asked.action_ids) if one)
    if not idents:
        raise MemoryInputError("action_id", "action_id: name an action, or several in action_ids.")
    return tuple(
        _details(view.reading, view.reading.need(ACTIONS, ident, "action_id"), asked.include_dependencies)
        for ident in idents
    )


def _details(reading: Reading, action: RecordedAction, dependencies: bool) -> ActionDetails:
    if not dependencies:
        return ActionDetails(action)
    needs = reading.many(DEPENDENCIES, "t.source = ?", (action.id,))
    needed_by = reading.many(DEPENDENCIES, "t.target = ?", (action.id,))
    return ActionDetails(action, tuple(needs), tuple(needed_by))


class GetRecentActions(Request[tuple[RecordedAction, ...]]):
    """The newest actions of a workflow, newest first, with their results."""

    verb: ClassVar[str] = "get_recent_actions"
    purpose: ClassVar[str] = "look at a workflow's newest actions and what came of them"
    workflow_id: Ident
    limit: Limit = 5
    action_type: Deed | None = None
    status: Ended | None = None


@answers(GetRecentActions)
def _recent_actions(view: View, asked: GetRecentActions) -> tuple[RecordedAction, ...]:
    view.reading.need_workflow(asked.workflow_id)
    parts, values = ["t.workflow = ?"], [asked.workflow_id]
    for column, value in (("type", asked.action_type), ("status", asked.status)):
        if value is not None:
            parts.append(f"t.{column} = ?")
            values.append(str(value))
    condition = " and ".join(parts)
    return tuple(view.reading.many(ACTIONS, condition, values, order="t.sequence desc", limit=asked.limit))


class AddActionDependency(Request[Dependency]):
    """An action needs another one; saying so again changes nothing."""

    verb: ClassVar[str] = "add_action_dependency"
    purpose: ClassVar[str] = "say that an action needs another one first"
    source_action_id: Ident
    target_action_id: Ident
    dependency_type: Line = Field(default="requires", min_length=1)


@writes(AddActionDependency)
def _add_dependency(unit: Unit, asked: AddActionDependency) -> Dependency:
    source = unit.reading.need(ACTIONS, asked.source_action_id, "source_action_id")
    unit.reading.need(ACTIONS, asked.target_action_id, "target_action_id", source.workflow)
    known = unit.reading.find(
        DEPENDENCIES, asked.source_action_id, asked.target_action_id, asked.dependency_type
    )
    if known is not None:
        return known
    if _reaches(unit.reading, asked.target_action_id, asked.source_action_id):
        raise MemoryRefused(
            f"{asked.target_action_id} depends on {asked.source_action_id} already: "
            "two actions cannot wait for one another."
        )
    found = Dependency(asked.source_action_id, asked.target_action_id, asked.dependency_type, unit.now)
    unit.emit(ev.DependencyAdded(workflow=source.workflow, dependency=found))
    return found


def _reaches(reading: Reading, source: str, target: str) -> bool:
    """Whether an action is, or depends on, another one."""
    live = reading.live("d")
    rows = reading.rows(
        f"""with recursive reached(id) as (
            values(?) union select d.target from dependencies d join reached r on d.source = r.id and {live}
        ) select 1 from reached where id = ?""",
        source,
        target,
    )
    return bool(rows)


# ------------------------------------------------------------------ artifacts


class RecordArtifact(Request[Artifact]):
    """The work brought something forth; its text is kept byte for byte."""

    verb: ClassVar[str] = "record_artifact"
    purpose: ClassVar[str] = "keep something that the work has brought forth"
    big: ClassVar[tuple[str, ...]] = ("content",)
    workflow_id: Ident
    name: Line = Field(min_length=1)
    artifact_type: Ware
    action_id: MaybeIdent = ""
    description: Text = ""
    path: Line = ""
    content: Big = ""
    metadata: Json = Field(default_factory=dict)
    is_output: bool = False
    tags: Tags = ()
    idempotency_key: Key = ""


@writes(RecordArtifact)
def _record_artifact(unit: Unit, asked: RecordArtifact) -> Artifact:
    workflow = unit.reading.need_workflow(asked.workflow_id)
    made = unit.made_before(ev.ArtifactRecorded, asked.idempotency_key, workflow.id)
    if made:
        return unit.reading.need(ARTIFACTS, made, "idempotency_key")
    if asked.action_id:
        unit.reading.need(ACTIONS, asked.action_id, "action_id", workflow.id)
    told = f"Artifact {asked.name} ({asked.artifact_type})"
    memory = remember(
        unit,
        MemoryItem(
            id="",
            workflow=workflow.id,
            content=told + (f": {asked.description}" if asked.description else ""),
            type=MemoryType.ARTIFACT_CREATION,
            importance=6.0 if asked.is_output else 5.0,
            ttl=scoring.TTL_S[MemoryLevel.EPISODIC],
            description=told,
            tags=asked.tags,
            action=asked.action_id,
            artifact=unit.new_id("f", ahead=1),
        ),
    )
    artifact = Artifact(
        id=unit.new_id("f"),
        workflow=workflow.id,
        name=asked.name,
        type=asked.artifact_type,
        action=asked.action_id,
        description=asked.description,
        path=asked.path,
        content=unit.content("content", asked.content) if asked.content else None,
        metadata=asked.metadata,
        is_output=asked.is_output,
        tags=asked.tags,
        memory=memory.id,
        created_at=unit.now,
    )
    unit.emit(ev.ArtifactRecorded(artifact=artifact, key=asked.idempotency_key))
    return artifact


class GetArtifacts(Request[tuple[Artifact, ...]]):
    """Artifacts of a workflow, newest first."""

    verb: ClassVar[str] = "get_artifacts"
    purpose: ClassVar[str] = "list what a workflow has brought forth, newest first"
    workflow_id: Ident
    artifact_type: Ware | None = None
    tag: Line = ""
    is_output: bool | None = None
    limit: Limit = 10


@answers(GetArtifacts)
def _get_artifacts(view: View, asked: GetArtifacts) -> tuple[Artifact, ...]:
    view.reading.need_workflow(asked.workflow_id)
    parts, values = ["t.workflow = ?"], [asked.workflow_id]
    if asked.artifact_type is not None:
        parts.append("t.type = ?")
        values.append(str(asked.artifact_type))
    if asked.is_output is not None:
        parts.append(f"t.is_output = {int(asked.is_output)}")
    if asked.tag:
        live = view.reading.live("g")
        parts.append(f"exists(select 1 from taggings g where g.owner = t.id and g.tag = ? and {live})")
        values.append(asked.tag.strip().lower())
    condition = " and ".join(parts)
    return tuple(view.reading.many(ARTIFACTS, condition, values, order="t.row desc", limit=asked.limit))


class GetArtifact(Request[Artifact]):
    """An artifact by id."""

    verb: ClassVar[str] = "get_artifact_by_id"
    purpose: ClassVar[str] = "look at one artifact"
    artifact_id: Ident


@answers(GetArtifact)
def _get_artifact(view: View, asked: GetArtifact) -> Artifact:
    return view.reading.need(ARTIFACTS, asked.artifact_id, "artifact_id")
