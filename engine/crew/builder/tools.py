"""Phase 4 of a build: finds out which tools and MCP servers a skill needs, and tries each tool.

The tools are the engine's and those of the servers in mcp.json.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Collection, Iterator
from typing import Any

from engine.core.text import clean_line
from engine.crew.builder.findings import Findings
from engine.crew.builder.reading import WORDS, words
from engine.crew.builder.skill import SkillDefinition
from engine.crew.ontology.spec import NO_FUNCTIONS, AgentSpec, ServerUse
from engine.crew.ports import Lacks
from engine.tools.mcp.names import read_allowed, split
from engine.value import dataclass, field

_LONGEST_LINE, _LONGEST_NAME, _MOST = 5_000, 64, 50
_NAME = r"(?<![A-Za-z0-9.+-])[A-Z][A-Za-z0-9.+-]{0,40}"
_NAMES = rf"{_NAME}(?: {_NAME})?"
_MENTION = re.compile(
    rf"(?P<before>{_NAMES}|`[\w .-]{{1,64}}`|(?<=\bthe )[a-z][\w-]*(?= MCP server)) MCP\b(?![\w-])"
    rf"|(?P<via>{_NAME}) (?:via|through|over|using|by) (?:an |the |its )?MCP\b"
    r"|\bMCP servers? (?:named |called )?[`\"'](?P<after>[\w -]{1,64})[`\"']"
)
_CONNECTED = re.compile(
    rf"(?P<names>{_NAME}(?:(?:, (?:and )?| and ){_NAME}){{0,9}})"
    r" (?P<must>should|must|needs? to|ha(?:s|ve) to|can|may)"
    r" be connected (?:using|via|by|through|with) (?:an? |the )?MCP"
)
_LISTED = re.compile(
    r"\b(?:(?:required|needed) MCP servers?|MCP servers? (?:required|needed))\b\W*:\s*(.+)", re.I
)
_TOOL = re.compile(
    r"\bmcp__([A-Za-z0-9-]+(?:_[A-Za-z0-9-]+)*)__([A-Za-z0-9_-]+)|`([A-Z][\w-]*):([a-z]\w*(?:[-_]\w+)+)\b"
)
_REQUIRED, _OPTIONAL = words("required"), words("optional")
_NO_NAME = frozenset(WORDS["no_servers"])
"""Words before MCP that are no server's name."""
_WORD = re.compile(r"(?!(?:true|false|yes|no|none|required|optional)$)[A-Za-z][\w .:-]*")
_SENTENCE = re.compile(r"(?<=[.!?]) +(?=[A-Z`*])")


@dataclass(slots=True)
class Need:
    """A server, with what was said of it."""

    server: str
    required: bool = False
    tools: set[str] = field(default_factory=set)
    """Those that are named with the server."""
    coded: set[str] = field(default_factory=set)
    """Names in code that begin as the server's does: most are tools of it, and some are keys or packages."""

    def as_use(self) -> dict[str, Any]:
        """The fields of a `ServerUse`."""
        tools = [] if self.coded else sorted(self.tools)
        return {"server": self.server, "tools": tools or ["*"], "required": self.required}


def server_of(name: str) -> str:
    """The name of a server in lower case, of a name in prose; empty for none."""
    words = list(re.findall(r"[\w.+-]+", name.lower()))
    while words and words[0] in _NO_NAME:
        del words[0]
    plain = "-".join(words).strip("-.")
    return "" if plain in _NO_NAME or not re.match(r"[a-z]", plain) else plain[: _LONGEST_NAME + 1]


def bare(server: str) -> str:
    """A server's name without what only says that it is one: `linear` of `linear-server`."""
    return re.sub(r"[-_]?(mcp[-_]?server|mcp|server)$", "", server)


def needs_of(skill: SkillDefinition) -> dict[str, Need]:
    """The servers that a skill needs or can use, by name."""
    needs: dict[str, Need] = {}

    def need(name: str, *, required: bool, tool: str = "") -> None:
        if server := server_of(name):
            if bare(server) not in needs and len(needs) >= _MOST:
                return
            found = needs.setdefault(bare(server), Need(server))
            found.server = max(found.server, server, key=len)
            found.required |= required
            if tool:
                found.tools.add(tool)

    for value in _declared(skill.front.fields):
        server, tool = split(value) or (value, "")
        need(server, required=True, tool=tool)
    heads = (str(skill.front.fields.get(key, "")) for key in ("description", "compatibility"))
    lines = [line for line in (*heads, *skill.body.decode().split("\n")) if len(line) <= _LONGEST_LINE]
    fenced = False
    for line in lines:
        fenced ^= line.lstrip().startswith(("```", "~~~"))
        for sentence in _SENTENCE.split(line):
            optional = _OPTIONAL.search(sentence) is not None
            for match in _TOOL.finditer(sentence):
                need(match[1] or match[3], required=not optional, tool=match[2] or match[4])
            if "MCP" in sentence and not fenced:
                for name, must in _mentioned(sentence):
                    need(name, required=must and not optional)
    _name_tools(needs, "\n".join(lines))
    return {need.server: need for need in needs.values()}


