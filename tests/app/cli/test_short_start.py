"""`pilothouse do` opens a workspace, asks one thing and ends: it opens only what that needs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

NOT_OPENED = frozenset(
    {
        "engine.api.engine",
        "app.commands.command_runner",
        "engine.crew.crew",
        "engine.improve.mastermind",
        "engine.memory.open_memory",
        "app.commands.goals",
        "importlib.metadata",
        "textual",
    }
)
"""An engine, who works on handoffs and campaigns, memory, other nouns, a search for plug-ins of pydantic."""


def _do(workspace: Path, line: str, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *options, "-m", "app.cli.main", "do", "--workspace", str(workspace), line]
    return subprocess.run([*command, "--json"], capture_output=True, text=True, check=False)


DELEGATE = """delegate jtbd why given='{"output": "as told"}'"""


@pytest.fixture
def busy(tmp_path: Path) -> Path:
    """A workspace with an agent, an item of Mastermind's and a handoff of which the result was given."""
    for line in ("agent_create bdi_agent pilot-1", "coord_suggest make tests faster", DELEGATE):
        _do(tmp_path, line)
    return tmp_path


def test_a_question_about_an_agent_opens_neither_memory_nor_mastermind_nor_crew(busy: Path) -> None:
    _do(busy, "status")  # ends the run
    done = _do(busy, "status", "-X", "importtime")
    assert done.returncode == 0
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "engine.core.events" in imported
    assert not NOT_OPENED & imported


def test_a_run_that_was_cut_off_is_ended_by_the_next_session_however_short(busy: Path) -> None:
    _do(busy, "status")
    done = _do(busy, "agent_list")
    assert [agent["id"] for agent in json.loads(done.stdout.splitlines()[-1])["agents"]] == ["pilot-1"]
