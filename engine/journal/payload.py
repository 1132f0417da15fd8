"""What every kind of event has in common."""

from __future__ import annotations

from typing import ClassVar

from pydantic import BaseModel, ConfigDict

from engine.journal.event import canonical


class Payload(BaseModel):
    """What an event says; each subclass is one kind."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)
    kind: ClassVar[str] = ""
    external: ClassVar[bool] = False
    """True for what came from outside the agent's own cycle; replay feeds these in."""

    def body(self) -> str:
        """The payload as canonical JSON."""
        return canonical(self.model_dump())
