"""`pilothouse fleet`: shards that die or are cut off, agents that move, budgets over all of them."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from app.cli.fleet.budgets import SharedBudgets
from app.cli.fleet.client import UNUSABLE, FleetClient
from app.cli.fleet.database import (
    ShardRow,
    address_of,
    change_grant,
    fleet_address,
    fleet_database,
    journal_url,
    note_shard,
    plan_shards,
    schema_of,
    set_budget,
    shard_of,
    shard_url,
)
from app.cli.fleet.files import TABLE, SharedFiles
from app.cli.fleet.messages import undelivered
from app.cli.fleet.shard import Shard, ShardPlan
from app.cockpit.shard_board import ShardBoardApp
from app.gateways.engine_client import EngineClient
from app.gateways.socket_server import EngineServer
from engine.api.engine import Engine
from engine.core import commands as cmd
from engine.core.journal import JournalError, JournalLocked, JournalTooNew
from engine.core.ports import SystemClock
from engine.core.store.leases import LeaseLost, acquire, release
from engine.core.store.postgres import open_postgres
from engine.core.store.postgres_schema import connect, prepare, read_address
from tests.fleet_flight import FleetFlight
from tests.patience import PATIENCE_S
from tests.postgres_server import PostgresServer
from tests.rounds import FULL, rounds

needs_server = pytest.mark.postgres
AGENTS, ROUNDS = rounds(9, full=600), rounds(1, full=5)
AT_WORK = rounds(9, full=200)
"""Agents that get a new goal at each trouble; more of them fill two cores by themselves."""
BACK_S = 10.0


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PILOTHOUSE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "nowhere"))


@pytest.fixture
def url(postgres: PostgresServer, tmp_path: Path) -> str:
    return f"{postgres.url}&schema=fleet_{abs(hash(tmp_path)) % 10**8}"


@pytest.fixture
async def flight(tmp_path: Path) -> AsyncIterator[FleetFlight]:
    server = PostgresServer("max_connections=200")
    flight = FleetFlight(tmp_path, server.start(), 3, AGENTS)
    try:
        await flight.start()
        yield flight
    finally:
        await flight.stop()
        server.remove()


# ------------------------------------------------------------------ where agents live


def test_agents_are_spread_evenly_and_only_those_of_a_new_shard_move() -> None:
    names = [f"agent-{number}" for number in range(3_000)]
    before = {name: shard_of(name, 3) for name in names}
    after = {name: shard_of(name, 4) for name in names}
    moved = [name for name in names if before[name] != after[name]]
    assert all(900 < list(before.values()).count(number) < 1_100 for number in (1, 2, 3))
    assert 650 < len(moved) < 850
    assert {after[name] for name in moved} == {4}


def test_the_address_of_a_fleet_has_no_password_and_leads_to_its_database() -> None:
    address = fleet_address("postgresql://pilot:secret@db.example/agents?schema=mine")
    assert address == "fleet://pilot@db.example/agents?schema=mine"
    assert journal_url(address) == "postgresql://pilot@db.example/agents?schema=mine"
    assert read_address(shard_url(address, 2), None).schema == "mine_2"


def test_without_the_extra_a_sentence_says_how_to_install_it(tmp_path: Path) -> None:
    words = [sys.executable, "-S", "-c", "import sys; sys.path[:0] = sys.argv[1].split(':')\n"]
    words[-1] += "from app.cli.fleet import missing; print(missing())"
    done = subprocess.run([*words, str(Path(__file__).parents[2])], capture_output=True, text=True)
    assert "pip install 'pilothouse[fleet]'" in done.stdout, done.stderr


# ------------------------------------------------------------------ one holder


@needs_server
async def test_a_new_lease_ends_the_connection_of_the_old_one_which_writes_no_more(url: str) -> None:
    address = address_of(url, 1)
    connection = await connect(address)
    await prepare(connection, address, SystemClock().now(), create=True)
    old = await acquire(connection, "engine", "a", 60)
    assert old is not None
    first = await open_postgres(read_address(shard_url(url, 1, old), None), SystemClock())
    with pytest.raises(JournalLocked):
        await open_postgres(address, SystemClock())
    await release(connection, old)
    new = await acquire(connection, "engine", "b", 60)
    assert new is not None

    second = await open_postgres(read_address(shard_url(url, 1, new), None), SystemClock())
    with pytest.raises(LeaseLost):
        await open_postgres(read_address(shard_url(url, 1, old), None), SystemClock())

    await asyncio.gather(second.close(), first.close())
    connection.terminate()


@needs_server
async def test_another_number_of_shards_is_refused(url: str) -> None:
    async with fleet_database(url, create=True) as connection:
        assert await plan_shards(connection, 3) == 3
        assert await plan_shards(connection, None) == 3
        with pytest.raises(JournalError, match="say --shards 3"):
            await plan_shards(connection, 4)


@needs_server
@pytest.mark.parametrize(
    ("given", "says"),
    [
        (("postgresql", "mysql"), "names no database of PostgreSQL"),
        (("/postgres?", "/nothing?"), "make it with createdb"),
        (("pilot@", "stranger@"), "GRANT CREATE ON DATABASE"),
        (("host=/tmp/", "host=/tmp/none"), "check the host, the port, and that it runs"),
        (("schema=", "schema=9-"), "no name of a schema"),
    ],
)
async def test_a_fleet_that_cannot_be_had_is_said_with_what_to_do(
    given: tuple[str, str], says: str, url: str, postgres: PostgresServer
) -> None:
    postgres.sql("drop role if exists stranger", "create role stranger login")
    with pytest.raises(JournalError, match=says):
        async with fleet_database(url.replace(*given), create=True):
            pass


@needs_server
async def test_a_shard_that_cannot_have_its_journal_says_why_where_all_see_it(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, postgres: PostgresServer
) -> None:
    monkeypatch.setattr("app.cli.fleet.shard.AWAY_S", 0)
    address = address_of(url, 1)
    connection = await connect(address)
    await prepare(connection, address, SystemClock().now(), create=True)
    await connection.execute("update meta set value = '99' where key = 'schema_version'")
    connection.terminate()
    async with fleet_database(url, create=True) as fleet:
        await plan_shards(fleet, 1)
    with pytest.raises(JournalTooNew):
        await Shard(ShardPlan(url, 1, 1, str(tmp_path))).run()
    client = FleetClient(url)
    await client.look()
    (answer,) = await client.ask_all("ping")
    assert "open it with a newer Pilothouse" in str(answer)


# ------------------------------------------------------------------ files


@needs_server
async def test_a_moved_shard_has_its_files_and_one_that_stays_keeps_its_own(url: str, tmp_path: Path) -> None:
    address = address_of(url, 1)
    connection = await connect(address)
    await prepare(connection, address, SystemClock().now(), create=True)
    await connection.execute(TABLE)
    here, there = SharedFiles(tmp_path / "here"), SharedFiles(tmp_path / "there")
    (tmp_path / "here").mkdir()
    (tmp_path / "there").mkdir()
    lease = await acquire(connection, "engine", "d", 60)
    assert lease is not None
    await here.bring(connection, lease)
    (tmp_path / "here/sandbox/notes").mkdir()
    (tmp_path / "here/sandbox/notes/one.txt").write_text("one")
    (tmp_path / "here/forks/twin").mkdir(parents=True)
    (tmp_path / "here/forks/twin/own.txt").write_text("of a fork")
    await here.save(connection, lease)
    (tmp_path / "here/sandbox/two.txt").write_text("two")

    assert not await here.bring(connection, lease._replace(token=lease.token + 1))
    assert (tmp_path / "here/sandbox/two.txt").read_text() == "two"
    assert await there.bring(connection, lease._replace(token=lease.token + 2))
    assert (tmp_path / "there/sandbox/notes/one.txt").read_text() == "one"
    assert (tmp_path / "there/forks/twin/own.txt").read_text() == "of a fork"
    (tmp_path / "there/sandbox/three.txt").write_text("three")
    with pytest.raises(LeaseLost):
        await there.save(connection, lease._replace(token=lease.token + 2))
    connection.terminate()


# ------------------------------------------------------------------ budgets


@needs_server
async def test_grants_are_never_more_than_the_budget(url: str) -> None:
    schema = schema_of(url)
    async with fleet_database(url, create=True) as connection:
        await set_budget(connection, "tokens", 1_000)

    async def shard(number: int) -> float:
        own = 0.0
        draw = random.Random(number)
        async with fleet_database(url) as connection:
            for _ in range(60):
                more = draw.randint(-200, 300)
                own = (await change_grant(connection, schema, "tokens", number, max(more, -own))).own
                total = await connection.fetchval("select sum(amount) from grants")
                assert own >= 0
                assert total <= 1_000
        return own

    owns = await asyncio.gather(*(shard(number) for number in range(5)))
    async with fleet_database(url) as connection:
        assert await connection.fetchval("select sum(amount) from grants") == sum(owns)


@needs_server
async def test_engines_take_all_of_a_budget_together_and_no_more(url: str, tmp_path: Path) -> None:
    async with fleet_database(url, create=True) as connection:
        await set_budget(connection, "actions", 20)
    taken = []
    engines = [await Engine.open(tmp_path / f"shard-{number}") for number in (1, 2)]
    servers = [EngineServer(engine, "serve") for engine in engines]
    try:
        for server in servers:
            await server.begin()
        async with fleet_database(url) as connection:
            budgets = [SharedBudgets(schema_of(url), number, 2) for number in (1, 2)]
            clients = [await EngineClient.open(engine.workspace) for engine in engines]
            for each, client in zip(budgets, clients, strict=True):
                assert client is not None
                await each.adjust(connection, client)
            for engine in engines:
                await engine.submit(cmd.CreateAgent(agent="builder", config={"thinker": "procedural"}))
                for number in range(15):
                    goal = f"append '{number}' to notes.txt"
                    await engine.submit(cmd.AdoptGoal(agent="builder", text=goal))
                await engine.submit(cmd.Run(agent="builder"))
            async with asyncio.timeout(PATIENCE_S):
                while sum(taken) < 20:
                    for each, client in zip(budgets, clients, strict=True):
                        assert client is not None
                        await each.adjust(connection, client)
                    taken = [(await engine.view("builder")).actions for engine in engines]
                    await asyncio.sleep(0.05)
            for client in clients:
                assert client is not None
                await client.close()
    finally:
        for server, engine in zip(servers, engines, strict=True):
            await server.close("")
            await engine.close()
    assert sum(taken) == 20


# ------------------------------------------------------------------ the board


@needs_server
async def test_the_board_shows_who_needs_you_first_and_stops_all_with_a_line_for_each_shard(
    url: str, tmp_path: Path
) -> None:
    engines = [await Engine.open(tmp_path / f"shard-{number}") for number in (1, 2)]
    servers = [EngineServer(engine, "serve") for engine in engines]
    async with fleet_database(url, create=True) as connection:
        await plan_shards(connection, 3)
        for number, (engine, server) in enumerate(zip(engines, servers, strict=True), 1):
            await server.begin()
            row = ShardRow(number, "here", str(engine.workspace), os.getpid(), 1, "up", "")
            await note_shard(connection, schema_of(url), row)
            for name in ("builder", "writer"):
                agent = f"{name}-{number}"
                await engine.submit(cmd.CreateAgent(agent=agent, config={"thinker": "procedural"}))
        await engines[1].submit(cmd.Intervene(agent="writer-2"))
    client = FleetClient(url)
    app = ShardBoardApp(client)
    try:
        async with asyncio.timeout(PATIENCE_S), app.run_test(size=(140, 30)) as pilot:
            while len(app.dialog.grid.agents) < 4:
                await pilot.pause(0.05)
            names = [row.name for row in app.dialog.grid.agents]
            assert names == ["writer-2", "builder-1", "writer-1", "builder-2"]
            assert app.dialog.grid.agents[0].note.startswith("your turn")
            assert "shard-3: starting, and no engine answers here" in app.dialog.model.standing
            await pilot.press("slash", *"s2", "enter")
            assert [row.name for row in app.dialog.grid.agents] == ["writer-2", "builder-2"]
            await pilot.press("escape", "S")
            while "agents stopped" not in app.dialog.model.said:
                await pilot.pause(0.05)
            lines = app.dialog.model.said.splitlines()
            assert lines[:2] == ["shard-1: 2 agents stopped", "shard-2: 2 agents stopped"]
            assert lines[2].startswith("shard-3: not stopped")
            await pilot.press("home", "enter")
        assert app.return_value == "2 writer-2"
    finally:
        await client.close()
        for server, engine in zip(servers, engines, strict=True):
            await server.close("")
            await engine.close()


# ------------------------------------------------------------------ what dies


async def _kill_engine(flight: FleetFlight, number: int) -> None:
    os.kill(flight.client.shards[number - 1].pid, signal.SIGKILL)


async def _kill_shard(flight: FleetFlight, number: int) -> None:
    flight.processes[number].kill()
    flight.processes[number].wait()
    flight.begin(number)  # which is what Ray does


async def _kill_database(flight: FleetFlight, number: int) -> None:
    flight.server.kill()
    flight.server.start()


async def _cut(flight: FleetFlight, number: int) -> None:
    token, proxy = (await flight.tokens())[number], flight.proxies[number]
    proxy.cut()
    while flight.client.shards[number - 1].token == token and flight.alive(number):
        await asyncio.sleep(0.05)  # its engine is ended before its lease runs out
    proxy.mend()


JOBS = 20
SENDER = f"""
!hand(0). +!hand({JOBS}).
+!hand(N) <- .send(%s, achieve, job(N)); .concat("append 'x' to ", N, ".txt", T); .send(%s, achieve, T);
    .wait(50); !hand(N + 1).
