"""Several operators of one engine: who holds an agent, edits that collide, commands that come twice."""

from __future__ import annotations

import asyncio
import json
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from app.gateways.attached_engine import AttachedEngine
from engine.agent.shared import EngineConfig
from engine.api.engine import Engine
from engine.api.replay import replay_stream
from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.beliefs import BeliefSource
from engine.core.control import Control
from engine.core.plan import step_line
from engine.core.ports import Ports, SystemClock
from tests.app.gateways.sockets import client_of, serving

PLAN = json.dumps(
    [
        {"type": "EXECUTE_TOOL", "params": {"tool_id": "simple_coder", "command": command, **args}}
        for command, args in (("ls", {}), ("write", {"path": "a.txt", "content": "1"}))
    ]
)


@pytest.fixture(autouse=True)
def _own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PILOTHOUSE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "nowhere"))


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    return tmp_path / "workspace"


async def _planned(engine: Engine | Any) -> None:
    """An agent with a plan of two steps, made by nobody who is connected."""
    await engine.submit(cmd.CreateAgent(agent="pilot-1"))
    await engine.submit(cmd.AdoptGoal(agent="pilot-1", text="look around"))
    assert (await engine.submit(cmd.ReplacePlan(agent="pilot-1", goal="g1", plan=PLAN))).ok


async def _kinds(engine: Engine) -> list[str]:
    return [event.kind async for event in engine.events(0, stream="pilot-1", follow=False)]


# ------------------------------------------------------------------ who holds an agent


async def test_alone_nothing_is_recorded_of_controls(workspace: Path) -> None:
    async with serving(workspace) as (engine, _), client_of(workspace, "ann") as ann:
        async with client_of(workspace, "ann"), client_of(workspace, "bob", watch=True):
            await _planned(ann)
        assert not [kind for kind in await _kinds(engine) if kind.startswith("control.")]
        assert "submission" in (await engine.store.last(1, "pilot-1", kind=ev.CommandReceived.kind))[0].body
        await engine.submit(cmd.AddNote(agent="pilot-1", text="here"))
        noted = (await engine.store.last(1, "pilot-1", kind=ev.CommandReceived.kind))[0]
        assert noted.body == '{"command":{"agent":"pilot-1","do":"add_note","text":"here"}}'


async def test_who_commands_beside_another_holds_the_controls_and_the_other_may_still_stop(
    workspace: Path,
) -> None:
    async with (
        serving(workspace) as (engine, _),
        client_of(workspace, "ann") as ann,
        client_of(workspace, "bob") as bob,
    ):
        await _planned(engine)
        taken = await ann.submit(cmd.Run(agent="pilot-1"))
        assert taken.message.endswith("you hold the controls of pilot-1 now")
        control = (await engine.view("pilot-1")).control
        assert (control.holder, control.asked) == ("ann", ())
        for command in (
            cmd.Step(agent="pilot-1"),
            cmd.AdoptGoal(agent="pilot-1", text="list the files"),
            cmd.Believe(agent="pilot-1", key="x", value=1),
            cmd.SetBudget(agent="pilot-1", usd=1),
            cmd.DeleteAgent(agent="pilot-1"),
            cmd.Rewind(agent="pilot-1", to=1),
            cmd.Undo(agent="pilot-1", of="pilot-1:5", command={"do": "pause", "agent": "pilot-1"}),
            cmd.Thaw(scope="all"),
            cmd.Remember(agent="pilot-1", verb="store_memory", arguments={"content": "x"}),
            cmd.FreeControl(agent="pilot-1"),
            cmd.CallTool(agent="pilot-1", command="write", args={"path": "x", "content": ""}, client="ann"),
        ):
            refused = await bob.submit(command)
            assert not refused.ok, command
            assert "ann" in refused.message, refused.message
        beliefs = (await engine.view("pilot-1")).beliefs.values()
        assert {belief.source for belief in beliefs} <= {BeliefSource.PERCEPTION}  # what it saw meanwhile
        assert (await bob.submit(cmd.AddNote(agent="pilot-1", text="hm"))).ok
        assert (await bob.submit(cmd.Pause(agent="pilot-1"))).ok
        assert (await bob.submit(cmd.Stop(scope="all", grade="freeze"))).ok


