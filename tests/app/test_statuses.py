"""`status` and `agent_list` of a workspace that no engine has open are read from its journal."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.commands.command_runner import run_command
from app.commands.statuses import answer_of_closed
from engine.core.store.places import note_open
from tests.trusting import write_trusted

MADE = "agent_create bdi_agent pilot-1"
FORMS = {
    "no agent": (),
    "new": (MADE,),
    "planned": (MADE, "goal write 'x' to a.txt and list the files"),
    "done": (MADE, "goal write 'x' to a.txt", "run"),
    "stopped": (MADE, "goal write 'x' to a.txt", "stop"),
    "two": (MADE, "agent_create bdi_agent pilot-2", "goal fly to the moon", "agent_delete pilot-2"),
}


async def _made(workspace: Path, *lines: str) -> None:
    for line in lines or ("agent_list",):
        await run_command(workspace, line, quiet=True)


def _journal(workspace: Path) -> Path:
    return workspace / ".pilothouse" / "journal.db"


@pytest.mark.parametrize("form", FORMS)
async def test_the_answer_is_that_of_an_engine_and_nothing_is_recorded(form: str, tmp_path: Path) -> None:
    await _made(tmp_path, *FORMS[form])
    before = _journal(tmp_path).read_bytes()
    read = [await answer_of_closed(tmp_path, line, "") for line in ("status", "Agent_list")]
    assert _journal(tmp_path).read_bytes() == before
    opened = [await run_command(tmp_path, line) for line in ("status", "Agent_list")]
    for mine, theirs in zip(read, opened, strict=True):
        assert mine is not None
        # How long it has waited, at the end of the text, goes on between the two.
        assert (mine[:2], mine[2].partition(", since")[0]) == (theirs[:2], theirs[2].partition(", since")[0])


@pytest.mark.parametrize("line", ["goal list the files", "status now", "statsu", "status ?", ""])
async def test_other_lines_are_left_to_an_engine(line: str, tmp_path: Path) -> None:
    await _made(tmp_path, MADE)
    assert await answer_of_closed(tmp_path, line, "") is None


async def test_what_an_opening_may_change_is_left_to_an_engine(tmp_path: Path) -> None:
    assert await answer_of_closed(tmp_path, "status", "") is None
    assert list(tmp_path.iterdir()) == []
    await _made(tmp_path, MADE, "mission demo-review")
    assert await answer_of_closed(tmp_path, "status", "nobody") is None
    assert await answer_of_closed(tmp_path, "status", "pilot-1") is None  # a run was cut off
    await run_command(tmp_path, "status")
    assert await answer_of_closed(tmp_path, "status", "pilot-1") is not None
    (tmp_path / "pilothouse.toml").write_text("[cockpit]\n")
    assert await answer_of_closed(tmp_path, "status", "pilot-1") is None  # it is not trusted
    write_trusted(tmp_path / "pilothouse.toml", "[cockpit]\n")
    assert await answer_of_closed(tmp_path, "status", "pilot-1") is not None
    note_open(_journal(tmp_path))  # as a kill leaves it
    assert await answer_of_closed(tmp_path, "status", "pilot-1") is None


async def test_a_journal_that_was_changed_is_left_to_an_engine(tmp_path: Path) -> None:
    await _made(tmp_path, MADE)
    with _journal(tmp_path).open("r+b") as file:
        file.seek(4096)
        file.write(b"\0" * 64)
    assert await answer_of_closed(tmp_path, "status", "") is None
