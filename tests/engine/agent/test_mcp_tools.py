"""Tools of MCP servers are called as all others: through the gate and the pipeline, on record, and replayed.

That the journal replays is checked by the fixture that opened the flight.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from engine_flight import Flight

from app.commands.command import Context, GrammarError
from app.commands.registry import read_line
from engine.agent.shared import EngineConfig
from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.actions import ErrorCode, ResultStatus
from engine.tools.mcp.health import ServerState

PLAIN = Path(__file__).parents[1] / "tools/mcp/servers" / "plain.py"


def ask(command: str, **args: Any) -> dict[str, Any]:
    return {"type": "EXECUTE_TOOL", "params": {"tool_id": "plain", "command": command, "args": args}}


def settings(workspace: Path, **more: Any) -> None:
    entry = {"command": sys.executable, "args": [str(PLAIN)]}
    (workspace / "mcp.json").write_text(json.dumps({"plain": entry, **more}))


async def test_calls_of_a_server_are_actions_and_replay(
    tmp_path: Path, open_flight: Callable[..., Any]
) -> None:
    settings(tmp_path, gone={"command": "no-such-program"}, memory={"command": "x"}, wrong={"commnd": 1})
    flight: Flight = await open_flight(tmp_path, config=EngineConfig(home=tmp_path / "home"))
    servers = flight.engine.servers
    assert servers is not None
    for name in ("plain", "gone"):
        assert (await flight.engine.submit(cmd.TrustServer(server=name))).ok
    views = {view.name: view.state for view in await servers.settled()}
    assert (views["plain"], views["gone"]) == (ServerState.OK, ServerState.DOWN)
    told = "\n".join(flight.engine.health.servers)
    assert "mcp.json: wrong: needs either command or url" in told
    assert "memory" not in views
    assert "mcp.json: memory: a tool named 'memory' is registered already" in told
    assert "gone: down" in told

    await flight.plan(ask("echo", text="hello"), ask("fail"), ask("crash"))
    await flight.do(cmd.Step)
    await flight.until(lambda s: s.actions == 1 and not s.acting)
    assert "plain has no command 'ecko'" in await flight.refused(cmd.CallTool, tool="plain", command="ecko")
    await flight.do(cmd.CallTool, tool="plain", command="echo", args={"text": "mine"})
    await flight.until(lambda s: not s.busy and not s.requests)
    refused = await flight.refused(cmd.CallTool, tool="plain", command="echo", args={"txt": "x"})
    assert "needs the argument 'text'" in refused

    ended = await flight.payloads(ev.ActionFinished)
    assert [said.result["content"] for said in ended] == ["hello", "mine"]
    started = await flight.payloads(ev.ActionStarted)
    assert [said.mutates for said in started] == [False, False], "it says of itself that it only reads"

    await flight.reopen()
    servers = flight.engine.servers
    assert servers is not None
    await servers.settled()
    await flight.do(cmd.CallTool, tool="plain", command="crash")
    state = await flight.until(lambda s: not s.busy and not s.requests)
    last = (await flight.payloads(ev.ActionFinished))[-1]
    assert (last.status, last.code, last.result["outcome"]) == (
        ResultStatus.FAILURE,
        ErrorCode.NETWORK,
        "crashed",
    )
    assert (await flight.payloads(ev.ActionStarted))[-1].mutates
    assert state.run


@pytest.mark.parametrize("spelling", ["plain.echo", "plain:echo", "mcp__plain__echo"])
def test_the_operator_calls_a_server_from_the_bar(spelling: str) -> None:
    said = read_line(f'! {spelling} {{"text": "a b"}}', Context(agent="pilot")).sends
    assert said == cmd.CallTool(agent="pilot", tool="plain", command="echo", args={"text": "a b"})
    for line in (f"! {spelling} text", f"! {spelling} [1]"):
        with pytest.raises(GrammarError, match="the arguments of"):
            read_line(line, Context(agent="pilot"))


async def test_closing_the_workspace_ends_its_servers(
    tmp_path: Path, open_flight: Callable[..., Any]
) -> None:
    settings(tmp_path)
    flight: Flight = await open_flight(tmp_path)
    servers = flight.engine.servers
    assert servers is not None
    await flight.engine.submit(cmd.TrustServer(server="plain"))
    pid = int((await servers.get("plain").call("pid", {})).text)
    await flight.reopen()
    assert not Path(f"/proc/{pid}").exists()
