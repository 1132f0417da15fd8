"""A scripted server that speaks the API of Gemini, on loopback and over real sockets.

It takes the replies of the scripted Messages server, and sends each in one chunk.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

from tests.messages_server.replies import Reply
from tests.messages_server.server import MessagesServer, _send


class GeminiServer(MessagesServer):
    """Answers `generateContent` and `streamGenerateContent` of any model by a script."""

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen = await self._read(reader)
        method = seen.path.partition("?")[0].rpartition(":")[2]
        if method == "countTokens":
            _send(writer, 200, {}, json.dumps({"totalTokens": 100}))
        elif method in ("generateContent", "streamGenerateContent"):
            self.requests.append(seen)
            answer = json.dumps(chunk(self._next(seen)))
            if method == "generateContent":
                _send(writer, 200, {}, answer)
            else:
                _send(writer, 200, {"content-type": "text/event-stream"}, f"data: {answer}\r\n\r\n")
        else:
            _send(writer, 404, {}, json.dumps({"error": {"code": 404, "message": seen.path}}))
        await writer.drain()


def chunk(reply: Reply) -> dict[str, Any]:
    """A whole answer as one chunk."""
    parts: list[dict[str, Any]] = [{"text": reply.thinking, "thought": True}] if reply.thinking else []
    parts += [{"text": reply.text}] if reply.text else []
    calls = [(reply.tool, reply.tool_input)] if reply.tool else []
    for name, given in (*calls, *reply.more_tools):
        parts.append({"functionCall": {"name": name, "args": json.loads(given)}})
    content = {"role": "model", "parts": parts}
    counts = {"promptTokenCount": reply.usage["input_tokens"]}
    counts["candidatesTokenCount"] = reply.usage["output_tokens"]
    candidates = [{"index": 0, "content": content, "finishReason": "STOP"}]
    return {"candidates": candidates, "usageMetadata": {**counts, "totalTokenCount": sum(counts.values())}}
