"""The searchable part of a workspace, plugged into Mastermind."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol, cast

from engine.actions.saving import SnapshotRule
from engine.domain.budgets import SpendingLimits
from engine.domain.ports import Clock, Ports, SystemClock
from engine.loop.sharing import EngineConfig
from engine.mastermind.search.flights import Aloft, HurriedClock, Opener
from engine.mastermind.search.joining import JournalAuditor, ModelProposer, SearchProposer, SearchSuites
from engine.mastermind.search.prompts import ModelOpener
from engine.mastermind.search.searching import Searching

SEED = 7
"""Of the randomness in scratch workspaces: the same each time."""


class Pluggable(Protocol):
    """What takes parts in: `engine.mastermind.mastermind.Mastermind`."""

    @property
    def house(self) -> Any:
        """The engine that it stands on (`engine.mastermind.parts.House`)."""

    def plug(self, *, auditor: Any = None, proposer: Any = None, suite: Any = None) -> None:
        """Take a part in."""


def register(mastermind: Pluggable) -> None:
    """Plug in the audit of the journal, searches, the model that there is, and suites."""
    house = mastermind.house
    thinking = thinking_opener_of(house) if house.model is not None else None
    searching = Searching(house.workspace, opener_of(house), thinking=thinking, model=house.model_name)
    mastermind.plug(
        auditor=JournalAuditor(searching, lambda: house.agents),
        proposer=SearchProposer(searching),
        suite=SearchSuites(searching),
    )
    if house.model is not None:
        mastermind.plug(proposer=ModelProposer(house.model, house.model_name))


def opener_of(house: Any) -> Opener:
    """Opens scratch workspaces by engines like the one that Mastermind stands on, without a model.

    What runs there is held by the same policy; nothing is saved before actions, as nothing is kept.
    """

    async def opened(place: Path) -> Aloft:
        return await _open(house, place, HurriedClock(), {})

    return opened


def thinking_opener_of(house: Any) -> ModelOpener:
    """The same with the model that thinks, within a budget; a model is not hurried."""

    async def opened(place: Path, usd: float) -> Aloft:
        limits = SpendingLimits(usd=None if math.isinf(usd) else usd)
        return await _open(house, place, SystemClock(), {"model": house.config.model, "budget": limits})

    return opened


async def _open(house: Any, place: Path, clock: Clock, more: Mapping[str, Any]) -> Aloft:
    config = EngineConfig(policy=house.sandbox().policy, snapshots=SnapshotRule.OFF, **more)
    ports = Ports(clock=clock, seed=lambda: SEED)
    return cast("Aloft", await type(house).open(place, ports=ports, config=config))
