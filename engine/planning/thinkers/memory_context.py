"""What memory has for a prompt, within a budget and fenced as material.

It is read before the thinker is asked and is recorded with the call, so that a replay needs no memory. Memory
that cannot answer leaves the prompt without it. An instruction quoted from memory is something to know about
and never one to follow. A thinker has its goals and newest actions from its own prompt.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

from engine.core.journal import canonical
from engine.core.state import AgentState
from engine.core.text import fence
from engine.memory.context import ContextQuestion, Item, Part, Parts, gather, pack
from engine.memory.errors import MemoryFault
from engine.memory.memory import Memory
from engine.models.messages import Text, block_body
from engine.models.request import estimate_tokens
from engine.value import dataclass

TITLES = {
    Part.WORKING: ("memory", "what is in mind, the focus first"),
    Part.CORE: ("workflow", "the work that all this belongs to"),
    Part.IMPORTANT: ("important", "the most important memories"),
    Part.THOUGHTS: ("thoughts", "thoughts that matter, newest first"),
    Part.LINKS: ("links", "memories linked with the one in focus"),
    Part.PROACTIVE: ("recalled", "memories that may help with the next step"),
    Part.PROCEDURES: ("procedures", "settled ways of doing such things"),
}
"""Of each part the block's name, for the context meter, and what the model reads on its fence."""
_LONGEST_TITLE = max((title for _, title in TITLES.values()), key=len)

BUDGET_TOKENS = 6_000
"""What memory may take of a prompt: about the seed's 25,000 characters."""
KEPT_WITHIN_S = 2.0
"""How long a prompt waits for memory to hold what was done just now; without it an action may be missing."""


def memory_blocks(parts: Parts, budget_tokens: int) -> tuple[Text, ...]:
    """What was gathered as blocks for a prompt, within a budget with their fences, in the order of the parts.

    Args:
        parts: what was gathered.
        budget_tokens: tokens that the blocks may take, as `ModelRequest.shares` estimates them.
    """
    return tuple(
        Text(_fenced(TITLES[packed.part][1], packed.text), TITLES[packed.part][0])
        for packed in pack(parts, budget_tokens, block_tokens)
    )


def block_tokens(text: str) -> int:
    """Tokens of a part's text as a block of a request, with its fence; a little more than it will take."""
    return estimate_tokens(canonical(block_body(Text(_fenced(_LONGEST_TITLE, text)))))


def _fenced(title: str, text: str) -> str:
    # Packed to its length already; a cut would make it no JSON any more.
    return fence(title, text, limit=len(text) + 1)


@dataclass
class MemoryRecall:
    """Recalls for one agent.

    Args:
        memory: what is asked.
        state: the agent's live state.
        kept: waits until memory holds what was done so far.
        tokens: what it may take of a prompt.
    """

    memory: Memory
    state: Callable[[], AgentState]
    kept: Callable[[], Awaitable[None]]
    tokens: int = BUDGET_TOKENS

    async def __call__(self) -> tuple[Text, ...]:
        """Blocks for the prompt about the goal at hand; none where memory cannot be had."""
        state = self.state()
        line = state.lineage(state.current_goal)
        if not line:
            return ()
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(KEPT_WITHIN_S):
                    await self.kept()
            begun = state.workflow_at_hand
            workflow = begun or await self.memory.workflow_of(state.agent_id, line[-1].id)
        except MemoryFault:
            return ()
        if not workflow:
            return ()
        parts = await gather(self.memory, ContextQuestion.of(workflow, state))
        goals = {goal.text for goal in line}
        return memory_blocks(
            {part: told for part, items in parts.items() if (told := _new(items, goals))}, self.tokens
        )


def _new(items: Sequence[Item], goals: set[str]) -> list[Item]:
    """Items that say more than goals which the prompt has anyway."""
    return [item for item in items if not goals.intersection((item.get("content"), item.get("goal")))]
