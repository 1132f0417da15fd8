"""`thresholds.toml` counts for each new agent, beneath the agent's own configuration."""

from __future__ import annotations

from pathlib import Path

from engine.agent.settings import FILE
from engine.api.engine import Engine
from engine.core import commands as cmd


async def test_an_agent_takes_the_workspaces_thresholds_beneath_its_own_configuration(tmp_path: Path) -> None:
    engine = await Engine.open(tmp_path)
    try:
        (tmp_path / FILE).write_text(
            "[recovery]\nmax_consecutive_errors = 5\n[metacognition]\nreflection_threshold = 9\n", "utf-8"
        )
        given = {"metacognition": {"reflection_threshold": 4}}
        assert (await engine.submit(cmd.CreateAgent(agent="pilot", config=given))).ok
        state = await engine.view("pilot")
        assert state.config.max_consecutive_errors == 5
        assert state.config.meta["metacognition"] == {"reflection_threshold": 4}
        (tmp_path / FILE).write_text("[approvals]\npreset = 'allow'\n", "utf-8")
        refused = await engine.submit(cmd.CreateAgent(agent="other"))
        assert not refused.ok
        assert "'approvals' is no table of it" in refused.message
    finally:
        await engine.close()
