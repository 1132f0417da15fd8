"""Changing time from the cockpit: going back and undoing, each with a preview first."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from app.cockpit.agent_keys import AgentKeys
from app.verb import GrammarError
from engine.domain import commands as cmd
from engine.journal.errors import JournalError

if TYPE_CHECKING:
    from app.rewinding import Asked
    from engine.steering.rewinding import Preview


class TimeKeys(AgentKeys):
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
        from widgets.dialogs.rewind import YES, RewindDialog, RewindModel
        from widgets.dialogs.signed_parts import SignedPart

        parts = tuple(SignedPart(one.title, one.lines, one.note) for one in parts_of(found))
        refused = f"files cannot be brought back: {found.trouble}" if found.trouble else ""
        model = RewindModel(title_of(found), parts, "" if asked.paths else asked.scope, refused=refused)

        def decided(result: str | None) -> None:
            if result == YES:
                self._to_now()
                self._send(command_of(found))
            elif result:
                self._preview_rewind(found.agent, replace(asked, scope=result), here)

        self.push_screen(RewindDialog(model), decided)

    # -------------------------------------------------------------- forks

    def action_fork(self) -> None:
        """In the past: let a new agent begin there. Else type where from."""
        if self._in_past:
            self._fork_entered("here")
        else:
            self._open_bar("fork ")

    def _fork_entered(self, text: str) -> None:
        self.run_worker(self._fork(self._agent, text, self._past_at), name="fork", exit_on_error=False)

    async def _fork(self, agent: str, text: str, here: int | None) -> None:
        """Make the forks, and look at the first of them."""
        from app.forking import carry_out, read_fork
        from engine.steering.rewinding import RewindError

        if self._engine is None or agent not in self._engine.agents:
            self._say("there is no agent yet", "error")
            return
        try:
            asked = read_fork(text)
            made, receipt = await carry_out(self._engine, agent, asked, self._settings.operator, here)
        except (GrammarError, RewindError, JournalError) as error:
            self._say(str(error), "error")
            return
        if made:
            self._to_now()
            self._select_soon(made[0])
        several = f"{', '.join(made)} run; outcomes says what came of them" if asked.times else ""
        self._say(several if several and receipt.ok else receipt.message, "ok" if receipt.ok else "error")

    def _adopt_entered(self, text: str) -> None:
        self.run_worker(self._adopt(self._agent, text.split()[0]), name="adopt", exit_on_error=False)

    async def _adopt(self, agent: str, fork: str) -> None:
        """Show what taking over a fork's files would do, and do it when the operator agrees."""
        from app.rewinding import adopted_parts
        from engine.steering.rewinding import RewindError
        from widgets.dialogs.rewind import YES, RewindDialog, RewindModel
        from widgets.dialogs.signed_parts import SignedPart

        if self._engine is None or self._refused_in_past():
            return
        try:
            parts = adopted_parts(await self._engine.adopt_preview(agent, fork))
        except (RewindError, JournalError, KeyError) as error:
            self._say(str(error), "error")
            return
        if len(self.screen_stack) > 1:
            return
        shown = tuple(SignedPart(one.title, one.lines, one.note) for one in parts)
        model = RewindModel(f"{agent} takes over the files of {fork}", shown, "", yes="take over")

        def decided(result: str | None) -> None:
            if result == YES:
                self._send(cmd.AdoptFork(agent=agent, fork=fork))

        self.push_screen(RewindDialog(model), decided)

    def _outcomes_entered(self) -> None:
        self.run_worker(self._show_outcomes(self._agent), name="outcomes", exit_on_error=False)

    async def _show_outcomes(self, agent: str) -> None:
        from app.outcomes import outcomes, parts_of
        from widgets.dialogs.comparison import ComparisonDialog, ComparisonModel
        from widgets.dialogs.signed_parts import SignedPart

        if self._engine is None:
            return
        # Asked of a fork, it is told of the agent that it is one of.
        state = self._live.state if not self._in_past else self._projector.state
        agent = state.forked.agent if state is not None and state.forked is not None else agent
        found = await outcomes(self._engine, agent)
        if len(self.screen_stack) == 1:
            parts = tuple(SignedPart(title, lines, note) for title, lines, note in parts_of(*found))
            self.push_screen(ComparisonDialog(ComparisonModel(f"{agent} and its forks", parts)))

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
