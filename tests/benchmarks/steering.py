"""Steering under load: a row for each target that a machine can measure, ours beside the limit.

The names of the rows begin with the target's (T1 to T25; the guide's page on steering has them all). Most are
measured by the other benchmarks, with fewer rounds; what is a property rather than a time is proven by tests,
whose failures are the figure. All rounds, and journals of a million events: PILOTHOUSE_FULL_ROUNDS.

Limits hold at load 1. At load 20 keys and stops are measured again beside a key of a bare Textual app on the
same machine at the same time: what another program would take then, too.

Run it with `python -m tests.benchmarks.steering [TARGET …]`.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import re
import select
import subprocess
import sys
import tempfile
import threading
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from app.commands.settings import Settings
from engine.api.engine import Engine
from engine.core import commands as cmd
from engine.core.ports import SystemClock
from engine.core.store.sqlite import SqliteJournal
from tests.benchmarks import (
    approvals,
    fleet,
    flipping,
    killing,
    looking_back,
    model,
    opening,
    rewinding,
    storage,
)
from tests.benchmarks.cockpit import BARE, Screen, _flown, pilothouse
from tests.benchmarks.journal import Chain
from tests.benchmarks.long_session import make, named
from tests.benchmarks.screen import _burst, _busy_core, _cockpit, _keys, _paint
from tests.benchmarks.stopping import LIMITS_MS, _act, _all_stopped, _busy, processes
from tests.benchmarks.stopping import measure as measure_stops
from tests.rounds import rounds

LOAD = 20
STOPS_ON_SCREEN = 6
SCREEN_S = 60.0
Rows = Iterator[dict[str, Any]]


def row(name: str, ours: float, limit: float, unit: str, n: int, **more: Any) -> dict[str, Any]:
    """One row: the figure beside its limit, and the load of the machine."""
    return {
        "name": name,
        "ours": round(ours, 3),
        "baseline": round(limit, 3),
        "ratio": round(ours / limit, 3) if limit else None,
        "unit": unit,
        "n": n,
        "load": round(os.getloadavg()[0], 1),
        **more,
    }


def share(times: Sequence[float], percent: int) -> float:
    """The time that this percentage of all does not exceed."""
    return sorted(times)[max(0, -(-len(times) * percent // 100) - 1)]


def _shares(name: str, times: Sequence[float], limits: dict[int, float], unit: str = "ms") -> Rows:
    for percent, limit in limits.items():
        yield row(f"{name}, p{percent}", share(times, percent), limit, unit, len(times))


def _proven(name: str, *tests: str) -> Rows:
    """How many of some tests fail."""
    with tempfile.TemporaryDirectory() as place:
        report = Path(place, "report.xml")
        pytest = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}"]
        subprocess.run([*pytest, *tests], check=False, capture_output=True)
        suite = ElementTree.parse(report).getroot()[0].attrib
    failed = int(suite["failures"]) + int(suite["errors"])
    passed = int(suite["tests"]) - failed - int(suite["skipped"])
    yield row(f"{name}: tests that fail", failed, 0, "tests", passed, skipped=int(suite["skipped"]))


# ------------------------------------------------------------------ keys, events and stops on the screen


def _t1() -> Rows:
    with _cockpit() as cockpit:
        yield from _shares("T1 key to screen, idle", _keys(cockpit.screen, rounds(60, full=300)), _KEY)


_KEY = {50: 20.0, 99: 60.0}
_BUSY_KEY = {50: 100.0, 99: 100.0}


def _t2() -> Rows:
    with _cockpit() as cockpit, _busy_core():
        cockpit.order("rate 1000")
        cockpit.screen.drain(2.0)
        keys = _keys(cockpit.screen, rounds(60, full=300))
    yield from _shares("T2 key at 1,000 events/s, one core busy", keys, _BUSY_KEY)
    # A key that is not answered ends the measurement with an error.
    yield row("T2 keys lost", 0, 0, "keys", len(keys))


def _t3() -> Rows:
    with _cockpit() as cockpit:
        for each in (*_paint(cockpit), *_burst(cockpit)):
            yield row(
                f"T3 {each['name'].partition(', ')[2]}", each["ours"], each["baseline"], "ms", each["n"]
            )


def _t4() -> Rows:
    with tempfile.TemporaryDirectory() as place:
        measured = asyncio.run(measure_stops(Path(place), rounds(40, full=1000)))
    for name, limit in LIMITS_MS.items():
        times = measured.times_ms[name]
        yield row(f"T4 stop in the engine, {name}, p99", share(times, 99), limit, "ms", len(times))
    effects = measured.files_changed + measured.actions_started
    yield row("T4 effects after a receipt", effects, 0, "effects", measured.stops)
    missing = measured.alive - measured.listed
    yield row("T4 processes that receipts leave out", missing, 0, "processes", measured.stops)
    yield from _stops_on_screen("T4")


def _stops_on_screen(name: str, limits: Sequence[float] = (50.0, 250.0, 50.0, 2000.0)) -> Rows:
    times = _stopped_on_screen(rounds(STOPS_ON_SCREEN, full=50))
    what = ("freeze: key to a mark", "freeze: key to frozen", "stop: key to a mark", "stop: key to dead")
    for title, found, limit in zip(what, times, limits, strict=True):
        yield row(f"{name} on the screen, {title}, worst", max(found), limit, "ms", len(found))


def _stopped_on_screen(count: int) -> tuple[list[float], list[float], list[float], list[float]]:
    """Milliseconds from the keys that freeze and kill to their marks and to the end of what runs."""
    times: tuple[list[float], ...] = ([], [], [], [])
    with tempfile.TemporaryDirectory() as place:
        workspace = Path(place)
        asyncio.run(_planned(workspace, count))
        root = workspace / "sandbox"
        with Screen(pilothouse("--workspace", place)) as screen:
            screen.wait_for(b"6 Mind", b"PAUSED", limit_s=SCREEN_S)
            for number in range(count):
                screen.drain(1.0)
                screen.press(b" ")
                _until(lambda number=number: (root / f"c{number}.daemon").exists(), screen)  # type: ignore[misc]
                screen.press(b"X")
                screen.drain(1.0)
                _timed(screen, b"5", "■".encode(), lambda: _all_stopped(processes(root)), *times[:2])
                screen.drain(1.0)
                screen.press(b"X")
                screen.drain(1.0)
                _timed(screen, b".", b"STOPPED", lambda: not processes(root), *times[2:])
                screen.drain(1.0)
                screen.press(b"\x1b")
                screen.drain(0.5)
                screen.press(b"x")  # its step has failed; the next one begins another program
    return times  # type: ignore[return-value]


async def _planned(workspace: Path, count: int) -> None:
    """An agent with so many programs to run, each with children that write all the time."""
    engine = await Engine.open(workspace, config=Settings.load(workspace).engine_config())
    try:
        await engine.submit(cmd.CreateAgent(agent="pilot"))
        await engine.submit(cmd.AdoptGoal(agent="pilot", text="list the files"))
        while not (await engine.view("pilot")).plans:
            await asyncio.sleep(0.01)
        steps = [_act("run", command=_busy(f"c{number}")) for number in range(count)]
        await engine.submit(cmd.ReplacePlan(agent="pilot", goal="g1", plan=json.dumps(steps)))
    finally:
        await engine.close()


def _until(holds: Callable[[], bool], screen: Screen) -> None:
    end = time.monotonic() + SCREEN_S
    while not holds():
        if time.monotonic() > end:
            raise TimeoutError("no program began")
        screen.drain(0.05)


def _first(screen: Screen, *texts: bytes) -> float:
    """The moment when the first of some texts was printed."""
    seen, end = b"", time.monotonic() + SCREEN_S
    while time.monotonic() < end:
        if select.select([screen.fd], [], [], 0.05)[0]:
            seen += os.read(screen.fd, 1 << 16)
            if any(text in seen for text in texts):
                return time.monotonic()
    raise TimeoutError(f"none of {texts!r} appeared")


def _timed(
    screen: Screen, key: bytes, said: bytes, over: Callable[[], bool], marks: list[float], ends: list[float]
) -> None:
    """Press a key, and keep when the screen said that it is done, or is being done, and when it was done."""
    ended: list[float] = []

    def look() -> None:
        end = time.monotonic() + SCREEN_S
        while not over() and time.monotonic() < end:
            time.sleep(0.002)
        ended.append(time.monotonic())

    watching = threading.Thread(target=look)
    watching.start()
    pressed = screen.press(key)
    marks.append((_first(screen, b"stopping", said) - pressed) * 1000)
    while watching.is_alive():
        screen.drain(0.02)
    ends.append((ended[0] - pressed) * 1000)


def _under_load() -> Rows:
    """Keys and stops while 20 processes want the processor, beside a key of a bare Textual app then."""
    with _loaded():
        with Screen([sys.executable, "-c", BARE], columns=200, lines=50) as bare:
            bare.wait_for(b"last of all", limit_s=SCREEN_S)
            bare.drain(3.0)
            base = _letters(bare, rounds(40, full=200))
        with _cockpit() as cockpit:
            idle = _keys(cockpit.screen, rounds(40, full=200))
            cockpit.order("rate 1000")
            cockpit.screen.drain(2.0)
            busy = _keys(cockpit.screen, rounds(40, full=200))
        for percent in (50, 99):
            key = share(base, percent)
            yield row(f"T1 at load {LOAD}, key p{percent} vs a bare app", share(idle, percent), key, "ms", 40)
            yield row(
                f"T2 at load {LOAD}, key at 1,000 events/s p{percent} vs a bare app",
                share(busy, percent), key, "ms", 40,
            )  # fmt: skip
        yield from _stops_on_screen(f"T4 at load {LOAD}, vs a bare app's key", [max(base)] * 4)


@contextmanager
def _loaded() -> Iterator[None]:
    """As many processes as make it so many that want the processor, each in a session of its own."""
    running = int(re.split("[ /]", Path("/proc/loadavg").read_text())[3])
    spin = [sys.executable, "-c", "while True: pass"]
    more = [subprocess.Popen(spin, start_new_session=True) for _ in range(max(1, LOAD - running))]
    try:
        yield
    finally:
        for process in more:
            process.kill()
            process.wait()


def _letters(screen: Screen, count: int) -> list[float]:
    """Milliseconds from a letter typed into a bare app's line to its being on the screen."""
    found = []
    screen.press(b"\x1b[Z")  # from the first to the last widget, the line
    screen.drain(0.5)
    for number in range(count):
        letter = "žůř"[number % 3].encode()
        pressed = screen.press(letter)
        found.append((screen.wait_for(letter) - pressed) * 1000)
        screen.drain(0.05)
    return found


