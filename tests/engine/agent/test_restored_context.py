"""What prompts leave out is said, and brought back whole until the operator lets it go."""

from __future__ import annotations

from pathlib import Path

from engine_flight import Flight
from helm_flight import action, helm, told

from engine.agent.steering.left_out import left_out
from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.goals import GoalStatus
from engine.core.restored import RESTORED_LIMIT
from engine.core.state import AgentState
from tests.messages_server import object_call, plan_call

BIG = "\n".join(f"line {number}" for number in range(3_000))
"""Twenty-odd thousand characters: more than a prompt shows of an answer."""
NEEDLE = "line 2222"
DONE = object_call("finish", summary="read")
READ = object_call("simple_coder__read", path="big.txt")


def achieved(state: AgentState) -> bool:
    return state.goals["g1"].status is GoalStatus.ACHIEVED


async def begun(flight: Flight, content: str = BIG) -> None:
    flight.sandbox.mkdir(exist_ok=True)
    (flight.sandbox / "big.txt").write_text(content)
    await flight.do(cmd.AdoptGoal, text="read big.txt")


async def test_a_cut_answer_is_named_brought_back_whole_and_let_go(tmp_path: Path) -> None:
    script = (
        READ,
        *(object_call("record_thought", content=f"thought {number}") for number in range(2)),
        DONE,
    )
    async with helm(tmp_path, *script, config={"style": "decide"}) as (flight, server):
        await begun(flight)
        for _ in range(2):
            await flight.do(cmd.Step)
            await flight.until(lambda s: not s.grants)
        state = await flight.until(lambda s: s.actions == 1 and not s.acting)
        (dropped,) = left_out(state)
        assert dropped.what == "a1"
        assert "its answer is cut (" in dropped.about
        receipt = await flight.do(cmd.RestoreContext, what="a1", text="forged")
        assert "tokens" in receipt.message
        assert not list(left_out(await flight.state()))
        (back,) = (await flight.state()).restored
        assert NEEDLE in back.text
        assert back.tokens > 5_000
        asked = len(server.requests)
        await flight.do(cmd.Step)
        await flight.until(lambda _s: len(server.requests) > asked)
        assert NEEDLE in told(server, asked)
        assert "forged" not in told(server, asked)
        await flight.until(lambda s: not s.grants)
        await flight.do(cmd.ReleaseContext, what="a1")
        await flight.do(cmd.Run)
        await flight.until(achieved)
        assert NEEDLE not in told(server, -1)
        assert [
            shared
            for call in await flight.payloads(ev.ModelCalled)
            for shared in call.shares
            if "a1" in shared
        ]


async def test_a_plan_made_anew_has_what_was_brought_back_and_what_is_large_is_cut_in_its_middle(
    tmp_path: Path,
) -> None:
    plans = plan_call(action("one", "read", path="big.txt")), plan_call(action("one", "ls"))
    async with helm(tmp_path, *plans) as (flight, server):
        await begun(flight, "x" * 30_000 + NEEDLE + "y" * 100_000 + "the end")
        await flight.do(cmd.Run)
        await flight.until(achieved)
        await flight.do(cmd.RestoreContext, what="a1")
        (back,) = (await flight.state()).restored
        assert RESTORED_LIMIT <= len(back.text) <= RESTORED_LIMIT + 100
        assert "the end" in back.text
        await flight.do(cmd.AdoptGoal, text="another one")
        await flight.until(lambda s: s.goals["g2"].status is GoalStatus.ACHIEVED)
        assert "the end" in told(server, 1)
        assert "brought back by the operator: the answer to a1 read big.txt" in told(server, 1)


async def test_what_there_is_not_is_refused_and_so_is_too_much(tmp_path: Path) -> None:
    async with helm(tmp_path, holds_together=False) as (flight, _server):
        assert "there is no action or belief 'a9'" in await flight.refused(cmd.RestoreContext, what="a9")
        assert "not brought back" in await flight.refused(cmd.ReleaseContext, what="a9")
        for number in range(8):
            await flight.do(cmd.Believe, key=f"k{number}", value="x" * 700)
            await flight.do(cmd.RestoreContext, what=f"k{number}")
        await flight.do(cmd.Believe, key="k8", value="y" * 700)
        assert [each.what for each in left_out(await flight.state())] == ["k8"]
        assert "unpin one first" in await flight.refused(cmd.RestoreContext, what="k8")


async def test_an_agent_without_a_model_has_no_prompts(flight: Flight) -> None:
    assert "no thinker" in await flight.refused(cmd.RestoreContext, what="a1")
