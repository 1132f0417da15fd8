"""Budgets: every call of an agent's model passes here, and the one that could break a budget is not made."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Protocol

from engine.domain.budgets import Objection
from engine.domain.state import AgentState
from engine.journal import events as ev
from engine.models import (
    Cost,
    ModelAnswer,
    ModelClient,
    ModelError,
    ModelErrorKind,
    ModelRequest,
    PieceSink,
    Recorder,
    dearest,
)
from engine.models.port import unrecorded, unwatched
from engine.steering.ledger import Entry, Ledger


class Spender(Protocol):
    """Whose money it is: the agent."""

    state: AgentState

    def overheard(self, payload: ev.ModelSaid | ev.ModelCalled | ev.BudgetReached) -> None:
        """Record that a call was not made; the agent is held by it."""


class Purse:
    """A client of one agent's model that keeps its calls within the budgets that the agent draws on.

    The most that a call can take is counted against what is left, with the calls under way, before each call.

    Args:
        client: carries the requests, and knows the prices.
        ledger: counts for all agents.
        goal: gives the goal that is thought about.
        leave: waits for leave to ask, and holds it while a call is made.
    """

    def __init__(
        self,
        client: ModelClient,
        ledger: Ledger,
        goal: Callable[[], str] = str,
        leave: Callable[[], AbstractAsyncContextManager[None]] = nullcontext,
    ) -> None:
        self._client = client
        self._ledger = ledger
        self._goal = goal
        self._leave = leave
        self.calls = 0
        """Calls that are under way."""
        self.quiet = asyncio.Event()
        """Set while none is."""
        self.quiet.set()
        self.spender: Spender | None = None
        self.capabilities = client.capabilities
        self.count_tokens = client.count_tokens

    @property
    def aside(self) -> ModelClient:
        """The same client for work beside the cycle: what cannot be paid for is refused, and holds nobody."""
        return _Aside(self)

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
        """Send a request, with leave, if it can be paid for; see `send`.

        Args:
            request: what is asked.
            sink: see `ModelClient.send`.
            record: see `ModelClient.send`.
            cut: see `ModelClient.send`.
            holds: whether the agent is held where it cannot.
        """
        async with self._leave():
            return await self._paid(request, sink, record, cut, holds)

    async def _paid(
        self,
        request: ModelRequest,
        sink: PieceSink,
        record: Recorder,
        cut: asyncio.Event | None,
        holds: bool,
    ) -> ModelAnswer:
        most = dearest(request, self.capabilities(request.model))
        entry = await self._enter(most, waits=holds)
        if isinstance(entry, Objection):
            if holds and self.spender is not None:
                said = ev.BudgetReached(reason=entry.reason, budget=entry.budget, of=entry.kind)
                self.spender.overheard(said)
            raise ModelError(ModelErrorKind.BUDGET, entry.reason)
        self.calls += 1
        self.quiet.clear()
        try:
            return await self._client.send(request, sink=sink, record=record, cut=cut)
        finally:
            self.calls -= 1
            if not self.calls:
                self.quiet.set()
            if entry is not None:
                self._ledger.leave_off(entry)

    async def _enter(self, most: Cost, *, waits: bool) -> Entry | Objection | None:
        """Count the call, or say whose budget it could break.

        Where there is room but for calls under way, it waits for them: they seldom take the most they can.
        """
        if self.spender is None:
            return None
        agent = self.spender.state.agent_id
        while True:
            entry = self._ledger.enter(agent, self._goal(), most.spent)
            if isinstance(entry, Entry) or not (waits and self._ledger.crowded(agent)):
                return entry
            await self._ledger.freed()


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