"""


@needs_server
async def test_work_handed_to_agents_of_other_shards_is_taken_once_whoever_dies(flight: FleetFlight) -> None:
    names = {shard_of(name, 3): name for name in map("agent-{}".format, range(200, 300))}
    sender, program, clerk = names[1], names[2], names[3]
    nobody = next(name for name in map("nobody-{}".format, range(100)) if shard_of(name, 3) == 2)
    worker = "+!job(N) <- .print(N)."
    hands = SENDER % (f'"{program}"', f'"{clerk}"') + f'!lost. +!lost <- .send("{nobody}", tell, hello).'
    assert await flight.sent(clerk, {"do": "create_agent", "config": {"thinker": "procedural"}})
    for agent, text in ((program, worker), (sender, hands)):
        create = {"do": "create_agent", "agent_type": "asl_agent", "config": {"program": text}}
        assert await flight.sent(agent, create)
        assert await flight.sent(agent, {"do": "run"})
    draw = random.Random(2)
    for _ in range(rounds(2, full=20)):
        await asyncio.sleep(draw.random())
        before = await flight.tokens()
        number = draw.randint(1, 3)
        await _kill_engine(flight, number)
        await flight.back({number: before[number]})

    async with fleet_database(flight.url) as connection:
        schema = schema_of(flight.url)
        taken = {
            agent: f"select body from {schema}_{number}.events where stream = '{agent}' and kind = '{kind}'"
            for number, agent, kind in ((2, program, "reasoner.message_heard"), (3, clerk, "goal.adopted"))
        }
        async with asyncio.timeout(PATIENCE_S):
            while any([len(await connection.fetch(sql)) < JOBS for sql in taken.values()]):
                await asyncio.sleep(0.2)
        await asyncio.sleep(1)  # in which one that was taken twice would come
        for sql in taken.values():
            bodies = [json.loads(body) for (body,) in await connection.fetch(sql)]
            what = Counter(body.get("content") or body["text"] for body in bodies)
            assert len(what) == what.total() == JOBS
        lines = await undelivered(connection)
    assert len(lines) == 1
    assert lines[0].startswith(f"message of {sender} to {nobody} on shard-2 was refused: ")


MEMBER = "+!task(T) <- .wait(%s); +result(T)."


async def _crew(flight: FleetFlight, number: int, wait_ms: int) -> str:
    """Have an agent on this shard that gives its task back after a while, and that work can be handed to."""
    name = next(
        each for each in map(f"member-{wait_ms}-{{}}".format, range(100)) if shard_of(each, 3) == number
    )
    program = {"program": MEMBER % wait_ms}
    create = {"do": "create_agent", "agent_type": "asl_agent", "config": program}
    assert await flight.sent(name, create)
    spec = {
        "id": name,
        "name": name,
        "type": "operator",
        "description": "Gives its task back.",
        "done_by": name,
        "handoff": {"receives": {"requires_what": False, "requires_who": False, "requires_success": False}},
    }
    assert await flight.sent(name, {"do": "crew_register", "spec": spec})
    return name


async def _hand(flight: FleetFlight, to: str, task: str) -> str:
    """Hand a task to an agent from shard 1; the handoff's id, empty where it was not taken."""
    command = {"do": "crew_delegate", "to": to, "task": task}
    with suppress(*UNUSABLE):
        receipt = await flight.client.ask(flight.client.shards[0], "submit", command=command)
        return str(receipt["data"].get("handoff", ""))
    return ""


