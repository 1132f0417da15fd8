"""`pilothouse ps`: all engines of this user, with their agents and what needs the operator."""

from __future__ import annotations

import argparse
import asyncio
from pathlib import Path
from typing import Any

from app.cli.beside import UNUSABLE
from app.cli.options import Answer, run_answer
from app.gateways.addresses import EngineRecord, engines
from app.gateways.engine_client import EngineClient
from engine.core.text import clean_line

ANSWER_S = 5.0
"""How long an engine may take to say how it is."""
LINE = 100


def run(options: argparse.Namespace) -> int:
    """List them."""
    return run_answer(options, list_engines())


async def list_engines() -> Answer:
    """A row for each engine; exit code 1 where one does not answer."""
    there = await asyncio.to_thread(engines)
    rows = await asyncio.gather(*(engine_row(record) for _, record in there))
    text = "\n".join(line for row in rows for line in row_lines(row))
    return int(any(row["trouble"] for row in rows)), {"engines": rows}, text or "no engine runs"


async def engine_row(record: EngineRecord) -> dict[str, Any]:
    """How an engine is."""
    row: dict[str, Any] = {**record._asdict(), "agents": [], "needs": [], "trouble": ""}
    try:
        async with asyncio.timeout(ANSWER_S):
            client = await EngineClient.open(Path(record.workspace), watch=True)
            if client is None:
                return {**row, "cost_usd": 0.0, "trouble": "it has just ended"}
            try:
                row |= {"agents": await client.ask("agents"), "needs": await client.ask("inbox")}
                health = await client.ask("health")
                row |= {name: health[name] for name in ("web", "notifier") if name in health}
            finally:
                await client.close()
    except TimeoutError:
        row["trouble"] = f"it does not answer within {ANSWER_S:g} s"
    except UNUSABLE as error:
        row["trouble"] = str(error)
    return {**row, "cost_usd": round(sum(agent.get("cost_usd", 0.0) for agent in row["agents"]), 6)}


def row_lines(row: dict[str, Any]) -> list[str]:
    """An engine in lines for people."""
    needs = len(row["needs"])
    parts = [f"{row['kind']} {row['version']}", f"process {row['pid']}", f"${row['cost_usd']:.2f}"]
    parts += [f"{needs} need{'s' * (needs == 1)} you"] * bool(needs) + [row["trouble"]] * bool(row["trouble"])
    lines = [f"{clean_line(row['workspace'], limit=300)}  {' · '.join(parts)}"]
    for agent in row["agents"]:
        mode = agent.get("mode") or f"ended: {agent['fault']}"
        lines.append(clean_line(f"  {agent['agent']} {mode} {agent.get('goal', '')}", limit=LINE))
    for need in row["needs"]:
        lines.append(clean_line(f"  ! {need['agent']} {need['kind']}: {need['what']}", limit=LINE))
    if web := row.get("web"):
        again = f"; {web['ended']}, and was started again" if web["starts"] > 1 and not web["trouble"] else ""
        refused = sum(web["refused"].values())
        lines.append(f"  web pages: {web['url']}, {refused} refused{again} {web['trouble']}".rstrip())
    notifier = row.get("notifier") or {}
    if notifier.get("sent") or notifier.get("failed"):
        counts = f"{notifier['sent']} sent, {notifier['failed']} failed"
        lines.append(clean_line(f"  notifications: {counts} {notifier['trouble']}"))
    return [lines[0], *(f"  {line}" for line in lines[1:])]
