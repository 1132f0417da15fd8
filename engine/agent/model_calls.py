"""Calls of models: kept within budgets, and recorded as the answers come.

Every call of an agent passes `BudgetClient`, every one of the workspace's own `WorkspaceBudget`; one that
could break a budget is not made.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING

from engine.agent.recorder import AgentRecorder
from engine.agent.steering.ledger import Entry, Ledger
from engine.core import events as ev
from engine.core.budgets import BudgetObjection, Spent
from engine.core.campaigns import ModelCharged
from engine.core.folds.actions import BACKGROUND
from engine.models.completion import ModelClient, PieceSink, Recorder, call_event, ignore_call, ignore_piece
from engine.models.cost import Cost, cost_of, maximum_cost
from engine.models.errors import CANNOT_ANSWER, ModelError, ModelErrorKind
from engine.models.messages import ModelAnswer, Piece
from engine.models.request import ModelRequest
from engine.sandbox.output import OutputPump

if TYPE_CHECKING:
    from engine.planning.thinkers.query_rewriter import ModelRewriter


class BudgetClient:
    """A client of one agent's model that keeps its calls within the budgets that the agent draws on.

    The most that a call can take is counted against what is left, with the calls under way, before each call.

    Args:
        client: carries the requests, and knows the prices.
        ledger: counts for all agents.
        goal: gives the goal that is thought about.
        leave: waits for leave to ask, and holds it while a call is made.
        fallback: models that are asked, in order, where one cannot answer.
    """

    def __init__(
        self,
        client: ModelClient,
        ledger: Ledger,
        goal: Callable[[], str] = str,
        leave: Callable[[], AbstractAsyncContextManager[None]] = nullcontext,
        fallback: Sequence[str] = (),
    ) -> None:
        self._client, self._ledger, self._goal, self._leave = client, ledger, goal, leave
        self._fallback = fallback
        self.calls = 0
        """Calls that are under way."""
        self.quiet = asyncio.Event()
        """Set while none is."""
        self.quiet.set()
        self.spender: AgentRecorder | None = None
        """Records that a call was not made; its agent is held by that."""
        self.capabilities = client.capabilities

    @property
    def aside(self) -> ModelClient:
        """The same client for work beside the cycle: what cannot be paid for is refused, and holds nobody."""
        return _BackgroundBudgetClient(self)

    async def send(
        self, request: ModelRequest, *, sink: PieceSink = ignore_piece, record: Recorder = ignore_call
    ) -> ModelAnswer:
        """See `ModelClient`.

        Raises:
            ModelError: of kind BUDGET where the call could break the budget; the agent is held then.
        """
        return await self.pay(request, sink, record, holds=True)

    async def pay(self, request: ModelRequest, sink: PieceSink, record: Recorder, holds: bool) -> ModelAnswer:
        """Send a request, to another model where one cannot answer; each call must be paid for."""

        async def send(asked: ModelRequest) -> ModelAnswer:
            return await self._pay(asked, sink, record, holds)

        return await send_to_first(request, self._fallback, send)

    async def _pay(
        self, request: ModelRequest, sink: PieceSink, record: Recorder, holds: bool
    ) -> ModelAnswer:
        """Send a request, with leave, if it can be paid for; `holds` the agent where it cannot."""
        async with self._leave():
            most = maximum_cost(request, self.capabilities(request.model))
            entry = await self._enter(most, waits=holds)
            if isinstance(entry, BudgetObjection):
                if holds and self.spender is not None:
                    reached = ev.BudgetReached(reason=entry.reason, budget=entry.budget, of=entry.kind)
                    self.spender.record_model_event(reached)
                raise ModelError(ModelErrorKind.BUDGET, entry.reason)
            self.calls += 1
            self.quiet.clear()
            try:
                return await self._client.send(request, sink=sink, record=record)
            finally:
                self.calls -= 1
                if not self.calls:
                    self.quiet.set()
                if entry is not None:
                    self._ledger.release(entry)

    async def _enter(self, most: Cost, *, waits: bool) -> Entry | BudgetObjection | None:
        """Count the call, or say whose budget it could break.

        Where there is room but for calls under way, it waits for them: they seldom take the most they can.
        """
        if self.spender is None:
            return None
        agent = self.spender.state.agent_id
        while True:
            entry = self._ledger.enter(agent, self._goal(), most.spent)
            if isinstance(entry, Entry) or not (waits and self._ledger.can_wait(agent)):
                return entry
            await self._ledger.freed()


class _BackgroundBudgetClient:
    """The same client for work beside the cycle."""

    def __init__(self, client: BudgetClient) -> None:
        self._client = client
        self.capabilities = client.capabilities

    async def send(
        self, request: ModelRequest, *, sink: PieceSink = ignore_piece, record: Recorder = ignore_call
    ) -> ModelAnswer:
        """See `ModelClient`."""
        return await self._client.pay(request, sink, record, holds=False)


def rewriter_for(client: BudgetClient, model: str, recorder: AgentRecorder, cause: str) -> ModelRewriter:
    """Helps an agent's searches of memory by its own model, on its budget; each call is recorded."""
    from engine.planning.thinkers.query_rewriter import ModelRewriter  # late: few have one

    def heard(request: ModelRequest, outcome: ModelAnswer | ModelError) -> None:
        known, goal = client.capabilities(request.model), recorder.state.current_goal
        called = call_event(request, outcome, known, goal=goal, purpose=f"{BACKGROUND}memory")
        recorder.observe(called, "thinker", cause)

    return ModelRewriter(client.aside, model, heard)


