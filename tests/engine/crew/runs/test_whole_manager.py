"""The manager's lines of the checklist over a whole engine: limits, clocks, ends (ontology spec §6)."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from crew_desk import returns, spec
from whole_crew import CLEAR, asker, by_name, processes_below, told, whole

from engine.core import crew_commands as cc
from engine.core.journal import CREW
from engine.crew.ontology.kinds import ErrorCode, HandoffState
from tests.engine.crew.flight import HandClock
from tests.messages_server import MessagesServer, Reply, object_call
from tests.messages_server.server import Seen
from tests.patience import PATIENCE_S

D = HandoffState
HALF = Reply(text="half a thought", then="hold", after=4)
"""Says so much and then nothing more."""


def may(*ids: str, **more: Any) -> dict[str, Any]:
    return {"handoff": {"routing": {"can_delegate_to": list(ids)}, **more}}


async def test_one_model_call_at_a_time_is_enough_for_three_levels(tmp_path: Path) -> None:
    """Lines 9 and 10, with runs that ask a model: who is above is not even offered below."""
    most = 0

    def answer(seen: Seen) -> Reply:
        nonlocal most
        most = max(most, on.crew.permits.in_use)
        below = {"Top": "middle", "Middle": "deep"}.get(asker(seen))
        if below is None:
            return returns("it is of the deep")
        if "it is of the deep" in told(seen):
            return returns(f"{asker(seen)} heard: it is of the deep")
        return object_call("delegate", to=below, task="find it out")

    specs = [
        spec("deep", "operator", **may("top", "middle")), spec("middle", "operator", **may("deep")),
        spec("top", "operator", **may("middle")),
    ]  # fmt: skip
    async with whole(tmp_path / "ws", specs, answer, calls=1) as on:
        result = await on.result(await on.hand("top"))
        assert result.output == "Top heard: it is of the deep"
        assert (most, len(on.server.requests)) == (1, 5)
        assert "delegate" not in {tool["name"] for tool in on.asks("Deep")[0].body["tools"]}
        assert [one.context.lineage for one in on.crew.state.handoffs.values()] == [
            (), ("top",), ("top", "middle"),
        ]  # fmt: skip
        await on.at_rest()


async def test_a_child_ends_before_its_parent_and_a_question_stops_both_clocks(tmp_path: Path) -> None:
    """Line 11, with runs: one delegates, the other asks the operator and then thinks for too long."""
    clock = HandClock()

    def answer(seen: Seen) -> Reply:
        if asker(seen) == "Boss":
            if "hand: TIMEOUT" in told(seen):
                return returns("without it")
            return object_call("delegate", to="hand", task="find it out")
        asked = "escalate" in told(seen)
        return HALF if asked else object_call("escalate_to_operator", question="Which line is meant?")

    specs = [spec("hand", "operator"), spec("boss", "operator", **may("hand"))]
    async with whole(tmp_path / "ws", specs, answer, clock=clock) as on:
        name = await on.hand("boss", timeout_s=100)
        request = await on.asked()
        (child,) = on.crew.state.children(name)
        assert child.limit_s == 98
        clock.advance(5_000)
        await on.answer(request, text="line four")
        await on.server.held.wait()
        clock.advance(97)
        assert on.of(child.id).state is on.of(name).state is D.RUNNING
        clock.advance(1)
        assert (await on.result(child.id)).state is D.TIMED_OUT
        result = await on.result(name)
        assert (result.output, result.duration_seconds) == ("without it", 98)


async def test_what_was_streamed_when_the_time_was_over_is_kept(tmp_path: Path) -> None:
    """Line 12, with text that a server streams."""
    clock = HandClock()
    async with whole(tmp_path / "ws", [spec("one", "operator")], lambda _: HALF, clock=clock) as on:
        name = await on.hand("one", timeout_s=30)
        await on.server.held.wait()
        await on.holds(lambda: on.crew.handoffs.moves.worker.streamed("one-1") == "half a thought")  # type: ignore[union-attr]
        clock.advance(29)
        await asyncio.sleep(0)
        assert on.of(name).state is D.RUNNING
        clock.advance(1)
        # The clock stands from here: the five seconds for cleaning up do not pass.
        result = await on.result(name)
        assert (result.state, result.error_code) == (D.TIMED_OUT, ErrorCode.TIMEOUT)
        assert (result.output, result.partial) == ("half a thought", True)
        assert result.duration_seconds == 30
        await on.server.emptied()
        await on.at_rest()


async def test_a_cancelled_tree_leaves_no_task_no_process_and_no_question(tmp_path: Path) -> None:
    """Line 13, with a program in the sandbox, a model that is speaking and a question."""
    local = {"tools": {"local": ["simple_coder.run"]}}
    specs = [
        spec("top", "collaborative", **may("runner", "asker", "speaker", receives={"min_clarity": 0.0}),
             sub_agents=[{"id": one, "role": one} for one in ("runner", "asker", "speaker")]),
        spec("runner", "operator", **local), spec("asker", "operator"), spec("speaker", "operator"),
    ]  # fmt: skip
    waits = "import pathlib, time; pathlib.Path('began').write_text('x'); time.sleep(600)"
    says = {
        "Runner": object_call("simple_coder__run", command=["python", "-c", waits]),
        "Asker": object_call("escalate_to_operator", question="Which line is meant?"),
        "Speaker": HALF,
    }
    async with whole(tmp_path / "ws", specs, by_name(says)) as on:
        assert on.engine.memory is not None
        await on.engine.memory.ready()
        tasks = asyncio.all_tasks()
        name = await on.hand("top")
        await on.asked()
        await on.server.held.wait()
        await on.holds((on.engine.workspace / "sandbox" / "began").exists)
        assert processes_below(on.engine.workspace)
        await on.do(cc.CancelHandoff(handoff=name, reason="enough"))
        assert on.left() == []
        await on.server.emptied()
        # An agent of the engine stays, with nothing to do, as all agents do that have ended their goal.
        names = [one.get_name() for one in asyncio.all_tasks() - tasks]
        assert not [one for one in names if not one.startswith(("agent ", "memory keeper"))]
        assert {one.state for one in on.crew.state.handoffs.values()} == {D.CANCELLED}
        ends = [
            on.of(said["handoff"]).agent if "handoff" in (said := json.loads(event.body)) else "asked"
            for event in await on.engine.store.read(CREW)
            if event.kind in ("crew.handoff_ended", "crew.human_closed")
        ]
        assert ends[-1] == "top"
        assert ends.index("asked") < ends.index("asker")


async def test_who_is_cancelled_in_a_group_is_reported_so(tmp_path: Path) -> None:
    """Line 14, with runs of the engine."""
    specs = [spec(one, "operator") for one in ("alone", "quick", "slow")]
    says = {"Quick": returns("quick is back"), "Slow": HALF, "Alone": returns("alone is back")}
    says["Synthesizer"] = returns("[quick] and [alone] are back; slow is missing.")
    async with whole(tmp_path / "ws", specs, by_name(says)) as on:
        asked = cc.Parallel(to=("slow", "quick", "alone"), task="go", clarity=CLEAR)
        group = await on.do(asked)
        await on.server.held.wait()
        await on.do(cc.CancelHandoff(handoff=on.by("slow")[0].id))
        results = await on.results(group)
        assert [one.state for one in results] == [D.CANCELLED, D.COMPLETED, D.COMPLETED]
        assert (results[0].success, results[0].error_code) == (False, ErrorCode.CANCELLED)
        assert results[0].output == "half a thought"
        assert on.crew.state.groups[group.data["group"]].ok
        await on.at_rest()


async def test_what_the_operator_says_reaches_the_holder_of_the_floor(tmp_path: Path) -> None:
    async with whole(tmp_path / "ws", [spec("larry", "role")], lambda _: Reply(text="Who has it?")) as on:
        await on.do(cc.Transfer(to="larry"))
        await on.asked()
        await on.do(cc.Say(text="everybody"))
        await on.holds(lambda: len(on.server.requests) > 1)
        assert "operator: everybody" in told(on.server.requests[1])
        await on.do(cc.CancelHandoff())
        assert on.left() == []


HELD = Path(__file__).with_name("held_crew.py")


async def test_after_kill_9_everything_stands_where_it_can_go_on(tmp_path: Path) -> None:
    """Line 19, with a process that is killed."""

    def before(seen: Seen) -> Reply:
        if asker(seen) == "Pipe" and "The phase P" in told(seen):
            return object_call("checkpoint", outputs={"x": "1"})
        return HALF

    async with MessagesServer([before], repeat=True) as server:
        process = await asyncio.create_subprocess_exec(
            sys.executable, str(HELD), str(tmp_path / "ws"), server.url, stdout=asyncio.subprocess.PIPE
        )
        assert process.stdout is not None
        line = (await process.stdout.readline()).decode().split()
        process.kill()
        assert await process.wait() == -9
    wizard, pipe, single, late = line

    def after(seen: Seen) -> Reply:
        if asker(seen) == "Pipe":
            assert "The phase Q" in told(seen)
            return object_call("checkpoint", outputs={"y": "2"})
        assert asker(seen) == "Late"
        return returns("late, and there")

    async with whole(tmp_path / "ws", [], after) as on:
        assert on.of(single).state is D.FAILED
        ended = on.of(single).result
        assert ended is not None
        assert (ended.error_code, ended.error) == (ErrorCode.INTERNAL, "process ended")
        assert (on.of(pipe).state, on.of(wizard).state) == (D.PAUSED, D.WAITING_HUMAN)
        assert (await on.result(late)).output == "late, and there"
        await on.do(cc.ResumeHandoff(handoff=pipe))
        assert (await on.result(pipe)).data == {"x": "1", "y": "2"}
        assert (await on.asked(wizard)).title == "B"
        # A run of before does not go on by itself: the operator says when.
        await on.do(cc.ResumeHandoff(handoff=wizard))
        await on.move(wizard, "skip", reason="not now")
        await on.move(wizard, "finish")
        assert (await on.result(wizard)).data == {"a": "shops"}
        await on.holds(lambda: not on.run("one-1").open_goals)
        await on.at_rest()


async def test_as_many_handoffs_as_may_be_open_all_come_back_by_few_calls_at_a_time(tmp_path: Path) -> None:
    async with whole(tmp_path / "ws", [spec("scout", "operator")], lambda _: returns("found out")) as on:
        permits, most = on.crew.permits, 0
        held = permits.held

        @asynccontextmanager
        async def counted(handoff: str) -> AsyncIterator[None]:
            nonlocal most
            async with held(handoff):
                most = max(most, permits.in_use)
                yield

        permits.held = counted  # type: ignore[method-assign]
        handed = await asyncio.gather(*(on.hand("scout") for _ in range(32)))
        async with asyncio.timeout(PATIENCE_S):
            results = await asyncio.gather(*(on.crew.wait(one) for one in handed))
        assert {result.output for result in results} == {"found out"}
        assert {on.crew.state.handoffs[one].state for one in handed} == {HandoffState.COMPLETED}
        assert most == permits.limit == 4
        assert len(on.server.requests) == 32
