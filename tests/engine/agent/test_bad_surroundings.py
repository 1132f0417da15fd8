"""Full disks, second engines, hostile words, crowds and floods."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from engine_flight import PATIENCE_S, Flight, act, python

from engine.api.engine import Engine
from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.goals import GoalStatus
from engine.core.journal import JournalError, JournalLocked
from engine.core.ports import Ports


async def _limit_journal(flight: Flight, pages: int | None = None) -> None:
    """Let the database grow no further, so that SQLite itself refuses to write, or again without end."""
    writer = flight.engine.store._writer
    assert writer is not None
    connection = writer.ledger.connection
    if pages is None:
        ((pages,),) = await connection.execute_fetchall("pragma page_count")
    await connection.execute_fetchall(f"pragma max_page_count = {pages}")


async def _until_in_trouble(flight: Flight) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not flight.engine.health.journal:
            await asyncio.sleep(0.002)


async def test_a_full_journal_holds_the_agent_and_it_goes_on_when_there_is_room(flight: Flight) -> None:
    actions = [act("write", path=f"f{n}", content="x" * 3_000) for n in range(30)]
    steps = await flight.plan(*actions)
    await flight.at_gate(steps[0])
    await flight.until_durable("pilot")
    await _limit_journal(flight)
    await flight.submit(cmd.Run)
    await _until_in_trouble(flight)
    made = sorted(flight.sandbox.glob("f*"))
    durable = [event for event in await flight.engine.store.read("pilot") if event.kind == "action.started"]
    assert len(made) <= len(durable) <= 30
    assert "could not be written" in flight.engine.health.journal
    refused = await flight.submit(cmd.Believe, key="k", value="v" * 9_000)
    assert not refused.ok
    assert "not recorded yet" in refused.message
    assert len(sorted(flight.sandbox.glob("f*"))) == len(made)
    await _limit_journal(flight, 1_073_741_823)
    state = await flight.until(lambda s: not s.open_goals)
    assert state.goals["g1"].status is GoalStatus.ACHIEVED
    assert state.beliefs["k"].value == "v" * 9_000
    assert flight.engine.health.journal == ""
    assert await flight.started() == steps


async def test_closing_while_the_journal_is_full_ends_and_loses_nothing_acknowledged(flight: Flight) -> None:
    await flight.plan(python("import time; time.sleep(60)"))
    await flight.do(cmd.Run)
    await flight.until(lambda s: s.acting)
    acknowledged = len(await flight.events())
    await _limit_journal(flight)
    await flight.submit(cmd.Believe, key="k", value="v" * 50_000)
    async with asyncio.timeout(PATIENCE_S):
        await flight.engine.close()
    await flight.open()
    assert len(await flight.events()) >= acknowledged
    assert (await flight.state()).intervention is not None


async def test_an_answer_whose_blob_cannot_be_kept_is_still_recorded(flight: Flight) -> None:
    (flight.workspace / ".pilothouse" / "blobs").mkdir(exist_ok=True)
    await flight.plan(python("print('x' * 200_000)"), act("write", path="after", content=""))
    blobs = flight.workspace / ".pilothouse" / "blobs"
    for path in sorted(blobs.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    blobs.rmdir()
    blobs.write_text("in the way")
    await flight.do(cmd.Run)
    await flight.until(lambda s: not s.open_goals)
    blobs.unlink()
    finished = (await flight.payloads(ev.ActionFinished))[0]
    assert (finished.status, finished.blob) == ("SUCCESS", None)
    assert "could not be kept" in finished.result["message"]


async def test_a_second_engine_on_the_workspace_is_refused(flight: Flight) -> None:
    with pytest.raises(JournalLocked, match="has had this workspace open since"):
        await Engine.open(flight.workspace)


@pytest.mark.parametrize("target", ["sandbox", "workspace"])
async def test_a_workspace_that_cannot_be_one_is_refused_in_words(tmp_path: Path, target: str) -> None:
    workspace = tmp_path / "w"
    if target == "workspace":
        workspace.write_text("a file")
    else:
        workspace.mkdir()
        (workspace / "sandbox").write_text("a file")
    with pytest.raises(JournalError) as refusal:
        await Engine.open(workspace)
    assert len(str(refusal.value).splitlines()) == 1


async def test_a_refused_workspace_is_let_go_of(tmp_path: Path) -> None:
    (tmp_path / "sandbox").write_text("a file")
    with pytest.raises(JournalError):
        await Engine.open(tmp_path)
    (tmp_path / "sandbox").unlink()
    engine = await Engine.open(tmp_path)
    await engine.close()


async def test_a_command_whose_caller_is_cancelled_is_carried_out(flight: Flight) -> None:
    for number in range(20):
        task = asyncio.create_task(flight.submit(cmd.CreateAgent, agent=f"extra-{number}"))
        for _ in range(number):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    async with asyncio.timeout(PATIENCE_S):
        while set(await flight.engine.store.streams()) - {"workspace"} != set(flight.engine.agents):
            await asyncio.sleep(0.002)


async def test_thirty_agents_side_by_side_each_achieve_their_goal(flight: Flight) -> None:
    names = [f"agent-{number}" for number in range(30)]
    for name in names:
        await flight.do(cmd.CreateAgent, agent=name)
        await flight.do(
            cmd.AdoptGoal, agent=name, text=f"create the directories {name}/a, {name}/b and {name}/c"
        )
    await asyncio.gather(*(flight.do(cmd.Run, agent=name) for name in names))
    for name in names:
        state = await flight.until(lambda s: not s.open_goals, name)
        assert state.goals["g1"].status is GoalStatus.ACHIEVED
        assert sorted(path.name for path in (flight.sandbox / name).iterdir()) == ["a", "b", "c"]


async def test_a_paused_agent_does_not_hold_another(flight: Flight) -> None:
    await flight.do(cmd.CreateAgent, agent="second")
    steps = await flight.plan(act("write", path="first", content=""))
    await flight.at_gate(steps[0])
    await flight.do(cmd.AdoptGoal, agent="second", text="create a directory named 'second'")
    await flight.do(cmd.Run, agent="second")
    await flight.until(lambda s: not s.open_goals, "second")
    assert not (flight.sandbox / "first").exists()


async def test_a_thousand_commands_at_once_are_all_answered_in_order(flight: Flight) -> None:
    receipts = await asyncio.gather(
        *(flight.submit(cmd.Believe, key="count", value=number) for number in range(1_000))
    )
    assert all(receipt.ok for receipt in receipts)
    versions = [int(receipt.event.split(":")[1]) for receipt in receipts]
    assert versions == sorted(versions)
    assert (await flight.state()).beliefs["count"].value == 999


HOSTILE = ["\x1b]0;owned\x07", "\x1b[2J", "\u202egnp.exe", "a\0b", "\ud800", "‮", "x" * 1_000_000]


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
async def test_hostile_words_are_kept_or_refused_but_break_nothing(flight: Flight, text: str) -> None:
    await flight.do(cmd.Believe, key="hostile", value=[text, {text[:100]: text}])
    for kind, fields in (
        (cmd.AdoptGoal, {"text": text}),
        (cmd.AdoptGoal, {"text": f"write {text[:2_000]!r} to notes.txt"}),
        (cmd.CreateAgent, {"agent": "other", "description": text}),
        (cmd.CreateAgent, {"agent": text}),
        (cmd.CallTool, {"command": "write", "args": {"path": text, "content": text}}),
        (cmd.CallTool, {"command": "cd", "args": {"path": text}}),
        (cmd.CallTool, {"command": "run", "args": {"command": ["echo", text]}}),
        (cmd.CallTool, {"command": text}),
        (cmd.CallTool, {"tool": "mind", "command": "add", "args": {"key": text, "value": text}}),
    ):
        try:
            command = kind(**{"agent": flight.agent, **fields})
        except ValueError:
            continue
        await flight.engine.submit(command)
        await flight.until(lambda s: not s.requests and (s.action is None or s.action.step))
    assert not flight.engine.health.agents
    await flight.reopen()
    assert (await flight.state()).beliefs["hostile"].value == [text, {text[:100]: text}]


def _nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    "value",
    [float("nan"), float("inf"), 10**5_000, _nested(150), _nested(5_000), {1, 2}, object(), b"bytes"],
    ids=["nan", "inf", "digits", "deep", "deeper", "set", "object", "bytes"],
)
async def test_what_cannot_be_recorded_is_refused_and_changes_nothing(flight: Flight, value: Any) -> None:
    before = (await flight.state()).version
    for command in (
        cmd.Believe.model_construct(do="believe", agent="pilot", key="k", value=value),
        cmd.CallTool.model_construct(
            do="call_tool", agent="pilot", tool="mind", command="add", args={"key": "k", "value": value}
        ),
    ):
        receipt = await flight.engine.submit(command)
        assert not receipt.ok
        assert "cannot be recorded" in receipt.message
    assert (await flight.state()).version == before


async def test_values_are_believed_as_the_journal_gives_them_back(flight: Flight) -> None:
    await flight.do(cmd.Believe, key="k", value=[{"pair": (1, 2)}, {3: True}])
    assert (await flight.state()).beliefs["k"].value == [{"pair": [1, 2]}, {"3": True}]


async def test_names_that_are_not_utf8_are_seen_and_harm_nothing(flight: Flight) -> None:
    (flight.sandbox / "caf\udce9").write_text("latin")
    steps = await flight.plan(act("ls"), python("import os; print(os.listdir('.'))"))
    await flight.do(cmd.Run)
    await flight.until(lambda s: not s.open_goals)
    assert await flight.started() == steps


async def test_a_sandbox_that_vanishes_is_a_failure_for_the_operator(flight: Flight) -> None:
    steps = await flight.plan(act("write", path="a", content=""), act("read", path="a"))
    await flight.at_gate(steps[0])
    for path in flight.sandbox.iterdir():
        path.rmdir()
    flight.sandbox.rmdir()
    await flight.do(cmd.Run)
    state = await flight.until(lambda s: s.intervention or not s.open_goals)
    assert state.intervention is not None
    assert not flight.engine.health.agents


async def test_agents_that_cannot_be_are_refused_before_anything_is_made(flight: Flight) -> None:
    for ident in ("../x", "", "for", "Create", "workspace", "a" * 33, "a@b", "9lives"):
        with pytest.raises(ValueError, match="agent"):
            cmd.CreateAgent(agent=ident)
    assert "exists already" in await flight.refused(cmd.CreateAgent)
    assert "no agent type 'wizard'" in await flight.refused(cmd.CreateAgent, agent="x", agent_type="wizard")
    assert "no thinker 'oracle'" in await flight.refused(
        cmd.CreateAgent, agent="x", config={"thinker": "oracle"}
    )
    assert "there is no agent 'ghost'; agents: pilot" in await flight.refused(cmd.Pause, agent="ghost")
    assert list(await flight.engine.store.streams()) == ["pilot", "workspace"]


async def test_an_event_of_an_unknown_kind_keeps_the_workspace_shut_in_one_line(tmp_path: Path) -> None:
    engine = await Engine.open(tmp_path, ports=Ports())
    await engine.submit(cmd.CreateAgent(agent="pilot"))
    writer = engine.store._writer
    assert writer is not None
    await writer.ledger.connection.execute(
        "update events set kind = 'agent.levitated' where kind = 'agent.opened'"
    )
    await writer.ledger.connection.execute("delete from snapshots")
    await engine._let_go()
    with pytest.raises(JournalError, match=r"pilot:2 \(agent.levitated\) is of no known kind"):
        await Engine.open(tmp_path)
