"""`pilothouse acp`, end to end: a real process over its standard streams, by the library's client."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from acp import RequestError, image_block, resource_link_block, text_block

from app.cli.main import main
from engine.core import commands as cmd
from tests.app.gateways.acp_clients import Editor, Raw, begin, connected, opened
from tests.app.gateways.sockets import client_of, serving

pytestmark = pytest.mark.asyncio(loop_scope="module")
WAITS = "run `python -c 'import time; time.sleep(600)'`"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def program() -> AsyncIterator[Editor]:
    """An editor whose program serves the workspaces of several tests, as it takes seconds to start."""
    async with connected() as editor:
        yield editor


@pytest_asyncio.fixture(loop_scope="module")
async def editor(program: Editor, tmp_path: Path) -> Editor:
    """The same with a session in a workspace of the test's own."""
    return await begin(program, tmp_path)


async def verified(workspace: Path) -> None:
    """The journal is whole, and replays."""
    for command in ("verify", "replay"):
        assert await asyncio.to_thread(main, ["sessions", command, "--workspace", str(workspace)]) == 0


async def test_a_prompt_makes_a_file_and_shows_plan_calls_and_diffs(editor: Editor, tmp_path: Path) -> None:
    assert editor.session.startswith("zed@")
    text = "create a directory called notes and write 'hello' to notes/a.txt"
    assert await editor.prompt(text) == "end_turn"
    (file,) = (tmp_path / "sandbox").rglob("*.txt")
    assert file.read_text() == "hello\n"
    plans = [[entry["status"] for entry in plan["entries"]] for plan in editor.of_kind("plan")]
    assert plans[0] == ["pending", "pending"]
    assert plans[-1] == ["completed", "completed"]
    assert editor.statuses("a2") == ["pending", "in_progress", "completed"]
    assert await editor.prompt("replace hello with bye in notes/a.txt") == "end_turn"
    diff = {"type": "diff", "path": str(file), "oldText": "hello\n", "newText": "bye\n"}
    assert editor.of_kind("tool_call_update")[-1]["content"] == [diff]
    assert editor.said().count("Done: ") == 2
    assert await editor.prompt("sing a song") == "end_turn"
    assert "Failed: " in editor.said()
    assert not editor.asked
    assert await editor.prompt("/status") == "end_turn"
    assert "zed PAUSED" in editor.said()
    await verified(tmp_path)


async def test_an_approval_is_asked_with_its_diff_and_an_answer_of_each_kind_counts(
    editor: Editor, tmp_path: Path
) -> None:
    session = editor.session
    await editor.agent.set_session_mode(mode_id="ask-changes", session_id=session)
    assert await editor.prompt("write 'one' to a.txt") == "end_turn"
    call, options = editor.asked[0]
    assert call["toolCallId"] == "a1"
    assert call["content"][0]["newText"] == "one\n"
    assert [option.kind for option in options] == [
        "allow_once",
        "allow_always",
        "allow_always",
        "reject_once",
    ]
    assert "write paths=a.txt" in options[1].name

    editor.choose = lambda options: options[-1]
    assert await editor.prompt("write 'two' to a.txt") == "end_turn"
    assert (tmp_path / "sandbox" / "a.txt").read_text() == "one\n"
    assert editor.statuses("a2") == ["pending", "failed"]
    assert "denied" in editor.said()

    editor.choose = lambda options: options[1]
    asked = len(editor.asked)
    for word in ("three", "four"):
        assert await editor.prompt(f"write '{word}' to a.txt") == "end_turn"
    assert len(editor.asked) == asked + 1, "what is allowed in the session is not asked again"
    assert (tmp_path / "sandbox" / "a.txt").read_text() == "four\n"
    await verified(tmp_path)


async def test_cancel_in_the_midst_stops_what_runs_and_gives_the_goal_up(
    editor: Editor, tmp_path: Path
) -> None:
    turn = asyncio.create_task(editor.prompt(WAITS))
    await editor.until(lambda: editor.statuses("a1")[-1:] == ["in_progress"])
    with pytest.raises(RequestError, match="under way"):
        await editor.prompt("write 'x' to b.txt")
    await editor.agent.cancel(session_id=editor.session)
    assert await turn == "cancelled"
    assert editor.statuses("a1")[-1] == "failed"
    assert await editor.prompt("write 'after' to b.txt") == "end_turn"
    assert (tmp_path / "sandbox" / "b.txt").read_text() == "after\n"
    assert not any("sleep" in str(plan["entries"]) for plan in editor.of_kind("plan")[-1:])

    editor.choose = lambda _options: None
    await editor.agent.set_session_mode(mode_id="ask-changes", session_id=editor.session)
    turn = asyncio.create_task(editor.prompt("write 'never' to c.txt"))
    await editor.until(lambda: bool(editor.asked))
    await editor.agent.cancel(session_id=editor.session)
    assert await turn == "cancelled"
    assert not (tmp_path / "sandbox" / "c.txt").exists()
    await verified(tmp_path)


