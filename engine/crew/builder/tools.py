"""Phase 4 of a build: finds out which tools an agent has, and tries each of them.

The tools are the engine's and those of the servers in mcp.json.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from engine.core.ports import SystemClock
from engine.crew.builder.findings import Findings
from engine.crew.builder.skill import SkillDefinition
from engine.crew.ontology.spec import NO_FUNCTIONS, AgentSpec, ServerUse
from engine.memory.commands import COMMANDS as MEMORY
from engine.sandbox.policy import SandboxPolicy
from engine.tools.mcp.names import BUILT_INS, LocalTool, read_allowed
from engine.tools.mcp.process import ProgramEnvironment
from engine.tools.mcp.settings import McpSettings, load
from engine.tools.mcp.workspace_servers import Servers
from engine.tools.simple_coder_commands import COMMANDS as CODER
from engine.value import dataclass

_MOST_NAME = 64
HANDSHAKE_S = 12.0
"""A server gives itself ten seconds; this is for one that hangs past them."""
USUAL = ("Read", "Write", "Edit", "Glob", "Grep", "LS", "Bash")
"""What a skill that was written for other clients means when it names no tools."""
_CODE = re.compile(r"`([^`\n]+)`")
_MCP = re.compile(r"mcp__([A-Za-z0-9-]+(?:_[A-Za-z0-9-]+)*)__([A-Za-z0-9_*-]+)")
_SERVER_TOOL = re.compile(r"([A-Z][A-Za-z0-9-]*):([a-z][A-Za-z0-9]*_[A-Za-z0-9_]+)")
_PREREQUISITES = re.compile(r"\b(prerequisites?|requirements?|setup|before you (start|begin))\b", re.I)
_REQUIRED = re.compile(r"\b(must be connected|required|requires)\b", re.I)
_OPTIONAL = re.compile(r"\b(optional(ly)?|not required)\b", re.I)


def draft_tools(skill: SkillDefinition, findings: Findings, *, usual: bool = False) -> dict[str, Any]:
    """The tools that the skill names; nothing is guessed from words like research.

    Args:
        skill: the skill.
        findings: receives what is not there.
        usual: whether it has the usual ones if it names none: in the standard, the field approves tools in
            advance and keeps no others away.
    """
    servers: dict[str, tuple[set[str], bool]] = {}
    for server, tool, required in _mentioned(skill):
        names, was = servers.get(server, (set(), False))
        servers[server] = (names | {tool}, was or required)
    tokens = [token for token in skill.allowed_tools if not _MCP.fullmatch(token)]
    for token in skill.allowed_tools:
        if named := _MCP.fullmatch(token):
            names, was = servers.get(named[1], (set(), False))
            servers[named[1]] = (names | {named[2]}, was)
    for server in [server for server in servers if len(server) > _MOST_NAME]:
        findings.warn(
            "UNRESOLVED_TOOL", f"{server} is too long for a server's name; it was left out", "tools"
        )
        del servers[server]
    allowed = read_allowed(USUAL if usual and names_none(skill) else tokens)
    for token in allowed.unresolved:
        findings.warn("UNRESOLVED_TOOL", f"nothing here is {token}; it was left out", "allowed-tools")
    if skill.scripts:
        words = f"{len(skill.scripts)} scripts are kept and were not run: {', '.join(skill.scripts[:5])}"
        findings.warn("SCRIPTS", words, "scripts")
    return {
        "local": list(dict.fromkeys(map(_command, allowed.tools))),
        "mcp_servers": [
            {"server": server, "tools": sorted(names), "required": required}
            for server, (names, required) in sorted(servers.items())
        ],
    }


def _command(tool: LocalTool) -> str:
    """`simple_coder.read`, or `simple_coder.run git` for one program."""
    return f"{tool.tool}.{tool.command}" + (f" {tool.program}" if tool.program else "")


def names_none(skill: SkillDefinition) -> bool:
    """Whether a skill was written for other clients and says nothing of tools."""
    ours = any(name.startswith("mindrian-") for name in skill.metadata)
    return not (ours or skill.allowed_tools)


def _mentioned(skill: SkillDefinition) -> list[tuple[str, str, bool]]:
    """Server and tool of each name in backticks, and whether a section of prerequisites requires it."""
    needed: set[int] = set()
    for section in skill.document.sections:
        if _PREREQUISITES.search(section.title):
            needed |= set(range(section.line, section.line + section.text.count("\n") + 3))
    mentions = []
    for number, line in enumerate(skill.document.plain, 1):
        for code in _CODE.finditer(line):
            for pattern in (_MCP, _SERVER_TOOL):
                for named in pattern.finditer(code[1]):
                    required = (
                        number in needed and bool(_REQUIRED.search(line)) and not _OPTIONAL.search(line)
                    )
                    server = named[1] if pattern is _MCP else named[1].lower()
                    mentions.append((server, named[2], required))
    return mentions


@dataclass(frozen=True, slots=True)
class ToolFacts:
    """What was found of an agent's tools."""

    connected: bool
    available: bool
    degraded: tuple[str, ...]


