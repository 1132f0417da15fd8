"""A stream run again, from session to session."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from engine.crew.tool.commands import COMMANDS as CREW_COMMANDS
from engine.domain.ports import NoSessions, Ports
from engine.domain.reasoning import REASONER
from engine.domain.running import CREW
from engine.journal import events as ev
from engine.journal.event import Event
from engine.journal.fold import fold
from engine.loop.recording import Surroundings
from engine.memory.tool import MemoryTool
from engine.replay.agents import ReplayedAgent, ReplayedLog, ReplayedReasoningAgent
from engine.replay.answers import DescribedTool, RecordedRegistry, RecordedThinker, RecordedWorld
from engine.replay.record import DivergedError, Record, SessionEnded
from engine.tools.mind import Mind
from engine.tools.simple_coder_commands import COMMANDS
from engine.worlds.explorer_world import WORLDS


@dataclass(frozen=True, slots=True)
class Replay:
    """How a replay of one stream went."""

    stream: str
    matches: bool
    events: int
    """Events that came out the same."""
    head: str
    """Head hash that the replay reached."""
    difference: str = ""
    """The first event that came out otherwise, in words."""
    model_calls: int = 0


async def replay_stream(events: Sequence[Event], blob: Callable[[str], Awaitable[bytes | None]]) -> Replay:
    """Run one agent's recorded stream again.

    Args:
        events: the whole stream from its first event.
        blob: gives large recorded answers.
    """
    stream = events[0].stream
    record = Record(events)
    world = RecordedWorld(record, blob)
    worlds = [DescribedTool(world.name, world.commands) for world in WORLDS.values()]
    registry = RecordedRegistry(
        [
            DescribedTool("simple_coder", COMMANDS),
            Mind(),
            *worlds,
            DescribedTool(MemoryTool.id, MemoryTool.commands),
            DescribedTool(CREW, CREW_COMMANDS),
        ]
    )
    around = Surroundings(
        thinker=RecordedThinker(record),
        toolbox=world,
        saver=world,
        perceiver=world,
        registry=registry,
        clock=record,
        put_blob=_digest,
        randomness=Ports().randomness,
        control=NoSessions(),
    )

    log = ReplayedLog(stream, record)
    state = fold([])
    try:
        created = record.payloads[0]
        if not isinstance(created, ev.AgentCreated):
            return Replay(stream, False, 0, "", "the stream does not begin with the agent's creation")
        kind = ReplayedReasoningAgent if created.agent_type == REASONER else ReplayedAgent
        agent: ReplayedAgent = kind(record, log, around, state)
        with _ending():
            agent.append(record.payloads[0], events[0].actor)
        while record.next is not None:
            await _replay_session(agent, record)
            agent = agent.again()
    except DivergedError as error:
        return Replay(stream, False, record.place, log.head, str(error))
    finally:
        await log.close()
    return Replay(stream, log.head == events[-1].hash, record.place, log.head)


class _ending:  # noqa: N801  reads as a clause: with _ending(): …
    """Lets a session end where the record ends it."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> bool:
        return isinstance(error, SessionEnded)


async def _replay_session(agent: ReplayedAgent, record: Record) -> None:
    opened = record.payloads[record.place]
    if not isinstance(opened, ev.AgentOpened):
        raise DivergedError(f"a session is to begin, and the record goes on with {opened.kind}")
    with _ending():
        agent.open(opened.session, opened.seed)
        cycle = asyncio.create_task(agent.cycle())
        try:
            await cycle
        except asyncio.CancelledError:
            if not cycle.cancelled():
                raise


async def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
