"""The demonstration: its recordings answer all that its scenes ask, and nothing else."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from app.commands.missions import install_mission, mission_agent, mission_command, wait_until
from engine.api.engine import Engine
from engine.core import commands as cmd
from engine.core.agents import RECORDING
from engine.core.crew_commands import Debate, Delegate, ForCrew
from engine.core.ports import SystemClock
from engine.core.state import AgentState
from engine.crew.ontology.kinds import HandoffState
from engine.crew.state import Handoff
from engine.models.errors import ModelError, ModelErrorKind
from engine.models.messages import ModelAnswer, ToolUse, user_message
from engine.models.recorded import NAME, RecordedModel, load_recording, recordings
from engine.models.request import ModelRequest, ToolSpec
from engine.planning.library.missions import load_missions
from tests.patience import PATIENCE_S
from tests.recordings import Demonstration, calls, opened, prepared
from tests.recordings.material import MATERIAL
from tests.recordings.programs import NAME as SESSION

STALE = "the recordings do not fit the engine any more: run make recordings"
MISSIONS = load_missions()
SESSIONS = (SESSION,)
"""Recordings of what another program sent."""


async def ended(engine: Engine, command: ForCrew) -> Handoff:
    """Hand work over, and wait for its end."""
    name = (await engine.submit(command)).data["handoff"]
    crew = await engine.crew()
    async with asyncio.timeout(PATIENCE_S):
        while crew.state.handoffs[name].open:
            await asyncio.sleep(0.01)
    return crew.state.handoffs[name]


@pytest.mark.parametrize("name", MATERIAL)
async def test_a_recording_answers_every_request_of_its_scene(tmp_path: Path, name: str) -> None:
    async with opened(tmp_path / "ws") as engine:
        await Demonstration(engine, prepared(name, tmp_path / "ws")).fly()
        made = await calls(engine)
        crew = await engine.crew()
    assert {call.error for _, call in made} == {""}, STALE
    assert {call.model for _, call in made} == {NAME}
    assert all(
        call.tokens and call.cost_usd and call.answer["usage"]["estimated"] for _, call in made if call.answer
    )
    given = [json.dumps(call.answer["content"], sort_keys=True) for _, call in made if call.answer]
    assert len(set(given)) == len(load_recording(name).answers), STALE
    assert {each.state for each in crew.state.handoffs.values()} <= {HandoffState.COMPLETED}, STALE


def test_the_recordings_hold_what_was_written() -> None:
    assert {*MATERIAL, *SESSIONS} == set(recordings())
    assert all(load_recording(name).session for name in SESSIONS)
    for name, (about, written) in MATERIAL.items():
        recording = load_recording(name)
        kept = [(a.after, a.thinking, a.text, a.tool, a.input) for a in recording.answers]
        asked = [(list(w.after), w.thinking, w.text, w.tool, w.input) for w in written]
        assert (recording.about, kept) == (about, asked), "run make recordings"


@asynccontextmanager
async def asking(place: Path) -> AsyncIterator[tuple[Engine, str]]:
    """An engine in which the recorded program asks for leave to change a file; the agent's name."""
    mission, agent = MISSIONS[SESSION], "dev"
    async with opened(place) as engine:
        assert (await engine.submit(mission_agent(mission, agent))).ok
        await install_mission(engine, agent, mission)
        await wait_until(engine, agent, lambda state: not state.requests and not state.busy)
        await engine.submit(mission_command(mission, agent))
        await engine.submit(cmd.Run(agent=agent))
        await wait_until(engine, agent, lambda state: state.approvals.question is not None or ends(state))
        yield engine, agent


def ends(state: AgentState) -> bool:
    return state.intervention is not None or not state.open_goals


async def answered(engine: Engine, agent: str, *, allow: bool) -> AgentState:
    """The agent's end, when all that it asks is answered so."""
    async with asyncio.timeout(PATIENCE_S):
        while not ends(state := await engine.view(agent)):
            question = state.approvals.question
            assert question is not None
            await engine.submit(cmd.AnswerApproval(agent=agent, action=question.action, allow=allow))
            await wait_until(
                engine,
                agent,
                lambda s, q=question.action: (  # type: ignore[misc]
                    ends(s) or (s.approvals.question is not None and s.approvals.question.action != q)
                ),
            )
    return state


async def test_a_recorded_program_does_its_work_without_the_program(tmp_path: Path) -> None:
    async with asking(tmp_path / "ws") as (engine, agent):
        prices = engine.root / "bakery/prices.py"
        assert "net * percent // 100" in prices.read_text()
        state = await answered(engine, agent, allow=True)
        plan = [step.command for step in state.plans["g1"].steps if step.command]
        made = await calls(engine)
    assert "; Two functions of the price list were wrong" in str(state.goals["g1"].reason)
    assert plan == ["prompt", "write", "write", "write", "run"]
    assert "(net * percent + 50) // 100" in prices.read_text()
    assert (prices.parent / "CHANGES.md").exists()
    assert not [call for _, call in made if call.answer]


