"""An agent that speaks the Agent Client Protocol by hand, well or badly, as its first argument says.

It is a program of its own and knows nothing of Pilothouse. `ask` sends a request and waits for its answer.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

NUMBERS = itertools.count(1000)
SESSION = "session-1"
BACKLOG: list[dict[str, Any]] = []
OPENED: list[str] = []
SERVERS: list[dict[str, Any]] = []


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
        answer = next((m for m in BACKLOG if m.get("id") == number and "method" not in m), None)
        if answer is not None:
            BACKLOG.remove(answer)
            return answer
        BACKLOG.append(receive())


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


def timed(count: str) -> None:
    """Reads, writes and asks leave so many times, and says how many milliseconds each took."""
    took: dict[str, list[float]] = {"read": [], "write": [], "permission": []}
    for n in range(int(count)):
        for what, work in (
            ("read", lambda: read("notes.txt")),
            ("write", lambda n=n: write(f"{n}.txt", str(n))),
            ("permission", lambda n=n: edit(f"own-{n}.txt", str(n))),
        ):
            began = time.perf_counter()
            work()
            took[what].append(round(1000 * (time.perf_counter() - began), 3))
    say(json.dumps(took))


def behind() -> None:
    """Changes files without a word, and asks for one."""
    Path("secret.txt").write_text("mine")
    Path("notes.txt").write_text("other")
    write("asked.txt", "asked")
    say("nothing else")


def halts() -> None:
    """Writes a file, then waits; in its next turn it is done."""
    if "Continue" in Path(".home/prompts").read_text():
        say("done now")
        return
    write("first.txt", "1")
    time.sleep(1000)


def loads() -> None:
    """Says by what its session was opened."""
    say(OPENED[-1])


def forked() -> None:
    """Says by what its session was opened."""
    say(OPENED[-1])


def sleeps() -> None:
    """Never ends its turn, and starts programs that do not end either."""
    os.spawnlp(os.P_NOWAIT, "sleep", "sleep", "1000")
    say("working")
    while True:
        time.sleep(60)


# ------------------------------------------------------------------ what a hostile one does


def raw(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def floods() -> None:
    """Says and thinks without end."""
    while True:
        say("blah " * 200)
        say("hmm " * 200, "agent_thought_chunk")
        update("tool_call", toolCallId=str(next(NUMBERS)), title="x" * 5_000, kind="read", status="completed")


def huge() -> None:
    """Sends a message of 100 MB."""
    for _ in range(100):
        raw("x" * 1_000_000)
    raw("\n")
    time.sleep(60)


def nonsense() -> None:
    """Sends lines that are no messages."""
    for text in (
        "{",
        "[]",
        "null",
        "17",
        '"x"',
        '{"id": [1], "method": "x"}',
        '{"id": {}, "result": 1}',
        "[" * 100_000,
    ):
        raw(text + "\n")
    raw('{"jsonrpc": "2.0", "id": 99999, "error": "no object"}\n' * 30)
    time.sleep(60)


def mild_nonsense() -> None:
    """Sends a few lines that are no messages, and updates that are none, then does its work."""
    for text in ("{", "null", '{"id": [1], "method": "x"}', "[" * 100_000):
        raw(text + "\n")
    update("no such thing", content=17)
    update("plan", entries=[{"content": ["x"]}, 3, {"content": "look", "status": 7}])
    update("tool_call", toolCallId={"a": 1}, content="x", title=[])
    update("usage_update", cost={"amount": float("inf"), "currency": "USD"})
    send({"method": "session/update", "params": [1]})
    write("after.txt", "still here")
    say("worked all the same")


def outside() -> None:
    """Asks for what is not its own, by path, by link, by another session."""
    os.symlink("/etc", "link")
    told = [
        read("/etc/passwd"),
        read("link/passwd"),
        str(write("../escaped.txt", "x")),
        str(write("link/x", "x")),
        str(wait(post("fs/read_text_file", "another-session", path=here("notes.txt")))),
        permit("edit /etc/x", content=[{"type": "diff", "path": "/etc/x", "newText": "x"}]),
        str(ask("terminal/create", command="cat /etc/shadow", cwd="/")),
        str(ask("terminal/output", terminalId="j999")),
        str(ask("no/such", path="x")),
        str(ask("fs/write_text_file", path=here("a"))),
    ]
    say(" | ".join(told))


def hands(*names: str) -> None:
    """Hands its work to other agents of the crew by the server that it was given, and says what they say."""
    (server,) = SERVERS
    words = [server["command"], *server["args"]]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as tool:

        def call(method: str, **params: Any) -> dict[str, Any]:
            assert tool.stdin is not None
            assert tool.stdout is not None
            message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
            tool.stdin.write(json.dumps(message) + "\n")
            tool.stdin.flush()
            answer: dict[str, Any] = json.loads(tool.stdout.readline())["result"]
            return answer

        call("initialize", protocolVersion="2025-06-18")
        (offered,) = call("tools/list")["tools"]
        told = [
            call("tools/call", name=offered["name"], arguments={"to": name, "task": "judge what I found"})
            for name in names
        ]
        tool.terminate()
    say("it said: " + " | ".join(answer["content"][0]["text"] for answer in told))


def argues() -> None:
    """Takes its turns in a debate."""
    claim = {"text": "it was measured", "evidence": []}
    asked = json.loads(Path(".home/prompts").read_text().splitlines()[-1])[0]["text"]
    turn: dict[str, Any] = {"claims": [claim]}
    if "Round " in asked:
        answers = [{"claim": "B1", "kind": "refute", "text": "it was not"}]
        turn = {"restated": "B says that it is dear", "replies": answers, "claims": []}
    say(f"My turn:\n```json\n{json.dumps(turn)}\n```")


def storm() -> None:
    """Asks for leave a hundred times at once."""
    options = [{"optionId": "yes", "name": "Allow", "kind": "allow_once"}]
    numbers = []
    for n in range(100):
        call = {"toolCallId": f"c{n}", "title": "x", "kind": "fetch", "status": "completed"}
        numbers.append(post("session/request_permission", toolCall=call, options=options))
    answers = [wait(number) for number in numbers]
    refused = [a for a in answers if "error" in a]
    say(f"{len(answers)} answers, {len(refused)} refused: {refused[0]['error']['message']}")


def paints() -> None:
    """Has escape sequences in all that is shown."""
    evil = "\x1b[2J\x1b]0;owned\x07\u202eevil\x00[bold]"
    update("plan", entries=[{"content": evil, "priority": "high", "status": "pending"}])
    permit(evil, "fetch")
    Path("x").write_text(evil)
    write("painted.txt", evil)
    say(evil)


def stubborn() -> None:
    """Does not heed that its turn is cancelled."""
    say("busy")
    while True:
        receive()


def forks() -> None:
    """Starts programs without end."""
    while True:
        os.spawnlp(os.P_NOWAIT, "sleep", "sleep", "1000")


def forged() -> None:
    """Speaks in another session's name, answers what nobody asked, and answers its own prompt beforehand."""
    about = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "forged"}}
    send({"method": "session/update", "params": {"sessionId": "another", "update": about}})
    for number in (-1, 17, 4_000_000_000):
        send({"id": number, "result": {"stopReason": "end_turn"}})
    told = wait(post("terminal/create", "another", command="touch forged.txt"))
    say(f"as myself: {told['error']['message']}")


