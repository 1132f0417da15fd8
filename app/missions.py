"""Laying a mission down in a workspace: its files as the operator's own actions, then its goal."""

from __future__ import annotations

from engine.domain import commands as cmd
from engine.engine import Engine
from engine.library import Mission


async def lay_down(engine: Engine, agent: str, mission: Mission) -> cmd.Receipt:
    """Write the mission's files through the agent's pipeline, recorded as the operator's.

    Answers the first refusal, or the last receipt; the writes are done before the agent acts again.
    """
    receipt = cmd.Receipt(ok=True, message="nothing to lay down")
    for path, content in mission.files.items():
        args = {"path": path, "content": content}
        receipt = await engine.submit(
            cmd.CallTool(agent=agent, command="write", args=args), operator="mission"
        )
        if not receipt.ok:
            break
    return receipt
