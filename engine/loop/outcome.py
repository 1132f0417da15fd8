"""What a command leads to: events, or a refusal in words."""

from __future__ import annotations

from dataclasses import dataclass

from engine.journal import events as ev


class RefusedError(Exception):
    """The command cannot be carried out now; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a command leads to."""

    message: str
    events: tuple[ev.Payload, ...] = ()
