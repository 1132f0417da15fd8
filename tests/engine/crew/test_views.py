"""What the fleet board, the timeline, an agent's card and a selection tell of a crew that works."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import datetime

import pytest

from app.commands.crew_runner import explain_selection
from app.projection.agent_card import card, selection
from app.projection.fleet_views import Fleet
from app.projection.handoff_views import _asked, error_text, handoff_facts, timeline
from app.projection.pane_views import goal_stack
from engine.core import crew_commands as cc
from engine.core.agents import RunState
from engine.core.goals import Goal, GoalStatus
from engine.core.state import AgentState
from engine.crew.ontology.context import HumanRequest, Option
from engine.crew.ontology.kinds import Effect, ErrorCode, RequestKind
from engine.crew.ports import OperatorQuestion
from tests.engine.crew.flight import CLEAR, Flight, Job, group_results
from widgets.base.text_layout import plain
from widgets.dialogs.fleet import FleetModel, FleetRow

ASKS = OperatorQuestion(
    RequestKind.DECISION,
    "checkpoint",
    "Go on?",
    "17 < 20",
    options=(
        Option(id="go", label="go on", effect=Effect.RESUME),
        Option(id="hand", label="write it by hand", effect=Effect.TAKEOVER),
    ),
)


def now(flight: Flight) -> datetime:
    return datetime.fromisoformat(flight.clock.now())


def row(model: FleetModel, name: str) -> FleetRow:
    return next(one for one in model.rows if one.name == name)


async def wait(job: Job) -> None:
    await asyncio.Event().wait()


async def ask(job: Job) -> object:
    await job.desk.ask(job.run, ASKS)
    return job.done()


async def test_the_board_is_ordered_by_who_needs_you_and_then_by_how_long(flight: Flight) -> None:
    await flight.register("asks-later", "asks-first", "fails", "works", "rests", "sleeps", "off")
    scripts = flight.worker.scripts
    scripts |= {"asks-first": ask, "asks-later": ask, "works": wait, "rests": wait}

    async def fails(job: Job) -> object:
        return job.done(code=ErrorCode.BUDGET)

    scripts["fails"] = fails
    await flight.hand("asks-first")
    await flight.until(lambda: len(flight.crew.state.open_requests()) == 1)
    flight.clock.advance(60)
    await flight.hand("asks-later")
    works = await flight.hand("works", timeout_s=300)
    rests = await flight.hand("rests")
    fails_id = await flight.hand("fails")
    await flight.until(lambda: flight.state(fails_id).terminal and len(flight.worker.began) == 5)
    await flight.do(cc.PauseHandoff(handoff=rests))
    await flight.do(cc.EnableAgent(who="off", enabled=False))
    flight.clock.advance(12)
    pilots = [
        AgentState(agent_id="idle-pilot", run=RunState.RUNNING, version=3, at=flight.clock.now()),
        AgentState(agent_id="gone", deleted=True),
    ]
    fleet = Fleet()
    model = fleet.model(flight.crew.state, pilots, now(flight))
    assert [one.name for one in model.rows] == [
        *("asks-first", "asks-later", "fails", "works", "rests"), *("idle-pilot", "sleeps", "off"),
    ]  # fmt: skip
    counts = "8 agents · 2 waiting on you · 1 failed · 1 running · 1 paused · 1 off"
    assert model.standing == f"{counts} · 1 ended run: h"
    assert row(model, "asks-first").state == "waiting 1m"
    assert row(model, "asks-later").state == "waiting 12s"
    assert row(model, "works").state == "running 12/300s"
    assert row(model, "works").work.endswith(works)
    assert (row(model, "fails").mark, row(model, "fails").last) == ("✗", "✗")
    assert "BUDGET" in row(model, "fails").note
    asked = row(model, "asks-first").asked
    assert asked is not None
    assert [(one.label, one.text) for one in asked.options] == [("go on", ""), ("write it by hand", "must")]
    labels = {one.name: one.label for one in model.rows}
    await flight.do(cc.AnswerRequest(request=asked.id, option="1"))
    await flight.until(lambda: "asks-first" in flight.worker.ended)
    again = fleet.model(flight.crew.state, pilots, now(flight))
    assert again.rows[0].name == "asks-later"
    assert {one.name: one.label for one in again.rows} == labels
    assert row(again, "asks-first").used == "1/1"
    assert row(again, "asks-first").last == "✓-"


async def test_agents_of_the_engine_stand_beside_registered_ones_and_runs_once(flight: Flight) -> None:
    await flight.register("works")
    flight.worker.scripts["works"] = wait
    handoff = await flight.hand("works")
    await flight.until(lambda: flight.crew.state.handoffs[handoff].run != "")
    run = flight.crew.state.handoffs[handoff].run
    failed = Goal("g1", "reach the server", status=GoalStatus.FAILED, reason="no way")
    states = [
        AgentState(agent_id=run, run=RunState.RUNNING, version=1),
        AgentState(agent_id="lost", run=RunState.RUNNING, version=1, goals={"g1": failed}),
        AgentState(agent_id="works-2", agent_type="operator", version=1),
    ]
    fleet = Fleet()
    model = fleet.model(flight.crew.state, states, now(flight))
    assert [one.name for one in model.rows] == ["lost", "works"]
    assert row(model, "lost").note == "no way"
    assert fleet.model(None, states, now(flight)).standing.startswith("3 agents")
    # What did not change is not looked at again.
    states[1] = replace(states[1], goals={})
    assert row(fleet.model(flight.crew.state, states, now(flight)), "lost").mark == "✗"
    states[1] = replace(states[1], version=2)
    assert row(fleet.model(flight.crew.state, states, now(flight)), "lost").mark == "·"


async def test_the_holder_of_the_floor_talks_and_servers_are_named(flight: Flight) -> None:
    await flight.register("larry", kind="role")
    tools = {"mcp_servers": [{"server": "tavily", "required": True}]}
    await flight.register("researcher", tools=tools)

    async def talk(job: Job) -> None:
        await job.desk.ask(
            job.run, OperatorQuestion(RequestKind.QUESTION, "conversation", "talk", "What is it?")
        )

    flight.worker.scripts["larry"] = talk
    await flight.do(cc.Transfer(to="larry", clarity=CLEAR))
    await flight.until(lambda: len(flight.crew.state.open_requests()) == 1)
    model = Fleet().model(flight.crew.state, [], now(flight))
    larry = row(model, "larry")
    assert (larry.floor, larry.mark, larry.state) == (True, "▶", "talking 0s")
    assert larry.asked is not None
    assert larry.asked.free
    assert "◆ larry speaks with you" in model.standing
    sections = {one.title: one.text for one in card(flight.crew.state, "researcher", now(flight))}
    assert "tavily (*): required" in sections["Tools"]
    assert "needs what" in sections["Receives and returns"]


async def test_the_timeline_has_lineage_brackets_bars_and_all_that_is_known(flight: Flight) -> None:
    await flight.register("parent", may=("child",))
    await flight.register("child", "pws", "devil")

    async def parent(job: Job) -> object:
        result = await job.delegate("child", "look into it")
        flight.clock.advance(5)
        return job.done(f"said {result.output}", confidence=0.7, confidence_source="rule", scores={"fit": 3})

    async def child(job: Job) -> object:
        flight.clock.advance(10)
        await job.desk.ask(job.run, ASKS)
        return job.done("found it", key_findings=("a finding",))

    async def devil(job: Job) -> object:
        return job.done("half", code=ErrorCode.QUALITY_GATE)

    flight.worker.scripts |= {"parent": parent, "child": child, "devil": devil}
    top = await flight.hand("parent")
    await flight.until(lambda: len(flight.crew.state.open_requests()) == 1)
    flight.clock.advance(10)
    state = flight.crew.state
    model = timeline(state, now(flight))
    assert [(one.lead, one.name.split()[-1], one.mark) for one in model.lines] == [
        ("", "parent", "▶"),
        ("  └ ", "child", "?"),
    ]
    below = model.lines[1]
    assert below.time == "10s"
    assert below.may == {"prompt", "cancel", "raise", "lower", "take_over", "open"}
    assert model.standing == "2 handoffs · 1 running · 1 waiting"
    await flight.do(cc.AnswerRequest(request="hr-1", option="1"))
    await flight.until(lambda: flight.state(top).terminal)
    group = (await flight.do(cc.Parallel(to=("pws", "devil"), task="judge it", clarity=CLEAR)))["group"]
    await group_results(flight.crew, group)
    model = timeline(state, now(flight), shown=top)
    first = model.lines[0]
    assert first.name.startswith("P ")
    assert [(one.lead, one.state) for one in model.lines[1:3]] == [(" ┌ ", "done"), (" └ ", "failed")]
    failed = model.lines[2]
    assert failed.tail.startswith("QUALITY_GATE")
    assert {"retry", "error"} <= failed.may
    assert "what had come by then:\nhalf" in error_text(state, failed.key)
    told = {fact.label: fact.text for fact in handoff_facts(state, top, now(flight))}
    assert told["task"] == "look at churn"
    assert told["success"] == "Under 5 % a year (0.80)"
    assert told["sure"] == "0.70, said by rule"
    assert told["score"] == "fit 3"
    assert "said found it" in {fact.text for fact in model.facts}
    assert "pws, devil" in handoff_facts(state, group, now(flight))[0].text


async def test_a_selection_is_explained_by_the_graph_itself(flight: Flight) -> None:
    """Line 58: an agent that finished this task is not selected, and it is said why."""
    await flight.register("minto", triggers={"keywords": ["structure"]},
                          chaining={"precedes": [{"id": "pws", "weight": 0.9}]})  # fmt: skip
    await flight.register("pws", triggers={"keywords": ["validate"]})
    await flight.crew.wait(await flight.hand("minto", "validate  the structure"))
    why = explain_selection(flight.crew, "Validate the structure")
    model = selection("Validate the structure", why.selection, why.standing)
    shown = [" ".join(plain(row.pieces).split()) for row in model.rows]
    assert shown[0] == "structure, validate; finished: minto · it goes to pws"
    assert "1 pws 1.302 T ▓▓▓▓▓ P ░░░░░ C ▓▓▓▓▓ R +0.000 W +0.432 L +0.000" in shown
    assert "1 of 1 tasks with structure, Validate were achieved: +1.00." in shown
    assert "It has finished already." in shown
    assert [row.key for row in model.rows if row.selectable] == ["pws", "minto"]


def test_runs_that_are_over_are_not_listed_among_the_agents() -> None:
    done = Goal("g1", "look", status=GoalStatus.ACHIEVED)
    states = [
        AgentState(agent_id="pilot-1", agent_type="bdi_agent", goals={"g1": done}),
        AgentState(agent_id="minto-1", agent_type="operator", goals={"g1": done}),
        AgentState(agent_id="minto-2", agent_type="operator", goals={"g1": Goal("g1", "look")}),
        AgentState(agent_id="minto-3", agent_type="operator"),
    ]
    listed = [row.key for row in goal_stack(states, "pilot-1").rows if row.key.startswith("agent:")]
    assert listed == ["agent:pilot-1", "agent:minto-2", "agent:minto-3"]
    assert "agent:minto-1" in [row.key for row in goal_stack(states, "minto-1").rows]


@pytest.mark.parametrize(
    ("title", "told"),
    [
        ("jtbd: it does not pass: find a j…", "jtbd: it does not pass: find a job, too"),
        (
            "larry ended; you have the floor",
            "larry ended; you have the floor: it does not pass: find a job, too",
        ),
    ],
)
def test_a_title_that_is_the_beginning_of_the_question_is_not_said_twice(title: str, told: str) -> None:
    request = HumanRequest.model_construct(title=title, question="it does not pass: find a job, too")
    assert _asked(request) == told
