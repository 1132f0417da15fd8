"""One flipped bit anywhere in a record is named (spec steering §4 T25)."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from app.cli.sessions import query_sessions
from tests.benchmarks.flipping import columns_of, everywhere, flip, recorded


@pytest.fixture
async def workspace(tmp_path: Path) -> Path:
    await recorded(tmp_path)
    return tmp_path


@pytest.mark.only_in_a_file
async def test_a_flipped_bit_in_any_column_or_anywhere_is_named_or_is_no_part_of_the_record(
    workspace: Path,
) -> None:
    dice = random.Random(25)
    places = [*columns_of(workspace, dice, 2), *everywhere(workspace, dice, 50)]
    tally = await flip(workspace, places, dice)
    assert tally.silent == []
    assert tally.found > 30
    assert (await query_sessions(workspace, "verify", ""))[0] == 0


@pytest.mark.only_in_a_file
async def test_an_event_whose_blob_is_gone_or_changed_is_named(workspace: Path) -> None:
    (blob,) = [path for path in (workspace / ".pilothouse/blobs").rglob("*") if path.is_file()]
    content = blob.read_bytes()
    blob.write_bytes(content[:-1] + b"y")
    code, answer, text = await query_sessions(workspace, "verify", "")
    assert (code, answer["ok"]) == (1, False)
    assert answer["first_bad"].startswith("pilot:")
    assert "does not hold what it held" in text
    blob.unlink()
    _, gone, _ = await query_sessions(workspace, "verify", "")
    assert gone["first_bad"] == answer["first_bad"]
    assert "cannot be read" in gone["reason"]
