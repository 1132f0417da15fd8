"""The AgentSpeak(L) mind of an agent: a reasoner that the events of the agent's stream bring forward.

In: events, and how far it may go on. Out: what it did, as the payload of `reasoner.advanced`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine import late

if TYPE_CHECKING:
    from engine.reasoner.breakpoints import check_pattern
    from engine.reasoner.config import ReasonerConfig, ReasonerError, read_config
    from engine.reasoner.generation import read_plans
    from engine.reasoner.inputs import read_goal
    from engine.reasoner.reasoner import ForgottenError, Reasoner
    from engine.reasoner.saving import FORMAT, restore, save
else:
    __getattr__ = late(
        __name__,
        {
            "breakpoints": ("check_pattern",),
            "config": (
                "ReasonerConfig",
                "ReasonerError",
                "read_config",
            ),
            "generation": ("read_plans",),
            "inputs": ("read_goal",),
            "reasoner": (
                "ForgottenError",
                "Reasoner",
            ),
            "saving": (
                "FORMAT",
                "restore",
                "save",
            ),
        },
    )

__all__ = [
    "FORMAT",
    "ForgottenError",
    "Reasoner",
    "ReasonerConfig",
    "ReasonerError",
    "check_pattern",
    "read_config",
    "read_goal",
    "read_plans",
    "restore",
    "save",
]
