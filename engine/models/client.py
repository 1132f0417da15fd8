"""The client of an endpoint: streaming, retries, time limits, cutting off, and what the endpoint takes."""

from __future__ import annotations

import asyncio
import importlib
import random
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import AbstractContextManager, aclosing
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from engine.core.ports import Clock, Randomness, SystemClock
from engine.core.text import clean_line
from engine.models.completion import PieceSink, Recorder, RetryWait, ignore_call, ignore_piece
from engine.models.endpoint import AUTO, Api, Endpoint, Retries, Timeouts
from engine.models.errors import ATTEMPTS, RETRIED, ModelError, ModelErrorKind
from engine.models.learned import PARTS, Learned, ask_server, load, named_part, save, without
from engine.models.messages import ModelAnswer, Piece, StopReason
from engine.models.model_table import Capabilities, ModelTable
from engine.models.request import ModelRequest
from engine.models.stream import Assembly, Runaway, WireEvent

if TYPE_CHECKING:
    import httpx2

_LETTING_GO_S = 0.2
"""Longest wait for a connection to close once an answer was cut off."""


WORDS_FOR_TOOLS = 2


_ReadEvent: TypeAlias = "Callable[[httpx2.ServerSentEvent], Iterable[WireEvent]]"


class _Wire(Protocol):
    """How an endpoint is spoken to."""

    async def open(self, request: ModelRequest, refused: frozenset[str], /) -> httpx2.Response:
        """The beginning of an answer."""

    def errors(self) -> AbstractContextManager[None]:
        """Turns what reading raises into `ModelError`."""

    def reader(self) -> _ReadEvent:
        """What reads one answer."""


