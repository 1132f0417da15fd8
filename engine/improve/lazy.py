"""Opens Mastermind when it is first needed."""

from __future__ import annotations

import asyncio
from importlib import import_module
from typing import TYPE_CHECKING

from engine.agent.shared import LazySubsystem

if TYPE_CHECKING:
    from engine.core.campaigns import ForMastermind
    from engine.core.command import Receipt
    from engine.core.journal import Payload
    from engine.improve.mastermind import Mastermind
    from engine.improve.ports import MastermindHost


class LazyMastermind(LazySubsystem["Mastermind"]):
    """Mastermind of a workspace, opened when it is first needed.

    Args:
        host: the engine.
    """

    def __init__(self, host: MastermindHost) -> None:
        super().__init__("mastermind")
        self._host = host

    async def _open(self) -> Mastermind:
        module = await asyncio.to_thread(import_module, "engine.improve.mastermind")
        opened: Mastermind = await module.Mastermind.open(self._host)
        return opened

    def note(self, payload: Payload) -> None:
        """Record something in its stream, where it is open."""
        if self._here is not None:
            self._here.stream.append(payload)
            self._here.stream.log.commit_soon()

    async def carry_out(self, command: ForMastermind, actor: str) -> Receipt:
        """Carry out a command; see `Mastermind.carry_out`."""
        return await (await self.opened()).carry_out(command, actor)
