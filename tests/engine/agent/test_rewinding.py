"""Going back: state and files as they were after an event, what cannot be undone named, nothing lost."""

from __future__ import annotations

from pathlib import Path

import pytest
from engine_flight import Flight, act, journal_holds_together, python
from saving_flight import picture, snapshots_of

from engine.agent.actions.snapshots import SnapshotRule
from engine.agent.shared import EngineConfig
from engine.agent.steering.rewind_preview import RewindError
from engine.api.engine import Engine
from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.agents import RunState
from tests.engine.sandbox.snapshots.snapshot_samples import forget
from tests.rewinding import Wanderer

WRITES = (
    act("write", path="a.txt", content="one"),
    python("import os; os.mkdir('d'); open('d/b.txt','w').write('two'); os.remove('a.txt')"),
    act("write", path="c.txt", content="three"),
)


async def steps(flight: Flight, count: int) -> list[tuple[int, dict[str, tuple[int, bytes | str]]]]:
    """Take steps one by one; after each the version and the files."""
    seen = []
    for _ in range(count):
        actions = (await flight.state()).actions
        await flight.do(cmd.Step)
        await flight.until(lambda s, n=actions: s.actions > n and not s.acting and not s.grants)  # type: ignore[misc]
        await flight.until(lambda s: s.action is None or not s.action.started)
        await flight.until_durable(flight.agent)
        seen.append(((await flight.state()).version, picture(flight.sandbox)))
    return seen


async def test_state_and_files_are_as_they_were_shell_effects_included(flight: Flight) -> None:
    planned = await flight.plan(*WRITES)
    seen = await steps(flight, 2)
    await flight.do(cmd.Believe, key="door", value="open")
    version, files = seen[0]
    preview = await flight.engine.time_travel.preview(flight.agent, version)
    assert preview.restoration is not None
    assert set(preview.restoration.removed) == {"d"}
    assert preview.restoration.written == ("a.txt",)
    assert [words for words in preview.lasting if "python -c" in words]
    assert picture(flight.sandbox) == seen[1][1]

    receipt = await flight.do(cmd.Rewind, to=version)
    assert "each file checked" in receipt.message
    assert picture(flight.sandbox) == files
    state = await flight.state()
    assert state.run is RunState.PAUSED
    assert "door" not in state.beliefs
    assert [step.status.value for step in state.plans[state.current_goal].steps] == [
        *("completed", "planned", "planned")
    ]
    assert state.actions == 2
    await flight.do(cmd.Run)
    done = await flight.until(lambda s: not s.open_goals)
    assert await flight.started() == [planned[0], planned[1], planned[1], planned[2]]
    assert done.next_id["a"] >= 4
    assert (flight.sandbox / "c.txt").read_text() == "three"


async def test_a_rewind_is_rewound(flight: Flight) -> None:
    await flight.plan(*WRITES)
    seen = await steps(flight, 2)
    (flight.sandbox / "mine").write_text("by hand")
    before, present = await flight.state(), picture(flight.sandbox)
    await flight.until_durable(flight.agent)
    await flight.do(cmd.Rewind, to=seen[0][0])
    assert not (flight.sandbox / "mine").exists()
    await flight.do(cmd.Rewind, to=before.version)
    assert picture(flight.sandbox) == present
    after = await flight.state()
    assert after.plans == before.plans
    assert after.goals == before.goals


async def test_only_files_or_only_state(flight: Flight) -> None:
    await flight.plan(*WRITES)
    seen = await steps(flight, 2)
    plans = (await flight.state()).plans
    await flight.do(cmd.Rewind, to=seen[0][0], scope="files", paths=("a.txt",))
    assert (flight.sandbox / "a.txt").read_text() == "one"
    assert (flight.sandbox / "d" / "b.txt").exists()
    assert (await flight.state()).plans == plans
    await flight.do(cmd.Rewind, to=seen[0][0], scope="state")
    assert (await flight.state()).plans != plans
    assert (flight.sandbox / "d" / "b.txt").exists()


async def test_an_event_in_the_middle_of_an_action_stands_for_the_one_before_it(flight: Flight) -> None:
    await flight.plan(*WRITES)
    await steps(flight, 2)
    (_, second) = [event for event in await flight.events() if event.kind == ev.ActionStarted.kind]
    preview = await flight.engine.time_travel.preview(flight.agent, second.version)
    assert (preview.asked, preview.to) == (second.version, second.version - 1)
    await flight.do(cmd.Rewind, to=second.version)
    assert set(picture(flight.sandbox)) == {"a.txt"}


async def test_it_is_refused_while_the_agent_runs_or_acts(flight: Flight) -> None:
    await flight.plan(python("import time; print('on', flush=True); time.sleep(60)"))
    version = (await flight.state()).version
    await flight.do(cmd.Step)
    await flight.until(lambda s: s.acting)
    assert "is running; wait for it or stop it first" in await flight.refused(cmd.Rewind, to=version)
    await flight.do(cmd.Stop)
    await flight.until(lambda s: s.action is None)
    assert "has not happened yet" in await flight.refused(cmd.Rewind, to=10_000)
    with pytest.raises(RewindError, match="no point in time"):
        await flight.engine.time_travel.place_of(flight.agent, "yesterday")


