"""Breakpoints without a screen: words, lists, dry runs, runs that end at one, steps of all agents."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from app.commands.command import Context
from app.commands.command_runner import run_command
from app.commands.headless import RunOptions, Status, run_goal
from app.commands.registry import read_line
from engine.core import commands as cmd
from engine.core.reasoner import REASONER
from engine.core.state import AgentState

MAKES_TWO = "create a directory named 'a' and create a directory named 'b'"


async def run(workspace: Path, *breaks: str, **options: Any) -> dict[str, Any]:
    given = RunOptions(workspace, goal=MAKES_TWO, quiet=True, breaks=breaks, **options)
    return await run_goal(given, out=io.StringIO(), err=io.StringIO())


def test_of_a_reasoner_patterns_over_its_trace_stay_and_the_rest_is_general() -> None:
    context = Context("pilot", AgentState(agent_type=REASONER))
    on_mind = read_line("break goal +!reach(X)", context).sends
    assert on_mind == cmd.BreakOn(agent="pilot", on="goal", pattern="+!reach(X)")
    assert isinstance(read_line("break error no_applicable", context).sends, cmd.BreakOn)
    assert isinstance(read_line("break error NETWORK*", context).sends, cmd.SetBreak)
    assert isinstance(read_line("break tool move", context).sends, cmd.SetBreak)


async def test_a_run_ends_where_a_breakpoint_holds_it_and_its_history_is_asked(tmp_path: Path) -> None:
    ended = await run(tmp_path, "plan adopted when actions > 7", "tool mkdir path=b")
    assert (ended["status"], ended["reason"]) == (Status.NEEDS_OPERATOR.value, "BREAKPOINT")
    assert ended["message"].startswith("breakpoint b2: before a2 simple_coder.mkdir: path b")
    assert (tmp_path / "sandbox" / "a").is_dir()
    assert not (tmp_path / "sandbox" / "b").exists()

    code, answer, text = await run_command(tmp_path, "breaks")
    assert code == 0
    assert [(one["id"], one["stopped"]) for one in answer["breakpoints"]] == [("b1", 0), ("b2", 1)]
    assert "held 1x" in text

    assert (await run_command(tmp_path, "break clear b2"))[0] == 0
    code, answer, _ = await run_command(tmp_path, "step all")
    assert code == 0
    assert (tmp_path / "sandbox" / "b").is_dir()
    assert [one["agent"] for one in answer["agents"]] == ["pilot-1"]

    code, answer, text = await run_command(tmp_path, "break dry tool mkdir")
    assert (code, answer["stopped"]) == (0, 2)
    assert [stop["event"].split(":")[0] for stop in answer["stops"]] == ["pilot-1"] * 2
    assert text.startswith("would have held pilot-1 2 times in ")
    assert (await run_command(tmp_path, "break dry tool mkdir last 3"))[1]["stopped"] == 0
    assert (await run_command(tmp_path, "break dry colour red"))[0] == 2


async def test_a_plan_that_is_adopted_holds_before_any_of_it_and_a_wrong_line_runs_nothing(
    tmp_path: Path,
) -> None:
    ended = await run(tmp_path / "one", "plan")
    assert (ended["reason"], ended["actions"]) == ("BREAKPOINT", 0)
    ended = await run(tmp_path / "two", "belief")
    assert (ended["status"], ended["reason"]) == (Status.FAILED.value, "REFUSED")
    assert "--break 'belief': it is not said which" in ended["message"]
