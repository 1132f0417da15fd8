"""What memory has to say to a thinker before it is asked: gathered, made to fit, put between fences.

It is read while the thinker is asked and comes into the prompt alone, which is recorded with the call, so a
replay needs none of it. Memory that cannot answer leaves the prompt without it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from engine.domain.ports import Clock
from engine.domain.state import AgentState
from engine.memory.errors import MemoryFault
from engine.models import Text

if TYPE_CHECKING:
    from engine.memory import Memory
    from engine.memory.compression import Summariser
    from engine.memory.package import ContextPackage

Recall: TypeAlias = Callable[[], Awaitable[tuple[Text, ...]]]
"""Gives blocks for the next prompt."""
WorkflowOf: TypeAlias = Callable[["Memory", str, str], Awaitable[str]]
"""Finds the workflow of an agent's root goal; empty where it has none."""

BUDGET_TOKENS = 6_000
"""What memory may take of a prompt: about the seed's 25,000 characters (spec master-loop §3.4)."""


KEPT_WITHIN_S = 2.0
"""How long a prompt waits for memory to hold what was done just now; without it an action may be missing."""


async def _at_once() -> None:
    """Nothing to wait for."""


async def nothing() -> tuple[Text, ...]:
    """There is no memory."""
    return ()


class Recaller:
    """Recalls for one agent.

    Args:
        memory: what is asked.
        workflow_of: finds the workflow of the goal at hand.
        state: the agent's live state.
        clock: says when each part was read.
        kept: waits until memory holds what was done so far.
        summarise: who shortens what is too long; it is counted where nobody does.
        budget: tokens that the blocks may take.
    """

    def __init__(
        self,
        memory: Memory,
        workflow_of: WorkflowOf,
        state: Callable[[], AgentState],
        clock: Clock,
        *,
        kept: Callable[[], Awaitable[None]] = _at_once,
        summarise: Summariser | None = None,
        budget: int = BUDGET_TOKENS,
    ) -> None:
        self._memory = memory
        self._workflow_of = workflow_of
        self._state = state
        self._clock = clock
        self._kept = kept
        self._summarise = summarise
        self._budget = budget
        self._before: ContextPackage | None = None

    async def __call__(self) -> tuple[Text, ...]:
        """Blocks for the prompt about the goal at hand; none where memory cannot be had."""
        # The room of memory is imported with the first prompt, not when a workspace is opened.
        from engine.memory.compression import compress
        from engine.memory.context import gather
        from engine.memory.package import ContextQuestion, Part, Situation
        from engine.thinkers.memory_blocks import TITLES, block_tokens, memory_blocks

        state = self._state()
        line = state.lineage(state.current_goal)
        if not line:
            return ()
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(KEPT_WITHIN_S):
                    await self._kept()
            begun = state.workflow_at_hand
            workflow = begun or await self._workflow_of(self._memory, state.agent_id, line[-1].id)
        except MemoryFault:
            return ()
        if not workflow:
            return ()
        question = ContextQuestion(workflow, Situation.of(state))
        gathered = await gather(self._memory, question, self._clock, previous=self._before)
        package = await compress(gathered, self._budget, block_tokens, self._summarise, previous=self._before)
        self._before = package
        # A thinker is told of its situation, its goals and its newest actions without memory.
        known = (Part.SITUATION, Part.GOALS, Part.ACTIONS)
        sections = tuple(one for one in package.sections if one.part not in known)
        blocks = memory_blocks(replace(package, sections=sections), self._budget)
        return tuple(block for block in blocks if block.name != TITLES[Part.SITUATION][0])
