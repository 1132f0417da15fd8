"""The agents of a workspace that no engine has open, read from its journal: nothing is recorded."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from engine.core.agents import RUN_TYPES, RunState
from engine.core.journal import JournalError, of_agent
from engine.core.ports import Clock, SystemClock
from engine.core.reasons import Reason
from engine.core.state import AgentState
from engine.core.store.opening import open_journal
from engine.core.store.places import is_untouched
from engine.core.store.port import DATA_DIRECTORY, DATABASE
from engine.core.store.stored import StoredJournal
from engine.core.streams import ended_agents, restore_all
from engine.core.trust import FolderTrust
from engine.inquiry.waiting import Waiting, waiting_now
from engine.value import dataclass, replace


def needs_opening(state: AgentState) -> bool:
    """Whether an opening may change how an agent is: it settles something, or may not resume it."""
    if state.agent_type in RUN_TYPES or state.reasons or state.config.replans:
        return True
    runs = state.run is RunState.RUNNING and state.has_work
    acts = state.action is not None and (state.action.started or not state.action.step)
    held = state.held_by is not None or state.rewinding is not None
    return runs or acts or held or bool(state.running_jobs or state.meta.running)


def as_resumed(state: AgentState) -> AgentState:
    """An agent at rest as an opening has it: paused."""
    if state.run is not RunState.RUNNING:
        return state
    return replace(state, run=RunState.PAUSED, run_reason=Reason("run.reopened"))


@dataclass(frozen=True, slots=True)
class ClosedWorkspace:
    """How its agents are; see `WorkspaceEngine` for each member."""

    store: StoredJournal
    states: dict[str, AgentState]

    @property
    def agents(self) -> tuple[str, ...]:
        """Ids of the agents that exist."""
        return tuple(self.states)

    async def view(self, agent_id: str) -> AgentState:
        """The state of an agent, not to be changed."""
        return self.states[agent_id]

    async def waiting(self, agent_id: str) -> Waiting:
        """What an agent waits for."""
        return await waiting_now(self.store, self.states[agent_id])

    def fault(self, _agent: str) -> str:
        """Nothing: an agent that may not be resumed needs an opening."""
        return ""


@asynccontextmanager
async def recorded(workspace: Path, clock: Clock | None = None) -> AsyncIterator[StoredJournal]:
    """The journal of a workspace to be read, also while an engine has it open.

    Raises:
        JournalError: there is none, or it cannot be read.
    """
    store = await open_journal(workspace, clock=clock or SystemClock(), read_only=True)
    try:
        yield store
    finally:
        await store.close()


@asynccontextmanager
async def closed_workspace(workspace: Path, home: Path) -> AsyncIterator[ClosedWorkspace | None]:
    """A workspace to be read; None where only an engine that opens it can say how its agents are.

    So it is where the folder is not trusted, where the journal is missing or was not closed in good order,
    and where an opening settles something or may fail to resume an agent.

    Args:
        workspace: its directory.
        home: the user's own directory.
    """
    trust = await asyncio.to_thread(FolderTrust, workspace, home)
    path = workspace / DATA_DIRECTORY / DATABASE
    if trust.restricted or trust.foreign or await asyncio.to_thread(is_untouched, path) is not True:
        yield None
        return
    try:
        store = await open_journal(workspace, clock=SystemClock(), read_only=True)
    except JournalError:  # which the engine puts right, or says better
        yield None
        return
    try:
        streams = {name: head for name, head in (await store.streams()).items() if of_agent(name)}
        over = await ended_agents(store, streams)
        names = [name for name in streams if name not in over]
        states = [state async for _, state, _, _ in restore_all(store, names)]
        states = [state for state in states if not (state.deleted or state.handed_back)]
        resumed = {state.agent_id: as_resumed(state) for state in states}
        yield None if any(map(needs_opening, states)) else ClosedWorkspace(store, resumed)
    finally:
        await store.close()
