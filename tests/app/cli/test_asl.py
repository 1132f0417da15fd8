"""`pilothouse asl`: programs of several agents, their prints, and what is wrong with their files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from app.cli.main import main


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "team.mas").write_text("# two agents\nann = ann.asl\nbob=bob.asl\n")
    (tmp_path / "ann.asl").write_text(
        '{ include("facts.asl") }\n!s.\n+!s : friend(X) <- .send(X, achieve, greet).'
    )
    (tmp_path / "facts.asl").write_text("friend(bob).")
    (tmp_path / "bob.asl").write_text('+!greet[source(S)] <- .print("hello \x1b[31m", S).')
    return tmp_path


def test_agents_of_a_list_run_together_and_what_they_print_is_clean(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["asl", str(files / "team.mas"), "--json"]) == 0
    *printed, last = capsys.readouterr().out.splitlines()
    assert printed == ["[bob] hello ann"]
    assert json.loads(last)["finished"] is True


def test_agents_are_named_on_the_command_line(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["asl", str(files / "ann.asl"), "--agents", f"bob={files / 'bob.asl'}", "--trace"]) == 0
    captured = capsys.readouterr()
    assert captured.out == "[bob] hello ann\n"
    assert "MessageReceived" in captured.err


def test_every_syntax_error_of_every_file_is_named_with_its_place(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad, other = files / "bad.asl", files / "other.asl"
    bad.write_text('!s\n+!s <- .print(;.\n+!t : <- b.\n{ include("no.asl") }')
    other.write_bytes(b"\xff\xfe")
    assert main(["asl", str(bad), str(other), str(files / "missing.asl")]) == 2
    assert capsys.readouterr().err.splitlines() == [
        f"pilothouse: {bad}:2:1: expected '.', found '+'",
        f"pilothouse: {bad}:2:15: expected a term, found ';'",
        f"pilothouse: {bad}:3:7: expected a term, found '<-'",
        f"pilothouse: {bad}:4:1: expected a file that exists, found 'no.asl'",
        f"pilothouse: {other}: not UTF-8 at byte 0",
        f"pilothouse: {files / 'missing.asl'}: No such file or directory",
    ]


def test_a_goal_that_fails_unhandled_or_a_run_cut_short_is_no_success(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (files / "lost.asl").write_text("!s.\n+!s <-\n  !nowhere.")
    (files / "endless.asl").write_text("!s. +!s <- !s.")
    assert main(["asl", str(files / "lost.asl"), "--quiet"]) == 1
    assert (
        capsys.readouterr().err
        == f"[lost] s failed at {files / 'lost.asl'}:3, !nowhere: there is no plan for +!nowhere\n"
    )
    assert main(["asl", str(files / "endless.asl"), "--cycles", "50", "--json"]) == 1
    assert json.loads(capsys.readouterr().out) == {"cycles": 50, "finished": False, "failures": []}


def test_the_same_seed_gives_the_same_run(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (files / "chance.asl").write_text("!s. +!s <- .random(X); .print(X).")
    runs = []
    for seed in ("1", "1", "2"):
        assert main(["asl", str(files / "chance.asl"), "--seed", seed, "--quiet"]) == 0
        runs.append(capsys.readouterr().out)
    assert runs[0] == runs[1] != runs[2]


@pytest.mark.parametrize("policy", ["skip_irrelevant", "one_per_cycle", "compat"])
def test_each_policy_can_be_chosen(files: Path, policy: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["asl", str(files / "team.mas"), "--event-policy", policy, "--quiet"]) == 0
    assert capsys.readouterr().out == "[bob] hello ann\n"


def test_saying_nothing_or_a_name_twice_is_refused(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["asl"]) == 2
    assert main(["asl", str(files / "bob.asl"), str(files / "bob.asl")]) == 2
    assert "there is an agent 'bob' already" in capsys.readouterr().err


def test_files_that_include_each_other_are_an_error_with_its_place(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (files / "facts.asl").write_text('friend(bob).\n{ include("ann.asl") }')
    assert main(["asl", str(files / "ann.asl")]) == 2
    assert capsys.readouterr().err == (
        f"pilothouse: {files / 'facts.asl'}:2:1: expected a file that does not include this one, "
        "found 'ann.asl'\n"
    )


PROJECT = """// two of one, and one with more to know
MAS team {
  infrastructure: Local
  agents:
    ann [beliefs="friend(bob1), friend(bob2)", goals="s", verbose=2];
    bob "programs/bob.asl" #2 at "here";
}
"""


def test_a_mas2j_project_names_agents_counts_beliefs_and_goals(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (files / "ann.asl").write_text("+!s : friend(bob2) <- .send(bob2, achieve, greet).")
    (files / "programs").mkdir()
    (files / "bob.asl").rename(files / "programs" / "bob.asl")
    (files / "team.mas2j").write_text(PROJECT)
    assert main(["asl", str(files / "team.mas2j"), "--quiet"]) == 0
    assert capsys.readouterr().out == "[bob2] hello ann\n"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("agents: ann;", "1:1: expected 'MAS', found 'agents'"),
        (
            "MAS t { environment: my.World(3) agents: ann; }",
            "1:22: expected no 'environment', which names a ",
        ),
        ("MAS t { agents: ann agentArchClass my.Arch; }", "1:21: expected an agent without Java classes, f"),
        ("MAS t { agents: ann #0; }", "1:22: expected a number of agents from 1 to 10000, found '0'"),
        ('MAS t { agents: ann [beliefs="p("]; }', "the project's beliefs or goals:1:4: expected a term, fo"),
        (
            "MAS t { agents: ann",
            "1:20: expected '#' and a number, 'at' and a host, or ';', found the end of ",
        ),
        ("MAS t { }", "1:10: expected 'agents:' with at least one agent before it"),
    ],
)
def test_what_a_project_cannot_have_is_refused_by_name_and_place(
    files: Path, capsys: pytest.CaptureFixture[str], text: str, problem: str
) -> None:
    (files / "bad.mas2j").write_text(text)
    assert main(["asl", str(files / "bad.mas2j")]) == 2
    assert problem in capsys.readouterr().err
