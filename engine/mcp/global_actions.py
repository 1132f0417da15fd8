"""Global actions: calls that an agent is offered in every phase and step, by names of their own.

Three are built in and work on the workspace's own memory where no server is named for them.
Source: ontology spec §1.14.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

_NAME = re.compile(r"[a-z][a-z0-9_]{0,47}")


@dataclass(frozen=True, slots=True)
class GlobalAction:
    """An action by its name, and the tool that does it."""

    action: str
    description: str
    tool: str = ""
    """`tool.command` in any spelling; empty for the built-in of that name."""


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


def check_actions(
    actions: Iterable[GlobalAction], resolves: Callable[[str], bool], commands: Collection[str] = ()
) -> list[str]:
    """Everything that is wrong with an agent's global actions, in lines with their place.

    Args:
        actions: as the agent's file lists them.
        resolves: whether a `tool.command` is there.
        commands: names of the cockpit's own commands, which no action may have.
    """
    out: list[str] = []
    seen: set[str] = set()
    for number, one in enumerate(actions):
        where = f"tools.global_actions[{number}]"
        if not _NAME.fullmatch(one.action):
            out.append(f"{where}.action: a small letter, then up to 47 of a-z, 0-9 and _")
        elif one.action in seen:
            out.append(f"{where}.action: {one.action} stands there twice")
        elif one.action in commands:
            out.append(f"{where}.action: {one.action} is a command of the cockpit")
        seen.add(one.action)
        if not one.tool and one.action not in BUILT_INS:
            out.append(f"{where}.tool: it names no tool, and {one.action} is none of {', '.join(BUILT_INS)}")
        elif one.tool and not resolves(one.tool):
            out.append(f"{where}.tool: there is no tool {one.tool}")
    return out
