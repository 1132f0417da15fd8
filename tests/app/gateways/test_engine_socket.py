"""An engine that other programs of its user use by a socket: commands, views and events; who is refused."""

from __future__ import annotations

import asyncio
import json
import os
import stat
import subprocess
import sys
import tempfile
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from app.commands.missions import wait_until
from app.gateways import addresses, engine_client, protocol, socket_server
from app.gateways.engine_client import EngineClient, EngineLostError
from app.gateways.protocol import ProtocolError
from engine.core import commands as cmd
from engine.core.store.sqlite import SqliteJournal
from tests.app.gateways.sockets import HELLO, Raw, client_of, serving
from tests.patience import PATIENCE_S

NOTE = cmd.AddNote(agent="pilot-1", text="here")


@pytest.fixture(autouse=True)
def _own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PILOTHOUSE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "nowhere"))


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    return tmp_path / "workspace"


async def test_a_client_sends_commands_in_its_operators_name_and_sees_what_they_did(workspace: Path) -> None:
    async with serving(workspace) as (engine, _), client_of(workspace, "ann") as client:
        receipt = await client.submit(cmd.CreateAgent(agent="pilot-1"))
        assert receipt.ok, receipt.message
        noted = await client.submit(NOTE)
        event = await engine.store.get(noted.event)
        assert event is not None
        assert event.actor == "operator:ann"
        assert await client.view("pilot-1") == await engine.view("pilot-1")
        assert [row["agent"] for row in await client.ask("agents")] == ["pilot-1"]
        head = await client.ask("head")
        assert head["seq"] == await engine.head()
        refused = await client.submit(cmd.DropGoal(agent="pilot-1", goal="g9"))
        assert not refused.ok
        with pytest.raises(KeyError):
            await client.view("nobody")
        for name in ("inbox", "budgets", "health"):
            assert await client.ask(name) is not None
        assert (await client.ask("waiting", agent="pilot-1"))["kind"] == "nothing"


async def test_a_line_is_carried_out_as_do_would(workspace: Path) -> None:
    async with serving(workspace), client_of(workspace) as client:
        await client.submit(cmd.CreateAgent(agent="pilot-1"))
        dry = await client.ask("line", line="note it works", dry=True)
        assert dry["code"] == 0
        done = await client.ask("line", line="note it works")
        assert (done["code"], done["answer"]["ok"]) == (0, True)
        assert "it works" in (await client.ask("line", line="notes"))["text"]
        assert (await client.ask("line", line="nonsense"))["code"] == 2


async def test_events_follow_from_any_place_each_once_and_exactly_as_they_are(workspace: Path) -> None:
    async with serving(workspace) as (engine, _), client_of(workspace) as client:
        await client.submit(cmd.CreateAgent(agent="pilot-1"))
        for _ in range(300):
            await engine.submit(NOTE)
        expected = [event async for event in engine.events(0, follow=False)]
        seen = []
        async with asyncio.timeout(PATIENCE_S):
            async for event in client.events(0):
                seen.append(event)
                if len(seen) == len(expected):
                    await client.submit(NOTE)
                if len(seen) == len(expected) + 2:
                    break
        assert seen[: len(expected)] == expected
        assert [event.seq for event in seen] == list(range(1, len(seen) + 1))


async def test_a_follower_goes_on_without_a_gap_where_its_connection_is_lost(workspace: Path) -> None:
    async with serving(workspace) as (engine, server), client_of(workspace) as client:
        await client.submit(cmd.CreateAgent(agent="pilot-1"))
        seen = []
        async with asyncio.timeout(PATIENCE_S):
            async for event in client.events(0):
                seen.append(event.seq)
                if event.seq % 10 == 0:
                    for task in list(server._connections):  # as a network that fails would
                        task.cancel()
                if event.seq < 50:
                    await engine.submit(NOTE)
                if event.seq >= 50:
                    break
        assert seen == list(range(1, len(seen) + 1))
        assert await client.ask("ping") == "pong"  # over a connection that was made again


