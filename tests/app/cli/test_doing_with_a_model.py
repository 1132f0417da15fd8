"""`pilothouse do` where a model thinks: it is asked when the agent runs, and nobody waits for it before."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from app.commands.command_runner import run_command
from tests.messages_server import MessagesServer, plan_call
from tests.patience import PATIENCE_S

STEP = {
    "type": "EXECUTE_TOOL",
    "params": {"tool_id": "simple_coder", "command": "mkdir", "args": {"path": "made"}},
}


async def test_a_goal_is_taken_at_once_and_planned_when_the_agent_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PILOTHOUSE_HOME", str(tmp_path / "home"))
    async with MessagesServer([plan_call(STEP)]) as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        await run_command(tmp_path, "agent_create bdi_agent pilot-1")
        async with asyncio.timeout(PATIENCE_S):
            code, _, text = await run_command(tmp_path, "goal make a directory")
        assert (code, server.requests) == (0, [])
        assert text.endswith("it plans once it runs")
        async with asyncio.timeout(PATIENCE_S):
            code, answer, _ = await run_command(tmp_path, "run")
        assert (code, len(server.requests)) == (0, 1)
        assert answer["ok"]
    assert (tmp_path / "sandbox" / "made").is_dir()
