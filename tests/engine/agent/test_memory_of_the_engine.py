"""Memory as a part of the running engine: opened behind it, read by anyone, written for the operator."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from engine_flight import Flight

from engine.api.engine import Engine
from engine.core import commands as cmd
from engine.core.memory import MemoryLevel
from engine.core.store.verify import verify
from engine.memory.errors import MemoryInputError, MemoryRefused, MemoryUnavailable
from engine.memory.memories import HybridSearch


def test_opening_a_workspace_imports_no_part_of_memory_that_is_not_needed_yet() -> None:
    code = "import sys, engine.api.engine; print(*(m for m in sys.modules if m.startswith('engine.memory.')))"
    out = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert "engine.memory.memory" in out.split()
    assert not {"engine.memory.requests", "engine.memory.open_memory", "engine.memory.tables"} & set(
        out.split()
    )


async def test_what_the_operator_remembers_is_recorded_with_their_name(flight: Flight) -> None:
    made = await flight.engine.submit(
        cmd.Remember(verb="create_workflow", arguments={"title": "Survey"}), operator="ada"
    )
    assert made.ok, made.message
    told = {"workflow_id": made.data["id"], "content": "the valve sticks", "memory_type": "fact"}
    stored = await flight.engine.submit(cmd.Remember(verb="store", arguments=told), operator="ada")
    (event,) = [one async for one in flight.engine.events(follow=False) if one.ref == stored.event]
    assert (event.stream, event.kind, event.actor) == ("workspace@memory", "memory.stored", "operator:ada")
    (found,) = await flight.engine.recall(HybridSearch(query="valve"))
    assert (found.memory.content, found.memory.level) == ("the valve sticks", MemoryLevel.EPISODIC)
    assert not await flight.engine.recall("search", {"query": "valve"}, as_of=event.seq - 1)


async def test_what_memory_refuses_is_a_receipt(flight: Flight) -> None:
    for verb, arguments, word in (
        ("levitate", {}, "no request 'levitate'"),
        ("store_memory", {"content": "x"}, "workflow_id"),
        ("store_memory", {"workflow_id": "w99", "content": "x", "memory_type": "fact"}, "no workflow 'w99'"),
        ("search", {"query": "x"}, "only reads"),
    ):
        assert word in await flight.refused(cmd.Remember, verb=verb, arguments=arguments)
    assert "no agent 'nobody'" in await flight.refused(cmd.Remember, agent="nobody", verb="store_memory")


async def test_recall_only_reads(flight: Flight) -> None:
    with pytest.raises(MemoryRefused, match="Remember"):
        await flight.engine.recall("create_workflow", {"title": "x"})
    with pytest.raises(MemoryInputError, match="there is no event"):
        await flight.engine.recall("search", {"query": "x"}, as_of=10**6)


@pytest.mark.only_in_a_file
async def test_a_memory_that_cannot_be_opened_keeps_nobody_from_flying(
    tmp_path: Path, open_flight: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("engine.memory.sqlite.remove_cache", full)
    (tmp_path / ".pilothouse" / "memory.db").mkdir(parents=True)
    flight = await open_flight(tmp_path)
    with pytest.raises(MemoryUnavailable, match="could not be opened"):
        await flight.engine.recall("search", {"query": "x"})
    assert "memory.db" in flight.engine.health.memory
    await flight.do(cmd.AdoptGoal, text="list the files")
    assert "could not be opened" in await flight.refused(
        cmd.Remember, verb="create_workflow", arguments={"title": "x"}
    )


async def test_memory_is_given_up_with_the_engine_however_early(tmp_path: Path) -> None:
    for _ in range(3):
        engine = await Engine.open(tmp_path)
        waiting = asyncio.create_task(engine.recall("search", {"query": "x"}))
        await asyncio.sleep(0)
        await engine.close()
        # Asked before the end, it is answered or told that there is no memory any more.
        with suppress(MemoryUnavailable):
            assert not await waiting
    engine = await Engine.open(tmp_path)
    assert not await engine.recall("search", {"query": "x"})
    assert (await verify(engine.store)).ok
    await engine.close()
    with pytest.raises(MemoryUnavailable, match="closed"):
        await engine.recall("search", {"query": "x"})
