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
from types import MappingProxyType
from typing import Any

from engine.core.text import clean_line
from engine.value import dataclass

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
    meant = ALIASES.get(tool_name(named.lower(), tool), "").partition(".")[2]
    return (server, meant) if meant and meant in servers[server] else None


_SANDBOX = "simple_coder"
_COMMANDS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "Read": ("read",),
        "Write": ("write", "append", "mkdir"),
        "Edit": ("read", "replace"),
        "MultiEdit": ("read", "replace"),
        "Glob": ("ls", "find"),
        "Grep": ("find",),
        "LS": ("ls",),
        "BashOutput": ("job_output", "wait_job"),
        "KillShell": ("stop_job",),
    }
)
_OTHERS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {"AskUserQuestion": ("crew", "ask"), "Task": ("crew", "delegate"), "Agent": ("crew", "delegate")}
)
_TOKEN = re.compile(r"[^\s,()]+(?:\([^)]*\))?")
_PROGRAM = re.compile(r"\s*([^\s:*]+)")


@dataclass(frozen=True, slots=True)
class LocalTool:
    """A command of a local tool that a token grants."""

    token: str
    tool: str
    command: str
    program: str = ""
    """For `run`: the only program that is meant; empty for all that the sandbox allows."""


@dataclass(frozen=True, slots=True)
class AllowedTools:
    """What a skill's tokens come to."""

    tools: tuple[LocalTool, ...] = ()
    unresolved: tuple[str, ...] = ()
    """Tokens that mean no tool that is there, clean."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """A line for each token that means nothing here."""
        return tuple(f"allowed-tools: nothing here is {token}; it was left out" for token in self.unresolved)


def tokens_of(field: str | Sequence[str]) -> tuple[str, ...]:
    """The tokens of the field as people write it: apart by blanks or commas, or a list."""
    text = field if isinstance(field, str) else " ".join(str(token) for token in field)
    return tuple(dict.fromkeys(_TOKEN.findall(text)))


def read_allowed(field: str | Sequence[str]) -> AllowedTools:
    """Which local tools the field means."""
    tools: list[LocalTool] = []
    unresolved: list[str] = []
    for token in tokens_of(field):
        granted = _meant(token)
        tools += granted
        if not granted:
            unresolved.append(clean_line(token, limit=80))
    return AllowedTools(tuple(tools), tuple(unresolved))


def _meant(token: str) -> list[LocalTool]:
    name, _, inner = token.partition("(")
    if name == "Bash":
        program = _PROGRAM.match(inner) if inner.strip(")* ") else None
        return [LocalTool(token, _SANDBOX, "run", program[1].rstrip(")") if program else "")]
    if name in _COMMANDS:
        return [LocalTool(token, _SANDBOX, command) for command in _COMMANDS[name]]
    if name in _OTHERS:
        return [LocalTool(token, *_OTHERS[name])]
    return []


@dataclass(frozen=True, slots=True)
class BuiltIn:
    """What a built-in action does where no server does it."""

    description: str
    tool: str
    command: str
    fixed: Mapping[str, Any]
    """Arguments that are always the same."""
    takes: str
    """The argument that the action's text becomes."""

    def arguments(self, text: str, **more: Any) -> dict[str, Any]:
        """The call's arguments for a text; what is said besides counts before what is fixed."""
        return {**self.fixed, **more, self.takes: text}


BUILT_INS: Mapping[str, BuiltIn] = MappingProxyType(
    {
        "save_progress": BuiltIn(
            "remember how far the work has come",
            "memory",
            "store",
            MappingProxyType({"memory_type": "summary", "tags": ["progress"]}),
            "content",
        ),
        "fetch_context": BuiltIn(
            "find what is remembered about something",
            "memory",
            "search",
            MappingProxyType({"limit": 10}),
            "query",
        ),
        "store_insight": BuiltIn(
            "remember something that was understood",
            "memory",
            "store",
            MappingProxyType({"memory_type": "insight", "tags": ["insight"]}),
            "content",
        ),
    }
)
