"""Waiting for an agent without a screen: until something holds of it, or never will."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from engine.domain.state import AgentState, RunState
from engine.engine import Engine


def at_rest(state: AgentState) -> bool:
    """True when nothing runs, nothing is about to, and the agent can go no further by itself."""
    if state.busy or state.requests:
        return False
    if state.approvals.question is not None or state.approvals.held:
        return True
    if state.grants:
        return False
    return state.run is not RunState.RUNNING or state.intervention is not None or not state.has_work


class AgentFaultError(Exception):
    """The agent that was waited for ended by a fault of the program; the text says by what."""


async def wait_until(engine: Engine, agent: str, holds: Callable[[AgentState], bool]) -> AgentState:
    """The agent's state as soon as something holds of it.

    Raises:
        AgentFaultError: it never will.
    """
    fault = asyncio.create_task(engine.faulted(agent))
    watch = asyncio.create_task(_until(engine, agent, holds))
    try:
        await asyncio.wait({watch, fault}, return_when=asyncio.FIRST_COMPLETED)
        if not watch.done():
            raise AgentFaultError(fault.result() or f"agent {agent} is gone")
        return watch.result()
    finally:
        for task in (watch, fault):
            task.cancel()
        await asyncio.gather(watch, fault, return_exceptions=True)


async def _until(engine: Engine, agent: str, holds: Callable[[AgentState], bool]) -> AgentState:
    since = await engine.head()
    state = await engine.view(agent)
    if holds(state):
        return state
    async for _event in engine.events(since, stream=agent):
        state = await engine.view(agent)
        if holds(state):
            break
    return state
