"""What holds the event loop is named, and a program that is asked to end does."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from app.cli.doctor import check_installation
from app.commands import watchdog
from app.commands.watchdog import LOG_BYTES, LOOP_LOG, Held, LoopWatch, read_held
from engine.core.offload import CutOffError, Slice, in_thread

PATIENCE_S = 120.0
REPOSITORY = Path(__file__).parents[2]


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    (tmp_path / ".pilothouse").mkdir()
    return tmp_path


def compute_until(over: list[bool]) -> None:
    """Keep a processor busy."""
    until = time.monotonic() + PATIENCE_S
    while not over and time.monotonic() < until:
        pass


async def noted(watch: LoopWatch) -> Held:
    async with asyncio.timeout(PATIENCE_S):
        while not watch.held:
            await asyncio.sleep(0.01)
    return watch.held[0]


async def test_what_holds_the_loop_is_named_with_function_and_line(workspace: Path) -> None:
    with LoopWatch(workspace) as watch:
        over: list[bool] = []
        asyncio.get_running_loop().run_in_executor(None, lambda: (time.sleep(0.5), over.append(True)))
        compute_until(over)
        held = await noted(watch)
    assert held.seconds >= watchdog.HELD_S / 2
    assert any("test_watchdog.py" in place or "compute_until" in place for place in held.where[:1])
    (read,) = read_held(workspace)[:1]
    assert read == held
    _, answer, text = await check_installation(workspace)
    assert answer["loop"]["held"] >= 1
    assert "longest" in answer["loop"]["reason"]
    assert "loop" in text


async def test_what_held_the_loop_for_days_does_not_fill_the_memory(workspace: Path) -> None:
    watch = LoopWatch(workspace)
    for number in range(3 * watchdog.HELD_KEPT):
        watch._note(Held("2026-11-26T12:00:00.000+00:00", float(number), 0.0, ("f (a.py:1)",)))
    assert len(watch.held) == watchdog.HELD_KEPT
    assert watch.held[-1].seconds == 3 * watchdog.HELD_KEPT - 1


async def test_a_loop_that_waits_is_not_woken_and_not_named(workspace: Path) -> None:
    asked: list[object] = []
    with LoopWatch(workspace) as watch:
        watch._loop.call_soon_threadsafe = lambda *args: asked.append(args)  # type: ignore[method-assign, assignment]
        quiet = asyncio.Event()
        asyncio.get_running_loop().call_later(0.3, quiet.set)
        await quiet.wait()
        del watch._loop.call_soon_threadsafe  # type: ignore[method-assign]
    assert not watch.held
    assert len(asked) <= 1, "once, at most, in the moment in which it began to wait"


@pytest.mark.parametrize(
    "content", [b"\xff\xfe", b"[1]\n{}\n[[[", b'["a", "b", "c"]\n', b"\0" * 3 * LOG_BYTES]
)
async def test_a_damaged_log_is_passed_over(workspace: Path, content: bytes) -> None:
    (workspace / ".pilothouse" / LOOP_LOG).write_bytes(content)
    assert read_held(workspace) == []


def test_a_log_that_leads_elsewhere_is_neither_read_nor_written(workspace: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text('["a", 1, 1, "x"]\n')
    (workspace / ".pilothouse" / LOOP_LOG).symlink_to(elsewhere)
    LoopWatch(workspace)._note(Held("now", 1.0, 1.0, ("f",)))
    assert read_held(workspace) == []
    assert elsewhere.read_text() == '["a", 1, 1, "x"]\n'


def test_nothing_is_written_where_the_data_directory_leads_elsewhere(workspace: Path, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / ".pilothouse").symlink_to(workspace / ".pilothouse")
    LoopWatch(folder)._note(Held("now", 1.0, 1.0, ("f",)))
    assert list((workspace / ".pilothouse").iterdir()) == []


STUBBORN = """
import asyncio, signal, sys, threading, time
from app.commands import watchdog
watchdog.END_S = watchdog.EndGuard.__init__.__defaults__[0]
watchdog.EndGuard.__init__.__defaults__ = (0.3, watchdog.EndGuard.__init__.__defaults__[1])
asked = asyncio.Event()
async def main():
    with watchdog.ending_on((signal.SIGTERM,), lambda number: {reaction}):
        print("ready", flush=True)
        {body}
asyncio.run(main())
"""


def ended(body: str, reaction: str = "None") -> int:
    """The exit code of a program that is asked to end."""
    program = subprocess.Popen(
        [sys.executable, "-c", STUBBORN.format(body=body, reaction=reaction)],
        stdout=subprocess.PIPE,
        cwd=REPOSITORY,
    )
    try:
        assert program.stdout is not None
        assert program.stdout.readline() == b"ready\n"
        program.send_signal(signal.SIGTERM)
        return program.wait(PATIENCE_S)
    finally:
        program.kill()
        program.wait()
        assert program.stdout is not None
        program.stdout.close()


@pytest.mark.parametrize(
    "body",
    [
        "while True: pass",
        "time.sleep(3600)",
        "await asyncio.sleep(3600)",
        "threading.Thread(target=time.sleep, args=(3600,)).start(); await asked.wait()",
        "await asyncio.to_thread(time.sleep, 3600)",
    ],
)
def test_a_program_that_does_not_end_when_it_is_asked_is_ended_by_force(body: str) -> None:
    assert ended(body, "asked.set()") == 128 + signal.SIGTERM


def test_a_program_that_ends_in_time_has_its_own_exit_code() -> None:
    assert ended("await asyncio.sleep(3600)", "sys.exit(7)") == 7


# ------------------------------------------------------------------ work in threads


async def test_work_in_a_thread_gives_and_raises_what_it_does() -> None:
    assert await in_thread(lambda a, b: a + b, 2, b=3) == 5
    with pytest.raises(ZeroDivisionError):
        await in_thread(lambda: 1 / 0)


async def test_work_in_a_thread_is_cut_off_when_it_is_cancelled() -> None:
    begun, raised = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def endless() -> None:
        try:
            loop.call_soon_threadsafe(begun.set)
            while True:
                pass
        except CutOffError:
            loop.call_soon_threadsafe(raised.set)
            raise

    task = asyncio.ensure_future(in_thread(endless))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    async with asyncio.timeout(PATIENCE_S):
        await raised.wait()


async def test_the_thread_of_a_slice_that_was_cut_off_is_used_no_more() -> None:
    def endless() -> None:
        while True:
            pass

    for _ in range(20):
        current = Slice(endless)
        worker = current._worker
        current.cut_off()
        async with asyncio.timeout(PATIENCE_S):
            await current.ended()
        assert current.cut
        assert await in_thread(os.getpid) == os.getpid()
        assert Slice(lambda: None)._worker is not worker
