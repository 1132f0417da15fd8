"""What upkeep costs: the share of later questions that memory still answers, over an agent's simulated month.

The agent acts, and some actions bring a fact that it stores as its tool does. Some facts are asked for later,
a day or weeks after; how important the agent took a fact says only a little about that. What a question
brings up is opened, as an agent opens it. All is drawn from a seed. The jobs of upkeep run as often as by
default and without a model. The baseline is the same month with no upkeep and nothing that expires.
"""

from __future__ import annotations

import asyncio
import random
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from engine.core.metacognition import BackgroundJob, MetaSettings, MetaTask
from engine.memory.memories import HybridSearch, StoreMemory, UseMemories
from engine.memory.memory import Memory
from engine.memory.metacognition.job import JobInputs
from engine.memory.metacognition.jobs import run_job
from engine.memory.metacognition.retrospect import Retrospect, review_record
from engine.memory.upkeep import ComputeMemoryStatistics
from engine.memory.workflows import CreateWorkflow, RecordActionCompletion, RecordActionStart
from tests.engine.memory.memory_desk import DAY, MemoryDesk
from tests.engine.memory.metacognition.meta_desk import MetaDesk

DAYS = 30
FIRST = 5
"""Places in which an answer must be."""

_THINGS = [
    f"{kind} {number}"
    for kind in (
        "pump",
        "valve",
        "sensor",
        "queue",
        "server",
        "tenant",
        "invoice run",
        "greenhouse",
        "antenna",
    )
    for number in range(1, 60)
]
_TRAITS = {
    "is looked after by": (
        "Irena",
        "Tomas",
        "Beate",
        "Jorge",
        "Yasmin",
        "Pilar",
        "the night shift",
        "nobody",
    ),
    "runs version": ("1.4", "2.0", "2.1.7", "3.3", "0.9 beta"),
    "fails when": (
        "it rains",
        "the disk is full",
        "two jobs overlap",
        "its clock drifts",
        "a cable is loose",
    ),
    "must be restarted": ("every night", "after an update", "by hand", "with the blue key", "on Sundays"),
    "is connected to": ("port 8443", "the spare line", "rack nine", "the old gateway", "cabinet four"),
    "was last checked": ("in March", "after the flood", "by the vendor", "last summer", "before the audit"),
}
_ACTS = ("read a log", "list a folder", "run the tests", "edit a file", "search the code", "call the service")


class Fact(NamedTuple):
    """Something that is learnt on a day, and the days on which it is asked for."""

    day: int
    question: str
    text: str
    importance: float
    asked: tuple[int, ...]


class Month(NamedTuple):
    """How a month went."""

    asked: int
    found: int
    asked_late: int
    """Of these: a week or more after the fact was learnt."""
    found_late: int
    kept: int
    """Memories at the end."""


def facts(count: int, seed: int) -> list[Fact]:
    """Facts in the order in which they are learnt; a quarter of them is asked for later."""
    dice = random.Random(seed)
    about = dice.sample([(thing, trait) for thing in _THINGS for trait in _TRAITS], count)
    out = []
    for at, (thing, trait) in enumerate(about):
        day = at * DAYS // count
        needed = dice.random() < 0.25
        lags = [1 + int(dice.expovariate(1 / 9)) for _ in range(dice.randint(1, 3))] if needed else []
        importance = min(9.0, max(2.0, dice.gauss(6.0 if needed else 5.0, 1.2)))
        out.append(
            Fact(
                day,
                f"what do we know: {thing} {trait}",
                f"The {thing} {trait} {dice.choice(_TRAITS[trait])}.",
                round(importance, 1),
                tuple(sorted({day + lag for lag in lags if day + lag < DAYS})),
            )
        )
    return out


async def month(actions: int, *, upkeep: bool, seed: int = 3) -> Month:
    """Live through it."""
    with tempfile.TemporaryDirectory() as directory:
        desk = await MemoryDesk(Path(directory)).open()
        try:
            return await _lived(desk, actions, facts(actions * 3 // 20, seed), upkeep)
        finally:
            await desk.close()


async def _lived(desk: MemoryDesk, actions: int, learnt: list[Fact], upkeep: bool) -> Month:
    memory, past = desk.memory, review_record(MetaDesk().open().state)
    usual = MetaSettings()
    every = {
        MetaTask.CONSOLIDATE: usual.consolidation.base,
        MetaTask.PROMOTE: usual.promote_every,
        MetaTask.MAINTAIN: usual.maintain_every,
    }
    done = asked = found = late = found_late = 0
    for day in range(DAYS):
        workflow = (await memory.do(CreateWorkflow(title=f"Work of day {day}"))).id
        todays = [fact for fact in learnt if fact.day == day]
        for at in range(actions // DAYS):
            done += 1
            desk.clock.seconds += DAY / (actions // DAYS)
            await _act(memory, workflow, done)
            for fact in todays[
                at * len(todays) // (actions // DAYS) : (at + 1) * len(todays) // (actions // DAYS)
            ]:
                stored = StoreMemory(
                    workflow_id=workflow,
                    content=fact.text,
                    memory_type="fact",
                    importance=fact.importance,
                    ttl=None if upkeep else 0,
                )
                await memory.do(stored)
            if upkeep:
                for task, loops in every.items():
                    if done % loops == 0:
                        await _job(memory, past, task, workflow)
        for fact in learnt:
            if day in fact.asked:
                answers = await memory.do(HybridSearch(query=fact.question, limit=FIRST))
                hits = [match.memory.id for match in answers if fact.text in match.memory.content]
                if hits:
                    await memory.do(UseMemories(memory_ids=tuple(hits[:1])))
                asked, found = asked + 1, found + bool(hits)
                if day - fact.day >= 7:
                    late, found_late = late + 1, found_late + bool(hits)
    kept = (await memory.do(ComputeMemoryStatistics())).total
    return Month(asked, found, late, found_late, kept)


async def _act(memory: Memory, workflow: str, number: int) -> None:
    act = _ACTS[number % len(_ACTS)]
    start = RecordActionStart(
        workflow_id=workflow,
        action_type="tool_use",
        tool_name=act.split()[0],
        title=act,
        reasoning=f"step {number}",
    )
    action = await memory.do(start)
    await memory.do(RecordActionCompletion(action_id=action.id, summary=f"{act} took {number % 7} seconds"))


async def _job(memory: Memory, past: Retrospect, task: MetaTask, workflow: str) -> None:
    async def workflow_of(_: Memory, agent: str, goal: str) -> str:
        return workflow

    job = BackgroundJob("bg1", task, "because", 1, goal="g1")
    await run_job(JobInputs(job, "pilot", past, MetaSettings().sources, memory, workflow_of))


def rows(actions: int = 10_000) -> Iterator[dict[str, Any]]:
    """Recall on what was asked, beside that without upkeep."""
    ours, base = (asyncio.run(month(actions, upkeep=upkeep)) for upkeep in (True, False))
    for name, found, asked in (
        ("all that was asked", "found", "asked"),
        ("asked a week later or more", "found_late", "asked_late"),
    ):
        shares = [getattr(one, found) / max(1, getattr(one, asked)) for one in (ours, base)]
        yield {
            "name": f"memory, {name} after upkeep, {ours.kept} memories kept of {base.kept}",
            "ours": round(shares[0], 3),
            "baseline": round(shares[1], 3),
            "ratio": round(shares[0] / shares[1], 3),
            "unit": "recall@5",
            "n": getattr(ours, asked),
        }


if __name__ == "__main__":
    import sys

    for row in rows(int(sys.argv[1]) if sys.argv[1:] else 10_000):
        print(row)