_WIRES = {"messages": ("engine.models.sdk", "MessagesWire"), "openai": ("engine.models.chat", "ChatWire")}
"""Where they are; one takes a second to import."""


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
        table: ModelTable | None = None,
        memory: Path | None = None,
    ) -> None:
        self._endpoint = endpoint
        self._table = table or ModelTable()
        self._memory = memory
        self.learned = Learned.model_construct(server="", api="", models={}, refused={})
        """What the endpoint said of itself, and refused."""
        self._asked: set[str] = set()
        self._words: dict[str, int] = {}
        """How often in a row a model answered in words where it was to call a tool."""
        self._timeouts = timeouts or Timeouts()
        self._retries = retries or Retries()
        self._clock: Clock = clock or SystemClock()
        # Jitter only: nothing that is recorded depends on it.
        self._random: Randomness = randomness or random.Random()
        self._http: httpx2.AsyncClient | None = None
        self._wires: dict[str, _Wire] = {}
        self._opening, self._learning = asyncio.Lock(), asyncio.Lock()
        self._closing: set[asyncio.Task[None]] = set()
        self.rests: list[RetryWait] = []
        """Calls that wait now before they are tried again, of all agents."""

    def capabilities(self, model: str) -> Capabilities:
        """See `ModelClient`."""
        name = self.named(model)
        known, refused = self._table.capabilities(name, self.learned.models.get(name)), self._refused(name)
        if not refused:
            return known
        return replace(
            known,
            tools=known.tools and "tools" not in refused,
            json_schema=known.json_schema and "json_schema" not in refused,
            refuses=known.refuses | (refused & {"temperature", "tool_choice"}),
        )

    def named(self, model: str) -> str:
        """The model that is meant: of `auto`, the first that the endpoint said it has."""
        return next(iter(self.learned.models), AUTO) if model == AUTO else model

    def _refused(self, model: str) -> frozenset[str]:
        return frozenset(self.learned.refused.get(model, ()))

    @property
    def local(self) -> bool:
        """Whether the endpoint is on this machine."""
        return self._endpoint.loopback

    async def learn(self, model: str, *, afresh: bool = False) -> None:
        """Ask the endpoint what no table says of a model; once a session, and in little time.

        Args:
            model: the model that is needed.
            afresh: forget what was learnt before.
        """
        async with self._learning:
            if afresh:
                self._asked.clear()
                self.learned = Learned()
            if model in self._asked or self._endpoint.anthropic:
                return
            if not self._asked and not afresh:
                kept = await asyncio.to_thread(load, self._memory, self._endpoint.base_url)
                kept.refused |= self.learned.refused
                self.learned = kept
            self._asked.add(model)
            if model != AUTO and self._table.capabilities(model).known and not afresh:
                return
            said = await ask_server(await self._connected(), self._endpoint, "" if model == AUTO else model)
            if said is None:
                self._asked.discard(model)
                return
            said.refused, said.api = self.learned.refused, said.api or self.learned.api
            rows = {} if model == AUTO else self.learned.models
            said.models = said.models | {name: row for name, row in rows.items() if name not in said.models}
            self.learned = said
            await self.refuse(model)

    async def close(self) -> None:
        """Close all connections; whoever asks has ended their calls before."""
        for task in self._closing:
            task.cancel()
        await asyncio.gather(*self._closing, return_exceptions=True)
        if self._http is not None:
            http, self._http = self._http, None
            self._wires.clear()
            await http.aclose()

    async def send(
        self, request: ModelRequest, *, sink: PieceSink = ignore_piece, record: Recorder = ignore_call
    ) -> ModelAnswer:
        """See `ModelClient`; a call that is cancelled ends within 250 ms."""
        await self.learn(request.model)
        fitted, notes = self.capabilities(request.model).fit(request)
        fitted = replace(fitted, model=self.named(request.model))
        for part in self._refused(fitted.model):
            fitted = without(fitted, part)
        call = _Call(fitted, notes, sink, self._clock, request)
        try:
            await self._until_cancelled(call)
        except ModelError as error:
            self._settle(error, call)
            record(call.request, error)
            raise
        except asyncio.CancelledError:
            record(call.request, call.answer())
            raise
        answer = call.answer()
        record(call.request, answer)
        await self._look_at_tools(request, answer)
        return answer

    async def _look_at_tools(self, request: ModelRequest, answer: ModelAnswer) -> None:
        """Leave tools out for a model that nobody described and that twice in a row called none it had to."""
        name = self.named(request.model)
        if not request.tool_choice or self.capabilities(name).known:
            return
        if answer.tool_uses or answer.stop_reason is not StopReason.END_TURN:
            self._words.pop(name, None)
            return
        self._words[name] = self._words.get(name, 0) + 1
        if self._words[name] == WORDS_FOR_TOOLS:
            await self.refuse(name, "tools")

    async def refuse(self, model: str, *parts: str) -> None:
        """Leave parts of requests out for a model from now on, and keep all that was learnt."""
        if parts:
            kept = self.learned.refused.get(model, [])
            self.learned.refused[model] = list(dict.fromkeys((*kept, *parts)))
        await asyncio.to_thread(save, self._memory, self._endpoint.base_url, self.learned)

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
                await self._fitting(call)
            except ModelError as error:
                wait = self._wait_before(retry, error)
                if wait is None:
                    raise
                call.trouble = error.message
                rest = RetryWait(error.kind.value, wait, self._clock.now(), asyncio.Event())
                self.rests.append(rest)
                call.waits(rest)
                try:
                    await self._rest(rest)
                finally:
                    self.rests.remove(rest)
                call.retries = retry
            else:
                return

    async def _rest(self, rest: RetryWait) -> None:
        """Wait before a retry, or until the operator ends the wait."""
        waits = [
            asyncio.ensure_future(self._clock.sleep(rest.seconds)),
            asyncio.create_task(rest.over.wait()),
        ]
        try:
            done, _ = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            for wait in done:
                wait.result()
        finally:
            for wait in waits:
                wait.cancel()
            await asyncio.gather(*waits, return_exceptions=True)

    async def _fitting(self, call: _Call) -> None:
        """One attempt; what the endpoint refuses of the request is left out, and is from then on."""
        asked, spoken, refusal = call.request, self._api, None
        named: list[str] = []
        part = ""
        while True:
            try:
                await self._attempt(call, spoken)
                break
            except ModelError as error:
                refusal, first = refusal or error, refusal is None
                if first and error.kind is ModelErrorKind.NOT_FOUND and self._may_speak(spoken):
                    # No such address, or no such model: the other kind of address is tried.
                    spoken = "openai" if spoken == "messages" else "messages"
                    continue
                part, by_name = self._next_part(call, error, spoken)
                if not part:
                    call.request, call.left_out = asked, frozenset()
                    raise refusal from None
                named += [part] * by_name
                call.leave_out(part)
        # Of parts that were left out by trial, the last one was it.
        if refused := dict.fromkeys([*named, *([part] if part else [])]):
            said = ", ".join(refused)
            call.notes += (f"{said}: left out from now on, as {self._endpoint.host} refused the request",)
        if refused or spoken != self._api:
            self.learned.api = spoken
            await self.refuse(asked.model, *refused)

    @property
    def _api(self) -> Api:
        """What the endpoint speaks, as far as that is known."""
        if self._endpoint.anthropic:
            return "messages"
        return self._endpoint.api or self.learned.api or "messages"

    def _may_speak(self, spoken: str) -> bool:
        """Whether it is not known yet that the endpoint speaks this."""
        return not (self._endpoint.api or self._endpoint.anthropic or self.learned.api == spoken)

    def _next_part(self, call: _Call, error: ModelError, spoken: str) -> tuple[str, bool]:
        """What of a refused request is left out next, and whether the error names it; empty where nothing."""
        if error.status is None or error.kind not in (ModelErrorKind.BAD_REQUEST, ModelErrorKind.SERVER):
            return "", False
        refused = self._refused(call.request.model) | call.left_out
        named = named_part(error.message, call.request, refused)
        if named or self._endpoint.anthropic or error.kind is not ModelErrorKind.BAD_REQUEST:
            return named, bool(named)
        only = () if spoken == "openai" else ("stream_options",)
        for part in PARTS:
            if part in refused or part in ("tools", "max_tokens", *only):
                continue
            if without(call.request, part) is not call.request:
                return part, False
        return "", False

    def _wait_before(self, retry: int, error: ModelError) -> float | None:
        """Seconds to wait before a retry; None when there is to be none."""
        rules = self._retries
        if error.kind not in RETRIED or retry >= min(rules.attempts, ATTEMPTS.get(error.kind, retry + 1)):
            return None
        if error.retry_after_s is None:
            return self._random.uniform(0.0, rules.ceiling(retry))
        if error.retry_after_s > rules.patience_s:
            return None
        # What was asked for is waited for, and a little more so that not all come back in one moment.
        return error.retry_after_s + self._random.uniform(0.0, rules.base_s)

    async def _attempt(self, call: _Call, spoken: str) -> None:
        wire = await self._wire(spoken)
        call.begin()
        first = asyncio.get_running_loop().time() + self._timeouts.first_byte_s
        try:
            async with asyncio.timeout_at(first):
                response = await wire.open(call.request, self._refused(call.request.model) | call.left_out)
        except TimeoutError:
            raise self._silent() from None
        try:
            with wire.errors():
                call.request_id = clean_line(response.headers.get("request-id", ""), limit=100)
                await self._read(call, response, first, wire.reader())
        except ModelError:
            # What is whole stays whole, whatever the connection does afterwards.
            if not call.assembly.ended:
                raise
        finally:
            await response.aclose()
        if not call.assembly.ended:
            raise ModelError(
                ModelErrorKind.NETWORK,
                f"the stream of {self._endpoint.host} ended before the answer did: try again",
            )

    async def _connected(self) -> httpx2.AsyncClient:
        async with self._opening:
            module = await asyncio.to_thread(importlib.import_module, "engine.models.http")
            if self._http is None:
                self._http = module.open_http(self._endpoint, self._timeouts)
            return self._http

    async def _wire(self, spoken: str) -> _Wire:
        http, (module, name) = await self._connected(), _WIRES[spoken]
        if spoken not in self._wires:
            made = getattr(await asyncio.to_thread(importlib.import_module, module), name)
            self._wires[spoken] = made(self._endpoint, self._timeouts, http)
        return self._wires[spoken]

    async def _read(self, call: _Call, response: Any, first: float, read: _ReadEvent) -> None:
        kind = response.headers.get("content-type", "").lower()
        if not kind.startswith("text/event-stream"):
            raise ModelError(
                ModelErrorKind.UNREADABLE,
                f"{self._endpoint.host} answered {clean_line(kind, limit=80) or 'without a type'} "
                "and not with a stream: check that the address is one of a model",
            )
        from engine.models.http import server_events  # loaded by now, with the client

        async with (
            aclosing(self._bytes(response, first)) as pieces,
            aclosing(server_events(pieces, self._endpoint)) as events,
        ):
            async for event in events:
                if event.data and any(call.take(each) for each in read(event)):
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

    def __init__(
        self,
        request: ModelRequest,
        notes: tuple[str, ...],
        sink: PieceSink,
        clock: Clock,
        asked: ModelRequest,
    ) -> None:
        self.request = request
        self._asked = asked
        self.left_out: frozenset[str] = frozenset()
        """What the endpoint refused of the request."""
        self._watch = Runaway(asked)
        self.assembly = Assembly(request)
        self.retries = 0
        self.request_id = ""
        self.trouble = ""
        """What went wrong with the attempt before."""
        self.notes = notes
        self._sink = sink
        self._clock = clock
        self._began = clock.monotonic()
        self._first: float | None = None
        self._shown = False

    def begin(self) -> None:
        """Forget what an earlier attempt brought."""
        self.assembly = Assembly(self.request)
        self._watch = Runaway(self._asked)
        self.request_id = ""
        self._began = self._clock.monotonic()
        self._first = None
        if self._shown:
            self._shown = False
            self._sink(Piece("again"))

    def waits(self, rest: RetryWait) -> None:
        """Tell the watcher that the call is made again."""
        self._sink(Piece("wait", f"{rest.why} {rest.seconds:.1f}"))

    def leave_out(self, part: str) -> None:
        """Ask without a part of the request."""
        self.request = without(self.request, part)
        self.left_out |= {part}

    def take(self, event: WireEvent) -> bool:
        """Add an event and tell the watcher; True when it is the last."""
        piece = self.assembly.take(event)
        if piece is not None:
            if self._first is None:
                self._first = self._clock.monotonic()
            self._shown = True
            self._sink(piece)
            if (reason := self._watch.take(piece)) is not None:
                self.assembly.cut(reason)
                return True
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
            notes=self.notes,
        )
