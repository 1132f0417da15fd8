"""Coming back: what happened since the operator last looked."""

from __future__ import annotations

import asyncio

from textual import events

from app.cockpit.base import CockpitBase
from app.projection import views
from engine.journal.errors import JournalError

AWAY_S = 60.0
"""How long the terminal must have been without the focus for its return to be one from elsewhere."""


class RecapKeys(CockpitBase):
    """The recap, told in a line on return and in full on demand."""

    away_s = AWAY_S
    _looked = 0
    """The place of the last event that the operator may have seen."""
    _looked_when = "your last command"
    _left_at: float | None = None
    """When the terminal lost the focus, by the loop's clock."""
    _left_place = 0

    def on_app_blur(self, event: events.AppBlur) -> None:
        """Remember where the operator looked away."""
        if self._left_at is None and self._engine is not None:
            self._left_at = asyncio.get_running_loop().time()
            self._left_place = self._engine.store.last_seq

    def on_app_focus(self, event: events.AppFocus) -> None:
        """After a while elsewhere, say in a line what happened."""
        left, self._left_at = self._left_at, None
        if left is not None and asyncio.get_running_loop().time() - left >= self.away_s:
            self._looked, self._looked_when = self._left_place, "you looked away"
            self.run_worker(self._say_recap(), name="recap", exit_on_error=False)

    async def _recap_on_opening(self) -> None:
        """Begin at the operator's last command, and say what happened since."""
        from app.recapping import last_command

        if self._engine is None:
            return
        try:
            self._looked = await last_command(self._engine, self._settings.operator)
        except JournalError:
            return
        state = self._projector.state
        if self._looked and not self.problems and not (state is not None and views.asks(state)):
            await self._say_recap()

    async def _say_recap(self) -> None:
        from app.recapping import recap_line, recap_of

        if self._engine is None:
            return
        try:
            line = recap_line(await recap_of(self._engine, self._looked))
        except (JournalError, KeyError):
            return  # the recap itself says what is wrong, when it is asked for
        if line and not self._occupied:
            self._say(f"since {self._looked_when}: {line} · R tells all", "note")

    def action_recap(self) -> None:
        """Show what happened since the operator last looked."""
        self._open_recap("")

    def _open_recap(self, argument: str) -> None:
        if self._engine is None:
            self._say("the workspace is still opening", "error")
        elif len(self.screen_stack) == 1:
            self.run_worker(self._show_recap(argument), name="recap", exit_on_error=False)

    async def _show_recap(self, argument: str) -> None:
        from app.recapping import recap_facts, recap_of
        from widgets.dialogs.recap import RecapDialog, RecapModel
        from widgets.facts import Fact

        if self._engine is None:
            return
        since, when = (int(argument), f"event {argument}") if argument else (self._looked, self._looked_when)
        try:
            rows = recap_facts(await recap_of(self._engine, since))
        except JournalError as error:
            self._say(str(error), "error")
            return
        if len(self.screen_stack) == 1:
            facts = tuple(Fact(label, text) for label, text in rows)
            self.push_screen(RecapDialog(RecapModel(when if since else "the beginning", facts)))
