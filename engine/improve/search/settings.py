"""Thresholds and agents' specifications as texts: what stands for a file, and one value changed at a time."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping
from typing import Any

from engine.agent.settings import CONFIGURABLE, PARAMETERS_KEY, RECOVERY_KEY, Thresholds
from engine.core.text import StrictJsonError, read_json

DEFAULTS: Thresholds = {
    RECOVERY_KEY: {"max_consecutive_errors": 3},
    PARAMETERS_KEY: {"enable_path_correction": True, "fallback_to_defaults": True},
}
"""What holds where the file says nothing, of what is searched. Metacognition's numbers are not: no sealed
task tells one value of them from another."""
_LOWEST, _HIGHEST = 1, 8
"""Failures in a row that are tried."""
_HEAD = "# Numbers by which agents' loops decide; an agent's own configuration counts before them.\n"
_FIELDS = {"type", "id", "description", "config"}


AGENT_PREFIX = "agent:"
"""How the id of an agent's specification begins."""


class SpecError(ValueError):
    """A specification that cannot be used; the message says why."""


def thresholds_text(tables: Thresholds) -> str:
    """Thresholds as a file; values are numbers, words and switches."""
    parts = [
        f"[{name}]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in table.items())
        for name, table in tables.items()
    ]
    return "\n".join([_HEAD, *parts])


def neighbours(tables: Mapping[str, Any], rng: random.Random) -> Iterator[tuple[str, Thresholds]]:
    """Every set of tables with one of the searched values changed, and the change in words.

    What holds by default counts as present; a number outside of the range moves into it.
    """
    changes = []
    for table, defaults in DEFAULTS.items():
        held = tables.get(table, {})
        for name, default in defaults.items():
            now = held.get(name, default)
            near: set[Any] = {not now}
            if not isinstance(default, bool):
                near = {min(_HIGHEST, max(_LOWEST, now + by)) for by in (-2, -1, 1, 2)} - {now}
            for value in sorted(near):
                what = f"{table}.{name} {json.dumps(now)} → {json.dumps(value)}"
                changes.append((what, {**tables, table: {**held, name: value}}))
    rng.shuffle(changes)
    yield from changes


def spec_text(agent: str, created: Mapping[str, Any]) -> str:
    """An agent's specification: JSON of `type`, `id`, `description`, `config`.

    Args:
        agent: its id.
        created: what it was created with: `type`, `description` and `meta`.
    """
    spec = {"type": created["type"], "id": agent}
    spec |= {"description": created.get("description", ""), "config": created.get("meta", {})}
    return f"{json.dumps(spec, indent=2, sort_keys=True, ensure_ascii=False)}\n"


def read_config(text: str, agent: str, created: Mapping[str, Any]) -> dict[str, Any]:
    """The configuration in a specification.

    Raises:
        SpecError: it is no such JSON object, another agent's, or changes what a candidate may not change:
            approvals, budgets, the sandbox, the parent and all else that is not searched.
    """
    try:
        spec = read_json(text)
    except StrictJsonError as error:
        raise SpecError(f"the specification of {agent} is no usable JSON: {error}") from None
    if not isinstance(spec, dict) or set(spec) != _FIELDS or not isinstance(spec["config"], dict):
        raise SpecError(f"the specification of {agent} is a JSON object with {', '.join(sorted(_FIELDS))}")
    if (spec["id"], spec["type"]) != (agent, created["type"]):
        raise SpecError(f"the specification is of {str(spec['id'])[:40]!r}, not of the {agent} that there is")
    before, after = created.get("meta", {}), spec["config"]
    for name in sorted({*before, *after} - set(CONFIGURABLE)):
        if before.get(name) != after.get(name):
            raise SpecError(f"'{name}' is other than before: only {', '.join(CONFIGURABLE)} may change")
    config: dict[str, Any] = after
    return config
