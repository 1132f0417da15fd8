"""The scripted server is a program too, for trying the cockpit by hand."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from pathlib import Path

from engine.models.client import MessagesClient
from engine.models.completion import ask
from engine.models.endpoint import Endpoint
from tests.engine.models.model_talk import CLAUDE

TOP = Path(__file__).parents[3]


async def test_the_server_runs_as_a_program_with_a_script_in_json(tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    script.write_text(json.dumps([{"text": "one", "thinking": "hm"}, {"text": "two"}]), encoding="utf-8")
    program = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.messages_server", str(script)),
        cwd=TOP,
        env={**os.environ, "PYTHONPATH": str(TOP)},
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        assert program.stdout is not None
        line = (await program.stdout.readline()).decode()
        name, _, url = line.removeprefix("export ").strip().partition("=")
        client = MessagesClient(Endpoint.from_environment({name: url}))
        said = [(await ask(client, CLAUDE, "You count.", "Count.")).text for _ in range(3)]
        await client.close()
    finally:
        program.send_signal(signal.SIGINT)
        await program.communicate()
    assert said == ["one", "two", "one"]
    assert program.returncode == 0