# ------------------------------------------------------------------ the journal


def _t5() -> Rows:
    for each in approvals.rows():
        yield row(f"T5 {each['what']}, p95", each["p95_ms"], each["limit_ms"], "ms", each["n"])


def _t6() -> Rows:
    (kills,) = killing.rows(rounds(8, full=1000))
    yield row("T6 kill -9: acknowledged events lost", kills["ours"], 0, "events", kills["n"])
    for count, limit in ((10_000, 1.0), (100_000, 5.0)):
        with tempfile.TemporaryDirectory() as place:
            make(Path(place), count)
            asyncio.run(_opened_once(Path(place)))
            took, _, _ = asyncio.run(opening._opened(Path(place)))
            yield row(f"T6 opening {count:,} events", took, limit, "s", 1)
            if count == 100_000:
                yield from _first_screen(f"T19 first full screen, {count:,} events", Path(place), 2.0)


async def _opened_once(workspace: Path) -> None:
    """Let what is made from the events be made, as at the end of each session."""
    engine = await Engine.open(workspace, config=Settings.load(workspace).engine_config())
    await engine.kept()
    await engine.close()


def _t7() -> Rows:
    yield from _proven(
        "T7 torn end, refusing disk, wrong clock, two writers",
        "tests/engine/core/test_damage.py", "tests/app/test_disk_faults.py", "tests/app/test_clock_jumps.py",
        "tests/engine/core/test_store_opening.py",
    )  # fmt: skip


