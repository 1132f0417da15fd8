"""A server of MCP over standard streams without the SDK, which starts at once and misbehaves as it is told.

Arguments: `slow` (never answers the handshake), `mute` (nothing at all), `noisy` (prints what is no
protocol), `deaf` (does not end when its input is closed, nor by SIGTERM, and has a child of its own).
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

WAYS = set(sys.argv[1:])
TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
PAGES = {
    None: (["echo", "fail"], "2"),
    "2": (["crash", "error", "slow", "long", "env", "pid", "odd.name/x"], None),
}


def say(message: dict[str, object]) -> None:
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def note(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def tool(name: str) -> dict[str, object]:
    reads = name in ("echo", "env", "pid")
    return {
        "name": name,
        "description": f"{name}\x1b[31m it",
        "inputSchema": TEXT if name == "echo" else {"type": "object"},
        "annotations": {"readOnlyHint": reads},
    }


def call(ident: object, name: str, args: dict[str, str]) -> None:
    texts = {
        "echo": args.get("text", ""),
        "long": "x" * 60_000,
        "env": json.dumps(dict(os.environ)),
        "pid": str(os.getpid()),
        "odd.name/x": "odd",
    }
    if name == "crash":
        note("going down")
        time.sleep(0.1)  # so that it is heard before the end is
        os._exit(3)
    if name == "slow":
        note("asked")
        return
    if name == "error":
        say({"id": ident, "error": {"code": -32603, "message": "no luck"}})
    else:
        text = "it does not work" if name == "fail" else texts[name]
        say({"id": ident, "result": {"content": [{"type": "text", "text": text}], "isError": name == "fail"}})


def main() -> None:
    if "deaf" in WAYS:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        child = subprocess.Popen(["sleep", "600"], start_new_session=True, stdout=subprocess.DEVNULL)
        note(f"child {child.pid}")
    if "noisy" in WAYS:
        print("Welcome to the server!", flush=True)
    for line in sys.stdin:
        said = json.loads(line)
        ident, method = said.get("id"), said.get("method")
        if method == "notifications/cancelled":
            note("no longer wanted")
        if "slow" in WAYS or ident is None:
            continue
        if method == "initialize":
            version = said["params"]["protocolVersion"]
            info = {"name": "plain", "version": "1"}
            say(
                {
                    "id": ident,
                    "result": {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info},
                }
            )
        elif method == "tools/list":
            listed, following = PAGES[said.get("params", {}).get("cursor")]
            result: dict[str, object] = {"tools": [tool(name) for name in listed]}
            say({"id": ident, "result": result | ({"nextCursor": following} if following else {})})
        elif method == "tools/call":
            call(ident, said["params"]["name"], said["params"].get("arguments", {}))
        else:
            say({"id": ident, "error": {"code": -32601, "message": "unknown method"}})
    while "deaf" in WAYS:
        time.sleep(60)


main()
