"""Opening Mastermind when it is first needed, and no sooner: a start that needs none imports none of it."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING

from engine.journal.errors import JournalError

if TYPE_CHECKING:
    from engine.domain.command import Receipt
    from engine.domain.mastermind import MastermindState
    from engine.domain.mastermind_commands import ForMastermind
    from engine.journal.payload import Payload
    from engine.mastermind.desk import Desk, Ground
    from engine.mastermind.mastermind import Mastermind


class LateMastermind:
    """Mastermind of a workspace, once somebody needs it.

    Args:
        house: what it stands on.
    """

    def __init__(self, house: Ground) -> None:
        self._house = house
        self._opening: asyncio.Task[Mastermind] | None = None
        self._desk: Desk | None = None

    async def opened(self) -> Mastermind:
        """Mastermind, open.

        Raises:
            JournalError: its stream cannot be read.
        """
        return await asyncio.shield(self.begin())

    async def desk(self) -> Desk:
        """The desk for agents and identities.

        Raises:
            JournalError: Mastermind's stream cannot be read.
        """
        await self.opened()
        assert self._desk is not None
        return self._desk

    def begin(self) -> asyncio.Task[Mastermind]:
        """Begin to open it, where nobody has, or it failed."""
        begun = self._opening
        if begun is None or (begun.done() and (begun.cancelled() or begun.exception() is not None)):
            begun = asyncio.create_task(self._open(), name="mastermind opening")
            # Whoever asks is told.
            begun.add_done_callback(lambda task: task.cancelled() or task.exception())
            self._opening = begun
        return begun

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

    @property
    def _here(self) -> Mastermind | None:
        """Mastermind, where it is open by now."""
        begun = self._opening
        if begun is None or not begun.done() or begun.cancelled() or begun.exception() is not None:
            return None
        return begun.result()

    async def known(self) -> MastermindState | None:
        """What it knows; None where nobody needed it yet, or it cannot be read."""
        if self._opening is None:
            return None
        with suppress(JournalError):
            return (await self.opened()).state
        return None

    @property
    def trouble(self) -> Exception | None:
        """Why its stream could not be written last; None where it could."""
        return self._here.spine.log.trouble if self._here is not None else None

    async def try_again(self) -> None:
        """Write what the journal refused, where there is such."""
        if self._here is not None and self.trouble is not None:
            with suppress(JournalError):
                await self._here.spine.commit()

    async def close(self) -> None:
        """End its jobs; may be called again."""
        if self._opening is not None:
            await asyncio.wait([self._opening])
            if self._here is not None:
                await self._here.close()
