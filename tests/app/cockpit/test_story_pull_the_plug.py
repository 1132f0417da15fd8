"""Story S4 of the steering spec, "Pull the plug": three busy agents, and everything is killed at once."""

from __future__ import annotations

import asyncio
import json
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from tmux_terminal import NEEDS_TMUX, ROOT, Terminal

from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.agents import RunState
from engine.core.fold import fold
from engine.core.ports import SystemClock
from engine.core.store.sqlite import SqliteJournal
from tests.engine.agent.engine_flight import Flight, act, journal_holds_together
from tests.patience import PATIENCE_S
from tests.trusting import trust_folder

pytestmark = [*NEEDS_TMUX, pytest.mark.slow]

PUSH = """import sys, urllib.request
open("release.txt", "a").write("pushed\\n")
urllib.request.urlopen(urllib.request.Request(sys.argv[1], data=b"release"), timeout=100).read()
"""
LONG = """import time
for n in range(1000):
    open("long.log", "a").write(f"{n}\\n")
    time.sleep(0.1)
"""


class Remote(ThreadingHTTPServer):
    """Takes pushes and answers none: whoever pushes waits."""

    daemon_threads = True

    def __init__(self) -> None:
        self.pushes: list[bytes] = []
        self.came = threading.Event()
        self.over = threading.Event()
        super().__init__(("127.0.0.1", 0), _Pushed)


class _Pushed(BaseHTTPRequestHandler):
    server: Remote

    def do_POST(self) -> None:
        self.server.pushes.append(self.rfile.read(int(self.headers["content-length"])))
        self.server.came.set()
        self.server.over.wait()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class' name
        pass


@contextmanager
def remote() -> Iterator[Remote]:
    server = Remote()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server
    finally:
        server.over.set()
        server.shutdown()
        server.server_close()


