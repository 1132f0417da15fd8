"""Agents of other programs: what gate, snapshot and journal add to a tool call, beside the plain client.

The program measures itself: the time from its request to the answer, and for an edit of its own, until it is
written. The baseline is the same program under the protocol library's plain client, which does at once what
it is asked. Both run in turn, a few calls at a time. Run it with `python -m tests.benchmarks.other_agents`.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from acp import spawn_agent_process, text_block
from acp.schema import AllowedOutcome, ReadTextFileResponse, RequestPermissionResponse, WriteTextFileResponse

from engine.api.engine import Engine
from engine.core import commands as cmd
from engine.core import events as ev
from tests.engine.agent.other_programs.acp_flight import program

ROUNDS, CALLS = 4, 15
LIMIT_MS = 40.0
Times = dict[str, list[float]]


class _Plain:
    """A client that does at once what it is asked."""

    def __init__(self) -> None:
        self.said = ""

    def on_connect(self, _agent: Any) -> None:
        """See the library's `Client`."""

    async def session_update(self, session_id: str, update: Any, **_more: Any) -> None:
        """Keep what the program says."""
        if update.session_update == "agent_message_chunk":
            self.said += update.content.text

    async def request_permission(
        self, session_id: str, tool_call: Any, options: list[Any], **_more: Any
    ) -> RequestPermissionResponse:
        """Allow it."""
        return RequestPermissionResponse(
            outcome=AllowedOutcome(outcome="selected", option_id=options[0].option_id)
        )

    async def read_text_file(self, path: str, session_id: str, **_more: Any) -> ReadTextFileResponse:
        """Read a file."""
        return ReadTextFileResponse(content=Path(path).read_text())

    async def write_text_file(
        self, content: str, path: str, session_id: str, **_more: Any
    ) -> WriteTextFileResponse:
        """Write a file."""
        Path(path).write_text(content)
        return WriteTextFileResponse()


async def _plain(place: Path) -> Times:
    (place / ".home").mkdir(parents=True)
    (place / "notes.txt").write_text("remember\n")
    client = _Plain()
    async with spawn_agent_process(client, program(place), "timed", str(CALLS), cwd=place) as (agent, _):
        await agent.initialize(protocol_version=1)
        session = await agent.new_session(cwd=str(place), mcp_servers=[])
        await agent.prompt(session_id=session.session_id, prompt=[text_block("go")])
    return dict(json.loads(client.said))


async def _flown(place: Path) -> Times:
    place.mkdir()
    engine = await Engine.open(place / "workspace")
    try:
        (place / "workspace" / "sandbox" / "notes.txt").write_text("remember\n")
        config = {"command": f"{program(place)} timed {CALLS}"}
        await engine.submit(cmd.CreateAgent(agent="dev", agent_type="acp_agent", config=config))
        await engine.submit(cmd.AdoptGoal(agent="dev", text="go"))
        await engine.submit(cmd.Run(agent="dev"))
        said = ""
        async for event in engine.events(0, stream="dev"):
            if event.kind == ev.ModelSaid.kind:
                said += json.loads(event.body)["text"]
            elif event.kind in (ev.GoalEnded.kind, ev.InterventionOpened.kind):
                break
    finally:
        await engine.close()
    return dict(json.loads(said))


async def _measured() -> tuple[Times, Times]:
    flown: Times = {}
    plain: Times = {}
    with tempfile.TemporaryDirectory() as place:
        for number in range(ROUNDS):
            for times, run in ((plain, _plain), (flown, _flown)):
                for what, some in (await run(Path(place, f"{run.__name__}-{number}"))).items():
                    times.setdefault(what, []).extend(some)
    return flown, plain


def rows() -> list[dict[str, Any]]:
    """One row for each kind of call."""
    flown, plain = asyncio.run(_measured())
    return [_row(what, flown, plain) for what in flown]


def _row(
    what: str, flown: Mapping[str, Sequence[float]], plain: Mapping[str, Sequence[float]]
) -> dict[str, Any]:
    return {
        "benchmark": "other_agents",
        "what": f"a {what} of an agent of another program",
        "n": len(flown[what]),
        "p50_ms": round(median(flown[what]), 2),
        "p95_ms": round(sorted(flown[what])[int(0.95 * len(flown[what]))], 2),
        "baseline_plain_client_p50_ms": round(median(plain[what]), 2),
        "added_p50_ms": round(median(flown[what]) - median(plain[what]), 2),
        "limit_ms": LIMIT_MS,
    }


if __name__ == "__main__":
    for row in rows():
        print(json.dumps(row))
