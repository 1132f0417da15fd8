"""The explorer's log: every kind that applies, and runs that replay to the same bytes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

import pytest
from explorer_answers import FLYING

from app.cli.main import main
from engine.planning.pgp import log_events as log
from engine.tools.worlds.explorer import recorded_answer

CLUMSY = """\
```yaml
EVENT: achieve reach(home)
CONDITIONS:
- not stumbled
OPERATIONS:
- add stumbled
- spawn look_up
- spawn look_down
- spawn think
- execute pause()
- execute sleep(1)
- execute move(up)
---
EVENT: achieve look_up
OPERATIONS:
- execute move(Direction)
---
EVENT: achieve look_down
OPERATIONS:
- test seen(Something)
---
EVENT: achieve think
CONDITIONS:
- stumbled
- bright
OPERATIONS:
- <none>
```
- goal: look_up
  purpose: x
- belief: stumbled
  purpose: it fell over
"""
"""Whatever can go wrong in a run goes wrong here: a wrong direction, none at all, an unknown belief."""

ELSEWHERE = {"message_received"}
"""Kinds that need a second agent."""


def logged(path: Path, *options: str) -> list[log.LogLine]:
    assert main(["explorer", *options, "--log", str(path), "--json"]) == 0
    return [log.LogLine.from_json(line) for line in path.read_text(encoding="utf-8").split("\n") if line]


def kinds(lines: Sequence[log.LogLine]) -> set[str]:
    return {line.event.kind for line in lines}


def test_every_kind_of_event_that_applies_occurs_in_the_logs_of_explorer_runs(tmp_path: Path) -> None:
    flying, clumsy = tmp_path / "flying.txt", tmp_path / "clumsy.txt"
    flying.write_text(FLYING)
    clumsy.write_text(CLUMSY)
    seen: set[str] = set()
    for options in (("--pgp",), ("--answer", "5.9"), ("--answer", str(flying)), ("--answer", str(clumsy))):
        seen |= kinds(logged(tmp_path / "log.jsonl", *options))
    every = {one.model_fields["kind"].default for one in get_args(log.LogEvent)}
    assert every - seen == ELSEWHERE


def test_what_fails_is_told_at_warning_level_with_its_cause(tmp_path: Path) -> None:
    clumsy = tmp_path / "clumsy.txt"
    clumsy.write_text(CLUMSY)
    lines = logged(tmp_path / "log.jsonl", "--answer", str(clumsy))
    bad = [
        line.event for line in lines if line.level is log.Level.WARNING and line.system.endswith("-cycles")
    ]
    assert [one.kind for one in bad].count("plan_not_found") == 1
    failed = {one.action: (one.cause, one.reason) for one in bad if isinstance(one, log.ActionFailed)}
    assert failed["move(up)"] == ("failed", "there is no direction up")
    assert log.TestGoalFailed(goal="?seen(Something)") in bad
    (inapplicable,) = [one for one in bad if isinstance(one, log.PlanInapplicable)]
    (guards,) = inapplicable.guards.values()
    assert [(one.guard, one.held) for one in guards] == [("stumbled", True), ("bright", False)]


def test_a_generation_is_logged_from_the_prompt_to_the_plans(tmp_path: Path) -> None:
    lines = [line for line in logged(tmp_path / "l.jsonl", "--answer", "5.9") if line.generation]
    first = [line.event for line in lines if line.system == "explorer-7-cycles"]
    assert [one.kind for one in first] == [
        "generation_requested",
        "generation_succeeded",
        "prompt_sent",
        "prompt_sent",
        "answer_received",
        "mind_changed",
        "mind_changed",
        "generation_succeeded",
    ]
    answers = [one.text for one in first if isinstance(one, log.AnswerReceived)]
    assert answers == [recorded_answer("listing-5.9")]
    assert [one.text for one in first if isinstance(one, log.MindChanged)] == ["explore", "visited(Location)"]


@pytest.mark.parametrize("options", [("--answer", "5.8"), ("--answer", "5.11", "--compat"), ("--pgp",)])
def test_a_logged_run_replays_from_its_own_answers_to_the_same_bytes(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    first, again = tmp_path / "first.jsonl", tmp_path / "again.jsonl"
    seeds = ("--seeds", "7,11")
    logged(first, *options, *seeds)
    if options == ("--pgp",):  # the text of a program is none of the answer format
        logged(again, *options, *seeds)
    else:
        logged(again, "--thinker", f"recorded:{first}", *seeds, *options[2:])
    assert again.read_bytes() == first.read_bytes()


def test_another_process_with_other_hashes_writes_the_same_bytes(tmp_path: Path) -> None:
    code = "import sys; from app.cli.main import main; sys.exit(main(sys.argv[1:]))"
    written = []
    for seed in ("1", "2"):
        path = tmp_path / f"{seed}.jsonl"
        command = [sys.executable, "-c", code, "explorer", "--answer", "5.10", "--log", str(path), "--json"]
        subprocess.run(
            command, env={**os.environ, "PYTHONHASHSEED": seed}, check=True, capture_output=True, timeout=120
        )
        written.append(path.read_bytes())
    assert written[0] == written[1]


def test_a_log_with_another_seed_asks_what_was_not_recorded_and_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The prompt at the start is the same for every seed; one that was never given has no answer."""
    path = tmp_path / "l.jsonl"
    logged(path, "--answer", "5.8")
    capsys.readouterr()
    assert main(["explorer", "--thinker", f"recorded:{path}", "--seeds", "3"]) == 0
    lines = path.read_text(encoding="utf-8").split("\n")
    path.write_text("\n".join(line.replace("# System Message", "# Other") for line in lines))
    capsys.readouterr()
    assert main(["explorer", "--thinker", f"recorded:{path}"]) == 1
    said = capsys.readouterr().out
    assert said == "the thinker gave no answer: unrecorded: the log holds no answer to this prompt\n"


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ('{"system":"s"}', "line 1 is no line of a run's log"),
        (None, "no generation was logged"),
    ],
)
def test_a_log_that_is_none_is_refused_with_its_fault(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str | None, complaint: str
) -> None:
    path = tmp_path / "l.jsonl"
    path.write_text(content or log.LogLine(system="s", cycle=0, event=log.PlanNotFound(event="x")).to_json())
    assert main(["explorer", "--thinker", f"recorded:{path}"]) == 2
    assert complaint in capsys.readouterr().err


def test_the_log_tells_of_no_secret_and_its_lines_name_run_and_agent(tmp_path: Path) -> None:
    lines = logged(tmp_path / "l.jsonl", "--answer", "5.8")
    (config,) = {
        json.dumps(line.event.config) for line in lines if isinstance(line.event, log.GenerationRequested)
    }
    assert "token" not in json.loads(config)
    assert {line.system for line in lines} == {"explorer-7-cycles", "explorer-7-ref_cycles"}
    assert {line.agent for line in lines} == {"explorer"}
