"""Changing time from the cockpit: going back with a preview first."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from app.cockpit.layout import Layout
from app.verb import GrammarError
from engine.journal.errors import JournalError

if TYPE_CHECKING:
    from app.rewinding import Asked
    from engine.steering.rewinding import Preview


class TimeKeys(Layout):
    """Rewinding."""

    def action_rewind(self) -> None:
        """In the past: go back there. Else type where to."""
        if self._in_past:
            self._rewind_entered("here")
        else:
            self._open_bar("rewind ")

    def _rewind_entered(self, text: str) -> None:
        """Show what a rewind would do, as words of the command bar ask for it."""
        from app.rewinding import read_rewind

        try:
            asked = read_rewind(text)
        except GrammarError as error:
            self._say(str(error), "error")
            return
        self._preview_rewind(self._agent, asked, self._past_at)

    def _preview_rewind(self, agent: str, asked: Asked, here: int | None) -> None:
        self.run_worker(self._show_rewind(agent, asked, here), name="rewind", exit_on_error=False)

    async def _show_rewind(self, agent: str, asked: Asked, here: int | None) -> None:
        from app.rewinding import preview_of
        from engine.steering.rewinding import RewindError

        if self._engine is None or agent not in self._engine.agents:
            self._say("there is no agent yet", "error")
            return
        self._say("reading what a rewind would do …", "note")
        try:
            found = await preview_of(self._engine, agent, asked, here)
        except (RewindError, JournalError, KeyError) as error:
            self._say(str(error), "error")
            return
        if len(self.screen_stack) == 1:
            self._say("", "note")
            self._open_preview(found, asked, here)

    def _open_preview(self, found: Preview, asked: Asked, here: int | None) -> None:
        from app.rewinding import command_of, parts_of, title_of
        from widgets.dialogs.rewind import YES, RewindDialog, RewindModel, RewindPart

        parts = tuple(RewindPart(one.title, one.lines, one.note) for one in parts_of(found))
        refused = f"files cannot be brought back: {found.trouble}" if found.trouble else ""
        model = RewindModel(title_of(found), parts, "" if asked.paths else asked.scope, refused=refused)

        def decided(result: str | None) -> None:
            if result == YES:
                self._to_now()
                self._send(command_of(found))
            elif result:
                self._preview_rewind(found.agent, replace(asked, scope=result), here)

        self.push_screen(RewindDialog(model), decided)
