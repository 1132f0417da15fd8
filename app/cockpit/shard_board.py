"""The fleet board over all shards, on a screen of its own; an agent is opened in the cockpit of its shard."""

from __future__ import annotations

import asyncio
import time
from typing import Protocol

from textual import on

from app.cockpit.gc_tuning import disable_gc, enable_gc
from app.cockpit.terminal_app import TerminalApp
from app.projection.shard_views import ShardBoard, ShardView
from engine.core.journal import JournalError
from widgets.base.line_pane import Requested
from widgets.dialogs.fleet import FleetModel, ShardsDialog

LOOK_S = 1.0
"""How often the shards are asked, at most; half of the time nobody is asked."""
REST_S = 0.02
"""What keys have for themselves between two shards' answers, each of thousands of agents."""


class FleetSource(Protocol):
    """The shards, as the board uses them."""

    async def views(self) -> list[ShardView]:
        """How each is."""

    async def stop_all(self) -> tuple[bool, list[str]]:
        """Stop all agents; whether all were, and a line for each shard."""

    async def give(self, key: str, goal: str) -> str:
        """Give an agent a goal; what its shard says to that."""


class ShardBoardApp(TerminalApp[str]):
    """Shows all agents; it ends with the key of the agent that is to be opened, or with nothing.

    Args:
        source: the shards.
        selected: the key of the agent under the cursor.
    """

    TITLE = "pilothouse fleet"

    def __init__(self, source: FleetSource, selected: str = "") -> None:
        super().__init__()
        disable_gc()
        self._source = source
        self._board = ShardBoard()
        self.dialog = ShardsDialog(FleetModel(), selected=selected, asking=True)
        self._message = ""
        self._selected = selected

    def on_mount(self) -> None:
        """Show the board, and ask the shards."""
        self.push_screen(self.dialog, lambda _: self.exit(""))
        self.run_worker(self._look(), name="shards", exit_on_error=False)

    async def _look(self) -> None:
        while True:
            begun = time.monotonic()
            try:
                for view in await self._source.views():
                    await asyncio.sleep(REST_S)
                    self._board.take(view)
            except JournalError as error:
                self._message = str(error)
            self._show()
            enable_gc()  # what the first look made stays, and need not be looked through again
            if self._selected and self.dialog.grid.agents:
                self.dialog.grid.select(self._selected)
                self._selected = ""
            await asyncio.sleep(max(LOOK_S, time.monotonic() - begun))

    def _show(self) -> None:
        self.dialog.show(self._board.model(self._message))

    def _say(self, message: str) -> None:
        self._message = message
        self._show()

    @on(Requested)
    def _requested(self, event: Requested) -> None:
        match event.what, event.args:
            case "wanted", (str(key), "open"):
                self.exit(key)
            case "delegated", (str(key), str(task)):
                self.run_worker(self._give(key, task), exit_on_error=False)
            case "stop_all", _:
                self.run_worker(self._stop_all(), exit_on_error=False)
            case "refresh", _:
                pass  # the shards are asked once a second
            case _:
                self._say("open the agent first: enter")

    async def _give(self, key: str, task: str) -> None:
        """Give an agent a goal, and show what its shard says."""
        self._say(await self._source.give(key, task))

    async def _stop_all(self) -> None:
        """Stop all agents of all shards, and show the receipt."""
        self._say("stopping …")
        _, lines = await self._source.stop_all()
        self._say("\n".join(lines))
