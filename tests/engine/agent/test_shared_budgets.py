"""Budgets that agents share: counted together, held and never killed, gone on with; replayed exactly."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from engine_flight import Flight, QuickClock, act, journal_holds_together, live_state_is_the_fold
from helm_flight import action, helm
from model_flight import model_flight

from engine.agent.shared import EngineConfig
from engine.agent.steering.budget_status import BudgetStatus
from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.agents import RunState
from engine.core.budgets import BudgetKind, SpendingLimits
from engine.core.goals import GoalStatus
from engine.core.state import AgentState
from tests.messages_server import plan_call
from tests.patience import PATIENCE_S


def held(state: AgentState) -> bool:
    return state.held_by is not None


def done(state: AgentState) -> bool:
    return all(goal.status is GoalStatus.ACHIEVED for goal in state.goals.values())


def made(*names: str) -> list[dict[str, object]]:
    return [act("mkdir", path=name) for name in names]


class SetClock(QuickClock):
    """Shows the time that the test sets."""

    def __init__(self) -> None:
        super().__init__()
        self.time = datetime(2026, 1, 1, tzinfo=UTC)

    def now(self) -> str:
        return self.time.strftime("%Y-%m-%dT%H:%M:%S.%fZ")

    def passes(self, seconds: float) -> None:
        self.time += timedelta(seconds=seconds)


@pytest.fixture
async def timed(tmp_path: Path) -> AsyncIterator[Flight]:
    flown = Flight(tmp_path / "ws", SetClock())
    await flown.open()
    await flown.do(cmd.CreateAgent)
    yield flown
    await flown.engine.close()
    await journal_holds_together(tmp_path / "ws")


async def crew(flight: Flight, *children: str, parent: str = "pilot", **config: object) -> None:
    for child in children:
        await flight.do(cmd.CreateAgent, agent=child, config={"parent": parent, **config})


async def flies(flight: Flight, agent: str, *names: str) -> None:
    """Have an agent make directories, at its own pace."""
    flight.agent, before = agent, flight.agent
    await flight.plan(*made(*names))
    await flight.do(cmd.Run)
    flight.agent = before


def line(
    standings: tuple[BudgetStatus, ...], budget: str, kind: BudgetKind
) -> tuple[float | None, float, float]:
    """Limit, taken and reserved."""
    found = next(one for one in standings if one.budget == budget)
    of = next(one for one in found.lines if one.kind is kind)
    return of.limit, of.taken, of.reserved


# ------------------------------------------------------------------ actions, at each level


@pytest.mark.parametrize(
    ("whose", "says"),
    [
        ("goal", "goal g1: the budget of 2 actions is used up: raise it to continue"),
        ("agent", "the budget of 2 actions is used up: raise it to continue"),
        ("parent", "boss, for which it works: the budget of 2 actions is used up: raise it to continue"),
        ("workspace", "the workspace: the budget of 2 actions is used up: raise it to continue"),
    ],
)
async def test_the_action_that_would_break_a_budget_waits_and_goes_on_where_it_stood_once_there_is_more(
    flight: Flight, whose: str, says: str
) -> None:
    await flight.do(cmd.CreateAgent, agent="boss")
    await crew(flight, "child", parent="boss")
    flight.agent = "child"
    steps = await flight.plan(*made("a", "b", "c"))
    budget: dict[str, type[cmd.BudgetAmounts]] = {"workspace": cmd.SetWorkspaceBudget}
    kind = budget.get(whose, cmd.SetBudget)
    fields = {"goal": {"goal": "g1"}, "parent": {"agent": "boss"}, "workspace": {"agent": ""}}.get(whose, {})
    await flight.do(kind, actions=2, **fields)
    await flight.do(cmd.Run)
    state = await flight.until(held)
    assert (state.run, state.run_reason) == (RunState.PAUSED, f"BUDGET: {says}")
    assert (state.actions, state.failures, state.action and state.action.step) == (2, [], steps[2])
    waits = state.action
    # To be run again without more of it changes nothing; a child is told so before it starts.
    again = await flight.submit(cmd.Run)
    assert again.ok == (whose in ("goal", "agent"))
    assert again.ok or "nothing is left of the budget of" in again.message
    state = await flight.until(held)
    receipt = await flight.do(kind, actions=1, more=("actions",), keep=True, **fields)
    assert receipt.message.endswith("3 actions; child goes on")
    state = await flight.until(done)
    assert (state.actions, state.run) == (3, RunState.RUNNING)
    assert (await flight.payloads(ev.ActionStarted))[-1].action == waits.id  # type: ignore[union-attr]
    await live_state_is_the_fold(flight, "child")


async def test_eight_agents_at_once_take_no_action_more_than_the_workspace_has(flight: Flight) -> None:
    names = [f"worker-{n}" for n in range(8)]
    await crew(flight, *names)
    await flight.do(cmd.SetWorkspaceBudget, agent="", actions=10)
    await asyncio.gather(
        *(flies(flight_of(flight, name), name, *(f"{name}{n}" for n in range(4))) for name in names)
    )
    for name in names:
        await flight.until(lambda s: held(s) or done(s), name)
    states = [await flight.state(name) for name in names]
    assert sum(state.actions for state in states) == len(list(flight.sandbox.glob("worker-*"))) == 10
    assert not any(state.failures for state in states)
    assert line(flight.engine.budgets("pilot"), "workspace", BudgetKind.ACTIONS) == (10, 10, 0)
    await flight.do(cmd.SetWorkspaceBudget, agent="")  # no limit any more: all go on
    for name in names:
        await flight.until(done, name)
    assert len(list(flight.sandbox.glob("worker-*"))) == 32


def flight_of(flight: Flight, agent: str) -> Flight:
    """The same flight, spoken of by another agent."""
    other = Flight(flight.workspace, flight.clock)
    other.engine, other.agent = flight.engine, agent
    return other


# ------------------------------------------------------------------ calls of models


async def test_agents_that_ask_a_model_at_once_make_no_call_more_than_their_parents_budget(
    tmp_path: Path,
) -> None:
    plan = plan_call(action("one", "write", path="a.txt", content="x"))
    async with model_flight(tmp_path / "ws", plan, repeat=True) as (flight, server):
        await flight.do(cmd.CreateAgent, config={"thinker": "procedural"})
        names = [f"mind-{n}" for n in range(4)]
        await crew(flight, *names)
        await flight.do(cmd.SetBudget, calls=2)
        for name in names:
            await flight.do(cmd.Run, agent=name)
        await asyncio.gather(*(flight.do(cmd.AdoptGoal, agent=name, text="make it") for name in names))
        for name in names:
            await flight.until(lambda s: held(s) or s.model_calls, name, patience_s=PATIENCE_S)
        assert len(server.requests) == 2
        assert sum([held(await flight.state(name)) for name in names]) == 2
        await flight.do(cmd.SetBudget, calls=2, more=("calls",), keep=True)
        for name in names:
            await flight.until(lambda s: s.model_calls, name)
        assert len(server.requests) == 4


async def test_a_goals_tokens_and_dollars_hold_it_before_the_call(tmp_path: Path) -> None:
    async with helm(tmp_path, config={"style": "decide"}) as (flight, server):
        await flight.do(cmd.AdoptGoal, text="make it")
        await flight.do(cmd.SetBudget, goal="g1", tokens=1)
        await flight.do(cmd.Run)
        state = await flight.until(held)
        assert state.run_reason.startswith("BUDGET: goal g1: the call may take ")
        receipt = await flight.do(cmd.SetBudget, goal="g1", usd=0.0001)
        assert "; pilot is still held: goal g1: the call may cost $" in receipt.message
        await flight.do(cmd.Run)
        state = await flight.until(lambda s: held(s) and s.held_by.kind == "usd")
        assert state.run_reason.startswith("BUDGET: goal g1: the call may cost $")
        assert not server.requests


async def test_a_call_waits_for_room_that_calls_under_way_only_may_take(tmp_path: Path) -> None:
    slow = replace(plan_call(action("one", "write", path="a.txt", content="x")), first_byte_delay_ms=50)
    async with model_flight(tmp_path / "ws", slow, repeat=True) as (flight, server):
        await flight.do(cmd.CreateAgent)
        await flight.do(cmd.AdoptGoal, text="make it")
        await flight.do(cmd.SetBudget, tokens=0)
        await flight.do(cmd.Run)
        most = re.search(r"may take ([0-9,]+) tokens", (await flight.until(held)).run_reason)
        assert most is not None
        await flight.do(cmd.SetBudget)
        await flight.until(done)
        # Room for one call, should it take all it can; what three really take is far less.
        await flight.do(cmd.SetWorkspaceBudget, tokens=int(most[1].replace(",", "")) + 1_000)
        await crew(flight, "one", "two", parent="")
        for name in ("one", "two"):
            await flight.do(cmd.Run, agent=name)
            await flight.do(cmd.AdoptGoal, agent=name, text="make it")
        for name in ("one", "two"):
            assert not held(await flight.until(lambda s: held(s) or done(s), name))
        assert len(server.requests) == 3


async def test_a_budget_in_dollars_holds_where_nobody_knows_the_price(tmp_path: Path) -> None:
    async with helm(tmp_path, model="a-model-of-ones-own") as (flight, server):
        await flight.do(cmd.SetWorkspaceBudget, agent="", usd=100)
        await flight.do(cmd.AdoptGoal, text="make it")
        await flight.do(cmd.Run)
        state = await flight.until(held)
        assert "the workspace: the price of the model is unknown" in state.run_reason
        assert not server.requests


# ------------------------------------------------------------------ time


async def test_time_counts_while_the_agent_works_and_a_budget_of_it_lets_what_runs_end(timed: Flight) -> None:
    clock = timed.clock
    assert isinstance(clock, SetClock)
    waits = "import pathlib, time\nwhile not pathlib.Path('go').exists(): time.sleep(0.005)"
    await timed.plan(act("run", command=["python", "-c", waits]), *made("after"))
    clock.passes(1_000)  # while it is paused
    await timed.do(cmd.SetBudget, seconds=60, keep=True)
    await timed.do(cmd.Run)
    await timed.until(lambda s: s.acting)
    clock.passes(90)
    state = await timed.until(held)
    assert state.run_reason == "BUDGET: the budget of 60 s is used up: raise it to continue"
    assert state.acting, "what runs is not cut off"
    clock.passes(10)  # which still counts
    (timed.sandbox / "go").touch()
    state = await timed.until(lambda s: s.action and not s.action.started)
    assert (state.actions, state.worked_us, state.spent["g1"].us) == (1, 100_000_000, 100_000_000)
    clock.passes(1_000)  # while it is held
    await timed.do(cmd.SetBudget, seconds=60, more=("seconds",), keep=True)
    state = await timed.until(done)
    assert (state.budget, state.worked_us) == (SpendingLimits(seconds=120), 100_000_000)
    (said,) = await timed.payloads(ev.BudgetReached)
    assert (said.before, said.budget, said.of) == ("time", "agent pilot", "seconds")


async def test_the_time_between_two_sessions_is_nobodys(timed: Flight) -> None:
    clock = timed.clock
    assert isinstance(clock, SetClock)
    await timed.plan(*made("a"))
    await timed.do(cmd.Step)
    await timed.engine.close()
    clock.passes(500)
    await timed.open()
    assert (await timed.state()).worked_us == 0


# ------------------------------------------------------------------ children, and what is set aside


async def test_a_fan_out_over_what_can_be_set_aside_is_refused_each_time(flight: Flight) -> None:
    await flight.do(cmd.SetBudget, usd=10, actions=100)
    await crew(flight, *(f"helper-{n}" for n in range(10)), budget={"usd": 1})
    for n in range(10, 110):
        said = await flight.refused(
            cmd.CreateAgent, agent=f"helper-{n}", config={"parent": "pilot", "budget": {"usd": 1}}
        )
        assert "$0 of $10 are left in the budget of agent pilot, and $1 are to be set aside" in said
    assert len(flight.engine.agents) == 11
    assert line(flight.engine.budgets("pilot"), "agent pilot", BudgetKind.USD) == (10, 0, 10)
    await flight.do(cmd.DeleteAgent, agent="helper-0")  # which gives back what it did not take
    await crew(flight, "helper-10", budget={"usd": 1})


async def test_a_child_takes_what_was_set_aside_for_it_and_no_more_of_its_parents(flight: Flight) -> None:
    await flight.do(cmd.SetBudget, actions=3)
    await crew(flight, "child", budget={"actions": 2})
    await flies(flight, "pilot", "p1", "p2")
    assert "budget of 3 actions" in (await flight.until(held)).run_reason
    await flies(flight, "child", "c1", "c2", "c3")
    state = await flight.until(held, "child")
    assert (state.actions, state.held_by and state.held_by.budget) == (2, "agent child")
    spent = await flight.refused(cmd.CreateAgent, agent="late", config={"parent": "child"})
    assert "nothing is left of the budget of agent child (2 actions): raise it first" in spent
    await flight.do(cmd.SetBudget, actions=5)
    await flight.do(cmd.SetBudget, agent="child", actions=3)
    await flight.until(done, "child")
    await flight.until(done)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"usd": -1}, "budget.usd: a number from 0 to 1,000,000 is expected"),
        ({"pounds": 1}, "'pounds' is no kind of budget"),
        ({"calls": 1.5}, "budget.calls: a whole number"),
        ({"usd": float("nan")}, "cannot be recorded"),
        ("much", "a budget is amounts by kind"),
    ],
)
async def test_what_is_set_aside_is_checked(flight: Flight, given: object, says: str) -> None:
    assert says in await flight.refused(cmd.CreateAgent, agent="child", config={"budget": given})


# ------------------------------------------------------------------ across sessions


async def test_budgets_and_what_was_spent_survive_and_nothing_goes_on_by_itself(tmp_path: Path) -> None:
    config = EngineConfig(budget=SpendingLimits(actions=1_000), agent_budget=SpendingLimits(calls=7))
    flight = Flight(tmp_path / "ws", QuickClock(), config)
    await flight.open()
    await flight.do(cmd.CreateAgent)
    await flight.do(cmd.CreateAgent, agent="gone")
    await flies(flight, "gone", "g")
    await flight.until(done, "gone")
    await flight.do(cmd.DeleteAgent, agent="gone")
    await flight.do(cmd.SetWorkspaceBudget, agent="", actions=2, lifted=("usd",))
    await flies(flight, "pilot", "a", "b")
    await flight.until(held)
    await flight.reopen()
    state = await flight.state()
    assert held(state)
    assert line(flight.engine.budgets("pilot"), "workspace", BudgetKind.ACTIONS) == (2, 2, 0)
    assert line(flight.engine.budgets("pilot"), "agent pilot", BudgetKind.CALLS) == (7, 0, 0)
    receipt = await flight.do(cmd.SetWorkspaceBudget, agent="", actions=3, keep=True)
    assert receipt.message == "budget of the workspace: 3 actions, no limit of usd"
    state = await flight.state()
    assert (state.run, state.held_by) == (RunState.PAUSED, None)
    await flight.do(cmd.Run)
    await flight.until(done)
    events = [event async for event in flight.engine.events(0, stream="workspace", follow=False)]
    by = [event.actor for event in events if event.kind == ev.WorkspaceBudgetSet.kind]
    assert by == ["operator:operator"] * 2
    await flight.engine.close()
    await journal_holds_together(tmp_path / "ws")


async def test_what_an_unknown_goal_may_take_is_refused(flight: Flight) -> None:
    assert await flight.refused(cmd.SetBudget, goal="g9", usd=1) == "there is no goal 'g9'"


async def test_an_agent_with_a_reasoner_is_held_between_its_actions_by_actions_and_time(
    timed: Flight,
) -> None:
    clock = timed.clock
    assert isinstance(clock, SetClock)
    program = '!make.\n+!make <- mkdir("a"); mkdir("b"); run("python wait.py"); mkdir("c").'
    await timed.do(cmd.CreateAgent, agent="mind", agent_type="asl_agent", config={"program": program})
    timed.agent = "mind"
    (timed.sandbox / "wait.py").write_text("import time; time.sleep(60)")
    await timed.do(cmd.SetBudget, actions=1, seconds=60)
    await timed.do(cmd.Run)
    state = await timed.until(held)
    assert (state.actions, state.failures) == (1, [])
    await timed.do(cmd.SetBudget, actions=1, more=("actions",), keep=True)
    state = await timed.until(lambda s: held(s) and s.actions == 2)
    await timed.do(cmd.SetBudget, keep=True, lifted=("actions",))
    await timed.until(lambda s: s.acting and s.action.command == "run")
    clock.passes(61)
    state = await timed.until(held)
    assert state.held_by is not None
    assert (state.held_by.kind, state.acting, state.run) == ("seconds", True, RunState.PAUSED)
    await timed.do(cmd.Stop)


async def test_a_step_that_a_budget_held_is_not_taken_by_itself_once_there_is_more(flight: Flight) -> None:
    await flight.plan(*made("a"))
    await flight.do(cmd.SetBudget, actions=0)
    await flight.do(cmd.Step)
    await flight.until(lambda s: held(s) and s.action is not None)
    assert (await flight.do(cmd.SetBudget, actions=1)).message == "budget: 1 actions"
    state = await flight.state()
    assert (state.run, state.run_reason) == (RunState.PAUSED, "paused; there is more of the budget now")
    await flight.do(cmd.Step)
    await flight.until(done)
