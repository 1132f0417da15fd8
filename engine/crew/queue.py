"""Who is next: priority with ageing, and the permits for model calls (ontology spec §1.8).

The limit is on model calls, not on handoffs: a run that waits for others holds no permit, so that a limit
of one never stops a chain of delegations.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from engine.agents.kinds import Priority

AGEING_S = 60.0
"""Seconds of waiting that raise the priority by one."""


def effective(priority: int, waited_s: float) -> int:
    """The priority that counts, after some seconds of waiting."""
    return min(int(Priority.URGENT), priority + int(waited_s // AGEING_S))


@dataclass(slots=True)
class Turn:
    """Somebody who waits for their turn."""

    name: str
    arrived: float
    """The clock's seconds."""
    number: int
    granted: asyncio.Event = field(default_factory=asyncio.Event)


class Line:
    """Those who wait, the most urgent first, then who came first.

    Args:
        monotonic: the clock's seconds.
        priority: how urgent somebody is, now.
    """

    def __init__(self, monotonic: Callable[[], float], priority: Callable[[str], int]) -> None:
        self._monotonic, self._priority = monotonic, priority
        self._turns: list[Turn] = []
        self._count = 0

    def join(self, name: str) -> Turn:
        """Wait from now on."""
        self._count += 1
        turn = Turn(name, self._monotonic(), self._count)
        self._turns.append(turn)
        return turn

    def leave(self, turn: Turn) -> None:
        """Wait no longer."""
        if turn in self._turns:
            self._turns.remove(turn)

    def drop(self, name: str) -> None:
        """Let somebody wait no longer, where they do."""
        self._turns = [turn for turn in self._turns if turn.name != name]

    def urgency(self, turn: Turn) -> int:
        """The priority that counts."""
        return effective(self._priority(turn.name), self._monotonic() - turn.arrived)

    @property
    def order(self) -> tuple[str, ...]:
        """Those who wait, the next one first."""
        return tuple(turn.name for turn in self._sorted())

    @property
    def first(self) -> Turn | None:
        """Whose turn it is."""
        return next(iter(self._sorted()), None)

    @property
    def turns(self) -> tuple[Turn, ...]:
        """Those who wait, in the order in which they came."""
        return tuple(self._turns)

    def _sorted(self) -> Iterable[Turn]:
        return sorted(self._turns, key=lambda turn: (-self.urgency(turn), turn.number))


class Permits:
    """Leave to call a model, for so many at a time; those that wait are served by their priority.

    Args:
        limit: calls at a time.
        monotonic: the clock's seconds.
        priority: how urgent the handoff of a run (or a handoff) is, now.
    """

    def __init__(self, limit: int, monotonic: Callable[[], float], priority: Callable[[str], int]) -> None:
        self.limit = limit
        self._line = Line(monotonic, priority)
        self._held = 0
        self.freed: Callable[[], None] = lambda: None
        """Told when a call has ended and nobody waits for its permit."""

    @asynccontextmanager
    async def held(self, handoff: str) -> AsyncIterator[None]:
        """Hold a permit while a model is called.

        Args:
            handoff: the handoff that calls, or its run.
        """
        turn = self._line.join(handoff)
        self._grant()
        try:
            await turn.granted.wait()
            yield
        finally:
            self._line.leave(turn)
            if turn.granted.is_set():
                self._held -= 1
                self._grant()
                self.freed()

    @property
    def in_use(self) -> int:
        """Permits that are held."""
        return self._held

    @property
    def waiting(self) -> tuple[str, ...]:
        """Who waits for one, the next first."""
        return self._line.order

    def admits(self, urgency: int) -> bool:
        """Whether something of this urgency would be served before all that waits."""
        if self._held < self.limit:
            return True
        first = self._line.first
        return first is not None and urgency > self._line.urgency(first)

    def _grant(self) -> None:
        while self._held < self.limit and (turn := self._line.first) is not None:
            self._line.leave(turn)
            self._held += 1
            turn.granted.set()


def needs_model(kind: str) -> bool:
    """Whether a type of agent calls a model before anything else; a guided one asks the operator first."""
    return kind != "guided"
