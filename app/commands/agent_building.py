"""What `pilothouse agent` does in an open workspace: building agents of skills, listing and removing them."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Protocol

from app.commands.command import Answer
from engine.api.engine import Engine
from engine.core.text import clean_line
from engine.crew.builder.findings import (
    BUILT_IN,
    BuildResult,
    PendingBuild,
    PhaseRecord,
    Status,
    build_report,
    phase_line,
)
from engine.crew.builds import Builds, builds_of
from engine.crew.ports import HandoffError
from engine.crew.state import CrewState


class Asked(Protocol):
    """What was asked for."""

    what: str
    """`build`, `list` or `remove`."""
    agent: str
    """Which one is removed."""
    path: str
    """Of the skill that is built."""
    type: str
    trust: bool
    dry_run: bool


async def carried_out(engine: Engine, asked: Asked, actor: str, *, quiet: bool = True) -> Answer:
    """Build, list or remove agents.

    Args:
        engine: the open workspace.
        asked: what.
        actor: for whom, as the journal names them.
        quiet: show no progress on standard error.

    Raises:
        JournalError: it cannot be recorded.
    """
    crew = await engine.crew()
    builds = builds_of(crew)
    assert builds is not None
    try:
        match asked.what:
            case "list":
                return list_agents(crew.state, builds.troubles)
            case "remove":
                return await remove_agent(builds, asked.agent, actor)
        return await build_agent(builds, asked, actor, quiet=quiet)
    except OSError as error:
        where = error.filename or engine.workspace
        return 2, {}, clean_line(f"{where}: {error.strerror or error}; it has to be a place to write to")


async def build_agent(builds: Builds, asked: Asked, actor: str, *, quiet: bool) -> Answer:
    """`pilothouse agent build`."""

    def report(record: PhaseRecord) -> None:
        if not quiet:
            sys.stderr.write(f"{phase_line(record)}\n")

    pending = PendingBuild(
        Path(asked.path),
        dry_run=asked.dry_run,
        trust=asked.trust or None,
        overrides={"type": asked.type} if asked.type else {},
    )
    result = await builds.build(pending, report, actor=actor)
    return exit_code(result), result.as_json(), build_report(result)


def exit_code(result: BuildResult) -> int:
    """0 for an agent that is there, 3 where the operator is needed, else 1."""
    return 0 if result.success else 3 if result.status is Status.NEEDS_OPERATOR else 1


def list_agents(state: CrewState, broken: Mapping[str, str]) -> Answer:
    """`pilothouse agent list`: those of the workspace, and the built-in ones behind them."""
    entries = sorted(state.agents.values(), key=lambda entry: entry.source.startswith(BUILT_IN))
    rows = [
        {
            **{name: getattr(entry.spec, name) for name in ("id", "name", "type", "version", "description")},
            "source": entry.source,
            "warnings": list(entry.warnings),
        }
        for entry in entries
    ]
    lines = []
    for entry in entries:
        spec, mark = entry.spec, " (built-in)" if entry.source.startswith(BUILT_IN) else ""
        about = clean_line(spec.description, limit=80)
        lines.append(f"{spec.id:<28} {spec.type:<14} {spec.version:<10} {about}{mark}")
    lines += [f"{name:<28} {why}" for name, why in broken.items()]
    answer = {"agents": rows, "broken": list(broken)}
    return 0, answer, "\n".join(lines) or "there are no agents; build one: pilothouse agent build PATH"


async def remove_agent(builds: Builds, agent_id: str, actor: str) -> Answer:
    """`pilothouse agent remove`."""
    try:
        text = await builds.remove(agent_id, actor=actor)
    except HandoffError:
        return 2, {}, await _unknown(builds, agent_id)
    return 0, {"removed": agent_id}, text


async def _unknown(builds: Builds, agent_id: str) -> str:
    there = await asyncio.to_thread(builds.places.ids)
    near = get_close_matches(agent_id, {*there, *builds.registered}, n=3, cutoff=0.3)
    return f"there is no agent {agent_id}" + (f"; the nearest: {', '.join(near)}" if near else "")
