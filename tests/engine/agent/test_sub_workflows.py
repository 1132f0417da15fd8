"""Workflows that an agent begins for a goal: what belongs there, and whose end theirs is."""

from __future__ import annotations

import json
import re
from pathlib import Path

from helm_flight import helm

from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.goals import GoalStatus
from engine.core.plan import Op
from engine.core.recovery import OpenWorkflow
from engine.memory.note_writer import FindWorkflow
from engine.memory.workflows import GetRecentActions, GetWorkflow
from tests.messages_server import Reply, Seen, call, object_call

DECIDES = {"style": "decide"}
DONE = object_call("finish", summary="done")


def begin(title: str) -> Reply:
    return object_call("memory__begin_workflow", title=title)


def end(seen: Seen, status: str = "completed") -> Reply:
    """Ends the workflow that was begun before, by the id that the prompt tells."""
    (ident,) = set(re.findall(r'begin_workflow.*?\\"id\\":\\"(w\d+)\\"', json.dumps(seen.body["messages"])))
    return object_call("memory__set_workflow", workflow_id=ident, status=status)


async def test_the_end_of_a_workflow_is_that_of_the_goal_it_was_begun_for(tmp_path: Path) -> None:
    """Checklist 26: G gets the status and not H, which is in focus; ids are those of the parent again."""
    script = (begin("inner work"), end, DONE)
    async with helm(tmp_path, *script, config=DECIDES) as (flight, _):
        await flight.do(cmd.AdoptGoal, text="goal G")
        for _ in range(2):
            await flight.do(cmd.Step)
            await flight.until(lambda s: not s.grants and s.action is None)
        state = await flight.until(lambda s: s.workflows and s.step and s.step.op is Op.THINK)
        (inner,) = state.workflows
        assert inner == OpenWorkflow(inner.id, "g1")
        assert state.workflow_at_hand == inner.id
        root = await flight.engine.recall(FindWorkflow(agent="pilot", goal="g1"))
        assert (await flight.engine.recall(GetWorkflow(workflow_id=inner.id))).parent == root

        await flight.do(cmd.AdoptGoal, text="goal H", priority=9)
        await flight.do(cmd.Run)
        state = await flight.until(lambda s: not s.open_goals)
        assert (state.goals["g1"].status, state.goals["g2"].reason) == (GoalStatus.ACHIEVED, "done")
        assert inner.id in state.goals["g1"].reason
        assert (state.workflows, state.workflow_at_hand) == ((), "")
        left = await flight.payloads(ev.WorkflowLeft)
        assert [(one.workflow, one.status) for one in left] == [(inner.id, "completed")]
        ends = [said.goal for said in await flight.payloads(ev.GoalEnded)]
        assert ends == ["g1", "g2"]


async def test_what_is_done_meanwhile_belongs_to_the_workflow_begun(tmp_path: Path) -> None:
    written = call("simple_coder__write", {"path": "a.txt", "content": "x"})
    after = call("simple_coder__write", {"path": "b.txt", "content": "x"})
    script = (
        object_call("push_sub_goal", description="goal below"),
        begin("inner work"),
        written,
        end,
        after,
        DONE,
    )
    async with helm(tmp_path, *script, config=DECIDES) as (flight, _):
        await flight.do(cmd.AdoptGoal, text="goal G")
        await flight.do(cmd.Run)
        state = await flight.until(lambda s: not s.open_goals)
        assert [goal.status for goal in state.goals.values()] == [GoalStatus.ACHIEVED] * 2
        await flight.engine.kept()
        (entered,) = await flight.payloads(ev.WorkflowEntered)
        root = await flight.engine.recall(FindWorkflow(agent="pilot", goal="g1"))
        inside = await flight.engine.recall(GetRecentActions(workflow_id=entered.workflow, limit=50))
        outside = await flight.engine.recall(GetRecentActions(workflow_id=root, limit=50))
        assert [one.args["path"] for one in inside] == ["a.txt"]
        assert [one.args["path"] for one in outside] == ["b.txt"]


async def test_a_failed_workflow_fails_its_goal_and_the_goal_above_is_told(tmp_path: Path) -> None:
    script = (
        object_call("push_sub_goal", description="goal below"),
        begin("inner work"),
        lambda seen: end(seen, "failed"),
        DONE,
    )
    async with helm(tmp_path, *script, config=DECIDES) as (flight, server):
        await flight.do(cmd.AdoptGoal, text="goal G")
        await flight.do(cmd.Run)
        state = await flight.until(lambda s: not s.open_goals or s.intervention)
        assert [goal.status for goal in state.goals.values()] == [GoalStatus.ACHIEVED, GoalStatus.FAILED]
        assert "goal g2 failed" in json.dumps(server.requests[3].body["messages"])
