"""How a crew works, as the workspace's settings say."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CrewSettings:
    """Limits of a crew (ontology spec §1.8)."""

    model_calls: int = 4
    """Model calls of all its runs at a time; how many handoffs run at a time is not limited."""
    attended: bool = True
    """Whether somebody is there to be asked; else ties and pauses take their usual way."""
    built_ins: bool = True
    """Whether the agents that Pilothouse ships are there."""