def _t8() -> Rows:
    with tempfile.TemporaryDirectory() as place:
        times, rate = asyncio.run(_appended(Path(place), rounds(400, full=4000)))
    yield from _shares("T8 append with fsync", times, {50: 2.0, 99: 15.0})
    yield row("T8 sustained, an event of 16 writers", 1000 / rate, 0.5, "ms", len(times) * 16)


async def _appended(place: Path, count: int) -> tuple[list[float], float]:
    store = await SqliteJournal.open(place, clock=SystemClock())

    async def write(chain: Chain) -> None:
        for _ in range(count):
            await store.commit([chain.next()])

    try:
        times, alone = [], Chain("alone")
        for _ in range(count):
            began = time.perf_counter()
            await store.commit([alone.next()])
            times.append((time.perf_counter() - began) * 1000)
        began = time.perf_counter()
        await asyncio.gather(*(write(Chain(f"agent-{number}")) for number in range(16)))
        return times, 16 * count / (time.perf_counter() - began)
    finally:
        await store.close()


def _t9() -> Rows:
    for each in storage.rows():
        limit = 1.1 if "ten times" in each["name"] else each["baseline"]
        ours, unit = (each["ratio"], "ratio") if "ten times" in each["name"] else (each["ours"], "bytes")
        yield row(
            f"T9 {each['name'].replace(' (lower is better) vs limit', '')}", ours, limit, unit, each["n"]
        )


