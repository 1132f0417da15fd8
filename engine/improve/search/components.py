"""Components beside projects: plan libraries, recipes, thresholds, words for a model, agents' specifications.

They are data in the workspace's directory, where agents may not write. Where a file is not there yet
something stands for it, as the shipped plans do for the explorer's.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from importlib.resources import files
from pathlib import Path
from typing import Any

from engine.agent.settings import FILE
from engine.core.improvement import Component, ComponentKind
from engine.improve.search.settings import AGENT_PREFIX
from engine.models.prompt_parts import DECIDING, PLANNING, path_of

PLANS = "explorer-plans"
"""Id of the shipped plans, as a file of the workspace."""
PLANS_FILE = "plans/explorer.asl"
RECIPES = "recipes"
RECIPES_FILE = "recipes/learned.toml"
"""The file that learned recipes are written to; the operator's own files are changed only when named."""
SIZE_LIMIT = 256 * 1024
MOST_FILES = 500
TRIED = frozenset({ComponentKind.THRESHOLDS, ComponentKind.PROMPT, ComponentKind.AGENT})
"""Kinds of components that are judged by what agents do with them."""
SEARCHED = frozenset({ComponentKind.PLANS, ComponentKind.RECIPES, *TRIED})
"""Kinds of components that are audited by the journal."""
THRESHOLDS, PROMPTS = "thresholds", "prompts"
MEASURES = {
    ComponentKind.PLANS: "reasoning cycles to the goal in 400 sealed worlds of the explorer",
    ComponentKind.RECIPES: "sealed recorded goals planned as they were done in the end, nothing else anew",
    ComponentKind.THRESHOLDS: "goals achieved and actions taken on sealed small tasks",
    ComponentKind.AGENT: "goals achieved and actions taken by such an agent on sealed small tasks",
    ComponentKind.PROMPT: "goals achieved, actions and tokens of the model on sealed small tasks",
}


def components(workspace: Path, agents: Iterable[str] = ()) -> tuple[Component, ...]:
    """What can be improved in a workspace beside projects, by id; blocking.

    Args:
        workspace: its directory.
        agents: ids of the agents that plan by recipes or a model.
    """
    plans = {PLANS_FILE: (PLANS, "the explorer's plans, as shipped until they are changed")}
    for path in _named(workspace, "plans", ".asl"):
        plans.setdefault(path, (path.removesuffix(".asl"), f"the plan library {path}"))
    recipes = {RECIPES_FILE: (RECIPES, "recipes learned from what was done by hand")}
    for path in _named(workspace, "recipes", ".toml"):
        recipes.setdefault(path, (path.removesuffix(".toml"), f"the recipes in {path}"))
    kind, prompts = ComponentKind.THRESHOLDS, tuple(map(path_of, (PLANNING, DECIDING)))
    words = f"the words that guide a model: {PLANNING} and {DECIDING}"
    made = [
        _component(THRESHOLDS, kind, "the numbers by which agents decide", FILE, aliases=("recovery",)),
        _component(PROMPTS, ComponentKind.PROMPT, words, *prompts, aliases=("prompt", "words")),
    ]
    for agent in agents:
        title, path = f"the specification of {agent}", f"agents/{agent}.json"
        made.append(_component(f"{AGENT_PREFIX}{agent}", ComponentKind.AGENT, title, path, aliases=(agent,)))
    for path, (ident, title) in plans.items():
        stem = Path(path).stem
        aliases = (stem, f"{stem} plans", f"{stem} plan library", path)
        made.append(_component(ident, ComponentKind.PLANS, title, path, aliases=aliases))
    for path, (ident, title) in recipes.items():
        stem = Path(path).stem
        made.append(
            _component(ident, ComponentKind.RECIPES, title, path, aliases=(stem, f"{stem} recipes", path))
        )
    return tuple(sorted(made, key=lambda component: component.id))


def _component(
    ident: str, kind: ComponentKind, title: str, *paths: str, aliases: tuple[str, ...]
) -> Component:
    return Component(ident, kind, title, paths, MEASURES[kind], aliases=aliases)


def library_of(created: Mapping[str, Any]) -> str:
    """The id of the plan library that an agent was created from, where that is one; else empty."""
    meta, sources = created.get("meta", {}), ("explorer.asl+baseline.asl", "baseline.asl", "explorer.asl")
    explores = created.get("type") == "asl_agent" and meta.get("world") == "explorer"
    return PLANS if explores and meta.get("source") in sources else ""


def current_texts(component: Component, workspace: Path) -> dict[str, str]:
    """The text of each file of a component as it is now, also where it is not in the workspace yet; blocking.

    Args:
        component: one of `components`.
        workspace: the workspace's directory, or a copy of it.

    Raises:
        OSError: a file cannot be read.
        ValueError: a file is too large, or no UTF-8.
    """
    return {path: _text(workspace / path) for path in component.paths}


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            content = file.read(SIZE_LIMIT + 1)
    except FileNotFoundError:
        shipped = path.parts[-2:] == ("plans", "explorer.asl")
        return (files("engine.tools.worlds") / "baseline.asl").read_text("utf-8") if shipped else ""
    if len(content) > SIZE_LIMIT:
        raise ValueError(f"{path.name} is larger than {SIZE_LIMIT // 1024} KiB and is not improved")
    return content.decode("utf-8")


def _named(workspace: Path, room: str, ending: str) -> list[str]:
    with suppress(OSError), os.scandir(workspace / room) as listing:
        names = [entry.name for entry in listing if entry.is_file(follow_symlinks=False)]
        return [f"{room}/{name}" for name in sorted(names) if name.endswith(ending)][:MOST_FILES]
    return []
