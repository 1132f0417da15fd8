"""The tools of a specification reach its runs: functions, servers, global actions, one program alone."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

from crew_desk import returns, spec
from whole_crew import whole

from app.commands.command_runner import run_command_in as do_line
from engine.core import commands as cmd
from engine.crew.ontology.kinds import ErrorCode
from tests.messages_server import Reply, object_call
from tests.messages_server.server import Seen
from tests.patience import PATIENCE_S

PLAIN = Path(__file__).parents[2] / "tools/mcp/servers" / "plain.py"
TOOLS = {
    "local": ["simple_coder.run git", "simple_coder.read"],
    "mcp_servers": [{"server": "plain", "tools": ["*"], "required": True}],
}


async def test_servers_are_offered_and_run_is_narrowed(tmp_path: Path) -> None:
    workspace = tmp_path / "ws"
    workspace.mkdir()
    server = {"command": sys.executable, "args": [str(PLAIN)]}
    (workspace / "mcp.json").write_text(json.dumps({"mcpServers": {"plain": server}}))
    script: list[Reply] = [object_call("simple_coder__run", command="python3 -c 'print(1)'")]
    offered: list[list[str]] = []

    def answer(seen: Seen) -> Reply:
        offered.append([tool["name"] for tool in seen.body["tools"]])
        return script[len(offered) - 1] if len(offered) <= len(script) else returns("9")

    one = spec("one", "operator", tools=TOOLS)
    other = spec(
        "other", "operator", tools={"custom_tools": [{"name": "add", "function": "custom_tools.x.y"}]}
    )
    async with whole(workspace, [one, other], answer) as on:
        code, _, early = await do_line(on.engine, "delegate one go")
        assert code == 3, "the operator is needed"
        assert "one needs the server plain: plain waits for the operator's leave: mcp_trust" in early
        await on.do(cmd.TrustServer(server="plain"))
        async with asyncio.timeout(PATIENCE_S):
            result = await on.crew.wait(await on.hand("one"))
        assert (result.success, result.output) == (True, "9")
        names = offered[0]
        assert "simple_coder__run" in names
        assert any(name.startswith("plain__") for name in names)
        assert "simple_coder__write" not in names
        state = await on.engine.view("one-1")
        assert state.config.meta["sandbox"] == {"programs": ["git"]}
        told = [str(one.body["messages"]) for one in on.server.requests[1:2]]
        assert "'python3' is not an allowed program. Allowed: git." in told[0]
        refused = await on.crew.wait(await on.hand("other"))
        assert refused.error_code is ErrorCode.TOOL_UNAVAILABLE
        assert "of an agent's own are not called any more" in str(refused.error)
