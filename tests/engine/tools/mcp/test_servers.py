"""MCP servers: started, asked, watched, connected again, and gone in the end."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from mcp_flight import PLAIN, SERVERS, Make, alive

import engine.tools.mcp.process as process
import engine.tools.mcp.server as servers
from engine.core.ports import SystemClock
from engine.tools.mcp.health import CallStatus, ServerState, ServerView
from engine.tools.mcp.process import ProgramEnvironment
from engine.tools.mcp.settings import ServerSettings, read
from engine.tools.mcp.workspace_servers import Servers
from tests.patience import PATIENCE_S


async def until(holds: Callable[[], object]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not holds():
            await asyncio.sleep(0.01)


async def test_what_can_come_of_a_call_is_told_apart(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """Line 44."""
    seen: list[ServerView] = []
    server = make(seen=seen)
    view = await server.settled()
    assert (view.state, view.error, view.server) == (ServerState.OK, "", "plain 1")
    assert view.tools[:3] == ("echo", "fail", "crash")
    assert len(view.tools) == 9, "the second page counts too"

    ok = await server.call("echo", {"text": "hi"})
    assert ok.ok
    assert ok.text == "hi"
    failed = await server.call("fail", {})
    assert (failed.outcome, failed.text) == (CallStatus.TOOL_FAILURE, "it does not work")
    wrong = await server.call("error", {})
    assert wrong.outcome is CallStatus.SERVER_ERROR
    assert "-32603: no luck" in wrong.text
    assert (await server.call("nothing", {})).outcome is CallStatus.UNKNOWN_TOOL
    assert (await server.call("slow", {}, 0.2)).outcome is CallStatus.TIMEOUT
    assert (await server.call("echo", {"text": "x"})).ok, "after a timeout it goes on"

    crashed = await server.call("crash", {})
    assert crashed.outcome is CallStatus.CRASHED
    assert crashed.text.endswith("it last said: going down")
    assert (await server.call("echo", {"text": "again"})).text == "again"
    assert server.view.restarts == 1
    assert ServerState.DOWN in [one.state for one in seen]

    monkeypatch.setattr(servers, "HANDSHAKE_S", 0.3)
    slow = make("slow")
    assert (await slow.settled()).state is ServerState.DOWN
    assert (await slow.call("echo", {})).outcome is CallStatus.SLOW_START


async def test_a_server_that_dies_again_at_once_stays_down(make: Make) -> None:
    server = make()
    await server.settled()
    for _ in range(2):
        assert (await server.call("crash", {})).outcome is CallStatus.CRASHED
    view = await server.settled()
    assert (view.state, view.restarts) == (ServerState.DOWN, 1)
    down = await server.call("echo", {"text": "x"})
    assert down.outcome is CallStatus.DOWN
    assert down.outcome.value == "MCP_DOWN"


async def test_what_an_agent_needs_of_servers_is_there_or_named(around: ProgramEnvironment) -> None:
    """Line 52, the servers' half: a required one that is down is told apart from one that lacks a tool."""
    entries = {
        "Plain": {"command": sys.executable, "args": [str(PLAIN)]},
        "gone": {"command": "no-such-program"},
    }
    fleet = Servers(read(json.dumps(entries)), around, SystemClock())
    fleet.begin()
    try:
        assert await fleet.lacks("plain", ["echo", "fail"]) == await fleet.lacks("plain") == ""
        assert await fleet.lacks("plain", ["echo", "fly"]) == "Plain has no tool fly"
        assert "no program 'no-such-program'" in await fleet.lacks("gone")
        assert await fleet.lacks("other") == "mcp.json names no server other"
        plain = fleet.get("plain")
        assert plain is not None
        assert (await plain.call("echo", {"text": "x"})).text == "x"
    finally:
        await fleet.close()


async def test_a_server_is_closed_in_the_midst_of_its_handshake(make: Make) -> None:
    server = make("slow")
    await until(lambda: server.view.held)
    await server.close()
    assert server.view.state is ServerState.STOPPED


async def test_a_result_is_cut_with_a_mark_and_a_call_can_be_cancelled(make: Make) -> None:
    server = make("noisy")
    long = await server.call("long", {})
    assert len(long.text) <= 25_000
    assert "cut: 35" in long.text[-60:]
    call = asyncio.create_task(server.call("slow", {}))
    await until(lambda: "asked" in server.view.log)
    call.cancel()
    await asyncio.gather(call, return_exceptions=True)
    assert call.cancelled()
    await until(lambda: "no longer wanted" in server.view.log)
    assert (await server.call("echo", {"text": "on"})).ok


