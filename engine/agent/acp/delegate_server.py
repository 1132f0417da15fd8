"""Lets another program hand work on: an MCP server with one tool. `delegate_server.py CALLS ANSWERS AGENT …`.

The program starts it, in the jail. A call goes to Pilothouse by one named pipe and is answered by the other;
servers that run side by side have the pipes in turn.
"""

from __future__ import annotations

import fcntl
import json
import os
import select
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Message = dict[str, Any]
EVERY_S = 10.0
"""Seconds after which whoever waits hears that the work goes on."""


def tool(agents: list[str]) -> Message:
    """What is offered."""
    to = {"type": "string", "enum": agents, "description": "the agent's id"}
    task = {"type": "string", "description": "what it is to do, with all that it needs to know"}
    schema = {"type": "object", "properties": {"to": to, "task": task}, "required": ["to", "task"]}
    about = "hand work to another agent of the crew and wait for its result"
    return {"name": "delegate", "description": about, "inputSchema": schema}


def send(**message: Any) -> None:
    """Send a message to the program."""
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def lines_of(pipe: int, token: Any) -> Iterator[Message]:
    """What comes by the pipe; whoever waits hears of it meanwhile where it gave a token for that."""
    waited, rest = 0, b""
    while True:
        while not select.select([pipe], [], [], EVERY_S)[0]:
            waited += 1
            if token is not None:
                send(method="notifications/progress", params={"progressToken": token, "progress": waited})
        *lines, rest = (rest + os.read(pipe, 65_536)).split(b"\n")
        yield from map(json.loads, lines)


def hand_on(calls: str, answers: str, given: Message, number: str) -> Message:
    """The result of a call."""
    with Path(calls).open("r+b", buffering=0) as there, Path(answers).open("r+b", buffering=0) as back:
        fcntl.flock(there, fcntl.LOCK_EX)
        work = {"id": number, "method": "delegate", "params": given.get("arguments", {})}
        there.write(json.dumps({"jsonrpc": "2.0", **work}).encode() + b"\n")
        token = given.get("_meta", {}).get("progressToken")
        answer = next(line for line in lines_of(back.fileno(), token) if line.get("id") == number)
    failed = answer.get("error")
    text = failed["message"] if failed else answer["result"]["output"]
    return {"content": [{"type": "text", "text": text}], "isError": bool(failed)}


def main(calls: str, answers: str, *agents: str) -> None:
    """Answer what comes in."""
    for count, line in enumerate(sys.stdin):
        message = json.loads(line)
        number, method, params = message.get("id"), message.get("method"), message.get("params") or {}
        if number is None:
            continue
        if method == "initialize":
            about = {"capabilities": {"tools": {}}, "serverInfo": {"name": "pilothouse", "version": "1"}}
            send(id=number, result={"protocolVersion": params.get("protocolVersion"), **about})
        elif method == "tools/list":
            send(id=number, result={"tools": [tool(list(agents))]})
        elif method == "tools/call":
            send(id=number, result=hand_on(calls, answers, params, f"{os.getpid()}-{count}"))
        elif method == "ping":
            send(id=number, result={})
        else:
            send(id=number, error={"code": -32601, "message": f"there is no {method}"})


if __name__ == "__main__":
    main(*sys.argv[1:])
