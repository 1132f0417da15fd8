"""`pilothouse eval`: what passes deserves it, what is kept replays, and two results can be compared."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from app.cli.evaluation import load_suite
from app.cli.main import main
from tests.app.cli.strong_model import lazy, strong
from tests.messages_server import Reply, Seen, call, plan_call, serving
from tests.rounds import FULL

MODEL = "claude-opus-4-6"
SHARE = ("write-greeting", "squares", "failing-sum", "memory-server", "handover-parallel")
"""One task of each level, which the suite flies; `make endurance` flies all."""
SUITE = """
name = "own"
[[tasks]]
id = "{id}"
level = 1
kind = "files"
goal = "write 'a' to a.txt"
{more}
"""


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PILOTHOUSE_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)


Run = Callable[..., tuple[int, dict[str, Any]]]


@pytest.fixture
def evaluated(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs an evaluation, with a scripted model where one is given; exit code and results."""

    def run(*words: str, says: Callable[[Seen], Reply] | None = None) -> tuple[int, dict[str, Any]]:
        if says is None:
            code = main(["eval", "--json", *words])
        else:
            with serving(says) as url:
                monkeypatch.setenv("ANTHROPIC_BASE_URL", url)
                code = main(["eval", "--json", "--model", MODEL, *words])
        return code, json.loads(capsys.readouterr().out)

    return run


def part(tmp_path: Path) -> str:
    """The shipped suite, or a few tasks of it."""
    suite = load_suite("levels")
    if FULL:
        return "levels"
    tasks = [task.model_dump(mode="json") for task in suite.tasks if task.id in SHARE]
    text = f'name = "part"\nlevels = {json.dumps(suite.levels)}\ntasks = {_toml(tasks)}\n'
    (tmp_path / "part.toml").write_text(text)
    return "part.toml"


def _toml(value: Any) -> str:
    """A value as TOML has it within a line."""
    if isinstance(value, dict):
        given = {name: each for name, each in value.items() if each is not None}
        return "{" + ", ".join(f"{json.dumps(name)} = {_toml(each)}" for name, each in given.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value)


def own(tmp_path: Path, more: str, ident: str = "own-1") -> str:
    """A suite of one task."""
    file = tmp_path / "own.toml"
    file.write_text(SUITE.format(id=ident, more=more))
    return str(file)


def test_the_suite_has_sixty_tasks_of_five_levels_each_with_a_goal_of_its_own() -> None:
    tasks = load_suite("levels").tasks
    assert [len([task for task in tasks if task.level == level]) for level in range(1, 6)] == [12] * 5
    asked = [task.goal or task.line for task in tasks if task.kind != "explorer"]
    assert len(set(asked)) == len(asked) == 57
    assert {task.kind for task in tasks} >= {
        *("files", "project", "failing test", "refactoring", "data question", "hand-over", "explorer"),
        *("delegate", "debate", "memory", "injection"),
    }


def test_a_strong_model_passes_all_and_each_journal_replays(tmp_path: Path, evaluated: Run) -> None:
    suite = part(tmp_path)
    code, first = evaluated(suite, "--out", "kept", says=strong)
    missed = [row for row in first["runs"] if not row["passed"]]
    assert (code, missed) == (0, [])
    every = first["table"]["all"]
    assert every["sound"] == every["runs"]
    assert every["passed"] == every["runs"] == len(load_suite(suite).tasks)
    assert every["first_valid"] == every["plans"] > 0 == every["repairs"]
    assert every["tokens"] > 0 < every["usd"]
    some = first["runs"][0]["task"]
    assert main(["sessions", "replay", "--workspace", f"kept/{some}-1"]) == 0


def test_what_has_a_result_is_not_run_again_and_a_second_round_is(tmp_path: Path, evaluated: Run) -> None:
    suite = own(tmp_path, 'checks.files = { "a.txt" = "a" }')
    _, once = evaluated(suite, "--out", "kept")
    _, again = evaluated(suite, "--out", "kept", "-n", "2")
    assert again["runs"][0] == once["runs"][0]
    assert [row["round"] for row in again["runs"]] == [1, 2]


def test_a_model_that_only_looks_passes_nothing(tmp_path: Path, evaluated: Run) -> None:
    code, given = evaluated(part(tmp_path), says=lazy)
    assert code == 0
    assert [row["task"] for row in given["runs"] if row["passed"]] == []


def test_without_a_model_recipes_plan_and_that_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["eval", own(tmp_path, 'checks.files = { "a.txt" = "a" }')]) == 0
    said = capsys.readouterr()
    assert "no model is asked: tasks are planned by recipes alone" in said.err
    assert "own with procedural" in said.out
    assert "1/1" in said.out


def test_a_file_that_is_there_may_be_written_anew(tmp_path: Path, evaluated: Run) -> None:
    more = 'files = { "a.txt" = "old" }\nchecks.files = { "a.txt" = "a" }'
    code, answer = evaluated(own(tmp_path, more), "--model", "procedural")
    assert (code, [row["passed"] for row in answer["runs"]]) == (0, [True])


