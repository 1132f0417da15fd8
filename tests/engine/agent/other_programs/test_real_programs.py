"""OpenCode, Claude Code and Gemini CLI as npm has them, in the jail, with scripted models on loopback."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.agents import Mode, RunState
from engine.core.state import AgentState
from tests.engine.agent.other_programs.acp_flight import living
from tests.engine.agent.other_programs.real_programs import (
    PROGRAMS,
    START_S,
    RealProgram,
    each_program,
    flown,
)

for missing in (program for program in PROGRAMS if not program.there):
    how = f"npm install {missing.package}, and name the directory in ACP_PROGRAMS"
    warnings.warn(f"{missing.preset} is not there: {how}", stacklevel=1)
pytestmark = pytest.mark.slow


def pending(state: AgentState) -> str:
    """The command that stands before its action, or empty."""
    return state.step.command if state.step is not None and state.mode is Mode.PAUSED else ""


@each_program
async def test_a_program_is_stepped_held_denied_and_taken_back(
    program: RealProgram, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules = {"default": "allow", "rules": [{"answer": "ask", "command": "run"}]}
    async with flown(program, tmp_path, monkeypatch, approvals=rules) as (flight, server):
        settings = flight.sandbox / "settings.toml"
        await flight.do(cmd.SetBreak, line="tool write path=*.toml")
        await flight.do(cmd.Step)
        await flight.until(lambda s: pending(s) == "prompt")
        await flight.do(cmd.Step)
        await flight.until(
            lambda s: s.actions == 1 and not s.acting and s.mode is Mode.PAUSED, patience_s=START_S
        )
        for _ in range(2 if program.reads else 0):
            await flight.do(cmd.Step)
            await flight.until(lambda s: s.mode is Mode.PAUSED and not s.acting)
        await flight.do(cmd.Step)
        state = await flight.until(lambda s: pending(s) == "write")
        assert settings.read_text() == "debug = false\n"  # held before its leave
        assert state.actions == 1 + program.reads
        await flight.do(cmd.Run)
        state = await flight.until(lambda s: s.run is RunState.PAUSED and s.run_reason.is_a("run.breakpoint"))
        assert settings.read_text() == "debug = false\n"
        await flight.do(cmd.Run)
        state = await flight.until(lambda s: s.approvals.question)  # as it replaces what is in a file
        await flight.do(cmd.AnswerApproval, action=state.approvals.question.action, allow=True)
        state = await flight.until(
            lambda s: s.approvals.question and s.approvals.question.call.command == "run"
        )
        assert settings.read_text() == "debug = true\n"
        assert (flight.sandbox / "new.txt").read_text() == "hello\n"
        await flight.do(
            cmd.AnswerApproval, action=state.approvals.question.action, allow=False, reason="not today"
        )
        state = await flight.until(lambda s: s.goals["g1"].status.terminal or s.intervention)
        told = str(state.intervention.reason) if state.intervention else server.requests[-1].said()
        assert program.denied in told
        commands = [step.command for step in state.plans["g1"].steps if step.command]
        assert commands == ["prompt", *["read"] * program.reads, "write", "write", "run"]
        await flight.do(cmd.Stop)
        await flight.engine.stopped()
        assert living(flight) == []
        before = next(event for event in await flight.events() if event.kind == ev.ActionRequested.kind)
        receipt = await flight.do(cmd.Rewind, to=before.version - 1)
        assert receipt.ok
        names = sorted(path.name for path in flight.sandbox.iterdir() if path.is_file())
        assert names == ["notes.txt", "settings.toml", "test_it.py"]
        assert settings.read_text() == "debug = false\n"
        assert len(server.requests) >= 4


@each_program
async def test_a_budget_of_three_actions_lets_exactly_three_happen(
    program: RealProgram, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with flown(program, tmp_path, monkeypatch, budget={"actions": 3}) as (flight, _):
        await flight.do(cmd.CallTool, command="toggle_autonomous_mode", args={})
        await flight.until(lambda s: s.sandbox.autonomous)
        await flight.do(cmd.Run)
        state = await flight.until(lambda s: s.held_by is not None or s.intervention, patience_s=START_S)
        assert state.held_by is not None
        steps = [step for step in state.plans["g1"].steps if step.command]
        names = ["prompt", *["read"] * program.reads, "write", "write", "run"][:4]
        status = ("completed", "completed", "completed", "planned")
        assert [(step.command, step.status.value) for step in steps] == list(zip(names, status, strict=True))
