"""An agent that speaks the Agent Client Protocol by hand, well or badly, as its first argument says.

It is a program of its own and knows nothing of Pilothouse. `ask` sends a request and waits for its answer.
"""

from __future__ import annotations

import itertools
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

NUMBERS = itertools.count(1000)
SESSION = "session-1"
BACKLOG: list[dict[str, Any]] = []


def send(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def update(what: str, **fields: Any) -> None:
    about = {"sessionId": SESSION, "update": {"sessionUpdate": what, **fields}}
    send({"method": "session/update", "params": about})


def say(text: str, kind: str = "agent_message_chunk") -> None:
    update(kind, content={"type": "text", "text": text})


def receive() -> dict[str, Any]:
    line = sys.stdin.readline()
    if not line:
        sys.exit(0)
    message: dict[str, Any] = json.loads(line)
    return message


def post(method: str, session: str = SESSION, **params: Any) -> int:
    number = next(NUMBERS)
    send({"id": number, "method": method, "params": {"sessionId": session, **params}})
    return number


def wait(number: int) -> dict[str, Any]:
    while True:
        message = receive()
        if message.get("id") == number and "method" not in message:
            return message
        BACKLOG.append(message)


def ask(method: str, **params: Any) -> dict[str, Any]:
    return wait(post(method, **params))


def here(name: str) -> str:
    return str(Path.cwd() / name)


def permit(name: str, kind: str = "edit", **call: Any) -> str:
    """Ask leave for a tool call; the outcome, in one word."""
    options = [
        {"optionId": "yes", "name": "Allow", "kind": "allow_once"},
        {"optionId": "no", "name": "Reject", "kind": "reject_once"},
    ]
    about = {"toolCallId": name, "title": name, "kind": kind, "status": "pending", **call}
    answer = ask("session/request_permission", toolCall=about, options=options)
    outcome = answer.get("result", {}).get("outcome", {})
    return str(outcome.get("optionId", outcome.get("outcome", answer)))


def edit(name: str, content: str) -> str:
    """An edit of its own, after leave for it."""
    diff = {"type": "diff", "path": here(name), "oldText": None, "newText": content}
    update("tool_call", toolCallId=f"edit {name}", title=f"edit {name}", kind="edit", status="pending")
    told = permit(f"edit {name}", content=[diff])
    if told == "yes":
        Path(name).write_text(content)
    update("tool_call_update", toolCallId=f"edit {name}", status="completed" if told == "yes" else "failed")
    return told


def write(name: str, content: str) -> dict[str, Any]:
    return ask("fs/write_text_file", path=here(name), content=content)


def read(name: str) -> str:
    answer = ask("fs/read_text_file", path=here(name))
    return str(answer.get("result", answer.get("error", {})).get("content") or answer)


# ------------------------------------------------------------------ what it does in a turn


def polite() -> None:
    """Reads, asks leave once, writes once, runs a test, and says so."""
    entries = [
        {"content": "look", "priority": "high", "status": "in_progress"},
        {"content": "change it", "priority": "high", "status": "pending"},
    ]
    update("plan", entries=entries)
    say("I look first. ", "agent_thought_chunk")
    text = read("notes.txt")
    entries[0]["status"], entries[1]["status"] = "completed", "in_progress"
    update("plan", entries=entries)
    told = edit("settings.toml", "debug = true\n")
    wrote = write("copy.txt", text)
    terminal = ask("terminal/create", command="cat copy.txt && exit 3").get("result", {}).get("terminalId")
    left = ask("terminal/wait_for_exit", terminalId=terminal).get("result", {})
    output = ask("terminal/output", terminalId=terminal).get("result", {}).get("output")
    entries[1]["status"] = "completed"
    update("plan", entries=entries)
    done, code = "error" not in wrote, left.get("exitCode")
    say(f"leave: {told}; wrote: {done}; the test printed {output!r}, exit {code}")


def denied() -> None:
    """Says what it is told where it may not do something."""
    told = edit("settings.toml", "x")
    say(f"edit: {told}; write: {write('a.txt', 'x').get('error', {}).get('message')}")


def three() -> None:
    """Writes five files, one after the other."""
    say(", ".join(f"{n}: {'error' not in write(f'{n}.txt', str(n))}" for n in range(5)))


def behind() -> None:
    """Changes files without a word, and asks for one."""
    Path("secret.txt").write_text("mine")
    Path("notes.txt").write_text("other")
    write("asked.txt", "asked")
    say("nothing else")


def sleeps() -> None:
    """Never ends its turn, and starts programs that do not end either."""
    os.spawnlp(os.P_NOWAIT, "sleep", "sleep", "1000")
    say("working")
    while True:
        time.sleep(60)


DEEDS = {
    name: deed
    for name, deed in globals().items()
    if callable(deed) and getattr(deed, "__module__", "") == __name__ and name not in ("send", "receive")
}


def main(deed: str, *args: str) -> None:
    while True:
        message = BACKLOG.pop(0) if BACKLOG else receive()
        number, method, params = message.get("id"), message.get("method"), message.get("params") or {}
        if method == "initialize":
            if deed == "old":
                send({"id": number, "result": {"protocolVersion": 0}})
                continue
            can = {"loadSession": deed == "loads"}
            info = {"name": "tester", "version": "7"}
            send(
                {"id": number, "result": {"protocolVersion": 1, "agentCapabilities": can, "agentInfo": info}}
            )
        elif method in ("session/new", "session/load"):
            modes = {
                "currentModeId": "code",
                "availableModes": [{"id": "code", "name": "Code"}, {"id": "ask", "name": "Ask"}],
            }
            send({"id": number, "result": {"sessionId": SESSION, "modes": modes}})
        elif method == "session/prompt":
            with Path(".home/prompts").open("a") as prompts:
                prompts.write(json.dumps(params["prompt"]) + "\n")
            DEEDS[deed](*args)
            send({"id": number, "result": {"stopReason": "end_turn"}})
        elif number is not None and method:
            send({"id": number, "result": {}})


if __name__ == "__main__":
    main(*sys.argv[1:])
