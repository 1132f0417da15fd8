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

PLAIN = Path(__file__).parents[2] / "mcp" / "servers" / "plain.py"
TOOLS = {
    "local": ["simple_coder.run git", "simple_coder.read"],
    "mcp_servers": [{"server": "plain", "tools": ["*"], "required": True}],
    "custom_tools": [{"name": "add", "function": "custom_tools.sums.add"}],
    "global_actions": [
        {"action": "store_insight", "tool": ""},
        {"action": "sum_up", "description": "Add two numbers.", "tool": "add"},
    ],
}
ADD = 'def add(a: int, b: int) -> int:\n    """Add two numbers."""\n    return a + b\n'


async def test_functions_servers_and_global_actions_are_offered_and_run_is_narrowed(tmp_path: Path) -> None:
    workspace = tmp_path / "ws"
    (workspace / "sandbox" / "custom_tools").mkdir(parents=True)
    (workspace / "sandbox" / "custom_tools" / "sums.py").write_text(ADD)
    server = {"command": sys.executable, "args": [str(PLAIN)]}
    (workspace / "mcp.json").write_text(json.dumps({"mcpServers": {"plain": server}}))
    script: list[Reply] = [
        object_call("custom__add", a=2, b=3),
        object_call("sum_up", a=4, b=5),
        object_call("store_insight", text="sums are easy"),
        object_call("simple_coder__run", command="python3 -c 'print(1)'"),
    ]
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
        assert on.crew.state.servers["plain"].state == "waits for your leave"
        await on.do(cmd.TrustServer(server="plain"))
        async with asyncio.timeout(PATIENCE_S):
            result = await on.crew.wait(await on.hand("one"))
        assert (result.success, result.output) == (True, "9")
        names = offered[0]
        assert {"custom__add", "sum_up", "store_insight", "simple_coder__run"} <= set(names)
        assert any(name.startswith("plain__") for name in names)
        assert "simple_coder__write" not in names
        state = await on.engine.view("one-1")
        assert state.config.meta["sandbox"] == {"programs": ["git"]}
        told = [str(one.body["messages"]) for one in on.server.requests[1:5]]
        assert ['succeeded: {"content":"5"}' in told[0], 'succeeded: {"content":"9"}' in told[1]] == [
            True
        ] * 2
        assert '"content":"sums are easy"' in told[2]
        assert "'python3' is not an allowed program. Allowed: git." in told[3]
        refused = await on.crew.wait(await on.hand("other"))
        assert refused.error_code is ErrorCode.TOOL_UNAVAILABLE
        assert "custom_tools.sums.add already" in str(refused.error)