async def _events(flight: FleetFlight, number: int, kind: str) -> dict[str, list[dict[str, Any]]]:
    """What a shard's crew has on record of a kind, by handoff."""
    found: dict[str, list[dict[str, Any]]] = {}
    with suppress(JournalError):
        async with fleet_database(flight.url) as connection:
            sql = f"select body from {schema_of(flight.url)}_{number}.events where kind = $1 order by seq"
            for (body,) in await connection.fetch(sql, f"crew.{kind}"):
                event = json.loads(body)
                found.setdefault(event["handoff"], []).append(event)
    return found


async def _until(flight: FleetFlight, number: int, kind: str, handoffs: set[str]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not handoffs <= (await _events(flight, number, kind)).keys():
            await asyncio.sleep(0.1)


@needs_server
async def test_a_handoff_to_another_shard_ends_once_whichever_engine_is_killed(flight: FleetFlight) -> None:
    slow, quick = await _crew(flight, 2, 4_000), await _crew(flight, 3, 10)
    nobody = next(name for name in map("nobody-{}".format, range(100)) if shard_of(name, 3) == 1)
    ends: dict[str, tuple[str, str]] = {}
    work = (("quick", quick, 0), ("kept", slow, 1), ("lost", slow, 2), ("none", nobody, 0), ("bad", slow, 0))
    for name, to, dies in (*work, ("\N{ROCKET}" * 80_000, quick, 0)):
        handoff = await _hand(flight, to, name)
        if name == "bad":
            given = {"do": "crew_report", "handoff": handoff, "state": "completed", "result": {"success": 1}}
            bad = {"sender": to, "receiver": "shard-1", "command": given}
            async with fleet_database(flight.url) as connection:
                for message in ({"sender": to, "receiver": to, "content": ""}, bad):
                    sql = "insert into messages(id, shard, message) values(gen_random_uuid(), 1, $1)"
                    await connection.execute(sql, json.dumps(message))
        if dies:
            await _until(flight, 2, "run_begun", {handoff})
            await _until(flight, 1, "handoff_moved", {handoff})
            before = await flight.tokens()
            await _kill_engine(flight, dies)
            await flight.back({dies: before[dies]})
        await _until(flight, 1, "handoff_ended", {handoff})
        (end,) = (await _events(flight, 1, "handoff_ended"))[handoff]
        ends[name[:5].replace("\N{ROCKET}" * 5, "long")] = (
            end["target"],
            end["result"]["output"] or end["result"]["error"],
        )
    assert ends == {
        "quick": ("completed", "quick"),
        "kept": ("completed", "kept"),
        "lost": ("failed", "process ended"),
        "none": ("rejected", f"no agent {nobody} is registered here, nor elsewhere"),
        "bad": (
            "failed",
            "HandoffResult: handoff_id: Field required; from_agent: Field required; to_agent: Field required",
        ),
        "long": ("rejected", "it has more than 1,044,480 bytes"),
    }
    async with fleet_database(flight.url) as connection:
        assert len(await undelivered(connection)) == 3


@needs_server
async def test_handoffs_to_other_shards_stand_alike_on_both_whatever_dies(flight: FleetFlight) -> None:
    members = {number: await _crew(flight, number, 1_000) for number in (2, 3)}
    handed: dict[str, int] = {}
    draw = random.Random(3)
    for _ in range(rounds(1, full=10)):
        for trouble in (_kill_engine, _kill_shard, _kill_database):
            for _ in range(4):
                number = draw.choice((2, 3))
                if handoff := await _hand(flight, members[number], f"job {len(handed)}"):
                    handed[handoff] = number
            await asyncio.sleep(draw.random())
            number, before = draw.randint(1, 3), await flight.tokens()
            await trouble(flight, number)
            await flight.back({number: before[number]} if trouble is not _kill_database else {})
    assert handed
    await _until(flight, 1, "handoff_ended", set(handed))
    here = await _events(flight, 1, "handoff_ended")
    there = {number: await _events(flight, number, "handoff_ended") for number in members}
    begun = {number: await _events(flight, number, "run_begun") for number in members}
    for handoff, number in handed.items():
        (end,), (other,) = here[handoff], there[number][handoff]
        assert (end["target"], end["result"]["output"]) == (other["target"], other["result"]["output"])
        assert len(begun[number].get(handoff, ())) <= 1
    print(Counter(ends[0]["target"] for ends in here.values()))
    assert any(ends[0]["target"] == "completed" for ends in here.values())
    async with fleet_database(flight.url) as connection:
        assert not await undelivered(connection)


@needs_server
async def test_clocks_five_minutes_off_neither_take_a_shard_nor_lose_it(tmp_path: Path) -> None:
    server = PostgresServer()
    flight = FleetFlight(tmp_path, server.start(), 1, 1)
    try:
        await flight.start(skew_s=-300)
        await flight.create()
        before, slow = await flight.tokens(), flight.processes[1]
        flight.begin(1, node="elsewhere", skew_s=300)
        await flight.work()
        await asyncio.sleep(3)  # in which it would take a lease whose end it judged by its own clock
        assert await flight.tokens() == before
        assert flight.client.shards[0].node != "elsewhere"
        slow.kill()
        slow.wait()
        await flight.back(before)
        assert flight.client.shards[0].node == "elsewhere"
        await flight.check()
        async with fleet_database(flight.url) as connection:
            rows = await connection.fetch("select at from fleet_1.events where kind = 'session.opened'")
        first, second = (datetime.fromisoformat(at) for (at,) in rows)
        assert (second - first).total_seconds() > 600
    finally:
        await flight.stop()
        server.remove()


@needs_server
async def test_shards_that_die_come_back_with_all_that_was_acknowledged(flight: FleetFlight) -> None:
    await flight.create()
    draw, slowest = random.Random(1), 0.0
    for _ in range(ROUNDS):
        for trouble in (_kill_engine, _kill_shard, _kill_database, _cut):
            number = draw.randint(1, 3)
            working = asyncio.create_task(flight.work(draw.sample(flight.agents, AT_WORK)))
            before = await flight.tokens()
            began = time.monotonic()
            await trouble(flight, number)
            lasted = time.monotonic() - began
            again = {number: before[number]} if trouble is not _kill_database else {}
            took = await flight.back(again)
            slowest = max(slowest, took)
            print(f"{trouble.__name__} of shard {number}, {lasted:.1f} s long: back after {took:.1f} s")
            await working
    await flight.check()
    print(
        f"{flight.actions} actions, {flight.unknown} of unknown outcome, {len(flight.acknowledged)} receipts"
    )
    assert flight.actions
    if FULL:
        assert slowest <= BACK_S
