"""Opening Mastermind when it is first needed (`LateRoom`)."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING

from engine.journal.errors import JournalError
from engine.loop.late_room import LateRoom

if TYPE_CHECKING:
    from engine.domain.command import Receipt
    from engine.domain.mastermind import MastermindState
    from engine.domain.mastermind_commands import ForMastermind
    from engine.journal.payload import Payload
    from engine.mastermind.desk import Desk, Ground
    from engine.mastermind.mastermind import Mastermind


class LateMastermind(LateRoom["Mastermind"]):
    """Mastermind of a workspace, once somebody needs it.

    Args:
        house: what it stands on.
    """

    def __init__(self, house: Ground) -> None:
        super().__init__("mastermind")
        self._house = house
        self._desk: Desk | None = None

    async def desk(self) -> Desk:
        """The desk for agents and identities.

        Raises:
            JournalError: Mastermind's stream cannot be read.
        """
        await self.opened()
        assert self._desk is not None
        return self._desk

    async def _open(self) -> Mastermind:
        module = await asyncio.to_thread(import_module, "engine.mastermind.mastermind")
        opened: Mastermind = await module.Mastermind.open(self._house)
        parts = await asyncio.to_thread(import_module, "engine.mastermind.desk")
        self._desk = parts.take_part(opened, self._house)
        return opened

    def note(self, said: Payload) -> None:
        """Record something in its stream, where it is open."""
        if self._here is not None:
            self._here.spine.append(said)
            self._here.spine.log.commit_soon()

    async def carry_out(self, command: ForMastermind, actor: str) -> Receipt:
        """Carry out a command of its own; see `Mastermind.carry_out`."""
        return await (await self.opened()).carry_out(command, actor)

    async def known(self) -> MastermindState | None:
        """What it knows; None where nobody needed it yet, or it cannot be read."""
        if self._opening is None:
            return None
        with suppress(JournalError):
            return (await self.opened()).state
        return None
