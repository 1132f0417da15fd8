"""A cockpit under test: the real application on a real workspace, with keys in and the screen out."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from textual.pilot import Pilot

from app.cockpit.app import Cockpit
from app.commands.settings import Settings
from app.projection.projector import Pane
from engine.api.engine import Engine
from engine.core import events as ev
from engine.core.agents import RunState
from engine.core.state import AgentState
from engine.planning.library.missions import Mission, load_missions
from tests.patience import PATIENCE_S as PATIENCE_S
from widgets.base.dialog import BoxDialog
from widgets.panes.beliefs import WorkingMemory
from widgets.panes.command_bar import CommandBar
from widgets.panes.goals import GoalStack
from widgets.panes.plan import PlanPane
from widgets.panes.session import SandboxPane

Said = TypeVar("Said", bound=ev.Payload)
WAIT = """import sys, time
print("begun", flush=True)
time.sleep(float(sys.argv[1]))
"""
"""A script for the sandbox that says that it runs, and waits."""


@dataclass
class Flight:
    """Keys, screen and journal of a running cockpit."""

    app: Cockpit
    pilot: Pilot[None]

    async def until(self, holds: Callable[[], object], what: str = "", *, every: float = 0.01) -> None:
        """Wait for a condition; fails with the screen when it does not come true."""
        end = time.monotonic() + PATIENCE_S
        while not holds():
            if time.monotonic() > end:
                raise AssertionError(f"never came true: {what or holds}\n{self.text}")
            # The pilot's own pause asks each widget whether it has settled and redraws: in the end will do.
            await asyncio.sleep(every)
            if self.app._exception is not None:
                raise self.app._exception
        await self.pilot.pause(0)

    async def press(self, *keys: str) -> None:
        """Press keys, once the panes show what is known: what a key does depends on what they show.

        Under a flood of events they are never up to date for long, so this waits a second at most.
        """
        for _ in range(100):
            if self.drawn:
                break
            await asyncio.sleep(0.01)
        await self.pilot.press(*keys)

    @property
    def drawn(self) -> bool:
        """Whether no visible pane is out of date."""
        pane, dirty = self.app.controllers.layout.pane, self.app.context.projector.dirty
        return not any(pane(name.value).is_on_screen for name in dirty - {Pane.STATUS})

    async def type(self, line: str) -> None:
        """Enter a line in the command bar."""
        bar = self.app.query_one("#command", CommandBar)
        bar.focus()
        bar.input.value = line
        await self.pilot.pause()
        await self.pilot.press("enter")

    async def shows(self, *words: str) -> None:
        """Wait until the screen holds all these words."""
        # Composing the whole screen takes 20 ms, so that asking more often would keep it from being drawn.
        await self.until(lambda: self.has(words), f"on the screen: {words}", every=0.05)

    def has(self, words: Sequence[str]) -> bool:
        """Whether the screen holds all these words now."""
        text = self.text
        return all(word in text for word in words)

    async def says(self, *words: str) -> None:
        """Wait until the message line under the command bar holds all these words, and the panes know why."""
        await self.until(lambda: all(word in self.message for word in words), f"message: {words}")
        await self.told()

    async def told(self) -> None:
        """Wait until the projection has every event that is recorded by now.

        A command's receipt is there as soon as its events are durable, and shown at once; they are followed
        to the panes on a way of their own.
        """
        engine = self.app.context.engine
        if engine is None:
            return
        recorded = {agent: (await engine.view(agent)).version for agent in engine.agents}
        states = self.app.context.live.states
        await self.until(
            lambda: all(state.version >= recorded.get(state.agent_id, 0) for state in states),
            "what is recorded",
        )

    async def dialog(self, kind: type) -> None:
        """Wait until a dialog of this class is open and drawn, and takes keys as meant for it."""
        await self.until(lambda: isinstance(self.app.screen, kind), kind.__name__)
        screen = self.app.screen
        if isinstance(screen, BoxDialog):
            await self.until(lambda: screen.deaf_until < time.monotonic(), f"{kind.__name__} that takes keys")
        await self.pilot.pause()

    async def no_dialog(self) -> None:
        await self.until(lambda: len(self.app.screen_stack) == 1, "no dialog")

    @property
    def text(self) -> str:
        """The screen as text."""
        return "\n".join(strip.text for strip in self.app.screen._compositor.render_strips())

    @property
    def message(self) -> str:
        return self.app.query_one("#command", CommandBar).message[0]

    @property
    def state(self) -> AgentState:
        """The shown agent's state, as the projection has it; empty before there is one."""
        return self.app.context.projector.state or AgentState()

    @property
    def engine(self) -> Engine:
        assert self.app.context.engine is not None
        return self.app.context.engine

    @property
    def plan(self) -> PlanPane:
        return self.app.query_one("#plan", PlanPane)

    @property
    def session(self) -> SandboxPane:
        return self.app.query_one("#session", SandboxPane)

    @property
    def goals(self) -> GoalStack:
        return self.app.query_one("#goals", GoalStack)

    @property
    def memory(self) -> WorkingMemory:
        return self.app.query_one("#memory", WorkingMemory)

    @property
    def session_text(self) -> str:
        first, end = self.session.line_total()
        return "\n".join(self.session.line(number)[0].text for number in range(first, end))

    @property
    def steps(self) -> dict[str, str]:
        """Id and text of every step that the plan pane shows."""
        return {row.key: row.copy for row in self.plan.steps.rows}

    def row(self, step: str) -> str:
        """A step as the plan pane shows it, with its mark and its words."""
        row = next(row for row in self.plan.steps.rows if row.key == step)
        return row.mark.text + " " + "".join(piece.text for piece in (*row.pieces, *row.tail))

    def status_of(self, step: str) -> str:
        found = self.state.find_step(step)
        return found[1].status.value if found else ""

    @property
    def next_step(self) -> str:
        return self.state.step.id if self.state.step else ""

    async def journal(self, kind: type[Said], stream: str = "pilot-1") -> list[Said]:
        """Every durable event of a kind."""
        events = self.engine.events(0, stream=stream, follow=False)
        said = [ev.payload_of(event) async for event in events]
        return [payload for payload in said if isinstance(payload, kind)]

    async def at_rest(self) -> None:
        """Wait until nothing acts and nothing is allowed to."""
        await self.until(
            lambda: (
                not self.state.acting
                and not self.state.grants
                and not self.state.requests
                and (self.state.run is not RunState.RUNNING or not self.state.open_goals)
            ),
            "the agent at rest",
        )

    async def goal(self, text: str) -> None:
        """Give the goal and wait for its plan."""
        await self.type(f"goal {text}")
        await self.until(
            lambda: self.state.plan is not None and self.steps and self.state.action is not None, "a plan"
        )
        await self.press("escape")
        await self.until(lambda: self.app.focused is self.plan.steps, "focus on the plan")

    def script(self, name: str, source: str) -> None:
        """Lay a Python script where the agent's commands find it."""
        (self.engine.root / name).write_text(source, encoding="utf-8")

    async def running(self, seconds: float = 60) -> None:
        """Give a goal whose only step waits so long, and let it begin."""
        self.script("wait.py", WAIT)
        await self.goal(f"run 'python wait.py {seconds}'")
        await self.press("s")
        await self.until(lambda: "begun" in self.session_text.splitlines(), "the running command")

    async def select(self, step: str) -> None:
        """Put the cursor of the plan on a step, with the arrow keys."""
        # Once it is drawn anew: the cursor follows what is next until a key moves it.
        await self.until(lambda: self.drawn, "the plan drawn")
        keys = list(self.steps)
        while (selected := self.plan.selected) != step:
            down = keys.index(selected) < keys.index(step) if selected else True
            await self.press("down" if down else "up")
            await self.until(lambda was=selected: self.plan.selected != was, f"on the way to {step}")  # type: ignore[misc]


@asynccontextmanager
async def cockpit(
    workspace: Path,
    *,
    mission: str = "",
    size: tuple[int, int] = (120, 35),
    settings: Settings | None = None,
    notifications: bool = False,
    ready: bool = True,
) -> AsyncIterator[Flight]:
    """Open the cockpit on a workspace, and wait until it can be used where it is to be `ready`."""
    chosen: Mission | None = load_missions()[mission] if mission else None
    home = workspace.parent / "home"
    app = Cockpit(workspace, mission=chosen, settings=settings or Settings(home=home))
    async with app.run_test(size=size, notifications=notifications) as pilot:
        flight = Flight(app, pilot)
        if ready:
            await flight.until(lambda: app.context.projector.state is not None, "the first agent")
        if chosen is not None and chosen.agent is not None:
            await flight.until(lambda: flight.state.mind is not None and flight.steps, "the mission's mind")
        elif chosen is not None:
            await flight.until(lambda: flight.steps and flight.state.action is not None, "the mission's plan")
        yield flight
        app.context.say("the test is over", "note")
        await asyncio.sleep(0)
