"""Which model thinks, where it is asked, and what it may cost.

How often a model may put right what it said, checked where it comes in.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.core.budgets import SpendingLimits
from engine.models.endpoint import AUTO, Api, Endpoint, Retries, Timeouts
from engine.value import dataclass

if TYPE_CHECKING:
    from engine.models.client import MessagesClient
    from engine.models.model_table import ModelTable


REPAIRS_KEY = "repairs"
"""Where the number stands in an agent's configuration."""
REPAIRS = 2
"""The usual number."""
REPAIRS_LIMIT = 10


class RepairsError(ValueError):
    """The number cannot be used; the message says what it must be."""


def read_repairs(meta: Mapping[str, Any], usual: int = REPAIRS) -> int:
    """How often the model of an agent may put an answer right before it counts as failed; 0 for never.

    Args:
        meta: the agent's configuration.
        usual: the number where the configuration has none, as the workspace's settings say.

    Raises:
        RepairsError: what stands there is no whole number, or out of range.
    """
    given = meta.get(REPAIRS_KEY, usual)
    if not isinstance(given, int) or isinstance(given, bool) or not 0 <= given <= REPAIRS_LIMIT:
        most = f"a whole number from 0 to {REPAIRS_LIMIT}"
        raise RepairsError(f"{REPAIRS_KEY}: it is {most}, not {str(given)[:40]!r}")
    return given


DEFAULT_MODEL = "claude-sonnet-5-5"
"""The model that is asked where none was chosen."""
TIERS = ("fast", "deep")
"""Tiers for which the environment may name a model: PILOTHOUSE_MODEL_FAST, PILOTHOUSE_MODEL_DEEP."""
NO_MODEL = (
    "there is no model: set ANTHROPIC_API_KEY, or OPENAI_BASE_URL for a local server, and start again "
    "(pilothouse help models); or see one at work in a recording: pilothouse demo"
)


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """A model that can be asked."""

    endpoint: Endpoint
    name: str = DEFAULT_MODEL
    budget: SpendingLimits = SpendingLimits()
    """Of each agent."""
    tiers: Mapping[str, str] = field(default_factory=dict)
    """Other models by how strong one is wanted: `fast`, `default`, `deep`."""
    timeouts: Timeouts = field(default_factory=Timeouts)
    retries: Retries = field(default_factory=Retries)
    repairs: int = REPAIRS
    """How often the model may put right an answer that cannot be used."""
    roles: Mapping[str, str] = field(default_factory=dict)
    """Other models by what they are asked for, one of `ROLES`."""
    fallback: tuple[str, ...] = ()
    """Models that are asked, in order, where one cannot answer."""
    table: ModelTable | None = None
    """What the operator says of models."""
    memory: Path | None = None
    """The file that keeps what endpoints said of themselves."""

    def of_tier(self, tier: str) -> str:
        """The name of the model of a tier; the one that thinks where none is named for it."""
        return self.tiers.get(tier, self.name)

    def client(self) -> MessagesClient:
        """A client of its endpoint; nothing is asked yet."""
        from engine.models.client import MessagesClient

        return MessagesClient(
            self.endpoint, timeouts=self.timeouts, retries=self.retries, table=self.table, memory=self.memory
        )

    @classmethod
    def from_environment(
        cls, environ: Mapping[str, str], *, name: str = "", url: str = "", api: Api = ""
    ) -> ModelChoice | None:
        """The model that environment and settings name; None where they name neither a key nor an endpoint.

        Raises:
            ModelError: what they name cannot be used; the message says what to do.
        """
        endpoint = Endpoint.from_environment(environ, url, api)
        if endpoint is None:
            return None
        # A server of one's own is asked what it has, and never billed as another's model.
        own = endpoint.loopback or endpoint.api == "openai" or endpoint.base_url == url
        usual = AUTO if own and not endpoint.anthropic else DEFAULT_MODEL
        chosen = name or environ.get("PILOTHOUSE_MODEL", "").strip() or usual
        tiers = {tier: environ.get(f"PILOTHOUSE_MODEL_{tier.upper()}", "").strip() for tier in TIERS}
        named_tiers = {tier: model for tier, model in tiers.items() if model}
        return cls(endpoint, chosen, tiers=named_tiers)
