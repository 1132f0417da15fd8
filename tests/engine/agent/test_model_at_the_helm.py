"""A model thinks: asked over real sockets, streamed into the journal, paid for, cut off, replayed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from engine_flight import Flight, QuickClock
from helm_flight import MODEL, SECRET, action, helm

from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.agents import RunState
from engine.core.budgets import SpendingLimits
from engine.core.goals import GoalStatus
from engine.core.recovery import FailureKind
from tests.messages_server import Reply, failure, plan_call

MAKES = plan_call(action("one", "mkdir", path="made"), action("two", "write", path="made/a.txt", content="x"))


async def ends(flight: Flight, holds: Callable[[Any], object]) -> None:
    await flight.do(cmd.AdoptGoal, text="make a directory 'made' with a file in it")
    await flight.do(cmd.Run)
    await flight.until(holds)


async def test_a_model_plans_and_everything_of_the_call_is_in_the_journal(tmp_path: Path) -> None:
    """Behaviour 15."""
    thoughtful = Reply(**{**MAKES.__dict__, "thinking": "First a directory.", "text": "Here is the plan."})
    async with helm(tmp_path, thoughtful) as (flight, server):
        await ends(flight, lambda state: state.goals["g1"].status is GoalStatus.ACHIEVED)
        assert (flight.sandbox / "made" / "a.txt").read_text() == "x"
        pieces = await flight.payloads(ev.ModelSaid)
        assert "".join(one.text for one in pieces if one.stream == "thinking") == "First a directory."
        assert "".join(one.text for one in pieces if one.stream == "text") == "Here is the plan."
        (call,) = await flight.payloads(ev.ModelCalled)
        assert call.request | {"stream": True} == server.requests[0].body
        assert call.answer["usage"]["output_tokens"] == 20
        assert (call.goal, call.tokens, call.error) == ("g1", 120, "")
        assert call.cost_usd == 0.001
        state = await flight.state()
        assert (state.tokens, state.model_calls, state.model) == (120, 1, MODEL)
        assert 0 < (state.context_share or 0) < 1
        assert state.spent["g1"].usd == state.cost_usd == 0.001
        assert state.plans["g1"].steps[0].provenance.by == f"claude:{MODEL}"


async def test_the_key_is_nowhere_on_the_disk(tmp_path: Path) -> None:
    async with helm(tmp_path, MAKES, failure(401, "authentication_error", f"bad key {SECRET}")) as (
        flight,
        _,
    ):
        await ends(flight, lambda state: state.goals["g1"].status is GoalStatus.ACHIEVED)
        await flight.do(cmd.AdoptGoal, text="another one")
        await flight.until(lambda state: state.intervention is not None)
    files = [path for path in (tmp_path / "ws").rglob("*") if path.is_file()]
    assert not [path for path in files if SECRET.encode() in path.read_bytes()]


async def test_a_paused_agent_asks_no_model(tmp_path: Path) -> None:
    async with helm(tmp_path, MAKES) as (flight, server):
        await flight.do(cmd.AdoptGoal, text="make something")
        await flight.do(cmd.Pause)
        await flight.until(lambda state: state.run is RunState.PAUSED and state.open_goals)
        assert not server.requests
        await flight.do(cmd.Step)
        await flight.until(lambda state: state.actions == 1)
        assert len(server.requests) == 1


async def test_stop_cuts_the_stream_off_and_keeps_what_had_come(tmp_path: Path) -> None:
    async with helm(tmp_path, Reply(text="I think that " * 20, after=6, then="hold")) as (flight, server):
        await ends(flight, lambda _state: server.held.is_set())
        await flight.do(cmd.Stop)
        await flight.until(lambda state: state.model_calls == 1)
        (call,) = await flight.payloads(ev.ModelCalled)
        assert call.partial
        assert call.answer["content"][0]["text"].startswith("I think")
        state = await flight.state()
        assert (state.run, state.plans) == (RunState.STOPPED, {})


async def test_a_stream_that_was_cut_off_is_asked_for_anew_when_the_agent_runs_again(tmp_path: Path) -> None:
    held = Reply(text="I think that " * 20, after=6, then="hold")
    async with helm(tmp_path, held, MAKES) as (flight, server):
        await ends(flight, lambda _state: server.held.is_set())
        await flight.do(cmd.Stop)
        await flight.until(lambda state: state.model_calls == 1)
        await flight.do(cmd.Run)
        await flight.until(lambda state: state.goals["g1"].status is GoalStatus.ACHIEVED)
        asked = await flight.payloads(ev.PlanAsked)
        assert len(asked) == len(server.requests) == 2


async def test_a_model_that_cannot_be_asked_gives_the_operator_the_turn(tmp_path: Path) -> None:
    async with helm(tmp_path, failure(401, "authentication_error")) as (flight, _):
        await ends(flight, lambda state: state.intervention is not None)
        state = await flight.state()
        assert state.failures[-1].kind is FailureKind.PERMISSION_ERROR
        assert "ANTHROPIC_API_KEY" in state.failures[-1].message
        (call,) = await flight.payloads(ev.ModelCalled)
        assert (call.error_kind, call.tokens) == ("authentication", 0)


async def test_an_overloaded_model_is_asked_again_after_a_while(tmp_path: Path) -> None:
    async with helm(tmp_path, failure(529, "overloaded_error"), MAKES) as (flight, server):
        await ends(flight, lambda state: state.goals["g1"].status is GoalStatus.ACHIEVED)
        assert len(server.requests) == 2
        assert [one.failure for one in await flight.payloads(ev.ThinkingFailed)] == [
            FailureKind.RATE_LIMIT_ERROR
        ]


async def test_a_wrong_plan_is_repaired_with_the_validators_own_words(tmp_path: Path) -> None:
    wrong = plan_call(action("one", "teleport", where="home"))
    async with helm(tmp_path, wrong, MAKES) as (flight, server):
        await ends(flight, lambda state: state.goals["g1"].status is GoalStatus.ACHIEVED)
        assert "has no command 'teleport'" in json.dumps(server.requests[1].body["messages"])
        assert (await flight.state()).model_calls == 2


async def test_a_budget_holds_the_agent_before_the_call(tmp_path: Path) -> None:
    async with helm(tmp_path, MAKES, budget=SpendingLimits(usd=0.0001)) as (flight, server):
        await ends(flight, lambda state: state.run is RunState.PAUSED)
        state = await flight.state()
        assert state.run_reason.startswith("BUDGET: the call may cost $")
        assert not server.requests


async def test_plans_of_a_reasoner_come_from_the_model_too(tmp_path: Path) -> None:
    answer = (
        '```yaml\nEVENT: achieve greet\nCONDITIONS:\n- <none>\nOPERATIONS:\n- execute mkdir("hello")\n```'
    )
    async with helm(tmp_path, Reply(text=answer)) as (flight, _server):
        made = await flight.engine.submit(
            cmd.CreateAgent(agent="mind", agent_type="asl_agent", config={"program": "!greet."})
        )
        assert made.ok, made.message
        await flight.engine.submit(cmd.Run(agent="mind"))
        await flight.until(lambda state: state.goals["g1"].status.terminal, "mind")
        state = await flight.state("mind")
        assert (state.goals["g1"].status, state.failures) == (GoalStatus.ACHIEVED, [])
        assert (flight.sandbox / "hello").is_dir()
        assert (state.model_calls, [one.model for one in state.generated]) == (1, [MODEL])


async def test_without_a_model_an_agent_that_wants_one_is_refused_with_what_to_do(tmp_path: Path) -> None:
    flight = Flight(tmp_path / "ws", QuickClock())
    await flight.open()
    assert "set ANTHROPIC_API_KEY" in await flight.refused(cmd.CreateAgent, config={"thinker": "claude"})
    await flight.engine.close()
    await asyncio.sleep(0)
