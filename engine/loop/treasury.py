"""Calls of models that the workspace itself makes: Mastermind's. They count for the workspace's budget."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from engine.domain.budgets import Objection
from engine.journal.mastermind_events import ModelCharged
from engine.loop.budgets import charged
from engine.models import (
    ModelAnswer,
    ModelClient,
    ModelError,
    ModelErrorKind,
    ModelRequest,
    PieceSink,
    Recorder,
    cost_of,
    dearest,
)
from engine.models.port import unrecorded, unwatched
from engine.steering.ledger import Ledger


class Treasury:
    """A client that makes no call which could break the workspace's budget, and has each call recorded.

    Args:
        client: carries the requests, and knows the prices.
        ledger: counts for all agents, and for these calls.
        told: takes what each call took, for the journal.
    """

    def __init__(self, client: ModelClient, ledger: Ledger, told: Callable[[ModelCharged], None]) -> None:
        self._client = client
        self._ledger = ledger
        self._told = told
        self.capabilities = client.capabilities
        self.count_tokens = client.count_tokens

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
            ModelError: of kind BUDGET where the call could break the workspace's budget.
        """
        most = dearest(request, self.capabilities(request.model))
        entry = self._ledger.enter_beside(most.spent)
        if isinstance(entry, Objection):
            raise ModelError(ModelErrorKind.BUDGET, entry.reason)

        def note(asked: ModelRequest, outcome: ModelAnswer | ModelError) -> None:
            record(asked, outcome)
            said = self._charge(asked, outcome)
            self._ledger.beside += charged(said)
            self._told(said)

        try:
            return await self._client.send(request, sink=sink, record=note, cut=cut)
        finally:
            self._ledger.leave_off(entry)

    def _charge(self, asked: ModelRequest, outcome: ModelAnswer | ModelError) -> ModelCharged:
        answer = outcome if isinstance(outcome, ModelAnswer) else outcome.answer
        said = ModelCharged(
            model=asked.model,
            request=asked.digest,
            trouble=outcome.message if isinstance(outcome, ModelError) else "",
        )
        if answer is None:
            return said
        cost = cost_of(answer.usage, self.capabilities(asked.model))
        taken = {"tokens": cost.tokens, "usd": float(cost.usd), "unpriced": cost.unpriced}
        return said.model_copy(update=taken)
