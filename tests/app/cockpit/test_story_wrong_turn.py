"""Story S1 of the steering spec, "The wrong turn": a misread result, tried otherwise in forks."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tmux_terminal import NEEDS_TMUX, ROOT, Terminal

from engine.agent.shared import EngineConfig
from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.fold import fold
from engine.core.goals import GoalStatus
from engine.core.journal import Event
from engine.core.ports import SystemClock
from engine.core.state import AgentState
from engine.core.store.sqlite import SqliteJournal
from engine.models.choice import ModelChoice
from engine.models.endpoint import Endpoint
from tests.engine.agent.engine_flight import Flight, act, journal_holds_together
from tests.messages_server import Reply, Seen, object_call, plan_call, serving
from tests.patience import PATIENCE_S
from tests.trusting import trust_folder

pytestmark = [*NEEDS_TMUX, pytest.mark.slow]

MODEL = "claude-sonnet-5-5"
PARTS = 43
"""Files that are written before the checks run; the whole plan has sixty actions."""
CHECK = 'print("43 checked: 42 passed, 1 failed (part_07, as expected)")\n'
RIGHT = "all passed but the one that is to fail"
KEYS = 25
"""Keys that the story may take, besides the letters of what is typed."""


def mind(key: str, value: Any) -> dict[str, Any]:
    """An action by which the agent takes up a belief."""
    args = {"key": key, "value": value}
    return {"type": "EXECUTE_TOOL", "params": {"tool_id": "mind", "command": "add", "args": args}}


class Thinker:
    """A model that misreads what the checks say, unless it is told; the fourth that is told gives up."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self._misreads = iter(
            (
                object_call("mind__add", key="verdict", value="failed"),
                object_call("mind__add", key="culprit", value="part_07"),
                object_call("simple_coder__write", path="notes.txt", content="part_07 is broken"),
                object_call("simple_coder__write", path="shop/part_07.py", content="PART = None\n"),
                object_call("mind__add", key="release", value="blocked"),
                object_call("mind__add", key="tests_green", value=False),
            )
        )
        self._told = 0

    def answer(self, seen: Seen) -> Reply:
        said = seen.said()
        tools = {tool["name"] for tool in seen.body.get("tools", ())}
        if "propose_plan" in tools and "finish" not in tools:
            self.asked.append("plan")
            return self._plan(said)
        if RIGHT in said:
            self.asked.append("right")
            self._told += 1
            if self._told == 4:
                return object_call("give_up", reason="I do not know how a release is made")
            return object_call("finish", summary="the checks are as they should be")
        self.asked.append("wrong")
        return next(self._misreads)

    def _plan(self, said: str) -> Reply:
        if "bring the shop" not in said:
            return plan_call(*(mind("tests_green", green) for green in (True, False, True, False, True)))
        parts = [act("write", path=f"shop/part_{n:02}.py", content=f"PART = {n}\n") for n in range(PARTS)]
        think = {"type": "THINK", "id": "judge", "description": "judge by the checks and act on it"}
        release = [act("write", path=f"release/{n:02}.txt", content=f"page {n}") for n in range(14)]
        return plan_call(
            *parts, mind("tests_green", True), act("run", command="python check.py"), think, *release
        )


class Hands:
    """An operator at a terminal, whose keys are counted."""

    def __init__(self, terminal: Terminal) -> None:
        self.terminal = terminal
        self.keys = 0

    def press(self, *keys: str) -> None:
        self.keys += len(keys)
        self.terminal.keys(*keys)

    def say(self, line: str, *sees: str) -> None:
        """Type a line into the bar; the colon before it is its first letter."""
        self.terminal.type(f":{line}")
        self.press("Enter")
        self.terminal.shows(*sees)

    def leave(self) -> None:
        """Close a dialog when it is there, and wait until it is gone."""
        self.terminal.shows("esc close")
        self.press("Escape")
        self.terminal.until(lambda: "esc close" not in self.terminal.screen, "no dialog")


async def prepared(workspace: Path, url: str) -> None:
    """An agent that has been there yesterday, and the repository that it works on."""
    flight = Flight(workspace, SystemClock(), EngineConfig(model=ModelChoice(Endpoint(url), MODEL)))
    await flight.open()
    await flight.do(cmd.CreateAgent)
    (workspace / "sandbox" / "check.py").write_text(CHECK)
    await flight.do(cmd.AdoptGoal, text="look at the checks of yesterday")
    await flight.do(cmd.Run)
    await flight.until(lambda state: state.goals["g1"].status.terminal)
    await flight.do(cmd.Pause)
    await flight.engine.close()


def files(root: Path) -> dict[str, bytes]:
    """What stands in a sandbox, by path."""
    found = [one for one in root.rglob("*") if one.is_file() and one.relative_to(root).parts[0][0] != "."]
    return {str(one.relative_to(root)): one.read_bytes() for one in found}


def read(workspace: Path, *agents: str) -> list[list[Event]]:
    """The events of agents that stand in the journal now."""

    async def of() -> list[list[Event]]:
        store = await SqliteJournal.open(workspace, clock=SystemClock(), read_only=True)
        try:
            return [await store.read(agent) for agent in agents]
        finally:
            await store.close()

    return asyncio.run(of())


