"""`pilothouse mcp` and `pilothouse tools`, end to end: by the SDK's client, as other agents would use it."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

from app.cli.main import main
from engine.core.ports import SystemClock
from engine.core.store.sqlite import SqliteJournal
from tests.patience import PATIENCE_S
from tests.trusting import home, write_trusted

PLAIN = Path(__file__).parents[2] / "engine/tools/mcp/servers" / "plain.py"
SERVE = ["-m", "app.cli.main", "mcp", "--workspace"]


SHOUT = """
[[recipe]]
name = "shout"
summary = "Shout."
example = "shout hello"
says = ["shout {text:text}"]

[[recipe.steps]]
tool = "plain"
command = "echo"
args = { text = "{text}" }
"""
RULES = """
[[approvals.rules]]
answer = "allow"
command = "run"
args = { command = "cat *" }
[[approvals.rules]]
answer = "allow"
command = "run"
args = { command = "python3 *" }
[[approvals.rules]]
answer = "deny"
command = "rm"
paths = ["keep/**"]
reason = "keep is to be kept"
"""


async def text(client: Client, name: str, /, **args: Any) -> tuple[bool, str]:
    answer = await client.call_tool(name, args)
    (block,) = answer.content
    assert block.type == "text"
    return not answer.is_error, block.text


async def test_another_agent_uses_the_sandbox_and_memory(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_trusted(tmp_path / "pilothouse.toml", RULES)
    mine = {"PILOTHOUSE_HOME": str(home())}
    program = StdioServerParameters(command=sys.executable, args=[*SERVE, str(tmp_path)], env=mine)
    async with Client(program) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert {"simple_coder__write", "simple_coder__run", "memory__store"} <= set(tools)
        assert not {"simple_coder__shell", "simple_coder__toggle_autonomous_mode"} & set(tools)
        assert tools["simple_coder__read"].annotations is not None
        assert tools["simple_coder__read"].annotations.read_only_hint

        assert await text(client, "simple_coder__write", path="a.txt", content="hello") == (
            True,
            '{"message": "Wrote 5 bytes to a.txt"}',
        )
        assert await text(client, "simple_coder__read", path="a.txt") == (True, '{"content": "hello"}')
        ran, said = await text(client, "simple_coder__run", command="cat /etc/shadow")
        assert not ran, "it is held by the jail"
        assert "denied" in said or "No such file" in said
        assert (await text(client, "memory__store", content="the sky is blue", memory_type="fact"))[0]
        assert "the sky is blue" in (await text(client, "memory__search", query="sky"))[1]

        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.5):
                await text(client, "simple_coder__run", command="python3 -c 'import time; time.sleep(60)'")
        many = [text(client, "simple_coder__write", path=f"{n}", content=f"{n}") for n in range(12)]
        assert all(ok for ok, _ in await asyncio.gather(*many)), "what was cut off holds up nobody"

        for name, args in (
            ("simple_coder__read", {"path": "../../etc/passwd"}),
            ("simple_coder__read", {"pth": "x"}),
            ("simple_coder__read", {"path": 7}),
            ("simple_coder__read", {"path": "\x1b[31m\u202e\0"}),
            ("simple_coder__read", {"path": "x" * 100_000}),
            ("simple_coder__rm", {"path": "a.txt"}),
            ("simple_coder__toggle_autonomous_mode", {}),
            ("memory__store", {"content": "x", "memory_type": "no such"}),
            ("no such tool\x1b[31m", {}),
        ):
            ok, said = await text(client, name, **args)
            assert not ok, name
            assert "\n" not in said
            assert "\x1b" not in said
            assert len(said) < 2_000, said
    assert (tmp_path / "sandbox" / "a.txt").read_text() == "hello"

    assert await asyncio.to_thread(main, ["sessions", "verify", "--workspace", str(tmp_path)]) == 0
    assert await asyncio.to_thread(main, ["sessions", "replay", "--workspace", str(tmp_path)]) == 0
    assert await asyncio.to_thread(main, ["search", "Wrote", "--workspace", str(tmp_path)]) == 0
    assert "a.txt" in capsys.readouterr().out


async def test_another_agent_uses_the_crew_and_answers_only_what_its_own_work_asks(tmp_path: Path) -> None:
    """A guided agent needs no model; the operator's own work asks the operator."""
    delegate = ["do", "--workspace", str(tmp_path), "delegate bmc-wizard a bakery"]
    assert await asyncio.to_thread(main, delegate) == 3, "it asks the operator"
    mine = {"PILOTHOUSE_HOME": str(home())}
    program = StdioServerParameters(command=sys.executable, args=[*SERVE, str(tmp_path)], env=mine)
    async with Client(program) as client:
        assert "minto-pyramid" in (await text(client, "select", task="structure the\nchurn problem"))[1]
        assert "bmc-wizard" in (await text(client, "status"))[1]
        ok, said = await text(client, "delegate", agent="bmc-wizard", task="a shop")
        assert ok
        (request,) = json.loads(said)["requests"]
        assert (await text(client, "answer", request=request["id"], answer="commuters"))[0]
        ok, said = await text(client, "answer", request="hr-1", answer="mine now")
        assert (ok, "the operator answers it" in said) == (False, True)
        for name, args, words in (
            ("delegate", {"agent": "nobody", "task": "x"}, "nobody"),
            ("delegate", {"agent": "bmc-wizard"}, "required"),
            ("delegate", {"agent": "bmc-wizard", "task": 7}, "not of type"),
            ("delegate", {"agent": "bmc-wizard", "task": "x", "sources": "y"}, "unexpected"),
            ("debate", {"motion": "go on", "pro": "x"}, "both"),
        ):
            ok, said = await text(client, name, **args)
            assert (ok, words in said) == (False, True), said


