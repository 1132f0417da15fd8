"""What is on record of one stream, and how far its replay has come."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

from engine.domain.belief import BeliefSource, BeliefTerms
from engine.journal import events as ev
from engine.journal.event import Event

P = TypeVar("P", bound=ev.Payload)


class DivergedError(Exception):
    """The replay did something that the record does not have."""


class SessionEnded(BaseException):
    """The recorded session ended here, in whatever the agent was doing."""


class Record:
    """The recorded events, and how far the replay has come."""

    def __init__(self, events: Sequence[Event]) -> None:
        self.events = events
        self.payloads = [ev.payload_of(event) for event in events]
        self.place = 0

    @property
    def next(self) -> Event | None:
        """The event that must come next."""
        return self.events[self.place] if self.place < len(self.events) else None

    @property
    def next_payload(self) -> ev.Payload | None:
        """What that event says."""
        return self.payloads[self.place] if self.place < len(self.payloads) else None

    def said(self, kind: type[P]) -> Iterator[P]:
        """Payloads of a kind from here on, nearest first."""
        return (payload for payload in self.payloads[self.place :] if isinstance(payload, kind))

    def was_held(self, asked: type[ev.Payload]) -> bool:
        """Whether a budget kept the call from being made for which was asked last."""
        for payload in reversed(self.payloads[: self.place]):
            if isinstance(payload, asked):
                return False
            if isinstance(payload, ev.BudgetReached) and payload.before == "call":
                return True
        return False

    def beliefs_after(self, finished: ev.ActionFinished) -> tuple[dict[str, Any], dict[str, BeliefTerms]]:
        """The beliefs that were recorded right after an action's end, and the terms of some."""
        found: dict[str, Any] = {}
        terms: dict[str, BeliefTerms] = {}
        start = next(n for n, payload in enumerate(self.payloads) if payload is finished) + 1
        for payload in self.payloads[start:]:
            if isinstance(payload, ev.BeliefAdded | ev.BeliefOutweighed):
                found[payload.key] = payload.value
                guessed = payload.source is BeliefSource.INFERENCE
                if guessed or payload.ttl_s is not None:
                    sure = payload.confidence if guessed else None
                    terms[payload.key] = BeliefTerms(sure, payload.ttl_s)
            elif isinstance(payload, ev.BeliefRemoved):
                found[payload.key] = None
            else:
                break
        return found, terms

    def now(self) -> str:
        """The recorded time of the event that is about to be appended."""
        return self.next.at if self.next is not None else ""

    def monotonic(self) -> float:
        """Durations are recorded, so none is measured."""
        return 0.0

    async def sleep(self, seconds: float) -> None:
        """Nothing is waited for."""
        await asyncio.sleep(0)