async def test_its_environment_is_made_anew(make: Make) -> None:
    named = {"TOLD": "plainly", "GIVEN": "${PILOT_WANTED}"}
    server = make(settings=ServerSettings("plain", command=sys.executable, args=(str(PLAIN),), env=named))
    found = json.loads((await server.call("env", {})).text)
    assert found["TOLD"] == "plainly"
    assert found["GIVEN"] == "yes"
    assert "PILOT_SECRET" not in found
    lacking = make(settings=ServerSettings("other", command=sys.executable, env={"A": "${PILOT_NOT_SET}"}))
    assert (await lacking.settled()).error == "the environment variable PILOT_NOT_SET is not set"


async def test_a_server_in_the_jail_is_held(make: Make, around: ProgramEnvironment) -> None:
    outside = around.workspace / "secret"
    outside.write_text("nobody's business")
    reading = (
        "import contextlib\nwith contextlib.suppress(OSError):\n"
        "    open({!r}).read(); print('read it', file=sys.stderr)\n"
    )
    code = PLAIN.read_text().replace("\n\nmain()\n", f"\n\n{reading.format(str(outside))}main()\n")
    server = make(settings=ServerSettings("plain", command="/usr/bin/python3", args=("-c", code), jail=True))
    view = await server.settled()
    assert view.state is ServerState.OK, view.error
    assert view.held in ("FULL", "KERNEL")
    assert (await server.call("echo", {"text": "x"})).ok
    assert server.view.log == ()
    assert json.loads((await server.call("env", {})).text)["HOME"] == str(around.root / ".home")


async def test_a_program_that_the_jail_does_not_have_is_named(make: Make, around: ProgramEnvironment) -> None:
    program = around.workspace / "outside"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    server = make(settings=ServerSettings("plain", command=str(program), jail=True))
    assert (await server.settled()).error.startswith(f"the jail has no {program}, or not what it is run by")


async def test_whoever_does_not_go_is_made_to_with_all_it_started(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "CLOSE_S", 0.1)
    monkeypatch.setattr(process, "TERMINATE_S", 0.1)
    server = make("deaf")
    await server.settled()
    pid = int((await server.call("pid", {})).text)
    await until(lambda: server.view.log)
    child = int(server.view.log[0].split()[1])
    assert alive(pid)
    assert alive(child)
    await server.close()
    assert not alive(pid)
    assert not alive(child)
    assert server.view.state is ServerState.STOPPED


def test_a_server_dies_with_a_cockpit_that_is_killed(tmp_path: Path) -> None:
    script = (
        "import asyncio, os, sys\n"
        "from pathlib import Path\n"
        "from engine.core.ports import SystemClock\n"
        "from engine.tools.mcp.process import ProgramEnvironment\n"
        "from engine.tools.mcp.server import Server\n"
        "from engine.tools.mcp.settings import ServerSettings\n"
        "from engine.sandbox.policy import SandboxPolicy\n"
        "async def main():\n"
        "    here = Path(sys.argv[1])\n"
        "    around = ProgramEnvironment(here, here, SandboxPolicy(), os.environ)\n"
        "    settings = ServerSettings('plain', command=sys.executable, args=(sys.argv[2], 'deaf'))\n"
        "    server = Server(settings, around, SystemClock())\n"
        "    server.begin()\n"
        "    pid = (await server.call('pid', {})).text\n"
        "    while not server.view.log: await asyncio.sleep(0.01)\n"
        "    print(pid, server.view.log[0].split()[1], flush=True)\n"
        "    await asyncio.sleep(60)\n"
        "asyncio.run(main())\n"
    )
    run = subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path), str(PLAIN)], stdout=subprocess.PIPE, text=True
    )
    assert run.stdout is not None
    pids = [int(word) for word in run.stdout.readline().split()]
    run.send_signal(signal.SIGKILL)
    run.wait()
    run.stdout.close()
    asyncio.run(until(lambda: not any(alive(pid) for pid in pids)))
    assert len(pids) == 2


async def test_a_server_over_http(make: Make, around: ProgramEnvironment, tmp_path: Path) -> None:
    port = tmp_path / "port"
    run = subprocess.Popen([sys.executable, str(SERVERS / "sdk.py"), str(port), "hunter2"])
    try:
        await until(port.exists)
        url = f"http://127.0.0.1:{port.read_text()}/mcp"
        named = {"Authorization": "Bearer ${PILOT_SECRET}"}
        server = make(settings=ServerSettings("afar", url=url, headers=named))
        view = await server.settled()
        assert (view.state, view.tools, view.transport) == (ServerState.OK, ("a", "b"), "http"), view.error
        assert (await server.call("a", {})).text == "from afar"
        assert "hunter2" not in str(view)
        stranger = make(settings=ServerSettings("afar2", url=url))
        assert (await stranger.settled()).state is ServerState.DOWN
        assert (await server.call("b", {})).outcome is CallStatus.CRASHED
        assert (await server.settled()).state is ServerState.DOWN
    finally:
        run.kill()
        run.wait()
