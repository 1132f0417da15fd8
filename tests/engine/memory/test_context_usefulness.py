"""Whether what a goal asks for reaches the prompt: the questions of the repository, asked as goals."""

from __future__ import annotations

import asyncio
import json
import tomllib
from pathlib import Path

from engine.memory.context import ContextQuestion, gather, pack
from tests.engine.memory.memory_desk import MemoryDesk

PAIRS = tomllib.loads((Path(__file__).parent / "retrieval_pairs.toml").read_text(encoding="utf-8"))
BUDGET = 4_000
"""Tokens of a package as it stands in a prompt."""


async def told(desk: MemoryDesk, goal: str) -> str:
    """What of memory is told for a goal, packed."""
    blocks = pack(await gather(desk.memory, ContextQuestion(desk.workflow, goal)), BUDGET)
    assert sum(block.tokens for block in blocks) <= BUDGET
    contents = [str(item.get("content", "")) for block in blocks for item in json.loads(block.text)["items"]]
    return "\n".join(contents)


async def test_answers_stored_long_ago_reach_the_prompt_past_two_hundred_logs(desk: MemoryDesk) -> None:
    """Every question with a name or number in common, and of the mixed ones at least nine in ten."""
    every = [answer for kind in ("paraphrase", "mixed", "keyword") for _, answer in PAIRS[kind]]
    await asyncio.gather(*(desk.store_memory(text, importance=3.0) for text in every))
    for number in range(100):
        desk.clock.seconds += 60
        started = await desk.ask(
            "record_action_start",
            workflow_id=desk.workflow,
            action_type="tool_use",
            tool_name="simple_coder",
            title=f"look {number}",
            reasoning="the goal asks for the answer to a question",
        )
        await desk.ask("record_action_completion", action_id=started.id, tool_result=f"nothing {number}")
        await desk.store_memory(f"In place {number} there was nothing.", importance=7.0)
    shares = {}
    for kind in ("paraphrase", "mixed", "keyword"):
        found = [answer in await told(desk, question) for question, answer in PAIRS[kind]]
        shares[kind] = sum(found) / len(found)
    assert shares["keyword"] == 1.0
    assert shares["mixed"] >= 0.9
