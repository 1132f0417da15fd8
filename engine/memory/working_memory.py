"""Requests about a workflow's working memory: at most twenty memories, one of them in focus.

Each change is one unit of work.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from engine.core import memory_events as ev
from engine.core.memory import CognitiveState, MemoryItem
from engine.memory import requests as rq
from engine.memory import scoring
from engine.memory.errors import MemoryInputError, MemoryRefused
from engine.memory.fold import without
from engine.memory.requests import Request, View
from engine.memory.tables import ACTIONS, Reading
from engine.memory.writer import Unit
from engine.value import dataclass, replace

Size = Annotated[int, Field(ge=1, le=scoring.CAPACITY)]


@dataclass(frozen=True, slots=True)
class WorkingItem:
    """A memory in working memory."""

    memory: MemoryItem
    relevance: float
    """0 to 10, now."""
    focal: bool = False
    pinned: bool = False


@dataclass(frozen=True, slots=True)
class WorkingMemory:
    """The working memory of a workflow, in the order in which memories were added."""

    state: CognitiveState
    items: tuple[WorkingItem, ...] = ()


class GetWorkingMemory(Request[WorkingMemory]):
    """The working memory of a workflow."""

    context_id: rq.Ident
    """The workflow."""

    def answer(self, view: View) -> WorkingMemory:
        view.reading.need_workflow(self.context_id)
        return working_memory(view.reading, self.context_id)


def working_memory(reading: Reading, workflow: str) -> WorkingMemory:
    """The working memory of a workflow, without memories that have expired."""
    state = reading.state(workflow)
    items = tuple(
        WorkingItem(
            memory,
            scoring.relevance(memory, reading.now),
            memory.id == state.focal,
            memory.id in state.pinned,
        )
        for memory in reading.all_memories(state.working)
    )
    return WorkingMemory(state, items)


class FocusMemory(Request[WorkingMemory]):
    """A memory comes into focus, and into working memory if it is not there."""

    memory_id: rq.Ident
    context_id: rq.Ident
    """The workflow."""
    add_to_working: bool = True

    def write(self, unit: Unit) -> WorkingMemory:
        workflow = unit.reading.need_workflow(self.context_id).id
        memory = unit.reading.need_memory(self.memory_id, "memory_id", workflow)
        state = _present(unit, workflow)
        if memory.id not in state.working:
            if not self.add_to_working:
                raise MemoryRefused(f"{memory.id} is not in mind: let it be added, or focus one that is.")
            state = _with_room(unit, state)
            state = replace(state, working=(*state.working, memory.id))
        return _set(unit, replace(state, focal=memory.id), "focus")


def _present(unit: Unit, workflow: str) -> CognitiveState:
    """The working memory, without memories that have expired."""
    state = unit.reading.state(workflow)
    there = {memory.id for memory in unit.reading.all_memories(state.working)}
    return without(state, {*state.working, *state.pinned, state.focal} - there)


def _with_room(unit: Unit, state: CognitiveState) -> CognitiveState:
    """The state after one memory was evicted, if working memory is full."""
    if len(state.working) < scoring.CAPACITY:
        return state
    items = unit.reading.all_memories(state.working)
    evicted = scoring.to_evict(items, {*state.pinned, state.focal}, unit.now)
    if not evicted:
        raise MemoryRefused(f"All {scoring.CAPACITY} memories in mind are pinned: unpin one first.")
    return replace(state, working=tuple(ident for ident in state.working if ident != evicted))


def _set(unit: Unit, state: CognitiveState, reason: str) -> WorkingMemory:
    state = replace(state, updated_at=unit.now)
    if replace(unit.reading.state(state.workflow), updated_at=unit.now) != state:
        unit.emit(ev.MindSet(state=state, reason=reason))
    return working_memory(unit.reading, state.workflow)


class ChangeWorkingMemory(Request[WorkingMemory]):
    """Memories are added to working memory, removed from it, pinned or unpinned."""

    context_id: rq.Ident
    add: rq.Idents = ()
    evict: rq.Idents = ()
    pin: rq.Idents = ()
    """A pinned memory is added if it is not there."""
    unpin: rq.Idents = ()

    def write(self, unit: Unit) -> WorkingMemory:
        workflow = unit.reading.need_workflow(self.context_id).id
        for parameter, idents in (("add", self.add), ("pin", self.pin)):
            for ident in idents:
                unit.reading.need_memory(ident, parameter, workflow)
        state = _present(unit, workflow)
        absent = [ident for ident in (*self.evict, *self.unpin) if ident not in state.working]
        if absent:
            raise MemoryInputError("evict", f"{absent[0]} is not in mind of {workflow}.")
        state = without(state, self.evict)
        state = replace(state, pinned=tuple(ident for ident in state.pinned if ident not in self.unpin))
        for ident in dict.fromkeys((*self.add, *self.pin)):
            if ident not in state.working:
                state = _with_room(unit, state)
                state = replace(state, working=(*state.working, ident))
        state = replace(state, pinned=tuple(dict.fromkeys((*state.pinned, *self.pin))))
        return _set(unit, state, "change")


class OptimizeWorkingMemory(Request[WorkingMemory]):
    """Working memory is cut to a size; what is in focus or pinned stays."""

    context_id: rq.Ident
    target_size: Size = scoring.CAPACITY

    def write(self, unit: Unit) -> WorkingMemory:
        unit.reading.need_workflow(self.context_id)
        state = _present(unit, self.context_id)
        items = unit.reading.all_memories(state.working)
        kept = {*state.pinned, state.focal}
        stays = scoring.optimized(items, self.target_size, kept, unit.now)
        return _set(unit, replace(state, working=stays), "optimize")


class AutoUpdateFocus(Request[WorkingMemory]):
    """The memory that draws the focus most comes into focus."""

    context_id: rq.Ident
    recent_actions_count: Annotated[int, Field(ge=0, le=50)] = 3

    def write(self, unit: Unit) -> WorkingMemory:
        reading = unit.reading
        reading.need_workflow(self.context_id)
        state = _present(unit, self.context_id)
        recent = reading.many(
            ACTIONS,
            "t.workflow = ?",
            (self.context_id,),
            order="t.sequence desc",
            limit=self.recent_actions_count,
        )
        items = reading.all_memories(state.working)
        names = {action.id for action in recent}
        best = max(items, key=lambda memory: scoring.focus_score(memory, unit.now, names), default=None)
        return _set(unit, replace(state, focal=best.id if best else ""), "auto focus")
