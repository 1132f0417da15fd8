"""Headless runs in process: what leftover goals and commands come to."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from app.commands.command_runner import run_command
from app.commands.headless import EXIT_CODES, RunOptions, Status, run_goal
from engine.api.engine import Engine
from engine.core.goals import GoalStatus
from tests.messages_server import MessagesServer, Reply, plan_call
from tests.trusting import write_trusted


async def _run(workspace: Path, goal: str, **more: object) -> dict[str, object]:
    options = RunOptions(workspace, goal=goal, quiet=True, **more)  # type: ignore[arg-type]
    return await run_goal(options, out=io.StringIO(), err=io.StringIO())


async def test_goals_left_over_are_not_run_under_a_new_run(tmp_path: Path) -> None:
    first = await _run(tmp_path, "create the directories src, tests and docs", max_loops=1)
    assert (first["status"], first["reason"], first["actions"]) == ("TIMED_OUT", "MAX_LOOPS", 1)
    second = await _run(tmp_path, "create a directory named 'mine'")
    assert second["status"] == "GOAL_ACHIEVED"
    assert sorted(path.name for path in (tmp_path / "sandbox").iterdir()) == ["mine", "src"]
    engine = await Engine.open(tmp_path)
    state = await engine.view("pilot-1")
    await engine.close()
    assert [goal.status for goal in state.goals.values()] == [GoalStatus.ACTIVE, GoalStatus.ACHIEVED]


async def test_a_run_out_of_loops_is_timed_out_and_goes_on_with_the_same_plan(tmp_path: Path) -> None:
    """Behaviour 16."""
    result = await _run(tmp_path, "create the directories src, tests and docs", max_loops=1)
    assert (result["status"], result["reason"]) == ("TIMED_OUT", "MAX_LOOPS")
    assert EXIT_CODES[Status(str(result["status"]))] == 5
    assert "g1 stays open, and `pilothouse do run` resumes it" in str(result["message"])
    assert (await run_command(tmp_path, "run"))[0] == 0
    assert sorted(path.name for path in (tmp_path / "sandbox").iterdir()) == ["docs", "src", "tests"]
    engine = await Engine.open(tmp_path)
    state = await engine.view("pilot-1")
    await engine.close()
    assert (list(state.plans), state.goals["g1"].status) == (["g1"], GoalStatus.ACHIEVED)
    assert (state.actions, state.plans["g1"].id) == (3, "p1")


async def test_each_loop_limit_runs_as_many_actions_every_time(tmp_path: Path) -> None:
    for number in range(1, 5):
        result = await _run(
            tmp_path / str(number), "create the directories n1, n2, n3, n4 and n5", max_loops=number
        )
        assert (result["actions"], result["reason"]) == (number, "MAX_LOOPS")


async def test_a_goal_that_cannot_be_planned_needs_the_operator_or_fails(tmp_path: Path) -> None:
    asked = await _run(tmp_path / "a", "frobnicate the widgets")
    assert (asked["status"], asked["reason"]) == ("NEEDS_OPERATOR", "GOAL_PARSE_ERROR")
    again = await _run(tmp_path / "a", "list the files")
    assert again["status"] == "NEEDS_OPERATOR"
    assert "still waits" in str(again["message"])
    alone = await _run(tmp_path / "b", "frobnicate the widgets", ask=False)
    assert (alone["status"], alone["reason"]) == ("FAILED", "FAILED_PLANNING")
    assert "frobnicate the widgets" in str(alone["message"])


async def test_a_model_that_never_gives_a_plan_ends_as_failed_planning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Behaviour 30."""
    async with MessagesServer([Reply(text="I shall do it at once.")], repeat=True) as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        monkeypatch.setenv("PILOTHOUSE_HOME", str(tmp_path / "home"))
        (tmp_path / "ws").mkdir()
        write_trusted(tmp_path / "ws" / "pilothouse.toml", "[model]\nrepairs = 0\n")
        alone = await _run(tmp_path / "ws", "make a directory", ask=False)
        assert (alone["status"], alone["reason"], alone["actions"]) == ("FAILED", "FAILED_PLANNING", 0)
        assert "gave no usable plan, 0 repairs included" in str(alone["message"])
        asks = len(server.requests)
        line = 'agent_create bdi_agent two {"repairs": 1}'
        assert (await run_command(tmp_path / "ws", line))[0] == 0
        asked = await _run(tmp_path / "ws", "make a directory", agent="two")
        assert (asked["status"], asked["reason"]) == ("NEEDS_OPERATOR", "FAILED_PLANNING")
        assert len(server.requests) - asks == 2 * asks  # as often asked, each time with one repair
        code, _answer, text = await run_command(
            tmp_path / "ws", 'agent_create bdi_agent three {"repairs": "x"}'
        )
        assert (code, "repairs: it is a whole number from 0 to 10, not 'x'" in text) == (1, True)


