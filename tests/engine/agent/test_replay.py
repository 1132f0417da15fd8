"""Replay: the same events and the same head, without tools, thinkers or clock.

That every other scenario of this folder replays is checked by the fixture that opened it.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from engine_flight import Flight, act, journal_holds_together, python, replay_of

from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.journal import GENESIS, Event, canonical, chain_hash


def _rechained(events: list[Event]) -> list[Event]:
    """The events with hashes that follow from what they say now, as a forger would make them."""
    out, head = [], GENESIS
    for event in events:
        head = chain_hash(
            head,
            event.stream,
            event.version,
            event.at,
            event.tick,
            event.actor,
            event.causes,
            event.kind,
            event.body,
        )
        out.append(event._replace(hash=head))
    return out


async def _several_sessions(flight: Flight) -> None:
    """Sessions that end in good order, while acting and while paused, with all that can come from outside."""
    steps = await flight.plan(
        python("print('x' * 200_000)"),
        python("raise SystemExit(3)"),
        act("write", path="a", content="1"),
        python("import time; time.sleep(60)"),
        act("write", path="b", content="2"),
    )
    await flight.do(cmd.SetBreakpoint, step=steps[2])
    await flight.do(cmd.Run)
    await flight.until(lambda s: s.intervention)
    await flight.do(cmd.CallTool, command="write", args={"path": "mine", "content": "y" * 30_000})
    await flight.until(lambda s: s.operator_actions == 1 and not s.action)
    await flight.do(cmd.CallTool, command="read", args={"path": "mine"})
    await flight.until(lambda s: s.operator_actions == 2 and not s.action)
    await flight.reopen()
    await flight.do(cmd.SkipStep, step=steps[1])
    await flight.do(cmd.Run)
    await flight.until(lambda s: s.breakpoint_hit)
    await flight.reopen()
    await flight.do(cmd.Run)
    await flight.until(lambda s: s.acting and s.action.step == steps[3])
    await flight.reopen()
    await flight.do(cmd.Run)
    await flight.until(lambda s: s.acting and s.action.step == steps[3])
    await flight.do(cmd.Stop)
    await flight.do(cmd.Believe, key="sky", value={"colour": ["blue", 1.5, None]})
    await flight.do(cmd.Forget, key="sky")
    await flight.refused(cmd.Forget, key="sky")
    await flight.until(lambda s: not s.acting)
    await flight.do(cmd.DeleteStep, step=steps[3])
    await flight.do(cmd.Run)
    await flight.until(lambda s: not s.open_goals)


async def test_several_sessions_replay_to_the_same_head(flight: Flight) -> None:
    await _several_sessions(flight)
    events = await flight.events()
    assert any('"blob":"' in event.body for event in events if event.kind == "action.finished")
    before = sorted(path.name for path in flight.sandbox.iterdir())
    replay = await replay_of(flight.workspace, events)
    assert (replay.matches, replay.events, replay.head) == (True, len(events), events[-1].hash)
    assert replay.model_calls == 0
    assert sorted(path.name for path in flight.sandbox.iterdir()) == before


async def test_every_beginning_of_a_journal_replays(flight: Flight) -> None:
    await _several_sessions(flight)
    events = await flight.events()
    for length in range(1, len(events), 3):
        replay = await replay_of(flight.workspace, events[:length])
        assert replay.matches, f"{length}: {replay.difference}"


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        ("action.finished", {"status": "FAILURE", "code": "not_found"}),
        ("action.finished", {"summary": "something else"}),
        (
            "command.received",
            {"command": {"do": "adopt_goal", "agent": "pilot", "text": "go up", "priority": 1}},
        ),
        ("plan.generated", {"steps": []}),
        ("action.requested", {"args": {"path": "other"}}),
        ("goal.adopted", {"text": "another goal"}),
    ],
)
async def test_what_was_changed_afterwards_is_named(
    flight: Flight, kind: str, changes: dict[str, object]
) -> None:
    await flight.plan(act("write", path="a", content=""))
    await flight.do(cmd.Run)
    await flight.until(lambda s: not s.open_goals)
    events = await flight.events()
    place = next(n for n, event in enumerate(events) if event.kind == kind)
    body = {**json.loads(events[place].body), **changes}
    text = json.dumps(body, sort_keys=True, separators=(",", ":"))
    forged = _rechained([*events[:place], events[place]._replace(body=text), *events[place + 1 :]])
    replay = await replay_of(flight.workspace, forged)
    assert not replay.matches
    assert "event pilot:" in replay.difference
    named = int(replay.difference.split("pilot:")[1].split(":")[0].split()[0])
    assert events[place].version <= named <= events[place].version + 3


async def test_a_missing_blob_is_a_difference_and_not_a_crash(flight: Flight) -> None:
    await flight.plan(python("print('x' * 200_000)"))
    await flight.do(cmd.Run)
    await flight.until(lambda s: not s.open_goals)
    events = await flight.events()
    blobs = flight.workspace / ".pilothouse" / "blobs"
    files = [path for path in blobs.rglob("*") if path.is_file()]
    kept = {path: path.read_bytes() for path in files}
    for path in files:
        path.unlink()
    replay = await replay_of(flight.workspace, events)
    assert not replay.matches
    assert "missing: blob" in replay.difference
    for path, content in kept.items():
        path.write_bytes(content)


async def test_a_command_given_while_the_agent_plans_replays_in_its_place(flight: Flight) -> None:
    for number in range(10):
        await flight.do(cmd.AdoptGoal, text=f"create a directory named 'd{number}', then list the files")
        goal = f"g{number + 1}"
        if number % 3 == 0:
            await flight.do(cmd.DropGoal, goal=goal)
        elif number % 3 == 1:
            await flight.do(cmd.ReplacePlan, goal=goal, plan=json.dumps([act("ls")]))
        else:
            await flight.do(cmd.ChangeGoal, goal=goal, text="list the files")
    await flight.do(cmd.Run)
    state = await flight.until(lambda s: not s.open_goals)
    for number in range(1, 10, 3):
        assert [step.command for step in state.plans[f"g{number + 1}"].steps] == ["ls"]


async def test_a_goal_that_ends_with_its_skipped_last_step_replays(flight: Flight) -> None:
    steps = await flight.plan(act("read", path="nowhere"))
    await flight.do(cmd.Run)
    await flight.until(lambda s: s.intervention)
    await flight.do(cmd.SkipStep, step=steps[0])
    await flight.until(lambda s: not s.open_goals)
    await flight.do(cmd.Pause)


async def test_a_deleted_agents_history_replays(flight: Flight, tmp_path: Path) -> None:
    steps = await flight.plan(act("write", path="a", content=""))
    await flight.at_gate(steps[0])
    await flight.do(cmd.DeleteAgent)
    assert flight.engine.agents == ()
    assert "history bears the name" in (await flight.submit(cmd.CreateAgent)).message
    await flight.engine.close()
    (replay,) = await journal_holds_together(tmp_path)
    assert replay.matches
    await flight.open()


async def test_what_an_older_version_wrote_replays_though_it_says_less(flight: Flight) -> None:
    steps = await flight.plan(act("write", path="a", content="1"))
    await flight.do(cmd.Run)
    await flight.until(lambda s: not s.open_goals)
    events = await flight.events()
    old = _rechained([event._replace(body=_without(event, "criteria", "world")) for event in events])
    assert steps
    assert [event.body for event in old] != [event.body for event in events]
    replay = await replay_of(flight.workspace, old)
    assert replay.matches, replay.difference
    assert replay.head == old[-1].hash


def _without(event: Event, *names: str) -> str:
    """An event's body as it was before some fields were thought of."""
    body = json.loads(event.body)
    for holder in (body, body.get("command")):
        if isinstance(holder, dict):
            for name in names:
                holder.pop(name, None)
    return canonical(body)


async def test_a_sentence_that_another_version_worded_otherwise_is_compared_by_state(flight: Flight) -> None:
    await flight.plan(act("write", path="a", content="1"))
    await flight.do(cmd.Run)
    await flight.until(lambda s: not s.open_goals)
    events = await flight.events()
    ends = [event for event in events if event.kind == ev.ActionFinished.kind]
    assert ends
    body = {**json.loads(ends[0].body), "summary": "put into words of before"}
    text = json.dumps(body, sort_keys=True, separators=(",", ":"))
    old = _rechained([event._replace(body=text) if event is ends[0] else event for event in events])
    assert not (await replay_of(flight.workspace, old)).matches
    replay = await replay_of(flight.workspace, old, ("0.1",))
    assert (replay.matches, replay.head) == (True, old[-1].hash), replay.difference
    assert replay.words == "written by 0.1: compared by state"
    assert (await replay_of(flight.workspace, events, ("0.1",))).words == "same head"
