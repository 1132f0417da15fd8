"""Writes the notes about an agent's events to memory, each one once, as parts of a unit of work.

What a note makes has a key of the agent and its subject (`@pilot/g1`, `@pilot/a12`), by which it is found
again: a goal's workflow, an action's record. Keys that agents choose never begin so.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Sequence
from typing import Any

from engine.core import events
from engine.core import memory_events as ev
from engine.core.goals import GoalStatus
from engine.core.journal import Event, canonical
from engine.core.memory import (
    ActionStatus,
    ActionType,
    ArtifactType,
    RecordedAction,
    ThoughtType,
    Workflow,
    WorkflowStatus,
)
from engine.memory import notes as noting
from engine.memory import requests as rq
from engine.memory.commands import OWNER_PREFIX, RECORDED_PREFIX, owner_tag
from engine.memory.requests import JSON_BYTES, Request, View
from engine.memory.tables import ACTIONS, WORKFLOWS, Reading
from engine.memory.workflows import (
    CreateWorkflow,
    RecordActionCompletion,
    RecordActionStart,
    RecordArtifact,
    UpdateWorkflowStatus,
    open_below,
)
from engine.memory.writer import Unit, think

TITLE_CHARACTERS = 120
CUT = 2_000
"""Characters that are kept of an argument that is longer; the event has it whole."""
TEXT_CHARACTERS = 64_000

_KINDS = tuple(
    made.kind
    for made in (
        *(ev.WorkflowCreated, ev.WorkflowChanged, ev.ThoughtAdded),
        *(ev.ActionRecorded, ev.ActionEnded, ev.ArtifactRecorded),
    )
)
"""Events that notes make under keys."""
_ENDINGS = {
    GoalStatus.ACHIEVED: WorkflowStatus.COMPLETED,
    GoalStatus.FAILED: WorkflowStatus.FAILED,
    GoalStatus.DROPPED: WorkflowStatus.ABANDONED,
}
_BY_ENDING = {
    **dict.fromkeys(
        (".py", ".js", ".ts", ".sh", ".c", ".h", ".rs", ".go", ".java", ".asl"), ArtifactType.CODE
    ),
    **dict.fromkeys((".png", ".jpg", ".jpeg", ".gif", ".svg"), ArtifactType.IMAGE),
    **dict.fromkeys((".csv", ".tsv"), ArtifactType.TABLE),
    **dict.fromkeys((".md", ".txt", ".rst"), ArtifactType.TEXT),
    ".json": ArtifactType.JSON,
}


def write_notes(unit: Unit, noted: Sequence[noting.Noted]) -> list[str]:
    """Write notes, each on behalf of its event; says of which ones nothing could be kept."""
    faults = []
    with unit.reading.expecting(_KINDS, (key for event, note, _ in noted for key in _keys(event, note))):
        for event, note, contents in noted:

            def write(part: Unit, event: Event = event, note: noting.Note = note) -> None:
                write_note(part, event.stream, event.ref, note)

            error = unit.part(
                write, at=event.at, actor=event.actor, causes=(event.ref,), tick=event.tick, contents=contents
            )
            if error is not None:
                faults.append(f"{event.ref} ({event.kind}) could not be kept in memory: {error}")
    return faults


def _keys(event: Event, note: noting.Note) -> Iterator[str]:
    """The keys that are looked for when a note is written."""
    about = note.start if isinstance(note, noting.ActionEndNote) else note
    yield _key(event.ref)
    for subject in ("", *(getattr(about, name, None) or "" for name in ("goal", "parent"))):
        yield _key(event.stream, subject)
    if isinstance(about, noting.ActionStartNote):
        action = _key(event.stream, about.action)
        yield from (action, f"{action}/end", f"{action}/file")


def write_note(unit: Unit, agent: str, ref: str, note: noting.Note) -> None:
    """Write what was noted of an agent's event; what was written already is left as it is.

    Args:
        unit: its time, actor and cause are the event's.
        agent: the agent's id.
        ref: the event's reference.
        note: what was noted.

    Raises:
        MemoryFault: it cannot be written.
    """
    match note:
        case events.GoalAdopted():
            _adopted(unit, agent, note)
        case events.GoalEnded():
            _goal_ended(unit, agent, ref, note)
        case noting.ThoughtNote():
            workflow = _open_workflow(unit, agent, note.goal, note.workflow)
            _think(unit, workflow, ThoughtType(note.kind), note.text, _key(ref))
        case noting.ActionStartNote():
            _started(unit, agent, note)
        case noting.ActionEndNote():
            _ended(unit, agent, note)
        case events.AgentDeleted():
            for open_workflow in workflows_of(unit.reading, agent):
                _end(unit, open_workflow.id, WorkflowStatus.ABANDONED, "the agent was deleted", _key(ref))


# ------------------------------------------------------------------ goals


def workflow_of(reading: Reading, agent: str, goal: str) -> str:
    """Id of the workflow that a goal, or the root above it, began; empty when there is none."""
    key = _key(agent, goal)
    made = reading.made(ev.WorkflowCreated.kind, key) or reading.made(ev.ThoughtAdded.kind, key)
    return made[0][0] if made else ""


def workflows_of(reading: Reading, agent: str) -> list[Workflow]:
    """The workflows that an agent's goals began and that are not over, oldest first."""
    low, high = _key(agent, ""), _key(agent, "\U0010ffff")
    until = "" if reading.as_of is None else f"and number <= {reading.as_of}"
    rows = reading.rows(
        f"""select subject from operations where kind = ? and key between ? and ? and key <> ''
        {until} order by number""",
        ev.WorkflowCreated.kind,
        low,
        high,
    )
    workflows = (reading.find(WORKFLOWS, row[0]) for row in rows)
    return [workflow for workflow in workflows if workflow is not None and not workflow.status.terminal]