async def test_controls_are_asked_for_given_taken_and_freed(workspace: Path) -> None:
    async with (
        serving(workspace) as (engine, _),
        client_of(workspace, "ann") as ann,
        client_of(workspace, "bob") as bob,
    ):
        await _planned(engine)

        async def line(client: Any, text: str) -> str:
            return str((await client.ask("line", line=text))["text"])

        assert "nobody holds" in await line(bob, "control ask")
        assert await line(ann, "control take") == "you hold the controls of pilot-1"
        assert await line(bob, "control ask") == "ann is asked for the controls of pilot-1"
        assert "already" in await line(bob, "control ask")
        (need,) = [need for need in await engine.inbox() if need.kind == "controls"]
        assert (need.thing, need.of) == ("bob", "ann")
        assert "bob asks for them: control give bob" in await line(ann, "control")
        assert "no operator 'zed'" in await line(ann, "control give zed")
        assert await line(ann, "control give bob") == "bob holds the controls of pilot-1 now"
        assert not await engine.inbox()
        assert await line(ann, "control take") == "you hold the controls of pilot-1; bob had them"
        assert await line(ann, "control free") == "nobody holds the controls of pilot-1"
        assert (await engine.view("pilot-1")).control == Control()
        kinds = [kind for kind in await _kinds(engine) if kind.startswith("control.")]
        assert kinds == ["control.taken", "control.asked", "control.given", "control.taken", "control.given"]


async def test_an_inbox_entry_is_answered_by_anyone_once_and_who_was_late_is_told(workspace: Path) -> None:
    async with (
        serving(workspace) as (engine, _),
        client_of(workspace, "ann") as ann,
        client_of(workspace, "bob") as bob,
    ):
        await _planned(engine)
        await ann.submit(cmd.SetApprovals(agent="pilot-1", policy={"preset": "ask"}))
        asked = asyncio.create_task(_first(engine, ev.ApprovalAsked))
        await ann.submit(cmd.Run(agent="pilot-1"))
        await asked
        (need,) = await engine.inbox()
        answers = [cmd.AnswerApproval(agent="pilot-1", action=need.thing, allow=yes) for yes in (False, True)]
        assert (await bob.submit(answers[0])).ok
        late = await ann.submit(answers[1])
        assert late.message == f"{need.thing} is answered already: denied by bob"


async def _first(engine: Engine, kind: type[ev.Payload]) -> None:
    async for event in engine.events(0, stream="pilot-1"):
        if event.kind == kind.kind:
            return


async def test_controls_outlive_the_engine_and_its_successor_lets_agents_go_on(workspace: Path) -> None:
    async with serving(workspace) as (engine, _), client_of(workspace, "ann") as ann:
        await _planned(engine)
        await ann.submit(cmd.TakeControl(agent="pilot-1"))
    async with serving(workspace) as (engine, _), client_of(workspace, "bob") as bob:
        assert (await engine.view("pilot-1")).control.holder == "ann"
        assert not (await bob.submit(cmd.Step(agent="pilot-1"))).ok
        shown = (await bob.ask("line", line="control"))["text"]
        assert "not connected now" in shown
        assert "connected: bob" in shown
        async with client_of(workspace, "serve") as successor:
            assert (await successor.submit(cmd.Run(agent="pilot-1"))).ok
            assert not (await successor.submit(cmd.DropGoal(agent="pilot-1", goal="g1"))).ok
        events = [event async for event in engine.events(0, stream="pilot-1", follow=False)]
        again = await replay_stream(events, engine.blob)
        assert again.matches, again.difference


# ------------------------------------------------------------------ edits that collide


async def test_an_edit_of_what_another_changed_is_refused_with_what_changed(workspace: Path) -> None:
    async with serving(workspace) as (engine, _):
        await _planned(engine)
        state = await engine.view("pilot-1")
        steps = state.plans["g1"].steps
        step, plan = steps[1], tuple(map(step_line, steps))
        first, second = (
            cmd.EditStep(
                agent="pilot-1", step=step.id, args={"path": name, "content": "1"}, was=(step_line(step),)
            )
            for name in ("ann.txt", "bob.txt")
        )
        assert (await engine.submit(first, operator="ann")).ok
        refused = await engine.submit(second, operator="bob")
        assert not refused.ok
        assert refused.message.startswith(f"ann changed step {step.id} since you began")
        assert "ann.txt" in refused.message
        whole = cmd.ReplacePlan(agent="pilot-1", goal="g1", plan="list the files", was=plan)
        assert "ann changed the plan of g1" in (await engine.submit(whole, operator="bob")).message
        goal = cmd.ChangeGoal(agent="pilot-1", goal="g1", text="look up", was=("look around",))
        assert (await engine.submit(goal, operator="ann")).ok
        late = await engine.submit(goal.model_copy(update={"text": "look down"}), operator="bob")
        assert "- look around" in late.message.replace("-look", "- look")
        assert "ann changed the text of g1" in late.message
        assert (await engine.view("pilot-1")).goals["g1"].text == "look up"


