"""Phase 4: which tools an agent has, each of them really looked at (ontology spec §2.5, §1.14)."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from engine.agents.spec import AgentSpec, CustomTool, ServerUse
from engine.building.findings import Findings
from engine.building.skill import SkillDefinition
from engine.mcp.global_actions import BUILT_INS

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


class FunctionError(Exception):
    """A custom function cannot be a tool; the message says why."""


@dataclass(frozen=True, slots=True)
class Allowed:
    """What tokens of allowed-tools come to here."""

    commands: tuple[str, ...] = ()
    """As `simple_coder.read`; `simple_coder.run git` for one program."""
    unresolved: tuple[str, ...] = ()


class ToolsAt(Protocol):
    """The tools of a workspace, as a build asks for them; `engine.mcp` is behind it."""

    def allowed(self, tokens: Sequence[str]) -> Allowed:
        """Which local commands tokens of allowed-tools mean."""

    def has(self, command: str) -> bool:
        """Whether a local command is there, as `memory.search`."""

    async def lacks(self, server: str, tools: Sequence[str]) -> str:
        """Start or reach a server, shake hands, and see whether it lists these tools, or `*`.

        What was started for it has ended afterwards. Gives what is missing, in a line: nobody has configured
        it, it is down, it has no such tool; empty where nothing is.
        """

    async def introspect(self, name: str, function: str, parameters: Mapping[str, Any] | None) -> None:
        """Import a function in the sandbox and compare it with what is declared of it.

        Raises:
            FunctionError: it cannot be a tool.
        """


def draft_tools(
    skill: SkillDefinition, tools: ToolsAt, found: Findings, *, usual: bool = False
) -> dict[str, Any]:
    """The tools that the skill names; nothing is guessed from words like research.

    Args:
        skill: the skill.
        tools: those of the workspace.
        found: told of what is not there.
        usual: whether it has the usual ones if it names none: in the standard, the field approves tools in
            advance and keeps no others away.
    """
    servers: dict[str, tuple[set[str], bool]] = {}
    for server, tool, required in (*_mentioned(skill), *_declared(skill)):
        names, was = servers.get(server, (set(), False))
        servers[server] = (names | {tool}, was or required)
    tokens = [token for token in skill.allowed_tools if not _MCP.fullmatch(token)]
    for token in skill.allowed_tools:
        if named := _MCP.fullmatch(token):
            names, was = servers.get(named[1], (set(), False))
            servers[named[1]] = (names | {named[2]}, was)
    for server in [server for server in servers if len(server) > _MOST_NAME]:
        found.warn("UNRESOLVED_TOOL", f"{server} is too long for a server's name; it was left out", "tools")
        del servers[server]
    allowed = tools.allowed(USUAL if usual and names_none(skill) else tokens)
    for token in allowed.unresolved:
        found.warn("UNRESOLVED_TOOL", f"nothing here is {token}; it was left out", "allowed-tools")
    if scripts := [one.path for one in skill.resources if one.path.startswith("scripts/") or one.executable]:
        words = f"{len(scripts)} scripts are kept and were not run: {', '.join(scripts[:5])}"
        found.warn("SCRIPTS", words, "scripts")
    return {
        "local": list(allowed.commands),
        "mcp_servers": [
            {"server": server, "tools": sorted(names), "required": required}
            for server, (names, required) in sorted(servers.items())
        ],
    }


def names_none(skill: SkillDefinition) -> bool:
    """Whether a skill was written for other clients and says nothing of tools."""
    ours = any(name.startswith("mindrian-") for name in skill.metadata)
    return not (ours or skill.allowed_tools or "mcp_tools" in skill.extra)


def _mentioned(skill: SkillDefinition) -> list[tuple[str, str, bool]]:
    """Server and tool of each name in backticks, and whether a section of prerequisites requires it."""
    needed: set[int] = set()
    for section in skill.sections:
        if _PREREQUISITES.search(section.title):
            needed |= set(range(section.line, section.line + section.text.count("\n") + 3))
    told = []
    for number, line in enumerate(skill.document.plain, 1):
        for code in _CODE.finditer(line):
            for pattern in (_MCP, _SERVER_TOOL):
                for named in pattern.finditer(code[1]):
                    required = number in needed and _is_required(line)
                    server = named[1] if pattern is _MCP else named[1].lower()
                    told.append((server, named[2], required))
    return told


def _is_required(line: str) -> bool:
    return _REQUIRED.search(line) is not None and _OPTIONAL.search(line) is None


def _declared(skill: SkillDefinition) -> list[tuple[str, str, bool]]:
    """The ancestor's `mcp_tools`: `server.tool` in a list, or a server with its tools."""
    said = skill.extra.get("mcp_tools", ())
    told: list[tuple[str, str, bool]] = []
    for one in said if isinstance(said, list) else ():
        if isinstance(one, str) and one.strip(" ."):
            server, _, tool = one.strip(" .").partition(".")
            told.append((server[:64], tool or "*", False))
        elif isinstance(one, dict) and isinstance(one.get("server"), str) and one["server"].strip():
            names = one.get("tools")
            required = str(one.get("required", "")).lower() == "true"
            for name in names if isinstance(names, list) else ("*",):
                told.append((one["server"][:64], str(name), required))
    return told


@dataclass(frozen=True, slots=True)
class ToolFacts:
    """What was found of an agent's tools."""

    connected: bool
    available: bool
    degraded: tuple[str, ...]


async def check_tools(spec: AgentSpec, tools: ToolsAt, found: Findings) -> ToolFacts:
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
            found.error("MCP_DOWN", f"{use.server}: {missing}", where, "start it, or make it optional")
        else:
            degraded.append(use.server)
            found.warn("MCP_DEGRADED", f"{use.server}: {missing}", where)
    looked = await asyncio.gather(*(_looked_at(tool, tools) for tool in spec.tools.custom_tools))
    for tool, why in zip(spec.tools.custom_tools, looked, strict=True):
        if why:
            available = False
            found.error("BAD_FUNCTION", why, f"tools.custom_tools.{tool.name}")
    available = _actions_resolve(spec, tools, found) and available
    available = _names_differ(spec, found) and available
    return ToolFacts(connected, available, tuple(degraded))


async def _missing(use: ServerUse, tools: ToolsAt) -> str:
    try:
        async with asyncio.timeout(HANDSHAKE_S):
            return await tools.lacks(use.server, use.tools)
    except TimeoutError:
        return f"no handshake within {HANDSHAKE_S:g} s"


async def _looked_at(tool: CustomTool, tools: ToolsAt) -> str:
    try:
        await tools.introspect(tool.name, tool.function, tool.parameters)
    except FunctionError as error:
        return str(error)
    return ""


def _actions_resolve(spec: AgentSpec, tools: ToolsAt, found: Findings) -> bool:
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
        found.error("UNRESOLVED_ACTION", f"there is no tool {action.tool}", where)
    return good


def _names_differ(spec: AgentSpec, found: Findings) -> bool:
    names = [tool.name for tool in spec.tools.custom_tools]
    names += [one.action for one in spec.tools.global_actions]
    twice = sorted({name for name in names if names.count(name) > 1})
    for name in twice:
        found.error("SAME_NAME", f"two tools are named {name}", "tools")
    return not twice
