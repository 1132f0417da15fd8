"""Opening the crew when it is first needed (`LateRoom`)."""

from __future__ import annotations

import asyncio
from importlib import import_module
from typing import TYPE_CHECKING

from engine.loop.late_room import LateRoom

if TYPE_CHECKING:
    from engine.agents.human import HumanRequest
    from engine.crew.crew import Crew, Ground
    from engine.domain.command import Receipt
    from engine.domain.crew_commands import ForCrew


class LateCrew(LateRoom["Crew"]):
    """The crew of a workspace, once somebody needs it.

    Args:
        ground: what it stands on.
    """

    def __init__(self, ground: Ground) -> None:
        super().__init__("crew")
        self._ground = ground

    async def _open(self) -> Crew:
        module = await asyncio.to_thread(import_module, "engine.crew.crew")
        opened: Crew = await module.Crew.open(self._ground)
        return opened

    async def carry_out(self, command: ForCrew, actor: str) -> Receipt:
        """Carry out a command of its own; see `Crew.carry_out`."""
        return await (await self.opened()).carry_out(command, actor)

    @property
    def needs(self) -> tuple[HumanRequest, ...]:
        """What it asks the operator; nothing while it is not open."""
        return self._here.needs if self._here is not None else ()
