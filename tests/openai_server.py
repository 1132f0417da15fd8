"""A scripted server that speaks the API of OpenAI, on loopback and over real sockets.

It takes the replies of the scripted Messages server and streams them as chunks.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from tests.messages_server.replies import Reply
from tests.messages_server.server import MessagesServer, Script, Seen, _chunk, _head, _send

_STOPS = {"end_turn": "stop", "max_tokens": "length", "tool_use": "tool_calls", "refusal": "content_filter"}


class OpenAiServer(MessagesServer):
    """Answers `/v1/chat/completions` by a script, and other paths by fixed answers."""

    path = "/v1/chat/completions"

    def __init__(
        self, script: Script = (), *, repeat: bool = False, pages: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(script, repeat=repeat)
        self.pages = pages or {}
        """What else can be read, by path."""
        self.read: list[str] = []
        """Paths that were asked for, those of answers left out."""

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen = await self._read(reader)
        path = seen.path
        if path == self.path:
            self.requests.append(seen)
            reply = self._next(seen)
            if reply.body is not None or reply.silent:
                await self._answer(reply, seen, reader, writer)
            else:
                await self._stream(reply, seen, reader, writer)
        else:
            self.read.append(path)
            known = path in self.pages
            _send(
                writer, 200 if known else 404, {}, json.dumps(self.pages.get(path, {"error": "no such path"}))
            )
        await writer.drain()

    async def _stream(
        self, reply: Reply, seen: Seen, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        writer.write(
            _head(reply.status, {"content-type": "text/event-stream", "transfer-encoding": "chunked"})
        )
        with suppress(ConnectionError):
            for number, data in enumerate(chunks(reply, seen)):
                if number == reply.after and not await self._fault(reply, reader, writer):
                    return
                writer.write(_chunk(f"data: {data}\n\n".encode()))
                if reply.event_delay_ms:
                    await writer.drain()
                    await asyncio.sleep(reply.event_delay_ms / 1000)
            writer.write(b"0\r\n\r\n")


def chunks(reply: Reply, seen: Seen) -> Iterator[str]:
    """The chunks of an answer, as text."""

    def chunk(delta: Mapping[str, Any] | None = None, reason: str | None = None, **more: Any) -> str:
        choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": reason}]
        return json.dumps({"id": "chatcmpl-1", "model": seen.body.get("model"), "choices": choices, **more})

    def parts(text: str) -> list[str]:
        return [text[at : at + reply.piece] for at in range(0, len(text), reply.piece)]

    yield chunk({"role": "assistant", "content": None})
    for part in parts(reply.thinking):
        yield chunk({"reasoning_content": part})
    for part in parts(reply.text):
        yield chunk({"content": part})
    tools = [(reply.tool, reply.tool_input)] if reply.tool else []
    for number, (name, given) in enumerate([*tools, *reply.more_tools]):
        call = {"index": number, "id": f"call_{number}", "type": "function"}
        yield chunk({"tool_calls": [{**call, "function": {"name": name, "arguments": ""}}]})
        for part in parts(given):
            yield chunk({"tool_calls": [{"index": number, "function": {"arguments": part}}]})
    stop = reply.stop_reason or ("tool_use" if reply.tool else "end_turn")
    yield chunk({}, _STOPS.get(stop, stop))
    if reply.counted and (seen.body.get("stream_options") or {}).get("include_usage"):
        counts = {
            "prompt_tokens": reply.usage["input_tokens"],
            "completion_tokens": reply.usage["output_tokens"],
        }
        yield chunk(None, usage={**counts, "prompt_tokens_details": {"cached_tokens": 10}})
    yield "[DONE]"
