"""The `pilothouse` command as scripts see it: exit codes, the last line, and one line of complaint."""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests import forking
from tests.patience import PATIENCE_S

KEYS = {
    "status",
    "goal",
    "session",
    "agent",
    "loops",
    "actions",
    "failed_actions",
    "thinker",
    "tokens",
    "cost_usd",
    "duration_s",
    "journal_head",
    "message",
}
PILOTHOUSE = [sys.executable, "-m", "app.cli.main"]
ROOT = Path(__file__).parents[3]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}

Cli = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    def run(*words: str, input: str = "") -> subprocess.CompletedProcess[str]:  # noqa: A002
        done = forking.run(forking.CLI, *words, cwd=tmp_path, typed=input)
        assert "Traceback" not in done.stdout + done.stderr
        return done

    return run


def _last(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def _start(tmp_path: Path, *words: str, **how: Any) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*PILOTHOUSE, *words],
        cwd=tmp_path,
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **how,
    )


def _wait_for(holds: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def _slow_goal(tmp_path: Path) -> str:
    """A goal whose program, named like nothing else, writes its id into `pid` and sleeps."""
    (tmp_path / "sandbox").mkdir()
    program = "import os, time\nopen('pid', 'w').write(str(os.getpid()))\ntime.sleep(60)\n"
    name = f"slow_{secrets.token_hex(6)}.py"
    (tmp_path / "sandbox" / name).write_text(program)
    return f"run {name}"


def _running(tmp_path: Path) -> None:
    """Wait until the slow program runs."""
    path = tmp_path / "sandbox" / "pid"
    _wait_for(lambda: path.exists() and path.read_text())


def _gone(words: bytes) -> bool:
    """Whether no process bears these words; the ids that jailed programs see of themselves are their own."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if words in path.read_bytes():
                return False
    return True


def test_the_first_mission_from_beginning_to_replay(cli: Cli) -> None:
    done = cli("run", "--mission", "first-flight", "--json")
    result = _last(done)
    assert (done.returncode, result["status"]) == (0, "GOAL_ACHIEVED")
    assert set(result) >= KEYS
    assert "goal g1 achieved" in done.stderr

    verified = _last(cli("sessions", "verify", "--json"))
    assert verified["ok"] is True
    assert verified["first_bad"] is None
    assert verified["head"] == result["journal_head"]

    replayed = _last(cli("sessions", "replay", "--json"))
    assert (replayed["ok"], replayed["matches"], replayed["model_calls"]) == (True, True, 0)
    assert replayed["head"] == result["journal_head"]

    (session,) = _last(cli("sessions", "list", "--json"))["sessions"]
    assert session["session"] == result["session"]
    shown = _last(cli("sessions", "show", result["session"], "--json"))
    assert any("goal g1 achieved" in line for line in shown["lines"])
    assert _last(cli("sessions", "show", "pilot-1", "--json"))["agent"] == "pilot-1"

    doctor = cli("doctor", "--json")
    assert doctor.returncode == 0
    assert set(_last(doctor)) >= {"sandbox", "terminal", "sqlite", "model", "journal"}


def test_missions_and_do_answer_in_json(cli: Cli) -> None:
    names = [mission["name"] for mission in _last(cli("missions", "--json"))["missions"]]
    assert names[:2] == ["first-flight", "api-client"]
    assert cli("do", "agent_create", "bdi_agent", "two").returncode == 0
    assert _last(cli("do", "--json", "goal list the files"))["message"] == "goal g1 adopted"
    assert _last(cli("do", "--json", "run"))["mode"] == "IDLE"
    refused = cli("do", "--json", "retry s1")
    assert (refused.returncode, _last(refused)["ok"]) == (1, False)


@pytest.mark.parametrize(
    "words",
    [
        ["fly"],
        ["run"],
        ["run", "x", "--mission", "first-flight"],
        ["run", "--mission", "nowhere"],
        ["run", "x", "--max-loops", "0"],
        ["run", "x", "--max-loops", "²"],
        ["run", "x", "--timeout", "nan"],
        ["run", "x", "--agent", "../x"],
        ["run", "x", "--thinker", "oracle"],
        ["run", "--thinker", "recorded:"],
        ["run", "--thinker", "recorded:nowhere.pilot"],
        ["run", "x", "--thinker", "recorded:nowhere.pilot"],
        ["run", "x", "--budget-usd", "nan"],
        ["run", "x", "--budget-tokens", "0"],
        ["run", "x" * 8_001],
        ["run", "\udcff"],
        ["run", "x", "--wings"],
        ["do"],
        ["do", "gaol x"],
        ["do", "agent_create bdi_agent for"],
        ["do", "run " + "9" * 5_000],
        ["do", "status", "--agent", "ghost"],
        ["do", "theme dusk"],
        ["sessions"],
        ["sessions", "burn"],
        ["sessions", "list"],
        ["sessions", "verify"],
        ["--workspace"],
        [],
        ["--mission", "nowhere"],
    ],
    ids=lambda words: " ".join(words)[:40].encode("ascii", "replace").decode() or "nothing",
)
def test_unknown_input_is_one_line_and_exit_code_2(cli: Cli, words: list[str]) -> None:
    done = cli(*words)
    assert done.returncode == 2
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith("pilothouse")


@pytest.mark.parametrize("words", [["run", "list the files"], ["do", "status"], ["sessions", "list"]])
@pytest.mark.parametrize("kind", ["garbage", "newer", "file"])
def test_a_workspace_that_cannot_be_opened_is_one_line_and_exit_code_2(
    cli: Cli, tmp_path: Path, words: list[str], kind: str
) -> None:
    import sqlite3
    from contextlib import closing

    if kind == "file":
        (tmp_path / "place").write_text("no directory")
        done = cli(*words, "--workspace", "place")
    else:
        (tmp_path / ".pilothouse").mkdir()
        database = tmp_path / ".pilothouse" / "journal.db"
        if kind == "garbage":
            database.write_bytes(b"this is no database, but it is long enough to be looked at" * 20)
        else:
            assert cli("run", "list the files").returncode == 0
            with closing(sqlite3.connect(database)) as connection:
                connection.execute("pragma user_version = 99")
        done = cli(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1


def test_a_changed_journal_is_named_and_never_a_traceback(cli: Cli, tmp_path: Path) -> None:
    import sqlite3
    from contextlib import closing

    assert cli("run", "list the files").returncode == 0
    with closing(sqlite3.connect(tmp_path / ".pilothouse" / "journal.db")) as connection:
        connection.execute("update events set body = '{}' where stream = 'pilot-1' and version = 3")
        connection.execute("delete from snapshots")
        connection.commit()
    verified = cli("sessions", "verify", "--json")
    assert (verified.returncode, _last(verified)["first_bad"]) == (1, "pilot-1:3")
    for words in (["sessions", "show"], ["sessions", "replay"], ["run", "list the files"], ["do", "status"]):
        done = cli(*words)
        assert done.returncode == 2
        assert len(done.stderr.splitlines()) == 1
        assert "pilot-1:3" in done.stderr
    assert cli("doctor", "--json").returncode == 1


def test_a_mission_that_needs_the_operator_exits_with_3(cli: Cli) -> None:
    done = cli("run", "--mission", "broken-build", "--json", "--quiet")
    assert (done.returncode, _last(done)["status"]) == (3, "NEEDS_OPERATOR")
    assert done.stderr == ""


def test_what_fails_with_nobody_to_ask_exits_with_1(cli: Cli) -> None:
    done = cli("run", "frobnicate", "--approve", "never-ask", "--json")
    assert (done.returncode, _last(done)["reason"]) == (1, "FAILED_PLANNING")


def test_time_up_exits_with_5_and_nothing_runs_on(cli: Cli, tmp_path: Path) -> None:
    goal = _slow_goal(tmp_path)
    done = cli("run", goal, "--timeout", "1", "--json")
    assert (done.returncode, _last(done)["status"]) == (5, "TIMED_OUT")
    assert _gone(goal.removeprefix("run ").encode())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_the_whole_tree_and_exits_with_130(tmp_path: Path, number: int) -> None:
    goal = _slow_goal(tmp_path)
    process = _start(tmp_path, "run", goal, "--json")
    _running(tmp_path)
    process.send_signal(number)
    out, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130
    assert json.loads(out.splitlines()[-1])["status"] == "INTERRUPTED"
    assert "Traceback" not in err
    assert _gone(goal.removeprefix("run ").encode())


def test_an_interrupt_ends_do_and_what_it_runs(cli: Cli, tmp_path: Path) -> None:
    goal = _slow_goal(tmp_path)
    assert cli("do", "agent_create bdi_agent two").returncode == 0
    assert cli("do", f"goal {goal}").returncode == 0
    process = _start(tmp_path, "do", "run")
    _running(tmp_path)
    process.send_signal(signal.SIGINT)
    _out, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130
    assert "Traceback" not in err
    assert _gone(goal.removeprefix("run ").encode())


def test_each_enter_is_one_action(cli: Cli) -> None:
    words = ("run", "create the directories src, tests and docs", "--step", "--json")
    done = cli(*words, input="\n\n\n")
    result = _last(done)
    assert (done.returncode, result["status"], result["actions"]) == (0, "GOAL_ACHIEVED", 3)
    assert done.stderr.count("one action allowed") == 3


def test_input_that_ends_too_early_interrupts_the_run(cli: Cli) -> None:
    done = cli("run", "create the directories src, tests and docs", "--step", "--json", input="\n")
    assert (done.returncode, _last(done)["actions"]) == (130, 1)


def test_an_interrupt_ends_a_stepped_run_that_waits_for_enter(tmp_path: Path) -> None:
    process = _start(tmp_path, "run", "list the files", "--step", stdin=subprocess.PIPE)
    assert process.stderr is not None
    while "press Enter" not in process.stderr.readline():
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=PATIENCE_S) == 130
    for stream in (process.stdin, process.stdout, process.stderr):
        assert stream is not None
        stream.close()


def test_events_are_json_lines_that_chain(cli: Cli) -> None:
    done = cli("run", "list the files", "--events", "--json")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    events, result = lines[:-1], lines[-1]
    assert result["status"] == "GOAL_ACHIEVED"
    assert [event["seq"] for event in events] == sorted(event["seq"] for event in events)
    assert {"goal.adopted", "action.started", "goal.ended"} <= {event["kind"] for event in events}


def test_a_reader_that_goes_away_ends_the_run_quietly(tmp_path: Path) -> None:
    process = _start(tmp_path, "run", "list the files", "--events")
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.readline()
    process.stdout.close()
    err = process.stderr.read()
    process.stderr.close()
    assert process.wait(timeout=PATIENCE_S) in (0, 1)
    assert "Traceback" not in err
    assert "BrokenPipe" not in err


def test_a_second_run_works_with_the_engine_of_the_first_which_stays_for_it(cli: Cli, tmp_path: Path) -> None:
    goal = _slow_goal(tmp_path)
    process = _start(tmp_path, "run", goal)
    _running(tmp_path)
    done = cli("run", "list the files", "--agent", "two", "--json")
    assert (done.returncode, _last(done)["status"]) == (0, "GOAL_ACHIEVED")
    refused = cli("sessions", "repair", "--restore")
    assert refused.returncode == 2
    assert "needs it alone: leave the cockpit there" in refused.stderr
    assert "serve --stop" in refused.stderr
    assert cli("sessions", "verify").returncode == 0
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130
    assert _gone(goal.removeprefix("run ").encode())


def test_what_an_agent_was_told_reaches_the_terminal_clean(cli: Cli) -> None:
    assert cli("do", "agent_create bdi_agent two").returncode == 0
    assert cli("do", "goal say \x1b]0;owned\x07 this \u202e").returncode == 3
    for words in (["do", "status"], ["sessions", "show", "two"], ["do", "zz\x1b[2J"]):
        done = cli(*words)
        assert "\x1b" not in done.stdout + done.stderr
        assert "\u202e" not in done.stdout + done.stderr
