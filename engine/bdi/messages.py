"""Messages between agents and what they do (spec §1.9)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.bdi.terms import Term

if TYPE_CHECKING:
    from engine.bdi.agent import BdiAgent


@dataclass(frozen=True, slots=True)
class Message:
    """One message."""

    sender: str
    receiver: str
    performative: str
    content: Term
    number: int = 0
    reply_to: int = 0


def handle(agent: BdiAgent, message: Message) -> None:
    """Take up a message."""
