"""The Agent Master Loop: one think–act cycle after another, steered by the operator.

In: commands, and the ports (thinker, tools, clock). Out: events of the agent's stream.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine import late

if TYPE_CHECKING:
    from engine.loop.agent import Agent
    from engine.loop.decide_approvals import proposed_envelope
    from engine.loop.offering import offer_of
    from engine.loop.purse import Purse
    from engine.loop.reasoning import ReasoningAgent, make_reasoner
    from engine.loop.recording import Surroundings
else:
    __getattr__ = late(
        __name__,
        {
            "agent": ("Agent",),
            "decide_approvals": ("proposed_envelope",),
            "offering": ("offer_of",),
            "purse": ("Purse",),
            "reasoning": (
                "ReasoningAgent",
                "make_reasoner",
            ),
            "recording": ("Surroundings",),
        },
    )

__all__ = [
    "Agent",
    "Purse",
    "ReasoningAgent",
    "Surroundings",
    "make_reasoner",
    "offer_of",
    "proposed_envelope",
]
