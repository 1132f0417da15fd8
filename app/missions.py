"""Laying a mission down in a workspace: its files as the operator's own actions, then its goal."""

from __future__ import annotations

from engine.domain import commands as cmd
from engine.engine import Engine
from engine.library import Mission


async def lay_down(engine: Engine, agent: str, mission: Mission) -> None:
    """Write the mission's files through the agent's pipeline, recorded as the operator's."""
    for path, content in mission.files.items():
        await engine.submit(
            cmd.CallTool(agent=agent, command="write", args={"path": path, "content": content}),
            operator="mission",
        )
