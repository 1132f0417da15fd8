"""`pilothouse fleet`: agents on several engines and machines, kept in one PostgreSQL and placed by Ray."""

from __future__ import annotations

import argparse
import asyncio
import os
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from app.cli.options import Answer, print_error, run_answer
from app.commands.user import state_home
from engine.core.store import JOURNAL

MISSING = "a fleet needs Ray and asyncpg, which are not installed: pip install 'pilothouse[fleet]'"
UP_S = 60.0
"""How long shards may take until they answer."""
LOOK_S = 0.2


def missing() -> str:
    """How to install what a fleet needs and is not there; empty where all is."""
    return "" if find_spec("ray") is not None and find_spec("asyncpg") is not None else MISSING


def run(options: argparse.Namespace) -> int:
    """Do it."""
    if why := missing():
        return print_error(why)
    if not (url := os.environ.get(JOURNAL, "")):
        return print_error(
            f"name the fleet's database: --journal postgresql://USER@HOST/DATABASE or {JOURNAL}"
        )
    match options.what:
        case "up":
            return run_answer(options, _up(options, url))
        case "down":
            return run_answer(options, _down(options, url))
        case "move":
            return run_answer(options, _move(options, url))
        case "run":
            return run_answer(options, _give(options.file, url))
        case "stop":
            return run_answer(options, _stop(url))
    return run_answer(options, status(url, options.agent or ""))


def _root(options: argparse.Namespace) -> str:
    return str((options.root or state_home() / "fleet").absolute())


async def _up(options: argparse.Namespace, url: str) -> Answer:
    from app.cli.fleet import cluster
    from app.cli.fleet.database import (
        KINDS,
        fleet_address,
        fleet_database,
        plan_shards,
        schema_of,
        set_budget,
    )
    from app.cli.fleet.shard import ShardPlan

    async with fleet_database(url, create=True) as connection:
        shards = await plan_shards(connection, options.shards)
        for kind in KINDS:
            if (amount := getattr(options, f"budget_{kind}")) is not None:
                await set_budget(connection, kind, amount)
    await asyncio.to_thread(cluster.join, options.ray, start=True)
    for number in range(1, shards + 1):
        plan = ShardPlan(url, number, shards, _root(options), lease_s=options.lease)
        await asyncio.to_thread(cluster.place, schema_of(url), plan)
    await asyncio.to_thread(cluster.leave)  # which else tells of what it waits for, on standard output
    code, answer, text = await _until_up(url)
    where = fleet_address(url)
    return code, {**answer, "address": where}, f"{text}\nits board: pilothouse attach '{where}'"


async def _until_up(url: str) -> Answer:
    """The status, once all shards are up, or it has taken too long."""
    until = asyncio.get_running_loop().time() + UP_S
    while True:
        code, answer, text = await status(url)
        if not code or asyncio.get_running_loop().time() > until:
            return code, answer, text
        await asyncio.sleep(LOOK_S)


async def status(url: str, agent: str = "") -> Answer:
    """Where each shard is, or that of an agent; exit code 1 where one does not answer."""
    from app.cli.fleet.client import FleetClient

    client = FleetClient(url)
    try:
        shards = await client.look()
        if agent:
            shards = client.shards = [client.shard_of(agent)]
        answers = await client.ask_all("agents")
    finally:
        await client.close()
    rows: list[dict[str, Any]] = []
    lines = []
    for shard, answer in zip(shards, answers, strict=True):
        trouble = str(answer) or type(answer).__name__ if isinstance(answer, BaseException) else ""
        agents = [] if trouble else answer
        running = sum(agent.get("run") == "running" for agent in agents)
        rows.append({**shard._asdict(), "agents": len(agents), "running": running, "trouble": trouble})
        how = trouble or f"{len(agents)} agents, {running} running"
        lines.append(f"{shard.name} {shard.state} on {shard.node or 'no machine yet'}: {how}")
        if shard.workspace:
            lines.append(f"  files: {shard.workspace}/sandbox on {shard.node}; process {shard.pid}")
    lines += client.undelivered
    down = any(shard.state != "up" for shard in shards) or any(row["trouble"] for row in rows)
    return int(down), {"shards": rows, "undelivered": client.undelivered}, "\n".join(lines)


