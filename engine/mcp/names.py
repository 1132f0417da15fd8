"""Names of MCP tools: how they are written, and which tool of which server is meant.

Our own is `server.tool`; `mcp__server__tool`, `Server:tool` and shorthands of a table are understood as well
(ontology spec §1.14).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Mapping
from types import MappingProxyType

ALIASES: Mapping[str, str] = MappingProxyType(
    {
        "neo4j.read_cypher": "neo4j.read_neo4j_cypher",
        "neo4j.write_cypher": "neo4j.write_neo4j_cypher",
        "neo4j.get_schema": "neo4j.get_neo4j_schema",
    }
)
"""The seed's shorthands and what they stand for, where a server has no tool of the short name itself."""
MODEL_NAME_LIMIT = 64
"""Characters that a model's interface takes for a name."""
_PLAIN = re.compile(r"[A-Za-z0-9_-]+")
_TOOL = re.compile(r"[A-Za-z0-9_./:-]{1,128}")


def tool_name(server: str, tool: str) -> str:
    """`server.tool`."""
    return f"{server}.{tool}"


def allowed(tool: str) -> bool:
    """Whether a tool may have this name."""
    return _TOOL.fullmatch(tool) is not None


def command_of(server: str, tool: str) -> str:
    """The name of a server's tool as a command: as it is where models can use it, else changed and marked."""
    room = MODEL_NAME_LIMIT - len(f"{server}__")
    if _PLAIN.fullmatch(tool) and len(tool) <= room:
        return tool
    mark = hashlib.sha256(tool.encode()).hexdigest()[:6]
    return f"{re.sub(r'[^A-Za-z0-9_-]', '_', tool)[: room - 7]}_{mark}"


def split(text: str) -> tuple[str, str] | None:
    """Server and tool as they are written in one of the spellings; None where the text names no tool."""
    said = text.strip()
    if said.startswith("mcp__"):
        server, mark, tool = said.removeprefix("mcp__").partition("__")
    else:
        at = re.search(r"[.:]", said)
        server, mark, tool = (said[: at.start()], at[0], said[at.end() :]) if at else (said, "", "")
    return (server, tool) if mark and server and tool else None


def resolve(text: str, servers: Mapping[str, Collection[str]]) -> tuple[str, str] | None:
    """Which server's tool a text names; None where there is none.

    Args:
        text: in any of the spellings.
        servers: the tools of each server, by its name. Servers are found whatever the case, tools exactly.
    """
    found = split(text)
    if found is None:
        return None
    named, tool = found
    server = next((name for name in servers if name.lower() == named.lower()), None)
    if server is None:
        return None
    if tool in servers[server]:
        return server, tool
    meant = ALIASES.get(tool_name(named.lower(), tool), "").partition(".")[2]
    return (server, meant) if meant and meant in servers[server] else None
