"""What every part of the cockpit stands on: the projection, the engine, and how commands reach it."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textual.app import App
from textual.notifications import SeverityLevel
from textual.widget import Widget
from textual.worker import Worker, WorkerState

from app import faults
from app.cockpit import keymap
from app.cockpit.desk import DeskKeeper
from app.cockpit.history import History
from app.cockpit.shell_pane import ShellPane
from app.projection import Projector
from app.settings import Settings
from engine.domain import commands as cmd
from engine.domain.state import AgentState
from engine.domain.text import clean, clean_line
from engine.engine import Engine
from engine.journal.event import Event
from engine.journal.past import Past
from engine.library import Mission
from engine.sandbox.policy import Tier
from widgets import CommandBar, CommandBarModel

if TYPE_CHECKING:
    from engine.inquiry import Need


class CockpitBase(App[None]):
    """The state of the cockpit; the classes over it add one concern each."""

    def __init__(
        self,
        workspace: Path,
        *,
        mission: Mission | None = None,
        settings: Settings,
        accept: Tier | None = None,
    ) -> None:
        super().__init__()
        self._accept = accept
        self._workspace = workspace
        self._mission = mission
        self._settings = settings
        self._engine: Engine | None = None
        self._live = Projector()
        """What happens."""
        self._projector = self._live
        """What the panes show; while the operator looks at the past a projection of that."""
        self._when_told: list[Callable[[], None]] = []
        """What waits for the story of the agent that is shown."""
        self._looked_at: Event | None = None
        """The event of the past that is looked at; None for now."""
        self._pasts: dict[str, Past] = {}
        """The pasts of agents that were looked back on."""
        self._history = History(workspace)
        self._desk = DeskKeeper(workspace)
        self._missions: Mapping[str, Mission] = {}
        self._intention = 0
        """The intention whose plan the operator wants to see; 0 for the one that is pursued."""
        self._shells: dict[str, ShellPane] = {}
        """Open shells by agent; the selected agent's is in place, the others go on out of sight."""
        self._keys, wrong = keymap.checked(settings.keys)
        self._problems = [*settings.problems, *wrong]

    @property
    def problems(self) -> tuple[str, ...]:
        """What is wrong with settings, themes, recipes and agents, in sentences."""
        if self._engine is None:
            return tuple(self._problems)
        health = self._engine.health
        return (
            *self._problems,
            *health.library,
            *health.prompts,
            *health.agents,
            *health.states,
            *filter(None, [health.snapshots]),
        )

    @property
    def _agent(self) -> str:
        """The agent that all panes show."""
        return self._projector.selected

    @property
    def _past_at(self) -> int | None:
        """The version of the agent's stream that is looked at; None for now."""
        return self._looked_at.version if self._looked_at is not None else None

    @property
    def _as_of(self) -> int | None:
        """The place in the journal of the event that is looked at; None for now."""
        return self._looked_at.seq if self._looked_at is not None else None

    @property
    def _shown_time(self) -> float:
        """What time it is in the panes, in seconds since 1970."""
        return (
            time.time() if self._looked_at is None else datetime.fromisoformat(self._looked_at.at).timestamp()
        )

    @property
    def _in_past(self) -> bool:
        """Whether the panes show what was."""
        return self._looked_at is not None

    def _refused_in_past(self) -> bool:
        """Whether nothing can be done because the panes show what was; that is said."""
        if self._in_past:
            self._say(
                f"you look at the past (event {self._past_at}), where nothing acts; end comes back", "error"
            )
        return self._in_past

    def notify(
        self,
        message: str,
        *,
        title: str = "",
        severity: SeverityLevel = "information",
        timeout: float | None = None,
        markup: bool = False,
    ) -> None:
        """Textual's notification; what it says is text, never markup."""
        super().notify(
            clean(message), title=clean_line(title), severity=severity, timeout=timeout, markup=markup
        )

    def _pane(self, name: str) -> Widget:
        return self.query_one(f"#{name}")

    def _open_bar(self, text: str) -> None:
        """Go to the command bar, with the beginning of a line when there is one."""
        bar = self.query_one("#command", CommandBar)
        if text:
            bar.set_text(text)
        # At once, not after the next refresh: a fast hand's next letters would be taken for keys of the plan.
        self.screen_stack[0].set_focus(bar.input)

    @property
    def _occupied(self) -> bool:
        """Whether the operator is in the middle of a dialog or of a line, or in the past."""
        bar = self.query_one("#command", CommandBar)
        return self._in_past or len(self.screen_stack) > 1 or (bar.input.has_focus and bool(bar.input.value))

    async def _submit(self, command: cmd.Command) -> cmd.Receipt:
        """Send a command and show what came of it; from the past none is sent."""
        if self._refused_in_past():
            return cmd.Receipt(ok=False, message="nothing acts in the past")
        if self._engine is None:
            receipt = cmd.Receipt(ok=False, message="the workspace is still opening")
        else:
            receipt = await self._engine.submit(command, operator=self._settings.operator)
        self._say(receipt.message, "ok" if receipt.ok else "error")
        return receipt

    def _send(self, command: cmd.Command) -> None:
        """Send a command without making the key that asked for it wait."""
        self.run_worker(self._submit(command), name=f"submit {command.do}", exit_on_error=False)

    def _open_of_system(self, need: Need) -> None:
        """Open what Mastermind needs the operator for; the classes over this one know how."""

    def _ask(self, then: Callable[[AgentState], Awaitable[None]], agent: str) -> None:
        """Let the agent's state at this moment decide, as where a key undoes what it did a moment ago.

        The projection may be a frame behind a quick second press; the engine is not.
        """
        self.run_worker(self._asked(then, agent), name="ask", exit_on_error=False)

    async def _asked(self, then: Callable[[AgentState], Awaitable[None]], agent: str) -> None:
        if self._refused_in_past():
            return
        if self._engine is None:
            self._say("the workspace is still opening", "error")
        elif agent in self._engine.agents:
            await then(await self._engine.view(agent))
        elif agent:
            self._say(f"{agent} is over: nothing is done by it any more; its history stays", "error")

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """Say what went wrong where nothing else would show it."""
        if event.state is WorkerState.ERROR:
            assert event.worker.error is not None
            told = faults.told(self._workspace, event.worker.error)
            self._say(f"{event.worker.name} failed: {told}", "error")

    def _say(self, text: str, kind: Any) -> None:
        # What still runs while the screen is taken down has nobody left to tell.
        if self.is_running:
            self.query_one("#command", CommandBar).show(CommandBarModel(clean_line(text), kind))
