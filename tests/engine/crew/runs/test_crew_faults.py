"""A crew of many handoffs that is disturbed and killed: each ends once, nothing runs on, costs add up."""

from __future__ import annotations

import asyncio
import json
import os
import random
import sqlite3
import time
from collections import Counter
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from crew_desk import returns
from test_run_debate import judged, turn, who
from whole_crew import asker, told, whole

from engine.core.store.schema import read_only_uri
from engine.crew.ontology.kinds import ErrorCode
from engine.crew.state import CrewState
from tests import forking
from tests.messages_server import MessagesServer, Reply, failure, object_call
from tests.messages_server.server import Seen
from tests.patience import PATIENCE_S
from tests.rounds import rounds

HANDOFFS = rounds(20, full=1_000)
KILL_EVERY = rounds(10, full=100)
PROGRAM = Path(__file__).with_name("faulted_crew.py")
LIFE = f"import runpy; runpy.run_path({str(PROGRAM)!r}, None, '__main__')"
WORKS = ("action.started", "model.asked", "model.called")
"""Kinds of events by which a run works."""


class Model:
    """Answers every agent; how, a seed says."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)

    def __call__(self, seen: Seen) -> Reply:
        name, what = asker(seen), self.dice.random()
        if side := who(seen):
            now = int("Round 1 of" in told(seen))
            return judged("A", 0.8, "A1") if side == "Judge" else turn(side[-1], now)
        if name == "Slow" or what < 0.02:
            return Reply(text="half of it", after=3, then="hold")
        if what < 0.04:
            return failure(529, "overloaded_error")
        if name == "Boss" and "has answered" not in told(seen) and "returned" not in told(seen):
            return object_call("delegate", to=self.dice.choice(("leaf", "leaf", "slow", "pipe")), task="go")
        if name == "P" or name == "Pipe":
            return object_call("checkpoint", outputs={"x": "1"})
        return returns("x and y say so " * (6 if what < 0.7 else 1))


@dataclass
class Journal:
    """What the journal says of a crew, read beside the engine."""

    ended: Counter[str] = field(default_factory=Counter)
    states: Counter[str] = field(default_factory=Counter)
    parents: dict[str, str] = field(default_factory=dict)
    runs: dict[str, str] = field(default_factory=dict)
    late: list[tuple[int, str, str]] = field(default_factory=list)
    """What a run did although a handoff above its own had ended: place, run and kind."""
    most: int = 0
    """Handoffs that were open at a time."""
    calls: int = 0
    tokens: int = 0
    usd: float = 0.0

    def above(self, handoff: str) -> bool:
        """Whether a handoff above one has ended."""
        parent = self.parents.get(handoff, "")
        return bool(parent) and (parent in self.ended or self.above(parent))


def rows(workspace: Path, sql: str) -> list[tuple[int, str, str, str]]:
    uri = read_only_uri(workspace / ".pilothouse" / "journal.db")
    with closing(sqlite3.connect(uri, uri=True, timeout=PATIENCE_S)) as journal:
        return journal.execute(sql).fetchall()


def begun(workspace: Path) -> int:
    """How many handoffs are durable."""
    if not (workspace / ".pilothouse" / "journal.db").exists():
        return 0
    try:
        return rows(workspace, "select count(*) from events where kind = 'crew.handoff_queued'")[0][0]
    except sqlite3.OperationalError:
        return 0


def read(workspace: Path) -> Journal:
    made = Journal()
    for seq, stream, kind, text in rows(workspace, "select seq, stream, kind, body from events order by seq"):
        body = json.loads(text) if kind.startswith(("crew.", "model.")) else {}
        match kind:
            case "crew.handoff_queued":
                made.parents[body["handoff"]] = body["context"].get("parent_id") or ""
                made.most = max(made.most, len(made.parents) - len(made.ended))
            case "crew.run_begun":
                made.runs[body["run"]] = body["handoff"]
            case "crew.handoff_ended":
                made.ended[body["handoff"]] += 1
                made.states[body["target"]] += 1
            case "model.called":
                made.calls += 1
                made.tokens += body["tokens"]
                made.usd += body["cost_usd"] or 0.0
        if kind in WORKS and made.above(made.runs.get(stream, "")):
            made.late.append((seq, stream, kind))
    return made


async def lived(workspace: Path, url: str) -> int:
    """Let the crew live, and kill it after so many handoffs each; the kills."""
    lives = HANDOFFS // KILL_EVERY
    for life in range(1, lives + 1):
        last = life == lives
        out = workspace.parent / f"out-{life}"
        with out.open("w") as said, open(os.devnull) as nothing:
            process = forking.start(
                LIFE,
                *(str(workspace), url, str(life), str(HANDOFFS if last else 10 * HANDOFFS)),
                cwd=workspace.parent,
                files=(nothing.fileno(), said.fileno(), said.fileno()),
            )
            try:
                if last:
                    assert await asyncio.to_thread(process.wait, 10 * PATIENCE_S) == 0, out.read_text()
                    break
                async with asyncio.timeout(10 * PATIENCE_S):
                    while await asyncio.to_thread(begun, workspace) < life * KILL_EVERY:
                        await asyncio.sleep(0.02)
            finally:
                process.kill()
        assert process.wait() == -9, out.read_text()
    return lives - 1


def spent(state: CrewState) -> tuple[int, int, float]:
    tops = [state.spent(one.id) for one in state.handoffs.values() if one.context.parent_id == ""]
    tokens = sum(one.input_tokens + one.output_tokens for one in tops)
    return sum(one.calls for one in tops), tokens, round(sum(one.usd for one in tops), 6)


async def test_each_handoff_ends_once_nothing_runs_on_and_the_cost_adds_up(tmp_path: Path) -> None:
    workspace, since = tmp_path / "ws", time.monotonic()
    workspace.mkdir()
    async with MessagesServer([Model(24)], repeat=True) as server:
        kills = await lived(workspace, server.url)
        asked = len(server.requests)
    journal = read(workspace)
    async with whole(workspace, [], None) as on:
        state = on.crew.state
        # What was about to end is stopped behind the opening; notices to the operator may stay.
        await on.holds(lambda: all(one.startswith("hr-") for one in on.left()))
        took = f"{time.monotonic() - since:.0f} s"
        codes = Counter(str(one.result.error_code) for one in state.handoffs.values() if one.result)
        table = {
            "handoffs": len(state.handoffs), "most open": journal.most, "kills": kills,
            "ends": dict(journal.states), "codes": dict(codes), "groups": len(state.groups),
            "calls": journal.calls, "asked": asked, "usd": round(journal.usd, 6), "took": took,
        }  # fmt: skip
        print(json.dumps(table, indent=1))
        assert len(state.handoffs) >= HANDOFFS
        assert {name: journal.ended[name] for name in state.handoffs} == dict.fromkeys(state.handoffs, 1)
        assert journal.late == []
        assert all(group.ended for group in state.groups.values())
        assert spent(state) == (journal.calls, journal.tokens, round(journal.usd, 6))
        assert codes[str(ErrorCode.INTERNAL)] > 0
