"""The client of the Messages API: streaming, retries, time limits, and cutting off."""

from __future__ import annotations

import asyncio
import importlib
import random
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractContextManager, aclosing
from dataclasses import replace
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any

from engine.core.ports import Clock, Randomness, SystemClock
from engine.core.text import clean_line
from engine.models.capabilities import Capabilities, capabilities_of
from engine.models.completion import PieceSink, Recorder, RetryWait, ignore_call, ignore_piece
from engine.models.endpoint import Endpoint, Retries, Timeouts, create_arguments
from engine.models.errors import RETRIED, ModelError, ModelErrorKind
from engine.models.messages import ModelAnswer, Piece
from engine.models.request import ModelRequest
from engine.models.stream import Assembly, EventReader, WireEvent, wire_event

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic


_LETTING_GO_S = 0.2
"""Longest wait for a connection to close once an answer was cut off."""


class MessagesClient:
    """Asks models at one endpoint; several calls may be under way."""

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        timeouts: Timeouts | None = None,
        retries: Retries | None = None,
        clock: Clock | None = None,
        randomness: Randomness | None = None,
    ) -> None:
        self._endpoint = endpoint
        self._timeouts = timeouts or Timeouts()
        self._retries = retries or Retries()
        self._clock: Clock = clock or SystemClock()
        # Jitter only: nothing that is recorded depends on it.
        self._random: Randomness = randomness or random.Random()
        self._sdk: AsyncAnthropic | None = None
        self._opening = asyncio.Lock()
        self._closing: set[asyncio.Task[None]] = set()
        self.rests: list[RetryWait] = []
        """Calls that wait now before they are tried again, of all agents."""

    def capabilities(self, model: str) -> Capabilities:
        """See `ModelClient`."""
        return capabilities_of(model)

    async def close(self) -> None:
        """Close all connections; whoever asks has ended their calls before."""
        for task in self._closing:
            task.cancel()
        await asyncio.gather(*self._closing, return_exceptions=True)
        if self._sdk is not None:
            sdk, self._sdk = self._sdk, None
            await sdk.close()

    async def send(
        self, request: ModelRequest, *, sink: PieceSink = ignore_piece, record: Recorder = ignore_call
    ) -> ModelAnswer:
        """See `ModelClient`; a call that is cancelled ends within 250 ms."""
        fitted, notes = self.capabilities(request.model).fit(request)
        call = _Call(fitted, notes, sink, self._clock)
        try:
            await self._until_cancelled(call)
        except ModelError as error:
            self._settle(error, call)
            record(fitted, error)
            raise
        except asyncio.CancelledError:
            record(fitted, call.answer())
            raise
        answer = call.answer()
        record(fitted, answer)
        return answer

    async def _until_cancelled(self, call: _Call) -> None:
        """Run the call to its end; a cancelled one is waited for only a little."""
        work = asyncio.create_task(self._in_time(call), name="a model's answer")
        try:
            await asyncio.wait({work})
            work.result()
        finally:
            if not work.done():
                work.cancel()
                self._closing.add(work)
                work.add_done_callback(self._let_go)
                await asyncio.wait({work}, timeout=_LETTING_GO_S)

    def _let_go(self, work: asyncio.Task[None]) -> None:
        self._closing.discard(work)
        if not work.cancelled():
            work.exception()  # It is waited for no longer; asking marks it as seen.

    def _settle(self, error: ModelError, call: _Call) -> None:
        """Complete an error with what only the call knows, and make sure that it holds no key."""
        error.message = self._endpoint.without_key(error.message)
        error.args = (error.message,)
        error.retries = call.retries
        error.request_id = error.request_id or call.request_id
        if call.assembly.begun:
            error.answer = call.answer()

    async def _in_time(self, call: _Call) -> None:
        limit = self._timeouts.total_s
        try:
            async with asyncio.timeout(limit):
                await self._attempts(call)
        except TimeoutError:
            before = f" (the attempt before: {call.trouble})" if call.trouble else ""
            raise ModelError(
                ModelErrorKind.TIMEOUT,
                f"no whole answer within {limit:g} s, retries included{before}: ask for less at once",
            ) from None

    async def _attempts(self, call: _Call) -> None:
        for retry in count(1):
            try:
                await self._attempt(call)
            except ModelError as error:
                wait = self._wait_before(retry, error)
                if wait is None:
                    raise
                call.trouble = error.message
                rest = RetryWait(error.kind.value, wait, self._clock.now())
                self.rests.append(rest)
                try:
                    await self._clock.sleep(wait)
                finally:
                    self.rests.remove(rest)
                call.retries = retry
            else:
                return

    def _wait_before(self, retry: int, error: ModelError) -> float | None:
        """Seconds to wait before a retry; None when there is to be none."""
        rules = self._retries
        if error.kind not in RETRIED or retry >= rules.attempts:
            return None
        if error.retry_after_s is None:
            return self._random.uniform(0.0, rules.ceiling(retry))
        if error.retry_after_s > rules.patience_s:
            return None
        # What was asked for is waited for, and a little more so that not all come back in one moment.
        return error.retry_after_s + self._random.uniform(0.0, rules.base_s)

    async def _attempt(self, call: _Call) -> None:
        sdk, plain_errors = await self._connected()
        call.begin()
        first = asyncio.get_running_loop().time() + self._timeouts.first_byte_s
        try:
            with plain_errors():
                async with asyncio.timeout_at(first):
                    stream = await sdk.messages.create(**create_arguments(call.request), stream=True)
        except TimeoutError:
            raise self._silent() from None
        try:
            with plain_errors():
                call.request_id = clean_line(stream.response.headers.get("request-id", ""), limit=100)
                await self._read(call, stream.response, first)
        except ModelError:
            # What is whole stays whole, whatever the connection does afterwards.
            if not call.assembly.ended:
                raise
        finally:
            await stream.close()
        if not call.assembly.ended:
            raise ModelError(
                ModelErrorKind.NETWORK,
                f"the stream of {self._endpoint.host} ended before the answer did: try again",
            )

    async def _connected(self) -> tuple[AsyncAnthropic, Callable[[], AbstractContextManager[None]]]:
        """The SDK's client, and what turns its errors into ours."""
        async with self._opening:
            module = await asyncio.to_thread(importlib.import_module, "engine.models.sdk")
            if self._sdk is None:
                self._sdk = module.open_sdk(self._endpoint, self._timeouts)
            return self._sdk, partial(module.plain_errors, self._endpoint, self._timeouts)

    async def _read(self, call: _Call, response: Any, first: float) -> None:
        kind = response.headers.get("content-type", "").lower()
        if not kind.startswith("text/event-stream"):
            raise ModelError(
                ModelErrorKind.UNREADABLE,
                f"{self._endpoint.host} answered {clean_line(kind, limit=80) or 'without a type'} "
                "and not with a stream: check that the address is one of the Messages API",
            )
        reader = EventReader()
        async with aclosing(self._bytes(response, first)) as pieces:
            async for piece in pieces:
                try:
                    events = reader.feed(piece)
                except ValueError as error:
                    raise ModelError(
                        ModelErrorKind.UNREADABLE,
                        f"the stream of {self._endpoint.host} cannot be read: {error}: try again",
                    ) from None
                for event in events:
                    if event.data and call.take(wire_event(event)):
                        return

    async def _bytes(self, response: Any, first: float) -> AsyncGenerator[bytes, None]:
        """The body of a response, each piece within its time."""
        async with aclosing(response.aiter_bytes()) as body:
            limit = first
            while True:
                try:
                    async with asyncio.timeout_at(limit):
                        piece = await anext(body, None)
                except TimeoutError:
                    raise self._silent(begun=limit != first) from None
                if piece is None:
                    return
                yield piece
                limit = asyncio.get_running_loop().time() + self._timeouts.between_s

    def _silent(self, *, begun: bool = False) -> ModelError:
        between, first = self._timeouts.between_s, self._timeouts.first_byte_s
        what = f"nothing between two pieces for {between:g} s" if begun else f"nothing within {first:g} s"
        return ModelError(
            ModelErrorKind.TIMEOUT, f"{self._endpoint.host} sent {what}: a slow model may need a longer limit"
        )


