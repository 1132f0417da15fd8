"""`pilothouse agent`: building agents of skills, and what becomes of them; `agent_create` uses the same."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engine.building.builder import Builder
from engine.building.findings import BuildResult, PhaseRecord, Status
from engine.building.folders import FolderRegistrar
from engine.building.registering import RegistrationError
from engine.building.request import SANDBOX
from engine.building.staging import read_build
from engine.building.telling import phase_line, report
from engine.building.watching import watch
from engine.domain.text import clean_line
from engine.sandbox.policy import SandboxPolicy

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


async def build_agent(builder: Builder, options: BuildOptions) -> BuildResult:
    """Build a skill; one that lies where agents can write is asked about first."""
    sandbox = builder.places.workspace / SANDBOX
    path = await asyncio.to_thread(options.path.resolve)
    inside = path.is_relative_to(await asyncio.to_thread(sandbox.resolve))
    return await builder.build(
        options.path,
        mode="strict" if options.strict else "lenient",
        dry_run=options.dry_run,
        live=options.live,
        overrides=options.said,
        interactive=options.interactive,
        trusted=options.trust or not inside,
    )


def builder_of(workspace: Path, policy: SandboxPolicy, *, quiet: bool = True) -> Builder:
    """The builder of a workspace that no cockpit runs."""

    def told(record: PhaseRecord) -> None:
        if not quiet:
            sys.stderr.write(f"{phase_line(record)}\n")

    return Builder(workspace, policy=policy, told=told)


async def build(builder: Builder, options: BuildOptions) -> Answer:
    """`pilothouse agent build`."""
    repaired = await builder.repair()
    result = await build_agent(builder, options)
    return (
        exit_code(result),
        result.as_json() | {"repaired": list(repaired)},
        "\n".join((*repaired, report(result))),
    )


def exit_code(result: BuildResult) -> int:
    """0 for an agent that is there, 3 where the operator is needed, 78 without a jail, else 1."""
    if result.success:
        return 0
    if result.status is Status.NEEDS_OPERATOR:
        return 3
    return 78 if any(one.code == "NO_JAIL" for one in result.errors) else 1


async def list_agents(builder: Builder) -> Answer:
    """`pilothouse agent list`."""
    await builder.repair()
    registrar = builder.registrar
    agents = await registrar.agents() if isinstance(registrar, FolderRegistrar) else {}
    rows = [
        {
            "id": one.id,
            "name": one.name,
            "type": one.type.value,
            "version": one.version,
            "description": one.description,
        }
        for one in agents.values()
    ]
    broken = sorted(set(await asyncio.to_thread(builder.places.ids)) - {one["id"] for one in rows})
    lines = [
        f"{one['id']:<28} {one['type']:<14} {one['version']:<10} {clean_line(one['description'], limit=80)}"
        for one in rows
    ]
    lines += [f"{name:<28} cannot be read; build it again" for name in broken]
    return (
        0,
        {"agents": rows, "broken": broken},
        "\n".join(lines) or "there are no agents; build one: pilothouse agent build PATH",
    )


async def remove(builder: Builder, agent_id: str) -> Answer:
    """`pilothouse agent remove`."""
    if not await builder.remove(agent_id):
        return 2, {}, await _unknown(builder, agent_id)
    text = f"{agent_id} is removed; its versions are kept: pilothouse agent rollback {agent_id}"
    return 0, {"removed": agent_id}, text


async def versions(builder: Builder, agent_id: str) -> Answer:
    """`pilothouse agent versions`."""
    earlier = await builder.versions(agent_id)
    named = builder.places.names(agent_id)
    now = await asyncio.to_thread(read_build, builder.places.agent(agent_id)) if named else None
    if now is None and not earlier:
        return 2, {}, await _unknown(builder, agent_id)
    rows = (
        [{"version": now.version, "built_at": now.built_at, "name": now.version, "now": True}] if now else []
    )
    rows += [{"version": v.version, "built_at": v.built_at, "name": v.name, "now": False} for v in earlier]
    lines = [f"{'▶' if row['now'] else ' '} {row['name']:<24} built {row['built_at']}" for row in rows]
    return 0, {"agent": agent_id, "versions": rows}, "\n".join(lines)


async def roll_back(builder: Builder, agent_id: str, version: str) -> Answer:
    """`pilothouse agent rollback`."""
    try:
        spec = await builder.roll_back(agent_id, version)
    except RegistrationError as error:
        return 2, {}, str(error)
    return 0, {"agent": spec.id, "version": spec.version}, f"{spec.id} {spec.version} answers again"


async def _unknown(builder: Builder, agent_id: str) -> str:
    from difflib import get_close_matches

    near = get_close_matches(agent_id, await asyncio.to_thread(builder.places.ids), n=3, cutoff=0.3)
    return f"there is no agent {agent_id}" + (f"; the nearest: {', '.join(near)}" if near else "")


async def watch_skill(
    builder: Builder, options: BuildOptions, told: Callable[[BuildResult], None], stop: asyncio.Event
) -> Answer:
    """`pilothouse agent watch`: until it is interrupted."""
    folder = options.path if await asyncio.to_thread(options.path.is_dir) else options.path.parent
    if not await asyncio.to_thread(folder.is_dir):
        return 2, {}, f"there is no folder {folder}"
    await watch(folder.absolute(), lambda: build_agent(builder, options), told, stop)
    return 0, {}, "the watch has ended"


async def carried_out(options: Any, workspace: Path, policy: SandboxPolicy, *, quiet: bool) -> Answer:
    """What a parsed command line of `pilothouse agent` asks for."""
    builder = builder_of(workspace, policy, quiet=quiet)
    match options.what:
        case "list":
            return await list_agents(builder)
        case "remove":
            return await remove(builder, options.agent)
        case "versions":
            return await versions(builder, options.agent)
        case "rollback":
            return await roll_back(builder, options.agent, options.version)
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
        return await watch_skill(builder, asked, _tell, asyncio.Event())
    return await build(builder, asked)


def _tell(result: BuildResult) -> None:
    sys.stderr.write(f"{report(result)}\n")