def misread_in(events: Sequence[Event]) -> Event:
    """The end of the action that ran the checks."""
    run = next(
        said.action
        for event in events
        if isinstance(said := ev.payload_of(event), ev.ActionRequested) and "check.py" in str(said.args)
    )
    return next(
        event
        for event in events
        if isinstance(said := ev.payload_of(event), ev.ActionFinished) and said.action == run
    )


def test_a_wrong_turn_is_found_set_right_and_tried_five_times(
    terminal: Terminal, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    workspace, thinker = tmp_path / "ws", Thinker()
    sandbox, hands = workspace / "sandbox", Hands(terminal)
    forks = [f"pilot-f{number}" for number in range(1, 6)]

    def state(agent: str) -> AgentState:
        return fold(read(workspace, agent)[0])

    with serving(thinker.answer) as url:
        asyncio.run(prepared(workspace, url))
        trust_folder(workspace, terminal.home)
        terminal.environment = {"ANTHROPIC_BASE_URL": url, "PILOTHOUSE_MODEL": MODEL}
        terminal.fly(f"--workspace {workspace}")
        terminal.shows("PAUSED", "pilot")

        hands.say("break dry belief tests_green true->false", "would have held pilot 2 times")
        hands.leave()
        hands.say("break belief tests_green true->false", "b1")
        hands.say("break spend g2 $0.50", "b2")
        hands.say("goal bring the shop to its release", "bring the shop")
        hands.say("run")
        terminal.until(lambda: state("pilot").model_calls == 8, "six decisions")
        terminal.shows("PAUSED", "breakpoint b1")
        (events,) = read(workspace, "pilot")
        wrong, asked_before, stopped = misread_in(events), len(thinker.asked), files(sandbox)

        hands.press("6", "w")
        terminal.shows("why a", "add tests_green False", "plan p2", "g2", "believes release = blocked")
        hands.leave()
        # Four beliefs that the agent made of it, and two that say how the command ended.
        hands.say(f"wrong {wrong.ref} misread: one is to fail", "in doubt: 6 beliefs, 2 files")
        hands.leave()
        hands.say(f"fork {wrong.version} x5 with belief verdict={RIGHT}", "outcomes shows")
        for fork in forks:
            terminal.until(lambda fork=fork: state(fork).goals["g2"].status.terminal, f"the end of {fork}")
        (failed,) = [fork for fork in forks if state(fork).goals["g2"].status is not GoalStatus.ACHIEVED]
        best = next(fork for fork in forks if fork != failed)
        hands.say("outcomes", "achieved 80% [38%, 96%] of n = 5", "open")
        hands.leave()
        assert files(sandbox) == stopped, "the original stays"
        hands.say("agent pilot", "PAUSED")
        hands.say(f"adopt {best}", f"pilot takes over the files of {best}")
        hands.press("y")
        terminal.shows(f"the files of {best} are pilot's now")
        assert thinker.asked[asked_before:] == ["right"] * 5, "nothing is asked that was asked before"
        hands.press("C-q")
        assert terminal.ends() == 0
    assert hands.keys <= KEYS
    the_forks_did_only_what_was_to_be_done_otherwise(workspace, stopped, failed, best)
    all_of_it_is_on_the_record(workspace, events, best)
    an_auditor_finds_the_same(workspace, "pilot", *forks)
    with capsys.disabled():
        print(f"\nS1: {hands.keys} keys besides the letters of the lines")


def the_forks_did_only_what_was_to_be_done_otherwise(
    workspace: Path, stopped: dict[str, bytes], failed: str, best: str
) -> None:
    """Each began with the files of the misread result, and the best is what the workspace holds now."""
    then = {path: content for path, content in stopped.items() if path != "notes.txt"}
    then["shop/part_07.py"] = b"PART = 7\n"
    assert files(workspace / "forks" / failed) == then, "it gave up at once"
    (events,) = read(workspace, best)
    said = [ev.payload_of(event) for event in events]
    own = said[next(n for n, one in enumerate(said) if isinstance(one, ev.AgentForked)) :]
    done = [str(one.args.get("path")) for one in own if isinstance(one, ev.ActionRequested)]
    assert done == [f"release/{n:02}.txt" for n in range(14)]
    assert files(workspace / "sandbox") == files(workspace / "forks" / best)


def all_of_it_is_on_the_record(workspace: Path, before: Sequence[Event], best: str) -> None:
    """What the operator did, with their name; what was recorded before is as it was."""
    original, fork = read(workspace, "pilot", best)
    assert original[: len(before)] == list(before)
    orders = [
        (said.command["do"], event.actor.partition(":")[0])
        for event in (*original, *fork)
        if isinstance(said := ev.payload_of(event), ev.CommandReceived)
    ]
    (begun,) = [event for event in fork if event.kind == ev.AgentForked.kind]
    (adopted,) = [event for event in original if event.kind == ev.Rewound.kind]
    assert {one.actor.partition(":")[0] for one in (begun, adopted)} == {"operator"}
    for order in ("set_break", "dispute", "believe", "run"):
        assert (order, "operator") in orders
    assert {who for _, who in orders} == {"operator"}


def an_auditor_finds_the_same(workspace: Path, *agents: str) -> None:
    """Without a screen, a model or an engine: each branch comes out as it was recorded."""
    asyncio.run(journal_holds_together(workspace))
    command = [sys.executable, "-m", "app.cli.main", "sessions", "replay", "--workspace", str(workspace)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr + done.stdout
    same = {line.partition(":")[0] for line in done.stdout.splitlines() if line.endswith("same head")}
    assert same >= set(agents), done.stdout