async def test_another_agent_at_work_on_the_same_files_keeps_them_as_they_are(flight: Flight) -> None:
    await flight.plan(*WRITES)
    seen = await steps(flight, 1)
    await flight.do(cmd.CreateAgent, agent="other")
    await flight.do(cmd.CallTool, agent="other", command="write", args={"path": "theirs", "content": "x"})
    await flight.until(lambda s: not s.requests and not s.busy, "other")
    await flight.do(cmd.CallTool, agent="other", command="mkdir", args={"path": "more"})
    await flight.until(lambda s: not s.requests and not s.busy, "other")
    await flight.until_durable("other")
    preview = await flight.engine.time_travel.preview(flight.agent, seen[0][0])
    assert any(line.startswith("theirs: other a1") for line in preview.others), preview.others
    await flight.do(cmd.AdoptGoal, agent="other", text="run 'sleep 60'")
    await flight.do(cmd.Run, agent="other")
    assert "other works on the same files" in await flight.refused(cmd.Rewind, to=seen[0][0])
    assert (flight.sandbox / "theirs").exists()
    await flight.do(cmd.Stop, agent="other")
    await flight.until(lambda s: s.action is None, "other")


async def test_an_end_in_the_middle_is_found_and_can_be_repeated(flight: Flight) -> None:
    await flight.plan(*WRITES)
    seen = await steps(flight, 2)
    agent = flight.engine._agents[flight.agent]
    saved = await snapshots_of(flight).take()
    began = await flight.events()
    first = next(ev.payload_of(event) for event in began if event.kind == ev.SnapshotTaken.kind)
    assert isinstance(first, ev.SnapshotTaken)
    agent.handle(cmd.Rewind(agent=flight.agent, to=seen[0][0]), "operator:test")
    begun = ev.RewindBegun(to=seen[0][0], what="both", snapshot=first.snapshot, saved=saved.id)
    agent.append(begun, "operator:test", f"{flight.agent}:{agent.state.version}")
    await agent.log.commit()
    assert "a rewind changes files" in await flight.refused(cmd.Run)
    await flight.reopen()
    state = await flight.state()
    assert state.rewinding is None
    assert state.intervention is not None
    assert f"rewind {seen[0][0]} does it again" in state.intervention.reason
    await flight.do(cmd.Rewind, to=seen[0][0])
    assert picture(flight.sandbox) == seen[0][1]
    assert (await flight.state()).intervention is None


async def test_a_snapshot_that_is_gone_leaves_the_state(flight: Flight) -> None:
    await flight.plan(*WRITES)
    seen = await steps(flight, 2)
    saved = [said.snapshot for said in await flight.payloads(ev.SnapshotTaken)]
    forget(snapshots_of(flight), saved[1])
    assert (
        "there is no snapshot"
        in (await flight.engine.time_travel.preview("pilot", seen[0][0])).trouble.lower()
    )
    assert "No file was changed; rewind state" in await flight.refused(cmd.Rewind, to=seen[0][0])
    assert (await flight.state()).rewinding is None
    assert picture(flight.sandbox) == seen[1][1]
    await flight.do(cmd.Rewind, to=seen[0][0], scope="state")


async def test_the_names_of_places(flight: Flight) -> None:
    planned = await flight.plan(*WRITES)
    await steps(flight, 2)
    place = flight.engine.time_travel.place_of
    head = (await flight.state()).version
    requested = [event.version for event in await flight.events() if event.kind == ev.ActionRequested.kind]
    assert await place(flight.agent, "12") == await place(flight.agent, "pilot:12") == 12
    assert await place(flight.agent, "-3") == head - 3
    assert await place(flight.agent, "here", 7) == 7
    assert await place(flight.agent, planned[1]) == requested[1] - 1 or len(requested) > 2
    with pytest.raises(RewindError, match="no event of pilot"):
        await place(flight.agent, "other:3")


async def test_without_snapshots_only_the_state_can_go_back(tmp_path: Path, open_flight) -> None:  # type: ignore[no-untyped-def]
    flight = await open_flight(tmp_path, config=EngineConfig(snapshots=SnapshotRule.OFF))
    await flight.plan(*WRITES)
    seen = await steps(flight, 2)
    assert "no snapshots of the files are taken here" in await flight.refused(cmd.Rewind, to=seen[0][0])
    await flight.do(cmd.Rewind, to=seen[0][0], scope="state")
    assert (flight.sandbox / "d").is_dir()


async def test_random_rewinds_give_the_tree_and_the_state_that_were(tmp_path: Path) -> None:
    """Steering §4 T12 in small: the benchmark `rewinding` makes 200."""
    engine = await Engine.open(tmp_path)
    wanderer = Wanderer(engine, 7)
    await wanderer.fly(6)
    found = await wanderer.wander(15)
    await engine.close()
    assert (found.same, found.other) == (15, [])
    await journal_holds_together(tmp_path)
