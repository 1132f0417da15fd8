"""Runs under the real manager: a whole crew in one engine, over kills too."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from crew_desk import MODEL, as_killed, returns, spec

from engine.agents.kinds import ErrorCode, HandoffState
from engine.agents.spec import AgentSpec
from engine.crew.crew import Crew
from engine.domain import crew_commands as cc
from engine.domain.command import Receipt
from engine.engine import Engine, EngineConfig
from engine.models import Endpoint, Retries
from engine.models.choice import ModelChoice
from tests.engine.engine_flight import journal_holds_together
from tests.messages_server import MessagesServer, Reply, object_call
from tests.messages_server.server import Seen

CLEAR = dict.fromkeys(("what", "who", "success"), "Support queue is 4 hours behind")
STEPS = [{"id": "a", "title": "A", "required": True}, {"id": "b", "title": "B", "depends_on": ["a"]}]
WIZARD = spec("bmc-wizard", "guided", steps=STEPS)


class Whole:
    """An engine with its crew and the scripted model."""

    def __init__(self, engine: Engine, crew: Crew, server: MessagesServer) -> None:
        self.engine, self.crew, self.server = engine, crew, server

    async def do(self, command: Any) -> Receipt:
        receipt = await self.engine.submit(command)
        assert receipt.ok, receipt.message
        return receipt

    async def hand(self, to: str) -> str:
        return str((await self.do(cc.Delegate(to=to, task="go", clarity=CLEAR))).data["handoff"])

    async def holds(self, what: Callable[[], object]) -> None:
        async with asyncio.timeout(10):
            while not what():
                await asyncio.sleep(0.002)

    async def move(self, handoff: str, move: str, **more: Any) -> None:
        """A move of a guided handoff, once it is asked for; returns when it was made."""
        await self.holds(lambda: self.crew.state.open_requests(handoff))
        before = self.crew.state.open_requests(handoff)[0].id
        await self.do(cc.GuidedMove(handoff=handoff, move=move, **more))

        def made() -> bool:
            found = self.crew.state.handoffs[handoff]
            return not found.open or [one.id for one in self.crew.state.open_requests(handoff)] not in (
                [],
                [before],
            )

        await self.holds(made)


@asynccontextmanager
async def whole(
    workspace: Path, specs: Sequence[AgentSpec], answer: Callable[[Seen], Reply]
) -> AsyncIterator[Whole]:
    async with MessagesServer([answer], repeat=True) as server:
        choice = ModelChoice(Endpoint(server.url, "sk-test"), MODEL, retries=Retries(attempts=1))
        engine = await Engine.open(workspace, config=EngineConfig(model=choice))
        try:
            made = Whole(engine, await engine.crew(), server)
            for one in specs:
                await made.do(cc.RegisterAgent(spec=one.model_dump(mode="json")))
            yield made
        finally:
            await engine.close()
    await journal_holds_together(workspace)


async def test_three_levels_of_delegation_come_back_through_the_manager(tmp_path: Path) -> None:
    """Line 9, with runs of the engine."""
    deep = spec("deep", "operator")
    middle = spec("middle", "operator", handoff={"routing": {"can_delegate_to": ["deep"]}})
    top = spec("top", "operator", handoff={"routing": {"can_delegate_to": ["middle"]}})

    def answer(seen: Seen) -> Reply:
        offered = {tool["name"]: tool for tool in seen.body["tools"]}
        if "delegate" in offered and "of the deep" not in seen.said():
            (to,) = offered["delegate"]["input_schema"]["properties"]["to"]["enum"]
            return object_call("delegate", to=to, task="find it out")
        return returns("it is of the deep")

    async with whole(tmp_path / "ws", [deep, middle, top], answer) as on:
        async with asyncio.timeout(15):
            result = await on.crew.wait(await on.hand("top"))
        assert result.output == "it is of the deep"
        assert result.usage.calls >= 2
        assert [one.state for one in on.crew.state.handoffs.values()] == [HandoffState.COMPLETED] * 3


async def test_what_the_operator_says_reaches_the_holder_of_the_floor(tmp_path: Path) -> None:
    larry = spec("larry", "role")
    async with whole(tmp_path / "ws", [larry], lambda _: Reply(text="Who has the problem?")) as on:
        await on.do(cc.Transfer(to="larry"))
        await on.holds(on.crew.state.open_requests)
        await on.do(cc.Say(text="everybody"))
        await on.holds(lambda: len(on.server.requests) > 1)
        assert "operator: everybody" in on.server.requests[1].said()
        await on.do(cc.CancelHandoff())
        assert not list(on.crew.state.open())


async def test_after_a_kill_phases_and_steps_go_on_and_what_failed_runs_no_more(tmp_path: Path) -> None:
    """Line 19, with runs of the engine."""
    one = spec("one", "operator")
    phases = [
        {"id": "p", "name": "P", "inputs": ["task"], "outputs": ["x"]},
        {"id": "q", "name": "Q", "inputs": ["x"], "outputs": ["y"]},
    ]
    pipe = spec("pipe", "pipeline", phases=phases, model={"thinking": "off"})

    def before(seen: Seen) -> Reply:
        if "You are One" in seen.said() or "The phase Q" in seen.said():
            return Reply(text="half", then="hold", after=4)
        return object_call("checkpoint", outputs={"x": "1"})

    def after(seen: Seen) -> Reply:
        assert "The phase Q" in seen.said()
        return object_call("checkpoint", outputs={"y": "2"})

    async with whole(tmp_path / "ws", [WIZARD, pipe, one], before) as on:
        wizard, line, single = [await on.hand(name) for name in ("bmc-wizard", "pipe", "one")]
        await on.move(wizard, "answer", value="shops")
        await on.holds(lambda: len(on.server.requests) == 3)
        await on.holds(lambda: on.crew.state.handoffs[wizard].state.value == "waiting_human")
        await on.crew.spine.commit()
        as_killed(tmp_path / "ws", tmp_path / "killed")
        await on.do(cc.CancelHandoff())
    async with whole(tmp_path / "killed", [], after) as on:
        found = {name: on.crew.state.handoffs[name] for name in (wizard, line, single)}
        assert [one.state.value for one in found.values()] == ["waiting_human", "paused", "failed"]
        assert found[single].result is not None
        assert found[single].result.error_code is ErrorCode.INTERNAL
        await on.holds(lambda: not on.engine._agents["one-1"].state.open_goals)
        await on.do(cc.ResumeHandoff(handoff=line))
        async with asyncio.timeout(15):
            assert (await on.crew.wait(line)).data == {"x": "1", "y": "2"}
        await on.do(cc.ResumeHandoff(handoff=wizard))
        await on.move(wizard, "skip", reason="not now")
        await on.move(wizard, "back")
        await on.move(wizard, "finish")
        async with asyncio.timeout(15):
            assert (await on.crew.wait(wizard)).data == {"a": "shops"}
