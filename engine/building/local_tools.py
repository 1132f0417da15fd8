"""The tools that are there without any server: the engine's own commands."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from engine.building.assembly import Allowed, FunctionError, ServerDownError

_SANDBOX: Mapping[str, tuple[str, ...]] = {
    "Read": ("read",),
    "Write": ("write", "append", "mkdir"),
    "Edit": ("read", "replace"),
    "MultiEdit": ("read", "replace"),
    "Glob": ("ls", "find"),
    "Grep": ("find",),
    "LS": ("ls",),
    "Bash": ("run",),
}
_CREW = {"AskUserQuestion": "crew.ask", "Task": "crew.delegate", "Agent": "crew.delegate"}
_PROGRAM = re.compile(r"Bash\(\s*([^\s:*()]+)")


class LocalTools:
    """The engine's own commands and nothing else; no server is configured.

    Args:
        commands: what is there, as `simple_coder.read`; None for what every workspace has.
    """

    def __init__(self, commands: Collection[str] | None = None) -> None:
        self._commands = commands

    def allowed(self, tokens: Sequence[str]) -> Allowed:
        """See `ToolsAt.allowed`."""
        commands: dict[str, None] = {}
        unresolved = []
        for token in tokens:
            name = token.partition("(")[0]
            if name in _SANDBOX:
                program = _PROGRAM.match(token)
                words = f" {program[1]}" if program else ""
                commands |= dict.fromkeys(f"simple_coder.{one}{words}" for one in _SANDBOX[name])
            elif name in _CREW:
                commands[_CREW[name]] = None
            else:
                unresolved.append(token)
        return Allowed(tuple(commands), tuple(unresolved))

    def has(self, command: str) -> bool:
        """See `ToolsAt.has`."""
        if self._commands is None:
            from engine.tools.simple_coder_commands import COMMANDS

            tool, _, name = command.partition(".")
            return tool == "simple_coder" and name in COMMANDS
        return command in self._commands

    async def connect(self, server: str) -> Collection[str]:
        """See `ToolsAt.connect`."""
        raise ServerDownError(f"no server {server} is configured in mcp.json")

    async def introspect(self, name: str, function: str, parameters: Mapping[str, Any] | None) -> None:
        """See `ToolsAt.introspect`."""
        raise FunctionError(f"{function} cannot be looked at: this workspace has no custom functions")
