"""Components beside projects: plan libraries, recipes, prompts, thresholds and agents' specifications.

All of them are data in the workspace's directory, where agents may not write. Where a file is needed that is
not there yet, something stands for it: the shipped plans, the thresholds in force, the configuration that an
agent was created with. A change of thresholds or of a specification is one value next to the present one.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator, Mapping
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

from engine.agent.settings import FILE, TABLES, Thresholds
from engine.agent.settings import PARAMETERS_KEY as PROCESSING
from engine.agent.settings import RECOVERY_KEY as RECOVERY
from engine.core.command import AGENT_ID
from engine.core.improvement import Component, ComponentKind
from engine.core.text import StrictJsonError, read_json
from engine.improve.search.prompts import MEASURED, builtin_text, measure_of
from engine.memory.metacognition.schedule import METACOGNITION_KEY as METACOGNITION
from engine.models.prompt_parts import path_of

DEFAULTS: Thresholds = {
    RECOVERY: {"max_consecutive_errors": 3},
    PROCESSING: {"enable_path_correction": True, "fallback_to_defaults": True},
}
"""What holds where the file says nothing, of what is searched."""
RANGES = {(RECOVERY, "max_consecutive_errors"): (1, 8, 1)}
"""Lowest and highest value that is tried, and how far apart neighbours are; switches are turned."""
UNSEARCHED = (
    "metacognition's numbers, as no sealed task tells one value from another: without a model nothing of it "
    "touches an agent's turn, and with one a small task is over before anything of it falls due"
)
"""What of the file is the operator's alone, and why."""
_HEAD = "# Numbers by which agents' loops decide; an agent's own configuration counts before them.\n"

Change = tuple[str, Thresholds]
"""What was changed, in words, and all of the values."""


def thresholds_text(tables: Thresholds) -> str:
    """Thresholds as a file; values are numbers, words and switches."""
    parts = [
        f"[{name}]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in table.items())
        for name, table in tables.items()
    ]
    return "\n".join([_HEAD, *parts])


DEFAULT_TEXT = thresholds_text(DEFAULTS)


def neighbouring_thresholds(tables: Thresholds, rng: random.Random) -> list[Change]:
    """Every set of values with one of them changed, in an order drawn by the generator.

    What holds by default counts as present. Values of one that lies outside of its range move into it.
    """
    changes: list[Change] = []
    for table, defaults in DEFAULTS.items():
        for name, default in defaults.items():
            present = tables.get(table, {}).get(name, default)
            now = present if isinstance(present, type(default)) else default
            near: set[Any] = {not now}
            if (table, name) in RANGES:
                low, high, step = RANGES[table, name]
                steps = (-2 * step, -step, step, 2 * step)
                near = {min(high, max(low, now + distance)) for distance in steps} - {now}
            for value in sorted(near):
                what = f"{table}.{name} {json.dumps(now)} → {json.dumps(value)}"
                changes.append((what, {**tables, table: {**tables.get(table, {}), name: value}}))
    rng.shuffle(changes)
    return changes


CHANGEABLE = (RECOVERY, METACOGNITION, PROCESSING, "style", "stuck", "thinker", "program", "source")
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