async def test_step_mode_asks_before_each_action_until_it_is_left(editor: Editor, tmp_path: Path) -> None:
    await editor.agent.set_session_mode(mode_id="ask", session_id=editor.session)
    assert await editor.prompt("create a directory called one and list the files") == "end_turn"
    assert [call["title"].split(" ")[0] for call, _ in editor.asked] == ["mkdir", "ls"]
    await editor.agent.set_session_mode(mode_id="allow", session_id=editor.session)
    modes = [update["currentModeId"] for update in editor.of_kind("current_mode_update")]
    assert modes == ["ask", "allow"]
    assert await editor.prompt("create a directory called two") == "end_turn"
    assert len(editor.asked) == 2


async def test_a_breakpoint_of_the_cockpit_holds_it_and_the_client_may_let_it_go_on(
    editor: Editor, tmp_path: Path
) -> None:
    assert await editor.prompt("/break tool write") == "end_turn"
    assert await editor.prompt("write 'x' to a.txt") == "end_turn"
    assert [option.name for option in editor.asked[0][1]] == ["One action", "Run", "Stop"]
    assert (tmp_path / "sandbox" / "a.txt").exists()
    editor.choose = lambda options: options[-1]
    assert await editor.prompt("write 'x' to b.txt") == "cancelled"
    assert not (tmp_path / "sandbox" / "b.txt").exists()


async def test_two_clients_and_a_session_that_is_loaded_with_its_story(
    program: Editor, tmp_path: Path
) -> None:
    async with opened(tmp_path) as first, opened(tmp_path) as second:
        assert first.session != second.session
        ends = await asyncio.gather(
            first.prompt("write 'one' to a.txt"), second.prompt("write 'two' to b.txt")
        )
        assert ends == ["end_turn", "end_turn"]
        assert not any(update["session"] == first.session for update in second.updates)
    third = program
    third.updates.clear()
    listed = (await third.agent.list_sessions(cwd=str(tmp_path))).sessions
    assert {each.session_id for each in listed} == {first.session, second.session}
    await third.agent.load_session(cwd=str(tmp_path), session_id=first.session, mcp_servers=[])
    assert third.said("user_message_chunk") == "write 'one' to a.txt"
    assert third.said() == first.said()
    assert third.statuses("a1") == first.statuses("a1")
    third.session = first.session
    assert await third.prompt("append 'more' to a.txt") == "end_turn"
    assert (tmp_path / "sandbox" / "a.txt").read_text() == "one\nmore\n"


async def test_beside_a_running_engine_others_see_the_agent_and_may_answer_for_it(tmp_path: Path) -> None:
    async with serving(tmp_path) as (engine, _server), client_of(tmp_path, "ann") as ann:
        async with opened(tmp_path) as editor:
            assert engine.agents == ("zed",), "its agent is the running engine's"
            editor.choose = lambda _options: None
            await editor.agent.set_session_mode(mode_id="ask-changes", session_id=editor.session)
            turn = asyncio.create_task(editor.prompt("write 'x' to a.txt"))
            await editor.until(lambda: bool(editor.asked))
            answer = cmd.AnswerApproval(agent="zed", action="a1", allow=True)
            assert (await ann.submit(answer)).ok, "an approval is anybody's"
            assert await turn == "end_turn"
            turn = asyncio.create_task(editor.prompt("write 'y' to b.txt"))
            await editor.until(lambda: len(editor.asked) == 2)
            assert (await ann.submit(cmd.Stop(agent="zed"))).ok
            assert await turn == "end_turn"
            assert "stopped" in editor.said()
        assert (tmp_path / "sandbox" / "a.txt").read_text() == "x\n"
        assert engine.agents == ("zed",), "the engine outlives its client"


async def test_a_lost_engine_is_named_and_the_next_prompt_opens_the_workspace_again(
    program: Editor, tmp_path: Path
) -> None:
    async with serving(tmp_path):
        editor = await begin(program, tmp_path)
        assert await editor.prompt("write 'x' to a.txt") == "end_turn"
    assert await editor.prompt("write 'y' to b.txt") == "end_turn"
    assert (tmp_path / "sandbox" / "b.txt").read_text() == "y\n"