async def test_a_follower_that_stands_still_costs_no_memory_and_goes_on_where_it_was(workspace: Path) -> None:
    async with serving(workspace) as (engine, server):
        await engine.submit(cmd.CreateAgent(agent="pilot-1"))
        slow = await Raw.to(workspace)
        await slow.next()
        wire: Any = slow.writer.transport
        wire.pause_reading()
        await slow.send({"id": 1, "ask": "events", "since": 0})
        big = cmd.AddNote(agent="pilot-1", text="x" * 4_000)
        for _ in range(600):
            await engine.submit(big)  # nobody waits for the follower
        (connection,) = server._connections.values()
        held = connection._writer.transport.get_write_buffer_size()
        assert 0 < held < 2 * socket_server.BUFFER_BYTES
        wire.resume_reading()
        head, seen = await engine.head(), []
        while not seen or seen[-1] < head:
            seen += [event["seq"] for event in (await slow.next()).get("events", ())]
        assert seen == list(range(1, head + 1))
        slow.writer.close()


async def test_one_that_is_far_behind_is_told_the_head(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(protocol, "BEHIND", 20)
    async with serving(workspace) as (engine, _), client_of(workspace) as client:
        await client.submit(cmd.CreateAgent(agent="pilot-1"))
        for _ in range(40):
            await engine.submit(NOTE)
        head, heads, seen = await engine.head(), [], []
        async for event in client.events(0, behind=heads.append):
            seen.append(event.seq)
            if event.seq == head:
                break
        assert heads == [head]
        assert seen == list(range(1, head + 1))


async def test_who_only_watches_changes_nothing(workspace: Path) -> None:
    async with serving(workspace) as (engine, _), client_of(workspace, watch=True) as client:
        await engine.submit(cmd.CreateAgent(agent="pilot-1"))
        head = await engine.head()
        for name, fields in (
            ("submit", {"command": NOTE.model_dump()}),
            ("line", {"line": "note x"}),
            ("stop", {}),
            ("mcp", {}),
        ):
            with pytest.raises(ProtocolError) as refused:
                await client.ask(name, **fields)
            assert refused.value.code == "watching"
        assert (await client.ask("line", line="note x", dry=True))["code"] == 0
        assert await engine.head() == head


async def test_what_a_client_asked_for_goes_with_it_and_commands_do_not(workspace: Path) -> None:
    async with serving(workspace) as (engine, server):
        await engine.submit(cmd.CreateAgent(agent="pilot-1"))
        raw = await Raw.to(workspace)
        await raw.next()
        await raw.send({"id": 1, "ask": "events", "since": 10**9})
        await raw.send({"id": 2, "ask": "faulted", "agent": "pilot-1"})
        await raw.send({"id": 3, "ask": "submit", "command": NOTE.model_dump()})
        raw.writer.close()
        async with asyncio.timeout(PATIENCE_S):
            async for event in engine.events(0):
                if event.kind == "note.added":
                    break
            while any(task.get_name().startswith(("client", "answer to")) for task in asyncio.all_tasks()):
                await asyncio.sleep(0.01)
        assert not server.busy
        assert not server.clients


# ------------------------------------------------------------------ versions


@pytest.mark.parametrize(
    ("hello", "answer"),
    [
        ({"protocol": 9, "oldest": 1, "of tomorrow": {"a": 1}}, {"protocol": 1}),
        ({"protocol": 1}, {"protocol": 1}),
        ({"protocol": 9, "oldest": 8}, {"code": "hello.protocol", "message": "serve --restart"}),
        ({"protocol": 0, "oldest": 0}, {"code": "hello.protocol", "message": "update the client"}),
    ],
)
async def test_another_version_works_or_is_refused_with_a_sentence(
    workspace: Path, hello: dict[str, object], answer: dict[str, object]
) -> None:
    async with serving(workspace):
        raw = await Raw.to(workspace, {"hello": {"operator": "ann", **hello}})
        given = await raw.next()
        if "protocol" in answer:
            assert given["hello"]["protocol"] == answer["protocol"]
            assert (await raw.ask({"id": 1, "ask": "ping", "of tomorrow": 1}))["answer"] == "pong"
        else:
            assert given["error"]["code"] == answer["code"]
            assert str(answer["message"]) in given["error"]["message"]
            assert await raw.next() == {}
        raw.writer.close()


# ------------------------------------------------------------------ bad input

DEEP = b'{"id": 1, "ask": ' + b"[" * 200_000 + b"\n"
REFUSED = [
    (b"\xff\xfe garbage\n", "json"),
    (b"[1]\n", "json"),
    (b'{"id": 1, "id": 2, "ask": "ping"}\n', "json"),
    (b'{"id": NaN, "ask": "ping"}\n', "json"),
    (DEEP, "json"),
    ({"ask": "ping"}, "id"),
    ({"id": 0, "ask": "ping"}, "id"),
    ({"id": True, "ask": "ping"}, "id"),
    ({"id": 1.0, "ask": "ping"}, "id"),
    ({"id": 1, "ask": "rm"}, "ask"),
    ({"id": 1, "ask": ["ping"]}, "ask"),
    ({"id": 1, "ask": "\x1b[2J"}, "ask"),
    ({"id": 1, "ask": "events", "since": "1"}, "arguments"),
    ({"id": 1, "ask": "events", "since": -1}, "arguments"),
    ({"id": 1, "ask": "view"}, "arguments"),
    ({"id": 1, "ask": "view", "agent": "x" * 65}, "arguments"),
    ({"id": 1, "ask": "view", "agent": "nobody"}, "agent"),
    ({"id": 1, "ask": "submit", "command": "stop"}, "arguments"),
    ({"id": 1, "ask": "submit", "command": {}}, "command"),
    ({"id": 1, "ask": "submit", "command": {"do": "format_disk"}}, "command"),
    ({"id": 1, "ask": "submit", "command": {"do": "run", "agent": "pilot-1", "x": 1}}, "command"),
    ({"id": 1, "ask": "blob", "digest": "../../etc/passwd"}, "arguments"),
    ({"id": 1, "ask": "stop"}, "stop"),
]


async def test_bad_messages_are_refused_with_a_sentence_and_counted_and_change_nothing(
    workspace: Path,
) -> None:
    async with serving(workspace) as (engine, server):
        await engine.submit(cmd.CreateAgent(agent="pilot-1"))
        head = await engine.head()
        raw = await Raw.to(workspace)
        await raw.next()
        for number, (message, code) in enumerate(REFUSED, 1):
            answer = await raw.ask(message)
            assert answer["error"]["code"] == code, message
            assert answer["error"]["message"].isprintable()
            assert sum(server.refused.values()) == number
        assert (await raw.ask({"id": 7, "ask": "ping"}))["answer"] == "pong"
        health = await raw.ask({"id": 8, "ask": "health"})
        assert health["answer"]["refused"]["json"] == 5
        assert await engine.head() == head
        raw.writer.close()


@pytest.mark.parametrize(
    ("first", "code"),
    [
        ({"id": 1, "ask": "ping"}, "hello.missing"),
        ({"hello": {"protocol": 1}}, "arguments"),
        ({"hello": {"protocol": 1, "operator": "a b"}}, "arguments"),
        ({"hello": {"protocol": 1, "operator": "ann\n"}}, "arguments"),
        (b"x" * (protocol.LINE_BYTES + 2), "line.long"),
    ],
)
async def test_a_connection_without_a_good_hello_is_ended(workspace: Path, first: object, code: str) -> None:
    async with serving(workspace):
        raw = await Raw.to(workspace, first)
        assert (await raw.next())["error"]["code"] == code
        assert await raw.next() == {}
        raw.writer.close()


async def test_slow_and_too_many_connections_are_ended(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket_server, "HELLO_S", 0.05)
    monkeypatch.setattr(socket_server, "LINE_S", 0.05)
    monkeypatch.setattr(socket_server, "CONNECTIONS", 2)
    async with serving(workspace) as (_, server):
        silent = await Raw.to(workspace, None)
        assert (await silent.next())["error"]["code"] == "hello.late"
        slow = await Raw.to(workspace)
        await slow.next()
        await slow.send(b'{"id": 1, ')
        assert (await slow.next())["error"]["code"] == "line.slow"
        monkeypatch.setattr(socket_server, "LINE_S", PATIENCE_S)
        async with client_of(workspace), client_of(workspace):
            third = await Raw.to(workspace)
            assert (await third.next())["error"]["code"] == "connections"
            third.writer.close()
        assert server.refused == {"hello.late": 1, "line.slow": 1, "connections": 1}
        for each in (silent, slow):
            each.writer.close()


async def test_too_many_requests_of_a_connection_are_refused(workspace: Path) -> None:
    async with serving(workspace) as (engine, _):
        await engine.submit(cmd.CreateAgent(agent="pilot-1"))
        raw = await Raw.to(workspace)
        await raw.next()
        for ident in range(1, socket_server.REQUESTS + 1):
            await raw.send({"id": ident, "ask": "faulted", "agent": "pilot-1"})
        assert (await raw.ask({"id": 1, "ask": "ping"}))["error"]["code"] == "id"
        assert (await raw.ask({"id": 99, "ask": "ping"}))["error"]["code"] == "requests"
        raw.writer.close()


# ------------------------------------------------------------------ whose socket it is


async def test_socket_and_record_are_their_users_own_and_outside_of_the_workspace(workspace: Path) -> None:
    async with serving(workspace):
        (address,) = addresses.addresses_of(workspace)
        assert not address.directory.is_relative_to(workspace)
        assert stat.S_IMODE(address.directory.stat().st_mode) == 0o700
        for ending in ("sock", "json"):
            assert stat.S_IMODE(address.file(ending).stat().st_mode) == 0o600
        record = addresses.read_record(address)
        assert record is not None
        assert (record.workspace, record.pid, record.kind) == (str(workspace.resolve()), os.getpid(), "serve")
        assert [each for _, each in addresses.engines()] == [record]
    assert addresses.engines() == []
    assert not list(address.directory.iterdir())


CONNECT = """
import os, socket, sys
os.setgroups([]); os.setresgid(65534, 65534, 65534); os.setresuid(65534, 65534, 65534)
s = socket.socket(socket.AF_UNIX)
try: s.connect(sys.argv[1])
except PermissionError: sys.exit("kept out")
s.sendall(sys.argv[2].encode() + b"\\n")
print(s.makefile().readline())
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
@pytest.mark.parametrize("widened", [False, True])
async def test_another_user_is_kept_out_and_where_the_files_are_open_refused(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, widened: bool
) -> None:
    with tempfile.TemporaryDirectory() as home:  # whose path a socket's address can hold
        monkeypatch.setenv("PILOTHOUSE_HOME", home)
        async with serving(workspace) as (engine, server):
            (address,) = addresses.addresses_of(workspace)
            if widened:
                for place in (Path(home), address.directory, address.file("sock")):
                    place.chmod(0o777)
            head = await engine.head()
            command = [sys.executable, "-c", CONNECT, str(address.file("sock")), json.dumps(HELLO)]
            run = partial(subprocess.run, command, capture_output=True, text=True, check=False)
            done = await asyncio.to_thread(run)
            if widened:
                assert json.loads(done.stdout)["error"]["code"] == "user", done.stderr
                assert server.refused == {"user": 1}
            else:
                assert "kept out" in done.stderr
            assert await engine.head() == head


async def test_a_directory_that_others_can_enter_has_no_engine(workspace: Path, tmp_path: Path) -> None:
    run = tmp_path / "home" / "run"
    run.mkdir(parents=True)
    run.chmod(0o755)
    assert addresses.addresses_of(workspace) == []
    with pytest.raises(addresses.AddressError, match="0700"):
        addresses.new_address(workspace)
    run.rmdir()
    (tmp_path / "theirs").mkdir(mode=0o700)
    run.symlink_to(tmp_path / "theirs")
    assert addresses.addresses_of(workspace) == []


async def test_what_a_dead_engine_left_is_cleared_and_what_a_folder_holds_leads_nowhere(
    workspace: Path, tmp_path: Path
) -> None:
    address = addresses.new_address(workspace)
    addresses.listen(address, addresses.EngineRecord(str(workspace), 1, "0", "serve")).close()
    (address.directory / "x.json").write_text("[" * 100_000)
    assert await EngineClient.open(workspace) is None
    assert addresses.engines() == []
    assert not address.file("sock").exists()
    # A stranger's folder with a socket of its own in every place that one might look into.
    for place in ("run", ".pilothouse", ".pilothouse/run"):
        (workspace / place).mkdir(parents=True, exist_ok=True)
        theirs = addresses.Address(workspace / place, address.name)
        addresses.listen(theirs, addresses.EngineRecord(str(workspace), 1, "0", "serve"))
    assert await EngineClient.open(workspace) is None


async def test_a_long_path_of_the_directory_is_no_hindrance(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PILOTHOUSE_HOME", str(tmp_path / ("h" * 120)))
    async with serving(tmp_path / "w"), client_of(tmp_path / "w") as client:
        assert await client.ask("ping") == "pong"


async def test_closing_lets_commands_under_way_end_and_tells_clients(workspace: Path) -> None:
    async with serving(workspace) as (engine, server):
        await engine.submit(cmd.CreateAgent(agent="pilot-1"))
        raw = await Raw.to(workspace)
        await raw.next()
        await raw.send({"id": 1, "ask": "submit", "command": NOTE.model_dump()})
        await raw.send({"id": 2, "ask": "events", "since": 10**9})
        while not server.working:
            await asyncio.sleep(0)
        await server.close("closing time")
        assert (await raw.next())["answer"]["ok"]
        assert await raw.next() == {"bye": "closing time"}
        assert await raw.next() == {}
        raw.writer.close()
    store = await SqliteJournal.open(workspace, clock=engine.clock, read_only=True)
    assert await store.last(1, kind="note.added")
    await store.close()


async def test_who_asks_and_never_reads_is_not_read_any_more(workspace: Path) -> None:
    async with serving(workspace) as (engine, server):
        await engine.submit(cmd.CreateAgent(agent="pilot-1"))
        await engine.submit(cmd.AddNote(agent="pilot-1", text="x" * 4_000))
        raw = await Raw.to(workspace)
        await raw.next()
        transport: Any = raw.writer.transport
        transport.pause_reading()
        sent = 0
        with suppress(TimeoutError):
            while True:
                async with asyncio.timeout(0.5):  # nothing is taken any more
                    await raw.send(b'{"id": %d, "ask": "view", "agent": "pilot-1"}\n' % (sent := sent + 1))
        (connection,) = server._connections.values()
        assert len(connection._tasks) <= socket_server.REQUESTS
        assert connection._writer.transport.get_write_buffer_size() < 2 * socket_server.BUFFER_BYTES
        raw.writer.transport.abort()


async def test_a_client_that_stood_still_in_its_hello_connects_again(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket_server, "HELLO_S", 0.01)
    async with serving(workspace) as (_, server):
        there = await asyncio.to_thread(addresses.find_engine, workspace)
        assert there is not None
        while not server.refused:
            await asyncio.sleep(0.01)
        with pytest.raises(EngineLostError, match=r"no hello came|has gone"):
            await engine_client._greeted(there[1], HELLO["hello"])


REACH = """
import socket, sys
for path in sys.argv[1:]:
    try:
        end = socket.socket(socket.AF_UNIX)
        end.connect(path)
        end.sendall(b'{"hello": {"protocol": 1, "operator": "evil"}}\\n')
        print("reached", end.recv(100))
    except OSError as error:
        print("kept out", error.errno)
"""


async def test_a_program_of_an_agent_cannot_reach_the_engine_that_started_it(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with tempfile.TemporaryDirectory() as home:  # whose path a socket's address can hold
        monkeypatch.setenv("PILOTHOUSE_HOME", home)
        async with serving(workspace) as (engine, server):
            if engine.sandbox().refusal or engine.sandbox().unconfined:
                pytest.skip("no jail can be had here")
            await engine.submit(cmd.CreateAgent(agent="pilot-1"))
            (workspace / "sandbox/reach.py").write_text(REACH)
            (address,) = addresses.addresses_of(workspace)
            places = ("", "/proc/1/root", f"/proc/{os.getpid()}/root")
            paths = " ".join(f"{place}{address.file('sock')}" for place in places)
            args = {"command": f"python reach.py {paths}"}
            assert (await engine.submit(cmd.CallTool(agent="pilot-1", command="run", args=args))).ok
            await wait_until(engine, "pilot-1", lambda state: not state.busy and not state.requests)
            (finished,) = await engine.store.last(1, "pilot-1", kind="action.finished")
            printed = json.loads(finished.body)["result"]["stdout"].splitlines()
            assert [line.rpartition(" ")[0] for line in printed] == ["kept out"] * 3
            assert "None" not in printed[0], "the system refused, and not Python"
            assert not server.refused
