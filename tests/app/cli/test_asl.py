"""`pilothouse asl`: programs of several agents, their prints, and what is wrong with their files."""

from __future__ import annotations

import io
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
        f"pilothouse: {bad}:2:1: expected '.', found '+'; line 1 lacks its '.'",
        "    +!s <- .print(;.",
        "    ^",
        f"pilothouse: {bad}:2:15: expected a term, found ';'; "
        "a ')' is missing, or what stands between the brackets",
        "    +!s <- .print(;.",
        "                  ^",
        f"pilothouse: {bad}:3:7: expected a term, found '<-'; leave ':' out where there is no context",
        "    +!t : <- b.",
        "          ^",
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
    ann ann [beliefs="friend(bob1), friend(bob2)", goals="s", verbose=2];
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


DOUBTFUL = """obstacle(north).
colour(red).
free(X) :- direction(X) & not obstakle(X).
!start.
+!start <- .prnt("x"); .nth(1, L); !recah(free); .send(bob, achieve, greet).
+!start <- .print("never").
+!reach(X) : free(X) <- lib.go(X, a.b, 2 + math.sqrtt(3)).
"""


def test_what_is_wrong_and_what_looks_wrong_is_named_with_its_place_and_nothing_runs(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    doubtful = files / "doubtful.asl"
    doubtful.write_text(DOUBTFUL)
    assert main(["asl", "--check", str(doubtful), str(files / "bob.asl")]) == 2
    assert [line.removeprefix(f"{doubtful}:") for line in capsys.readouterr().out.splitlines()] == [
        "1:1: warning: nothing asks for the belief obstacle/1",
        "2:1: warning: nothing asks for the belief colour/1",
        "3:1: warning: nothing here believes obstakle/1; did you mean obstacle/1?",
        "5:12: there is no internal action .prnt; did you mean .print or .println?",
        "5:24: .nth takes 3 arguments, not 2",
        "5:36: warning: there is no plan for recah/1; did you mean reach/1?",
        "6:1: warning: this plan never gets its turn: the one in line 5 fits every time",
        "7:1: warning: +!reach(X) is never relevant here: no step, message or initial goal pursues it;"
        " did you mean recah/1?",
        "7:25: there is no internal action lib.go",
        "7:25: there is no internal action math.sqrtt; did you mean math.sqrt or math.tan?",
    ]
    assert main(["asl", str(doubtful), "--quiet"]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert f"{doubtful}:5:24: .nth takes 3 arguments, not 2\n" in captured.err
    assert main(["asl", "--check", str(files / "bob.asl"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["findings"][0]["wrong"] is False


def test_files_are_laid_out_in_place_and_those_that_cannot_be_read_stay(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    untidy, bad = files / "untidy.asl", files / "bad.asl"
    untidy.write_text(
        '//@ remark "r"\n@a[atomic] +!s:p( X )&not q<-if(X>-1){a;b}else{ c };//why\n !t.\n\n\np(1).'
    )
    bad.write_text("+!s <- ")
    assert main(["asl", "--format", str(untidy), str(bad)]) == 2
    assert "bad.asl:1:8: expected a step" in capsys.readouterr().err
    tidy = """//@ remark "r"
@a[atomic]
+!s : p(X) & not q <-
    if (X > -1) {
        a;
        b
    } else {
        c
    }; //why
    !t.

p(1).
"""
    assert untidy.read_text() == tidy
    assert bad.read_text() == "+!s <- "
    assert main(["asl", "--format", str(untidy)]) == 0
    assert (untidy.read_text(), capsys.readouterr().out) == (tidy, "")


def test_a_new_program_runs_needs_no_layout_and_overwrites_nothing(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    new = files / "new.asl"
    assert main(["asl", "--new", str(new)]) == 0
    text = new.read_text()
    assert main(["asl", "--check", str(new), "--quiet"]) == main(["asl", "--format", str(new)]) == 0
    assert new.read_text() == text
    assert main(["asl", str(new), "--quiet"]) == 0
    assert main(["asl", "--new", str(new)]) == 2
    assert "File exists" in capsys.readouterr().err


def test_a_program_is_stepped_asked_and_changed_in_the_shell(
    files: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (files / "one.asl").write_text(
        "at(1). near(X) :- at(X).\n!go. +!go <- .print(a); -+at(2).\n+!hi <- .print(hi)."
    )
    lines = [
        "",
        "?near(X)",
        "?near(7)",
        "?near(",
        "+at(3)",
        "!hi",
        "run",
        "?at(X) & X > 2",
        "nobody",
        "beliefs",
        "quit",
    ]
    monkeypatch.setattr("sys.stdin", io.StringIO("".join(f"{line}\n" for line in lines)))
    assert main(["asl", "--step", str(files / "one.asl"), "--quiet"]) == 0
    shown = capsys.readouterr().out
    for line in (
        "    1 one: event +!go\n",
        "    1 one: intention 1: .print(a)  (line 2)\n[one] a\n",
        "X = 1\nno\nthe formula:1:6: expected a term, found the end of the text\n",
        "    1 one: +at(3)[source(self)]\n",
        "[one] hi\n",
        "nothing is left to do\nno\n'nobody' is no command; help lists them\nat(1)[source(self)]\n",
    ):
        assert line in shown


def test_files_are_listed_beneath_the_folder_of_a_program_only(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "programs" / "parts"
    (folder / "more").mkdir(parents=True)
    for file in (folder / "a.asl", folder / "b.txt", folder / "more" / "c.asl"):
        file.write_text("")
    program = folder.parent / "lister.asl"
    program.write_text("""
        !list.
        +!list <- .list_files("./parts", ".*.asl", L); .print(L); .list_files("parts/more/", M); .print(M);
            .list_files("none", N); .print(N); !no("../other", ".*"); !no("/etc", ".*"); !no(".", "[a]").
        +!no(F, P) <- .list_files(F, P, L); .print(L).
        -!no(_, _)[error_msg(M)] <- .print(M).
    """)
    assert main(["asl", str(program)]) == 0
    assert capsys.readouterr().out.splitlines()[:6] == [
        '[lister] ["./parts/a.asl","./parts/more/c.asl"]',
        '[lister] ["parts/more/c.asl"]',
        "[lister] []",
        "[lister] .list_files: ../other lies in no folder of a program",
        "[lister] .list_files: /etc lies in no folder of a program",
        "[lister] .list_files: of patterns there are . and .*",
    ]