async def check_tools(spec: AgentSpec, tools: WorkspaceTools, findings: Findings) -> ToolFacts:
    """Connect every server, look at every function, resolve every action; all side by side."""
    uses = spec.tools.mcp_servers
    answers = await asyncio.gather(*(_missing(use, tools) for use in uses))
    connected = available = True
    degraded: list[str] = []
    for use, missing in zip(uses, answers, strict=True):
        where = f"tools.mcp_servers.{use.server}"
        if not missing:
            continue
        if use.required:
            connected = False
            findings.error("MCP_DOWN", f"{use.server}: {missing}", where, "start it, or make it optional")
        else:
            degraded.append(use.server)
            findings.warn("MCP_DEGRADED", f"{use.server}: {missing}", where)
    for tool in spec.tools.custom_tools:
        available = False
        findings.error("BAD_FUNCTION", NO_FUNCTIONS, f"tools.custom_tools.{tool.name}")
    available = _actions_resolve(spec, tools, findings) and available
    available = _names_differ(spec, findings) and available
    return ToolFacts(connected, available, tuple(degraded))


async def _missing(use: ServerUse, tools: WorkspaceTools) -> str:
    try:
        async with asyncio.timeout(HANDSHAKE_S):
            return await tools.lacks(use.server, use.tools)
    except TimeoutError:
        return f"no handshake within {HANDSHAKE_S:g} s"


def _actions_resolve(spec: AgentSpec, tools: WorkspaceTools, findings: Findings) -> bool:
    servers = {use.server for use in spec.tools.mcp_servers}
    customs = {tool.name for tool in spec.tools.custom_tools}
    good = True
    for action in spec.tools.global_actions:
        server = action.tool.partition(".")[0]
        if action.action in BUILT_INS or server in servers or action.tool in customs:
            continue
        if tools.has(action.tool):
            continue
        good = False
        where = f"tools.global_actions.{action.action}"
        findings.error("UNRESOLVED_ACTION", f"there is no tool {action.tool}", where)
    return good


def _names_differ(spec: AgentSpec, findings: Findings) -> bool:
    names = [tool.name for tool in spec.tools.custom_tools]
    names += [action.action for action in spec.tools.global_actions]
    twice = sorted({name for name in names if names.count(name) > 1})
    for name in twice:
        findings.error("SAME_NAME", f"two tools are named {name}", "tools")
    return not twice


_CREW = frozenset({"ask", "delegate"})


class WorkspaceTools:
    """What a workspace has.

    Args:
        workspace: the directory with mcp.json.
        root: the sandbox root, beneath which custom functions lie.
        policy: of the sandbox.
        servers: servers that run already.
        starts: whether a server that does not run may be started to be looked at; an open workspace has
            those that the operator let start, and none is started unasked.
    """

    def __init__(
        self,
        workspace: Path,
        root: Path,
        policy: SandboxPolicy,
        servers: Servers | None = None,
        *,
        starts: bool = False,
    ) -> None:
        self._workspace, self._root, self._policy, self._servers = workspace, root, policy, servers
        self._starts = starts

    def has(self, command: str) -> bool:
        """Whether a local command is there, as `memory.search`."""
        tool, _, name = command.partition(".")
        return name in {"simple_coder": CODER, "memory": MEMORY, "crew": _CREW}.get(tool, ())

    async def lacks(self, server: str, tools: Sequence[str]) -> str:
        """Start or reach a server, shake hands, and see whether it lists these tools, or `*`.

        What was started for it has ended afterwards. Gives what is missing, in a line: it is not configured,
        it is down, it has no such tool; empty where nothing is.
        """
        if self._servers is not None:
            return await self._servers.lacks(server, tools)
        settings = await asyncio.to_thread(load, self._workspace)
        configured = tuple(each for each in settings.servers if each.name.lower() == server.lower())
        wrong = "; ".join(str(fault) for fault in settings.faults)
        if configured and not self._starts:
            return f"{configured[0].name} does not run: open the workspace and let it start"
        around = ProgramEnvironment(self._workspace, self._root, self._policy, os.environ)
        servers = Servers(McpSettings(configured), around, SystemClock())
        try:
            servers.begin()
            return await servers.lacks(server, tools) + (f"; {wrong}" if wrong and not configured else "")
        finally:
            await servers.close()
