"""Budgets: whatever a model is asked for, the call that could break one is not made; raised, it goes on."""

from __future__ import annotations

from pathlib import Path

import pytest
from helm_flight import action, helm

from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.agents import RunState
from engine.core.budgets import SpendingLimits
from engine.core.goals import GoalStatus
from tests.messages_server import Reply, object_call, plan_call

MAKES = plan_call(action("one", "write", path="a.txt", content="x"))
ONE_CALL = SpendingLimits(calls=1)


async def test_a_repair_is_a_call_too_and_nothing_has_failed_when_it_is_not_made(tmp_path: Path) -> None:
    wrong = plan_call(action("one", "teleport", where="home"))
    async with helm(tmp_path, wrong, MAKES, budget=ONE_CALL) as (flight, server):
        await flight.do(cmd.AdoptGoal, text="make a.txt")
        await flight.do(cmd.Run)
        state = await flight.until(lambda s: s.run_reason.startswith("BUDGET"))
        assert (state.run, state.failures, len(server.requests)) == (RunState.PAUSED, [], 1)
        assert state.run_reason == "BUDGET: the budget of 1 calls is used up: raise it to continue"


async def test_a_raised_budget_lets_the_agent_go_on(tmp_path: Path) -> None:
    async with helm(tmp_path, MAKES, budget=SpendingLimits(usd=0.0001)) as (flight, server):
        await flight.do(cmd.AdoptGoal, text="make a.txt")
        await flight.do(cmd.Run)
        await flight.until(lambda s: s.run_reason.startswith("BUDGET"))
        await flight.do(cmd.Run)
        await flight.until(lambda s: s.run is RunState.PAUSED and s.run_reason.startswith("BUDGET"))
        assert not server.requests
        receipt = await flight.do(cmd.SetBudget, usd=2, tokens=1_000_000)
        assert receipt.message == "budget: $2, 1,000,000 tokens; pilot goes on"
        state = await flight.until(lambda s: s.goals["g1"].status is GoalStatus.ACHIEVED)
        assert (state.budget, len(server.requests)) == (SpendingLimits(2.0, 1_000_000), 1)
        await flight.do(cmd.SetBudget)
        assert (await flight.state()).budget is None


async def test_the_operators_budget_counts_before_the_settings(tmp_path: Path) -> None:
    async with helm(tmp_path, MAKES) as (flight, server):
        await flight.do(cmd.SetBudget, calls=0)
        await flight.do(cmd.AdoptGoal, text="make a.txt")
        await flight.do(cmd.Run)
        await flight.until(lambda s: s.run_reason.startswith("BUDGET"))
        assert not server.requests


@pytest.mark.parametrize("style", ["plan", "decide"])
async def test_decisions_and_plans_are_held_before_the_call(tmp_path: Path, style: str) -> None:
    async with helm(tmp_path, budget=SpendingLimits(tokens=10), config={"style": style}) as (flight, server):
        await flight.do(cmd.AdoptGoal, text="make a.txt")
        await flight.do(cmd.Run)
        state = await flight.until(lambda s: s.run_reason.startswith("BUDGET"))
        assert (state.failures, server.requests) == ([], [])


async def test_a_step_whose_parameter_has_to_be_asked_for_waits_at_the_gate(tmp_path: Path) -> None:
    lacks = plan_call(action("one", "write", path="a.txt"))
    found = object_call("give_parameters", content="hello")
    async with helm(tmp_path, lacks, found, budget=ONE_CALL) as (flight, server):
        await flight.do(cmd.AdoptGoal, text="write hello into a.txt")
        await flight.do(cmd.Run)
        state = await flight.until(lambda s: s.run_reason.startswith("BUDGET"))
        assert (state.failures, len(server.requests)) == ([], 1)
        await flight.do(cmd.SetBudget, calls=2)
        await flight.do(cmd.Run)
        await flight.until(lambda s: s.goals["g1"].status is GoalStatus.ACHIEVED)
        assert (flight.sandbox / "a.txt").read_text() == "hello"
        assert [one.purpose for one in await flight.payloads(ev.ModelCalled)] == ["plan", "parameters of a1"]


async def test_plans_that_a_reasoner_lacks_are_asked_for_once_there_is_money(tmp_path: Path) -> None:
    answer = (
        '```yaml\nEVENT: achieve greet\nCONDITIONS:\n- <none>\nOPERATIONS:\n- execute mkdir("hello")\n```'
    )
    async with helm(tmp_path, Reply(text=answer), budget=SpendingLimits(calls=0)) as (flight, server):
        made = await flight.engine.submit(
            cmd.CreateAgent(agent="mind", agent_type="asl_agent", config={"program": "!greet."})
        )
        assert made.ok, made.message
        await flight.engine.submit(cmd.Run(agent="mind"))
        state = await flight.until(lambda s: s.run_reason.startswith("BUDGET"), "mind")
        assert (state.failures, server.requests) == ([], [])
        await flight.engine.submit(cmd.SetBudget(agent="mind", calls=1))
        await flight.engine.submit(cmd.Run(agent="mind"))
        await flight.until(lambda s: s.goals["g1"].status is GoalStatus.ACHIEVED, "mind")
        assert (flight.sandbox / "hello").is_dir()
