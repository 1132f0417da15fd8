"""A torn tail, a full file system, a clock that jumps, a second writer, and what an event takes (T7, T9)."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

from engine.core import events as ev
from engine.core.journal import GENESIS, JournalCorrupt, JournalLocked
from engine.core.ports import SystemClock
from engine.core.store.schema import torn_end
from engine.core.store.sqlite import SqliteJournal
from engine.core.store.verify import verify
from engine.core.streams import StreamLog
from tests.benchmarks.long_session import make
from tests.benchmarks.storage import LIMIT_BYTES, taken

DATABASE = Path(".pilothouse/journal.db")
LOG = Path(".pilothouse/journal.db-wal")


@pytest.mark.only_in_a_file
async def test_a_log_that_was_cut_off_anywhere_opens_to_the_last_good_event(
    tmp_path: Path, new_chain, open_store
) -> None:
    """As a power cut leaves it: what stands is a beginning of what was written, whole and sound."""
    dice = random.Random(7)
    live = await open_store(tmp_path / "live")
    chain = new_chain()
    written = []
    for _ in range(40):
        written += await live.commit(chain.take(dice.randint(1, 12)))
    size = (tmp_path / "live" / LOG).stat().st_size
    lengths, told = set(), []
    for number, cut in enumerate([0, size, *(dice.randrange(size) for _ in range(14))]):
        torn = tmp_path / f"torn{number}"
        (torn / ".pilothouse").mkdir(parents=True)
        shutil.copy(tmp_path / "live" / DATABASE, torn / DATABASE)
        (torn / LOG).write_bytes((tmp_path / "live" / LOG).read_bytes()[:cut])
        store = await SqliteJournal.open(torn, clock=SystemClock())
        told.append((cut, store.torn))
        kept = [event async for event in store.events(0, follow=False)]
        verdict = await verify(store)
        more = await store.commit([_next(new_chain, kept)])
        await store.close()
        assert kept == written[: len(kept)]
        assert verdict.ok, verdict.reason
        assert more[0].seq == len(kept) + 1
        lengths.add(len(kept))
    assert max(lengths) == len(written)
    assert len(lengths) > 5
    assert all(torn == 0 for cut, torn in told if cut in (0, size))
    assert all(0 <= torn < cut for cut, torn in told if cut)
    assert sum(torn > 0 for _, torn in told) >= 10, "a log that ends in the middle of something says so"


@pytest.mark.only_in_a_file
async def test_a_log_with_a_damaged_frame_says_how_much_of_it_is_lost(
    tmp_path: Path, new_chain, open_store
) -> None:
    live = await open_store(tmp_path / "live")
    chain = new_chain()
    for _ in range(10):
        await live.commit(chain.take(5))
    content = bytearray((tmp_path / "live" / LOG).read_bytes())
    assert torn_end(tmp_path / "live" / LOG)[0] == 0
    content[len(content) // 2] ^= 1
    (tmp_path / "log").write_bytes(content)
    assert len(content) // 2 - 20_000 < torn_end(tmp_path / "log")[0] < len(content) // 2 + 20_000
    for other in (b"", b"no log", content[:40], bytes(5_000)):
        (tmp_path / "log").write_bytes(other)
        assert torn_end(tmp_path / "log")[0] in (0, 8)
    assert torn_end(tmp_path / "none")[0] == 0


def _next(new_chain, kept):
    """The event that goes on where a journal ends."""
    chain = new_chain()
    chain.version, chain.hash = (kept[-1].version, kept[-1].hash) if kept else (0, GENESIS)
    return chain.next()


@pytest.mark.only_in_a_file
async def test_a_journal_that_was_cut_short_says_so_and_is_left_as_it_is(
    tmp_path: Path, new_chain, open_store
) -> None:
    store = await open_store(tmp_path / "whole")
    await store.commit(new_chain().take(400))
    await store.close()
    content = (tmp_path / "whole" / DATABASE).read_bytes()
    dice = random.Random(8)
    for number, cut in enumerate(dice.randrange(4_096, len(content) - 4_096) for _ in range(5)):
        short = tmp_path / f"short{number}"
        (short / ".pilothouse").mkdir(parents=True)
        (short / DATABASE).write_bytes(content[:cut])
        with pytest.raises(JournalCorrupt, match=r"journal\.db"):
            await SqliteJournal.open(short, clock=SystemClock())
        assert (short / DATABASE).read_bytes() == content[:cut]


class JumpingClock(SystemClock):
    """A clock that somebody sets, hours forth and back."""

    times = ("2026-05-01T12:00:00.000000Z", "2026-05-01T19:00:00.000000Z", "2026-04-30T03:00:00.000000Z")

    def __init__(self) -> None:
        self.asked = 0

    def now(self) -> str:
        self.asked += 1
        return self.times[self.asked % len(self.times)]


async def test_a_clock_that_jumps_changes_no_order_and_breaks_no_chain(tmp_path: Path, open_store) -> None:
    clock = JumpingClock()
    store = await open_store(tmp_path, clock=clock)
    log = StreamLog("pilot", 0, GENESIS, clock, store.commit)
    for number in range(9):
        log.append(ev.ThoughtRecorded(text=f"thought {number}"), actor="agent", causes=(), tick=1)
        await log.commit()
    await store.close()
    again = await open_store(tmp_path)
    kept = [event async for event in again.events(0, follow=False)]
    assert [event.version for event in kept] == list(range(1, 10))
    assert len({event.at for event in kept}) == 3
    assert (await verify(again)).ok
    with pytest.raises(JournalLocked):
        await SqliteJournal.open(tmp_path, clock=clock)


@pytest.mark.only_in_a_file
def test_a_journal_grows_as_its_events_do_and_each_takes_little(tmp_path: Path) -> None:
    sizes = []
    for count in (600, 3_000):
        (tmp_path / str(count)).mkdir()
        make(tmp_path / str(count), count)
        events, size = taken(tmp_path / str(count))
        sizes.append(size / events)
    assert max(sizes) < LIMIT_BYTES
    assert 0.85 < sizes[1] / sizes[0] < 1.15
