"""Lives with background jobs in a jail as the cockpit does; a script for `test_jobs`.

Reads a JSON object from standard input and prints one JSON object a line. It may run as another user with
another Python, so it imports nothing but the sandbox.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from engine.sandbox.jail import Launch
from engine.sandbox.jobs import BackgroundJob, Sessions
from engine.sandbox.policy import SandboxPolicy, Tier
from engine.sandbox.process import Launcher
from engine.sandbox.programs import BASE_PYTHON, child_environment
from engine.sandbox.tier import JailRefusal, best_jail


class Watcher:
    """Keeps what is told of jobs."""

    def __init__(self) -> None:
        self.told: list[list[Any]] = []

    def job_started(self, job: str, command: str, action: str) -> None:
        self.told.append(["started", job])

    def job_output(self, job: str, stream: str, text: str, skipped: int) -> None:
        self.told.append(["output", job, text[-200:], len(text) + skipped])

    def job_ended(self, job: str, ended: str, code: int | None, message: str) -> None:
        self.told.append(["ended", job, ended, code, message])

    def typed(self, action: str, text: str | None) -> None:
        raise NotImplementedError

    def resized(self, action: str, rows: int, columns: int) -> None:
        raise NotImplementedError


def say(**facts: Any) -> None:
    print(json.dumps(facts), flush=True)


async def main() -> None:
    """Start a job for each script, one after the other; then do what is asked to them."""
    asked = json.loads(sys.stdin.readline())
    root = Path(asked["root"])
    policy = SandboxPolicy().changed({"accept_paths": asked["tier"] == "PATHS", **asked["policy"]})
    jail = best_jail(policy, at_most=Tier(asked["tier"]))
    assert not isinstance(jail, JailRefusal), jail.message
    for name in (policy.home, policy.tmp):
        (root / name).mkdir(exist_ok=True)
    jobs, watcher, started = Sessions(), Watcher(), list[BackgroundJob]()
    launcher = Launcher(root, policy)
    for number, argv in enumerate(asked["commands"], 1):
        words = [str(BASE_PYTHON) if word == "PYTHON" else word for word in argv]
        launch = Launch(words[0], tuple(words), child_environment(root, policy, None))
        cwd = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
        job = await jobs.start_job(
            "pilot",
            " ".join(argv),
            launch,
            cwd,
            launcher=launcher,
            jail=jail,
            action=f"a{number}",
            observer=watcher,
        )
        os.close(cwd)
        started.append(job)
        say(up=job.up.is_set(), tier=jail.tier, problem=job.result.problem if job.result else "")
    if asked["then"] == "wait":
        for job in started:
            await job.over.wait()
    elif asked["then"] == "close when up":
        for job in started:
            await job.wait("all up", 30)
        begun = time.monotonic()
        await jobs.close("pilot")
        say(took=time.monotonic() - begun)
    else:
        await asyncio.sleep(600)
    say(told=watcher.told, left=[job.id for job in jobs.running_jobs("pilot")])


asyncio.run(main())
