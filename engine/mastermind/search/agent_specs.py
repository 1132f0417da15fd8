"""Agents' specifications as files, what of them is searched, and what no change of them may loosen."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping
from typing import Any

from engine.domain.strict_json import StrictJsonError, read_json
from engine.mastermind.search.thresholds import neighbours
from engine.metacognition.settings import KEY as METACOGNITION
from engine.parameters.settings import KEY as PROCESSING
from engine.parameters.thresholds import TABLES
from engine.recovery.settings import KEY as RECOVERY

SEARCHED = (RECOVERY, METACOGNITION, PROCESSING, "style", "stuck", "thinker", "program", "source")
"""What a candidate may change of a configuration; everything else stays as it is."""
FIELDS = ("type", "id", "description", "config")


class SpecError(ValueError):
    """A specification that cannot be used; the message says why."""


def read_spec(text: str, agent: str) -> dict[str, Any]:
    """An agent's specification: `type`, `id`, `description`, `config`.

    Raises:
        SpecError: it is no such JSON object, or another agent's.
    """
    try:
        spec = read_json(text)
    except StrictJsonError as error:
        raise SpecError(f"the specification of {agent} is no usable JSON: {error}") from None
    if not isinstance(spec, dict) or set(spec) != set(FIELDS) or not isinstance(spec["config"], dict):
        raise SpecError(f"the specification of {agent} is a JSON object with {', '.join(FIELDS)}")
    if spec["id"] != agent:
        raise SpecError(f"the specification is of {str(spec['id'])[:40]!r}, not of {agent}")
    return spec


def loosened(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """What a candidate changes that it may not, in one line; empty when it keeps to the rules.

    Approvals, budgets, sandbox, parent and all else that is not searched must be the same as before.
    """
    for name in sorted({*before, *after} - set(SEARCHED)):
        if before.get(name) != after.get(name):
            return f"'{name}' is other than before: a candidate may change {', '.join(SEARCHED)} only"
    return ""


def spec_changes(text: str, agent: str, rng: random.Random) -> Iterator[tuple[str, str]]:
    """What was changed, in words, and the whole specification; one change at a time.

    Raises:
        SpecError: the specification cannot be read.
    """
    spec = read_spec(text, agent)
    config = spec["config"]
    tables = {name: dict(config[name]) for name in TABLES if isinstance(config.get(name), dict)}
    for what, changed in neighbours(tables, rng):
        yield what, _written(spec, {**config, **changed})


def _written(spec: Mapping[str, Any], config: Mapping[str, Any]) -> str:
    return f"{json.dumps({**spec, 'config': dict(config)}, indent=2, sort_keys=True, ensure_ascii=False)}\n"
