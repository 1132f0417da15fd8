"""What every part of the cockpit stands on: the projection, the engine, and how commands reach it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from textual.app import App
from textual.widget import Widget

from app.cockpit.history import History
from app.projection import Projector
from app.settings import Settings
from engine.domain import commands as cmd
from engine.domain.text import clean_line
from engine.engine import Engine
from engine.library import Mission
from widgets import CommandBar, CommandBarModel


class CockpitBase(App[None]):
    """The state of the cockpit; the classes over it add one concern each."""

    def __init__(self, workspace: Path, *, mission: Mission | None = None, settings: Settings) -> None:
        super().__init__()
        self._workspace = workspace
        self._mission = mission
        self._settings = settings
        self._engine: Engine | None = None
        self._projector = Projector()
        self._history = History(workspace)
        self._missions: Mapping[str, Mission] = {}

    @property
    def _agent(self) -> str:
        """The agent that all panes show."""
        return self._projector.selected

    def _pane(self, name: str) -> Widget:
        return self.query_one(f"#{name}")

    def _open_bar(self, text: str) -> None:
        """Go to the command bar, with the beginning of a line when there is one."""
        bar = self.query_one("#command", CommandBar)
        if text:
            bar.set_text(text)
        bar.focus()

    async def _submit(self, command: cmd.Command) -> cmd.Receipt:
        """Send a command and show what came of it."""
        if self._engine is None:
            receipt = cmd.Receipt(ok=False, message="the workspace is still opening")
        else:
            receipt = await self._engine.submit(command, operator=self._settings.operator)
        self._say(receipt.message, "ok" if receipt.ok else "error")
        return receipt

    def _send(self, command: cmd.Command) -> None:
        """Send a command without making the key that asked for it wait."""
        self.run_worker(self._submit(command), name=f"submit {command.do}", exit_on_error=False)

    def _say(self, text: str, kind: Any) -> None:
        self.query_one("#command", CommandBar).show(CommandBarModel(clean_line(text), kind))