def endless() -> None:
    """Sends small updates without end."""
    while True:
        update("tool_call_update", toolCallId="x", status="in_progress")


def swaps() -> None:
    """Asks leave for one file, and then writes others."""
    call = {"toolCallId": "swap", "title": "edit a.txt", "kind": "edit", "status": "pending"}
    diff = {"type": "diff", "path": here("a.txt"), "oldText": None, "newText": "harmless"}
    options = [{"optionId": "yes", "name": "Allow", "kind": "allow_once"}]
    told = ask("session/request_permission", toolCall={**call, "content": [diff]}, options=options)
    say(f"leave: {told['result']['outcome']['optionId']}; ")
    for name, content in (("settings.toml", "x"), ("a.txt", "harmful")):
        say(f"{name}: {write(name, content).get('error', {}).get('message', 'written')}; ")


def odd() -> None:
    """Ends its turn with what is no answer; see `main`."""


def mute() -> None:
    """Answers nothing at all; see `main`."""


def nameless() -> None:
    """Opens a session without an id; see `main`."""


def dies() -> None:
    """Ends in the middle of its turn."""
    print("out of memory", file=sys.stderr)
    os._exit(9)


def reaches() -> None:
    """Tries what the jail keeps from it, without a word."""
    told = []
    for path in ("../private.txt", "../.pilothouse/journal.db"):
        try:
            told.append(Path(path).read_text())
        except OSError as error:
            told.append(type(error).__name__)
    import socket

    try:
        socket.create_connection(("127.0.0.1", 9), timeout=2)
    except OSError as error:
        told.append(type(error).__name__)
    told.append(str("SECRET_KEY" in os.environ))
    say(" ".join(told))


DEEDS = {
    name: deed
    for name, deed in globals().items()
    if callable(deed) and getattr(deed, "__module__", "") == __name__ and name not in ("send", "receive")
}


def main(deed: str, *args: str) -> None:
    while True:
        message = BACKLOG.pop(0) if BACKLOG else receive()
        number, method, params = message.get("id"), message.get("method"), message.get("params") or {}
        if deed == "mute":
            continue
        if method == "initialize":
            if deed == "old":
                send({"id": number, "result": {"protocolVersion": 0}})
                continue
            can: dict[str, Any] = {"loadSession": deed == "loads"}
            can |= {"sessionCapabilities": {"fork": {}, "resume": {}}} if deed == "forked" else {}
            info = {"name": "tester\x1b[31m" if deed == "paints" else "tester", "version": "7"}
            send(
                {"id": number, "result": {"protocolVersion": 1, "agentCapabilities": can, "agentInfo": info}}
            )
        elif method in ("session/new", "session/load", "session/fork", "session/resume"):
            OPENED.append(f"{method} {params.get('sessionId')}")
            SERVERS[:] = params["mcpServers"]
            modes = {
                "currentModeId": "code",
                "availableModes": [{"id": "code", "name": "Code"}, {"id": "ask", "name": "Ask"}],
            }
            session = {} if deed == "nameless" else {"sessionId": SESSION}
            send({"id": number, "result": {**session, "modes": modes}})
        elif method == "session/prompt":
            with Path(".home/prompts").open("a") as prompts:
                prompts.write(json.dumps(params["prompt"]) + "\n")
            DEEDS[deed](*args)
            send({"id": number, "result": [7] if deed == "odd" else {"stopReason": "end_turn"}})
        elif number is not None and method:
            send({"id": number, "result": {}})


if __name__ == "__main__":
    main(*sys.argv[1:])
