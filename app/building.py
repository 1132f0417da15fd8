"""`pilothouse agent`: building agents of skills, and what becomes of them; `agent_create` uses the same."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from engine.building.findings import BuildResult, PhaseRecord, Status
from engine.building.registering import RegistrationError
from engine.building.request import BUILT_IN
from engine.building.staging import read_build
from engine.building.telling import phase_line, report
from engine.crew.builds.builds import Builds, Wanted
from engine.crew.parts import HandoffError
from engine.crew.state import CrewState
from engine.domain.text import clean_line
from engine.engine import Engine, EngineConfig

Answer = tuple[int, dict[str, Any], str]
"""Exit code, and the answer for a program and for a person."""


@dataclass(frozen=True, slots=True)
class BuildOptions:
    """How a skill is to be built."""

    path: Path
    strict: bool = False
    dry_run: bool = False
    live: bool = False
    kind: str = ""
    optional_mcp: bool = False
    trust: bool = False
    interactive: bool = False
    overrides: dict[str, Any] = field(default_factory=dict)

    @property
    def said(self) -> dict[str, Any]:
        """What the operator says above the skill."""
        told = dict(self.overrides)
        if self.kind:
            told["type"] = self.kind
        if self.optional_mcp:
            told["mcp"] = "optional"
        return told


def wanted(options: BuildOptions) -> Wanted:
    """The build that is asked for."""
    return Wanted(
        options.path,
        strict=options.strict,
        dry_run=options.dry_run,
        live=options.live,
        trust=True if options.trust else None,
        interactive=options.interactive,
        overrides=options.said,
    )


async def build(builds: Builds, options: BuildOptions, *, quiet: bool = True) -> Answer:
    """`pilothouse agent build`."""

    def told(record: PhaseRecord) -> None:
        if not quiet:
            sys.stderr.write(f"{phase_line(record)}\n")

    result = await builds.build(wanted(options), told, actor="operator:cli")
    return exit_code(result), result.as_json(), report(result)


def exit_code(result: BuildResult) -> int:
    """0 for an agent that is there, 3 where the operator is needed, 78 without a jail, else 1."""
    if result.success:
        return 0
    if result.status is Status.NEEDS_OPERATOR:
        return 3
    return 78 if any(one.code == "NO_JAIL" for one in result.errors) else 1


def list_agents(state: CrewState, broken: Mapping[str, str]) -> Answer:
    """`pilothouse agent list`: those of the workspace, and the built-in ones behind them."""
    entries = sorted(state.agents.values(), key=lambda one: one.source.startswith(BUILT_IN))
    rows = [
        {
            "id": one.spec.id,
            "name": one.spec.name,
            "type": one.spec.type.value,
            "version": one.spec.version,
            "description": one.spec.description,
            "source": one.source,
            "warnings": list(one.warnings),
        }
        for one in entries
    ]
    lines = []
    for one in entries:
        spec, mark = one.spec, " (built-in)" if one.source.startswith(BUILT_IN) else ""
        about = clean_line(spec.description, limit=80)
        lines.append(f"{spec.id:<28} {spec.type:<14} {spec.version:<10} {about}{mark}")
    lines += [f"{name:<28} {why}" for name, why in broken.items()]
    answer = {"agents": rows, "broken": list(broken)}
    return 0, answer, "\n".join(lines) or "there are no agents; build one: pilothouse agent build PATH"


async def remove(builds: Builds, agent_id: str) -> Answer:
    """`pilothouse agent remove`."""
    try:
        text = await builds.remove(agent_id, actor="operator:cli")
    except HandoffError:
        return 2, {}, await _unknown(builds, agent_id)
    if await builds.versions(agent_id):
        text += f"; pilothouse agent rollback {agent_id} brings it back"
    return 0, {"removed": agent_id}, text


async def versions(builds: Builds, agent_id: str) -> Answer:
    """`pilothouse agent versions`."""
    earlier = await builds.versions(agent_id)
    named = builds.places.names(agent_id)
    now = await asyncio.to_thread(read_build, builds.places.agent(agent_id)) if named else None
    if now is None and not earlier:
        return 2, {}, await _unknown(builds, agent_id)
    rows = (
        [{"version": now.version, "built_at": now.built_at, "name": now.version, "now": True}] if now else []
    )
    rows += [{"version": v.version, "built_at": v.built_at, "name": v.name, "now": False} for v in earlier]
    lines = [f"{'▶' if row['now'] else ' '} {row['name']:<24} built {row['built_at']}" for row in rows]
    return 0, {"agent": agent_id, "versions": rows}, "\n".join(lines)


async def roll_back(builds: Builds, agent_id: str, version: str) -> Answer:
    """`pilothouse agent rollback`."""
    try:
        text = await builds.roll_back(agent_id, version)
    except RegistrationError as error:
        return 2, {}, str(error)
    return 0, {"agent": agent_id, "version": text.split()[1]}, text


async def _unknown(builds: Builds, agent_id: str) -> str:
    from difflib import get_close_matches

    there = await asyncio.to_thread(builds.places.ids)
    near = get_close_matches(agent_id, {*there, *builds.registered}, n=3, cutoff=0.3)
    return f"there is no agent {agent_id}" + (f"; the nearest: {', '.join(near)}" if near else "")


async def watch_skill(builds: Builds, options: BuildOptions, told: Callable[[BuildResult], None]) -> Answer:
    """`pilothouse agent watch`: until it is interrupted."""
    folder = options.path if await asyncio.to_thread(options.path.is_dir) else options.path.parent
    if not await asyncio.to_thread(folder.is_dir):
        return 2, {}, f"there is no folder {folder}"
    await builds.watch(wanted(options), told)
    return 0, {}, "the watch has ended"


async def carried_out(options: Any, workspace: Path, config: EngineConfig, *, quiet: bool) -> Answer:
    """What a parsed command line of `pilothouse agent` asks for, in the workspace, which is opened for it.

    Raises:
        JournalError: it cannot be opened, as when a cockpit holds it: there `build` and `agent_remove` do it.
    """
    # A command line is over when its answer is there: nobody can be asked in between.
    crew_settings = replace(config.crew, attended=False)
    engine = await Engine.open(workspace, config=replace(config, crew=crew_settings))
    try:
        crew = await engine.crew()
        assert crew.builds is not None
        await crew.builds.settled()
        return await _carried_out(options, crew.builds, crew.state, quiet=quiet)
    except OSError as error:
        where = error.filename or workspace
        return 2, {}, clean_line(f"{where}: {error.strerror or error}; it has to be a place to write to")
    finally:
        await engine.close("the command is over")


async def _carried_out(options: Any, builds: Builds, state: CrewState, *, quiet: bool) -> Answer:
    match options.what:
        case "list":
            return list_agents(state, builds.troubles)
        case "remove":
            return await remove(builds, options.agent)
        case "versions":
            return await versions(builds, options.agent)
        case "rollback":
            return await roll_back(builds, options.agent, options.version)
    asked = BuildOptions(
        options.path,
        strict=options.strict,
        dry_run=getattr(options, "dry_run", False),
        live=getattr(options, "live", False),
        kind=options.type,
        optional_mcp=options.optional_mcp,
        trust=options.trust,
        interactive=sys.stdin.isatty(),
    )
    if options.what == "watch":
        return await watch_skill(builds, asked, _tell)
    return await build(builds, asked, quiet=quiet)


def _tell(result: BuildResult) -> None:
    sys.stderr.write(f"{report(result)}\n")
