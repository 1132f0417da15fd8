"""Programs as they come from npm, each with a scripted model on loopback in place of its own.

They are looked for on PATH and in the directory that ACP_PROGRAMS names (`npm install opencode-ai
@zed-industries/claude-code-acp @google/gemini-cli` there).
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from engine.core import commands as cmd
from tests.engine.agent.engine_flight import (
    Flight,
    QuickClock,
    journal_holds_together,
    live_state_is_the_fold,
)
from tests.gemini_server import GeminiServer
from tests.messages_server import MessagesServer, Reply, Seen, call
from tests.openai_server import OpenAiServer

PLACES = os.pathsep.join(
    [str(Path(os.environ.get("ACP_PROGRAMS", "/nowhere"), "node_modules", ".bin")), os.environ["PATH"]]
)
TEST = "python3 test_it.py"


@dataclass(frozen=True)
class RealProgram:
    """A program, and how it is made to ask the scripted model."""

    preset: str
    executable: str
    package: str
    server: Callable[..., MessagesServer]
    config: Callable[[str], Mapping[str, Any]]
    """Further configuration of the agent, by the server's address."""
    replies: Callable[[Path], tuple[Reply, ...]]
    """Read a file, edit one, write one, run a test."""
    denied: str = f"without a word when it was refused: {TEST}"
    """What is said where the test may not be run: to the operator, or else to the model."""
    reads: bool = False
    """Whether it has Pilothouse read for it."""

    @property
    def there(self) -> bool:
        """Whether it is installed."""
        return shutil.which(self.executable, path=PLACES) is not None


def _opencode(url: str) -> Mapping[str, Any]:
    models = {"scripted": {"name": "Scripted", "tool_call": True}}
    options = {"baseURL": f"{url}/v1", "apiKey": "none"}
    local = {"npm": "@ai-sdk/openai-compatible", "options": options, "models": models}
    settings = {"model": "local/scripted", "small_model": "local/scripted", "provider": {"local": local}}
    env = {f"OPENCODE_DISABLE_{name}": "1" for name in ("MODELS_FETCH", "DEFAULT_PLUGINS", "LSP_DOWNLOAD")}
    return {"network": "on", "env": {**env, "OPENCODE_CONFIG_CONTENT": json.dumps(settings)}}


def _opencode_replies(root: Path) -> tuple[Reply, ...]:
    edit = {"filePath": f"{root}/settings.toml", "oldString": "debug = false", "newString": "debug = true"}
    return (
        call("read", {"filePath": f"{root}/notes.txt"}),
        call("edit", edit),
        call("write", {"filePath": f"{root}/new.txt", "content": "hello\n"}),
        call("bash", {"command": TEST, "description": "run the test"}),
        Reply(text="All is done."),
    )


def _claude(url: str) -> Mapping[str, Any]:
    env = {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "${SCRIPTED_KEY}"}
    return {"network": "ports", "ports": [urlsplit(url).port], "env": env}


def _claude_replies(root: Path) -> tuple[Reply, ...]:
    def uses(tool: str, **given: Any) -> Reply:
        return call(f"mcp__acp__{tool}", given, call_id=f"toolu_{tool}")

    edit = {"old_string": "debug = false", "new_string": "debug = true"}
    return (
        uses("Read", file_path=f"{root}/notes.txt"),
        uses("Edit", file_path=f"{root}/settings.toml", **edit),
        uses("Write", file_path=f"{root}/new.txt", content="hello\n"),
        uses("Bash", command=TEST, timeout=60_000, description="run the test"),
        Reply(text="All is done."),
    )


def _gemini(url: str) -> Mapping[str, Any]:
    env = {"GOOGLE_GEMINI_BASE_URL": url, "GEMINI_API_KEY": "${SCRIPTED_KEY}"}
    return {"network": "ports", "ports": [urlsplit(url).port], "env": env, "model": "gemini-2.5-pro"}


def _gemini_replies(root: Path) -> tuple[Reply, ...]:
    edit = {"old_string": "debug = false", "new_string": "debug = true", "instruction": "switch it on"}
    return (
        call("read_file", {"file_path": f"{root}/notes.txt"}),
        call("replace", {"file_path": f"{root}/settings.toml", **edit}),
        call("write_file", {"file_path": f"{root}/new.txt", "content": "hello\n"}),
        call("run_shell_command", {"command": TEST, "description": "run the test"}),
        Reply(text="All is done."),
    )


PROGRAMS = (
    RealProgram("opencode", "opencode", "opencode-ai", OpenAiServer, _opencode, _opencode_replies),
    RealProgram(
        "claude-code",
        "claude-code-acp",
        "@zed-industries/claude-code-acp",
        MessagesServer,
        _claude,
        _claude_replies,
        denied=f"without a word when it was refused: `{TEST}`",
        reads=True,
    ),
    RealProgram(
        "gemini",
        "gemini",
        "@google/gemini-cli",
        GeminiServer,
        _gemini,
        _gemini_replies,
        "canceled by the user",
    ),
)


Answer = Callable[[Seen], Reply]


def talks(*replies: Reply | Answer) -> Answer:
    """Answers in turn, but for requests without tools, by which a title is asked for."""
    left = list(replies)

    def answer(seen: Seen) -> Reply:
        reply = left.pop(0) if seen.body.get("tools") and left else Reply(text="a title")
        return reply if isinstance(reply, Reply) else reply(seen)

    return answer


each_program = pytest.mark.parametrize(
    "program",
    [
        pytest.param(
            program,
            id=program.preset,
            marks=pytest.mark.skipif(
                not program.there, reason=f"{program.preset} is not installed; set ACP_PROGRAMS"
            ),
        )
        for program in PROGRAMS
    ],
)
START_S = 400.0
"""Seconds that a crowded machine may take to start a program of 180 MB."""


def set_places(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the programs be found, and have the key that they are configured with."""
    monkeypatch.setenv("PATH", PLACES)
    monkeypatch.setenv("SCRIPTED_KEY", "none")


@asynccontextmanager
async def flown(
    program: RealProgram, place: Path, monkeypatch: pytest.MonkeyPatch, **config: Any
) -> AsyncIterator[tuple[Flight, MessagesServer]]:
    """An engine with the program as the agent `dev`, and the model that it asks."""
    set_places(monkeypatch)
    flight = Flight(place, QuickClock())
    await flight.open()
    flight.agent = "dev"
    (flight.sandbox / "notes.txt").write_text("remember\n")
    (flight.sandbox / "settings.toml").write_text("debug = false\n")
    (flight.sandbox / "test_it.py").write_text("print('1 passed')\n")
    async with program.server([talks(*program.replies(flight.sandbox))], repeat=True) as server:
        given = {"preset": program.preset, **program.config(server.url), **config}
        await flight.do(cmd.CreateAgent, agent_type="acp_agent", config=given)
        await flight.do(cmd.AdoptGoal, text="switch debugging on and run the test")
        try:
            yield flight, server
            await live_state_is_the_fold(flight, "dev")
        finally:
            await flight.engine.close()
    await journal_holds_together(place)
