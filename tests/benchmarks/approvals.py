"""Approvals: how soon a question is on the board, and how soon its action begins after the answer (T5).

The baseline of both is the same action where nothing is asked, from the agent's request to its start: what
snapshot and journal take anyway. Run it with `python -m tests.benchmarks.approvals`.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
import time
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from app.projection.projector import Projector
from engine.agent.shared import EngineConfig
from engine.agent.steering.rules import PRESETS
from engine.api.engine import Engine
from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.agents import Mode
from engine.core.approvals import Policy

ACTIONS = 60
BOARD_LIMIT_MS, START_LIMIT_MS = 250.0, 50.0


class _Timed:
    """An agent that works through a plan of writes, with a board beside it."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.board = Projector()
        self.asked: dict[str, float] = {}
        self.boarded: list[float] = []
        self.begun: list[float] = []
        self.requested: list[float] = []
        self._answered: dict[str, float] = {}

    async def watch(self) -> None:
        """Follow the journal as the cockpit does, answer each question, and keep the times."""
        since: dict[str, float] = {}
        async for event in self.engine.events(0, stream="pilot"):
            said = self.board.take(event)
            match said:
                case ev.ActionRequested():
                    since[said.action] = _seconds(event.at)
                case ev.ApprovalAsked():
                    state = self.board.state
                    assert state is not None
                    assert state.mode is Mode.WAITING
                    self.boarded.append(time.time() - _seconds(event.at))
                    self._answered[said.action] = time.time()
                    await self.engine.submit(
                        cmd.AnswerApproval(agent="pilot", action=said.action, allow=True)
                    )
                case ev.ActionStarted() if said.action in self._answered:
                    self.begun.append(_seconds(event.at) - self._answered[said.action])
                case ev.ActionStarted():
                    self.requested.append(_seconds(event.at) - since[said.action])
                case ev.GoalEnded():
                    return


def _seconds(at: str) -> float:
    return datetime.fromisoformat(at).timestamp()


async def _flown(policy: Policy) -> _Timed:
    with tempfile.TemporaryDirectory() as workspace:
        engine = await Engine.open(Path(workspace), config=EngineConfig(approvals=policy))
        try:
            await engine.submit(cmd.CreateAgent(agent="pilot"))
            await engine.submit(cmd.AdoptGoal(agent="pilot", text="list the files"))
            while not (await engine.view("pilot")).plans:
                await asyncio.sleep(0.01)
            steps = [
                {
                    "type": "EXECUTE_TOOL",
                    "params": {"tool_id": "simple_coder", "command": "write", "args": args},
                }
                for args in ({"path": f"f{n}.txt", "content": str(n)} for n in range(ACTIONS))
            ]
            await engine.submit(cmd.ReplacePlan(agent="pilot", goal="g1", plan=json.dumps(steps)))
            timed = _Timed(engine)
            watching = asyncio.create_task(timed.watch())
            await engine.submit(cmd.Run(agent="pilot"))
            await watching
        finally:
            await engine.close()
        return timed


def rows() -> list[dict[str, Any]]:
    """One row for the board, one for the start of the action."""
    asked, plain = asyncio.run(_flown(PRESETS["ask-changes"])), asyncio.run(_flown(Policy()))
    return [
        _row("a question is on the board", asked.boarded, plain.requested, BOARD_LIMIT_MS),
        _row("the action starts after the answer", asked.begun, plain.requested, START_LIMIT_MS),
    ]


def _row(what: str, times: Sequence[float], baseline: Sequence[float], limit_ms: float) -> dict[str, Any]:
    return {
        "benchmark": "approvals",
        "what": what,
        "n": len(times),
        "p50_ms": _at(times, 0.5),
        "p95_ms": _at(times, 0.95),
        "baseline_unasked_p50_ms": _at(baseline, 0.5),
        "baseline_unasked_p95_ms": _at(baseline, 0.95),
        "limit_ms": limit_ms,
    }


def _at(times: Sequence[float], share: float) -> float:
    ordered = sorted(times)
    return round(1000 * ordered[min(len(ordered) - 1, int(share * len(ordered)))], 2) if ordered else 0.0


if __name__ == "__main__":
    for row in rows():
        print(json.dumps(row))
