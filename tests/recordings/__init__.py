"""Flies the missions of the demonstration, and records them: `python -m tests.recordings [NAME …]`.

The answers in `tests.recordings.material` were written for the demonstration. The real engine asks for each
of them, over HTTP from the scripted server; what is kept is what its journal has of the calls.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from app.cli.examples import copy_example, crew_missions
from app.commands.missions import install_mission, mission_agent, mission_command, wait_until
from engine.agent.shared import EngineConfig
from engine.api.engine import Engine
from engine.core import commands as cmd
from engine.core import crew_commands as cc
from engine.core import events as ev
from engine.core.agents import RECORDING
from engine.core.command import Command
from engine.core.goals import GoalStatus
from engine.core.ports import Ports
from engine.core.state import AgentState
from engine.crew.state import CrewState
from engine.models.choice import ModelChoice
from engine.models.endpoint import Endpoint
from engine.models.recorded import speaker_of
from engine.models.request import estimate_tokens
from engine.planning.library.missions import DEMO, Mission, find_mission
from tests.engine.agent.engine_flight import QuickClock
from tests.messages_server import MessagesServer, Reply
from tests.messages_server.server import Seen
from tests.patience import PATIENCE_S
from tests.recordings.material import MATERIAL
from tests.recordings.written import Written

RECORDINGS = Path(__file__).parents[2] / "engine/models/recordings"


class Demonstration:
    """A mission that is flown without a screen."""

    def __init__(self, engine: Engine, mission: Mission) -> None:
        self.engine, self.mission = engine, mission

    async def fly(self) -> None:
        """Fly it to its end, as an operator does who takes what is offered."""
        mission = self.mission
        if mission.agent is not None:
            await self._goal(mission.agent.id)
            return
        for skill in mission.skills:
            await self.submit(cc.BuildAgent(path=str(self.engine.workspace / skill)))
        command = mission_command(mission, "")
        receipt = await self.submit(command)
        crew = await self.engine.crew()
        async with asyncio.timeout(PATIENCE_S):
            while not _over(crew.state, receipt.data):
                changed = asyncio.create_task(crew.stream.changed())
                if not await self._move(crew.state):
                    await changed
                changed.cancel()

    async def _goal(self, agent: str) -> None:
        await self.submit(mission_agent(self.mission, agent))
        await install_mission(self.engine, agent, self.mission)
        await wait_until(self.engine, agent, lambda state: not state.requests and not state.busy)
        await self.submit(mission_command(self.mission, agent))
        await self.submit(cmd.Run(agent=agent))
        async with asyncio.timeout(PATIENCE_S):
            state = await wait_until(self.engine, agent, _rests)
        assert [goal.status for goal in state.goals.values()] == [GoalStatus.ACHIEVED], state.failures

    async def _move(self, crew: CrewState) -> bool:
        """Have the step of a guided session that is asked for drafted, and take the draft."""
        for request in crew.open_requests():
            offered = [option.id for option in request.options]
            over = "finish" if request.question.startswith("Finish") else "suggest"
            move = "take" if "take" in offered else over
            await self.submit(cc.AnswerRequest(request=request.id, option=move))
            return True
        return False

    async def submit(self, command: Command) -> cmd.Receipt:
        receipt = await self.engine.submit(command)
        assert receipt.ok, receipt.message
        return receipt


def prepared(name: str, workspace: Path) -> Mission:
    """The mission that a recording answers; the files of a crew's are copied into the workspace."""
    if name in crew_missions():
        copy_example(name, workspace)
    mission = find_mission(workspace, name if name.startswith(DEMO) else DEMO + name, None)
    assert mission is not None
    return mission


