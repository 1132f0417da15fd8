"""Other calls that do what a failed call was to do.

Only where the first did nothing and the second means the same: a command of that name in another tool, a
program under its other name, a command that fits what is really there (spec mindX §2.7, §7 item 42).
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from engine.domain.action import ErrorCode
from engine.domain.plan import Op, PlanStep
from engine.tools.registry import ToolRegistry


@dataclass(frozen=True, slots=True)
class Alternative:
    """A call in place of one that failed."""

    tool: str
    command: str
    args: dict[str, Any]
    why: str
    """What stands for what, in words."""


_COMMANDS: Mapping[tuple[str, ErrorCode], str] = {
    ("append", ErrorCode.NOT_FOUND): "write",
    ("read", ErrorCode.WRONG_TYPE): "ls",
}
"""A command and how it failed, to the command that fits what is there."""

_PROGRAMS: Mapping[str, str] = {
    "python": "python3",
    "python3": "python",
    "pip": "python -m pip",
    "pip3": "python3 -m pip",
}
_RUNNERS = frozenset({"run", "start"})
_NO_SUCH = frozenset({ErrorCode.UNKNOWN_TOOL, ErrorCode.UNKNOWN_COMMAND})
_NO_PROGRAM = frozenset({ErrorCode.NOT_FOUND, ErrorCode.NOT_ALLOWED})


def alternative(step: PlanStep, code: ErrorCode, registry: ToolRegistry) -> Alternative | None:
    """Another call for a failed step, with arguments that are valid; None when there is none.

    Args:
        step: the step that failed.
        code: how it failed.
        registry: what can be called.
    """
    if step.op is not Op.ACT:
        return None
    if code in _NO_SUCH:
        tools = [tool.id for tool in registry if tool.id != step.tool and step.command in tool.commands]
        found = [Alternative(tool, step.command, step.args, f"{tool} for {step.tool}") for tool in tools]
    elif (step.command, code) in _COMMANDS:
        other = _COMMANDS[step.command, code]
        found = [Alternative(step.tool, other, step.args, f"{other} for {step.command}")]
    elif step.command in _RUNNERS and code in _NO_PROGRAM:
        program = _other_program(step)
        found = [program] if program is not None else []
    else:
        found = []
    return next((fitted for each in found if (fitted := _fitted(each, registry))), None)


def _other_program(step: PlanStep) -> Alternative | None:
    """The same program under its other name; a command keeps its form, a line or a list of words."""
    command = step.args.get("command")
    words = command.split(maxsplit=1) if isinstance(command, str) else command
    if not isinstance(words, list) or not words or str(words[0]) not in _PROGRAMS:
        return None
    other = _PROGRAMS[words[0]]
    line = isinstance(command, str)
    changed = " ".join([other, *words[1:]]) if line else [*shlex.split(other), *words[1:]]
    return Alternative(step.tool, step.command, {**step.args, "command": changed}, f"{other} for {words[0]}")


def _fitted(found: Alternative, registry: ToolRegistry) -> Alternative | None:
    """The call with those of the arguments that its command takes; None when it could not be made."""
    if found.tool not in registry or found.command not in registry.get(found.tool).commands:
        return None
    spec = registry.get(found.tool).commands[found.command]
    taken = {parameter.name for parameter in spec.parameters}
    args = {name: value for name, value in found.args.items() if name in taken}
    if spec.operator_only or registry.validate(found.tool, found.command, args):
        return None
    return Alternative(found.tool, found.command, args, found.why)