@contextmanager
def silent_model(home: Path) -> Iterator[str]:
    """A model that takes every question and answers none; its address."""
    script = home / "script.json"
    script.write_text(json.dumps([{"silent": True}]))
    command = [sys.executable, "-m", "tests.messages_server", str(script)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield server.stdout.readline().strip().partition("=")[2]
        finally:
            server.kill()


async def prepared(workspace: Path, url: str) -> tuple[str, str]:
    """Two paused agents with plans; the first step of the one that pushes, and its step with a breakpoint."""
    flight = Flight(workspace, SystemClock())
    await flight.open()
    (workspace / "sandbox" / "long.py").write_text(LONG)
    (workspace / "sandbox" / "push.py").write_text(PUSH)
    await flight.do(cmd.CreateAgent, agent="worker")
    flight.agent = "worker"
    await flight.plan(act("run", command="python long.py"))
    await flight.do(cmd.CreateAgent, agent="pusher")
    flight.agent = "pusher"
    edit = "import os; open('a.txt', 'w').write('1'); os.rename('notes.txt', 'old.txt'); os.mkdir('made')"
    first, *_, last = await flight.plan(
        act("write", path="notes.txt", content="notes"),
        act("run", command=["python", "-c", edit]),
        act("run", command=["python", "push.py", url]),
        act("write", path="done.txt", content="done"),
    )
    await flight.do(cmd.SetBreakpoint, step=last)
    await flight.engine.close()
    return first, last


def files(workspace: Path) -> dict[str, bytes]:
    """What stands in the sandbox, by path."""
    sandbox = workspace / "sandbox"
    found = [path for path in sandbox.rglob("*") if not path.relative_to(sandbox).parts[0].startswith(".")]
    return {str(one.relative_to(sandbox)): one.read_bytes() if one.is_file() else b"/" for one in found}


def enter(terminal: Terminal, line: str) -> None:
    terminal.keys(":")
    terminal.type(line)
    terminal.keys("Enter")


def enter_half(terminal: Terminal, workspace: Path) -> None:
    """Type half a line, and wait until it is kept."""
    desk = workspace / ".pilothouse" / "desk"
    terminal.keys(":")
    terminal.type("goal half a li")
    terminal.until(lambda: "half a li" in desk.read_text(), "the half-typed line is kept")


def clear_line(terminal: Terminal) -> None:
    """Empty the command bar."""
    terminal.keys(":")
    terminal.keys("C-u")
    terminal.until(lambda: "half a li" not in terminal.screen, "an empty line")


def tear_the_tail(workspace: Path) -> None:
    """Let the last record be half written."""
    with (workspace / ".pilothouse" / "journal.db-wal").open("r+b") as wal:
        wal.truncate(wal.seek(0, os.SEEK_END) - 100)


def test_after_the_plug_was_pulled_nothing_is_lost_and_nothing_is_repeated(
    terminal: Terminal, tmp_path: Path
) -> None:
    workspace = tmp_path / "ws"
    workspace.mkdir()
    (workspace / "pilothouse.toml").write_text('[sandbox]\nnetwork = "on"\n')
    with remote() as pushed, silent_model(tmp_path) as url:
        first, last = asyncio.run(prepared(workspace, f"http://127.0.0.1:{pushed.server_port}/"))
        trust_folder(workspace, terminal.home)
        before = files(workspace)
        terminal.environment = {"ANTHROPIC_BASE_URL": url, "PILOTHOUSE_MODEL": "claude-sonnet-5-5"}
        terminal.fly(f"--workspace {workspace}")
        terminal.shows("push.py", "PAUSED")
        enter(terminal, "agent worker")
        enter(terminal, "run")
        log = workspace / "sandbox" / "long.log"
        terminal.until(lambda: log.exists() and log.read_text(), "the long command")
        enter(terminal, "agent pusher")
        terminal.shows("push.py")
        enter(terminal, "run")
        terminal.until(pushed.came.is_set, "the push")
        enter(terminal, "agent_create bdi_agent thinker")
        terminal.shows("agent thinker created")
        enter(terminal, "agent thinker")
        enter(terminal, "goal think of a name for a ship that no one has thought of")
        enter(terminal, "run")
        terminal.shows("no answer yet")
        enter_half(terminal, workspace)
        time.sleep(random.uniform(0, 0.2))
        os.kill(terminal.pid, signal.SIGKILL)
        assert terminal.ends() == 137
        terminal.tmux("kill-server")
        tear_the_tail(workspace)

        terminal.fly(f"--workspace {workspace}")
        terminal.shows("goal half a li", "thinker", "PAUSED", "pusher    asks you", "worker    asks you")
        terminal.shows("the end of the journal was torn")
        terminal.keys("Escape")
        time.sleep(0.3)  # an escape and a key at once may be another key
        terminal.keys("n")
        terminal.shows("Manual intervention", "push.py", "whether it took effect is unknown")
        terminal.closes("still waits", "● break")
        assert pushed.pushes == [b"release"], "a push is never repeated by itself"
        clear_line(terminal)
        enter(terminal, f"rewind {first}")
        terminal.shows("Rewind pusher to event", "Cannot be undone", "push.py", "nothing has changed yet")
        assert files(workspace) != before
        terminal.keys("y")
        terminal.shows("rewound to event", "▷ s2 write notes.txt notes")
        assert files(workspace) == before, "the files are as they were, whatever programs did to them"
        terminal.keys("Escape")
        terminal.keys("C-q")
        assert terminal.ends() == 0
        assert pushed.pushes == [b"release"], "nothing was repeated by itself"
    asyncio.run(told_of(workspace, last))
    a_flipped_byte_is_named(workspace)


async def told_of(workspace: Path, breakpoint: str) -> None:  # noqa: A002
    """Hold the journal to the story: each action under way is unknown, and what the operator set is there."""
    await journal_holds_together(workspace)
    store = await SqliteJournal.open(workspace, clock=SystemClock(), read_only=True)
    try:
        streams = {name: await store.read(name) for name in ("worker", "pusher", "thinker")}
    finally:
        await store.close()
    said = {name: [ev.payload_of(event) for event in events] for name, events in streams.items()}
    for name, command in (("worker", "long.py"), ("pusher", "push.py"), ("thinker", "")):
        asked = {one.action: str(one.args) for one in said[name] if isinstance(one, ev.ActionRequested)}
        unknown = [asked[one.action] for one in said[name] if isinstance(one, ev.ActionOutcomeUnknown)]
        assert len(unknown) == (1 if command else 0)
        assert all(command in one for one in unknown)
    state = fold(streams["pusher"])
    assert breakpoint in state.breakpoints
    assert state.run is RunState.PAUSED
    (rewound,) = [event for event in streams["pusher"] if event.kind == ev.Rewound.kind]
    assert rewound.actor.startswith("operator:")


def a_flipped_byte_is_named(workspace: Path) -> None:
    """The chain is verified without the program's engine, and finds one changed byte."""
    verify = [
        sys.executable,
        "-m",
        "app.cli.main",
        "sessions",
        "verify",
        "--workspace",
        str(workspace),
        "--json",
    ]
    whole = subprocess.run(verify, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE_S)
    assert json.loads(whole.stdout)["ok"] is True
    journal = workspace / ".pilothouse" / "journal.db"
    content = bytearray(journal.read_bytes())
    content[content.index(b"push.py")] ^= 1
    journal.write_bytes(content)
    found = subprocess.run(verify, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE_S)
    answer = json.loads(found.stdout)
    assert (found.returncode, answer["ok"]) != (0, True)
    assert re.fullmatch(r"(worker|pusher):\d+", answer["first_bad"])
