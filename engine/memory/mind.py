"""What a workflow has in mind: at most twenty memories, one of them in focus.

Source: spec master-loop-and-memory §1.6, §1.8, §1.9 U4 and U21: each change is one unit of work.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

from pydantic import Field

from engine.domain.memory import CognitiveState, MemoryItem, WorkingStrategy
from engine.journal import memory_events as ev
from engine.memory import scoring
from engine.memory.errors import MemoryInputError, MemoryRefused
from engine.memory.reading import Reading
from engine.memory.requests import (
    Ident,
    Idents,
    Line,
    MaybeIdent,
    Request,
    Strategy,
    View,
    answers,
    writes,
)
from engine.memory.tables import ACTIONS, STATES
from engine.memory.writing import Unit

Size = Annotated[int, Field(ge=1, le=scoring.CAPACITY)]


@dataclass(frozen=True, slots=True)
class WorkingItem:
    """A memory in mind."""

    memory: MemoryItem
    relevance: float
    """0 to 10, now."""
    focal: bool = False
    pinned: bool = False


@dataclass(frozen=True, slots=True)
class WorkingMemory:
    """What a workflow has in mind, in the order in which it came."""

    state: CognitiveState
    items: tuple[WorkingItem, ...] = ()


class GetWorkingMemory(Request[WorkingMemory]):
    """What a workflow has in mind."""

    verb: ClassVar[str] = "get_working_memory"
    purpose: ClassVar[str] = "see what is in mind, and what is in focus"
    context_id: Ident
    """The workflow."""


@answers(GetWorkingMemory)
def _get(view: View, asked: GetWorkingMemory) -> WorkingMemory:
    view.reading.need_workflow(asked.context_id)
    return working_memory(view.reading, asked.context_id)


def working_memory(reading: Reading, workflow: str) -> WorkingMemory:
    """What a workflow has in mind; memories whose time is over are passed over."""
    state = reading.state(workflow)
    items = tuple(
        WorkingItem(
            one,
            scoring.relevance(one, reading.now),
            one.id == state.focal,
            one.id in state.pinned,
        )
        for one in reading.all_memories(state.working)
    )
    return WorkingMemory(state, items)


class FocusMemory(Request[WorkingMemory]):
    """A memory comes into focus, and into mind if it is not there."""

    verb: ClassVar[str] = "focus_memory"
    purpose: ClassVar[str] = "bring a memory into focus"
    memory_id: Ident
    context_id: Ident
    """The workflow."""
    add_to_working: bool = True


@writes(FocusMemory)
def _focus(unit: Unit, asked: FocusMemory) -> WorkingMemory:
    workflow = unit.reading.need_workflow(asked.context_id).id
    memory = unit.reading.need_memory(asked.memory_id, "memory_id", workflow)
    state = _present(unit, workflow)
    if memory.id not in state.working:
        if not asked.add_to_working:
            raise MemoryRefused(f"{memory.id} is not in mind: let it be added, or focus one that is.")
        state = _with_room(unit, state)
        state = replace(state, working=(*state.working, memory.id))
    return _set(unit, replace(state, focal=memory.id), "focus")


def _present(unit: Unit, workflow: str) -> CognitiveState:
    """What is in mind, without memories whose time is over."""
    state = unit.reading.state(workflow)
    there = {one.id for one in unit.reading.all_memories(state.working)}
    return replace(
        state,
        working=tuple(one for one in state.working if one in there),
        pinned=tuple(one for one in state.pinned if one in there),
        focal=state.focal if state.focal in there else "",
    )


def _with_room(unit: Unit, state: CognitiveState) -> CognitiveState:
    """The state after one memory left, if mind is full."""
    if len(state.working) < scoring.CAPACITY:
        return state
    items = unit.reading.all_memories(state.working)
    leaves = scoring.to_evict(items, {*state.pinned, state.focal}, unit.now)
    if not leaves:
        raise MemoryRefused(f"All {scoring.CAPACITY} memories in mind are pinned: unpin one first.")
    return replace(state, working=tuple(one for one in state.working if one != leaves))


def _set(unit: Unit, state: CognitiveState, reason: str) -> WorkingMemory:
    state = replace(state, updated_at=unit.now)
    if replace(unit.reading.state(state.workflow), updated_at=unit.now) != state:
        unit.emit(ev.MindSet(state=state, reason=reason))
    return working_memory(unit.reading, state.workflow)


class ChangeWorkingMemory(Request[WorkingMemory]):
    """Memories are added to mind, leave it, are pinned, or no longer so."""

    verb: ClassVar[str] = "change_working_memory"
    for_agents: ClassVar[bool] = False
    context_id: Ident
    add: Idents = ()
    evict: Idents = ()
    pin: Idents = ()
    """A pinned memory is added if it is not in mind."""
    unpin: Idents = ()


@writes(ChangeWorkingMemory)
def _change(unit: Unit, asked: ChangeWorkingMemory) -> WorkingMemory:
    workflow = unit.reading.need_workflow(asked.context_id).id
    for parameter, idents in (("add", asked.add), ("pin", asked.pin)):
        for ident in idents:
            unit.reading.need_memory(ident, parameter, workflow)
    state = _present(unit, workflow)
    absent = [one for one in (*asked.evict, *asked.unpin) if one not in state.working]
    if absent:
        raise MemoryInputError("evict", f"{absent[0]} is not in mind of {workflow}.")
    gone = {*asked.evict}
    pinned = tuple(one for one in state.pinned if one not in {*gone, *asked.unpin})
    state = replace(
        state,
        working=tuple(one for one in state.working if one not in gone),
        pinned=pinned,
        focal="" if state.focal in gone else state.focal,
    )
    for ident in dict.fromkeys((*asked.add, *asked.pin)):
        if ident not in state.working:
            state = _with_room(unit, state)
            state = replace(state, working=(*state.working, ident))
    state = replace(state, pinned=tuple(dict.fromkeys((*state.pinned, *asked.pin))))
    return _set(unit, state, "change")


class OptimizeWorkingMemory(Request[WorkingMemory]):
    """Mind is cut down to a size; what is in focus or pinned stays."""

    verb: ClassVar[str] = "optimize_working_memory"
    for_agents: ClassVar[bool] = False
    context_id: Ident
    target_size: Size = scoring.CAPACITY
    strategy: Strategy = WorkingStrategy.BALANCED


@writes(OptimizeWorkingMemory)
def _optimize(unit: Unit, asked: OptimizeWorkingMemory) -> WorkingMemory:
    unit.reading.need_workflow(asked.context_id)
    state = _present(unit, asked.context_id)
    items = unit.reading.all_memories(state.working)
    kept = {*state.pinned, state.focal}
    stays = scoring.optimized(items, asked.target_size, asked.strategy, kept, unit.now)
    return _set(unit, replace(state, working=stays), "optimize")


class AutoUpdateFocus(Request[WorkingMemory]):
    """The memory in mind that draws it most comes into focus."""

    verb: ClassVar[str] = "auto_update_focus"
    for_agents: ClassVar[bool] = False
    context_id: Ident
    recent_actions_count: Annotated[int, Field(ge=0, le=50)] = 3


@writes(AutoUpdateFocus)
def _auto_focus(unit: Unit, asked: AutoUpdateFocus) -> WorkingMemory:
    reading = unit.reading
    reading.need_workflow(asked.context_id)
    state = _present(unit, asked.context_id)
    recent = reading.many(
        ACTIONS,
        "t.workflow = ?",
        (asked.context_id,),
        order="t.sequence desc",
        limit=asked.recent_actions_count,
    )
    items = reading.all_memories(state.working)
    names = {one.id for one in recent}
    best = max(items, key=lambda one: scoring.focus_score(one, unit.now, names), default=None)
    return _set(unit, replace(state, focal=best.id if best else ""), "auto focus")


class SaveCognitiveState(Request[CognitiveState]):
    """What a workflow has in mind is set as a whole."""

    verb: ClassVar[str] = "save_cognitive_state"
    for_agents: ClassVar[bool] = False
    workflow_id: Ident
    title: Line = ""
    working_memory_ids: Annotated[tuple[Ident, ...], Field(strict=False, max_length=scoring.CAPACITY)] = ()
    focus_area_ids: Idents = ()
    focal_memory_id: MaybeIdent = ""


@writes(SaveCognitiveState)
def _save(unit: Unit, asked: SaveCognitiveState) -> CognitiveState:
    workflow = unit.reading.need_workflow(asked.workflow_id).id
    working = tuple(dict.fromkeys(asked.working_memory_ids))
    for parameter, idents in (("working_memory_ids", working), ("focus_area_ids", asked.focus_area_ids)):
        for ident in idents:
            unit.reading.need_memory(ident, parameter, workflow)
    if asked.focal_memory_id and asked.focal_memory_id not in working:
        raise MemoryInputError("focal_memory_id", f"focal_memory_id: {asked.focal_memory_id} is not in mind.")
    # The first focus area that is in mind, else the first in mind (§1.8).
    focal = asked.focal_memory_id or next(
        (one for one in (*asked.focus_area_ids, *working) if one in working), ""
    )
    old = unit.reading.state(workflow)
    pinned = tuple(one for one in old.pinned if one in working)
    state = CognitiveState(workflow, working, focal, pinned, asked.title, asked.focus_area_ids)
    return _set(unit, state, "save").state


class LoadCognitiveState(Request[CognitiveState]):
    """What a workflow has in mind, as it was set."""

    verb: ClassVar[str] = "load_cognitive_state"
    for_agents: ClassVar[bool] = False
    workflow_id: Ident


@answers(LoadCognitiveState)
def _load(view: View, asked: LoadCognitiveState) -> CognitiveState:
    view.reading.need_workflow(asked.workflow_id)
    return view.reading.find(STATES, asked.workflow_id) or CognitiveState(asked.workflow_id)