def _declared(fields: Any, *, about: bool = False) -> Iterator[str]:
    """Each server that the front matter lists under a key that speaks of MCP."""
    if isinstance(fields, dict):
        for key, value in fields.items():
            yield from _declared(value, about=about or "mcp" in str(key).lower())
    elif about and isinstance(fields, list):
        for value in fields:
            yield from _declared(value, about=True)
    elif about and isinstance(fields, str):
        yield from filter(_WORD.fullmatch, (clean_line(name, limit=200) for name in fields.split(",")))


def _mentioned(sentence: str) -> Iterator[tuple[str, bool]]:
    """Names in a sentence about MCP, and whether it says that they are needed."""
    for match in _CONNECTED.finditer(sentence):
        must = match["must"] not in ("can", "may")
        yield from ((name, must) for name in re.findall(_NAME, match["names"]))
    if listed := _LISTED.search(sentence):
        yield from ((name, True) for name in re.findall(r"\b(?!and\b)[A-Za-z][\w-]*", listed[1]))
        return
    needed = _REQUIRED.search(sentence) is not None
    for match in _MENTION.finditer(sentence):
        name = match["before"] or match["via"] or match["after"]
        if needed or _OPTIONAL.search(sentence):
            yield name, needed


def _name_tools(needs: dict[str, Need], text: str) -> None:
    """Add the tools that stand in code, as `server:tool`, `server-tool` or `SERVER_TOOL`."""
    if not needs:
        return
    names = "|".join(map(re.escape, sorted(needs, key=len, reverse=True)))
    coded = re.compile(rf"`(?:({names})[:.])?(({names})[-_]\w[\w-]*|(?<=[:.])\w[\w-]*)(?=[`( ])", re.I)
    for match in coded.finditer(text):
        server = (match[1] or match[3] or "").lower()
        if server in needs and bare(server_of(match[2])) not in needs:
            (needs[server].tools if match[1] else needs[server].coded).add(match[2])


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
    for server in [server for server in servers if len(server) > _LONGEST_NAME]:
        message = f"{server} is too long for a server's name; it was left out"
        findings.warn("UNRESOLVED_TOOL", message, "tools")
        del servers[server]
    commands, unresolved = read_allowed(USUAL if usual and names_none(skill) else tokens)
    for token in unresolved:
        findings.warn("UNRESOLVED_TOOL", f"nothing here is {token}; it was left out", "allowed-tools")
    if skill.scripts:
        words = f"{len(skill.scripts)} scripts are kept and were not run: {', '.join(skill.scripts[:5])}"
        findings.warn("SCRIPTS", words, "scripts")
    return {"local": list(commands), "mcp_servers": [need.as_use() for _, need in sorted(servers.items())]}


def names_none(skill: SkillDefinition) -> bool:
    """Whether a skill was written for other clients and says nothing of tools."""
    ours = any(name.startswith("mindrian-") for name in skill.metadata)
    return not (ours or skill.allowed_tools)


async def check_tools(
    spec: AgentSpec, lacks: Lacks, findings: Findings, *, read: Collection[str] = ()
) -> list[str]:
    """Connect every server, all side by side; gives those that are down and not required.

    Args:
        spec: the agent.
        lacks: says what is missing of a server.
        findings: what is noticed.
        read: servers that were read from the skill: one that is down holds up handoffs, not the build.
    """
    uses = spec.tools.mcp_servers
    answers = await asyncio.gather(*(_missing(use, lacks) for use in uses))
    degraded: list[str] = []
    for use, missing in zip(uses, answers, strict=True):
        where = f"tools.mcp_servers.{use.server}"
        if not missing:
            continue
        if use.required and use.server in read:
            words = f"the skill needs {use.server}: {missing}; no handoff to it begins before it is there"
            findings.warn("MCP_NEEDED", words, where, "add it to mcp.json, or make it optional in agent.yaml")
        elif use.required:
            findings.error("MCP_DOWN", f"{use.server}: {missing}", where, "start it, or make it optional")
        else:
            degraded.append(use.server)
            findings.warn("MCP_DEGRADED", f"{use.server}: {missing}", where)
    for name in ("custom_tools", "global_actions"):
        if getattr(spec.tools, name):
            findings.error("BAD_FUNCTION", NO_FUNCTIONS, f"tools.{name}")
    return degraded


async def _missing(use: ServerUse, lacks: Lacks) -> str:
    try:
        async with asyncio.timeout(HANDSHAKE_S):
            return await lacks(use.server, use.tools)
    except TimeoutError:
        return f"no handshake within {HANDSHAKE_S:g} s"
