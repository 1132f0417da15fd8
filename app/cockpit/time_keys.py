"""Changing time from the cockpit: going back and undoing, each with a preview first."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from app.cockpit.layout import Layout
from app.verb import GrammarError
from engine.domain import commands as cmd
from engine.journal.errors import JournalError

if TYPE_CHECKING:
    from app.rewinding import Asked
    from engine.steering.rewinding import Preview


class TimeKeys(Layout):
    """Rewinding, and undoing the operator's last change."""

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

    # -------------------------------------------------------------- undo

    def action_undo(self) -> None:
        """Show what undoes the operator's last change, and do it when they agree."""
        self._undo(again=False)

    def _undo(self, *, again: bool) -> None:
        if not self._refused_in_past() and len(self.screen_stack) == 1:
            self.run_worker(self._offer_undo(self._agent, again), name="undo", exit_on_error=False)

    async def _offer_undo(self, agent: str, again: bool) -> None:
        from engine.steering.undoing import UndoError
        from widgets.dialogs.confirm import ConfirmDialog, ConfirmModel

        if self._engine is None or agent not in self._engine.agents:
            self._say("there is no agent yet", "error")
            return
        try:
            offer = await self._engine.undo_offer(agent, again=again)
        except (UndoError, JournalError, KeyError) as error:
            self._say(str(error), "error")
            return
        if len(self.screen_stack) > 1:
            return
        if isinstance(offer.command, cmd.Rewind):
            from app.rewinding import Asked

            back = offer.command
            self._preview_rewind(agent, Asked(str(back.to), back.scope, back.paths), None)
            return
        verb = "Redo" if again else "Undo"
        back_again = "undo" if again else "redo"
        whose = (
            f"Of {offer.of}, given by {offer.by}. It is recorded as your command; {back_again} takes it back."
        )
        model = ConfirmModel(f"{verb}: {offer.words}", whose, yes=verb.lower(), no="leave it")

        def decided(agreed: bool | None) -> None:
            if agreed:
                self._send(offer.as_command(agent))

        self.push_screen(ConfirmDialog(model), decided)
