"""Laying a mission down in a workspace: its files as the operator's own actions, then its goal."""

from __future__ import annotations

from collections.abc import Collection
from importlib.resources import files

from engine.domain import commands as cmd
from engine.engine import Engine
from engine.library import Mission
from engine.worlds.explorer_files import recorded_answer


def agent_for(mission: Mission | None, agent: str, thinker: str = "") -> cmd.CreateAgent:
    """The command that brings a mission's agent to be, under this id; an ordinary one where any will do."""
    wanted = mission.agent if mission is not None else None
    if wanted is None:
        return cmd.CreateAgent(agent=agent, config={"thinker": thinker} if thinker else {})
    config = dict(wanted.config)
    if wanted.programs:
        room = files("engine.worlds")
        config["program"] = "\n".join((room / name).read_text(encoding="utf-8") for name in wanted.programs)
        config["source"] = "+".join(wanted.programs)
    if wanted.answers:
        answers = [recorded_answer(name) for name in wanted.answers]
        config["generation"] = {**config.get("generation", {}), "answers": answers}
    return cmd.CreateAgent(agent=agent, agent_type=wanted.type, config=config)


def free_name(wanted: str, taken: Collection[str]) -> str:
    """The name, or the first of `name-2`, `name-3`, … that is free."""
    names = (wanted, *(f"{wanted}-{number}" for number in range(2, len(taken) + 3)))
    return next(name for name in names if name not in taken)


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