def loosened_limits(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """What a candidate changes that it may not, in one line; empty when it keeps to the rules.

    Approvals, budgets, sandbox, parent and all else that is not searched must be the same as before.
    """
    for name in sorted({*before, *after} - set(CHANGEABLE)):
        if before.get(name) != after.get(name):
            return f"'{name}' is other than before: a candidate may change {', '.join(CHANGEABLE)} only"
    return ""


def spec_changes(text: str, agent: str, rng: random.Random) -> Iterator[tuple[str, str]]:
    """What was changed, in words, and the whole specification; one change at a time.

    Raises:
        SpecError: the specification cannot be read.
    """
    spec = read_spec(text, agent)
    config = spec["config"]
    tables = {name: dict(config[name]) for name in TABLES if isinstance(config.get(name), dict)}
    for what, changed in neighbouring_thresholds(tables, rng):
        yield what, _written(spec, {**config, **changed})


def _written(spec: Mapping[str, Any], config: Mapping[str, Any]) -> str:
    return f"{json.dumps({**spec, 'config': dict(config)}, indent=2, sort_keys=True, ensure_ascii=False)}\n"


AGENT_PREFIX = "agent:"
PLANS = "explorer-plans"
"""Id of the shipped plans, as a file of the workspace."""
PLANS_FILE = "plans/explorer.asl"
RECIPES = "recipes"
RECIPES_FILE = "recipes/learned.toml"
"""The file that learned recipes are written to; the operator's own files are changed only when named."""
PROMPTS = "prompts"
THRESHOLDS = "thresholds"
THRESHOLDS_FILE = FILE
SIZE_LIMIT = 256 * 1024
MOST_FILES = 500
SEARCHED = frozenset(
    {
        ComponentKind.PLANS,
        ComponentKind.RECIPES,
        ComponentKind.PROMPT,
        ComponentKind.THRESHOLDS,
        ComponentKind.AGENT,
    }
)
"""Kinds of components that are audited by the journal and judged by tasks."""
MEASURES = {
    ComponentKind.PLANS: "reasoning cycles to the goal in 400 sealed worlds of the explorer",
    ComponentKind.RECIPES: "sealed recorded goals planned as they were done in the end, nothing else anew",
    ComponentKind.THRESHOLDS: "goals achieved and actions taken on sealed small tasks",
    ComponentKind.AGENT: "goals achieved and actions taken by such an agent on sealed small tasks",
}


def components(
    workspace: Path, agents: Mapping[str, str] | None = None, model: str = ""
) -> tuple[Component, ...]:
    """What can be improved in a workspace, by id; blocking.

    Args:
        workspace: its directory.
        agents: the agents that exist, with their types.
        model: the name of the model that thinks; empty where there is none.
    """
    plans = {PLANS: (PLANS_FILE, "the explorer's plans, as shipped until they are changed")}
    for path in _named(workspace, "plans", ".asl"):
        if path != PLANS_FILE:
            plans[path.removesuffix(".asl")] = (path, f"the plan library {path}")
    recipes = {RECIPES: (RECIPES_FILE, "recipes learned from what was done by hand")}
    for path in _named(workspace, "recipes", ".toml"):
        if path != RECIPES_FILE:
            recipes[path.removesuffix(".toml")] = (path, f"the recipes in {path}")
    prompt_aliases = ("prompt", *(f"{part} prompt" for part in MEASURED))
    threshold_aliases = ("threshold", "settings", "metacognition", "recovery")
    thresholds = _component(
        THRESHOLDS,
        ComponentKind.THRESHOLDS,
        "the numbers by which agents' loops decide",
        THRESHOLDS_FILE,
        threshold_aliases,
    )
    made = [
        replace(thresholds, unsearched=UNSEARCHED),
        Component(
            PROMPTS,
            ComponentKind.PROMPT,
            f"the words that guide a model: {', '.join(MEASURED)}",
            tuple(map(path_of, MEASURED)),
            measure_of(model),
            aliases=prompt_aliases,
        ),
    ]
    for ident, (path, title) in plans.items():
        stem = Path(path).stem
        names: tuple[str, ...] = (stem, f"{stem} plans", f"{stem} plan library", path)
        made.append(_component(ident, ComponentKind.PLANS, title, path, names))
    for ident, (path, title) in recipes.items():
        names = (Path(path).stem, f"{Path(path).stem} recipes", path)
        made.append(_component(ident, ComponentKind.RECIPES, title, path, names))
    for ident, kind in (agents or {}).items():
        title, names = f"the specification of {ident} ({kind})", (ident, f"{ident} agent")
        made.append(_component(f"{AGENT_PREFIX}{ident}", ComponentKind.AGENT, title, spec_file(ident), names))
    return tuple(sorted(made, key=lambda component: component.id))


def _component(ident: str, kind: ComponentKind, title: str, path: str, aliases: tuple[str, ...]) -> Component:
    return Component(ident, kind, title, (path,), MEASURES[kind], aliases=aliases)


def spec_file(agent: str) -> str:
    """Where an agent's specification lies once it was improved, from the workspace's directory.

    Raises:
        ValueError: no agent bears such an id.
    """
    if not AGENT_ID.fullmatch(agent):
        raise ValueError(f"'{agent[:40]}' is no agent's id")
    return f"agents/{agent}.json"


def library_of(created: Mapping[str, Any]) -> str:
    """The id of the plan library that an agent was created from, where that is one; else empty."""
    if created.get("type") != "asl_agent":
        return ""
    meta = created.get("meta", {})
    source = str(meta.get("source", ""))
    if meta.get("world") == "explorer" and source in (
        "explorer.asl+baseline.asl",
        "baseline.asl",
        "explorer.asl",
    ):
        return PLANS
    return ""


def current_texts(
    component: Component, workspace: Path, created: Mapping[str, Any] | None = None
) -> dict[str, str]:
    """The text of each file of a component as it is now, also where it is not in the workspace yet; blocking.

    Args:
        component: one of `components`.
        workspace: the workspace's directory, or a copy of it.
        created: for an agent, what it was created with: `type`, `description` and `meta`.

    Raises:
        OSError: a file cannot be read.
        ValueError: a file is too large, or no UTF-8.
    """
    return {path: _text(workspace / path, _usual(component, path, created or {})) for path in component.paths}


def _usual(component: Component, path: str, created: Mapping[str, Any]) -> str:
    """What stands for a file that is not there."""
    if path == PLANS_FILE:
        return (files("engine.tools.worlds") / "baseline.asl").read_text(encoding="utf-8")
    if component.kind is ComponentKind.THRESHOLDS:
        return DEFAULT_TEXT
    if component.kind is ComponentKind.PROMPT:
        return builtin_text(Path(path).stem)
    if component.kind is ComponentKind.AGENT:
        return spec_text(component.id.removeprefix(AGENT_PREFIX), created)
    return ""


def spec_text(agent: str, created: Mapping[str, Any]) -> str:
    """An agent's specification as JSON: `type`, `id`, `description`, `config`."""
    spec = {
        "type": created.get("type", "bdi_agent"),
        "id": agent,
        "description": created.get("description", ""),
        "config": created.get("meta", {}),
    }
    return f"{json.dumps(spec, indent=2, sort_keys=True, ensure_ascii=False)}\n"


def _text(path: Path, usual: str) -> str:
    try:
        with path.open("rb") as file:
            content = file.read(SIZE_LIMIT + 1)
    except FileNotFoundError:
        return usual
    if len(content) > SIZE_LIMIT:
        raise ValueError(f"{path.name} is larger than {SIZE_LIMIT // 1024} KiB and is not improved")
    return content.decode("utf-8")


def _named(workspace: Path, room: str, ending: str) -> list[str]:
    try:
        names = sorted(
            entry.name for entry in os.scandir(workspace / room) if entry.is_file(follow_symlinks=False)
        )
    except OSError:
        return []
    return [f"{room}/{name}" for name in names if name.endswith(ending)][:MOST_FILES]
