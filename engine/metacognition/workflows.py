"""Which workflow of memory a goal has."""

from __future__ import annotations

from engine.memory import Memory


async def workflow_of(memory: Memory, agent: str, goal: str) -> str:
    """Id of the workflow that a root goal of an agent's has in memory; empty when there is none.

    Raises:
        MemoryFault: memory refused.
    """
    from engine.memory.keeping import FindWorkflow  # imported with the rest of memory, not before

    return await memory.do(FindWorkflow(agent=agent, goal=goal))
