"""What of the system itself can be improved beside projects: plans, recipes, prompts, thresholds, agents.

All of it is data in the workspace's directory, outside of what agents may write except for plan libraries in
the sandbox. Where a file is needed that is not there yet, `beginning` says what stands for it: the shipped
plans, the thresholds in force, an agent's configuration as it was created with.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from engine.domain.commands import AGENT_ID
from engine.domain.improvement import Component, ComponentKind
from engine.library.prompt_parts import path_of
from engine.mastermind.search.thresholds import UNSEARCHED
from engine.parameters.thresholds import FILE

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
_SKIPPED = frozenset({".pilothouse", ".git", ".tmp", ".venv", "venv", "node_modules", "__pycache__"})

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
    found = [_plans(PLANS, PLANS_FILE, "the explorer's plans, as shipped until they are changed")]
    found += [
        _plans(path.removesuffix(".asl"), path, f"the plan library {path}")
        for path in _libraries(workspace)
        if path != PLANS_FILE
    ]
    found.append(_recipes(RECIPES, RECIPES_FILE, "recipes learned from what was done by hand"))
    found += [
        _recipes(path.removesuffix(".toml"), path, f"the recipes in {path}")
        for path in _named(workspace, "recipes", ".toml")
        if path != RECIPES_FILE
    ]
    found.append(
        Component(
            THRESHOLDS,
            ComponentKind.THRESHOLDS,
            "the numbers by which agents' loops decide",
            (THRESHOLDS_FILE,),
            MEASURES[ComponentKind.THRESHOLDS],
            aliases=("threshold", "settings", "metacognition", "recovery"),
            unsearched=UNSEARCHED,
        )
    )
    found.append(_prompts(model))
    found += [_agent(ident, kind) for ident, kind in sorted((agents or {}).items())]
    return tuple(sorted(found, key=lambda one: one.id))


def _plans(ident: str, path: str, title: str) -> Component:
    stem = Path(path).stem
    names = (stem, f"{stem} plans", f"{stem} plan library", path)
    measure = MEASURES[ComponentKind.PLANS]
    return Component(ident, ComponentKind.PLANS, title, (path,), measure, aliases=names)


def _prompts(model: str) -> Component:
    from engine.mastermind.search.prompts import MEASURED, measure_of

    return Component(
        PROMPTS,
        ComponentKind.PROMPT,
        f"the words that guide a model: {', '.join(MEASURED)}",
        tuple(map(path_of, MEASURED)),
        measure_of(model),
        aliases=("prompt", *(f"{part} prompt" for part in MEASURED)),
    )


def _recipes(ident: str, path: str, title: str) -> Component:
    names = (Path(path).stem, f"{Path(path).stem} recipes", path)
    return Component(
        ident, ComponentKind.RECIPES, title, (path,), MEASURES[ComponentKind.RECIPES], aliases=names
    )


def _agent(ident: str, kind: str) -> Component:
    return Component(
        f"{AGENT_PREFIX}{ident}",
        ComponentKind.AGENT,
        f"the specification of {ident} ({kind})",
        (spec_file(ident),),
        MEASURES[ComponentKind.AGENT],
        aliases=(ident, f"{ident} agent"),
    )


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


def beginning(
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
        return (files("engine.worlds") / "baseline.asl").read_text(encoding="utf-8")
    if component.kind is ComponentKind.THRESHOLDS:
        from engine.mastermind.search.thresholds import DEFAULT_TEXT

        return DEFAULT_TEXT
    if component.kind is ComponentKind.PROMPT:
        from engine.mastermind.search.prompts import built_in

        return built_in(Path(path).stem)
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


def _libraries(workspace: Path) -> Iterator[str]:
    """Plan libraries below `plans/`, `recipes/` and the sandbox, without links, by path."""
    seen = 0
    for room in ("plans", "recipes", "sandbox"):
        for place, folders, names in os.walk(workspace / room):
            folders[:] = sorted(name for name in folders if name not in _SKIPPED and not name.startswith("."))
            for name in sorted(names):
                path = Path(place, name)
                if name.endswith(".asl") and not path.is_symlink() and path.is_file():
                    yield path.relative_to(workspace).as_posix()
                    seen += 1
                    if seen == MOST_FILES:
                        return


def _named(workspace: Path, room: str, ending: str) -> list[str]:
    try:
        found = sorted(one.name for one in os.scandir(workspace / room) if one.is_file(follow_symlinks=False))
    except OSError:
        return []
    return [f"{room}/{name}" for name in found if name.endswith(ending)][:MOST_FILES]
