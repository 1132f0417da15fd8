"""The scripted server as a program: `python -m tests.messages_server SCRIPT.json [PORT]`.

A script is a JSON list of replies with the fields of `Reply`, such as
`[{"text": "Hello."}, {"status": 529, "body": "{}"}]`; after the last it begins again.
"""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import suppress
from pathlib import Path

from tests.messages_server.replies import Reply
from tests.messages_server.server import MessagesServer


async def serve(script: Path, port: int) -> None:
    replies = [Reply(**fields) for fields in json.loads(script.read_text(encoding="utf-8"))]
    server = MessagesServer(replies, repeat=True)
    await server.start(port)
    print(f"export ANTHROPIC_BASE_URL={server.url}", flush=True)
    shown = 0
    try:
        while True:
            await asyncio.sleep(0.2)
            for seen in server.requests[shown:]:
                print(f"{seen.body.get('model')}: {len(seen.said())} characters", flush=True)
            shown = len(server.requests)
    finally:
        await server.stop()


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    with suppress(KeyboardInterrupt):
        asyncio.run(serve(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) == 3 else 0))
