"""Many loops while things go wrong: the agent ends where it should, and nothing is left behind."""

from __future__ import annotations

import asyncio
import gc
import os
import resource
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.actions import ErrorCode, ResultStatus, ToolResult
from engine.core.agents import Mode
from engine.core.fold import fold
from engine.core.goals import GoalStatus
from engine.core.journal import JournalError
from engine.core.metacognition import JobOutcome, MetaTask
from engine.core.store.verify import verify
from engine.memory.errors import MemoryFault
from engine.memory.memory import Memory
from engine.memory.metacognition.runner import BackgroundRunner
from tests.engine.memory.memory_desk import MemoryDesk
from tests.engine.memory.metacognition.meta_desk import MetaDesk, World, good, read, write
from tests.engine.memory.metacognition.virtual_time import LoopClock
from tests.rounds import rounds

LOOPS, PLAN = rounds(150, full=2_000), 50
GROWTH_MB = 50
FULL_S = float(rounds(2, full=5))
"""How long the disk has no room."""
DEADLINE_S = 0.4


class QuickClock(LoopClock):
    """Waits for nothing."""

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(0)


def rss_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6


def held() -> tuple[int, int]:
    """Open files and threads."""
    return len(os.listdir("/proc/self/fd")), threading.active_count()


class Trouble:
    """Breaks things in turn, and mends them."""

    def __init__(self, room: MemoryDesk) -> None:
        self.room = room
        self.calls = 0
        self.hung = 0
        self.never = asyncio.Event()

    async def workflow_of(self, memory: Memory, agent: str, goal: str) -> str:
        """Every ninth job hangs until it is cut off, every thirteenth meets a locked database."""
        self.calls += 1
        if self.calls % 13 == 0:
            raise sqlite3.OperationalError("database is locked")
        if self.calls % 9 == 0:
            self.hung += 1
            await self.never.wait()
        return self.room.workflow

    async def lock_memory(self) -> None:
        """Another process has the database of memories for longer than a job may take."""

        def hold() -> None:
            with closing(sqlite3.connect(self.room.database, isolation_level=None, timeout=30)) as other:
                other.execute("begin immediate")
                time.sleep(6 * DEADLINE_S)
                other.execute("rollback")

        await asyncio.to_thread(hold)

    async def fill_disk(self) -> None:
        """SQLite may not let the journal grow for some seconds."""
        writer = self.room.store._writer
        assert writer is not None
        connection = writer.ledger.connection
        ((pages,),) = await connection.execute_fetchall("pragma page_count")
        await connection.execute_fetchall(f"pragma max_page_count = {pages}")
        await asyncio.sleep(FULL_S)
        await connection.execute_fetchall("pragma max_page_count = 1073741823")


async def keep_journal_alive(flown: MetaDesk) -> None:
    """What the engine does: a journal that could not write is tried again."""
    while True:
        await asyncio.sleep(0.1)
        if flown.agent.log.trouble is not None:
            with suppress(JournalError):
                await flown.agent.log.commit()
                flown.agent.wake()


@pytest.mark.only_in_a_file
@pytest.mark.slow
async def test_many_loops_with_faults_end_well_and_leave_nothing_behind(tmp_path: Path) -> None:
    tasks_before, held_before = asyncio.all_tasks(), held()
    room = await MemoryDesk(tmp_path).open()
    trouble, world = Trouble(room), World()
    runner = BackgroundRunner(deadline_s=DEADLINE_S)
    world.next_plan = lambda: [(write if n % 3 else read)(f"f{n % 17}", n) for n in range(1, PLAN + 1)]

    def answer(number: int, command: str, args: Mapping[str, Any]) -> ToolResult:
        if command == "write" or number % 13:
            return good(str(args["path"]))
        return ToolResult(ResultStatus.FAILURE, {"message": "too many at once"}, ErrorCode.RATE_LIMIT)

    async def remember(number: int) -> None:
        if number % 3 == 0:
            with suppress(MemoryFault, JournalError):
                await room.store_memory(f"reading {number} of gauge {number % 11}")

    world.answers, world.after_call = answer, remember
    flown = MetaDesk(
        world,
        runner=runner,
        memory=room.memory,
        workflow_of=trouble.workflow_of,
        clock=QuickClock(),
        commit=room.store.commit,
    ).open()
    watch = asyncio.create_task(keep_journal_alive(flown))
    goals = LOOPS // PLAN
    for number in range(goals):
        flown.do(cmd.AdoptGoal, text=f"goal {number}")
    flown.do(cmd.Run)
    flown.agent.start()
    begun_mb = 0.0
    breaking: list[asyncio.Task[None]] = []
    for share, breaks in ((0.1, None), (0.3, trouble.lock_memory), (0.5, trouble.fill_disk)):
        await flown.until(lambda s, loop=share * LOOPS: s.meta.loop >= loop, 400.0)
        gc.collect()
        begun_mb = begun_mb or rss_mb()
        if breaks is not None:
            breaking.append(asyncio.create_task(breaks()))
    in_trouble = False
    async with asyncio.timeout(400):
        while flown.state.open_goals:
            in_trouble |= flown.agent.log.trouble is not None
            assert not flown.agent.fault, flown.agent.fault
            if flown.state.intervention is not None:
                flown.do(cmd.HandBack)
            await asyncio.sleep(0.01)
    await asyncio.gather(*breaking)
    gc.collect()
    grown_mb = rss_mb() - begun_mb

    state = flown.state
    assert (state.mode, {goal.status for goal in state.goals.values()}) == (Mode.IDLE, {GoalStatus.ACHIEVED})
    assert state.meta.loop >= LOOPS
    assert in_trouble, "the journal had no room for a while"
    await flown.close()
    watch.cancel()
    await asyncio.gather(watch, return_exceptions=True)
    events = await room.store.read("pilot")
    assert fold(events) == state
    ends = [said for event in events if isinstance(said := ev.payload_of(event), ev.BackgroundEnded)]
    outcomes = Counter(said.outcome for said in ends)
    assert outcomes[JobOutcome.DONE] > rounds(12, full=300)
    assert outcomes[JobOutcome.TIMED_OUT] >= trouble.hung - 3
    assert any(said.message == "database is locked" for said in ends), outcomes
    assert state.meta.running == ()
    assert (runner.free, runner._jobs) == (10, {})
    sources = [one for said in ends for one in said.sources if said.made]
    assert len(sources) == len(set(sources)) > LOOPS / 20, "nothing is consolidated twice"
    assert state.meta.cycle > rounds(1, full=20)
    assert MetaTask.MAINTAIN in state.meta.last
    verdict = await verify(room.store)
    assert verdict.ok, verdict.reason
    flown.events = list(events)
    await flown.replays()
    await room.close()
    await asyncio.sleep(0.05)
    assert asyncio.all_tasks() == tasks_before
    files, threads = held()
    # A thread of the loop's own pool may stay; what was opened may not.
    assert files <= held_before[0] + 2
    assert threads <= held_before[1] + 8
    print(f"\ngrown by {grown_mb:.1f} MB; {len(events)} events; {dict(outcomes)}")
    assert grown_mb < GROWTH_MB
