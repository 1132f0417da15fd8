"""Background jobs in the cockpit: begun, watched and ended from the command bar."""

from __future__ import annotations

import re
import socket
from pathlib import Path

from flight import Flight, cockpit

from app.commands.settings import Settings
from engine.core import events as ev
from tests.trusting import write_trusted
from widgets.base.dialog import ConfirmDialog

NETWORK_ON = '[sandbox]\nnetwork = "on"\n'


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def job(flight: Flight, line: str) -> str:
    """Start a job by the command bar; its name once it runs."""
    before = set(flight.state.jobs)
    await flight.type(f"! start {line}")
    await flight.until(lambda: set(flight.state.jobs) - before and not flight.state.action, "the job")
    return next(name for name in flight.state.jobs if name not in before)


async def test_a_server_is_started_watched_and_stopped(tmp_path: Path) -> None:
    workspace = tmp_path / "ws"
    workspace.mkdir()
    write_trusted(workspace / "pilothouse.toml", NETWORK_ON)
    settings = Settings.load(workspace)
    async with cockpit(workspace, settings=settings, size=(160, 45)) as flight:
        port = free_port()
        name = await job(flight, f"python -u -m http.server {port} --bind 127.0.0.1")
        await flight.until(lambda: f"{name}│ Serving HTTP on 127.0.0.1" in flight.session_text, "its output")
        await flight.shows("1 job", f"❯ {name}│ python -u -m http.server {port}")
        ask = f"import urllib.request as u; print(u.urlopen('http://127.0.0.1:{port}/').status)"
        await flight.type(f'! run python -c "{ask}"')
        await flight.until(lambda: "200" in flight.session_text.splitlines(), "an answer of the server")
        await flight.until(lambda: f"{name}│ 127.0.0.1 - - " in flight.session_text, "the server's log")
        await flight.type("jobs")
        await flight.until(lambda: f"{name} | running for " in flight.session_text, "the list")
        await flight.type(f"stop_job {name}")
        await flight.until(lambda: f"{name}│ stopped after " in flight.session_text, "its end")
        assert not flight.state.running_jobs
        assert not re.search(r"\b1 job\b", flight.text)
        (said,) = await flight.journal(ev.JobEnded)
        assert said.ended == "cancelled"
        assert flight.memory is not None
        assert flight.state.beliefs[f"job.{name}"].value == said.message


async def test_lines_of_two_jobs_and_a_command_are_told_apart(flight: Flight) -> None:
    flight.script(
        "drip.py",
        "import sys, time\nfor n in range(10**6):\n"
        "    print(sys.argv[1] + str(n), end=sys.argv[2], flush=True); time.sleep(0.03)\n",
    )
    first = await job(flight, "python drip.py a .")
    second = await job(flight, "python drip.py b '\n'")
    await flight.type("! run python drip.py c .")
    await flight.until(lambda: "c1." in flight.session_text.replace("\n", ""), "all three")
    await flight.until(lambda: flight.session_text.count(f"{second}│ b") > 4, "more of it")
    await flight.press("escape", "full_stop")
    await flight.until(lambda: not flight.state.acting and not flight.state.running_jobs, "the end of all")
    own = {first: "a", second: "b"}
    for line in flight.session_text.splitlines():
        source, _, text = line.rpartition("│ ")
        if re.fullmatch(r"(?:[abc]\d+\.?)+", text):
            assert {mark for mark in text if mark.isalpha()} == {own.get(source, "c")}, line


async def test_leaving_while_a_job_runs_asks_first(flight: Flight) -> None:
    name = await job(flight, "python -c 'import time; time.sleep(600)'")
    await flight.press("escape", "ctrl+q")
    await flight.dialog(ConfirmDialog)
    await flight.shows("Leave while background jobs run?", f"job ends with the session: {name}")
    await flight.press("n")
    await flight.no_dialog()
    assert flight.state.running_jobs


async def test_what_a_job_prints_is_inert(flight: Flight) -> None:
    flight.script(
        "bad.py",
        "import os, time\n"
        "os.write(1, b'\\x1b]52;c;aGk=\\x07\\x1b[2Jsafe\\x1b[31')\ntime.sleep(0.5)\n"
        "os.write(2, b'mred\\x9b2J\\n[@click=app.quit]here[/]\\n')\n",
    )
    name = await job(flight, "python bad.py")
    await flight.until(lambda: not flight.state.running_jobs, "its end")
    await flight.until(lambda: f"{name}│ exited 0" in flight.session_text, "the note")
    assert f"{name}│ safe" in flight.session_text
    assert f"{name}│ [@click=app.quit]here[/]" in flight.session_text
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f]", flight.session_text)