async def test_plans_and_stories_are_resources_and_missions_are_prompts(tmp_path: Path) -> None:
    for line in ("agent_create bdi_agent pilot-1", "goal write 'hello' to a.txt"):
        assert await asyncio.to_thread(main, ["do", "--workspace", str(tmp_path), line]) == 0
    mine = {"PILOTHOUSE_HOME": str(home())}
    only = [*SERVE, str(tmp_path), "--read-only"]
    async with Client(StdioServerParameters(command=sys.executable, args=only, env=mine)) as client:
        tools = {tool.name for tool in (await client.list_tools()).tools}
        assert {"select", "status"} <= tools
        assert not {"delegate", "debate", "answer"} & tools
        uris = {str(each.uri) for each in (await client.list_resources()).resources}
        assert {"pilothouse://plan/pilot-1", "pilothouse://session/pilot-1"} <= uris
        (plan,) = (await client.read_resource("pilothouse://plan/pilot-1")).contents
        assert getattr(plan, "text", "").splitlines()[1].endswith("planned: write a.txt hello")
        (story,) = (await client.read_resource("pilothouse://session/pilot-1")).contents
        assert "goal g1: write 'hello' to a.txt" in getattr(story, "text", "")
        assert "first-flight" in {each.name for each in (await client.list_prompts()).prompts}
        (message,) = (await client.get_prompt("broken-build")).messages
        assert "```" in getattr(message.content, "text", ""), "a mission comes with its files"
        for uri in ("pilothouse://plan/nobody", "file:///etc/passwd"):
            with pytest.raises(MCPError, match="no resource"):
                await client.read_resource(uri)
        with pytest.raises(MCPError, match="no prompt"):
            await client.get_prompt("nothing")


