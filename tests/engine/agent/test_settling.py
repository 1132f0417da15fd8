"""Parameters put right before an action runs: shown, on record, and the same when replayed (issue 5)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from engine_flight import Flight, act, replay_of
from test_replay import _rechained

from app.projection import pane_views as views
from app.projection.event_lines import line_of
from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.goals import GoalStatus
from engine.core.reasoner import REASONER
from widgets.base.text_layout import plain
from widgets.panes.plan import detail_lines

LOOK = """
+!look <- read("Notes.TXT", Text); +saw(Text); job_output(J).
-!look <- +failed.
"""


async def goal(flight: Flight, text: str) -> None:
    await flight.do(cmd.AdoptGoal, text=text)
    await flight.do(cmd.Run)
    await flight.until(lambda s: not s.open_goals or s.intervention)


async def test_a_path_in_the_wrong_case_is_read_and_the_record_says_why(flight: Flight) -> None:
    (flight.sandbox / "notes.txt").write_text("hello")
    await goal(flight, "read Notes.TXT")
    (said,) = await flight.payloads(ev.ParametersProcessed)
    assert said.args == {"path": "notes.txt"}
    assert said.survey.missing == ("path",)
    assert [entry.path for entry in said.survey.entries] == ["notes.txt"]
    (requested,) = await flight.payloads(ev.ActionRequested)
    assert requested.args == {"path": "Notes.TXT"}
    (finished,) = await flight.payloads(ev.ActionFinished)
    assert finished.result == {"content": "hello"}


async def test_the_plan_and_the_lines_show_what_was_corrected_and_why(flight: Flight) -> None:
    """Behaviour 39."""
    (flight.sandbox / "notes.txt").write_text("hello")
    await goal(flight, "read Notes.TXT")
    why = "path: 'Notes.TXT' → 'notes.txt' because it is not there, and only this differs in nothing but case"
    (step,) = views.plan(await flight.state()).steps
    assert (step.text, step.corrected) == ("read notes.txt", (why,))
    shown = " ".join(" ".join(plain(line) for line in detail_lines(step, 60)).split())
    assert f"corrected: {why}" in shown
    event = next(one for one in await flight.events() if one.kind == "action.parameters")
    line = line_of(event)
    assert line is not None
    assert line.text == f"a1 corrected: {why}"


async def test_a_held_agent_shows_the_correction_before_the_action_may_run(flight: Flight) -> None:
    (flight.sandbox / "notes.txt").write_text("hello")
    await flight.do(cmd.AdoptGoal, text="read Notes.TXT")
    state = await flight.until(lambda s: s.action and s.settled)
    assert state.action is not None
    assert (state.action.args, state.action.started) == ({"path": "notes.txt"}, False)
    await flight.do(cmd.Step)
    await flight.until(lambda s: s.actions == 1 and not s.action)


async def test_where_nothing_is_wrong_nothing_is_recorded(flight: Flight) -> None:
    (flight.sandbox / "notes.txt").write_text("hello")
    await goal(flight, "create a directory named 'shop', enter it, list the files")
    await goal(flight, "go up, read notes.txt")
    assert await flight.payloads(ev.ParametersProcessed) == []


async def test_two_readings_are_put_to_the_operator_whose_words_then_count(flight: Flight) -> None:
    for name in ("config.json", "config.toml"):
        (flight.sandbox / name).write_text(name)
    await goal(flight, "read 'config'")
    turn = (await flight.state()).intervention
    assert turn is not None
    assert "'config' is not there; it can mean 'config.json' or 'config.toml': say which" in turn.reason
    await flight.do(cmd.EditStep, step="s1", args={"path": "config.toml"})
    await flight.until(lambda s: not s.open_goals)
    assert (await flight.state()).settled == {}
    assert (await flight.payloads(ev.ActionFinished))[-1].result == {"content": "config.toml"}


async def test_what_an_operator_typed_is_never_changed(flight: Flight) -> None:
    (flight.sandbox / "notes.txt").write_text("hello")
    await flight.plan(act("read", path="Notes.TXT"))
    await flight.do(cmd.CallTool, command="read", args={"path": "NOTES.txt"})
    await flight.do(cmd.Run)
    await flight.until(lambda s: s.intervention)
    assert await flight.payloads(ev.ParametersProcessed) == []
    asked = [one for one in await flight.payloads(ev.ActionRequested) if one.command == "read"]
    assert {one.args["path"] for one in asked} == {"NOTES.txt", "Notes.TXT"}


async def test_an_edit_starts_from_what_was_made_of_the_step(flight: Flight) -> None:
    (flight.sandbox / "notes.txt").write_text("hello")
    await flight.do(cmd.AdoptGoal, text="read Notes.TXT")
    await flight.until(lambda s: s.settled)
    await flight.do(cmd.EditStep, step="s1", description="look at it")
    state = await flight.until(lambda s: s.plans["g1"].revision == 2 and s.action)
    assert state.plans["g1"].steps[0].args == {"path": "notes.txt"}


async def test_a_file_that_appears_while_the_agent_waits_is_taken_as_it_was_said(flight: Flight) -> None:
    (flight.sandbox / "notes.txt").write_text("old")
    await flight.do(cmd.AdoptGoal, text="read Notes.TXT")
    await flight.until(lambda s: s.settled)
    await flight.do(cmd.CallTool, command="move", args={"source": "notes.txt", "target": "NOTES.txt"})
    await flight.until(lambda s: s.operator_actions == 1 and not s.requests and s.action and s.action.step)
    await flight.do(cmd.Run)
    await flight.until(lambda s: not s.open_goals)
    assert (await flight.payloads(ev.ActionFinished))[-1].result == {"content": "old"}


async def test_corrections_replay_over_sessions(flight: Flight) -> None:
    (flight.sandbox / "notes.txt").write_text("hello")
    await flight.do(cmd.AdoptGoal, text="read Notes.TXT")
    await flight.until(lambda s: s.settled)
    await flight.reopen()
    await flight.do(cmd.Run)
    await flight.until(lambda s: not s.open_goals)
    events = await flight.events()
    for length in range(1, len(events) + 1):
        replay = await replay_of(flight.workspace, events[:length])
        assert replay.matches, f"{length}: {replay.difference}"


@pytest.mark.parametrize(
    "changes",
    [
        {"args": {"path": "other.txt"}},
        {"corrections": []},
        {"survey": {"missing": [], "entries": [], "whole": True}},
        {
            "survey": {
                "missing": ["path"],
                "entries": [{"path": "NOTES.md", "directory": False}],
                "whole": True,
            }
        },
    ],
)
async def test_a_forged_correction_does_not_replay(flight: Flight, changes: dict[str, Any]) -> None:
    (flight.sandbox / "notes.txt").write_text("hello")
    await goal(flight, "read Notes.TXT")
    events = await flight.events()
    place = next(n for n, event in enumerate(events) if event.kind == "action.parameters")
    body = json.dumps({**json.loads(events[place].body), **changes}, sort_keys=True, separators=(",", ":"))
    forged = _rechained([*events[:place], events[place]._replace(body=body), *events[place + 1 :]])
    assert not (await replay_of(flight.workspace, forged)).matches


async def test_the_actions_of_a_program_are_put_right_too(flight: Flight) -> None:
    (flight.sandbox / "notes.txt").write_text("hello")
    await flight.do(cmd.CreateAgent, agent="mind", agent_type=REASONER, config={"program": LOOK})
    await flight.do(cmd.AdoptGoal, agent="mind", text="look")
    await flight.do(cmd.Run, agent="mind")
    state = await flight.until(
        lambda s: any(one.startswith(("saw", "failed")) for one in s.held_beliefs), agent="mind"
    )
    assert 'saw("hello")' in state.held_beliefs
    said = (await flight.payloads(ev.ParametersProcessed, "mind"))[0]
    assert said.args == {"path": "notes.txt"}
    state = await flight.until(lambda s: not s.action and not s.wanted, agent="mind")
    assert state.settled == {}


async def test_an_agent_with_path_correction_off_reads_what_it_was_told(flight: Flight) -> None:
    (flight.sandbox / "notes.txt").write_text("hello")
    off = {"parameter_processing": {"enable_path_correction": False}}
    await flight.do(cmd.CreateAgent, agent="strict", config=off)
    await flight.do(cmd.AdoptGoal, agent="strict", text="read Notes.TXT")
    await flight.do(cmd.Run, agent="strict")
    state = await flight.until(lambda s: s.intervention, agent="strict")
    assert state.goals["g1"].status is GoalStatus.ACTIVE
    assert await flight.payloads(ev.ParametersProcessed, "strict") == []


async def test_an_agent_with_settings_that_are_none_is_refused(flight: Flight) -> None:
    said = await flight.refused(cmd.CreateAgent, agent="odd", config={"parameter_processing": {"speed": 3}})
    assert "parameter_processing.speed" in said
    assert "enable_path_correction" in said


async def test_hostile_names_reach_no_line_raw(flight: Flight, tmp_path: Path) -> None:
    (flight.sandbox / "Evil\x1b[31m\u202e.txt").write_text("x")
    await goal(flight, r"read 'evil\x1b[31m\xe2\x80\xae.txt'")
    for event in await flight.events():
        line = line_of(event)
        assert line is None or line.text.isprintable()
    for step in views.plan(await flight.state()).steps:
        assert all(plain(one).isprintable() for one in detail_lines(step, 80))
