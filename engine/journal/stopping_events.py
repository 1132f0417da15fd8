"""The kinds of events by which an agent is stopped in grades."""

from __future__ import annotations

from typing import ClassVar

from engine.domain.stopping import StopGrade, StopReceipt
from engine.journal.payload import Payload


class AgentHeld(Payload):
    """The agent starts nothing more; by its grade, what runs is cut off or frozen."""

    kind: ClassVar[str] = "agent.held"
    grade: StopGrade
    reason: str


class AgentThawed(Payload):
    """The agent's processes go on; the agent itself stays held."""

    kind: ClassVar[str] = "agent.thawed"


class StopObserved(Payload):
    """What was seen of a stop: what stands, and what still runs."""

    kind: ClassVar[str] = "agent.stop_observed"
    external: ClassVar[bool] = True
    receipt: StopReceipt
