"""Servers that do what no server should: each has a clear state, nothing hangs, and nothing is left of it."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from mcp_flight import PLAIN, SERVERS, Make

import engine.tools.mcp.server as servers
from engine.core.ports import SystemClock
from engine.tools.mcp.health import CallStatus, ServerState
from engine.tools.mcp.process import ProgramEnvironment
from engine.tools.mcp.server import Server
from engine.tools.mcp.settings import ServerSettings, read
from engine.tools.mcp.tool import McpTool
from engine.tools.mcp.workspace_servers import Servers
from engine.tools.registry import ToolRegistry
from tests.patience import PATIENCE_S

ODD = SERVERS / "odd.py"


@pytest.fixture
def odd(make: Make) -> Callable[[str], Server]:
    def begun(way: str) -> Server:
        return make(
            settings=ServerSettings("odd", command=sys.executable, args=(str(ODD), way), timeout_s=20)
        )

    return begun


def running(way: str) -> list[str]:
    """Processes of the server that are there."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if str(ODD).encode() in words and way.encode() in words:
                found.append(entry.name)
    return found


async def over(server: Server, way: str) -> None:
    async with asyncio.timeout(PATIENCE_S):
        await server.close()
    assert server.view.state is ServerState.STOPPED
    assert not running(way)


async def test_rubbish_between_answers_is_passed_over(odd: Callable[[str], Server]) -> None:
    server = odd("rubbish")
    assert (await server.settled()).state is ServerState.OK
    assert [(await server.call("do", {})).text for _ in range(2)] == ["done 1", "done 2"]
    await over(server, "rubbish")


async def test_a_line_without_an_end_ends_the_handshake(odd: Callable[[str], Server]) -> None:
    server = odd("blob")
    view = await server.settled()
    assert view.state is ServerState.DOWN
    assert view.error
    await over(server, "blob")


async def test_one_that_dies_at_the_third_call_is_connected_once_more(odd: Callable[[str], Server]) -> None:
    server = odd("third")
    outcomes = [(await server.call("do", {})).outcome for _ in range(6)]
    assert outcomes == [CallStatus.OK, CallStatus.OK, CallStatus.CRASHED] * 2
    assert (await server.settled()).state is ServerState.DOWN
    await over(server, "third")


async def test_a_flood_of_standard_error_keeps_only_its_end(odd: Callable[[str], Server]) -> None:
    server = odd("flood")
    assert (await server.call("do", {})).ok
    assert (await server.call("do", {})).ok
    log = server.view.log
    assert len(log) <= servers.LOG_LINES
    assert all(len(line) <= 500 and line.isprintable() for line in log)
    await over(server, "flood")


async def test_five_hundred_tools_are_listed(odd: Callable[[str], Server]) -> None:
    server = odd("many")
    assert len((await server.settled()).tools) == 500
    assert len(McpTool(server).commands) == 500
    assert (await server.call("tool_499", {})).ok
    await over(server, "many")


async def test_tools_with_names_that_no_tool_may_have_are_left_out(odd: Callable[[str], Server]) -> None:
    server = odd("names")
    view = await server.settled()
    assert view.tools == ("fine", "y" * 128)
    assert all(len(f"odd__{name}") <= 64 for name in McpTool(server).commands)
    assert view.left_out == 7
    assert "7 tools left out" in view.line
    await over(server, "names")


async def test_a_result_of_five_megabytes_is_cut(odd: Callable[[str], Server]) -> None:
    server = odd("huge")
    answer = await server.call("do", {})
    assert answer.ok
    assert len(answer.text) <= 25_000
    assert "cut: 4,975," in answer.text[-60:]
    assert (await server.call("do", {})).ok
    await over(server, "huge")


async def test_two_servers_with_a_tool_of_the_same_name_are_told_apart(around: ProgramEnvironment) -> None:
    entries = {name: {"command": sys.executable, "args": [str(PLAIN)]} for name in ("one", "two")}
    fleet = Servers(read(json.dumps(entries)), around, SystemClock())
    registry = ToolRegistry()
    fleet.register(registry)
    fleet.begin()
    try:
        await fleet.settled()
        pids = {(await fleet.get(name).call("pid", {})).text for name in entries}
        assert len(pids) == 2
        names = [schema["name"] for schema in registry.schemas()]
        assert {"one__echo", "two__echo"} <= set(names)
        assert len(names) == len(set(names))
    finally:
        await fleet.close()


async def test_a_connection_over_http_that_is_dropped_amid_an_answer_is_a_crash(
    make: Make, tmp_path: Path
) -> None:
    port = tmp_path / "port"
    run = subprocess.Popen([sys.executable, str(SERVERS / "sdk.py"), str(port), "hunter2"])
    drops = False

    async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        theirs, ours = await asyncio.open_connection("127.0.0.1", int(port.read_text()))

        async def copy(source: asyncio.StreamReader, target: asyncio.StreamWriter, *, answers: bool) -> None:
            try:
                while piece := await source.read(65_536):
                    if answers and drops:
                        target.write(piece[: len(piece) // 2])
                        break
                    target.write(piece)
                    await target.drain()
            except ConnectionError:
                pass
            finally:
                writer.close()
                ours.close()

        await asyncio.gather(
            copy(reader, ours, answers=False), copy(theirs, writer, answers=True), return_exceptions=True
        )

    try:
        async with asyncio.timeout(PATIENCE_S):
            while not port.exists():
                await asyncio.sleep(0.01)
            between = await asyncio.start_server(pass_on, "127.0.0.1", 0)
            url = f"http://127.0.0.1:{between.sockets[0].getsockname()[1]}/mcp"
            named = {"Authorization": "Bearer ${PILOT_SECRET}"}
            server = make(settings=ServerSettings("afar", url=url, headers=named, timeout_s=5))
            assert (await server.settled()).state is ServerState.OK
            assert (await server.call("a", {})).ok
            drops = True
            answer = await server.call("a", {})
            assert answer.outcome in (CallStatus.CRASHED, CallStatus.TIMEOUT)
            assert answer.text
            drops = False
            view = await server.settled()
            assert view.state is ServerState.OK, view.error
            assert (await server.call("a", {})).ok
            await server.close()
            between.close()
    finally:
        run.kill()
        run.wait()
