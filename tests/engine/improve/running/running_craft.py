"""An open workspace with Mastermind, as tests use it."""

from __future__ import annotations

from pathlib import Path

from engine.api.engine import Engine
from engine.core.campaigns import ForMastermind, StartJob
from engine.core.improvement import JobRecord
from engine.core.journal import MASTERMIND
from engine.core.ports import SystemClock
from engine.core.store.sqlite import SqliteJournal
from engine.core.store.verify import verify
from engine.improve.mastermind import Mastermind
from engine.improve.state import EventStream


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
        store = await SqliteJournal.open(self.workspace, clock=SystemClock(), read_only=True)
        try:
            assert EventStream.fold(await store.read(MASTERMIND)) == self.mastermind.state
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
