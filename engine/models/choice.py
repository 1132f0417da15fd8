"""Which model thinks, where it is asked, and what it may cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from engine.models.cost import Budget
from engine.models.endpoint import Endpoint, Retries, Timeouts
from engine.models.repairs import REPAIRS

if TYPE_CHECKING:
    from engine.models.client import MessagesClient

USUAL = "claude-sonnet-5-5"
"""The model that is asked where nobody chose one."""
TIERS = ("fast", "deep")
"""Tiers for which the environment may name a model: PILOTHOUSE_MODEL_FAST, PILOTHOUSE_MODEL_DEEP."""
NO_MODEL = (
    "there is no model: set ANTHROPIC_API_KEY, or ANTHROPIC_BASE_URL for a server of your own, and begin "
    "again"
)


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """A model that can be asked."""

    endpoint: Endpoint
    name: str = USUAL
    budget: Budget = field(default_factory=Budget)
    """Of each agent."""
    tiers: Mapping[str, str] = field(default_factory=dict)
    """Other models by how strong one is wanted: `fast`, `default`, `deep` (ontology spec §1.6)."""
    timeouts: Timeouts = field(default_factory=Timeouts)
    retries: Retries = field(default_factory=Retries)
    repairs: int = REPAIRS
    """How often the model may put right an answer that cannot be used."""

    def of_tier(self, tier: str) -> str:
        """The name of the model of a tier; the one that thinks where none is named for it."""
        return self.tiers.get(tier, self.name)

    def client(self) -> MessagesClient:
        """A client of its endpoint; nothing is asked yet."""
        from engine.models.client import MessagesClient

        return MessagesClient(self.endpoint, timeouts=self.timeouts, retries=self.retries)

    @classmethod
    def from_environment(cls, environ: Mapping[str, str], *, name: str = "") -> ModelChoice | None:
        """The model that the environment names; None where it names neither a key nor an endpoint.

        Raises:
            ModelError: what it names cannot be used; the message says what to do.
        """
        named = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL")
        if not any(environ.get(one, "").strip() for one in named):
            return None
        chosen = name or environ.get("PILOTHOUSE_MODEL", "").strip() or USUAL
        tiers = {tier: environ.get(f"PILOTHOUSE_MODEL_{tier.upper()}", "").strip() for tier in TIERS}
        named_tiers = {tier: model for tier, model in tiers.items() if model}
        return cls(Endpoint.from_environment(environ), chosen, tiers=named_tiers)
