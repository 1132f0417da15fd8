"""A workspace with a real journal and a real memory, on time that the test tells."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self, TypeVar

from engine.core.memory import MemoryItem
from engine.core.store.opening import open_store
from engine.core.store.stored import StoredJournal
from engine.memory.connection import Connection
from engine.memory.memory import Memory
from engine.memory.open_memory import OpenedMemory, database_of
from engine.memory.requests import named
from engine.memory.sqlite import SqliteConnection

T = TypeVar("T")
MINUTE, HOUR, DAY = 60.0, 3_600.0, 86_400.0


class ToldClock:
    """Time stands still until the test moves it."""

    def __init__(self) -> None:
        self.seconds = 1_800_000_000.0

    def now(self) -> str:
        return datetime.fromtimestamp(self.seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")

    def monotonic(self) -> float:
        return self.seconds

    async def sleep(self, seconds: float) -> None:
        self.seconds += seconds


class MemoryDesk:
    """Asks memory by name, as a model would."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.clock = ToldClock()
        self.store: StoredJournal
        self.memory: Memory
        self.workflow = ""

    async def open(self) -> Self:
        self.store = await open_store(self.directory, self.clock, create=True)
        try:
            self.memory = Memory(self.directory, self.store, clock=self.clock)
            await self.memory.begin()
        except BaseException:
            await self.store.close()
            raise
        if not self.workflow:
            self.workflow = (await self.ask("create_workflow", title="Survey the moon")).id
        return self

    async def close(self) -> None:
        await self.memory.close()
        await self.store.close()

    async def reopen(self) -> None:
        await self.close()
        await self.open()

    @property
    def inside(self) -> OpenedMemory:
        """What stands behind the door, for tests that break it."""
        return self.memory._opening.result()

    def read(self, how: Callable[..., T], *arguments: Any) -> T:
        """What something reads from the tables."""
        with closing(database_of(self.directory, self.clock).reader()) as connection:
            return how(connection, *arguments)

    def poke(self, sql: str) -> None:
        """Change the tables behind memory's back, which is closed."""

        def change(connection: Connection) -> None:
            in_file = isinstance(connection, SqliteConnection)
            setting = "pragma query_only = off" if in_file else "set default_transaction_read_only = off"
            connection.run(setting)
            connection.run(sql)

        self.read(change)

    def lose(self) -> None:
        """Let the tables be gone, memory being closed."""
        self.poke("drop table meta")

    @property
    def database(self) -> Path:
        return self.directory / ".pilothouse" / "memory.db"

    async def ask(self, verb: str, *, as_of: int | None = None, **arguments: Any) -> Any:
        return await self.memory.do(named(verb, arguments), as_of=as_of)

    async def store_memory(self, content: str, **more: Any) -> MemoryItem:
        arguments = {"workflow_id": self.workflow, "memory_type": "fact", **more}
        return await self.ask("store_memory", content=content, **arguments)

    async def recall(self, ident: str) -> MemoryItem:
        return (await self.ask("get_memory_by_id", memory_id=ident)).memory

    async def found(self, query: str, **more: Any) -> list[str]:
        """Ids of what a search brings up."""
        hits = await self.ask("hybrid_search_memories", query=query, **{"nearest": True, **more})
        return [one.memory.id for one in hits]

    async def use(self, ident: str, times: int) -> None:
        for _ in range(times):
            await self.ask("use_memories", memory_ids=[ident])

    async def mind(self) -> list[str]:
        now = await self.ask("get_working_memory", context_id=self.workflow)
        return [one.memory.id for one in now.items]
