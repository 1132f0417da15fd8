"""The operator takes the agent's shell, works in it, and says what the agent is to know of it."""

from __future__ import annotations

import asyncio
import signal
import sys
from asyncio.subprocess import PIPE
from pathlib import Path
from typing import Any

import pytest
from engine_flight import Flight, QuickClock, act, journal_holds_together, python, replay_of

from engine.agent.steering.gate import hold
from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.agents import Mode, RunState
from engine.core.beliefs import BeliefSource
from engine.core.plan import StepStatus
from engine.core.sandbox import Handover
from engine.core.state import AgentState
from tests.engine.sandbox.shell_desk import alive, until

BEHIND = 'sleep 1000 & timeout 5 sh -c "until grep -qs sleep /proc/$!/comm; do :; done"'
"""A program in the background; it has begun when the next prompt comes, where /proc may be read."""


class Hands:
    """The operator's, on the agent's terminal."""

    def __init__(self, flight: Flight) -> None:
        self.flight = flight
        self.screen = bytearray()

    async def take(self) -> None:
        await self.flight.do(cmd.TakeShell)
        await self.reach()

    async def reach(self) -> None:
        """Wait for the shell's prompt."""
        await until(lambda: self.flight.engine.terminal("pilot") is not None)
        self.screen.clear()
        terminal = self.flight.engine.terminal("pilot")
        assert terminal is not None
        terminal.follow(self.screen.extend)
        await self.sees("$ ")

    def types(self, text: str) -> None:
        terminal = self.flight.engine.terminal("pilot")
        assert terminal is not None
        terminal.write(text.encode())

    async def does(self, line: str, sees: str = "$ ") -> None:
        """Type a line and wait for the next prompt."""
        self.types(f"{line}\n")
        await self.sees("\n")
        await self.sees(sees)

    async def sees(self, text: str) -> None:
        wanted = text.encode()
        await until(lambda: wanted in self.screen)
        del self.screen[: self.screen.index(wanted) + len(wanted)]

    async def hand_back(self, note: str = "") -> AgentState:
        """Hand the shell back; the state once what changed was looked at."""
        await self.flight.do(cmd.ReturnShell, note=note)
        return await self.looked_at()

    async def looked_at(self) -> AgentState:
        state = await self.flight.until(lambda s: not s.shell_taken and s.returned is None)
        assert alive(self.flight.sandbox) == []
        return state


@pytest.fixture
def hands(flight: Flight) -> Hands:
    return Hands(flight)


def offered(state: AgentState) -> dict[str, Any]:
    assert state.handover is not None
    return {offer.key: offer.value for offer in state.handover.offers}


async def test_the_agent_waits_and_then_goes_on_with_the_same_step(flight: Flight, hands: Hands) -> None:
    steps = await flight.plan(
        act("write", path="a", content="1"),
        python("import time; open('began', 'w'); time.sleep(0.2)"),
        act("append", path="a", content="2"),
    )
    await flight.do(cmd.Run)
    await until((flight.sandbox / "began").exists)
    assert "when run has ended" in (await flight.do(cmd.TakeShell)).message
    await hands.reach()
    state = await flight.state()
    assert (state.mode, state.run) == (Mode.SHELL, RunState.PAUSED)
    assert state.step is not None
    assert state.step.id == steps[2]
    for command in (cmd.Run, cmd.Step, cmd.TakeShell):
        assert "you have the shell" in await flight.refused(command)
    await hands.does(f"echo mine >b; mkdir shop; cd shop; COLOUR=red; {BEHIND}")
    state = await hands.hand_back("b is new")
    assert offered(state) == {
        "files.added": ["b", "shop"],
        "operator.variables": {"added": ["COLOUR"]},
        "operator.processes": ["sleep 1000"],
        "operator.note": "b is new",
        "operator.commands": [f"echo mine >b; mkdir shop; cd shop; COLOUR=red; {BEHIND}"],
    }
    assert "say first what the agent is to know" in await flight.refused(cmd.Run)
    assert "say first what the agent is to know" in await flight.refused(cmd.TakeShell)
    assert "files.lost: not offered" in await flight.refused(cmd.SettleChanges, accept=("files.lost",))
    await flight.do(cmd.SettleChanges, accept=("files.added", "operator.note"))
    perceived = len(await flight.payloads(ev.WorldPerceived))
    await flight.do(cmd.Run)
    state = await flight.until(lambda s: not s.open_goals)
    assert (flight.sandbox / "shop/a").read_text() == "2"
    assert state.sandbox.cwd == "shop"
    assert state.beliefs["files.added"].source is BeliefSource.OPERATOR
    assert "operator.processes" not in state.beliefs
    assert len(await flight.payloads(ev.WorldPerceived)) >= perceived
    assert await flight.started() == [steps[0], steps[1], "", steps[2]]
    assert all(step.status is StepStatus.COMPLETED for plan in state.plans.values() for step in plan.steps)