class FindWorkflow(Request[str]):
    """The workflow of an agent's goal; empty when there is none."""

    agent: rq.Ident
    goal: rq.MaybeIdent = ""
    """Without one, the workflow of what is done outside of goals."""

    def answer(self, view: View) -> str:
        return workflow_of(view.reading, self.agent, self.goal)


class FindOwners(Request[tuple[tuple[str, tuple[str, ...]], ...]]):
    """The workflows that some things belong to, each with the agents whose it is."""

    idents: rq.Idents
    """Of workflows, memories and actions; what there is not is passed over."""

    def answer(self, view: View) -> tuple[tuple[str, tuple[str, ...]], ...]:
        found = [_workflow_of_thing(view.reading, ident) for ident in self.idents]
        tags = {workflow.id: workflow.tags for workflow in found if workflow is not None}
        return tuple(
            (ident, tuple(tag.removeprefix(OWNER_PREFIX) for tag in own if tag.startswith(OWNER_PREFIX)))
            for ident, own in tags.items()
        )


def _workflow_of_thing(reading: Reading, ident: str) -> Workflow | None:
    memory, action = reading.find_memory(ident), reading.find(ACTIONS, ident)
    workflow = memory.workflow if memory else action.workflow if action else ident
    return reading.find(WORKFLOWS, workflow)


def _adopted(unit: Unit, agent: str, note: events.GoalAdopted) -> None:
    text = _plain(note.text)
    above = workflow_of(unit.reading, agent, note.parent) if note.parent else ""
    if above:
        if not workflow_of(unit.reading, agent, note.goal):
            _think(unit, above, ThoughtType.GOAL, text, _key(agent, note.goal))
        return
    _create(unit, agent, note.goal, text)


def _create(unit: Unit, agent: str, goal: str, text: str) -> str:
    first = next(iter(text.strip().splitlines()), "") or "work"
    made = CreateWorkflow(
        title=first if len(first) <= TITLE_CHARACTERS else f"{first[: TITLE_CHARACTERS - 1]}…",
        goal=text if goal else "",
        description="" if goal else "what was done outside of any goal",
        tags=(owner_tag(agent),),
        metadata={"agent": agent, "goal": goal},
        idempotency_key=_key(agent, goal),
    ).write(unit)
    return made.id


def _goal_ended(unit: Unit, agent: str, ref: str, note: events.GoalEnded) -> None:
    workflow = workflow_of(unit.reading, agent, note.goal)
    if not workflow:
        return
    reason = f": {_plain(note.reason)}" if note.reason else ""
    if unit.reading.need_workflow(workflow).metadata.get("goal") == note.goal:
        _end(unit, workflow, _ENDINGS[note.status], f"Goal {note.status}{reason}", _key(ref))
    elif not unit.made_before(ev.ThoughtAdded, _key(ref), workflow):
        _think(
            unit, workflow, ThoughtType.INFERENCE, f"Sub-goal {note.goal} {note.status}{reason}", _key(ref)
        )


