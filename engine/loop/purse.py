"""Budgets: whether the next call of a model may be made."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import TYPE_CHECKING, TypeAlias

from engine import models
from engine.domain.state import AgentState
from engine.domain.thinking import PlanRequest

if TYPE_CHECKING:
    from engine.thinkers import ClaudeThinker

Purse: TypeAlias = Callable[[AgentState, PlanRequest], str]
"""Why a call may not be made, in a sentence with what to do; empty when it may."""


def no_limit(_state: AgentState, _request: PlanRequest) -> str:
    """Every call may be made."""
    return ""


class ModelPurse:
    """Keeps an agent's calls within a budget.

    Args:
        client: knows the prices.
        thinker: who would ask.
        budget: of the agent, over all its sessions.
    """

    def __init__(self, client: models.ModelClient, thinker: ClaudeThinker, budget: models.Budget) -> None:
        self._client = client
        self._thinker = thinker
        self._budget = budget

    def __call__(self, state: AgentState, request: PlanRequest) -> str:
        """The objection to the call that a plan needs, estimated without asking anybody."""
        if self._budget == models.Budget():
            return ""
        asked = self._thinker.request(request)
        prompt = models.TokenCount(sum(tokens for _, tokens in asked.shares()), estimated=True)
        spent = models.Cost(
            Decimal(str(state.cost_usd)), state.tokens, state.model_calls, state.unpriced_calls
        )
        following = models.worst_case(prompt, asked.max_tokens, self._client.capabilities(asked.model))
        return self._budget.objection(spent, following)
