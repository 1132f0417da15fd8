"""The standard internal actions (spec §1.8), a module for each sort; `STANDARD` holds them all."""

from engine.bdi.library import (  # noqa: F401  # importing a module registers its actions
    beliefs,
    communication,
    goals,
    kinds,
    lists,
    plans,
    society,
    strings,
    times,
)
from engine.bdi.library.registry import STANDARD

__all__ = ["STANDARD"]
