"""An open workspace with Mastermind, as tests use it."""

from __future__ import annotations

from pathlib import Path

from engine.domain.mastermind import JobRecord
from engine.domain.mastermind_commands import ForMastermind, StartJob
from engine.domain.ports import SystemClock
from engine.engine import Engine
from engine.journal.event import MASTERMIND
from engine.journal.store import JournalStore
from engine.journal.verify import verify
from engine.mastermind.fold import fold
from engine.mastermind.mastermind import Mastermind


class Craft:
    """An open workspace."""

    def __init__(self, engine: Engine, mastermind: Mastermind) -> None:
        self.engine = engine
        self.mastermind = mastermind
        self.closed = False

    @property
    def workspace(self) -> Path:
        return self.engine.workspace

    async def close(self) -> None:
        """Close it; the live state has to be the fold, and the journal sound."""
        if self.closed:
            return
        self.closed = True
        await self.engine.close()
        store = await JournalStore.open(self.workspace, clock=SystemClock(), read_only=True)
        try:
            assert fold(await store.read(MASTERMIND)) == self.mastermind.state
            assert (await verify(store)).ok
        finally:
            await store.close()

    async def do(self, command: ForMastermind, *, ok: bool = True) -> str:
        receipt = await self.engine.submit(command, operator="anna")
        assert receipt.ok is ok, receipt.message
        return receipt.message

    async def start(self, verb: str, argument: str = "", **said: object) -> str:
        command = StartJob.model_validate({"verb": verb, "argument": argument, "seed": 7, **said})
        receipt = await self.engine.submit(command, operator="anna")
        assert receipt.ok, receipt.message
        return str(receipt.data["job"])

    async def job(self, verb: str, argument: str = "", **said: object) -> JobRecord:
        return await self.mastermind.wait(await self.start(verb, argument, **said))