def _end(unit: Unit, workflow: str, status: WorkflowStatus, why: str, key: str) -> None:
    """End a workflow, and before it what agents have begun below it."""
    if unit.reading.need_workflow(workflow).status.terminal:
        return
    for child in open_below(unit.reading, workflow):
        _end(unit, child.id, status, f"with {workflow}: {why}"[:TEXT_CHARACTERS], key)
    UpdateWorkflowStatus(
        workflow_id=workflow, status=status, completion_message=why[:TEXT_CHARACTERS], idempotency_key=key
    ).write(unit)


def _open_workflow(unit: Unit, agent: str, goal: str, begun: str = "") -> str:
    """Where something belongs: to the workflow begun for it, else to its root goal's, else to the agent's."""
    if begun and not unit.reading.need_workflow(begun).status.terminal:
        return begun
    workflow = workflow_of(unit.reading, agent, goal)
    if workflow and not unit.reading.need_workflow(workflow).status.terminal:
        return workflow
    return workflow_of(unit.reading, agent, "") or _create(unit, agent, "", f"{agent}: outside of goals")


# ------------------------------------------------------------------ actions


def _started(unit: Unit, agent: str, start: noting.ActionStartNote) -> RecordedAction:
    if made := unit.made_before(ev.ActionRecorded, _key(agent, start.action)):
        return unit.reading.need(ACTIONS, made, "action_id")
    name = f"{start.tool}.{start.command}"
    started: RecordedAction = RecordActionStart(
        workflow_id=_open_workflow(unit, agent, start.goal, start.workflow),
        action_type=ActionType.TOOL_USE,
        tool_name=_plain(name)[:500],
        title=_plain(name)[:500],
        reasoning=_plain(start.reasoning)[:TEXT_CHARACTERS],
        tool_args=_small(start.args),
        idempotency_key=_key(agent, start.action),
    ).write(unit)
    return started


def _ended(unit: Unit, agent: str, note: noting.ActionEndNote) -> None:
    # What was refused never started; it was tried all the same.
    action = _started(unit, agent, note.start)
    if action.status.terminal:
        return
    RecordActionCompletion(
        action_id=action.id,
        status=ActionStatus(note.status),
        tool_result=_plain(canonical(note.result)) if note.result is not None else "",
        summary=_plain(note.summary)[:TEXT_CHARACTERS],
        idempotency_key=f"{_key(agent, note.start.action)}/end",
    ).write(unit)
    if note.file is not None:
        path = _plain(note.file.path)
        ending = posixpath.splitext(path)[1].lower()
        RecordArtifact(
            workflow_id=action.workflow,
            name=posixpath.basename(path)[-500:] or path[-500:],
            artifact_type=_BY_ENDING.get(ending, ArtifactType.FILE),
            action_id=action.id,
            description=_plain(note.summary)[:TEXT_CHARACTERS],
            path=path[-500:],
            content=_plain(note.file.content),
            idempotency_key=f"{_key(agent, note.start.action)}/file",
        ).write(unit)


# ------------------------------------------------------------------ inside


def _key(*parts: str) -> str:
    return RECORDED_PREFIX + "/".join(parts)


def _think(unit: Unit, workflow: str, kind: ThoughtType, text: str, key: str) -> None:
    if unit.made_before(ev.ThoughtAdded, key):
        return
    chain = unit.reading.first_chain(workflow)
    think(unit, chain, kind, _plain(text)[:TEXT_CHARACTERS] or "…", key=key)


def _plain(text: str) -> str:
    """The text as UTF-8 can hold it; file names may have bytes that are no text."""
    return text.encode("utf-8", "backslashreplace").decode()


def _small(args: dict[str, Any]) -> dict[str, Any]:
    """Arguments with long texts cut, so that they fit."""
    short = {name: _cut(value) for name, value in args.items()}
    whole = canonical(short)
    return short if len(whole.encode()) <= JSON_BYTES else {"arguments": f"{whole[:CUT]}…"}


def _cut(value: Any) -> Any:
    if isinstance(value, str) and len(value) > CUT:
        return f"{value[:CUT]}… ({len(value)} characters)"
    return value
