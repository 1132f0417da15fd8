"""Phase 4 of a build: finds out which tools an agent has, and tries each of them.

The tools are the engine's and those of the servers in mcp.json.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import Any

from engine.crew.builder.findings import Findings
from engine.crew.builder.needs import Need, bare, needs_of
from engine.crew.builder.skill import SkillDefinition
from engine.crew.ontology.spec import NO_FUNCTIONS, AgentSpec, ServerUse
from engine.crew.ports import Lacks
from engine.tools.mcp.names import read_allowed, split
from engine.value import dataclass

_MOST_NAME = 64
HANDSHAKE_S = 12.0
"""A server gives itself ten seconds; this is for one that hangs past them."""
USUAL = ("Read", "Write", "Edit", "Glob", "Grep", "LS", "Bash")
"""What a skill that was written for other clients means when it names no tools."""


def draft_tools(skill: SkillDefinition, findings: Findings, *, usual: bool = False) -> dict[str, Any]:
    """The tools that the skill is allowed, and those of the MCP servers that its text says it needs.

    Args:
        skill: the skill.
        findings: receives what is not there.
        usual: whether it has the usual ones if it names none: in the standard, the field approves tools in
            advance and keeps no others away.
    """
    servers = needs_of(skill)
    tokens = []
    for token in skill.allowed_tools:
        spelled = token.startswith("mcp__") or (":" in token and "(" not in token)
        if spelled and (named := split(token)) is not None:
            server = next((known for known in servers if bare(known) == bare(named[0].lower())), named[0])
            servers.setdefault(server, Need(server)).tools.add(named[1])
        else:
            tokens.append(token)
    for server in [server for server in servers if len(server) > _MOST_NAME]:
        findings.warn(
            "UNRESOLVED_TOOL", f"{server} is too long for a server's name; it was left out", "tools"
        )
        del servers[server]
    commands, unresolved = read_allowed(USUAL if usual and names_none(skill) else tokens)
    for token in unresolved:
        findings.warn("UNRESOLVED_TOOL", f"nothing here is {token}; it was left out", "allowed-tools")
    if skill.scripts:
        words = f"{len(skill.scripts)} scripts are kept and were not run: {', '.join(skill.scripts[:5])}"
        findings.warn("SCRIPTS", words, "scripts")
    return {
        "local": list(commands),
        "mcp_servers": [
            {
                "server": server,
                "tools": ["*"] if need.coded else sorted(need.tools) or ["*"],
                "required": need.required,
            }
            for server, need in sorted(servers.items())
        ],
    }


def names_none(skill: SkillDefinition) -> bool:
    """Whether a skill was written for other clients and says nothing of tools."""
    ours = any(name.startswith("mindrian-") for name in skill.metadata)
    return not (ours or skill.allowed_tools)


@dataclass(frozen=True, slots=True)
class ToolFacts:
    """What was found of an agent's tools."""

    connected: bool
    available: bool
    degraded: tuple[str, ...]


async def check_tools(
    spec: AgentSpec, lacks: Lacks, findings: Findings, *, read: Collection[str] = ()
) -> ToolFacts:
    """Connect every server, all side by side.

    Args:
        spec: the agent.
        lacks: says what is missing of a server.
        findings: what is noticed.
        read: servers that were read from the skill: one that is down holds up handoffs, not the build.
    """
    uses = spec.tools.mcp_servers
    answers = await asyncio.gather(*(_missing(use, lacks) for use in uses))
    connected = available = True
    degraded: list[str] = []
    for use, missing in zip(uses, answers, strict=True):
        where = f"tools.mcp_servers.{use.server}"
        if not missing:
            continue
        if use.required and use.server in read:
            words = f"the skill needs {use.server}: {missing}; no handoff to it begins before it is there"
            findings.warn("MCP_NEEDED", words, where, "add it to mcp.json, or make it optional in agent.yaml")
        elif use.required:
            connected = False
            findings.error("MCP_DOWN", f"{use.server}: {missing}", where, "start it, or make it optional")
        else:
            degraded.append(use.server)
            findings.warn("MCP_DEGRADED", f"{use.server}: {missing}", where)
    for name in ("custom_tools", "global_actions"):
        if getattr(spec.tools, name):
            available = False
            findings.error("BAD_FUNCTION", NO_FUNCTIONS, f"tools.{name}")
    return ToolFacts(connected, available, tuple(degraded))


async def _missing(use: ServerUse, lacks: Lacks) -> str:
    try:
        async with asyncio.timeout(HANDSHAKE_S):
            return await lacks(use.server, use.tools)
    except TimeoutError:
        return f"no handshake within {HANDSHAKE_S:g} s"