async def test_what_is_wrong_is_answered_with_a_sentence(editor: Editor, tmp_path: Path) -> None:
    agent, session, here = editor.agent, editor.session, str(tmp_path)
    link = resource_link_block("a.txt", (tmp_path / "sandbox" / "a.txt").as_uri())
    linked = await agent.prompt(session_id=session, prompt=[text_block("write 'hello' to "), link])
    assert linked.stop_reason == "end_turn"
    assert (tmp_path / "sandbox" / "a.txt").read_text() == "hello\n"
    for asked, code, words in (
        (agent.prompt(session_id="zed@0", prompt=[text_block("x")]), -32002, "no session 'zed@0'"),
        (agent.prompt(session_id=session, prompt=[image_block("AA==", "image/png")]), -32602, "image"),
        (agent.prompt(session_id=session, prompt=[text_block("x" * 9_000)]), -32602, "9,000 characters"),
        (agent.prompt(session_id=session, prompt=[text_block(" ")]), -32602, "takes 1 to"),
        (agent.new_session(cwd="here", mcp_servers=[]), -32602, "no absolute path"),
        (agent.load_session(cwd=here, session_id="zed@000000000000", mcp_servers=[]), -32002, "no session"),
        (agent.load_session(cwd=here, session_id="\x1b[31m../x", mcp_servers=[]), -32002, "no session"),
        (agent.set_session_mode(session_id=session, mode_id="fly"), -32602, "ask-changes"),
        (agent.set_config_option(config_id="x", session_id=session, value="y"), -32601, "not found"),
        (agent.authenticate(method_id="x"), -32601, "Method not found"),
    ):
        with pytest.raises(RequestError, match=words) as refused:
            await asked
        assert refused.value.code == code
        assert "\x1b" not in str(refused.value)
    await agent.cancel(session_id="nobody")
    assert await editor.prompt("write 'still' to a.txt") == "end_turn"


async def test_hostile_bytes_are_answered_and_harm_nothing(tmp_path: Path) -> None:
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 7}}
    async with Raw.begun() as raw:
        early = {"jsonrpc": "2.0", "id": 9, "method": "session/new", "params": {"cwd": "/", "mcpServers": []}}
        assert "initialize comes first" in (await raw.ask(early))["error"]["message"]
        assert (await raw.ask(hello))["result"]["protocolVersion"] == 1
        for sent, code in (
            (b"{", -32700),
            (b"\xff\xfe", -32700),
            (b"[" * 100_000, -32700),
            (b'{"a": NaN}', -32700),
            (b'{"jsonrpc": "2.0", "id": 1, "id": 2}', -32700),
            (b"x" * (17 * 1024 * 1024), -32700),
            (b"[]", -32600),
            (b"7", -32600),
            ({"jsonrpc": "2.0", "id": [1], "method": "initialize"}, -32600),
            ({"jsonrpc": "2.0", "id": 2, "method": ["x"]}, -32600),
            ({"jsonrpc": "2.0", "id": {}, "result": 1}, -32600),
            ({"jsonrpc": "2.0", "id": 3, "method": "session/fly"}, -32601),
            ({"jsonrpc": "2.0", "id": 4, "method": "session/prompt", "params": [1]}, -32602),
            ({"jsonrpc": "2.0", "id": 5, "method": "session/new", "params": {"cwd": 7}}, -32602),
        ):
            answer = await raw.ask(sent)
            assert answer["error"]["code"] == code, sent[:60] if isinstance(sent, bytes) else sent
            assert len(str(answer)) < 700, "what was sent is not sent back"
        await raw.send({"jsonrpc": "2.0", "id": 77, "result": {}})
        await raw.send({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": 7}})
        await raw.send(b"")
        made = await raw.ask(
            {
                "jsonrpc": "2.0",
                "id": 8,
                "method": "session/new",
                "params": {"cwd": str(tmp_path), "mcpServers": [], "_meta": {"x": "y"}},
            }
        )
        assert made["result"]["sessionId"].startswith("editor@")
        code, error = await raw.end()
    assert code == 0
    assert "Traceback" not in error
    assert "version 7" in error


def answer_kind(message: dict[str, Any]) -> Any:
    """What of an answer or a request has to be as it was: not the words."""
    result = message.get("result", {})
    options = [option["kind"] for option in message.get("params", {}).get("options", ())]
    return message["id"], message.get("method"), sorted(result), result.get("stopReason"), options


async def test_what_a_client_of_others_sent_is_answered_as_it_was_then(tmp_path: Path) -> None:
    # acpx 0.19.1 of npm: a session, loaded twice; one change is allowed, one denied.
    lines = Path(__file__).with_name("acpx.jsonl").read_text("utf-8").splitlines()
    names = {"{root}": str(tmp_path)}
    async with Raw.begun() as raw:
        for line in lines:
            for name, value in names.items():
                line = line.replace(name, value)
            side, message = json.loads(line)
            if side == "client":
                await raw.send(message)
                continue
            answer = await raw.next()
            assert answer_kind(answer) == answer_kind(message)
            names["{session}"] = answer.get("result", {}).get("sessionId", names.get("{session}", ""))
        code, error = await raw.end()
    assert (code, error) == (0, "")
    assert [path.name for path in (tmp_path / "sandbox").glob("*.txt")] == ["a.txt"]
