"""Which tools a text means: names of MCP tools, a skill's `allowed-tools`, and global actions.

Our own spelling of an MCP tool is `server.tool`; `mcp__server__tool`, `Server:tool` and the shorthands of a
table are understood as well. Tokens of `allowed-tools` are separated by blanks or commas, or are a list. An
entry never widens what the sandbox allows: `Bash(x:*)` is `run` for that program only, and the sandbox's own
list of programs still holds. Global actions are calls that an agent is offered in every phase and step; three
are built in and work on the workspace's own memory where no server is named for them.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Mapping, Sequence

from engine.core.text import clean_line

ALIASES: Mapping[str, str] = {
    "neo4j.read_cypher": "neo4j.read_neo4j_cypher",
    "neo4j.write_cypher": "neo4j.write_neo4j_cypher",
    "neo4j.get_schema": "neo4j.get_neo4j_schema",
}
"""The seed's shorthands and what they stand for, where a server has no tool of the short name itself."""
MODEL_NAME_LIMIT = 64
"""Characters that a model's interface takes for a name."""
_PLAIN = re.compile(r"[A-Za-z0-9_-]+")
_TOOL = re.compile(r"[A-Za-z0-9_./:-]{1,128}")


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
    name = text.strip()
    if name.startswith("mcp__"):
        server, mark, tool = name.removeprefix("mcp__").partition("__")
    else:
        at = re.search(r"[.:]", name)
        server, mark, tool = (name[: at.start()], at[0], name[at.end() :]) if at else (name, "", "")
    return (server, tool) if mark and server and tool else None


def resolve(text: str, servers: Mapping[str, Collection[str]]) -> tuple[str, str] | None:
    """Which server's tool a text names; None where there is none.

    Args:
        text: in any of the spellings.
        servers: the tools of each server, by its name. Servers are found whatever the case, tools exactly.
    """
    parts = split(text)
    if parts is None:
        return None
    named, tool = parts
    server = next((name for name in servers if name.lower() == named.lower()), None)
    if server is None:
        return None
    if tool in servers[server]:
        return server, tool
    meant = ALIASES.get(f"{named.lower()}.{tool}", "").partition(".")[2]
    return (server, meant) if meant and meant in servers[server] else None


_COMMANDS: Mapping[str, tuple[str, ...]] = {
    "Read": ("simple_coder.read",),
    "Write": ("simple_coder.write", "simple_coder.append", "simple_coder.mkdir"),
    "Edit": ("simple_coder.read", "simple_coder.replace"),
    "MultiEdit": ("simple_coder.read", "simple_coder.replace"),
    "Glob": ("simple_coder.ls", "simple_coder.find"),
    "Grep": ("simple_coder.find",),
    "LS": ("simple_coder.ls",),
    "BashOutput": ("simple_coder.job_output", "simple_coder.wait_job"),
    "KillShell": ("simple_coder.stop_job",),
    "AskUserQuestion": ("crew.ask",),
    "Task": ("crew.delegate",),
    "Agent": ("crew.delegate",),
}
_TOKEN = re.compile(r"[^\s,()]+(?:\([^)]*\))?")
_PROGRAM = re.compile(r"\s*([^\s:*]+)")


def tokens_of(field: str | Sequence[str]) -> tuple[str, ...]:
    """The tokens of the field as people write it: apart by blanks or commas, or a list."""
    text = field if isinstance(field, str) else " ".join(str(token) for token in field)
    return tuple(dict.fromkeys(_TOKEN.findall(text)))


def read_allowed(field: str | Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The local commands that the field means, such as `simple_coder.read` or `simple_coder.run git` (for one
    program only), and the tokens that mean nothing here, clean.
    """
    commands: list[str] = []
    unresolved: list[str] = []
    for token in tokens_of(field):
        granted = _meant(token)
        commands += granted
        if not granted:
            unresolved.append(clean_line(token, limit=80))
    return tuple(dict.fromkeys(commands)), tuple(unresolved)


def _meant(token: str) -> list[str]:
    name, _, inner = token.partition("(")
    if name == "Bash":
        program = _PROGRAM.match(inner) if inner.strip(")* ") else None
        return [f"simple_coder.run {program[1].rstrip(')')}" if program else "simple_coder.run"]
    return list(_COMMANDS.get(name, ()))