# ------------------------------------------------------------------ what is sent twice


async def test_a_command_that_comes_again_under_its_key_is_answered_and_not_repeated(workspace: Path) -> None:
    note = {"do": "add_note", "agent": "pilot-1", "text": "once"}
    wrong = {"do": "drop_goal", "agent": "pilot-1", "goal": "g9"}
    async with serving(workspace) as (engine, _), client_of(workspace, "ann") as ann:
        await _planned(engine)
        first = await ann.ask("submit", command=note, key="k1")
        assert await ann.ask("submit", command=note, key="k1") == first
        both = await asyncio.gather(*(ann.ask("submit", command=note, key="k2") for _ in range(2)))
        assert both[0] == both[1]
        refused = await ann.ask("submit", command=wrong, key="k3")
        other = await ann.ask("submit", command=wrong, key="k1")
        assert "has one of its own" in other["message"]
        async with client_of(workspace, "bob") as bob:
            assert (await bob.ask("submit", command=note, key="k1"))["event"] != first["event"]
        line = await ann.ask("line", line="note by a line", key="k4")
        assert (await ann.ask("line", line="note by a line", key="k4"))["answer"] == line["answer"]
    async with serving(workspace) as (engine, _), client_of(workspace, "ann") as ann:
        again = await ann.ask("submit", command=note, key="k1")
        assert (again["ok"], again["event"]) == (True, first["event"])
        assert (await ann.ask("submit", command=wrong, key="k3"))["message"] == refused["message"]
        assert (await ann.ask("line", line="note by a line", key="k4"))["answer"]["event"] == (
            line["answer"]["event"]
        )
        notes = [kind for kind in await _kinds(engine) if kind == ev.NoteAdded.kind]
        assert len(notes) == 4


async def test_each_command_is_carried_out_once_over_a_connection_that_is_cut_again_and_again(
    workspace: Path,
) -> None:
    async with serving(workspace) as (engine, server), client_of(workspace, "ann") as ann:
        await _planned(engine)
        away = await AttachedEngine.attach(workspace, EngineConfig(), operator="bob")
        assert away is not None

        async def cut(times: int) -> None:
            for _ in range(times):
                await asyncio.sleep(0.01)
                for task in list(server._connections):  # as a network that fails would
                    task.cancel()

        try:
            for sender, notes, times in ((ann, 40, 12), (away, 10, 4)):
                cutting = asyncio.create_task(cut(times))
                for number in range(notes):
                    receipt = await sender.submit(cmd.AddNote(agent="pilot-1", text=f"{notes} {number}"))
                    assert receipt.ok, receipt.message
                await cutting
        finally:
            await away.close()
        noted = [event async for event in engine.events(0, stream="pilot-1", follow=False)]
        texts = [json.loads(event.body)["text"] for event in noted if event.kind == ev.NoteAdded.kind]
        assert texts == [f"{notes} {number}" for notes in (40, 10) for number in range(notes)]


class _Fixed(SystemClock):
    def now(self) -> str:
        return "2026-01-01T00:00:00.000000Z"


class _Numbered:
    def __init__(self) -> None:
        self._numbers = count(1)

    def new(self, kind: str) -> str:
        return f"{kind}-{next(self._numbers)}"


async def test_the_session_of_one_operator_has_the_head_that_it_had_before_there_could_be_several(
    workspace: Path,
) -> None:
    ports = Ports(clock=_Fixed(), ids=_Numbered(), seed=lambda: 7)
    engine, pilot = await Engine.open(workspace, ports=ports), "pilot-1"
    for command in (
        cmd.CreateAgent(agent=pilot),
        cmd.AddNote(agent=pilot, text="n"),
        cmd.Believe(agent=pilot, key="k", value=1),
        cmd.SetBudget(agent=pilot, usd=3),
        cmd.Pause(agent=pilot),
        cmd.EditStep(agent=pilot, step="s1", args={}),
        cmd.ReplacePlan(agent=pilot, goal="g1", plan="x"),
        cmd.ChangeGoal(agent=pilot, goal="g1", text="x"),
    ):
        await engine.submit(command, operator="ann")
    head = (await engine.view(pilot)).hash
    await engine.close()
    assert head == "aec3f2e78d4f2e35bf060a79a79ea8758c3f626646b575e00b5b2f2bb598b079"
