"""Why, waiting and drift on the journals of real engines, and from the command line."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from app.cli.main import main
from app.commands.command_runner import run_command
from app.commands.headless import open_engine
from app.commands.missions import is_idle, wait_until
from app.commands.why import Direction, query_why
from engine.agent.shared import EngineConfig
from engine.api.engine import Engine
from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.goals import GoalStatus
from engine.inquiry.drift import DeviationKind, plan_deviations
from engine.inquiry.why import backward, evidence_of
from engine.sandbox.policy import SandboxPolicy, Tier

GOAL = "write a file notes.txt with 'hello', then read notes.txt"
PLAN = [
    {"command": "write", "args": {"path": "notes.txt", "content": "hello"}},
    {"command": "read", "args": {"path": "notes.txt"}},
    {"command": "read", "args": {"path": "nothing.txt"}},
]


def actions() -> str:
    return json.dumps(
        [{"type": "EXECUTE_TOOL", "params": {"tool_id": "simple_coder", **one}} for one in PLAN]
    )


async def fly(engine: Engine) -> None:
    """An agent that wrote a file and read it, and then found that another is not there."""
    await engine.submit(cmd.CreateAgent(agent="pilot"), operator="ann")
    await engine.submit(cmd.AdoptGoal(agent="pilot", text="list the files"), operator="ann")
    await wait_until(engine, "pilot", lambda state: state.step is not None)
    state = await engine.view("pilot")
    replaced = cmd.ReplacePlan(agent="pilot", goal=state.current_goal, plan=actions())
    receipt = await engine.submit(replaced, operator="ann")
    assert receipt.ok, receipt.message
    receipt = await engine.submit(cmd.Run(agent="pilot"), operator="ann")
    assert receipt.ok, receipt.message
    await wait_until(engine, "pilot", is_idle)


def config() -> EngineConfig:
    return EngineConfig(policy=SandboxPolicy(required=Tier.PATHS))


@pytest.fixture
async def flown(tmp_path: Path) -> Path:
    async with open_engine(tmp_path) as engine:
        await fly(engine)
    return tmp_path


async def test_a_failure_goes_back_to_the_operators_plan_and_goal(flown: Path) -> None:
    code, answer, text = await query_why(flown, "error", Direction.BACKWARD, "pilot")
    assert code == 0
    found = [line["kind"] for line in answer["lines"]]
    assert found[:3] == ["failure.recorded", "action.finished", "action.started"]
    assert {"action.requested", "plan.revised", "goal.adopted", "command.received"} <= set(found)
    assert "ann: adopt_goal" in text


async def test_every_link_names_an_event_of_the_journal(flown: Path) -> None:
    async with open_engine(flown) as engine:
        record = await engine.record()
        for event in [event async for event in engine.events(follow=False)]:
            chain = backward(record, event.ref)
            assert all(link.event is not None for link in chain.links)
            roots = {record.event(ref).kind for ref in chain.refs if not record.bases(ref)}
            assert roots


async def test_reading_stands_on_the_writing_of_the_same_file(flown: Path) -> None:
    code, answer, text = await query_why(flown, "notes.txt", Direction.WRONG, "pilot")
    assert code == 0
    assert "still as written then: notes.txt" in text
    assert ("file", "action.requested") in {(line["relation"], line["kind"]) for line in answer["lines"]}
    assert {"file", "step"} <= {one["kind"] for one in answer["standing"]}
    before = await query_why(flown, "notes.txt", Direction.WRONG, "pilot")
    assert before[1] == answer


def test_the_command_line_answers_in_text_and_json(flown: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["why", "notes.txt", "--workspace", str(flown)]) == 0
    assert "why notes.txt" in capsys.readouterr().out
    assert main(["why", "g1", "--forward", "--json", "--workspace", str(flown)]) == 0
    answer = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (answer["way"], answer["subject"]["kind"]) == ("forward", "goal")
    assert main(["why", "note.txt", "--workspace", str(flown)]) == 2
    assert "did you mean notes.txt" in capsys.readouterr().err


async def test_the_bars_words_answer_headless(flown: Path) -> None:
    code, answer, _ = await run_command(flown, "why error wrong", agent="pilot")
    assert (code, answer["way"], answer["subject"]["kind"]) == (0, "wrong", "error")
    code, answer, text = await run_command(flown, "drift", agent="pilot")
    assert code == 0
    assert {one["kind"] for one in answer["courses"]} == {"off plan"}, "the first was withdrawn"
    assert "the operator: rest of the plan replaced" in text
    assert json.loads(json.dumps(answer))["revisions"][1]["difference"]["removed"]
    code, answer, _ = await run_command(flown, "why", agent="pilot")
    assert answer["subject"]["kind"] == "action"
    code, _, text = await run_command(flown, "drift g9", agent="pilot")
    assert code == 2
    assert "there is no goal 'g9'" in text


async def test_a_goal_that_recipes_plan_is_on_plan_and_shows_its_evidence(tmp_path: Path) -> None:
    async with open_engine(tmp_path) as engine:
        await engine.submit(cmd.CreateAgent(agent="pilot"))
        await engine.submit(cmd.AdoptGoal(agent="pilot", text="make a directory 'made'"))
        await engine.submit(cmd.Run(agent="pilot"))
        await wait_until(engine, "pilot", lambda state: not state.open_goals)
        events = await engine.store.read("pilot")
        while events[-1].version < (await engine.view("pilot")).version:
            await asyncio.sleep(0.01)  # what is seen may be durable a moment later
            events = await engine.store.read("pilot")
    assert {one.kind for one in plan_deviations(events)} == {DeviationKind.ON_PLAN}
    evidence = evidence_of(events, "g1")
    assert evidence is not None
    assert evidence.status is GoalStatus.ACHIEVED


async def test_status_says_what_is_waited_for_and_since_when(tmp_path: Path) -> None:
    async with open_engine(tmp_path) as engine:
        await engine.submit(cmd.CreateAgent(agent="pilot"))
        await engine.submit(cmd.AdoptGoal(agent="pilot", text="list the files"))
        await wait_until(engine, "pilot", lambda state: state.step is not None)
        await engine.submit(cmd.Intervene(agent="pilot"))
        waits = await engine.waiting("pilot")
        (found,) = await engine.store.last(1, "pilot", kind=ev.InterventionOpened.kind)
        assert (waits.kind, waits.since, waits.event) == ("operator", found.at, found.ref)
    code, answer, text = await run_command(tmp_path, "status", agent="pilot")
    assert (code, answer["waiting"]["kind"]) == (0, "operator")
    assert "waits for you: " in text