def _without_recording(mission: Mission) -> Mission:
    changes: dict[str, Any] = {}
    if mission.agent is not None:
        config = {name: value for name, value in mission.agent.config.items() if name != RECORDING}
        changes["agent"] = mission.agent.model_copy(update={"config": config})
    if mission.command is not None:
        metadata = {name: value for name, value in mission.command["metadata"].items() if name != RECORDING}
        changes["command"] = {**mission.command, "metadata": metadata}
    return mission.model_copy(update=changes)


def _rests(state: AgentState) -> bool:
    return not state.open_goals or state.intervention is not None


def _over(crew: CrewState, begun: dict[str, Any]) -> bool:
    if group := begun.get("group"):
        return bool(crew.groups[group].ended)
    return not crew.handoffs[begun["handoff"]].open


def _reply(written: list[Written], seen: Seen) -> Reply:
    """What was written for a request, as its server gives it."""
    system, said = json.dumps(seen.body["system"]), seen.said()
    tools = {"", *(tool["name"] for tool in seen.body.get("tools", ()))}
    messages = "\n".join(_texts(seen.body["messages"]))
    fitting = [
        answer
        for answer in written
        if answer.who in system
        and answer.tool in tools
        and all(words in messages for words in answer.after)
        and re.search(answer.when, messages, re.DOTALL)
    ]
    assert fitting, f"nothing is written for this:\n{system}\n{messages}"
    answer = fitting[-1]
    spoken = answer.thinking + answer.text + answer.tool_input
    usage = {"input_tokens": estimate_tokens(said), "output_tokens": estimate_tokens(spoken)}
    return Reply(answer.text, answer.thinking, answer.tool, answer.tool_input, usage=usage, piece=4_000)


def _texts(messages: list[dict[str, Any]]) -> list[str]:
    return [
        str(block.get("text", block.get("content", ""))) for each in messages for block in each["content"]
    ]


@asynccontextmanager
async def opened(workspace: Path, model: ModelChoice | None = None) -> AsyncIterator[Engine]:
    """An engine in which neither answers nor retries take time."""
    config, ports = EngineConfig(model=model, recorded_pace=0), Ports(clock=QuickClock())
    engine = await Engine.open(workspace, ports=ports, config=config)
    try:
        yield engine
    finally:
        await engine.close()


async def calls(engine: Engine) -> list[tuple[str, ev.ModelCalled]]:
    """Every call of a model in the journal, with who made it."""
    found, speakers = [], dict[str, str]()
    async for event in engine.store.events(follow=False):
        payload = ev.payload_of(event)
        if isinstance(payload, ev.AgentCreated):
            speakers[event.stream] = speaker_of(payload.config.meta)
        elif isinstance(payload, ev.ModelCalled):
            found.append((speakers[event.stream], payload))
    return found


async def record(name: str, workspace: Path) -> dict[str, Any]:
    """Fly a mission with the server in the place of a model, and take its recording from the journal."""
    about, written = MATERIAL[name]
    async with MessagesServer([lambda seen: _reply(written, seen)], repeat=True) as server:
        model = ModelChoice(Endpoint(server.url))
        async with opened(workspace, model) as engine:
            await Demonstration(engine, _without_recording(prepared(name, workspace))).fly()
            made = await calls(engine)
    answers = []
    for answer in written:
        given = [(who, call) for who, call in made if call.answer and _is(answer, call.answer["content"])]
        assert given, f"{name}: this was never asked for: {answer}"
        for who in dict.fromkeys(who for who, _ in given):
            usage = next(call.answer["usage"] for to, call in given if to == who and call.answer)
            answers.append(answer.recorded(who, usage["input_tokens"], usage["output_tokens"]))
    return {"about": about, "answers": answers}


def _is(written: Written, content: list[dict[str, Any]]) -> bool:
    texts = {block["type"]: block for block in content}
    use = texts.get("tool_use", {})
    return (
        written.thinking == texts.get("thinking", {}).get("thinking", "")
        and written.text == texts.get("text", {}).get("text", "")
        and written.tool == use.get("name", "")
        and written.input == use.get("input", {})
    )