async def send_to_first(
    request: ModelRequest, fallback: Sequence[str], send: Callable[[ModelRequest], Awaitable[ModelAnswer]]
) -> ModelAnswer:
    """The answer of the first model that can give one: the one that is asked for, then those named for it.

    Raises:
        ModelError: none could; it is the first one's.
    """
    first: ModelError | None = None
    for model in dict.fromkeys((request.model, *fallback)):
        try:
            return await send(replace(request, model=model))
        except ModelError as error:
            first = first or error
            if error.kind not in CANNOT_ANSWER:
                break
    assert first is not None
    raise first


_STREAMS = {"text": "text", "thinking": "thinking", "tool_input": "tool input"}
SAID_EVERY_S = 0.2
"""Seconds between two events of what a model says, at least: a slow one says a token in each."""
RUBRICS = f"{BACKGROUND}rubrics"
"""Purpose of a call by which a run's output is judged."""


class ModelStreamRecorder:
    """Watches the calls of one agent's model.

    Args:
        client: knows the prices; None where no call is made.
    """

    def __init__(self, client: ModelClient | None) -> None:
        self._client = client
        self._pump = OutputPump(self._emit, SAID_EVERY_S)
        self.listener: AgentRecorder | None = None
        """Records what is said."""
        self.goal = ""
        """What is being asked for now."""
        self.purpose = "plan"
        self.last: dict[str, str] = {}
        """What the call under way, or the last one, has said so far, by stream."""
        self._over = True

    def about(self, goal: str, purpose: str) -> None:
        """Say what is asked for from now on."""
        self.goal, self.purpose = goal, purpose

    def _emit(self, stream: str, text: str, skipped: int) -> None:
        if self.listener is not None:
            self.listener.record_model_event(ev.ModelSaid(stream=stream, text=text, skipped=skipped))

    def piece(self, piece: Piece) -> None:
        """Take a piece of an answer."""
        if self._over or piece.kind in ("again", "wait"):
            self.last, self._over = {}, False
        if (stream := _STREAMS.get(piece.kind)) is not None:
            self.last[stream] = self.last.get(stream, "") + piece.text
        match piece.kind:
            case "tool":
                self._pump("tool input", f"{piece.text}: ")
            case "wait":
                self._pump.flush()
                self._pump("wait", piece.text)
                self._pump.flush()
            case "again":
                self._pump("text", "\n(the answer broke off; asked again)\n")
            case _:
                self._pump(_STREAMS[piece.kind], piece.text)

    def flush(self) -> None:
        """Record what waits; the answer is over."""
        self._pump.flush()
        self._over = True

    def called(self, request: ModelRequest, outcome: ModelAnswer | ModelError, *, purpose: str = "") -> None:
        """Take the end of a call; one with a purpose of its own was not what is asked for now."""
        self.flush()
        if self.listener is not None and self._client is not None:
            known = self._client.capabilities(request.model)
            event = call_event(request, outcome, known, goal=self.goal, purpose=purpose or self.purpose)
            self.listener.record_model_event(event)


def spent_by_charge(event: ModelCharged) -> Spent:
    """What a call of Mastermind's counts for."""
    return Spent(1, event.tokens, event.usd, event.unpriced)


class WorkspaceBudget:
    """A client that makes no call which could break the workspace's budget, and has each call recorded.

    Args:
        client: carries the requests, and knows the prices.
        ledger: counts for all agents, and for these calls.
        note: takes what each call took, for the journal.
    """

    def __init__(self, client: ModelClient, ledger: Ledger, note: Callable[[ModelCharged], None]) -> None:
        self._client, self._ledger, self._note = client, ledger, note
        self.capabilities = client.capabilities

    async def send(
        self,
        request: ModelRequest,
        *,
        sink: PieceSink = ignore_piece,
        record: Recorder = ignore_call,
        cut: asyncio.Event | None = None,
    ) -> ModelAnswer:
        """See `ModelClient`.

        Raises:
            ModelError: of kind BUDGET where the call could break the workspace's budget.
        """
        most = maximum_cost(request, self.capabilities(request.model))
        entry = self._ledger.reserve_for_workspace(most.spent)
        if isinstance(entry, BudgetObjection):
            raise ModelError(ModelErrorKind.BUDGET, entry.reason)

        def note(asked: ModelRequest, outcome: ModelAnswer | ModelError) -> None:
            record(asked, outcome)
            charge = self._charge(asked, outcome)
            self._ledger.beside += spent_by_charge(charge)
            self._note(charge)

        try:
            return await self._client.send(request, sink=sink, record=note)
        finally:
            self._ledger.release(entry)

    def _charge(self, asked: ModelRequest, result: ModelAnswer | ModelError) -> ModelCharged:
        answer = result if isinstance(result, ModelAnswer) else result.answer
        charge = ModelCharged(
            model=asked.model,
            request=asked.digest,
            trouble=result.message if isinstance(result, ModelError) else "",
        )
        if answer is None:
            return charge
        cost = cost_of(answer.usage, self.capabilities(asked.model))
        taken = {"tokens": cost.tokens, "usd": float(cost.usd), "unpriced": cost.unpriced}
        return charge.model_copy(update=taken)