async def test_a_recorded_program_that_is_refused_says_that_the_recording_ends(tmp_path: Path) -> None:
    async with asking(tmp_path / "ws") as (engine, agent):
        state = await answered(engine, agent, allow=False)
        assert "net * percent // 100" in (engine.root / "bakery/prices.py").read_text()
    assert state.intervention is not None
    assert "was refused; the recording has nothing for that, and ends here" in str(state.intervention.reason)


async def test_a_recorded_program_is_asked_nothing_else(tmp_path: Path) -> None:
    async with opened(tmp_path / "ws") as engine:
        await engine.submit(mission_agent(MISSIONS[SESSION], "dev"))
        await engine.submit(cmd.AdoptGoal(agent="dev", text="bake a cake"))
        await engine.submit(cmd.Run(agent="dev"))
        state = await wait_until(engine, "dev", ends)
        refused = await engine.submit(
            cmd.CreateAgent(agent="other", agent_type="acp_agent", config={RECORDING: "demo-model"})
        )
    assert state.intervention is not None
    assert "this was never asked" in str(state.intervention.reason)
    assert "is none of a program's session" in refused.message


async def test_what_a_recording_has_no_answer_to_fails_and_says_how_to_get_a_model(tmp_path: Path) -> None:
    async with opened(tmp_path / "ws") as engine:
        other = Debate(motion="Cats are better.", metadata={RECORDING: "demo-debate"})
        handoff = await ended(engine, other)
        made = await calls(engine)
    assert handoff.state is HandoffState.FAILED
    assert not any(call.answer for _, call in made)
    assert all("no answer to this" in call.error and "ANTHROPIC_API_KEY" in call.error for _, call in made)


async def test_only_shipped_recordings_are_taken(tmp_path: Path) -> None:
    async with opened(tmp_path / "ws") as engine:
        for named in ("../../secret", "none", ["demo-debate"], {"a": 1}):
            config = {"thinker": "claude", RECORDING: named}
            receipt = await engine.submit(cmd.CreateAgent(agent="actor", config=config))
            assert not receipt.ok
            assert "there is no recording" in receipt.message
        handoff = await ended(engine, Delegate(to="jtbd", task="jobs", metadata={RECORDING: "none"}))
    assert handoff.result is not None
    assert "there is no recording 'none'" in handoff.result.error


async def test_other_agents_are_as_without_a_model(tmp_path: Path) -> None:
    async with opened(tmp_path / "ws") as engine:
        assert (await engine.submit(mission_agent(MISSIONS["demo-model"], "baker"))).ok
        await engine.submit(cmd.CreateAgent(agent="pilot-1"))
        assert (await engine.view("pilot-1")).config.thinker == "procedural"
        refused = await engine.submit(cmd.CreateAgent(agent="other", config={"thinker": "claude"}))
        assert "there is no model" in refused.message


REQUEST = ModelRequest(
    "claude-opus-4-6",
    (user_message("To be decided: Two tests of the bakery's price list fail"),),
    tools=(ToolSpec("propose_plan", "plan"),),
)


async def test_an_answer_comes_piece_by_piece_under_the_name_of_the_recording() -> None:
    pieces: list[str] = []
    asked: list[ModelRequest] = []
    model = RecordedModel("demo-model", "agent", SystemClock(), 0)
    answer = await model.send(
        REQUEST, sink=lambda piece: pieces.append(piece.kind), record=lambda request, _: asked.append(request)
    )
    assert pieces == ["thinking", "tool", "tool_input"]
    assert (answer.model, asked[0].model, answer.usage.estimated) == (NAME, NAME, True)
    assert isinstance(answer.content[-1], ToolUse)


async def test_a_recorded_answer_that_is_cut_off_is_partial() -> None:
    begun, kept = asyncio.Event(), list[ModelAnswer | ModelError]()
    model = RecordedModel("demo-model", "agent", SystemClock(), 40)
    work = asyncio.create_task(
        model.send(REQUEST, sink=lambda _: begun.set(), record=lambda _, outcome: kept.append(outcome))
    )
    await begun.wait()
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    assert isinstance(kept[0], ModelAnswer)
    assert kept[0].partial


async def test_another_tool_or_another_speaker_has_no_answer() -> None:
    for speaker, tool in (("agent", "other"), ("judge-1", "propose_plan")):
        model = RecordedModel("demo-model", speaker, SystemClock(), 0)
        request = ModelRequest("x", REQUEST.messages, tools=(ToolSpec(tool, ""),))
        with pytest.raises(ModelError) as refused:
            await model.send(request)
        assert refused.value.kind is ModelErrorKind.REFUSED
