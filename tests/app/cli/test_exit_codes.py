"""Every documented exit code, by real processes: of `run`, and of `do` where an agent is held."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests import forking

GOAL = "create a directory called notes and write 'hello' to notes/a.txt"
NONSENSE = "frobnicate the whatsit"


def pilothouse(workspace: Path, *words: str) -> tuple[int, dict[str, Any]]:
    """The exit code of a process, and its JSON answer; empty where a line could not be understood."""
    done: subprocess.CompletedProcess[str] = forking.run(forking.CLI, *words, "--json", cwd=workspace)
    assert "Traceback" not in done.stdout + done.stderr
    return done.returncode, json.loads(done.stdout.splitlines()[-1]) if done.stdout else {}


@pytest.mark.parametrize(
    ("words", "code", "status"),
    [
        ((GOAL,), 0, "GOAL_ACHIEVED"),
        ((NONSENSE, "--approve", "never-ask"), 1, "FAILED"),
        ((GOAL, "--mission", "first-flight"), 2, ""),
        ((NONSENSE,), 3, "NEEDS_OPERATOR"),
        ((GOAL, "--break", "tool write"), 3, "NEEDS_OPERATOR"),
        ((GOAL, "--budget-actions", "1"), 4, "BUDGET_EXCEEDED"),
        ((GOAL, "--max-loops", "1"), 5, "TIMED_OUT"),
    ],
)
def test_run_exits_with_the_code_of_its_status(
    tmp_path: Path, words: tuple[str, ...], code: int, status: str
) -> None:
    ended, answer = pilothouse(tmp_path, "run", *words)
    assert (ended, answer.get("status", "")) == (code, status)


def test_do_exits_with_the_code_of_what_holds_the_agent(tmp_path: Path) -> None:
    def do(line: str) -> tuple[int, str]:
        code, answer = pilothouse(tmp_path, "do", line)
        return code, str(answer.get("status", ""))

    assert do("agent_create bdi_agent p1") == (0, "")
    assert do(f"goal {GOAL}") == (0, "")
    assert do("budget actions 1") == (0, "")
    assert do("run") == (4, "BUDGET_EXCEEDED")
    assert do("budget actions 9") == (0, "")
    assert do("break tool write") == (0, "")
    assert do("run") == (3, "NEEDS_OPERATOR")
    assert do("break clear b1") == (0, "")
    assert do("run") == (0, "")
    assert do("! read nothing.txt") == (1, "FAILED")
    assert do("nosuchline") == (2, "")
    assert do(f"goal {NONSENSE}") == (3, "NEEDS_OPERATOR")
    assert do("run") == (3, "NEEDS_OPERATOR")
    assert do("drop g2") == (0, "")
