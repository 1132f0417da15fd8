"""Slots, queue, deadline and cancellation of background work, on virtual time."""

from __future__ import annotations

import asyncio

import pytest

from engine.core.metacognition import JobOutcome
from engine.memory.metacognition.runner import BackgroundRunner, BacklogFull, JobEnding
from tests.engine.memory.metacognition.virtual_time import in_virtual_time


class Bench:
    """A runner, and what was seen of its jobs."""

    def __init__(self, **how: float) -> None:
        self.runner = BackgroundRunner(**how)  # type: ignore[arg-type]
        self.most = self.now = 0
        self.ended: dict[str, JobEnding] = {}

    async def work(self, seconds: float) -> float:
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            await asyncio.sleep(seconds)
        finally:
            self.now -= 1
        return seconds

    def start(self, ident: str, seconds: float) -> None:
        self.runner.start(ident, lambda: self.work(seconds), lambda end: self.ended.update({ident: end}))

    async def until_ended(self, count: int) -> None:
        while len(self.ended) < count:
            await asyncio.sleep(0.1)


def test_no_more_than_ten_run_at_once_and_all_finish() -> None:
    """25 jobs of a second each."""

    async def main() -> None:
        bench = Bench()
        for number in range(25):
            bench.start(f"j{number}", 1.0)
        await bench.until_ended(25)
        assert bench.most == 10
        assert {end.outcome for end in bench.ended.values()} == {JobOutcome.DONE}
        assert (bench.runner.free, bench.runner._jobs) == (10, {})

    in_virtual_time(main())


def test_cancelling_jobs_that_wait_frees_no_slot_that_others_hold() -> None:
    """Three run, five that wait are cancelled: no slot is free; after all, three are."""

    async def main() -> None:
        bench = Bench(slots=3)
        for number in range(8):
            bench.start(f"j{number}", 5.0)
        await asyncio.sleep(1)
        for number in range(3, 8):
            assert bench.runner.cancel(f"j{number}")
        await bench.until_ended(5)
        assert bench.runner.free == 0
        assert {end.outcome for end in bench.ended.values()} == {JobOutcome.CANCELLED}
        await bench.until_ended(8)
        assert bench.runner.free == 3
        bench.start("again", 1.0)
        await bench.until_ended(9)
        assert bench.most == 3

    in_virtual_time(main())


def test_a_job_that_hangs_is_cut_off_after_sixty_seconds() -> None:
    """Its slot is free again, and its end is told."""

    async def main() -> None:
        bench = Bench(slots=1)
        bench.start("hangs", 1e9)
        bench.start("waits", 1e9)
        await asyncio.sleep(59)
        assert bench.runner.free == 0
        assert not bench.ended
        await bench.until_ended(2)
        assert asyncio.get_running_loop().time() == pytest.approx(60, abs=1)
        assert bench.ended["hangs"].outcome is JobOutcome.TIMED_OUT
        assert bench.ended["waits"].outcome is JobOutcome.TIMED_OUT, "waiting for a slot counts"
        assert bench.runner.free == 1

    in_virtual_time(main())


def test_work_that_does_not_let_itself_be_cancelled_is_abandoned_and_keeps_its_slot_until_it_ends() -> None:
    async def stubborn(over: asyncio.Event) -> None:
        while not over.is_set():
            try:
                await over.wait()
            except asyncio.CancelledError:
                continue

    async def main() -> None:
        bench, over = Bench(slots=1), asyncio.Event()
        bench.runner.start("s", lambda: stubborn(over), lambda end: bench.ended.update(s=end))
        await asyncio.sleep(1)
        await bench.runner.drain()
        assert bench.ended["s"].outcome is JobOutcome.ABANDONED
        assert asyncio.get_running_loop().time() == pytest.approx(6, abs=0.5)
        assert bench.runner.free == 0
        over.set()
        await asyncio.sleep(1)
        assert bench.runner.free == 1

    in_virtual_time(main())


def test_a_fault_is_an_end_like_others() -> None:
    async def main() -> None:
        bench = Bench()

        async def breaks() -> None:
            raise ValueError("database is locked")

        bench.runner.start("b", breaks, lambda end: bench.ended.update(b=end))
        await bench.until_ended(1)
        assert (bench.ended["b"].outcome, bench.ended["b"].message) == (
            JobOutcome.FAILED,
            "database is locked",
        )
        assert bench.runner.free == 10

    in_virtual_time(main())


def test_too_many_that_wait_are_refused() -> None:
    async def main() -> None:
        bench = Bench(slots=2, backlog=3)
        for number in range(5):
            bench.start(f"j{number}", 1.0)
        with pytest.raises(BacklogFull, match="3 jobs wait"):
            bench.start("one more", 1.0)
        await bench.until_ended(5)
        bench.start("one more", 1.0)
        await bench.until_ended(6)

    in_virtual_time(main())


def test_a_drain_cuts_off_the_jobs_of_one_owner_only() -> None:
    async def main() -> None:
        bench = Bench()
        bench.start("a:1", 9.0)
        bench.start("b:1", 9.0)
        await asyncio.sleep(1)
        await bench.runner.drain("a:")
        assert set(bench.ended) == {"a:1"}
        assert list(bench.runner._jobs) == ["b:1"]
        await bench.runner.close()
        assert bench.ended["b:1"].outcome is JobOutcome.CANCELLED
        assert len(asyncio.all_tasks()) == 1

    in_virtual_time(main())
