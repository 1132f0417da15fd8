"""Agents go on in turn, and the operator comes before them."""

from __future__ import annotations

import asyncio

import pytest

from engine.agent.turn_scheduler import TurnScheduler


async def test_what_is_paced_gives_and_raises_what_it_would_by_itself() -> None:
    pace = TurnScheduler(turn_s=0.0)

    async def fails() -> None:
        await asyncio.sleep(0)
        raise ValueError("told")

    begun = asyncio.Event()

    async def caught() -> str:
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "cut off"
        return ""

    async def gives() -> int:
        return await asyncio.create_task(asyncio.sleep(0, 7))

    assert await pace.run(gives()) == 7
    with pytest.raises(ValueError, match="told"):
        await pace.run(fails())
    task = asyncio.create_task(pace.run(caught()))
    await begun.wait()
    task.cancel()
    assert await task == "cut off"


async def test_others_have_their_turn_between_the_steps_of_many_and_nobody_starves() -> None:
    pace = TurnScheduler(turn_s=0.0)
    steps: list[int] = []
    others = 0

    async def work(name: int) -> None:
        for _ in range(5):
            steps.append(name)
            await asyncio.sleep(0)

    async def other() -> None:
        nonlocal others
        while True:
            others += 1
            await asyncio.sleep(0)

    beside = asyncio.create_task(other())
    await asyncio.gather(*(pace.run(work(name)) for name in range(20)))
    beside.cancel()
    assert sorted(steps) == sorted([*range(20)] * 5)
    assert steps[:20] == [*range(20)]
    # With no time to spend one step is taken in each turn of the loop.
    assert others >= 90


async def test_who_waits_in_line_can_be_cancelled_and_those_behind_go_on() -> None:
    pace = TurnScheduler(turn_s=0.0)
    done: list[int] = []

    async def work(name: int) -> None:
        await asyncio.sleep(0)
        done.append(name)

    tasks = [asyncio.create_task(pace.run(work(name))) for name in range(6)]
    await asyncio.sleep(0)
    tasks[3].cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert tasks[3].cancelled()
    assert sorted(done) == [0, 1, 2, 4, 5]


async def test_agents_wait_for_the_operator_and_go_on_by_themselves() -> None:
    pace = TurnScheduler()
    done = asyncio.Event()

    async def work() -> None:
        done.set()

    pace.yield_to_operator()
    task = asyncio.create_task(pace.run(work()))
    for _ in range(20):
        await asyncio.sleep(0)
    assert not done.is_set()
    pace.yield_to_operator()  # asked again meanwhile, it is not put off
    await task
    assert done.is_set()
