"""Which workflow of memory a goal has."""

from __future__ import annotations

from engine.memory import Memory
from engine.memory.workflows import ListWorkflows

PAGE = 500


async def workflow_of(memory: Memory, agent: str, goal: str) -> str:
    """Id of the newest workflow that was made for a goal of an agent; empty when there is none.

    Raises:
        MemoryFault: memory refused.
    """
    offset = 0
    while True:
        page = await memory.do(ListWorkflows(limit=PAGE, offset=offset))
        for one in page:
            if (one.metadata.get("agent"), one.metadata.get("goal")) == (agent, goal):
                return one.id
        if len(page) < PAGE:
            return ""
        offset += PAGE