TREE = "mkdir -p src .cache; echo 1 >src/a; echo 2 >src/b; echo x >.cache/x"
VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "edit": ("echo 3 >src/a", {"files.changed": ["src/a"]}),
    "add": ("echo 3 >c; mkdir d", {"files.added": ["c", "d"]}),
    "remove": ("rm -r src", {"files.removed": ["src", "src/a", "src/b"]}),
    "rename": ("mv src/a src/c", {"files.added": ["src/c"], "files.removed": ["src/a"]}),
    "chmod": ("chmod 700 src/a", {"files.changed": ["src/a"]}),
    "link": ("ln -s a src/l", {"files.added": ["src/l"]}),
    "venv": ("python3 -m venv --without-pip .venv", {"files.added": [".venv"]}),
    "cd": ("cd src", {}),
    "cd to what is gone": ("mkdir e; cd e; rmdir ../e", {}),
    "variable": (
        "export WORD=x; unset LANG",
        {"operator.variables": {"added": ["WORD"], "removed": ["LANG"]}},
    ),
    "process": (BEHIND, {"operator.processes": ["sleep 1000"]}),
    "many": ("touch f{001..100}", {"files.added": [*(f"f{n:03}" for n in range(1, 51)), "and 50 more"]}),
    "cache": ("echo y >.cache/y; ls", {}),
    "nothing": ("true", {}),
}


@pytest.mark.parametrize("variant", VARIANTS)
async def test_what_changed_is_offered(flight: Flight, hands: Hands, variant: str) -> None:
    line, expected = VARIANTS[variant]
    await hands.take()
    await hands.does(TREE)
    await hands.hand_back()
    await flight.do(cmd.SettleChanges, accept=())
    await hands.take()
    await hands.does(line)
    state = await hands.hand_back()
    if variant == "cd":
        assert state.handover is not None
        assert state.handover.session is not None
        assert state.handover.session.cwd == "src"
    elif not expected:
        assert state.handover is None
    else:
        found = offered(state)
        assert found.pop("operator.commands") == [line]
        assert found == expected


async def test_the_operator_may_leave_the_agent_where_it_stood(flight: Flight, hands: Hands) -> None:
    await hands.take()
    await hands.does("mkdir shop; cd shop")
    hands.types("exit\n")
    state = await hands.looked_at()
    assert offered(state)["files.added"] == ["shop"]
    await flight.do(cmd.SettleChanges, follow=False)
    state = await flight.until(lambda s: s.handover is None)
    assert state.sandbox.cwd == "."


async def test_stop_cuts_the_shell_off_and_offers_the_files(flight: Flight, hands: Hands) -> None:
    await hands.take()
    await hands.does("echo 1 >a; sleep 1000 & trap '' TERM HUP")
    await flight.do(cmd.Stop)
    state = await hands.looked_at()
    assert state.run is RunState.STOPPED
    assert offered(state) == {"files.added": ["a"]}
    assert [said.reason for said in await flight.payloads(ev.ActionCancelled)] == ["stopped by the operator"]


async def test_closing_ends_the_shell_and_reopening_offers_the_files(flight: Flight, hands: Hands) -> None:
    await hands.take()
    await hands.does("echo 1 >a; sleep 1000 &")
    await flight.reopen()
    assert flight.engine.terminal("pilot") is None
    assert offered(await hands.looked_at()) == {"files.added": ["a"]}
    assert (await flight.payloads(ev.ActionCancelled))[0].reason == "the session closed"


async def test_an_agents_try_to_take_the_shell_is_refused_and_not_taken_for_the_operators(
    flight: Flight,
) -> None:
    steps = await flight.plan(act("shell"))
    state = await flight.at_gate(steps[0])
    assert not state.shell_taken
    await flight.do(cmd.Run)
    await flight.until(lambda s: s.intervention or not s.open_goals)
    finished = (await flight.payloads(ev.ActionFinished))[-1]
    assert finished.code == "not_allowed"


async def test_there_is_one_way_to_one_shell_at_a_time(flight: Flight, hands: Hands) -> None:
    assert "taken with t" in await flight.refused(cmd.CallTool, command="shell")
    assert "no shell to hand back" in await flight.refused(cmd.ReturnShell)
    await flight.do(cmd.TakeShell)
    assert "you have the shell already" in await flight.refused(cmd.TakeShell)
    await hands.reach()
    assert "you have the shell" in await flight.refused(cmd.CallTool, command="ls")
    await flight.do(cmd.ReturnShell)
    again = await flight.submit(cmd.ReturnShell)  # harmless, as a key that is pressed twice
    assert again.ok or "no shell to hand back" in again.message
    await hands.looked_at()
    assert len(await flight.payloads(ev.ActionStarted)) == 1