async def _down(options: argparse.Namespace, url: str) -> Answer:
    from app.cli.fleet import cluster
    from app.cli.fleet.database import fleet_database, schema_of, shard_rows

    async with fleet_database(url) as connection:
        shards = await shard_rows(connection)
    await asyncio.to_thread(cluster.join, options.ray)
    work = (asyncio.to_thread(cluster.remove, schema_of(url), shard.number) for shard in shards)
    done = await asyncio.gather(*work)
    lines = [
        f"{shard.name}: {'drained and ended' if ended else 'was not there, or its actions did not end'}"
        for shard, ended in zip(shards, done, strict=True)
    ]
    lines.append("Ray runs on; ray stop ends it on this machine")
    return int(not all(done)), {"ended": sum(done), "shards": len(shards)}, "\n".join(lines)


async def _move(options: argparse.Namespace, url: str) -> Answer:
    from app.cli.fleet import cluster
    from app.cli.fleet.database import fleet_database, schema_of, shard_rows
    from app.cli.fleet.shard import ShardPlan

    async with fleet_database(url) as connection:
        shards = {shard.number: shard for shard in await shard_rows(connection)}
    if (shard := shards.get(options.number)) is None:
        return 2, {}, f"there is no shard {options.number}; pilothouse fleet status shows all"
    await asyncio.to_thread(cluster.join, options.ray)
    schema, root = schema_of(url), str(Path(shard.workspace).parent.parent)
    node = await asyncio.to_thread(cluster.other_node, schema, shard.number, len(shards))
    await asyncio.to_thread(cluster.remove, schema, shard.number)
    plan = ShardPlan(url, shard.number, len(shards), root, lease_s=options.lease)
    await asyncio.to_thread(lambda: cluster.place(schema, plan, node=node))
    await asyncio.to_thread(cluster.leave)
    return await _until_up(url)


async def _give(file: Path, url: str) -> Answer:
    from app.cli.fleet.client import UNUSABLE, FleetClient
    from app.cli.fleet_run import FleetError, load_fleet

    client = FleetClient(url)
    refused, given = dict[str, list[str]](), 0
    try:
        members = await asyncio.to_thread(load_fleet, file)
        await _until_up(url)
        await client.look()
        for member in members:
            config = {"thinker": member.thinker} if member.thinker else {}
            commands: list[dict[str, Any]] = [
                {"do": "create_agent", "config": config},
                {"do": "adopt_goal", "text": member.goal},
                {"do": "run", "max_loops": member.max_loops},
            ]
            for command in commands:
                shard = client.shard_of(member.agent)
                try:
                    receipt = await client.ask(shard, "submit", command={**command, "agent": member.agent})
                except UNUSABLE as error:
                    receipt = {"ok": False, "message": str(error)}
                if not receipt["ok"]:
                    refused.setdefault(receipt["message"], []).append(member.agent)
                    break
            else:
                given += 1
    except FleetError as error:
        return 2, {}, str(error)
    finally:
        await client.close()
    lines = [f"{', '.join(agents[:3])}{_more(len(agents) - 3)}: {why}" for why, agents in refused.items()]
    text = "\n".join([*lines, f"{given} of {len(members)} agents run on {len(client.shards)} shards"])
    each = [f"{agent}: {why}" for why, agents in refused.items() for agent in agents]
    return int(bool(refused)), {"agents": given, "refused": each}, text


def _more(count: int) -> str:
    return f" and {count} more" if count > 0 else ""


async def _stop(url: str) -> Answer:
    from app.cli.fleet.client import FleetClient

    client = FleetClient(url)
    try:
        await client.look()
        done, lines = await client.stop_all()
    finally:
        await client.close()
    return int(not done), {"ok": done, "shards": lines}, "\n".join(lines)
