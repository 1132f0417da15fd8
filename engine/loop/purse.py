"""Budgets: every call of an agent's model passes here, and the one that could break a budget is not made."""

from __future__ import annotations

import asyncio
from decimal import Decimal
from typing import Protocol

from engine.domain.state import AgentState
from engine.journal import events as ev
from engine.models import (
    Budget,
    Capabilities,
    Cost,
    ModelAnswer,
    ModelClient,
    ModelError,
    ModelErrorKind,
    ModelRequest,
    PieceSink,
    Recorder,
    TokenCount,
    worst_case,
)
from engine.models.port import unrecorded, unwatched


class Spender(Protocol):
    """Whose money it is: the agent."""

    state: AgentState

    def overheard(self, payload: ev.ModelSaid | ev.ModelCalled | ev.BudgetReached) -> None:
        """Record that a call was not made; the agent is held by it."""


class Purse:
    """A client of one agent's model that keeps its calls within the agent's budget.

    The most that a call can take is counted against what is left, with the calls under way, before each call.

    Args:
        client: carries the requests, and knows the prices.
        usual: the budget where the operator set none for this agent.
    """

    def __init__(self, client: ModelClient, usual: Budget) -> None:
        self._client = client
        self._usual = usual
        self._under_way: list[Cost] = []
        self.quiet = asyncio.Event()
        """Set while no call is under way."""
        self.quiet.set()
        self.spender: Spender | None = None

    @property
    def calls(self) -> int:
        """Calls that are under way."""
        return len(self._under_way)

    @property
    def aside(self) -> ModelClient:
        """The same client for work beside the cycle: what cannot be paid for is refused, and holds nobody."""
        return _Aside(self)

    def capabilities(self, model: str) -> Capabilities:
        """See `ModelClient`."""
        return self._client.capabilities(model)

    async def count_tokens(self, request: ModelRequest) -> TokenCount:
        """See `ModelClient`."""
        return await self._client.count_tokens(request)

    async def send(
        self,
        request: ModelRequest,
        *,
        sink: PieceSink = unwatched,
        record: Recorder = unrecorded,
        cut: asyncio.Event | None = None,
    ) -> ModelAnswer:
        """See `ModelClient`.

        Raises:
            ModelError: of kind BUDGET where the call could break the budget; the agent is held then.
        """
        return await self.pay(request, sink, record, cut, holds=True)

    async def pay(
        self,
        request: ModelRequest,
        sink: PieceSink,
        record: Recorder,
        cut: asyncio.Event | None,
        *,
        holds: bool,
    ) -> ModelAnswer:
        """Send a request if it can be paid for; see `send`.

        Args:
            request: what is asked.
            sink: see `ModelClient.send`.
            record: see `ModelClient.send`.
            cut: see `ModelClient.send`.
            holds: whether the agent is held where it cannot.
        """
        prompt = TokenCount(sum(tokens for _, tokens in request.shares()), estimated=True)
        most = worst_case(prompt, request.max_tokens, self.capabilities(request.model))
        if self.spender is not None and (why := self._objection(self.spender.state, most)):
            if holds:
                self.spender.overheard(ev.BudgetReached(reason=why))
            raise ModelError(ModelErrorKind.BUDGET, why)
        self._under_way.append(most)
        self.quiet.clear()
        try:
            return await self._client.send(request, sink=sink, record=record, cut=cut)
        finally:
            self._under_way.remove(most)
            if not self._under_way:
                self.quiet.set()

    def _objection(self, state: AgentState, most: Cost) -> str:
        limits = state.budget
        budget = self._usual
        if limits is not None:
            usd = None if limits.usd is None else Decimal(str(limits.usd))
            budget = Budget(usd, limits.tokens, limits.calls)
        spent = Cost(Decimal(str(state.cost_usd)), state.tokens, state.model_calls, state.unpriced_calls)
        return budget.objection(sum(self._under_way, spent), most)


class _Aside:
    """A purse for work beside the cycle."""

    def __init__(self, purse: Purse) -> None:
        self._purse = purse
        self.capabilities = purse.capabilities
        self.count_tokens = purse.count_tokens

    async def send(
        self,
        request: ModelRequest,
        *,
        sink: PieceSink = unwatched,
        record: Recorder = unrecorded,
        cut: asyncio.Event | None = None,
    ) -> ModelAnswer:
        """See `ModelClient`."""
        return await self._purse.pay(request, sink, record, cut, holds=False)
