"""Missions: installing their files as the operator's own actions, then adopting their goal.

Also waiting for an agent without a screen, until something holds of it or never will.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from importlib.resources import files

from app.commands.command import NO_AGENT, Answer, CommandHost, GrammarError, Values, answer_message
from app.commands.goal_engine import GoalEngine
from engine.core import commands as cmd
from engine.core import crew_commands as cc
from engine.core.agents import RunState
from engine.core.commands import parse_command
from engine.core.state import AgentState
from engine.planning.library.missions import Mission, MissionError, find_mission
from engine.tools.worlds.explorer import recorded_answer


def mission_agent(mission: Mission | None, agent: str, **given: str) -> cmd.CreateAgent:
    """The command that creates a mission's agent under this id; where any will do, one with what is given."""
    own = mission.agent if mission is not None else None
    if own is None:
        return cmd.CreateAgent(agent=agent, config={name: value for name, value in given.items() if value})
    config = dict(own.config)
    if own.programs:
        directory = files("engine.tools.worlds")
        config["program"] = "\n".join((directory / name).read_text(encoding="utf-8") for name in own.programs)
        config["source"] = "+".join(own.programs)
    if own.answers:
        answers = [recorded_answer(name) for name in own.answers]
        config["generation"] = {**config.get("generation", {}), "answers": answers}
    return cmd.CreateAgent(agent=agent, agent_type=own.type, config=config)


def free_name(name: str, taken: Collection[str]) -> str:
    """The name, or the first of `name-2`, `name-3`, … that is free."""
    names = (name, *(f"{name}-{number}" for number in range(2, len(taken) + 3)))
    return next(each for each in names if each not in taken)


async def install_mission(
    engine: GoalEngine, agent: str, mission: Mission, operator: str = ""
) -> cmd.Receipt:
    """Write the mission's files through the agent's pipeline, recorded as the operator's who holds it.

    Answers the first refusal, or the last receipt; the writes are done before the agent acts again.
    """
    receipt = cmd.Receipt(ok=True, message="nothing to install")
    holds = bool(operator) and (await engine.view(agent)).control.holder == operator
    for path, content in mission.files.items():
        args = {"path": path, "content": content}
        receipt = await engine.submit(
            cmd.CallTool(agent=agent, command="write", args=args), operator=operator if holds else "mission"
        )
        if not receipt.ok:
            break
    return receipt


def mission_command(mission: Mission, agent: str) -> cmd.Command:
    """What a mission begins with, once its files are there."""
    if mission.command is None:
        return cmd.AdoptGoal(agent=agent, text=mission.goal)
    return parse_command(mission.command)


async def run_mission(host: CommandHost, values: Values) -> Answer:
    """Install a mission, for its agent or with the agents of its skills, and adopt its goal.

    Raises:
        GrammarError: there is no such mission, or no agent for it.
    """
    engine, name = host.engine, values["name"]
    agent = host.context.agent or next(iter(engine.agents), "")
    try:
        mission = await asyncio.to_thread(find_mission, engine.workspace, name, engine.trust)
    except MissionError as error:
        raise GrammarError(str(error)) from error
    if mission is None:
        raise GrammarError(f"there is no mission '{name}'; missions: {', '.join(host.context.missions())}")
    for skill in mission.skills:
        built = await host.submit(cc.BuildAgent(path=str(engine.workspace.absolute() / skill)))
        if built[0]:
            return built
    if mission.agent is not None:
        agent = free_name(mission.agent.id, engine.agents)
        made = await host.submit(mission_agent(mission, agent))
        if made[0]:
            return made
        host.view("new_agent", agent=agent)
    elif not agent and (mission.files or mission.command is None):
        raise GrammarError(NO_AGENT)
    if mission.files:
        receipt = await install_mission(engine, agent, mission, host.operator)
        if not receipt.ok:
            return answer_message(False, receipt.message)
        await wait_until(engine, agent, lambda state: not state.requests and not state.busy)
    code, answer, text = await host.submit(mission_command(mission, agent))
    if text or code:
        return code, answer, f"{mission.title}: {text}"
    if "handoff" in answer:
        host.view("handoff", handoff=answer["handoff"])
    elif "group" in answer:
        host.view("handoffs")
    return 0, answer, f"{mission.title}: {mission.hint}"


def is_idle(state: AgentState) -> bool:
    """True when nothing runs, nothing is about to, and the agent can go no further by itself."""
    if state.busy or state.requests:
        return False
    if state.approvals.question is not None or state.approvals.held:
        return True
    if state.grants:
        return False
    return state.run is not RunState.RUNNING or state.intervention is not None or not state.has_work


class AgentFaultError(Exception):
    """The agent that was waited for ended by a fault of the program; the text says by what."""


async def wait_until(engine: GoalEngine, agent: str, holds: Callable[[AgentState], bool]) -> AgentState:
    """The agent's state as soon as something holds of it.

    Raises:
        AgentFaultError: it never will.
    """
    fault = asyncio.create_task(engine.faulted(agent))
    watch = asyncio.create_task(_until(engine, agent, holds))
    try:
        await asyncio.wait({watch, fault}, return_when=asyncio.FIRST_COMPLETED)
        if not watch.done():
            raise AgentFaultError(fault.result() or f"agent {agent} is gone")
        return watch.result()
    finally:
        for task in (watch, fault):
            task.cancel()
        await asyncio.gather(watch, fault, return_exceptions=True)


async def _until(engine: GoalEngine, agent: str, holds: Callable[[AgentState], bool]) -> AgentState:
    since = await engine.head()
    state = await engine.view(agent)
    if not holds(state):
        async for _event in engine.events(since, stream=agent):
            state = await engine.view(agent)
            if holds(state):
                break
    await engine.durable(agent)
    return state
