"""What the worker does for the manager: ending runs, following them, taking them up again, counting."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from crew_desk import SmallDesk, opened, returns, scene, spec, task

from engine.agent.steering.rules import PRESETS
from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.agents import RunState
from engine.crew.ontology.kinds import ErrorCode
from engine.crew.ontology.results import HandoffResult
from engine.crew.ports import HandoffError
from tests.messages_server import Reply, failure, object_call
from tests.messages_server.server import Seen
from tests.patience import PATIENCE_S

ONE = spec("one-1", "operator")
CHILD = spec("child", "operator")
TOP = spec("top", "operator", handoff={"routing": {"can_delegate_to": ["child"]}})


async def test_cancelling_ends_the_child_and_its_request_before_anything_else_runs(tmp_path: Path) -> None:
    """Line 13, of the runs: no task, no request, and the streamed text is there to be kept."""

    def answer(seen: Seen) -> Reply:
        if "You are Child" in seen.said():
            return Reply(text="half a thought", then="hold", after=4)
        return object_call("delegate", to="child", task="do it")

    async with scene(tmp_path, SmallDesk(TOP, CHILD), answer) as on:
        handing = asyncio.create_task(on.desk.hand(task(TOP), TOP))
        async with asyncio.timeout(PATIENCE_S):
            await on.server.held.wait()
        await on.holds(lambda: on.desk.runs.streamed("child-1"))
        handing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await handing
        await on.server.emptied()
        assert "half a thought".startswith(on.desk.runs.streamed("child-1"))
        for run in ("top-1", "child-1"):
            state = await on.state(run)
            assert (state.run, state.open_goals, state.action) == (RunState.STOPPED, [], None)
        assert on.desk.at_once == 0


async def test_the_operator_cuts_a_parents_action_and_the_child_ends_with_it(tmp_path: Path) -> None:
    def answer(seen: Seen) -> Reply:
        if "You are Child" in seen.said():
            return Reply(text="half a thought", then="hold", after=4)
        return object_call("delegate", to="child", task="do it")

    async with scene(tmp_path, SmallDesk(TOP, CHILD), answer) as on:
        run = await on.desk.begin(task(TOP), TOP)
        async with asyncio.timeout(PATIENCE_S):
            await on.server.held.wait()
        await on.engine.submit(cmd.Stop(agent=run, grade="cancel"))
        await on.holds(lambda: not on.engine._agents["child-1"].state.open_goals)
        await on.server.emptied()
        assert (await on.state("child-1")).run is RunState.STOPPED
        await on.desk.runs.stop(run, "over")


async def test_a_model_that_cannot_be_reached_ends_the_run_with_its_code(tmp_path: Path) -> None:
    async with scene(tmp_path, SmallDesk(ONE), lambda _: failure(529, "overloaded_error")) as on:
        result = await on.hand(ONE)
        assert (result.success, result.error_code) == (False, ErrorCode.RATE_LIMIT)


async def test_what_the_engine_asks_about_a_run_is_told_and_so_is_that_it_goes_on(tmp_path: Path) -> None:
    script = [object_call("simple_coder__write", path="a.txt", content="x"), returns()]
    writer = spec("writer", "operator", tools={"local": ["simple_coder.write"]})
    async with scene(tmp_path, SmallDesk(writer), script, approvals=PRESETS["ask-changes"]) as on:
        context = task(writer)
        run = await on.desk.begin(context, writer)
        await on.holds(lambda: on.desk.waiting or on.desk.results[context.handoff_id].done())
        assert "write" in on.desk.waiting[run]
        await on.engine.submit(cmd.AnswerApproval(agent=run, allow=True))
        async with asyncio.timeout(PATIENCE_S):
            assert (await on.desk.results[context.handoff_id]).success
        await on.holds(lambda: on.desk.went_on == [run])


async def test_ids_are_the_specs_with_a_number_and_a_run_that_ended_is_not_taken_up_again(
    tmp_path: Path,
) -> None:
    digits = spec("5-whys", "operator")
    long = spec("a-very-long-name-of-an-agent-that-does-not-fit", "operator")
    specs = (ONE, ONE, digits, long)
    async with scene(tmp_path, SmallDesk(ONE, digits, long), [returns()] * 4) as on:
        await asyncio.gather(*(on.hand(one) for one in specs))
        runs = sorted(on.desk.handoffs)
        assert runs == ["a-5-whys-1", "a-very-long-name-of-an-agent-t-1", "one-1-1", "one-1-2"]
        for run in runs:
            await on.over(run)
        config, desk = on.engine.config, on.desk
    async with opened(tmp_path / "ws", desk, config) as engine:
        assert engine.agents == ()
        with pytest.raises(HandoffError, match="cannot go on"):
            await desk.runs.resume(desk.handoffs["one-1-1"])


async def test_a_run_needs_a_brief_that_fits_its_type(tmp_path: Path) -> None:
    async with scene(tmp_path, SmallDesk(ONE)) as on:
        made = await on.engine.submit(cmd.CreateAgent(agent="x", agent_type="operator", config={}))
        assert (made.ok, "spec: a JSON object is needed" in made.message) == (False, True)
        config = {"spec": ONE.model_dump(mode="json"), "handoff": task(ONE).model_dump(mode="json")}
        made = await on.engine.submit(cmd.CreateAgent(agent="x", agent_type="role", config=config))
        assert "that of a operator, not of a role" in made.message
        config["thinker"] = "claude"
        made = await on.engine.submit(cmd.CreateAgent(agent="x", agent_type="operator", config=config))
        assert "leave its thinker out" in made.message


async def test_the_tool_crew_is_for_runs_alone(tmp_path: Path) -> None:
    async with scene(tmp_path, SmallDesk(ONE)) as on:
        assert not [entry for entry in on.engine.registry.schemas() if entry["tool"] == "crew"]
        await on.engine.submit(cmd.CreateAgent(agent="pilot"))
        await on.engine.submit(cmd.CallTool(agent="pilot", tool="crew", command="ask", args={}))
        pilot = on.engine._agents["pilot"].state
        await on.holds(lambda: pilot.operator_actions and pilot.action is None)
        (ended,) = await on.payloads(ev.ActionFinished, "pilot")
        assert "works on no handoff" in ended.summary


async def test_a_result_that_comes_too_late_asks_no_model_again(tmp_path: Path) -> None:
    gate = asyncio.Event()

    async with scene(tmp_path, SmallDesk(ONE), [returns()]) as on:
        accept = on.desk.accept

        async def slow(run: str, result: HandoffResult) -> None:
            await gate.wait()
            await accept(run, result)

        on.desk.accept = slow  # type: ignore[method-assign]
        context = task(ONE)
        run = await on.desk.begin(context, ONE)
        await on.holds(lambda: on.engine._agents[run].state.acting)
        await on.desk.ended(run, ok=True, text="the operator took it over")
        gate.set()
        assert (await on.over(run)).goals["g1"].ending[0] == "dropped"
        assert [result.output for result in on.desk.late] == ["Churn comes from onboarding."]
        assert len(on.server.requests) == 1
