"""Replies of the scripted server, and the events they are streamed as."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Then = Literal["go on", "hold", "drop", "end", "error", "garbage", "binary", "endless"]


@dataclass(frozen=True)
class Reply:
    """One reply; without faults it is a whole streamed answer."""

    text: str = ""
    thinking: str = ""
    tool: str = ""
    """Name of a tool to call."""
    tool_input: str = "{}"
    """The call's input as it is sent, right or wrong."""
    more_tools: tuple[tuple[str, str], ...] = ()
    call_id: str = "toolu"
    """What the ids of its calls begin with."""
    stop_reason: str = ""
    """`end_turn`, or `tool_use` where a tool is called, when left out."""
    stop_details: Mapping[str, Any] | None = None
    usage: Mapping[str, Any] = field(default_factory=lambda: {"input_tokens": 100, "output_tokens": 20})
    counted: bool = True
    """Whether the usage is told at all."""
    piece: int = 8
    """Characters of a delta."""
    pings: bool = False
    named: bool = True
    """Whether events have an `event:` line."""
    after: int = 1_000_000
    """Events after which `then` happens."""
    then: Then = "go on"
    """`hold` sends nothing more, `drop` breaks the connection off, `end` ends the stream in good order,
    `error` sends an error event, `garbage` an event that is no JSON, `binary` bytes that are no UTF-8,
    `endless` an event without an end."""
    error: str = "overloaded_error"
    head_delay_ms: int = 0
    first_byte_delay_ms: int = 0
    event_delay_ms: int = 0
    """Between one event and the next."""
    silent: bool = False
    """Takes the request and never answers it."""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: str | None = None
    """Sent instead of a stream."""
    model: str = ""
    """The model's name in the answer; that of the request when left out."""

    def events(self, model: str) -> Iterator[bytes]:
        """The events of the answer, encoded."""
        usage = dict(self.usage) if self.counted else {}
        # The count at the start is of the first token only, as with the real endpoint.
        start = {**usage, **({"output_tokens": 1} if usage else {})}
        message = {"id": "msg_1", "type": "message", "role": "assistant", "content": [], "usage": start}
        yield self._event("message_start", message={**message, "model": self.model or model})
        for index, (block, deltas) in enumerate(self._blocks()):
            yield self._event("content_block_start", index=index, content_block=block)
            for delta in deltas:
                if self.pings:
                    yield self._event("ping")
                yield self._event("content_block_delta", index=index, delta=delta)
            yield self._event("content_block_stop", index=index)
        stop = self.stop_reason or ("tool_use" if self.tool else "end_turn")
        delta = {"stop_reason": stop, "stop_sequence": None, "stop_details": self.stop_details}
        yield self._event("message_delta", delta=delta, **({"usage": usage} if usage else {}))
        yield self._event("message_stop")

    def _blocks(self) -> Iterator[tuple[dict[str, Any], list[dict[str, Any]]]]:
        if self.thinking:
            deltas = [{"type": "thinking_delta", "thinking": part} for part in self._parts(self.thinking)]
            signed = [{"type": "signature_delta", "signature": "c2lnbmVk"}]
            yield {"type": "thinking", "thinking": "", "signature": ""}, deltas + signed
        if self.text:
            yield (
                {"type": "text", "text": ""},
                [{"type": "text_delta", "text": part} for part in self._parts(self.text)],
            )
        tools = [(self.tool, self.tool_input)] if self.tool else []
        for number, (name, given) in enumerate([*tools, *self.more_tools], 1):
            block = {"type": "tool_use", "id": f"{self.call_id}_{number}", "name": name, "input": {}}
            yield block, [{"type": "input_json_delta", "partial_json": part} for part in self._parts(given)]

    def _parts(self, text: str) -> list[str]:
        return [text[at : at + self.piece] for at in range(0, len(text), self.piece)]

    def _event(self, kind: str, **fields: Any) -> bytes:
        name = f"event: {kind}\n" if self.named else ""
        return f"{name}data: {json.dumps({'type': kind, **fields})}\n\n".encode()


def failure(status: int, kind: str = "api_error", message: str = "scripted", **headers: str) -> Reply:
    """An error by HTTP status; header names are given with `_` for `-`."""
    body = json.dumps({"type": "error", "error": {"type": kind, "message": message}})
    return Reply(
        status=status, body=body, headers={name.replace("_", "-"): value for name, value in headers.items()}
    )


def call(tool: str, given: object, **rest: Any) -> Reply:
    """A call of a tool; a string is sent as it is, anything else as JSON."""
    return Reply(tool=tool, tool_input=given if isinstance(given, str) else json.dumps(given), **rest)


def object_call(tool: str, **fields: Any) -> Reply:
    """A call of a tool with these fields."""
    return call(tool, fields)


def plan_call(*actions: Mapping[str, Any], uncovered: tuple[Mapping[str, Any], ...] = ()) -> Reply:
    """A plan as the model at the helm is asked to give it."""
    return call("propose_plan", {"plan": list(actions), "uncovered": list(uncovered)})
