"""OpenCode, Claude Code and Gemini CLI as npm has them do the work of a crew's members, and hand work on."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from test_kinds import argue, council, members
from whole_crew import Answer, Whole, whole

from engine.core import commands as cmd
from engine.crew.ontology.results import HandoffResult
from engine.crew.ontology.spec import AgentSpec
from tests.engine.agent.other_programs.real_programs import (
    START_S,
    RealProgram,
    each_program,
    set_places,
    talks,
)
from tests.messages_server import MessagesServer, Reply, call, object_call
from tests.messages_server.server import Seen

pytestmark = pytest.mark.slow


@asynccontextmanager
async def crew(
    program: RealProgram, place: Path, script: Answer, answer: Answer, specs: Sequence[AgentSpec]
) -> AsyncIterator[tuple[Whole, MessagesServer]]:
    """A crew whose member `dev` is the program, and the model that the program asks."""
    async with program.server([script], repeat=True) as server, whole(place / "ws", specs, answer) as on:
        config = {"preset": program.preset, **program.config(server.url)}
        await on.do(cmd.CreateAgent(agent="deva", agent_type="acp_agent", config=config))
        yield on, server


async def result_of(on: Whole, to: str, task: str) -> HandoffResult:
    async with asyncio.timeout(START_S):
        return await on.crew.wait(await on.hand(to, task, timeout_s=int(START_S)))


def hands_on(seen: Seen) -> Reply:
    """A call of the tool for handing work on, by the name that the program gave it."""
    names = re.findall(r'"name": "(\w*delegate)"', json.dumps(seen.body["tools"]))
    return call(names[0], {"to": "critic", "task": "judge what I found"}, call_id="toolu_1")


def critic(_seen: Seen) -> Reply:
    return object_call("return_result", output="critic: sound")


def turns(seen: Seen) -> Reply:
    """The program's turns in a debate."""
    turn: dict[str, Any] = {"claims": [{"text": "it was measured", "evidence": []}]}
    if "Round 1" in seen.said():
        answers = [{"claim": "B1", "kind": "refute", "text": "it was not"}]
        turn = {"restated": "B says that it is dear", "replies": answers, "claims": []}
    return Reply(text=f"My turn:\n```json\n{json.dumps(turn)}\n```" if seen.body.get("tools") else "a title")


@each_program
async def test_a_program_argues_one_side_of_a_debate(
    program: RealProgram, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_places(monkeypatch)
    async with crew(program, tmp_path, turns, argue, [*members(), council()]) as (on, server):
        result = await result_of(on, "council", "we buy it")
        assert result.success, result.error
        assert any("Round 1" in seen.said() for seen in server.requests), "the program had its turns"
        assert result.data["verdict"]["winner"] == "A"
        await on.at_rest()


@each_program
async def test_a_program_hands_work_on(
    program: RealProgram, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_places(monkeypatch)
    script = talks(hands_on, Reply(text="All is done."))
    async with crew(program, tmp_path, script, critic, members()) as (on, server):
        result = await result_of(on, "dev", "look")
        assert result.success, result.error
        assert result.output == "All is done."
        assert on.by("critic")[0].context.lineage == ("dev",)
        assert "critic: sound" in server.requests[-1].said()
        await on.at_rest()
