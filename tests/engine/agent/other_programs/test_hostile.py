"""Programs that mean harm, or are broken: each is held, and it is said why in a sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.agents import RunState
from engine.core.goals import GoalStatus
from engine.core.state import AgentState
from tests.engine.agent.engine_flight import Flight
from tests.engine.agent.other_programs.acp_flight import helped, living


async def end_of(flight: Flight, place: Path, deed: str, **config: object) -> tuple[AgentState, str]:
    """The state once the goal has ended or the operator is asked, and what is said about that."""
    await helped(flight, place, deed, **config)
    await flight.do(cmd.Run)
    state = await flight.until(
        lambda s: s.goals["g1"].status.terminal or s.intervention or s.approvals.question
    )
    return state, str(state.intervention.reason if state.intervention else state.goals["g1"].reason)


@pytest.mark.parametrize(
    ("deed", "why"),
    [
        ("huge", "it sent a message of more than 8 MiB"),
        ("nonsense", "it sent more than 20 lines that are no messages of the protocol"),
        ("dies", "exited 9 after"),
        ("nameless", "opened no session: it gave no id"),
        ("old", "speaks version 0 of the protocol, and Pilothouse 1: update the program"),
    ],
)
async def test_a_program_that_breaks_the_protocol_is_ended_with_a_sentence(
    flight: Flight, tmp_path: Path, deed: str, why: str
) -> None:
    state, said = await end_of(flight, tmp_path, deed)
    assert why in said
    assert state.goals["g1"].status is GoalStatus.ACTIVE
    assert living(flight) == []


async def test_one_that_answers_nothing_is_ended(
    flight: Flight, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.agent.acp.session.GREETING_S", 0.5)
    _, said = await end_of(flight, tmp_path, "mute")
    assert "agent did not answer initialize within 0.5 s" in said
    assert living(flight) == []


async def test_a_turn_that_ends_with_no_answer_is_a_failure(flight: Flight, tmp_path: Path) -> None:
    _, said = await end_of(flight, tmp_path, "odd")
    assert "tester 7 ended its turn without a reason" in said


async def test_updates_without_end_end_the_program(
    flight: Flight, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.agent.acp.session.UPDATES_MOST", 300)
    _, said = await end_of(flight, tmp_path, "endless")
    assert "it sent 300 updates in one turn" in said
    assert living(flight) == []


async def test_what_is_said_in_another_name_does_not_count(flight: Flight, tmp_path: Path) -> None:
    _, said = await end_of(flight, tmp_path, "forged")
    assert said == "as myself: there is no such session"
    assert not (flight.sandbox / "forged.txt").exists()


async def test_leave_for_one_file_is_leave_for_that_one_alone(flight: Flight, tmp_path: Path) -> None:
    rules = [{"answer": "deny", "command": "write", "paths": ["*.toml"], "reason": "settings stay"}]
    await helped(flight, tmp_path, "swaps", approvals={"default": "allow", "rules": rules})
    await flight.do(cmd.SetBreak, line="tool write path=a.txt")
    await flight.do(cmd.Run)
    await flight.until(lambda s: s.run is RunState.PAUSED)
    await flight.do(cmd.Run)
    state = await flight.until(lambda s: s.run is RunState.PAUSED and s.actions == 2)
    assert not (flight.sandbox / "settings.toml").exists()
    await flight.do(cmd.Run)
    state = await flight.until(lambda s: s.goals["g1"].status.terminal or s.intervention)
    said = "".join(piece.text for piece in await flight.payloads(ev.ModelSaid))
    assert "leave: yes; settings.toml: not allowed" in said, state.intervention
    assert "settings stay (agent rule 1); a.txt: written" in said


async def test_programs_without_end_are_held_by_the_jail_and_ended(flight: Flight, tmp_path: Path) -> None:
    _, said = await end_of(flight, tmp_path, "forks", sandbox={"processes": 24})
    assert "it had more processes and threads than the limit" in said
    assert living(flight) == []


async def test_what_is_no_message_is_left_alone(flight: Flight, tmp_path: Path) -> None:
    state, said = await end_of(flight, tmp_path, "mild_nonsense")
    assert (state.goals["g1"].status, said) == (GoalStatus.ACHIEVED, "worked all the same")
    assert (flight.sandbox / "after.txt").read_text() == "still here"


async def test_paths_links_and_sessions_that_are_not_its_own_are_refused(
    flight: Flight, tmp_path: Path
) -> None:
    state, _ = await end_of(flight, tmp_path, "outside")
    texts = [step.summary for step in state.plans["g1"].steps if step.command == "read"]
    assert len(texts) == 2
    model = "".join(piece.text for piece in await flight.payloads(ev.ModelSaid))
    told = model.split(" | ")
    assert len(told) == 10
    assert all("outside of the sandbox root" in text for text in (told[0], told[2], told[6]))
    assert all("through a symbolic link" in text for text in (told[1], told[3]))
    assert "there is no such session" in told[4]
    assert told[5] == "no"
    assert "there is no such terminal" in told[7]
    assert "Method not found" in told[8]
    assert "content" in told[9]
    assert "root:" not in model
    assert not (flight.sandbox.parent / "escaped.txt").exists()


async def test_a_storm_of_requests_is_answered_without_all_being_taken(
    flight: Flight, tmp_path: Path
) -> None:
    state, said = await end_of(flight, tmp_path, "storm")
    assert "100 answers" in said
    assert "32 of your requests wait; wait for their answers first" in said
    assert state.actions <= 36


async def test_a_flood_is_slowed_and_can_be_stopped(flight: Flight, tmp_path: Path) -> None:
    await helped(flight, tmp_path, "floods")
    await flight.do(cmd.Run)
    await flight.until(lambda s: s.version > 40)
    await flight.do(cmd.Stop)
    await flight.engine.stopped()
    assert living(flight) == []
    said = await flight.payloads(ev.ModelSaid)
    assert said
    assert max(len(piece.text) for piece in said) <= 64 * 1024


async def test_escape_sequences_are_shown_as_text_only(flight: Flight, tmp_path: Path) -> None:
    state, said = await end_of(flight, tmp_path, "paints")
    assert state.goals["g1"].status is GoalStatus.ACHIEVED
    shown = [said, *(f"{step.description} {step.summary}" for step in state.plans["g1"].steps)]
    assert not any(sign in text for text in shown for sign in "\x1b\x00\x07\u202e")


async def test_one_that_does_not_heed_a_cancel_is_ended(
    flight: Flight, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.agent.acp.session.CANCEL_S", 0.2)
    _, said = await end_of(flight, tmp_path, "stubborn", quiet_s=1.0)
    assert "nothing came of its turn for 1 s; it did not end its turn within 0.2 s" in said
    assert living(flight) == []


async def test_kill_leaves_no_process(flight: Flight, tmp_path: Path) -> None:
    await helped(flight, tmp_path, "sleeps")
    await flight.do(cmd.Run)
    await flight.until(lambda s: s.actions == 1 and not s.acting)
    assert len(living(flight)) > 0
    await flight.do(cmd.Stop, grade="freeze")
    await flight.do(cmd.Thaw)
    await flight.do(cmd.Stop)
    await flight.engine.stopped()
    assert living(flight) == []


async def test_the_jail_holds_what_is_done_without_asking(
    flight: Flight, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_KEY", "s3cret")
    (flight.workspace / "private.txt").write_text("mine")
    _, said = await end_of(flight, tmp_path, "reaches")
    *files, network, secret = said.split()
    assert len(files) == 2
    assert {*files} <= {"PermissionError", "FileNotFoundError"}  # by the jail KERNEL, or FULL
    assert network in ("PermissionError", "OSError", "ConnectionRefusedError")
    assert secret == "False"
