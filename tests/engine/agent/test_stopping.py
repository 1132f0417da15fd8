"""Stopping in grades: what each stops, what the receipt says, and that nothing happens after it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from engine_flight import Flight, act, python
from model_flight import created, model_flight

from app.commands.breakpoints import receipt_text
from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.agents import Mode, RunState
from engine.core.plan import StepStatus
from engine.core.sandbox import StopGrade, StopItem, StopReceipt
from engine.core.state import AgentState
from tests.messages_server import Reply
from tests.patience import PATIENCE_S

BUSY = """
import os, time
def write(name):
    while not os.path.exists("go"):
        with open(name, "a") as file: file.write("x")
        time.sleep(0.001)
if os.fork() == 0:
    os.setsid()
    write("daemon"); os._exit(0)
write("main")
print("all done")
"""
FILES = ("daemon", "main")


def sizes(flight: Flight, names: Sequence[str] = FILES) -> list[int]:
    return [path.stat().st_size for name in names if (path := flight.sandbox / name).exists()]


async def busy(flight: Flight, *more: dict[str, object]) -> str:
    """The agent runs a command with a daemon; its step."""
    first, *_ = await flight.plan(python(BUSY), act("write", path="after", content="x"), *more)
    await flight.do(cmd.Run)
    await flight.until(lambda state: state.acting and len(sizes(flight)) == len(FILES))
    return first


async def stopped(flight: Flight, grade: str, scope: str = "agent", agent: str = "pilot") -> StopReceipt:
    """Stop, wait for the last receipt, and give it."""
    await flight.do(cmd.Stop, agent=agent, grade=grade, scope=scope)
    await flight.engine.stopped()
    return receipt_of(await flight.state(agent))


def receipt_of(state: AgentState) -> StopReceipt:
    assert state.stop_receipt is not None
    return state.stop_receipt


def told(items: Sequence[StopItem]) -> list[tuple[str, str, int]]:
    return [(item.kind.value, item.fate, item.processes) for item in items]


async def unchanged(flight: Flight) -> None:
    before = sizes(flight)
    await asyncio.sleep(0.1)  # a hundred times what they need for the next letter
    assert sizes(flight) == before


async def test_a_frozen_command_stands_still_and_ends_well_once_it_is_thawed(flight: Flight) -> None:
    step = await busy(flight)
    receipt = await stopped(flight, "freeze")
    assert (receipt.complete, receipt.changed, told(receipt.running)) == (True, True, [])
    assert told(receipt.stopped) == [("tool", "frozen", 2)]
    state = await flight.state()
    assert (state.mode, state.run, state.acting, state.frozen) == (Mode.FROZEN, RunState.PAUSED, True, True)
    await unchanged(flight)
    assert "frozen: thaw" in await flight.refused(cmd.Step)
    assert not (await stopped(flight, "freeze")).changed
    (flight.sandbox / "go").touch()
    await flight.do(cmd.Thaw)
    state = await flight.until(
        lambda s: s.plans["g1"].step(step).status is StepStatus.COMPLETED  # type: ignore[union-attr]
    )
    assert (state.actions, state.run) == (1, RunState.PAUSED)
    (finished,) = await flight.payloads(ev.ActionFinished)
    assert "all done" in finished.result["stdout"]
    assert not (flight.sandbox / "after").exists()


async def test_run_thaws_and_a_reopened_workspace_has_nothing_frozen(flight: Flight) -> None:
    await busy(flight)
    await stopped(flight, "freeze")
    await flight.do(cmd.Run)
    await flight.until(lambda s: not s.frozen and s.run is RunState.RUNNING)
    await stopped(flight, "freeze")
    await flight.reopen()
    state = await flight.state()
    assert (state.frozen, state.held, state.action) == (False, "", None)
    await unchanged(flight)


async def test_cancel_ends_the_command_and_its_step_is_run_again(flight: Flight) -> None:
    step = await busy(flight)
    receipt = await stopped(flight, "cancel")
    assert told(receipt.stopped) == [("tool", "dead", 2)]
    state = await flight.state()
    assert (state.mode, state.acting) == (Mode.PAUSED, False)
    assert state.step is not None
    assert state.step.id == step
    await unchanged(flight)
    (flight.sandbox / "go").touch()
    await flight.do(cmd.Run)
    await flight.until(lambda s: not s.open_goals)
    assert (flight.sandbox / "after").exists()


async def test_hold_and_after_let_the_command_end_and_start_nothing_more(flight: Flight) -> None:
    await busy(flight)
    for grade in ("after", "hold", "cut"):
        receipt = await stopped(flight, grade)
        assert told(receipt.running) == [("tool", "ends by itself", 2)]
        assert receipt.stopped == ()
    assert not (await stopped(flight, "hold")).changed
    (flight.sandbox / "go").touch()
    state = await flight.until(lambda s: not s.acting)
    assert (state.mode, state.actions) == (Mode.PAUSED, 1)
    assert len(await flight.started()) == 1
    await flight.do(cmd.Run)
    await flight.until(lambda s: not s.open_goals)


async def test_kill_ends_jobs_too_and_twice_says_that_nothing_changed(flight: Flight) -> None:
    await flight.plan(act("start", command=["python", "-c", BUSY]), act("wait_job", seconds=50))
    await flight.do(cmd.Run)
    await flight.until(lambda s: s.acting and s.action.command == "wait_job" and len(sizes(flight)) == 2)
    held = await stopped(flight, "hold")
    assert told(held.running) == [("tool", "ends by itself", 0), ("job", "goes on", 2)]
    frozen = await stopped(flight, "freeze")
    assert (frozen.complete, told(frozen.stopped)) == (True, [("job", "frozen", 2)])
    assert told(frozen.running) == [("tool", "ends by itself", 0)]
    first, again = await asyncio.gather(
        flight.submit(cmd.Stop), flight.engine.submit(cmd.Stop(agent="pilot"), operator="second")
    )
    assert first.ok
    assert again.ok
    await flight.engine.stopped()
    receipts = [said.receipt for said in await flight.payloads(ev.StopObserved)]
    last = [one for one in receipts if one.stop == first.event][-1]
    assert (sorted(told(last.stopped)), last.running) == ([("job", "dead", 2), ("tool", "cancelled", 0)], ())
    await unchanged(flight)
    after = await stopped(flight, "kill")
    assert (after.changed, after.stopped, after.running, after.complete) == (False, (), (), True)
    assert (await flight.submit(cmd.Stop)).message == "already stopped"


async def test_a_family_is_stopped_in_one_go_each_in_its_own_stream(flight: Flight) -> None:
    for child, parent in (("zulu", "pilot"), ("alpha", "zulu"), ("lonely", "")):
        await flight.do(cmd.CreateAgent, agent=child, config={"parent": parent} if parent else {})
    names = ("pilot", "zulu", "alpha", "lonely")
    for name in names:
        code = BUSY.replace('"go"', f'"{name}.go"').replace('"daemon"', f'"{name}.d"')
        code = code.replace('"main"', f'"{name}.m"')
        args = {"command": ["python", "-c", code]}
        await flight.do(cmd.CallTool, agent=name, command="start", args=args)
        await flight.until(lambda s: s.running_jobs and s.action is None, name)
    await flight.until(lambda _: len(sizes(flight, [f"{name}.{x}" for name in names for x in "dm"])) == 8)
    answer = await flight.do(cmd.Stop, grade="freeze", scope="children")
    assert answer.message.startswith("pilot: frozen; 1 background job: frozen; zulu: frozen")
    await flight.engine.stopped()
    mine = [f"{name}.{x}" for name in names[:3] for x in "dm"]
    before = sizes(flight, mine)
    for name in names[:3]:
        receipt = receipt_of(await flight.state(name))
        assert (receipt.agent, told(receipt.stopped)) == (name, [("job", "frozen", 2)])
        received = (await flight.payloads(ev.CommandReceived, name))[-1]
        assert (received.command["do"], received.command["agent"]) == ("stop", name)
    assert (await flight.state("lonely")).stop_receipt is None
    await asyncio.sleep(0.1)
    assert sizes(flight, mine) == before
    answer = await flight.do(cmd.Stop, scope="all")
    await flight.engine.stopped()
    assert {one["agent"] for one in answer.data["receipts"]} == set(names)
    for name in names:
        assert told(receipt_of(await flight.state(name)).stopped) == [("job", "dead", 2)]
    assert sizes(flight, mine) == before


async def test_what_processes_call_themselves_is_clean_text_in_the_receipt(flight: Flight) -> None:
    name = "\x1b[31m\u202e\nrm -rf"
    code = f"import ctypes; ctypes.CDLL(None).prctl(15, {name!r}.encode())\n{BUSY}"
    await flight.plan(python(code))
    await flight.do(cmd.Run)
    await flight.until(lambda state: state.acting and len(sizes(flight)) == len(FILES))
    receipt = await stopped(flight, "freeze")
    (item,) = receipt.stopped
    assert item.processes == len(item.names) == 2
    text = receipt_text([receipt])
    assert "rm -rf" in text
    assert all(char.isprintable() or char == "\n" for char in text)
    await stopped(flight, "kill")


async def test_cut_ends_the_call_of_the_model_and_asks_anew_when_the_agent_runs(tmp_path: Path) -> None:
    held = Reply(text="I think that " * 20, after=6, then="hold")
    async with model_flight(tmp_path, held, held) as (flight, server):
        await created(flight)
        await flight.do(cmd.AdoptGoal, text="make something")
        await flight.do(cmd.Run)
        await asyncio.wait_for(server.held.wait(), PATIENCE_S)
        still = await stopped(flight, "hold")
        assert told(still.running) == [("model", "ends by itself", 0)]
        receipt = await stopped(flight, "cut")
        assert (told(receipt.stopped), receipt.running) == ([("model", "cut off", 0)], ())
        await server.emptied()
        state = await flight.state()
        assert (state.mode, state.held, state.plans) == (Mode.PAUSED, StopGrade.CUT, {})
        (call,) = await flight.payloads(ev.ModelCalled)
        assert call.partial
        assert not (await stopped(flight, "cut")).changed
        await flight.do(cmd.Run)
        await flight.until(lambda _: len(server.requests) == 2)
        await stopped(flight, "kill")


async def test_a_stop_between_actions_withdraws_what_was_asked_for(flight: Flight) -> None:
    await flight.plan(act("write", path="one", content=""), act("write", path="two", content=""))
    step = (await flight.state()).step
    assert step is not None
    await flight.do(cmd.Run)
    await flight.do(cmd.Stop, grade="cancel")
    await flight.engine.stopped()
    started = len(await flight.started())
    await asyncio.sleep(0.05)
    assert len(await flight.started()) == started
    await flight.do(cmd.Run)
    await flight.until(lambda s: not s.open_goals)
