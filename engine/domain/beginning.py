"""What an agent was created with, and where it began."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from engine.domain.budgets import SpendingLimits, limits_from

CORE_STAYS = "is a core agent, which the workspace needs: it is not deleted; stop it, or drop its goals"
"""Why a core agent stays, behind its id."""


@dataclass(frozen=True, slots=True)
class AgentConfig:
    """What an agent was created with."""

    thinker: str = "procedural"
    max_consecutive_errors: int = 3
    """Failures in a row after which the operator is asked (spec master-loop §3.4)."""
    ask: bool = True
    """False when nobody will answer: manual fallback then aborts the goal."""
    meta: dict[str, Any] = field(default_factory=dict)
    """Further settings given at creation, kept verbatim."""

    @property
    def parent(self) -> str:
        """The agent that this one works for, on whose budgets it draws; empty for none."""
        return str(self.meta.get("parent", ""))

    @property
    def set_aside(self) -> SpendingLimits:
        """What was set aside for it at creation, of its parent's budget or the workspace's."""
        given = self.meta.get("budget", {})
        return limits_from(given) if isinstance(given, dict) else SpendingLimits()

    @property
    def decides(self) -> bool:
        """True when the thinker decides on one action after the other and gives no plan beforehand."""
        return self.replans and self.meta.get("style") == "decide"

    @property
    def replans(self) -> bool:
        """True when the thinker may give another plan once it is told what went wrong; recipes never do."""
        return self.thinker != "procedural"


@dataclass(frozen=True, slots=True)
class Forked:
    """Where an agent began that is a fork of another one; it works on files of its own."""

    parent: str
    """Reference of the event after which it begins, such as `pilot-1:31`."""
    snapshot: str = ""
    """The files that it began with."""
    event: str = ""

    @property
    def agent(self) -> str:
        """The agent that it is a fork of."""
        return self.parent.rpartition(":")[0]
