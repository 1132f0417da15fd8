"""Files that programs changed are tied to the actions that ran them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from engine.core import commands as cmd
from engine.core import events as ev
from engine.inquiry.why import backward, cascade
from tests.engine.agent.engine_flight import Flight, QuickClock, act, python


@pytest.fixture
async def flight(tmp_path: Path) -> AsyncIterator[Flight]:
    made = Flight(tmp_path, QuickClock())
    await made.open()
    await made.do(cmd.CreateAgent)
    yield made
    await made.engine.close()


async def test_what_a_program_wrote_and_removed_is_found_by_its_path(flight: Flight) -> None:
    steps = await flight.plan(
        act("write", path="in.txt", content="1"),
        python("open('out.txt', 'w').write(open('in.txt').read()); import os; os.remove('in.txt')"),
        act("append", path="out.txt", content="2"),
        act("write", path="other.txt", content="3"),
    )
    await flight.do(cmd.Run)
    await flight.until(lambda s: not s.open_goals)
    await flight.events()
    record = await flight.engine.record()
    asked = await flight.payloads(ev.ActionRequested)
    action = next(said.action for said in asked if said.step == steps[1])
    program = record.subject(action, "pilot").newest
    assert record.subject("out.txt").first == program
    assert record.subject("in.txt").newest == program, "it removed the file"
    assert set(record.files) == {"out.txt", "other.txt"}
    assert program in backward(record, record.subject("out.txt").newest).refs
    standing = {(one.kind, one.name) for one in cascade(record, [program]).standing}
    assert ("file", "out.txt") in standing
    assert ("file", "other.txt") not in standing