def test_the_gate_holds_an_agent_whose_operator_has_not_settled_their_changes() -> None:
    state = AgentState(run=RunState.RUNNING)
    assert hold(state, step="s1") is None
    state.handover = Handover("a1")
    held = hold(state, step="s1")
    assert held is not None
    assert "what the agent is to know" in held.reason


async def test_every_beginning_of_a_take_over_replays(flight: Flight, hands: Hands) -> None:
    await flight.plan(act("write", path="b", content=""))
    await hands.take()
    hands.types("cat >a\n")
    await until((flight.sandbox / "a").exists)
    hands.types("seen\n\x04")
    await hands.sees("$ ")
    await hands.hand_back("done")
    await flight.do(cmd.SettleChanges, accept=("operator.note",))
    await hands.take()
    await flight.do(cmd.Stop)
    await hands.looked_at()
    events = await flight.events()
    assert {"shell.typed", "shell.resized"} < {event.kind for event in events}
    for length in range(1, len(events)):
        replay = await replay_of(flight.workspace, events[:length])
        assert replay.matches, f"{length}: {replay.difference}"


SECRET = "correct-horse"


async def test_no_file_of_the_workspace_holds_what_was_typed_unseen(flight: Flight, hands: Hands) -> None:
    await hands.take()
    await hands.does("read -sp wo''rd: WORD", "word:")
    hands.types(f"{SECRET}\n")
    await hands.sees("$ ")
    await hands.does("export WORD; sleep 1000 & python3 -c 'import time; time.sleep(1000)' \"$WORD\" &")
    state = await hands.hand_back()
    assert offered(state)["operator.variables"] == {"added": ["WORD"]}
    await flight.do(cmd.SettleChanges)
    await flight.until_durable("pilot")
    assert any(said.hidden for said in await flight.payloads(ev.ShellTyped))
    held = {path: path.read_bytes() for path in flight.workspace.rglob("*") if path.is_file()}
    assert any(b"read -sp" in content for content in held.values()), "what was seen is found this way"
    assert [path for path, content in held.items() if SECRET.encode() in content] == []


LIFE = """
import asyncio, sys
from pathlib import Path
from engine.core import commands as cmd
from engine.api.engine import Engine

async def live():
    engine = await Engine.open(Path(sys.argv[1]))
    await engine.submit(cmd.CreateAgent(agent="pilot"))
    await engine.submit(cmd.TakeShell(agent="pilot"))
    while (terminal := engine.terminal("pilot")) is None:
        await asyncio.sleep(0.01)
    terminal.follow(lambda data: None)
    terminal.write(b"trap '' HUP TERM; echo 1 >a; (setsid sleep 1001 &); sleep 1002\\n")
    await asyncio.sleep(1000)

asyncio.run(live())
"""


async def test_a_killed_cockpit_leaves_no_shell_and_reopening_offers_the_files(tmp_path: Path) -> None:
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", LIFE, str(tmp_path), stdout=PIPE)
    sandbox = tmp_path / "sandbox"
    await until(lambda: sum(line.startswith("sleep") for line in alive(sandbox)) == 2)
    process.send_signal(signal.SIGKILL)
    await process.wait()
    began = asyncio.get_running_loop().time()
    await until(lambda: alive(sandbox) == [])
    assert asyncio.get_running_loop().time() - began < 3, "the shell outlived the cockpit"
    flight = Flight(tmp_path, QuickClock())
    await flight.open()
    state = await Hands(flight).looked_at()
    assert offered(state) == {"files.added": ["a"]}
    assert len(await flight.payloads(ev.ActionOutcomeUnknown)) == 1
    await flight.engine.close()
    await journal_holds_together(tmp_path)


async def test_a_frozen_shell_runs_what_was_typed_once_it_is_thawed(flight: Flight, hands: Hands) -> None:
    await hands.take()
    await hands.does("sleep 1000 &")
    await flight.do(cmd.Stop, grade="freeze")
    await flight.engine.stopped()
    state = await flight.state()
    assert state.stop_receipt is not None
    (shell,) = state.stop_receipt.stopped
    assert (shell.kind, shell.fate, shell.processes) == ("shell", "frozen", len(alive(flight.sandbox)))
    assert state.mode is Mode.FROZEN
    hands.types("touch made; echo $((40 + 2)); jobs\n")
    assert "frozen" in await flight.refused(cmd.ReturnShell)
    await asyncio.sleep(0.1)
    assert not (flight.sandbox / "made").exists()
    await flight.do(cmd.Thaw)
    await hands.sees("42\r\n")
    await hands.sees("Running")
    assert (flight.sandbox / "made").exists()
    await hands.hand_back()
