"""Messages to an agent that thinks or acts: when they are taken up, and what it is shown that they led to."""

from __future__ import annotations

from pathlib import Path

from engine_flight import Flight, python
from helm_flight import action, helm, told

from app.projection.metacognition_views import taken_up
from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.actions import ResultStatus
from engine.core.goals import GoalStatus
from engine.core.state import AgentState
from tests.messages_server import Reply, call, object_call, plan_call

HELD = Reply(text="I think that " * 20, after=6, then="hold")
WRITES = plan_call(action("one", "write", path="b.txt", content="x"))
SLOW = python("import os, time\nwhile not os.path.exists('go'): time.sleep(0.02)")


def achieved(state: AgentState) -> bool:
    return state.goals["g1"].status is GoalStatus.ACHIEVED


async def begins(flight: Flight) -> None:
    await flight.do(cmd.AdoptGoal, text="write a file")
    await flight.do(cmd.Run)


async def test_now_cuts_a_thought_off_and_the_next_prompt_has_it(tmp_path: Path) -> None:
    async with helm(tmp_path, HELD, WRITES) as (flight, server):
        await begins(flight)
        await server.held.wait()
        await flight.do(cmd.Guide, text="call it b.txt", when="now")
        await flight.until(achieved)
        assert len(server.requests) == 2
        assert "call it b.txt" in told(server, 1)
        (message,) = (await flight.state()).meta.told
        answer = await flight.engine.store.get(message.led)
        assert taken_up(await flight.state(), message, answer) == (
            f"taken up by {message.led}: a plan of 1 step"
        )


async def test_after_lets_the_thought_be_finished_and_has_the_plan_made_anew(tmp_path: Path) -> None:
    first = plan_call(action("one", "write", path="a.txt", content="x"), action("two", "ls"))
    async with helm(tmp_path, first, WRITES) as (flight, server):
        await flight.do(cmd.AdoptGoal, text="write a file")
        await flight.do(cmd.Step)
        await flight.until(lambda s: s.actions == 1)
        await flight.do(cmd.Guide, text="then b.txt", when="after")
        assert len(server.requests) == 1
        await flight.do(cmd.Run)
        await flight.until(achieved)
        assert "then b.txt" in told(server, 1)
        assert (flight.sandbox / "a.txt").exists()
        assert (flight.sandbox / "b.txt").exists()


async def test_a_tool_that_runs_is_not_cancelled(tmp_path: Path) -> None:
    async with helm(tmp_path, plan_call(SLOW, action("two", "ls")), WRITES) as (flight, server):
        await begins(flight)
        await flight.until(lambda s: s.acting)
        await flight.do(cmd.Guide, text="call it b.txt", when="now")
        assert (await flight.state()).acting
        (flight.sandbox / "go").write_text("")
        await flight.until(achieved)
        results = [result.status for result in await flight.payloads(ev.ActionFinished)]
        assert results == [ResultStatus.SUCCESS] * 2
        assert len(server.requests) == 2
        assert "call it b.txt" in told(server, 1)


async def test_what_waits_for_the_next_plan_has_none_made(tmp_path: Path) -> None:
    async with helm(tmp_path, plan_call(SLOW, action("two", "ls")), WRITES) as (flight, server):
        await begins(flight)
        await flight.until(lambda s: s.acting)
        await flight.do(cmd.Guide, text="be brief", when="plan")
        (flight.sandbox / "go").write_text("")
        state = await flight.until(achieved)
        assert len(server.requests) == 1
        (message,) = state.meta.messages
        assert taken_up(state, message) == "not taken up yet; it waits: in the next plan"
        await flight.do(cmd.AdoptGoal, text="another one")
        await flight.until(lambda s: s.goals["g2"].status is GoalStatus.ACHIEVED)
        assert "be brief" in told(server, 1)


async def test_a_message_in_a_prompt_that_was_cut_off_is_in_the_next_one_again(tmp_path: Path) -> None:
    async with helm(tmp_path, HELD, HELD, WRITES) as (flight, server):
        await begins(flight)
        await server.held.wait()
        server.held.clear()
        await flight.do(cmd.Guide, text="first word", when="now")
        await server.held.wait()
        await flight.do(cmd.Guide, text="second word", when="now")
        await flight.until(achieved)
        last = told(server, 2)
        assert "first word" in last
        assert "second word" in last
        assert all(message.led for message in (await flight.state()).meta.told)


async def test_a_model_that_decides_is_interrupted_and_decides_anew(tmp_path: Path) -> None:
    write = call("simple_coder__write", {"path": "b.txt", "content": "x"})
    script = (HELD, write, object_call("finish", summary="done"))
    async with helm(tmp_path, *script, config={"style": "decide"}) as (flight, server):
        await begins(flight)
        await server.held.wait()
        await flight.do(cmd.Guide, text="call it b.txt", when="now")
        await flight.until(achieved)
        assert "call it b.txt" in told(server, 1)
        assert (flight.sandbox / "b.txt").exists()
