"""Memory as a tool of running agents: the workflow of the goal at hand, and what is another agent's."""

from __future__ import annotations

from typing import Any

from engine_flight import Flight

from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.actions import ErrorCode
from engine.core.goals import GoalStatus
from engine.planning.thinkers.offered import OfferedCommands


def remember(command: str, /, **args: Any) -> dict[str, Any]:
    return {"type": "EXECUTE_TOOL", "params": {"tool_id": "memory", "command": command, "args": args}}


async def called(flight: Flight, command: str, agent: str = "pilot", **args: Any) -> Any:
    """Have the operator call memory through the agent; what it answered."""
    await flight.do(cmd.CallTool, agent=agent, tool="memory", command=command, args=args)
    await flight.until(lambda s: not s.requests and s.action is None, agent)
    return (await flight.payloads(ev.ActionFinished, agent))[-1]


async def workflow(flight: Flight, goal: str, agent: str = "pilot") -> str:
    await flight.until_durable(agent)
    await flight.engine.kept()
    found: str = await flight.engine.recall("find_workflow", {"agent": agent, "goal": goal})
    return found


async def test_an_agent_remembers_in_the_workflow_of_its_goal_without_naming_it(flight: Flight) -> None:
    await flight.plan(
        remember("think", content="the ice is near", thought_type="decision"),
        remember("store", content="the drill needs oil", memory_type="fact"),
        remember("store_memory", content="by the seed's name", memory_type="fact"),
        remember("working"),
    )
    await flight.do(cmd.Run, ask=False)
    state = await flight.until(lambda s: not s.open_goals)
    assert state.goals["g1"].status is GoalStatus.ACHIEVED
    ident = await workflow(flight, "g1")
    found = await flight.engine.recall("query", {"workflow_id": ident, "memory_type": "fact"})
    assert {one.memory.content for one in found} == {"the drill needs oil", "by the seed's name"}
    # Asking memory is no deed that memory would tell of, and what is written follows from the action.
    assert await flight.engine.recall("actions", {"workflow_id": ident}) == ()
    starts = {one.ref for one in await flight.events() if one.kind == "action.started"}
    log = [one async for one in flight.engine.events(stream="workspace@memory", follow=False)]
    assert {one.causes[0] for one in log if one.kind == "memory.stored" and one.causes[0] in starts}
    assert all(one.causes for one in log)


async def test_another_agents_workflow_is_read_and_not_written(flight: Flight) -> None:
    await flight.plan(remember("store", content="mine alone", memory_type="fact"))
    await flight.do(cmd.Run, ask=False)
    await flight.until(lambda s: not s.open_goals)
    mine = await workflow(flight, "g1")
    (found,) = await flight.engine.recall("query", {"workflow_id": mine, "memory_type": "fact"})
    await flight.do(cmd.CreateAgent, agent="rival")
    flight.agent = "rival"
    steps = await flight.plan(
        remember("search", query="mine", workflow_id=mine),
        remember("update", memory_id=found.memory.id, content="not any more"),
    )
    await flight.do(cmd.Run, ask=False)
    await flight.until(lambda s: not s.open_goals)
    read, *writes = await flight.payloads(ev.ActionFinished)
    assert len(steps) == 2
    assert read.result["items"][0]["memory"]["content"] == "mine alone"
    assert {one.code for one in writes} == {ErrorCode.NOT_ALLOWED}
    assert "workflow of pilot: rival may read it" in writes[0].summary
    flight.agent = "pilot"


async def test_without_a_goal_a_workflow_has_to_be_named(flight: Flight) -> None:
    answer = await called(flight, "think", content="where am I?")
    assert answer.code is ErrorCode.BAD_ARGUMENTS
    assert "name one" in answer.summary


async def test_an_operators_word_goes_to_the_workflow_of_the_agents_goal(flight: Flight) -> None:
    await flight.do(cmd.AdoptGoal, text="list the files")
    await flight.until(lambda s: s.goal_at_hand)
    told = {"content": "mind the gap", "memory_type": "user_input"}
    receipt = await flight.do(cmd.Remember, verb="store", arguments=told)
    assert receipt.data["workflow"] == await workflow(flight, "g1")


async def test_what_a_planner_is_offered_of_memory_is_short(flight: Flight) -> None:
    offered = [one for one in flight.engine.registry.schemas() if one["tool"] == "memory"]
    assert len(offered) <= 25
    lines = [command.line for command in OfferedCommands(flight.engine.registry).all]
    assert sum(map(len, lines)) < 8_000
    assert "idempotency" not in str(lines)
