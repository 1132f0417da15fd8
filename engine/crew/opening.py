"""Opening the crew when it is first needed, and no sooner: a start that needs none imports none of it."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING

from engine.journal.errors import JournalError

if TYPE_CHECKING:
    from engine.agents.human import HumanRequest
    from engine.crew.crew import Crew, Ground
    from engine.domain.command import Receipt
    from engine.domain.crew_commands import ForCrew


class LateCrew:
    """The crew of a workspace, once somebody needs it.

    Args:
        ground: what it stands on.
    """

    def __init__(self, ground: Ground) -> None:
        self._ground = ground
        self._opening: asyncio.Task[Crew] | None = None

    async def opened(self) -> Crew:
        """The crew, open.

        Raises:
            JournalError: its stream cannot be read.
        """
        return await asyncio.shield(self.begin())

    def begin(self) -> asyncio.Task[Crew]:
        """Begin to open it, where nobody has, or it failed."""
        begun = self._opening
        if begun is None or (begun.done() and (begun.cancelled() or begun.exception() is not None)):
            begun = asyncio.create_task(self._open(), name="crew opening")
            # Whoever asks is told.
            begun.add_done_callback(lambda task: task.cancelled() or task.exception())
            self._opening = begun
        return begun

    async def _open(self) -> Crew:
        module = await asyncio.to_thread(import_module, "engine.crew.crew")
        opened: Crew = await module.Crew.open(self._ground)
        return opened

    async def carry_out(self, command: ForCrew, actor: str) -> Receipt:
        """Carry out a command of its own; see `Crew.carry_out`."""
        return await (await self.opened()).carry_out(command, actor)

    @property
    def _here(self) -> Crew | None:
        """The crew, where it is open by now."""
        begun = self._opening
        if begun is None or not begun.done() or begun.cancelled() or begun.exception() is not None:
            return None
        return begun.result()

    @property
    def needs(self) -> tuple[HumanRequest, ...]:
        """What it asks the operator; nothing while it is not open."""
        return self._here.needs if self._here is not None else ()

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
        """End what runs; may be called again."""
        if self._opening is not None:
            await asyncio.wait([self._opening])
            if self._here is not None:
                await self._here.close()
