"""The recap: what happened between two places matches the journal between them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from app.commands.command import Context
from app.commands.command_runner import HeadlessHost, run_command, run_command_in
from app.commands.headless import open_engine
from app.commands.missions import wait_until
from app.commands.review import last_command, recap_answer, recap_facts, recap_line, recap_of
from engine.api.engine import Engine
from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.goals import GoalStatus
from engine.core.journal import Event
from engine.core.state import AgentState
from engine.inquiry.recap import Recap, recap


async def _called(engine: Engine, command: str, **args: Any) -> None:
    receipt = await engine.submit(cmd.CallTool(agent="pilot", command=command, args=args), operator="ann")
    assert receipt.ok, receipt.message
    await wait_until(engine, "pilot", lambda state: not state.requests and not state.busy)


async def _reached(engine: Engine, text: str) -> None:
    await engine.submit(cmd.AdoptGoal(agent="pilot", text=text))
    await wait_until(engine, "pilot", lambda state: state.step is not None)
    await engine.submit(cmd.Run(agent="pilot"))
    await wait_until(engine, "pilot", lambda state: not state.open_goals)


async def test_goals_failures_and_files_between_two_places_are_told_and_nothing_before(
    tmp_path: Path,
) -> None:
    async with open_engine(tmp_path) as engine:
        await engine.submit(cmd.CreateAgent(agent="pilot"))
        await _reached(engine, "make a directory 'before'")
        await _called(engine, "write", path="early.txt", content="x")
        await _called(engine, "cd", path="before")
        since = await engine.head()
        await _reached(engine, "make a directory 'after'")
        await _called(engine, "write", path="late.txt", content="x")
        await _called(engine, "write", path="late.txt", content="y")
        await _called(engine, "read", path="absent.txt")
        told = await recap_of(engine, since)
    assert [(goal.goal, goal.text, goal.status) for goal in told.goals] == [
        ("g2", "make a directory 'after'", GoalStatus.ACHIEVED)
    ]
    assert told.files == [("pilot", "before/late.txt")]
    assert (told.actions, told.failed_actions) == (4, 1)
    # Background work may have written more since.
    assert (told.since, told.events) == (since, told.until - since)
    line = recap_line(told)
    assert "1 goal achieved" in line
    assert "1 file written" in line
    assert ("file", "before/late.txt by pilot") in recap_facts(told)


async def test_where_nothing_happened_there_is_nothing_to_say(tmp_path: Path) -> None:
    async with open_engine(tmp_path) as engine:
        await engine.submit(cmd.CreateAgent(agent="pilot"))
        told = await recap_of(engine, await engine.head())
    assert (told.quiet, recap_line(told)) == (True, "")


async def test_who_waits_for_the_operator_is_told_with_the_reason(tmp_path: Path) -> None:
    async with open_engine(tmp_path) as engine:
        await engine.submit(cmd.CreateAgent(agent="pilot"))
        since = await engine.head()
        await engine.submit(cmd.AdoptGoal(agent="pilot", text="do what nobody has a recipe for"))
        state = await wait_until(engine, "pilot", lambda state: state.intervention is not None)
        told = await recap_of(engine, since)
    assert state.intervention is not None
    assert told.waiting == (("pilot", state.intervention.reason),)
    assert "pilot needs you" in recap_line(told)


def _event(seq: int, payload: ev.Payload) -> Event:
    at = "2026-01-01T00:00:00.000000Z"
    return Event("pilot", seq, at, 0, "agent", (), payload.kind, payload.body(), "", seq)


def test_cost_is_summed_and_calls_of_unknown_price_are_named() -> None:
    called = [
        ev.ModelCalled(model="m", request={}, tokens=10, cost_usd=0.25),
        ev.ModelCalled(model="m", request={}, tokens=5, cost_usd=None),
    ]
    told = recap([_event(at, one) for at, one in enumerate(called, 1)], {"pilot": AgentState()})
    assert (told.calls, told.tokens, told.cost_usd, told.unpriced) == (2, 15, 0.25, 1)
    assert recap_line(told) == "$0.2500 and 1 calls of unknown price"


def test_what_is_told_is_cleaned() -> None:
    failed = ev.FailureRecorded(failure="TOOL_EXECUTION_ERROR", message="no\x1b[2J \u202edisk\nat all")
    told = recap([_event(1, failed)], {})
    assert told.failures == 1
    assert all(text.isprintable() for _label, text in recap_facts(told))


def test_a_recap_of_no_events_is_quiet() -> None:
    assert recap([], {}, since=7) == Recap(7, 7)


async def test_it_begins_at_the_last_command_of_the_same_operator(tmp_path: Path) -> None:
    async with open_engine(tmp_path) as engine:
        await engine.submit(cmd.CreateAgent(agent="pilot"), operator="ann")
        await engine.submit(cmd.Believe(agent="pilot", key="a", value=1), operator="ann")
        await engine.submit(cmd.Believe(agent="pilot", key="b", value=1), operator="bob")
        place = await last_command(engine, "ann")
        event = await engine.store.get(place)
        assert await last_command(engine, "nobody") == 0
        code, answer, _text = await recap_answer(
            HeadlessHost(engine, Context(), operator="ann"), {"event": ""}
        )
    assert event is not None
    assert event.actor == "operator:ann"
    assert (code, answer["since"]) == (0, place)


async def test_the_word_works_without_a_screen_and_refuses_what_is_no_place(tmp_path: Path) -> None:
    async with open_engine(tmp_path) as engine:
        await engine.submit(cmd.CreateAgent(agent="pilot"))
        await engine.submit(cmd.AdoptGoal(agent="pilot", text="make a directory 'made'"))
        await engine.submit(cmd.DropGoal(agent="pilot", goal="g1"))
    code, answer, text = await run_command(tmp_path, "recap 1")
    assert code == 0
    assert [goal["status"] for goal in answer["goals"]] == ["dropped"]
    assert "g1 make a directory 'made'" in text
    for wrong in ("recap now", "recap -1", "recap 1 2"):
        assert (await run_command(tmp_path, wrong))[0] == 2


@pytest.mark.parametrize("argument", ["x", "٣", "1" * 30])
async def test_only_numbers_of_events_are_places(tmp_path: Path, argument: str) -> None:
    async with open_engine(tmp_path) as engine:
        assert (await run_command_in(engine, f"recap {argument}"))[0] == 2
