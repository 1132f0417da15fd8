"""Background jobs are held, limited and ended as every command is: in every tier, as root and as a user."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.sandbox.policy import Tier
from tests.engine.sandbox.jail_runs import USERS, Room, environment, ids, need, python_of, room
from tests.patience import PATIENCE_S

STUBBORN = """
import os, signal, time
for n in range(5):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            open(f"daemon{n}", "w").close()
            if n == 4: os.kill(os.getpid(), signal.SIGSTOP)
        time.sleep(600)
while not all(os.path.exists(f"daemon{n}") for n in range(5)): time.sleep(0.01)
print("all up", flush=True)
time.sleep(600)
"""
"""A program with daemons that forked twice, left its session and ignore SIGTERM, and one that is stopped."""


class Life:
    """A process that lives with jobs, and what it says."""

    def __init__(self, place: Room, tier: Tier, *commands: list[str], then: str, **policy: Any) -> None:
        self._root = place.root
        self.process = subprocess.Popen(
            [python_of(place.user), str(Path(__file__).with_name("job_driver.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment(),
            cwd="/",
            **ids(place.user),
        )
        asked = {
            "root": str(place.root),
            "tier": tier,
            "commands": commands,
            "then": then,
            "policy": {"grace_s": 0.2, **policy},
        }
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(asked) + "\n")
        self.process.stdin.flush()

    def said(self) -> dict[str, Any]:
        """The next thing it says."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, "it ended early"
        answer: dict[str, Any] = json.loads(line)
        return answer

    def alive(self) -> list[int]:
        """Processes that work below the root."""
        found = []
        for entry in Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and (entry / "cwd").readlink().is_relative_to(self._root):
                    found.append(int(entry.name))
            except OSError:
                continue
        return found

    def end(self) -> None:
        self.process.kill()
        self.process.communicate()


@pytest.fixture(params=USERS)
def place(request: pytest.FixtureRequest) -> Iterator[Room]:
    with room(request.param) as made:
        yield made


@pytest.fixture
def own_place() -> Iterator[Room]:
    with room("this user") as made:
        yield made


@pytest.fixture(params=[Tier.PATHS, Tier.KERNEL, Tier.FULL])
def tier(request: pytest.FixtureRequest) -> Tier:
    if request.param is not Tier.PATHS:
        need(request.param)
    return Tier(request.param)


@pytest.fixture
def lives() -> Iterator[list[Life]]:
    made: list[Life] = []
    yield made
    for life in made:
        life.end()


def python(code: str) -> list[str]:
    return ["PYTHON", "-c", code]


def ends(told: list[list[Any]]) -> dict[str, tuple[str, int | None, str]]:
    return {
        job: (ended, code, words) for kind, job, ended, code, words in (t for t in told if t[0] == "ended")
    }


def test_a_job_ends_whole_when_it_is_closed(place: Room, tier: Tier, lives: list[Life]) -> None:
    lives.append(life := Life(place, tier, python(STUBBORN), python(STUBBORN), then="close when up"))
    for _ in range(2):
        assert life.said() == {"up": True, "tier": tier, "problem": ""}
    life.said()
    last = life.said()
    assert life.alive() == []
    assert last["left"] == []
    kinds = sorted(told[0] for told in last["told"])
    assert kinds == ["ended", "ended", "output", "output", "started", "started"]
    assert {end[:2] for end in ends(last["told"]).values()} == {("cancelled", None)}


def test_a_killed_cockpit_leaves_no_process_of_a_job(place: Room, tier: Tier, lives: list[Life]) -> None:
    lives.append(life := Life(place, tier, python(STUBBORN), then="sleep"))
    assert life.said()["up"]
    until = time.monotonic() + PATIENCE_S
    while not (place.root / "daemon4").exists():
        assert time.monotonic() < until
        time.sleep(0.01)
    assert len(life.alive()) >= 10
    life.process.send_signal(signal.SIGKILL)
    while life.alive():
        assert time.monotonic() < until, life.alive()
        time.sleep(0.01)


def test_every_end_is_told_with_its_reason(own_place: Room, tier: Tier, lives: list[Life]) -> None:
    memory = "import mmap, time\nm = mmap.mmap(-1, 300 << 20)\nfor p in range(0, 300 << 20, 4096): m[p] = 1\n"
    daemon = "import os, time\nif os.fork() == 0: os.setsid(); time.sleep(600)"
    commands = [
        python("import sys; print('so be it'); sys.exit(3)"),
        ["/nonexistent/program"],
        python("import os, signal, time; time.sleep(0.5); os.kill(os.getpid(), 11)"),
        python(memory + "time.sleep(600)"),
        python("import sys, time; print('early', file=sys.stderr, flush=True); time.sleep(600)"),
        python(daemon),
    ]
    lives.append(
        life := Life(own_place, tier, *commands, then="wait", job_s=2.5, memory_bytes=150 << 20, jobs=6)
    )
    said = [life.said() for _ in commands]
    assert [one["up"] for one in said] == [True, False, True, True, True, True]
    assert said[1]["problem"] == "No such file or directory"
    told = life.said()["told"]
    found = ends(told)
    assert found["j1"][:2] == ("exit", 3)
    assert "j2" not in found
    assert found["j3"][:2] == ("signal", -11)
    assert "SIGSEGV (11)" in found["j3"][2]
    assert found["j4"][0] == "memory"
    assert found["j5"][0] == "timeout"
    assert "as long as a job may run" in found["j5"][2]
    assert found["j6"][:2] == ("exit", 0)
    assert "what it left running was ended too (1)" in found["j6"][2]
    assert ["output", "j5", "early\n", 6] in told
    assert life.alive() == []


def test_nothing_gets_out_of_a_job(place: Room, tier: Tier, lives: list[Life]) -> None:
    if tier is Tier.PATHS:
        pytest.skip("PATHS confines no command")
    secret = place.base / "secret"
    secret.write_text("the secret")
    tries = f"""
import os, socket
def attempt(name, work):
    try: work(); print(name, "through")
    except OSError as error: print(name, "refused")
attempt("read", lambda: open({str(secret)!r}).read())
attempt("write", lambda: open({str(place.base / "new")!r}, "w"))
attempt("stop the supervisor", lambda: os.kill(os.getppid(), 19))
attempt("network", lambda: socket.socket())
"""
    lives.append(life := Life(place, tier, python(tries), then="wait"))
    life.said()
    (text,) = [t[2] for t in life.said()["told"] if t[0] == "output"]
    assert "through" not in text, text
    assert not (place.base / "new").exists()
