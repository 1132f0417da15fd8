"""Plays the side of another program in a recorded session: `player.py FILE`. A program of its own.

It runs in the jail in the place of the program, and sends what that sent. Each request waits for its answer.
A command for which it got leave is really run, and what it printed is sent in place of what is recorded.
Where anything goes another way than in the recording, it says so and ends its turn.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

Message = dict[str, Any]


def send(**message: Any) -> None:
    """Send a message."""
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def answer_to(request: Message) -> Message:
    """What is answered to a request; requests that come meanwhile are left out."""
    for line in sys.stdin:
        message: Message = json.loads(line)
        if message.get("id") == request["id"] and "method" not in message:
            return message
    sys.exit(0)


def play(session: list[Message]) -> str:
    """Send the messages of a turn; why it went another way, or nothing."""
    told: Message = {}
    for message in session:
        update = message["params"].get("update", {})
        if update.get("toolCallId") == told.get("toolCallId") and update.get("status") == "completed":
            update.update(told)
        send(**message)
        if "id" not in message:
            continue
        answer, call = answer_to(message), message["params"].get("toolCall", {})
        allowed = [o["optionId"] for o in message["params"].get("options", []) if "allow" in o["kind"]]
        if "error" in answer or (call and answer["result"]["outcome"].get("optionId") not in allowed):
            return "what it asked for was refused"
        if call.get("kind") == "execute":
            command = call["rawInput"]["command"]
            run = subprocess.run(["sh", "-c", f"exec 2>&1; {command}"], capture_output=True, text=True)
            if run.returncode:
                return f"{command} ended with {run.returncode}: {run.stdout[-200:].strip()}"
            content = [{"type": "content", "content": {"type": "text", "text": run.stdout}}]
            told = {"toolCallId": call["toolCallId"], "content": content, "rawOutput": {}}
    return ""


def main(file: str) -> None:
    """Answer what comes in."""
    here = json.dumps(str(Path.cwd()))[1:-1]
    recording = json.loads(Path(file).read_text("utf-8").replace("{root}", here))
    hello, opened, *session, end = recording["session"]
    results = {"initialize": hello["result"], "session/new": opened["result"]}
    for line in sys.stdin:
        message = json.loads(line)
        result = results.get(message.get("method"), {})
        if message.get("method") == "session/prompt":
            known, result = recording["about"] in message["params"]["prompt"][0]["text"], end["result"]
            if why := play(session) if known else "this was never asked":
                words = f"{why}; the recording has nothing for that, and ends here"
                content = {"type": "text", "text": words}
                update = {"sessionUpdate": "agent_message_chunk", "content": content}
                send(method="session/update", params={**opened["result"], "update": update})
                result = {"stopReason": "refusal"}
        if "id" in message:
            send(id=message["id"], result=result)


if __name__ == "__main__":
    main(*sys.argv[1:])
