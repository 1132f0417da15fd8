"""Streams of events made by hand, for questions to the journal."""

from __future__ import annotations

from engine.core import events as ev
from engine.core.journal import Event
from engine.core.plan import PlanStep

START = "2026-01-01T00:00:00.000Z"


class Stream:
    """Appends payloads to one stream and keeps the events."""

    def __init__(self, name: str = "pilot") -> None:
        self.name = name
        self.events: list[Event] = []

    def add(self, payload: ev.Payload, *causes: str, actor: str = "agent") -> str:
        """The reference of the new event."""
        version = len(self.events) + 1
        event = Event(
            self.name, version, START, 0, actor, causes, payload.kind, payload.body(), "hash", seq=version
        )
        self.events.append(event)
        return event.ref


def step(ident: str, does: str = "write", /, *needs: str, **args: object) -> PlanStep:
    return PlanStep(
        ident, f"{does} {ident}", tool="simple_coder", command=does, args=dict(args), depends_on=needs
    )
