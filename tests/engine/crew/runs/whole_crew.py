"""A whole crew in one engine with the scripted model, for what shows only where all parts are real."""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from crew_desk import MODEL

from engine.agent.shared import EngineConfig
from engine.api.engine import Engine
from engine.core import crew_commands as cc
from engine.core.approvals import Policy
from engine.core.command import Receipt
from engine.core.crew import CrewSettings
from engine.core.ports import Clock, Ports
from engine.core.state import AgentState
from engine.crew.crew import Crew
from engine.crew.ontology.context import HumanRequest
from engine.crew.ontology.results import HandoffResult
from engine.crew.ontology.spec import AgentSpec
from engine.crew.state import Handoff
from engine.models.choice import ModelChoice
from engine.models.endpoint import Endpoint, Retries
from tests.engine.agent.engine_flight import journal_holds_together
from tests.engine.crew.flight import group_results
from tests.messages_server import MessagesServer, Reply
from tests.messages_server.server import Seen
from tests.patience import PATIENCE_S

CLEAR = dict.fromkeys(("what", "who", "success"), "Support queue is 4 hours behind")


def asker(seen: Seen) -> str:
    """The name of the agent whose run asks."""
    text = "\n".join(block["text"] for block in seen.body["system"])
    found = re.search(r"^You are ([^:\n]+): ", text, re.MULTILINE)
    assert found is not None
    return found[1]


def told(seen: Seen) -> str:
    """What a request said besides its tools and its instructions."""
    return json.dumps(seen.body["messages"], ensure_ascii=False)


class Whole:
    """An engine with its crew and the scripted model."""

    def __init__(self, engine: Engine, crew: Crew, server: MessagesServer) -> None:
        self.engine, self.crew, self.server = engine, crew, server

    async def do(self, command: Any) -> Receipt:
        receipt = await self.engine.submit(command)
        assert receipt.ok, receipt.message
        return receipt

    def spec(self, agent: str) -> AgentSpec:
        return self.crew.state.agents[agent].spec

    async def hand(self, to: str, task: str = "go", **more: Any) -> str:
        """Hand a task over; the handoff's id."""
        given: dict[str, Any] = {"clarity": CLEAR, **more}
        return str((await self.do(cc.Delegate(to=to, task=task, **given))).data["handoff"])

    async def result(self, handoff: str) -> HandoffResult:
        async with asyncio.timeout(PATIENCE_S):
            return await self.crew.wait(handoff)

    async def results(self, group: Receipt) -> Sequence[HandoffResult]:
        """What came of a group that a command began."""
        async with asyncio.timeout(PATIENCE_S):
            return await group_results(self.crew, group.data["group"])

    async def asked(self, handoff: str | None = None, code: str = "") -> HumanRequest:
        """What is asked of the operator, as soon as it is."""

        def found() -> list[HumanRequest]:
            return [one for one in self.crew.state.open_requests(handoff) if code in one.reason_code]

        await self.holds(found)
        return found()[0]

    async def answer(self, request: HumanRequest, option: str = "", text: str = "") -> None:
        await self.do(cc.AnswerRequest(request=request.id, option=option, text=text))

    async def holds(self, what: Callable[[], object]) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not what():
                await asyncio.sleep(0.002)

    async def move(self, handoff: str, move: str, **more: Any) -> None:
        """A move of a guided handoff, once it is asked for; returns when it was made."""
        before = await self.asked(handoff)
        await self.do(cc.GuidedMove(handoff=handoff, move=move, **more))

        def made() -> bool:
            asked = [one.id for one in self.crew.state.open_requests(handoff)]
            return not self.of(handoff).open or asked not in ([], [before.id])

        await self.holds(made)

    def of(self, handoff: str) -> Handoff:
        return self.crew.state.handoffs[handoff]

    def by(self, agent: str) -> list[Handoff]:
        """The handoffs to an agent, oldest first."""
        return [one for one in self.crew.state.handoffs.values() if one.agent == agent]

    def run(self, run: str) -> AgentState:
        return self.engine._agents[run].state

    def asks(self, name: str) -> list[Seen]:
        """The requests of the agents of a name."""
        return [seen for seen in self.server.requests if asker(seen) == name]

    def left(self) -> list[str]:
        """What is not over: handoffs, questions, runs with work, permits, processes of the sandbox."""
        agents = self.engine._agents
        here = [one for one in self.crew.state.by_run if one in agents]
        runs = [one for one in here if agents[one].state.open_goals or agents[one].state.action]
        return [
            *(one.id for one in self.crew.state.open()),
            *(one.id for one in self.crew.state.open_requests()),
            *runs,
            *(["a permit"] * self.crew.permits.in_use),
            *processes_below(self.engine.workspace),
        ]

    async def at_rest(self) -> None:
        """Wait until nothing is left: a run ends a little after its result."""
        await self.holds(lambda: not self.left())


def processes_below(workspace: Path) -> list[str]:
    """Programs that work in a workspace's sandbox, besides this one."""
    found = []
    for one in Path("/proc").iterdir():
        if one.name.isdigit() and int(one.name) != os.getpid():
            try:
                place = os.readlink(one / "cwd")
                words = (one / "cmdline").read_bytes().decode(errors="replace")
            except OSError:
                continue
            if place.startswith(str(workspace)) or str(workspace) in words:
                found.append(words)
    return found


Answer = Callable[[Seen], Reply]


def by_name(said: Mapping[str, Reply | Answer | Iterable[Reply]]) -> Answer:
    """A model that answers each agent by its name: always the same, by a function, or one after the other."""
    left = {name: iter(one) for name, one in said.items() if not isinstance(one, Reply) and not callable(one)}

    def answer(seen: Seen) -> Reply:
        name = asker(seen)
        if name in left:
            return next(left[name])
        one = said[name]
        return one if isinstance(one, Reply) else one(seen)  # type: ignore[operator]

    return answer


@asynccontextmanager
async def whole(
    workspace: Path,
    specs: Iterable[AgentSpec],
    answer: Answer | None,
    *,
    calls: int = 4,
    approvals: Policy | None = None,
    clock: Clock | None = None,
) -> AsyncIterator[Whole]:
    """An engine and its crew; in the end every stream is sound and replays.

    Args:
        workspace: its directory.
        specs: who is registered besides the shipped agents.
        answer: the model; None where there is none.
        calls: model calls at a time.
        approvals: what is asked before it is done; nothing where none is given.
        clock: the engine's; that of the machine where none is given.
    """
    async with MessagesServer([answer or (lambda _: Reply())], repeat=True) as server:
        choice = ModelChoice(Endpoint(server.url, "sk-test"), MODEL, retries=Retries(attempts=1))
        config = EngineConfig(
            model=choice if answer else None,
            crew=CrewSettings(model_calls=calls),
            approvals=approvals or Policy(),
        )
        ports = Ports(clock=clock) if clock is not None else None
        engine = await Engine.open(workspace, ports=ports, config=config)
        try:
            made = Whole(engine, await engine.crew(), server)
            for one in specs:
                await made.do(cc.RegisterAgent(spec=one.model_dump(mode="json")))
            yield made
        finally:
            await engine.close()
    await journal_holds_together(workspace)
