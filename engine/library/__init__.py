"""The library: what Pilothouse ships as data, and how that data is read.

Recipes (`recipes/*.toml`) say which steps serve a clause of a goal, missions (`missions/*.toml`) are
goals ready to fly. What may enter: data files, and the code that checks and matches them. It is the
lowest room: it knows nothing of goals, plans or tools beyond their names. What leaves: recipes that
match clauses, with the errors of the files that could not be used, and missions.
"""

from __future__ import annotations

from engine.library.missions import Mission, MissionError, load_missions
from engine.library.plan_library import PlanLibrary, describe, shipped_agents, shipped_recipes
from engine.library.recipe import Recipe, RecipeError, RecipeStep

__all__ = [
    "Mission",
    "MissionError",
    "PlanLibrary",
    "Recipe",
    "RecipeError",
    "RecipeStep",
    "describe",
    "load_missions",
    "shipped_agents",
    "shipped_recipes",
]