def test_a_model_may_decide_action_by_action(tmp_path: Path, evaluated: Run) -> None:
    answers = [
        call("simple_coder__write", {"path": "a.txt", "content": "a"}),
        call("finish", {"summary": "a"}),
    ]
    suite = own(tmp_path, 'checks.files = { "a.txt" = "a" }')
    _, given = evaluated(suite, "--style", "decide", says=lambda seen: answers.pop(0))
    assert (given["model"], [row["passed"] for row in given["runs"]]) == (f"{MODEL} decide", [True])
    assert given["runs"][0]["figures"]["calls"] == 2


def test_a_grading_program_is_not_ended_by_what_it_grades(tmp_path: Path, evaluated: Run) -> None:
    code = "import os\nprint('fine')\nos._exit(0)\n"
    write = {"tool_id": "simple_coder", "command": "write", "args": {"path": "sums.py", "content": code}}
    suite = own(tmp_path, 'checks.python = "import sums; assert sums.add(1, 2) == 3"')
    _, given = evaluated(suite, says=lambda _: plan_call({"type": "EXECUTE_TOOL", "params": write}))
    assert [(row["status"], row["passed"]) for row in given["runs"]] == [("GOAL_ACHIEVED", False)]


def test_two_results_side_by_side_name_what_changed(
    tmp_path: Path, evaluated: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    suite = own(tmp_path, 'checks.files = { "a.txt" = "a" }')
    evaluated(suite, "--out", "one", "-n", "3", says=lazy)
    evaluated(suite, "--out", "other", "-n", "3", "--model", "procedural")
    assert main(["eval", "compare", "one", "other/results.json"]) == 0
    said = capsys.readouterr().out
    assert "+ own-1" in said
    assert "0% → 100%" in said
    code, given = evaluated("compare", "one", "other")
    assert (code, given["changed"], given["left_out"]) == (0, {"own-1": [0.0, 1.0]}, 0)


def test_a_changed_task_is_not_compared_with_itself(tmp_path: Path, evaluated: Run) -> None:
    evaluated(own(tmp_path, "checks = {}"), "--out", "one")
    evaluated(own(tmp_path, 'checks.absent = ["b.txt"]'), "--out", "other")
    assert main(["eval", "compare", "one", "other"]) == 2


def test_json_lines_of_questions_and_answers_are_a_suite(tmp_path: Path, evaluated: Run) -> None:
    (tmp_path / "bad.jsonl").write_text('{"input": "what is 1 + 1?"}')
    assert main(["eval", "bad.jsonl"]) == 2
    (tmp_path / "sums.jsonl").write_text('{"input": "what is 1 + 1?", "target": "2"}\n\n')
    write = {"tool_id": "simple_coder", "command": "write", "args": {"path": "answer.txt", "content": "2\n"}}
    asked: list[str] = []

    def model(seen: Seen) -> Reply:
        asked.append(seen.said())
        return plan_call({"type": "EXECUTE_TOOL", "params": write})

    _, given = evaluated("sums.jsonl", says=model)
    assert [(row["task"], row["passed"]) for row in given["runs"]] == [("sample-1", True)]
    assert "what is 1 + 1?" in asked[0]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "name: it is missing"),
        ("name = ", "cannot be read"),
        (SUITE.format(id="a b", more="checks = {}"), "tasks.0.id"),
        (
            SUITE.format(id="a", more="checks = {}") + SUITE.format(id="a", more="checks = {}")[14:],
            "two tasks",
        ),
        (SUITE.format(id="a", more="checks = {}\nline = 'ls'"), "either a goal or a line"),
        (SUITE.format(id="a", more="checks = {}\nfiles = { '../x' = '' }"), "not a path below"),
        (
            SUITE.format(id="a", more="checks = {}\nfiles = { x = '', 'x/y' = '' }"),
            "is a file and a directory",
        ),
        (SUITE.format(id="a", more="checks = { says = '(' }"), "tasks.0"),
    ],
)
def test_a_suite_that_cannot_be_used_says_what_is_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, said: str
) -> None:
    (tmp_path / "bad.toml").write_text(text)
    assert main(["eval", "bad.toml"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("pilothouse: bad.toml: ")
    assert said in error
    assert len(error.splitlines()) == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("nowhere",), "there is no suite and no file 'nowhere'; suites: levels"),
        (("--task", "nothing"), "no task of levels is of the form 'nothing'"),
        (("--model", "some-model"), "set ANTHROPIC_API_KEY"),
        (("levels", "levels"), "one suite at a time"),
        (("compare", "a"), "say two results"),
        (("compare", "a", "b"), "a cannot be read"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_line(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...], said: str
) -> None:
    assert main(["eval", *words]) == 2
    assert said in capsys.readouterr().err