def _t10() -> Rows:
    """Going to any point; and T18, searching as much."""
    events = rounds(100_000, full=1_000_000)
    with tempfile.TemporaryDirectory() as place:
        make(Path(place), events)
        yield from asyncio.run(_looked_back(Path(place)))


async def _looked_back(workspace: Path) -> list[dict[str, Any]]:
    store = await SqliteJournal.open(workspace, clock=SystemClock(), read_only=True)
    try:
        found = await looking_back._looking_back(store, random.Random(7))
        seq = await store.head_seq()
        index = looking_back.JournalIndex(workspace)
        await index.update(seq)
        await index.close()
        asked = (named(0), looking_back.ABSENT, "navigation")
        took = [await looking_back._first(workspace, text) * 1000 for text in asked for _ in range(5)]
    finally:
        await store.close()
    seeks = [
        row(f"T10 {each['name'].partition(' (')[0]}", each["ours"], each["baseline"], "ms", each["n"])
        for each in found[:2]
    ]
    return [*seeks, row(f"T18 first hits of a search in {seq:,} events, worst", max(took), 300.0, "ms", 15)]


def _t11() -> Rows:
    """Another state, or a call of a model, ends the measurement with an error."""
    model.SESSIONS = rounds(6, full=200)
    each = model._replaying()
    name = f"T11 replay of {each['n']} sessions to the same heads, beside a fiftieth of their time"
    yield row(name, each["ours"], each["baseline"] / model.SPEED_WANTED, "s", each["n"])


def _t12() -> Rows:
    rewinding.ACTIONS, rewinding.REWINDS = rounds(20, full=60), rounds(30, full=500)
    for each in rewinding.rows():
        if each["unit"] == "ms":
            yield row(
                f"T12 {each['name'].partition(',')[0]}", each["ours"], 2000.0, "ms", 1, same=each["same"]
            )
        else:
            wrong = each["baseline"] - each["ours"]
            yield row("T12 random rewinds to another tree or state", wrong, 0, "rewinds", each["n"])


