"""What agents did, kept in memory from the journal: once, whole, under the name of who did it."""

from __future__ import annotations

import json
from typing import Any

from engine_flight import Flight, act, python
from test_subgoals import CLEAN, POLISH

from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.memory import ActionStatus, ArtifactType, MemoryLevel, ThoughtType, Workflow, WorkflowStatus
from engine.memory.requests import Request, View
from engine.memory.tables import WORKFLOWS
from engine.memory.workflows import ChainWithThoughts, GetArtifacts, GetRecentActions


class ListWorkflows(Request[tuple[Workflow, ...]]):
    """All workflows."""

    def answer(self, view: View) -> tuple[Workflow, ...]:
        return tuple(view.reading.many(WORKFLOWS))


async def workflow(flight: Flight, goal: str) -> str:
    await flight.until_durable("pilot")
    await flight.engine.kept()
    found: str = await flight.engine.recall("find_workflow", {"agent": "pilot", "goal": goal})
    return found


async def thoughts(flight: Flight, ident: str) -> list[tuple[str, str]]:
    await flight.engine.kept()
    memory = flight.engine.memory
    assert memory is not None
    writer = memory._opening.result().writer
    chain = (await writer.write(lambda unit: unit.reading.first_chain(ident))).answer
    told: ChainWithThoughts = await flight.engine.recall("chain", {"thought_chain_id": chain.id})
    return [(one.type, one.content) for one in told.thoughts]


async def memories(flight: Flight, ident: str, **how: Any) -> list[Any]:
    await flight.engine.kept()
    found = await flight.engine.recall("query", {"workflow_id": ident, "limit": 100, **how})
    return [one.memory for one in found]


async def flown(flight: Flight, *actions: dict[str, Any]) -> str:
    """Fly a plan to the end of its goal; the goal's workflow."""
    await flight.plan(*actions)
    await flight.do(cmd.Run, ask=False)
    state = await flight.until(lambda s: not s.open_goals)
    return await workflow(flight, list(state.goals)[-1])


async def test_a_root_goal_is_a_workflow_with_a_goal_thought_and_ends_with_it(flight: Flight) -> None:
    ident = await flown(flight, act("mkdir", path="a"))
    (made,) = [one for one in await flight.engine.recall(ListWorkflows()) if one.id == ident]
    assert (made.title, made.goal, made.status) == (
        "list the files",
        "list the files",
        WorkflowStatus.COMPLETED,
    )
    assert made.metadata == {"agent": "pilot", "goal": "g1"}
    told = await thoughts(flight, ident)
    assert told[0] == (ThoughtType.GOAL, "list the files")
    assert told[-1] == (ThoughtType.SUMMARY, "Goal achieved: Directory created/ensured at a")
    assert (ThoughtType.PLAN, "Plan:\n1. List .") in told


async def test_actions_are_kept_with_arguments_result_and_times(flight: Flight) -> None:
    ident = await flown(flight, act("mkdir", path="a"), python("print('x' * 40_000)"))
    newest, older = await flight.engine.recall(GetRecentActions(workflow_id=ident))
    assert (older.tool, older.args, older.status) == (
        "simple_coder.mkdir",
        {"path": "a"},
        ActionStatus.COMPLETED,
    )
    whole = json.loads(await flight.engine.blobs.get(newest.result.blob))
    assert whole["stdout"].strip() == "x" * 40_000
    (finished,) = [one for one in await flight.payloads(ev.ActionFinished) if one.blob]
    assert newest.result.blob == finished.blob
    events = {event.ref: event for event in await flight.events()}
    starts = [event for event in events.values() if event.kind == "action.started"]
    log = [one async for one in flight.engine.events(stream="workspace@memory", follow=False)]
    recorded = [one for one in log if one.kind == "memory.action_recorded"]
    assert [(one.at, one.actor, one.causes) for one in recorded] == [
        (event.at, "agent", (event.ref,)) for event in starts
    ]


async def test_a_failed_action_matters_more_and_one_cut_off_less(flight: Flight) -> None:
    await flown(flight, python("raise SystemExit(3)"))
    await flight.do(
        cmd.CallTool, command="run", args={"command": ["python", "-c", "import time; time.sleep(60)"]}
    )
    await flight.until(lambda s: s.action is not None and s.action.started)
    await flight.do(cmd.Stop)
    await flight.until(lambda s: s.action is None)
    failed = await memories(flight, await workflow(flight, "g1"), memory_type="action_log")
    assert {one.importance for one in failed} == {6.0}
    assert {one.level for one in failed} == {MemoryLevel.EPISODIC}
    (cut,) = await memories(flight, await workflow(flight, ""), memory_type="action_log")
    assert cut.importance == 4.0
    (action,) = await flight.engine.recall(GetRecentActions(workflow_id=await workflow(flight, "")))
    assert (action.status, action.summary[:7]) == (ActionStatus.SKIPPED, "cut off")


