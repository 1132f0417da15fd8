"""A server of MCP over standard streams, without the SDK, that does one odd thing: see `WAYS`."""

from __future__ import annotations

import json
import os
import sys

WAYS = {
    "rubbish": "prints what is no protocol between its answers",
    "blob": "prints a line without an end",
    "third": "dies at the third call",
    "flood": "floods standard error, with and without ends of lines",
    "many": "lists 500 tools",
    "names": "gives its tools odd names",
    "huge": "answers with 5 MB",
}
WAY = sys.argv[1]
assert WAY in WAYS
NAMES = ["fine", "red\x1b[31m", "x" * 200, "a b", "", "\u202eevil", "line\nbreak", "y" * 128, "fine"]


def say(ident: object, result: object) -> None:
    if WAY == "rubbish":
        sys.stdout.buffer.write(b'\xff\xfe\x00 not UTF-8\n{"jsonrpc": \n[1, 2]\n\x1b[2J\n42\n{}\n')
    print(json.dumps({"jsonrpc": "2.0", "id": ident, "result": result}), flush=True)


def names() -> list[str]:
    return [f"tool_{n}" for n in range(500)] if WAY == "many" else NAMES if WAY == "names" else ["do"]


calls = 0
for line in sys.stdin:
    said = json.loads(line)
    ident, method = said.get("id"), said.get("method")
    if ident is None:
        continue
    if method == "initialize":
        if WAY == "blob":
            while True:
                sys.stdout.write("x" * 65_536)
        version = said["params"]["protocolVersion"]
        say(
            ident,
            {"protocolVersion": version, "capabilities": {}, "serverInfo": {"name": "o", "version": "1"}},
        )
    elif method == "tools/list":
        say(ident, {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in names()]})
    elif method == "tools/call":
        calls += 1
        if WAY == "third" and calls == 3:
            os._exit(1)
        if WAY == "flood":
            for _ in range(200):
                sys.stderr.write("\x1b[31m" + "e" * 50_000)
                sys.stderr.write("\n" * 1_000)
            sys.stderr.flush()
        text = "r" * 5_000_000 if WAY == "huge" else f"done {calls}"
        say(ident, {"content": [{"type": "text", "text": text}], "isError": False})
