"""The API of OpenAI (`/v1/chat/completions`), as llama.cpp, Ollama, vLLM and LiteLLM speak it, too.

A port over the HTTP client that the other SDK brings along: what a server answers becomes events of the
Messages API, so that all behind it is the same.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx2
from pydantic import Field

from engine.models import stream
from engine.models.endpoint import Endpoint, Timeouts
from engine.models.http import of_status, plain_http_errors, read_body
from engine.models.messages import Message, Text, ToolResult, ToolUse
from engine.models.request import ANY_TOOL, ModelRequest

_STOPS = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "function_call": "tool_use",
    "content_filter": "refusal",
}


class ChatWire:
    """Sends requests and reads answers.

    Args:
        endpoint: who is asked.
        timeouts: for the words of errors.
        http: carries the requests; whoever made it closes it.
    """

    def __init__(self, endpoint: Endpoint, timeouts: Timeouts, http: httpx2.AsyncClient) -> None:
        self._endpoint, self._timeouts, self._http = endpoint, timeouts, http

    async def open(self, request: ModelRequest, refused: frozenset[str]) -> httpx2.Response:
        """The beginning of an answer.

        Raises:
            ModelError: none came, or the server refuses the request.
        """
        headers = {"authorization": f"Bearer {self._endpoint.key}"} if self._endpoint.key else {}
        sent = self._http.build_request(
            "POST",
            f"{self._endpoint.base_url}/v1/chat/completions",
            json=chat_body(request, refused),
            headers=headers,
        )
        with plain_http_errors(self._endpoint, self._timeouts):
            response = await self._http.send(sent, stream=True)
            if response.status_code >= 300:
                try:
                    said = read_body(await response.aread())
                finally:
                    await response.aclose()
                raise of_status(response.status_code, response.headers, said, self._endpoint)
        return response

    def errors(self) -> Any:
        """Turns what reading raises into `ModelError`."""
        return plain_http_errors(self._endpoint, self._timeouts)

    def reader(self) -> ChatReader:
        """What reads one answer."""
        return ChatReader()


def chat_body(request: ModelRequest, refused: frozenset[str] = frozenset()) -> dict[str, Any]:
    """A request as this API takes it."""
    plain = request.body()  # without surrogates
    messages = [
        {"role": "system", "content": "\n\n".join(block["text"] for block in plain.get("system", ()))}
    ]
    for message in request.messages:
        messages += _turns(message)
    longest = "max_completion_tokens" if "max_tokens" in refused else "max_tokens"
    body: dict[str, Any] = {
        "model": request.model,
        "messages": messages if plain.get("system") else messages[1:],
        longest: request.max_tokens,
        "stream": True,
    }
    if "stream_options" not in refused:
        body["stream_options"] = {"include_usage": True}
    if request.tools:
        body["tools"] = [
            {
                "type": "function",
                "function": {"name": t.name, "description": t.description, "parameters": t.input_schema},
            }
            for t in request.tools
        ]
        if request.tool_choice:
            # Some servers know no named tool; where there is but one, it is the same.
            named = {"type": "function", "function": {"name": request.tool_choice}}
            one = request.tool_choice == ANY_TOOL or len(request.tools) == 1
            body["tool_choice"] = "required" if one else named
    if request.json_schema is not None:
        form = {"name": "answer", "schema": request.json_schema}
        body["response_format"] = {"type": "json_schema", "json_schema": form}
    if request.effort:
        body["reasoning_effort"] = request.effort
    if request.temperature is not None:
        body["temperature"] = request.temperature
    made: dict[str, Any] = json.loads(json.dumps(body, ensure_ascii=False).encode("utf-8", "replace"))
    return made


def _turns(message: Message) -> Iterator[dict[str, Any]]:
    """A turn of ours; results of tools are turns of their own here, before what else is said."""
    for block in message.content:
        if isinstance(block, ToolResult):
            yield {"role": "tool", "tool_call_id": block.tool_use_id, "content": block.text}
    text = "\n\n".join(block.text for block in message.content if isinstance(block, Text))
    calls = [
        {
            "id": block.id,
            "type": "function",
            "function": {"name": block.name, "arguments": json.dumps(block.input, ensure_ascii=False)},
        }
        for block in message.content
        if isinstance(block, ToolUse)
    ]
    if text or calls:
        yield {"role": message.role, "content": text or None, **({"tool_calls": calls} if calls else {})}


class _Function(stream.Wire):
    name: str | None = None
    arguments: str | None = None


class _Call(stream.Wire):
    index: int | None = Field(default=None, ge=0, le=10_000)
    id: str | None = None
    function: _Function = _Function()


class _Delta(stream.Wire):
    content: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    tool_calls: list[_Call] | None = None


class _Choice(stream.Wire):
    delta: _Delta | None = None
    finish_reason: str | None = None


class _Cached(stream.Wire):
    cached_tokens: int | None = Field(default=None, ge=0)


class _Usage(stream.Wire):
    prompt_tokens: int | None = Field(default=None, ge=0)
    completion_tokens: int | None = Field(default=None, ge=0)
    prompt_tokens_details: _Cached | None = None


class _Chunk(stream.Wire):
    id: str | None = None
    model: str | None = None
    choices: list[_Choice] = Field(default_factory=list)
    usage: _Usage | None = None
    error: stream.WireError | str | None = None


class ChatReader:
    """Turns the chunks of one answer into events of the Messages API."""

    def __init__(self) -> None:
        self._begun = False
        self._open: str | int | None = None
        """The kind of the text block under way, or the number of the call."""
        self._count = 0
        self._calls: dict[int, tuple[int, str]] = {}
        """Block and id of each call, by its number."""

    def __call__(self, event: httpx2.ServerSentEvent) -> Iterator[stream.WireEvent]:
        """The events of a chunk.

        Raises:
            ModelError: UNREADABLE where it is none; the error's own kind where the server reports one.
        """
        if event.data.strip() == "[DONE]":
            yield stream.WireEvent(type="message_stop")
            return
        chunk = stream.read_event(event, _Chunk)
        if chunk.error is not None:
            raise stream.broken_off(
                stream.WireError(message=chunk.error) if isinstance(chunk.error, str) else chunk.error
            )
        if not self._begun:
            self._begun = True
            message = stream.WireMessage(id=chunk.id or "", model=chunk.model or "")
            yield stream.WireEvent(type="message_start", message=message)
        for choice in chunk.choices[:1]:
            yield from self._delta(choice.delta or _Delta())
            if choice.finish_reason:
                yield from self._end(choice.finish_reason)
        if chunk.usage is not None:
            yield stream.WireEvent(type="message_delta", usage=_used(chunk.usage))

    def _delta(self, delta: _Delta) -> Iterator[stream.WireEvent]:
        thought = delta.reasoning_content or delta.reasoning
        if thought:
            yield from self._words("thinking", stream.WireDelta(type="thinking_delta", thinking=thought))
        if delta.content:
            yield from self._words("text", stream.WireDelta(type="text_delta", text=delta.content))
        for place, call in enumerate(delta.tool_calls or ()):
            number = place if call.index is None else call.index
            # Some servers number all calls 0 and tell them apart by their ids.
            if number in self._calls and call.id and self._calls[number][1] != call.id:
                del self._calls[number]
            if number not in self._calls:
                yield from self._start_call(number, call)
            if call.function.arguments:
                said = stream.WireDelta(type="input_json_delta", partial_json=call.function.arguments)
                yield stream.WireEvent(type="content_block_delta", index=self._calls[number][0], delta=said)

    def _words(self, kind: str, delta: stream.WireDelta) -> Iterator[stream.WireEvent]:
        if self._open != kind:
            yield from self._start(kind, {"type": kind, kind: ""})
        yield stream.WireEvent(type="content_block_delta", index=self._count - 1, delta=delta)

    def _start_call(self, number: int, call: _Call) -> Iterator[stream.WireEvent]:
        named = call.id or f"call_{self._count}"
        start = {"type": "tool_use", "id": named, "name": call.function.name or "", "input": {}}
        yield from self._start(self._count, start)
        self._calls[number] = (self._count - 1, call.id or "")

    def _start(self, kind: str | int, block: dict[str, Any]) -> Iterator[stream.WireEvent]:
        yield stream.WireEvent(type="content_block_start", index=self._count, content_block=block)
        self._open = kind
        self._count += 1

    def _end(self, reason: str) -> Iterator[stream.WireEvent]:
        for index in range(self._count):
            yield stream.WireEvent(type="content_block_stop", index=index)
        stop = _STOPS.get(reason, reason)
        # Some servers say that an answer stopped where it calls tools.
        stop = "tool_use" if self._calls and stop == "end_turn" else stop
        yield stream.WireEvent(type="message_delta", delta=stream.WireDelta(stop_reason=stop))


def _used(usage: _Usage) -> stream.WireUsage:
    cached = (usage.prompt_tokens_details or _Cached()).cached_tokens or 0
    asked = None if usage.prompt_tokens is None else max(usage.prompt_tokens - cached, 0)
    return stream.WireUsage(
        input_tokens=asked, output_tokens=usage.completion_tokens, cache_read_input_tokens=cached
    )