async def test_what_rules_forbid_or_ask_about_is_refused_and_told_how_to_allow(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_trusted(tmp_path / "pilothouse.toml", RULES)
    mine = {"PILOTHOUSE_HOME": str(home())}
    program = StdioServerParameters(command=sys.executable, args=[*SERVE, str(tmp_path)], env=mine)
    async with Client(program) as client:
        for path in ("keep/a", "b"):
            assert (await text(client, "simple_coder__write", path=path, content="first"))[0]
        assert await text(client, "simple_coder__rm", path="keep/a") == (
            False,
            "not allowed: keep is to be kept (workspace rule 3)",
        )
        ok, said = await text(client, "simple_coder__run", command="touch made")
        assert not ok
        assert said.startswith("not allowed: nobody is there to approve it (what mcp starts here cannot be")
        assert (await text(client, "simple_coder__start", command="sleep 60"))[0] is False
    (line,) = re.findall(r'pilothouse do --agent mcp "(.*?)";', said)
    assert line == "allow always run command='touch made'"
    assert (tmp_path / "sandbox" / "keep" / "a").exists()
    assert not (tmp_path / "sandbox" / "made").exists()

    do = ["do", "--workspace", str(tmp_path), "--agent", "mcp"]
    assert await asyncio.to_thread(main, [*do, line]) == 0
    async with Client(program) as client:
        assert (await text(client, "simple_coder__run", command="touch made"))[0]
        assert not (await text(client, "simple_coder__run", command="touch other"))[0]
    assert (tmp_path / "sandbox" / "made").exists()
    assert await asyncio.to_thread(main, ["sessions", "replay", "--workspace", str(tmp_path)]) == 0
    store = await SqliteJournal.open(tmp_path, clock=SystemClock(), read_only=True)
    try:
        queued = await store.last(20, "mcp", kind="action.queued")
        assert {event.actor for event in queued} == {"client:mcp"}
        assert json.loads(queued[0].body)["client"] == "mcp"
    finally:
        await store.close()


async def test_over_http_only_with_the_token_and_it_ends_in_good_order(tmp_path: Path) -> None:
    env = {**os.environ, "PILOTHOUSE_MCP_TOKEN": "s3cret"}
    run = await asyncio.create_subprocess_exec(
        *(sys.executable, *SERVE, str(tmp_path), "--http", "0", "--read-only"),
        env=env,
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert run.stderr is not None
    async with asyncio.timeout(PATIENCE_S):
        line = (await run.stderr.readline()).decode()
    url = re.findall(r"http://127\.0\.0\.1:\d+/mcp", line)[0]
    assert "s3cret" not in line
    async with (
        create_mcp_http_client(headers={"Authorization": "Bearer s3cret"}) as http,
        Client(streamable_http_client(url, http_client=http)) as client,
    ):
        names = {tool.name for tool in (await client.list_tools()).tools}
        assert "simple_coder__ls" in names
        assert "simple_coder__write" not in names
        assert (await text(client, "simple_coder__ls"))[0]
    for headers in ({}, {"Authorization": "Bearer wrong"}):
        async with create_mcp_http_client(headers=headers) as http:
            assert (await http.post(url, json={})).status_code == 401
            with pytest.raises((MCPError, BaseExceptionGroup)):
                async with Client(streamable_http_client(url, http_client=http)):
                    pass
    run.send_signal(signal.SIGTERM)
    async with asyncio.timeout(PATIENCE_S):
        out, _ = await run.communicate()
    assert (run.returncode, out) == (143, b"")
    assert await asyncio.to_thread(main, ["sessions", "verify", "--workspace", str(tmp_path)]) == 0


def test_what_hinders_serving_is_one_line(tmp_path: Path) -> None:
    with (tmp_path / "in").open("w+") as file:
        run = subprocess.run(
            [sys.executable, *SERVE, str(tmp_path)], stdin=file, capture_output=True, text=True, check=False
        )
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr == (
        "pilothouse: it cannot be served: standard input is a file; it has to be a pipe to whoever calls\n"
    )


def test_tools_lists_servers_and_how_they_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PILOTHOUSE_HOME", str(tmp_path / "home"))
    entries = {
        "plain": {"command": sys.executable, "args": [str(PLAIN)]},
        "gone": {"command": "nothing-such"},
    }
    write_trusted(tmp_path / "mcp.json", json.dumps(entries))
    assert main(["tools", "--workspace", str(tmp_path)]) == 3, "the operator is needed"
    told = capsys.readouterr().out
    assert "plain: the MCP server plain\n  not there: waits for your leave\n" in told
    assert (
        f"  starts: {sys.executable} {PLAIN}\n  in: {tmp_path}\n  environment: nothing of its own\n" in told
    )
    assert "pilothouse do 'mcp_trust plain', lets it start" in told

    run = ["run", "--workspace", str(tmp_path), "--json", "list the files"]
    assert main(run) == 0, "who needs none of them is not held up"
    assert "plain waits for your leave: mcp_trust plain" in capsys.readouterr().err
    assert main(["do", "--workspace", str(tmp_path), "mcp_trust plain ?"]) == 0
    assert f"starts: {sys.executable} {PLAIN}" in capsys.readouterr().out

    write_trusted(tmp_path / "recipes" / "shout.toml", SHOUT)
    assert main(["run", "--workspace", str(tmp_path), "--json", "shout hello"]) == 3
    ended = json.loads(capsys.readouterr().out)
    assert (ended["status"], ended["reason"]) == ("NEEDS_OPERATOR", "NO_LEAVE")
    assert ended["message"].startswith("the goal needs plain, which waits for your leave: mcp_trust plain")

    for server, code in (("plain", 0), ("gone", 0), ("nobody", 2)):
        assert main(["do", "--workspace", str(tmp_path), f"mcp_trust {server}"]) == code
    capsys.readouterr()
    assert main(["tools", "--json", "--workspace", str(tmp_path)]) == 1
    answer = json.loads(capsys.readouterr().out)
    states = {server["name"]: server["state"] for server in answer["servers"]}
    assert states == {"plain": "ok", "gone": "down"}
    assert "echo" in next(tool["commands"] for tool in answer["tools"] if tool["tool"] == "plain")