class _Call:
    """One call: what was sent, what has come, and when."""

    def __init__(self, request: ModelRequest, notes: tuple[str, ...], sink: PieceSink, clock: Clock) -> None:
        self.request = request
        self.assembly = Assembly(request)
        self.retries = 0
        self.request_id = ""
        self.trouble = ""
        """What went wrong with the attempt before."""
        self._notes = notes
        self._sink = sink
        self._clock = clock
        self._began = clock.monotonic()
        self._first: float | None = None
        self._shown = False

    def begin(self) -> None:
        """Forget what an earlier attempt brought."""
        self.assembly = Assembly(self.request)
        self.request_id = ""
        self._began = self._clock.monotonic()
        self._first = None
        if self._shown:
            self._shown = False
            self._sink(Piece("again"))

    def take(self, event: WireEvent) -> bool:
        """Add an event and tell the watcher; True when it is the last."""
        piece = self.assembly.take(event)
        if piece is not None:
            if self._first is None:
                self._first = self._clock.monotonic()
            self._shown = True
            self._sink(piece)
        return event.type == "message_stop"

    def answer(self) -> ModelAnswer:
        """The answer as it is now, partial unless the model has ended it."""
        first = None if self._first is None else round((self._first - self._began) * 1000)
        return replace(
            self.assembly.answer(partial=not self.assembly.ended),
            request_id=self.request_id,
            latency_ms=round((self._clock.monotonic() - self._began) * 1000),
            first_piece_ms=first,
            retries=self.retries,
            notes=self._notes,
        )
