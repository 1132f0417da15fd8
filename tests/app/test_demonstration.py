"""The demonstration: its recordings answer all that its scenes ask, and nothing else."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from app.commands.missions import mission_agent
from engine.api.engine import Engine
from engine.core import commands as cmd
from engine.core.agents import RECORDING
from engine.core.crew_commands import Debate, Delegate, ForCrew
from engine.core.ports import SystemClock
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

STALE = "the recordings do not fit the engine any more: run make recordings"
MISSIONS = load_missions()


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
    assert set(recordings()) == set(MATERIAL)
    for name, (about, written) in MATERIAL.items():
        recording = load_recording(name)
        kept = [(a.after, a.thinking, a.text, a.tool, a.input) for a in recording.answers]
        asked = [(list(w.after), w.thinking, w.text, w.tool, w.input) for w in written]
        assert (recording.about, kept) == (about, asked), "run make recordings"


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
