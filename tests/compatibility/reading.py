"""What a workspace and a settings file say, as the maker writes it down and the test reads it again."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import os
import tempfile
from pathlib import Path
from typing import Any
from unittest.mock import patch

from app.cli.main import main
from app.commands.settings import Settings
from engine.core.fold import fold
from engine.core.journal import CREW, MASTERMIND, of_agent
from engine.core.ports import Ports, SystemClock
from engine.core.state import AgentState
from engine.core.store.sqlite import SqliteJournal
from engine.crew.event_stream import EventStream as CrewStream
from engine.improve.state import EventStream as MastermindStream
from engine.memory.open_memory import MemoryReader
from tests.compatibility.summaries import (
    agent_summary,
    crew_summary,
    digest,
    mastermind_summary,
    plain,
    settings_summary,
)
from tests.trusting import trust_folder

PLACES = 8
"""So many states of an agent on its way are compared, besides the last."""
ENVIRONMENT = {"ANTHROPIC_BASE_URL": "http://127.0.0.1:9", "ANTHROPIC_API_KEY": "sk-test"}
"""A model is named in the settings only where the environment says how to ask it."""


def cli(*words: str) -> tuple[int, dict[str, Any], str]:
    """What `pilothouse` answers: the exit code, the object that `--json` prints, and all that it printed."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        code = main([*words, "--json"])
    lines = out.getvalue().splitlines()
    return code, json.loads(lines[-1]) if lines else {}, out.getvalue()


def expected_of(workspace: Path) -> dict[str, Any]:
    """All that has to come out of a workspace in every later version; nothing is changed in it."""
    place = str(workspace)
    _, verified, _ = cli("--workspace", place, "sessions", "verify")
    _, listed, _ = cli("--workspace", place, "sessions", "list")
    sessions = [[row["session"], row["events"], row["closed"] is not None] for row in listed["sessions"]]
    return {
        "events": verified["events"],
        "head": verified["head"],
        "sessions": sessions,
        **asyncio.run(_states(workspace)),
    }


async def _states(workspace: Path) -> dict[str, Any]:
    store = await SqliteJournal.open(workspace, clock=Ports().clock, read_only=True)
    try:
        streams = await store.streams()
        answer: dict[str, Any] = {
            "streams": {name: [head.version, head.hash] for name, head in streams.items()},
            "agents": {},
            "places": {},
        }
        for name in filter(of_agent, streams):
            events = await store.read(name)
            state, here, places = AgentState(), 0, {}
            for version in range(len(events) // PLACES or 1, len(events), len(events) // PLACES or 1):
                state = fold(events[here:version], state)
                here = version
                places[str(version)] = digest(agent_summary(state))
            answer["agents"][name] = agent_summary(fold(events[here:], state))
            answer["places"][name] = places
        if CREW in streams:
            answer["crew"] = crew_summary(CrewStream.fold(await store.read(CREW)))
        if MASTERMIND in streams:
            answer["mastermind"] = mastermind_summary(MastermindStream.fold(await store.read(MASTERMIND)))
        answer["memory"] = await _memory(workspace, store)
        return plain(answer)
    finally:
        await store.close()


class _StoppedClock(SystemClock):
    """It is always the time at which the last event was written: memories are forgotten as days go by."""

    def __init__(self, at: str) -> None:
        self.at = at

    def now(self) -> str:
        return self.at


async def _memory(workspace: Path, store: SqliteJournal) -> dict[str, Any]:
    last = await store.head_seq()
    (event,) = [event async for event in store.events(last - 1, follow=False)]
    memory = await MemoryReader.look(workspace, store, clock=_StoppedClock(event.at))
    try:
        known = await memory.ask_by_name("compute_memory_statistics", {}, as_of=last)
        return {
            "total": known.total,
            "links": known.links,
            "by_type": known.by_type,
            "by_workflow": known.by_workflow,
        }
    finally:
        await memory.close()


def settings_expected(file: Path) -> dict[str, Any]:
    """What a settings file says, with no other file and nothing of the environment but a model."""
    with tempfile.TemporaryDirectory() as place:
        room = Path(place)
        (room / "pilothouse.toml").write_bytes(file.read_bytes())
        alone = {"PILOTHOUSE_HOME": str(room / "home"), **ENVIRONMENT}
        with patch.dict(os.environ, alone):
            for name in ("PILOTHOUSE_THEME", "PILOTHOUSE_MODEL", "ANTHROPIC_AUTH_TOKEN"):
                os.environ.pop(name, None)
            trust_folder(room)
            return settings_summary(Settings.load(room))
