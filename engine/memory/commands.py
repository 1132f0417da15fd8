"""The commands of memory as a tool, described without loading memory, as replays and prompts need them.

They are the requests that agents may make, under short names; the original names are understood as well. A
workflow that is not named is that of the current goal.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from engine.core import memory as core
from engine.core.ports import CommandSpec, Parameter

OWNER_PREFIX = "agent:"
"""With this a workflow's tags begin that say whose it is."""
RECORDED_PREFIX = "@"
"""With this the idempotency keys begin of what is written from the journal, and no others."""


def owner_tag(agent: str) -> str:
    """The tag of a workflow that is an agent's; one with tags of several is theirs together."""
    return f"{OWNER_PREFIX}{agent}"


_FILTERS = (
    "workflow_id memory_level:string memory_type:string tags=[] min_importance=0.0 max_importance=10.0 "
    "min_confidence=0.0 created_after:number created_before:number"
)
_TABLE = Path(__file__).with_suffix(".txt").read_text("utf-8")
"""Each command with the request that it makes, what it is for and its parameters; `*` for those that
write.

A parameter is `name` (a text, empty unless given), `name!` (required), `name=JSON` (with this default) or
`name:type` (without a default).
"""
_COMMAND = re.compile(r"^(\*?)(\w+) = (\w+)\n  (.+)\n((?:    .+\n)+)", re.MULTILINE)

_KINDS = (
    *(core.ActionStatus, core.ActionType, core.ArtifactType, core.LinkType),
    *(core.MemoryLevel, core.MemoryType, core.ThoughtType, core.WorkflowStatus),
)
_WORDS = {kind.__name__: f"one of {', '.join(kind)}" for kind in _KINDS}
_MEANINGS = {
    name: meaning.format_map(_WORDS)
    for line in Path(__file__).with_name("parameters.txt").read_text("utf-8").splitlines()
    for names, _, meaning in [line.partition(": ")]
    for name in names.split()
}
"""What a parameter stands for, by its name or by command and name; otherwise its name says it."""
_JSON_TYPES = {str: "string", bool: "boolean", int: "integer", float: "number", list: "array"}
_PARAMETER = re.compile(r"(?P<name>\w+)(?P<needed>!)?(?::(?P<type>\w+))?(?:=(?P<default>\S+))?")


def _parameter(command: str, match: re.Match[str]) -> Parameter:
    name, needed, kind, default = match["name"], match["needed"], match["type"], match["default"]
    meaning = _MEANINGS.get(f"{command}.{name}") or _MEANINGS.get(name) or name.replace("_", " ")
    value = None if needed or kind else json.loads(default or '""')
    type_name = kind or ("string" if needed else _JSON_TYPES[type(value)])
    return Parameter(name, meaning, type_name, required=bool(needed), default=value)


NAMES = {name: verb for _, name, verb, _, _ in _COMMAND.findall(_TABLE)}
"""Our names of the requests that agents may make, and the seed's."""


class Commands(Mapping[str, CommandSpec]):
    """Commands by our names; the seed's names are understood and not offered."""

    def __init__(self) -> None:
        self._specs = {
            name: CommandSpec(
                name,
                description,
                tuple(
                    _parameter(name, match)
                    for match in _PARAMETER.finditer(parameters.replace("{filters}", _FILTERS))
                ),
                writes=bool(writes),
            )
            for writes, name, _, description, parameters in _COMMAND.findall(_TABLE)
        }
        self._ours = {verb: name for name, verb in NAMES.items()}

    def __getitem__(self, name: str) -> CommandSpec:
        return self._specs[self._ours.get(name, name)]

    def __iter__(self) -> Iterator[str]:
        return iter(self._specs)

    def __len__(self) -> int:
        return len(self._specs)


COMMANDS: Mapping[str, CommandSpec] = Commands()
"""Commands by name, in the order in which they are offered."""
