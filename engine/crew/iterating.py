"""ITERATE: after each result the caller says what is next, or that it is done (ontology spec §1.10).

A stall counter keeps it from running in circles: no progress, or the same again, counts one up; progress one
down. At three there is one new plan; a stall after that, while it stands at three, goes to the operator.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Protocol

from engine.agents.result import HandoffResult
from engine.crew.contexts import Wanted

MOST = 5
STALLS = 3


class Decider(Protocol):
    """Who says what is next: the caller."""

    async def next(self, results: tuple[HandoffResult, ...]) -> Wanted | None:
        """The next handoff; None when it is done."""

    async def replan(self, results: tuple[HandoffResult, ...]) -> None:
        """Think of another way: what was done does not get on."""

    async def escalate(self, results: tuple[HandoffResult, ...]) -> bool:
        """It does not get on after a new plan either; whether to go on all the same."""


@dataclass(slots=True)
class Stalls:
    """Counts whether something gets on. Progress is a finding or an output that was not there before."""

    count: int = 0
    _seen: set[str] = field(default_factory=set)
    _asked: set[tuple[str, str]] = field(default_factory=set)

    def note(self, wanted: Wanted, result: HandoffResult) -> int:
        """Take in a result; the count after it."""
        asked = (wanted.context.to_agent, wanted.context.task_description.strip().casefold())
        loop = asked in self._asked
        self._asked.add(asked)
        said = {one.strip().casefold() for one in (*result.key_findings, *result.recommendations)}
        said |= {" ".join(result.output.casefold().split())} if result.output.strip() else set()
        progress = result.success and bool(said - self._seen)
        self._seen |= said
        self.count = max(self.count - 1, 0) if progress and not loop else self.count + 1
        return self.count


async def iterate(
    first: Wanted,
    conduct: Callable[[Wanted], Awaitable[HandoffResult]],
    decider: Decider,
    *,
    most: int = MOST,
) -> tuple[HandoffResult, ...]:
    """Hand over, ask the caller for the next, and so on; all results, oldest first.

    Args:
        first: the first handoff.
        conduct: carries one out.
        decider: the caller.
        most: handoffs at most.
    """
    results: list[HandoffResult] = []
    stalls, replanned = Stalls(), False
    wanted: Wanted | None = first
    while wanted is not None and len(results) < most:
        result = await conduct(wanted)
        results.append(result)
        before = stalls.count
        if stalls.note(wanted, result) >= STALLS and stalls.count > before:
            if replanned:
                if not await decider.escalate(tuple(results)):
                    break
            else:
                await decider.replan(tuple(results))
                replanned = True
        if len(results) < most:
            wanted = await decider.next(tuple(results))
    return tuple(results)
