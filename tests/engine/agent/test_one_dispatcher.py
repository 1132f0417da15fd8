"""A command is the same wherever it comes from: a plan, the operator's line, the stand-alone shell."""

from __future__ import annotations

import io
import json
from pathlib import Path

from engine_flight import Flight, act

from app.commands.coder_shell import coder
from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.actions import ToolResult

COMMANDS = (
    "python -c 'import sys; print(1); print(2, file=sys.stderr); sys.exit(3)'",
    "echo same",
    "nothing-of-that-name",
    "ls | wc",
)


async def test_a_program_answers_the_same_from_a_plan_the_operator_and_the_shell(
    flight: Flight, tmp_path: Path
) -> None:
    """Behaviour 59: status, streams, exit code and reason, of what runs and of what is refused."""
    out = io.StringIO()
    (tmp_path / "alone").mkdir()
    await coder(tmp_path / "alone", [f"run {command}" for command in COMMANDS], out=out)
    shell = [json.loads(line) for line in out.getvalue().splitlines()]

    await flight.plan(*(act("run", command=command) for command in COMMANDS))
    for count, command in enumerate(COMMANDS, 1):
        await flight.do(cmd.CallTool, command="run", args={"command": command})
        await flight.until(lambda s, n=count: s.operator_actions == n and not s.acting)
    await flight.do(cmd.Run)
    for _ in COMMANDS:
        state = await flight.until(lambda s: s.intervention or not s.open_goals)
        if state.intervention:
            await flight.do(cmd.SkipStep, step=state.intervention.step)
            await flight.do(cmd.Run)
    await flight.until(lambda s: not s.open_goals)

    requested = {said.action: said for said in await flight.payloads(ev.ActionRequested)}
    answers: dict[tuple[str, bool], dict[str, object]] = {}
    for said in await flight.payloads(ev.ActionFinished):
        asked = requested[said.action]
        told = ToolResult(said.status, said.result, said.code).as_json()
        answers[asked.args["command"], bool(asked.step)] = told
    assert [answers[command, False] for command in COMMANDS] == shell
    assert [answers[command, True] for command in COMMANDS] == shell
