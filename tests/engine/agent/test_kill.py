"""`kill -9` at any moment: what was acknowledged is kept, and nothing is silently done twice."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest

from engine.api.engine import Engine
from engine.core import commands as cmd
from engine.core.agents import RunState
from engine.core.goals import GoalStatus
from tests.engine.agent.kill_flight import journal_of, kill_often, live_until_killed, reopen_and_decide
from tests.patience import PATIENCE_S
from tests.rounds import rounds


@pytest.mark.slow
async def test_kills_at_random_moments_lose_and_repeat_nothing(tmp_path: Path) -> None:
    kills = rounds(4, full=1_000)
    tally = await kill_often(tmp_path, kills, 20261122)

    assert tally.kills == kills
    assert tally.unknowns >= kills // 20, "the moments were not spread over acting"
    assert tally.acknowledged > 5 * kills


@pytest.mark.slow
async def test_the_work_of_many_lives_is_done_in_the_end(tmp_path: Path) -> None:
    dice = random.Random(7)
    for number in range(5):
        await live_until_killed(tmp_path, number, dice)
        await reopen_and_decide(tmp_path, await journal_of(tmp_path), dice)
    engine = await Engine.open(tmp_path)
    try:
        await engine.submit(cmd.Run(agent="pilot"))
        async with asyncio.timeout(PATIENCE_S):
            while (state := await engine.view("pilot")).open_goals:
                if state.run is not RunState.RUNNING:
                    await engine.submit(cmd.Run(agent="pilot"))
                await asyncio.sleep(0.005)
        assert {goal.status for goal in state.goals.values()} == {GoalStatus.ACHIEVED}
    finally:
        await engine.close()
