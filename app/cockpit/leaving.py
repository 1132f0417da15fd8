"""Leaving the cockpit in good order, however it ends."""

from __future__ import annotations

import asyncio

from app.cockpit.base import CockpitBase
from engine.domain import commands as cmd
from engine.domain.state import RunState
from widgets.dialogs import ConfirmDialog, ConfirmModel

SECOND_PRESS_S = 3.0


class Leaving(CockpitBase):
    """Interrupting, leaving, and closing the engine."""

    _last_interrupt = 0.0

    def action_interrupt(self) -> None:
        """Pause; pressed twice, leave."""
        now = asyncio.get_running_loop().time()
        if now - self._last_interrupt < SECOND_PRESS_S:
            self.action_leave()
            return
        self._last_interrupt = now
        state = self._projector.state
        if state is not None and state.run is RunState.RUNNING:
            self._send(cmd.Pause(agent=self._agent))
        self._say("press ctrl+c again to leave", "note")

    def action_leave(self) -> None:
        """Leave; ask first when that would cut an action off."""
        running = [state for state in self._projector.states if state.acting]
        if not running:
            self.run_worker(self._close_and_exit(0), name="leave")
            return
        names = ", ".join(state.agent_id for state in running)
        model = ConfirmModel(
            f"Leave while {names} runs an action?",
            "The action is cut off and recorded; it runs again when you let the agent go on.",
            yes="leave",
            no="stay",
        )
        self.push_screen(ConfirmDialog(model), self._leave_confirmed)

    def _leave_confirmed(self, yes: bool | None) -> None:
        if yes:
            self.run_worker(self._close_and_exit(0), name="leave")

    def _leave_on(self, number: int) -> None:
        """Leave because a signal says so."""
        self.run_worker(self._close_and_exit(128 + number), name="leave")

    async def action_quit(self) -> None:
        """Textual's own way out ends here too."""
        self.action_leave()

    async def _close_and_exit(self, code: int) -> None:
        self._say("closing …", "note")
        await self._close()
        self.exit(return_code=code)

    async def _close(self) -> None:
        engine, self._engine = self._engine, None
        if engine is not None:
            await engine.close()

    async def on_unmount(self) -> None:
        """However the screen ended, the engine is closed in good order."""
        await self._close()
