"""Runs under the real manager: a whole crew in one engine, over kills too."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

from crew_desk import returns, spec
from whole_crew import whole

from engine.agents.kinds import ErrorCode, HandoffState
from engine.domain import crew_commands as cc
from tests.messages_server import Reply, object_call
from tests.messages_server.server import Seen

STEPS = [{"id": "a", "title": "A", "required": True}, {"id": "b", "title": "B", "depends_on": ["a"]}]
WIZARD = spec("bmc-wizard", "guided", steps=STEPS)


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
        shutil.copytree(tmp_path / "ws", tmp_path / "killed")  # what a kill leaves
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
