"""Calls for clients pass the gate as an agent's do, wait for the operator for a time, and can be taken back.

That the journal replays is checked by the fixture that opened the flight.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

from engine_flight import Flight, HeldClock

from engine.agent.shared import EngineConfig
from engine.agent.steering.rules import read_policy
from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.actions import ErrorCode
from engine.inquiry.inbox import NeedKind
from tests.patience import PATIENCE_S

WAIT_S = 90.0


async def call(flight: Flight, command: str, /, wait_s: float = WAIT_S, **args: Any) -> str:
    """Ask for a call; the event that queued it."""
    await flight.do(cmd.CallTool, command=command, args=args, client="guest", wait_s=wait_s)
    return (await flight.engine.store.last(1, flight.agent, kind=ev.OperatorActionQueued.kind))[0].ref


async def ended(flight: Flight) -> ev.ActionFinished:
    await flight.until(lambda s: not s.busy and not s.requests)
    return (await flight.payloads(ev.ActionFinished))[-1]


async def asked(flight: Flight) -> str:
    state = await flight.until(lambda s: s.approvals.question)
    assert state.approvals.question is not None
    return state.approvals.question.action


async def test_what_is_asked_waits_in_the_inbox_and_each_word_is_about_that_call(
    tmp_path: Path, open_flight: Callable[..., Any]
) -> None:
    flight: Flight = await open_flight(tmp_path, HeldClock())
    await call(flight, "write", path="a.txt", content="one")
    assert (await ended(flight)).code is None, "nothing asks about what can be undone"
    await call(flight, "write", path="a.txt", content="two")
    assert (await ended(flight)).code is None, "what the client wrote itself it may replace"
    (flight.sandbox / "b.txt").write_text("the operator's")
    await call(flight, "write", path="b.txt", content="mine")
    action = await asked(flight)
    (need,) = await flight.engine.inbox()
    assert (need.kind, need.agent) == (NeedKind.APPROVAL, "pilot")
    await flight.do(cmd.AnswerApproval, action=action, allow=False, reason="it is mine")
    denied = await ended(flight)
    assert (denied.code, denied.result["message"]) == (
        ErrorCode.NOT_ALLOWED,
        "not allowed: operator denied it: it is mine",
    )

    await call(flight, "run", command="touch made")
    action = await asked(flight)
    assert not (flight.sandbox / "made").exists()
    await flight.do(cmd.AnswerApproval, action=action, allow=True)
    assert (await ended(flight)).code is None
    await call(flight, "run", command="touch made")
    action = await asked(flight)
    await flight.do(cmd.AnswerApproval, action=action, allow=False)
    assert (await ended(flight)).code is ErrorCode.NOT_ALLOWED, "allowed once is once"
    await call(flight, "run", command="touch made")
    action = await asked(flight)
    await flight.do(cmd.AnswerApproval, action=action, allow=True, scope="session")
    assert (await ended(flight)).code is None
    await call(flight, "run", command="touch made")
    assert (await ended(flight)).code is None, "a rule that was granted holds for the next call"
    state = await flight.state()
    assert not state.approvals.denied
    assert state.approvals.question is None
    assert state.actions == 0, "they are no actions of the agent's own"
    started = [e for e in await flight.events() if e.kind == ev.ActionStarted.kind]
    assert {e.actor for e in started} == {"client:guest"}


async def test_silence_refuses_and_where_nobody_is_there_at_once(
    tmp_path: Path, open_flight: Callable[..., Any]
) -> None:
    policy = read_policy({"rules": [{"answer": "deny", "command": "mkdir", "reason": "no"}], "preset": "ask"})
    flight: Flight = await open_flight(tmp_path, HeldClock(), EngineConfig(approvals=policy))
    clock = flight.clock
    assert isinstance(clock, HeldClock)
    await call(flight, "mkdir", path="x")
    assert (await ended(flight)).result["message"] == "not allowed: no (workspace rule 1)"
    await call(flight, "write", wait_s=0, path="a", content="b")
    assert (await ended(flight)).result["message"].startswith("not allowed: nobody is there to approve it")
    await call(flight, "write", path="a", content="b")
    await asked(flight)
    async with asyncio.timeout(PATIENCE_S):
        while WAIT_S not in clock.slept:
            await asyncio.sleep(0.01)
    clock.gate.set()
    assert (await ended(flight)).result["message"].startswith("not allowed: nobody answered within 90 s")
    assert (await flight.state()).approvals.question is None
    assert not (flight.sandbox / "a").exists()
    said = await flight.refused(cmd.CallTool, command="toggle_autonomous_mode", args={}, client="guest")
    assert "the operator's alone" in said


async def test_a_call_that_its_client_no_longer_wants_never_runs(
    tmp_path: Path, open_flight: Callable[..., Any]
) -> None:
    flight: Flight = await open_flight(tmp_path, HeldClock())
    first = await call(flight, "run", command="touch first")
    await asked(flight)
    second = await call(flight, "run", command="touch second")
    for one in (second, first):
        await flight.do(cmd.DropCall, call=one, client="guest")
    state = await flight.until(lambda s: not s.busy and not s.requests)
    assert state.approvals.question is None
    (withdrawn,) = await flight.payloads(ev.ActionWithdrawn)
    assert withdrawn.reason == "its client no longer wants it"
    assert "no call of a client waits or runs" in await flight.refused(
        cmd.DropCall, call=first, client="guest"
    )
    await call(flight, "run", command="touch third")
    await asked(flight)
    await flight.reopen()
    state = await flight.state()
    assert state.approvals.question is None, "its client is gone with the session"
    assert not state.busy
    await asyncio.sleep(0)
    assert not list(flight.sandbox.glob("*"))


async def test_cutting_one_call_off_leaves_the_others_alone(
    tmp_path: Path, open_flight: Callable[..., Any]
) -> None:
    policy = read_policy({"rules": [{"answer": "allow", "command": "run"}]})
    flight: Flight = await open_flight(tmp_path, config=EngineConfig(approvals=policy))
    long = await call(flight, "run", command=["python", "-c", "import time; time.sleep(60)"])
    await flight.until(lambda s: s.acting)
    await call(flight, "write", path="a", content="b")
    await flight.do(cmd.DropCall, call=long, client="guest")
    assert (await ended(flight)).code is None
    (cancelled,) = await flight.payloads(ev.ActionCancelled)
    assert cancelled.reason == "its client no longer wants it"
    assert (flight.sandbox / "a").exists()


async def test_a_stop_withdraws_what_waits(tmp_path: Path, open_flight: Callable[..., Any]) -> None:
    flight: Flight = await open_flight(tmp_path, HeldClock())
    await call(flight, "run", command="touch made")
    await asked(flight)
    await flight.do(cmd.Stop)
    state = await flight.until(lambda s: not s.busy and not s.requests)
    assert state.approvals.question is None
    assert not (flight.sandbox / "made").exists()
