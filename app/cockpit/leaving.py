"""Leaving the cockpit in good order, however it ends."""

from __future__ import annotations

import asyncio

from textual.widgets import Input, TextArea

from app.cockpit.base import CockpitBase
from app.lines import ending_jobs
from engine.domain import commands as cmd
from engine.domain.state import AgentState, RunState
from widgets.dialogs import ConfirmDialog, ConfirmModel

SECOND_PRESS_S = 3.0
AGAIN = "press ctrl+c again to leave"


class Leaving(CockpitBase):
    """Interrupting, leaving, and closing the engine."""

    _last_interrupt = -SECOND_PRESS_S
    _engine_closed: asyncio.Future[None] | None = None

    def action_interrupt(self) -> None:
        """Copy what is selected; where nothing is, pause; pressed twice, leave."""
        if self._copy_selection():
            return
        now = asyncio.get_running_loop().time()
        if now - self._last_interrupt < SECOND_PRESS_S:
            self.action_leave()
            return
        self._last_interrupt = now
        state = self._projector.state
        if state is not None and state.run is RunState.RUNNING:
            self._ask(self._pause, self._agent)
        else:
            self._say(AGAIN, "note")

    async def _pause(self, state: AgentState) -> None:
        receipt = await self._submit(cmd.Pause(agent=state.agent_id))
        self._say(f"{receipt.message} · {AGAIN}", "ok" if receipt.ok else "error")

    def _copy_selection(self) -> bool:
        focused = self.focused
        typed = focused.selected_text if isinstance(focused, Input | TextArea) else ""
        text = typed or self.screen.get_selected_text() or ""
        if text:
            self.copy_to_clipboard(text)
            self.screen.clear_selection()
            self._say(f"copied the selection to the terminal's clipboard ({len(text)} characters)", "ok")
        return bool(text)

    def action_leave(self) -> None:
        """Leave; ask first when that would cut an action or a background job off."""
        running = [state for state in self._live.states if state.acting]
        jobs = [job for state in self._live.states for job in state.running_jobs]
        if not running and jobs:
            self._ask_to_leave("Leave while background jobs run?", f"The {ending_jobs(jobs)}.")
            return
        if not running:
            self.run_worker(self._close_and_exit(0), name="leave")
            return
        names = ", ".join(state.agent_id for state in running)
        again = any(state.action and state.action.step for state in running)
        self._ask_to_leave(
            f"Leave while {names} runs an action?",
            "The action is cut off and recorded"
            + ("; it runs again when you let the agent go on." if again else "; it does not run again.")
            + (f" Besides, the {ending_jobs(jobs)}." if jobs else "")
            + (" Your shell ends, with all that runs in it." if any(s.shell_taken for s in running) else ""),
        )

    def _ask_to_leave(self, question: str, consequence: str) -> None:
        model = ConfirmModel(question, consequence, yes="leave", no="stay")
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
        """Close the engine once; who asks again, as by a second signal, waits for the same end."""
        engine, self._engine = self._engine, None
        if engine is not None:
            self._engine_closed = asyncio.ensure_future(engine.close())
        if self._engine_closed is not None:
            await asyncio.shield(self._engine_closed)

    async def on_unmount(self) -> None:
        """However the screen ended, the engine is closed in good order."""
        await self._close()
