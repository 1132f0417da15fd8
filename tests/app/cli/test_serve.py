"""`pilothouse serve` and `ps`, and what other command lines do beside an engine that runs."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters

from app.cli.serve import install
from app.commands.user import operator_name
from app.gateways.engine_client import EngineClient, EngineLostError
from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.ports import SystemClock
from engine.core.store.sqlite import SqliteJournal
from tests import forking
from tests.patience import PATIENCE_S
from tests.rounds import rounds

SLOW = """import sys, time
open("witness", "a").write("began\\n")
while not __import__("os").path.exists("go"): time.sleep(0.02)
open("witness", "a").write("ended\\n")
"""
ENVIRONMENT = {"PYTHONDONTWRITEBYTECODE": ""}


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PILOTHOUSE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "nowhere"))
    place = tmp_path / "workspace"
    (place / "sandbox").mkdir(parents=True)
    (place / "sandbox/slow.py").write_text(SLOW)
    return place


def pilothouse(workspace: Path, *words: str, code: int | None = 0) -> subprocess.CompletedProcess[str]:
    """The program, which ends with this code."""
    done = forking.run(forking.CLI, *words, "--workspace", str(workspace), cwd=workspace)
    assert code is None or done.returncode == code, (words, done.stdout, done.stderr)
    return done


def last(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    """The JSON answer."""
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def started(workspace: Path, *words: str) -> subprocess.Popen[str]:
    """The program, which goes on."""
    command = [sys.executable, "-m", "app.cli", *words, "--workspace", str(workspace)]
    return subprocess.Popen(
        command,
        cwd=Path(__file__).parents[3],
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, **ENVIRONMENT},
    )


@contextmanager
def served(workspace: Path, *words: str) -> Iterator[subprocess.Popen[str]]:
    """A program that serves the workspace, ended in good order."""
    process = started(workspace, "serve", *words)
    try:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("serving"), process.communicate()
        yield process
        process.send_signal(signal.SIGTERM)
        _out, err = process.communicate(timeout=PATIENCE_S)
        assert (process.returncode, "Traceback" in err) == (0, False), err
    finally:
        process.kill()
        process.communicate()


def journal(workspace: Path) -> list[ev.Event]:
    """All events."""

    async def read() -> list[ev.Event]:
        store = await SqliteJournal.open(workspace, clock=SystemClock(), read_only=True)
        try:
            return [event async for event in store.events()]
        finally:
            await store.close()

    return asyncio.run(read())


IMPORTS = """
import sys
from app.cli.main import main
code = main(["do", "status", "--json", "--workspace", sys.argv[1]])
heavy = {"pydantic", "aiosqlite", "engine.api.engine", "app.commands.command_runner", "textual", "mcp"}
print(code, *sorted(heavy & sys.modules.keys()))
"""


SKILL = """---
name: minto
description: Structures an answer as a pyramid, the conclusion first. Use it when somebody asks for a memo.
---
# Minto
Write the conclusion first, then three reasons, then the evidence for each of them.
"""
FLEET = """[[agents]]
id = "writer"
count = 2
goal = "write hello to {id}.txt"
"""


def test_command_lines_beside_a_server_use_its_engine(workspace: Path) -> None:
    with served(workspace) as server:
        assert f"process {server.pid} " in pilothouse(workspace, "ps").stdout
        second = pilothouse(workspace, "serve", code=2)
        assert f"a serve (process {server.pid}) has" in second.stderr
        assert last(pilothouse(workspace, "serve", "--status", "--json"))["pid"] == server.pid

        ran = pilothouse(workspace, "run", "write hello to a.txt", "--json")
        assert last(ran)["status"] == "GOAL_ACHIEVED"
        assert "✓ goal g1 achieved" in ran.stderr
        events = pilothouse(workspace, "run", "list the files", "--events", "--json").stdout.splitlines()
        assert "goal.ended" in {json.loads(line).get("kind") for line in events}
        assert last(pilothouse(workspace, "run", "frobnicate", "--approve", "never-ask", "--json", code=1))
        refused = pilothouse(workspace, "run", "x", "--trust", "0", code=2).stderr
        assert "--trust counts when a workspace is opened" in refused
        assert "serve --stop" in refused

        assert pilothouse(workspace, "do", "note beside it").stdout
        assert pilothouse(workspace, "do", "nonsense", code=2).stderr
        pilothouse(workspace, "memory", "add", "the pump must be primed")
        assert "a1" in pilothouse(workspace, "why", "a1").stdout
        assert "open or cut off" in pilothouse(workspace, "sessions", "list").stdout
        row = last(pilothouse(workspace, "ps", "--json"))["engines"][0]
        assert [agent["agent"] for agent in row["agents"]] == ["pilot-1"]

        tools = last(pilothouse(workspace, "tools", "--json"))["tools"]
        assert {"simple_coder", "memory", "crew"} <= {tool["tool"] for tool in tools}
        (workspace.parent / "minto").mkdir()
        (workspace.parent / "minto" / "SKILL.md").write_text(SKILL)
        built = pilothouse(workspace, "do", "build ../minto", "--json")
        assert last(built)["agent"] == "minto"
        assert "minto is removed" in pilothouse(workspace, "do", "agent_remove minto").stdout
        fleet = workspace.parent / "fleet.toml"
        fleet.write_text(FLEET)
        ran = pilothouse(workspace, "run", "--fleet", str(fleet), "--json")
        assert last(ran)["counts"] == {"GOAL_ACHIEVED": 2}
        assert "already" in pilothouse(workspace, "do", "accept_tier full", code=1).stdout

        light = subprocess.run(
            [sys.executable, "-c", IMPORTS, str(workspace)], capture_output=True, text=True, check=True
        )
        assert light.stdout.splitlines()[-1] == "0"
        asyncio.run(_by_mcp(workspace))
        asyncio.run(_slow_clients(workspace))
    assert pilothouse(workspace, "ps").stdout.strip() == "no engine runs"
    sessions = [event for event in journal(workspace) if event.kind == ev.SessionOpened.kind]
    assert len(sessions) == 1, "nobody else opened the workspace"
    notes = [event for event in journal(workspace) if event.kind == ev.NoteAdded.kind]
    assert notes[0].actor == f"operator:{operator_name()}"


async def _by_mcp(workspace: Path) -> None:
    """The tools are those of the engine that runs."""
    args = ["-m", "app.cli", "mcp", "--workspace", str(workspace)]
    environment = {"PILOTHOUSE_HOME": os.environ["PILOTHOUSE_HOME"]}
    async with Client(StdioServerParameters(command=sys.executable, args=args, env=environment)) as client:
        read = await client.call_tool("simple_coder__read", {"path": "a.txt"})
        assert not read.is_error


async def _slow_clients(workspace: Path) -> None:
    """Followers of which one stands still: the others see all, and it sees all later."""
    client = await EngineClient.open(workspace)
    assert client is not None
    followers = [client.events(0) for _ in range(5)]
    stopped = followers.pop()
    first = await anext(stopped)  # the connection is there, and nobody reads it any more
    for _ in range(100):
        assert (await client.submit(cmd.AddNote(agent="pilot-1", text="x" * 4_000))).ok
    head = int((await client.ask("head"))["seq"])
    for each in (*followers, stopped):
        seen = [first.seq] if each is stopped else []
        async for event in each:
            seen.append(event.seq)
            if event.seq >= head:
                break
        assert seen == list(range(1, head + 1))
        await each.aclose()  # type: ignore[attr-defined]
    await client.close()


def test_an_interrupted_run_beside_a_server_stops_its_agent_alone(workspace: Path) -> None:
    with served(workspace):
        run = started(workspace, "run", "run the script slow.py", "--json")
        _wait_for(workspace / "sandbox/witness", "began")
        run.send_signal(signal.SIGINT)
        out, _ = run.communicate(timeout=PATIENCE_S)
        assert (run.returncode, json.loads(out.splitlines()[-1])["status"]) == (130, "INTERRUPTED")
        assert last(pilothouse(workspace, "do", "status", "--json"))["mode"] == "STOPPED"


def test_a_killed_run_beside_a_server_leaves_its_agent_running(workspace: Path) -> None:
    with served(workspace):
        run = started(workspace, "run", "run the script slow.py", "--json")
        _wait_for(workspace / "sandbox/witness", "began")
        run.kill()
        run.communicate()
        (workspace / "sandbox/go").touch()
        _wait_until(lambda: last(pilothouse(workspace, "do", "status", "--json"))["mode"] == "PAUSED")
    ended = [ev.payload_of(event) for event in journal(workspace) if event.kind == ev.GoalEnded.kind]
    assert [each.status for each in ended if isinstance(each, ev.GoalEnded)] == ["achieved"]


def test_a_server_in_the_background_starts_again_and_its_agents_go_on(workspace: Path) -> None:
    try:
        began = pilothouse(workspace, "serve", "--background").stdout
        assert "serving" in began
        pid = last(pilothouse(workspace, "serve", "--status", "--json"))["pid"]
        run = started(workspace, "run", "run the script slow.py and list the files", "--json")
        _wait_for(workspace / "sandbox/witness", "began")
        again = started(workspace, "serve", "--restart")
        assert again.stdout is not None
        assert "waiting for the end" in again.stdout.readline()
        _wait_until(lambda: last(pilothouse(workspace, "do", "status", "--json"))["mode"] == "STEPPING")
        assert last(pilothouse(workspace, "serve", "--status", "--json"))["pid"] == pid
        (workspace / "sandbox/go").touch()
        out, err = again.communicate(timeout=PATIENCE_S)
        assert again.returncode == 0, (out, err)
        out, err = run.communicate(timeout=PATIENCE_S)
        assert (run.returncode, json.loads(out.splitlines()[-1])["status"]) == (0, "GOAL_ACHIEVED"), err
        assert (workspace / "sandbox/witness").read_text() == "began\nended\n"
        assert last(pilothouse(workspace, "serve", "--status", "--json"))["pid"] != pid
    finally:
        stopped = pilothouse(workspace, "serve", "--stop", "--json", code=None)
    assert last(stopped)["ok"]
    assert pilothouse(workspace, "serve", "--status", code=1).stdout.startswith("no engine has")
    closed = [event for event in journal(workspace) if event.kind == ev.SessionClosed.kind]
    assert len(closed) == 2


async def _set_running(workspace: Path, agent: str) -> None:
    client = await EngineClient.open(workspace)
    assert client is not None
    for command in (cmd.CreateAgent(agent=agent), cmd.Run(agent=agent, max_loops=50)):
        assert (await client.submit(command)).ok
    await client.close()


def test_agents_go_on_where_that_was_asked_for_when_their_engine_was_killed(workspace: Path) -> None:
    server = started(workspace, "serve")
    run = started(workspace, "run", "run the script slow.py and list the files")
    _wait_for(workspace / "sandbox/witness", "began")
    asyncio.run(_set_running(workspace, "pilot-2"))
    for process in (run, server):
        process.kill()
        process.communicate()
    with served(workspace, "--go-on"):
        kinds = {
            name: [event.kind for event in journal(workspace) if event.stream == name]
            for name in ("pilot-1", "pilot-2")
        }
    unknown = kinds["pilot-1"].index(ev.ActionOutcomeUnknown.kind)
    assert ev.AgentResumed.kind not in kinds["pilot-1"][unknown:]  # that one waits for the operator
    assert kinds["pilot-2"][-2:] == [ev.CommandReceived.kind, ev.AgentResumed.kind]
    assert (workspace / "sandbox/witness").read_text() == "began\n"


async def _submit_until_it_is_gone(workspace: Path, server: subprocess.Popen[str], count: int) -> list[str]:
    client = await EngineClient.open(workspace)
    assert client is not None
    await client.submit(cmd.CreateAgent(agent="pilot-1"))
    durable: list[str] = []
    with suppress(EngineLostError):
        while True:
            durable.append((await client.submit(cmd.AddNote(agent="pilot-1", text=f"{len(durable)}"))).event)
            if len(durable) == count:
                server.kill()
    await client.close()
    return durable


@pytest.mark.parametrize("count", range(40, 40 + rounds(1, full=20)))
def test_what_a_client_saw_durable_survives_a_kill_of_the_engine(workspace: Path, count: int) -> None:
    server = started(workspace, "serve")
    assert server.stdout is not None
    assert server.stdout.readline().startswith("serving")
    durable = asyncio.run(_submit_until_it_is_gone(workspace, server, count))
    server.communicate()
    events = {event.ref for event in journal(workspace)}
    assert set(durable) <= events
    # What it left behind keeps nobody from going on.
    assert last(pilothouse(workspace, "do", "status", "--json"))["agent"] == "pilot-1"
    assert pilothouse(workspace, "ps").stdout.strip() == "no engine runs"


async def test_a_unit_holds_no_more_than_the_folder_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    hostile = tmp_path / 'a "b" %h $HOME \\'
    hostile.mkdir()
    _, answer, _ = await install(hostile)
    text = Path(answer["file"]).read_text()
    assert r'a \"b\" %%h $$HOME \\"' in text
    assert answer["commands"][1] == f"systemctl --user enable --now {answer['unit']}"
    (tmp_path / "a\nExecStartPre=touch pwned").mkdir()
    assert (await install(tmp_path / "a\nExecStartPre=touch pwned"))[0] == 2
    assert len(list((tmp_path / "config/systemd/user").iterdir())) == 1


def _wait_for(path: Path, text: str) -> None:
    _wait_until(lambda: path.exists() and text in path.read_text())


def _wait_until(holds: Any) -> None:
    async def wait() -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not await asyncio.to_thread(holds):
                await asyncio.sleep(0.05)

    asyncio.run(wait())


def test_a_line_whose_engine_is_killed_is_answered_by_the_next_one_and_not_done_twice(
    workspace: Path,
) -> None:
    with suppress(AssertionError), served(workspace) as killed:
        pilothouse(workspace, "do", "agent_create bdi_agent pilot-1", "--operator", "ann")
        pilothouse(workspace, "do", "goal run python3 slow.py", "--operator", "ann")
        line = started(workspace, "do", "--json", "--operator", "ann", "run")
        _wait_for(workspace / "sandbox/witness", "began")
        killed.kill()
    with served(workspace):
        out, err = line.communicate(timeout=PATIENCE_S)
        assert line.returncode == 3, err  # what was cut off waits for the operator
        answer = json.loads(out.splitlines()[-1])
        assert not answer["ok"]
        assert answer["message"].startswith("carried out before the engine started again")
    told = [json.loads(event.body)["command"] for event in journal(workspace) if event.kind == RECEIVED]
    assert [command["do"] for command in told].count("run") == 1
    assert (workspace / "sandbox/witness").read_text() == "began\n"


RECEIVED = ev.CommandReceived.kind


def test_operators_of_other_names_meet_in_one_engine(workspace: Path) -> None:
    with served(workspace):
        pilothouse(workspace, "do", "agent_create bdi_agent pilot-1", "--operator", "ann")
        pilothouse(workspace, "do", "control take", "--operator", "ann")
        refused = pilothouse(workspace, "do", "goal list the files", "--operator", "bob", code=1)
        assert "ann has held pilot-1 since" in refused.stdout
        assert pilothouse(workspace, "do", "pause", "--operator", "bob").stdout
        pilothouse(workspace, "do", "control take", "--operator", "bob")
        assert "bob has held" in pilothouse(workspace, "do", "control", "--operator", "ann").stdout
        assert "is no name" in pilothouse(workspace, "do", "control", "--operator", "a b", code=2).stderr
    shown = pilothouse(workspace, "sessions", "show", "pilot-1").stdout
    assert "bob holds the controls; ann had them" in shown