async def test_a_run_over_time_is_cut_off(tmp_path: Path) -> None:
    (tmp_path / "sandbox").mkdir()
    (tmp_path / "sandbox" / "slow.py").write_text("import time; time.sleep(60)")
    result = await _run(tmp_path, "run slow.py", timeout_s=0.5)
    assert result["status"] == "TIMED_OUT"
    engine = await Engine.open(tmp_path)
    state = await engine.view("pilot-1")
    await engine.close()
    assert not state.acting


async def test_lines_of_the_bar_work_without_a_screen(tmp_path: Path) -> None:
    async def do(line: str) -> tuple[int, str]:
        code, _answer, text = await run_command(tmp_path, line)
        return code, text

    code, text = await do("agent_create bdi_agent two a helper")
    assert (code, text.startswith("agent two created, a bdi_agent")) == (0, True)
    assert await do("goal create the directories src and docs") == (
        0,
        "goal g1 adopted · PAUSED · 2 steps planned",
    )
    code, text = await do("step")
    assert (code, "PAUSED" in text) == (0, True)
    code, text = await do("status")
    assert "g1 active" in text
    assert (await do("run"))[0] == 0
    assert sorted(path.name for path in (tmp_path / "sandbox").iterdir()) == ["docs", "src"]
    assert (await do("step"))[0] == 1
    assert (await do("agent_list"))[1].startswith("two ")
    assert (await do("list the files"))[1].startswith("goal g2 adopted")
    assert (await do("agent_list"))[1].endswith(" 1 open goal")
    assert (await do("theme dusk"))[0] == 2


async def test_a_line_that_is_no_command_makes_no_workspace(tmp_path: Path) -> None:
    code, _answer, text = await run_command(tmp_path, "gaol x")
    assert (code, "did you mean goal" in text) == (2, True)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("line", ["pause", "goal list the files"])
async def test_without_an_agent_the_answer_says_how_to_make_one(tmp_path: Path, line: str) -> None:
    code, _answer, text = await run_command(tmp_path, line)
    assert code == 1
    assert text == "there is no agent yet; agent_create bdi_agent ID makes one"


async def test_background_jobs_end_with_the_session_and_that_is_said(tmp_path: Path) -> None:
    (tmp_path / "sandbox").mkdir()
    (tmp_path / "sandbox" / "app.py").write_text("import time; print('up', flush=True); time.sleep(600)")
    err = io.StringIO()
    result = await run_goal(
        RunOptions(tmp_path, goal="start app.py in the background"), out=io.StringIO(), err=err
    )
    assert result["status"] == "GOAL_ACHIEVED"
    assert "job ends with the session: j1 python app.py" in err.getvalue()
    code, _answer, text = await run_command(tmp_path, "! start python app.py")
    assert code == 0
    assert text.endswith("job ends with the session: j2 python app.py")
    engine = await Engine.open(tmp_path)
    state = await engine.view("pilot-1")
    await engine.close()
    assert [job.ended for job in state.jobs.values()] == ["cancelled", "cancelled"]