# ------------------------------------------------------------------ agents


def _t14() -> Rows:
    many = fleet.measured(rounds(50, full=200))
    name = f"T14 {many.agents} agents"
    yield from _shares(f"{name} at rest, key", many.idle, _KEY)
    yield from _shares(f"{name} at work, key", many.keys, _BUSY_KEY)
    yield row(f"{name} at work, another one shown, slowest", max(many.switches), 250.0, "ms", 20)


def _t15() -> Rows:
    yield from _proven(
        "T15 at most 5 questions per 100 actions, always is honoured, 50 hazards are stopped",
        "tests/engine/agent/test_envelopes.py", "tests/engine/agent/test_approval_rules.py",
    )  # fmt: skip


def _t16() -> Rows:
    yield from _proven(
        "T16 at most one call over a budget, held and not killed, forecast within 30 %",
        "tests/engine/agent/test_shared_budgets.py", "tests/engine/agent/test_forecast.py",
    )  # fmt: skip


def _t17() -> Rows:
    stuck = "tests/engine/memory/metacognition/test_stuck.py"
    yield from _proven("T17 stuck agents: precision and recall at least 0.9", stuck)


def _t19() -> Rows:
    with tempfile.TemporaryDirectory() as place:
        _flown(Path(place))
        yield from _first_screen("T19 first full screen, one mission", Path(place), 1.0)


def _first_screen(name: str, workspace: Path, limit: float) -> Rows:
    times = []
    for _ in range(3):
        with Screen(pilothouse("--workspace", str(workspace))) as screen:
            times.append(screen.wait_for(b"6 Mind", b"pilot-1", limit_s=SCREEN_S) - screen.began)
    yield row(f"{name}, median", sorted(times)[1], limit, "s", 3)


def _t20() -> Rows:
    yield from _proven("T20 each action by key, line, mouse and headless", "tests/app/test_parity.py")


def _t21() -> Rows:
    yield from _proven(
        "T21 hostile output", "tests/widgets/test_hostile_text.py", "tests/app/test_hostile_inputs.py"
    )


def _t22() -> Rows:
    sizes = ("tests/app/cockpit/test_cockpit_sizes.py", "tests/widgets/test_sizes.py")
    yield from _proven("T22 small terminals, few and no colours", *sizes)


def _t24() -> Rows:
    yield from _proven("T24 cheats of candidates are rejected", "tests/engine/improve/test_judge_cheats.py")


def _t25() -> Rows:
    (each,) = flipping.rows(rounds(60, full=400))
    yield row("T25 flipped bits of the record that nothing names", each["ours"], 0, "flips", each["n"])


TARGETS: dict[str, Callable[[], Rows]] = {
    "T1": _t1, "T2": _t2, "T3": _t3, "T4": _t4, "load": _under_load, "T5": _t5, "T6": _t6, "T7": _t7,
    "T8": _t8, "T9": _t9, "T10": _t10, "T11": _t11, "T12": _t12, "T14": _t14, "T15": _t15, "T16": _t16,
    "T17": _t17, "T19": _t19, "T20": _t20, "T21": _t21, "T22": _t22, "T24": _t24, "T25": _t25,
}  # fmt: skip
"""What measures each target; T18 is measured with T10, T13 by `make soak`, and T23 needs people."""


def rows(*targets: str) -> Rows:
    """The rows of all targets, or of some; a measurement that fails is a row, too."""
    for name in targets or TARGETS:
        try:
            yield from TARGETS[name]()
        except Exception as error:
            yield row(f"{name} could not be measured: {error}"[:160], 1, 0, "failures", 0)


if __name__ == "__main__":
    for one in rows(*sys.argv[1:]):
        print(json.dumps(one), flush=True)
