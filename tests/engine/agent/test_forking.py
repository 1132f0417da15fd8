"""Forks: another agent from an event on, with files of its own; the original stays as it is."""

from __future__ import annotations

import json

from engine_flight import Flight, act, python
from saving_flight import picture

from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.goals import GoalStatus

WRITES = (
    act("write", path="a.txt", content="one"),
    python("open('b.txt','w').write(open('a.txt').read() * 2)"),
    act("write", path="c.txt", content="three"),
)


async def fly_and_fork(flight: Flight, name: str = "pilot-b") -> tuple[int, int]:
    """Reach the goal, then fork before the second action; that version, and how many events there are."""
    await flight.plan(*WRITES)
    await flight.do(cmd.Run)
    await flight.until(lambda s: not s.open_goals)
    await flight.until_durable(flight.agent)
    version = await flight.engine.time_travel.place_of(flight.agent, "a3")
    count = len(await flight.events())
    await flight.do(cmd.ForkAgent, to=version, name=name)
    return version, count


async def test_a_fork_goes_on_beside_the_original_with_files_of_its_own(flight: Flight) -> None:
    version, count = await fly_and_fork(flight)
    original = picture(flight.sandbox)
    root = flight.engine.root_of("pilot-b")
    assert set(picture(root)) == {"a.txt"}
    then, fork = await flight.engine.view(flight.agent, version), await flight.state("pilot-b")
    assert fork.plans == then.plans
    assert (fork.actions, fork.model_calls, fork.next_id["s"]) == (0, 0, then.next_id["s"])
    assert fork.forked is not None
    assert fork.forked.parent == f"pilot:{version}"
    await flight.do(cmd.CallTool, agent="pilot-b", command="write", args={"path": "a.txt", "content": "two"})
    await flight.until(lambda s: not s.requests and not s.busy, "pilot-b")
    await flight.do(cmd.Run, agent="pilot-b")
    ended = await flight.until(lambda s: not s.open_goals, "pilot-b")
    assert ended.goals["g1"].status is GoalStatus.ACHIEVED
    assert (root / "b.txt").read_text() == "twotwo"
    assert picture(flight.sandbox) == original
    assert len(await flight.events()) == count
    (deed, *_) = await flight.payloads(ev.ActionFinished, "pilot-b")
    assert deed.status == "SUCCESS"


async def test_its_files_can_be_taken_over_and_that_rewound(flight: Flight) -> None:
    await fly_and_fork(flight)
    await flight.do(cmd.CallTool, agent="pilot-b", command="rm", args={"path": "a.txt"})
    await flight.until(lambda s: not s.requests and not s.busy, "pilot-b")
    (flight.engine.root_of("pilot-b") / "new").write_text("from the fork")
    before = picture(flight.sandbox)
    preview = await flight.engine.time_travel.adopt_preview(flight.agent, "pilot-b")
    assert "new" in preview.written
    assert picture(flight.sandbox) == before
    await flight.do(cmd.AdoptFork, fork="pilot-b")
    assert (flight.sandbox / "new").read_text() == "from the fork"
    assert not (flight.sandbox / "c.txt").exists()
    offer = await flight.engine.time_travel.undo_offer(flight.agent)
    assert offer.words == "give back the files of pilot-b"
    assert (await flight.engine.submit(offer.as_command(flight.agent))).ok
    assert picture(flight.sandbox) == before
    assert "no fork of pilot; its forks: pilot-b" in await flight.refused(cmd.AdoptFork, fork="nobody")


async def test_a_fork_is_there_again_after_reopening_rewinds_and_forks(flight: Flight) -> None:
    await fly_and_fork(flight)
    await flight.reopen()
    root = flight.engine.root_of("pilot-b")
    await flight.do(cmd.Run, agent="pilot-b")
    await flight.until(lambda s: not s.open_goals, "pilot-b")
    await flight.until_durable("pilot-b")
    assert set(picture(root)) == {"a.txt", "b.txt", "c.txt"}
    first = await flight.engine.time_travel.place_of("pilot-b", "a3")
    await flight.do(cmd.ForkAgent, agent="pilot-b", to=first, name="pilot-c")
    await flight.do(cmd.Rewind, agent="pilot-b", to=first)
    assert set(picture(root)) == set(picture(flight.engine.root_of("pilot-c"))) == {"a.txt"}
    assert set(picture(flight.sandbox)) == {"a.txt", "b.txt", "c.txt"}


async def test_a_name_that_was_given_is_refused(flight: Flight) -> None:
    await flight.plan(*WRITES)
    version = (await flight.state()).version
    assert "there is an agent pilot" in await flight.refused(cmd.ForkAgent, to=version, name="pilot")
    assert "no event pilot:9999" in await flight.refused(cmd.ForkAgent, to=9_999, name="pilot-b")
    assert json.dumps(list(flight.engine.agents)) == '["pilot"]'