async def test_what_a_call_returns_is_printed_and_in_the_answer(tmp_path: Path) -> None:
    await run_command(tmp_path, "agent_create bdi_agent pilot")
    assert (await run_command(tmp_path, "! write a.txt one"))[2].endswith("Wrote 3 bytes to a.txt")
    _, answer, text = await run_command(tmp_path, "! read a.txt")
    assert (answer["result"], text) == ({"content": "one"}, "read as you · PAUSED\none")
    assert (await run_command(tmp_path, "! ls"))[2] == "ls as you · PAUSED\na.txt"


async def test_a_background_task_that_is_asked_for_is_waited_for(tmp_path: Path) -> None:
    assert (await run_command(tmp_path, "agent_create bdi_agent pilot"))[0] == 0
    code, answer, text = await run_command(tmp_path, "reflect")
    assert (code, answer["outcome"]) == (0, "done")
    assert text == "summary: No action has ended yet."
    code, _answer, text = await run_command(tmp_path, "consolidate")
    assert (code, text) == (1, "consolidate needs a goal whose memories it is about")


async def test_a_run_that_a_budget_holds_ends_and_goes_on_with_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    params = {"tool_id": "simple_coder", "command": "mkdir", "args": {"path": "made"}}
    async with MessagesServer([plan_call({"type": "EXECUTE_TOOL", "params": params})]) as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        monkeypatch.setenv("PILOTHOUSE_HOME", str(tmp_path / "home"))
        held = await _run(tmp_path / "ws", "make a directory", budget_tokens=10)
        assert (held["status"], server.requests) == ("BUDGET_EXCEEDED", [])
        assert "10 are left" in str(held["message"])
        again = await _run(tmp_path / "ws", "make a directory", budget_tokens=1_000_000)
        assert (again["status"], len(server.requests)) == ("GOAL_ACHIEVED", 1)


async def test_a_run_is_held_by_budgets_of_actions_and_all_budgets_can_be_seen_and_set(
    tmp_path: Path,
) -> None:
    (tmp_path / "pilothouse.toml").write_text("[budget]\nusd = 9\n[budget.agent]\ncalls = 7\n")
    goal = "create a directory named 'a', then create a directory named 'b'"
    held = await _run(tmp_path, goal, budget_actions=1, budget_seconds=3_600)
    assert (held["status"], held["actions"]) == ("BUDGET_EXCEEDED", 1)
    because = "the budget of 1 actions is used up: raise it to continue"
    assert held["message"] == f"held before an action: {because}"
    code, answer, text = await run_command(tmp_path, "budget")
    of_goal, of_agent, of_all = answer["budgets"]
    assert (code, of_goal["basis"]) == (0, "1 of 2 steps done, too few to be sure")
    assert (of_agent["holds"], of_all["budget"]) == (["pilot-1"], "workspace")
    kinds = {name: (kind["limit"], kind["spent"]) for name, kind in of_agent["kinds"].items()}
    assert (kinds["calls"], kinds["actions"], kinds["seconds"][0]) == ((7, 0), (1, 1), 3_600)
    assert (of_all["kinds"]["usd"]["limit"], of_goal["kinds"]["actions"]["forecast"]["likely"]) == (9, 2)
    assert "agent pilot-1  HOLDS pilot-1" in text
    assert (await run_command(tmp_path, "budget workspace actions 1"))[
        2
    ] == "budget of the workspace: 1 actions"
    code, _, text = await run_command(tmp_path, "budget actions +1")
    assert text == (
        "budget: 2 actions, 3,600 s; pilot-1 is still held: "
        "the workspace: the budget of 1 actions is used up: raise it to continue"
    )
    await run_command(tmp_path, "budget workspace usual")
    assert (await run_command(tmp_path, "run"))[1]["mode"] == "IDLE"