async def test_a_written_file_is_an_artifact_by_its_path_and_small_ones_by_their_text(flight: Flight) -> None:
    ident = await flown(
        flight,
        act("mkdir", path="src"),
        act("cd", path="src"),
        act("write", path="main.py", content="print(1)\n"),
        act("write", path="big.txt", content="y" * 9_000),
        act("append", path="main.py", content="print(2)\n"),
    )
    found = {
        (one.path, one.type, one.content.text if one.content else None)
        for one in await flight.engine.recall(GetArtifacts(workflow_id=ident))
    }
    assert found == {
        ("src/main.py", ArtifactType.CODE, "print(1)\n"),
        ("src/main.py", ArtifactType.CODE, None),
        ("src/big.txt", ArtifactType.TEXT, None),
    }


async def test_what_the_operator_does_is_recorded_as_theirs(flight: Flight) -> None:
    await flight.engine.submit(cmd.CallTool(agent="pilot", command="ls", args={}), operator="ada")
    await flight.until(lambda s: not s.requests and s.action is None)
    await flight.engine.kept()
    log = [one async for one in flight.engine.events(stream="workspace@memory", follow=False)]
    assert {one.actor for one in log} == {"operator:ada"}


async def test_sub_goals_belong_to_the_workflow_of_their_root(flight: Flight) -> None:
    recipes = flight.workspace / "recipes"
    recipes.mkdir()
    (recipes / "work.toml").write_text(POLISH + CLEAN % "polish the {thing}")
    await flight.reopen()
    await flight.do(cmd.AdoptGoal, text="clean the ship")
    await flight.do(cmd.Run)
    state = await flight.until(lambda s: len(s.goals) > 1 and not s.open_goals)
    idents = {await workflow(flight, goal) for goal in state.goals}
    assert len(idents) == 1
    (made,) = await flight.engine.recall(ListWorkflows())
    assert made.id in idents
    kinds = [kind for kind, _ in await thoughts(flight, made.id)]
    assert kinds.count(ThoughtType.GOAL) == len(state.goals)


async def test_a_goal_dropped_or_lost_with_its_agent_is_an_abandoned_workflow(flight: Flight) -> None:
    await flight.do(cmd.AdoptGoal, text="list the files")
    await flight.do(cmd.AdoptGoal, text="create a directory 'x'")
    await flight.do(cmd.DropGoal, goal="g1")
    await flight.engine.kept()
    by_goal = {one.metadata["goal"]: one.status for one in await flight.engine.recall(ListWorkflows())}
    assert by_goal == {"g1": WorkflowStatus.ABANDONED, "g2": WorkflowStatus.ACTIVE}
    await flight.do(cmd.DeleteAgent)
    await flight.engine.kept()
    assert {one.status for one in await flight.engine.recall(ListWorkflows())} == {WorkflowStatus.ABANDONED}


async def test_what_a_session_left_unwritten_the_next_one_writes(flight: Flight) -> None:
    """Also from a journal that was written when there was no memory yet."""
    ident = await flown(flight, act("write", path="a", content="1"))
    await flight.engine.close()
    (flight.workspace / ".pilothouse" / "memory.db").unlink()
    await flight.open()
    assert await workflow(flight, "g1") == ident
    assert len(await flight.engine.recall(ListWorkflows())) == 1
    assert (flight.engine.health.memory, flight.engine.health.memory_behind) == ("", 0)


async def test_hostile_arguments_are_kept_as_text(flight: Flight) -> None:
    await flight.do(cmd.CallTool, command="write", args={"path": "\x1b[2J\udcff", "content": "x" * 100_000})
    await flight.do(cmd.CallTool, command="read", args={"path": "\x00"})
    await flight.until(lambda s: not s.requests and s.action is None)
    await flight.engine.kept()
    found = await flight.engine.recall(GetRecentActions(workflow_id=await workflow(flight, "")))
    assert len(found) == 2
    assert all(one.status.terminal for one in found)
    assert flight.engine.health.memory == ""
