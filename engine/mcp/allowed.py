"""`allowed-tools` of a skill: which of our tools its tokens mean.

Tokens stand apart by blanks or commas, or as a list. An entry never widens what the sandbox allows:
`Bash(x:*)` is `run` for that program only, and the sandbox's own list of programs still holds. Source:
ontology spec §1.14, last paragraph; §2.1.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from engine.domain.text import clean_line
from engine.mcp.names import split

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
    {
        "AskUserQuestion": ("crew", "ask"),
        "Task": ("crew", "delegate"),
        "Agent": ("crew", "delegate"),
    }
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


def tokens_of(said: str | Sequence[str]) -> tuple[str, ...]:
    """The tokens of the field as people write it: apart by blanks or commas, or a list."""
    text = said if isinstance(said, str) else " ".join(str(one) for one in said)
    return tuple(dict.fromkeys(_TOKEN.findall(text)))


def read_allowed(
    said: str | Sequence[str], server_tool: Callable[[str], tuple[str, str] | None] = lambda _text: None
) -> AllowedTools:
    """Which local tools the field means.

    Args:
        said: the field.
        server_tool: finds server and tool of an MCP name in any spelling; None where there is none.
    """
    tools: list[LocalTool] = []
    unresolved: list[str] = []
    for token in tokens_of(said):
        found = _meant(token, server_tool)
        tools += found
        if not found:
            unresolved.append(clean_line(token, limit=80))
    return AllowedTools(tuple(tools), tuple(unresolved))


def _meant(token: str, server_tool: Callable[[str], tuple[str, str] | None]) -> list[LocalTool]:
    name, _, inner = token.partition("(")
    if name == "Bash":
        program = _PROGRAM.match(inner) if inner.strip(")* ") else None
        return [LocalTool(token, _SANDBOX, "run", program[1].rstrip(")") if program else "")]
    if name in _COMMANDS:
        return [LocalTool(token, _SANDBOX, command) for command in _COMMANDS[name]]
    if name in _OTHERS:
        return [LocalTool(token, *_OTHERS[name])]
    # WebFetch and the like are no names of ours: a server may have a tool of that name.
    found = server_tool(name) if split(name) is not None or name in ("WebFetch", "WebSearch") else None
    return [LocalTool(token, *found)] if found is not None else []
