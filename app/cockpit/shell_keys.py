"""The operator at an agent's shell: taking it, its terminal in the session's place, handing it back."""

from __future__ import annotations

from functools import partial

from textual import on

from app.cockpit.agent_keys import AgentKeys
from app.cockpit.shell_pane import ShellPane
from app.projection import views
from engine.domain import commands as cmd
from engine.journal.errors import JournalError
from widgets import TerminalPane
from widgets.dialogs import HandBack, HandBackDialog, HandoverDecision, HandoverDialog

SMALLEST = 80, 20
"""Columns and rows of a shell below which it takes the whole screen."""


class ShellKeys(AgentKeys):
    """Shells come into the session's place when the engine opens them, and go when they end."""

    _zoomed_for_shell = False
    _arriving = False
    """Whether the shell in place has not been laid out there yet."""

    # -------------------------------------------------------------- in the session's place

    def _look_at_shells(self) -> None:
        """Take up shells that opened, let go of those that ended, and put the selected agent's in place."""
        ended = [agent for agent, pane in self._shells.items() if not pane.terminal.open]
        gone = [self._shells.pop(agent) for agent in ended]
        for state in self._live.states:
            if state.shell_taken and state.agent_id not in self._shells:
                self._take_up(state.agent_id)
        shell = None if self._in_past else self._shells.get(self._agent)
        if shell is not self._terminal:
            self._change_place(shell)
        elif shell is not None and self._arriving and shell.is_on_screen:
            self._make_room(shell)
        for pane in gone:
            pane.remove()

    def _take_up(self, agent: str) -> None:
        terminal = self._engine.terminal(agent) if self._engine is not None else None
        if terminal is not None and terminal.open:
            self._shells[agent] = ShellPane(terminal)
            self.query_one("#bottom").mount(self._shells[agent], before="#mind")

    def _change_place(self, shell: ShellPane | None) -> None:
        """Put a shell into the session's place, or the session back into it."""
        had_focus = self._terminal is not None and self._terminal.has_focus
        self._terminal, self._arriving = shell, shell is not None
        self._set_places()
        if self._zoomed_for_shell:
            self._zoomed = self._zoomed_for_shell = False
        if shell is not None:
            self._choose("session")
            if not self._occupied:
                self._focus_pane("session")
        elif isinstance(self.screen, HandBackDialog):
            self.screen.dismiss(None)
        self._lay_out()
        if shell is None and had_focus:
            alone = self.screen_stack[0].has_class("-solo")
            self._focus_pane("session" if alone else "plan")

    def _make_room(self, shell: ShellPane) -> None:
        """Give a shell the whole screen where its place is small, and the keys unless they are in use."""
        self._arriving = False
        columns, rows = shell.content_size
        if not self._zoomed and (columns < SMALLEST[0] or rows < SMALLEST[1]):
            self._zoomed = self._zoomed_for_shell = True
            self._lay_out()
        if self._occupied:
            self._say("the shell is yours: 5 goes to it", "note")
        else:
            self._focus_pane("session")

    def action_zoom(self) -> None:
        """See `Layout`; what the operator zooms outlasts the shell."""
        self._zoomed_for_shell = False
        super().action_zoom()

    # -------------------------------------------------------------- taking it and handing it back

    def action_take_shell(self) -> None:
        """Take the shell, go to the one that is taken, or settle what was changed at the last one."""
        state = self._projector.state
        if self._refused_in_past():
            return
        if state is None:
            self._say("there is no agent yet; type: agent_create bdi_agent pilot-1", "error")
        elif state.handover is not None:
            self._open_handover()
        elif self._terminal is not None:
            self.action_pane("session")
        else:
            self._show_beside("session")
            self._send(cmd.TakeShell(agent=self._agent))

    @on(TerminalPane.HandBackRequested)
    def action_return_shell(self) -> None:
        """Ask for a note, then hand the shell back."""
        if self._terminal is None:
            self._send(cmd.ReturnShell(agent=self._agent))
        elif len(self.screen_stack) == 1:
            self.push_screen(HandBackDialog(), partial(self._hand_back, self._agent))

    def _hand_back(self, agent: str, said: HandBack | None) -> None:
        if said is None:
            if self._terminal is not None:
                self._focus_pane("session")
        elif said.looks_elsewhere:
            self.action_pane("plan")
            self._say("the shell stays yours: 5 goes back to it, ctrl+] hands it back", "note")
        else:
            self._send(cmd.ReturnShell(agent=agent, note=said.note))

    # -------------------------------------------------------------- what the agent is to know

    def _offer_changes(self) -> None:
        """Open the hand-over by itself, unless the operator is in the middle of something."""
        self._look_at_shells()
        if self._occupied:
            self._say("say what the agent is to know of your changes: press t", "note")
        else:
            self._open_handover(unasked=True)

    def _open_handover(self, *, unasked: bool = False) -> None:
        state = self._projector.state
        model = views.handover(state) if state and not self._in_past else None
        if model is not None and len(self.screen_stack) == 1:
            self.push_screen(HandoverDialog(model, unasked=unasked), partial(self._settle, self._agent))

    def _settle(self, agent: str, decision: HandoverDecision | None) -> None:
        if decision is None:
            self._say("the agent waits until you say what it is to know; t or i opens this again", "note")
        else:
            self._send(cmd.SettleChanges(agent=agent, accept=decision.accept, follow=decision.follow))

    # -------------------------------------------------------------- what was recorded

    async def _write_cast(self, action: str) -> None:
        """Write a recorded shell as a file that players can play."""
        from app.playing import NothingToPlayError, write_cast

        if self._engine is None or not self._agent:
            self._say("there is no agent yet", "error")
            return
        try:
            written = await write_cast(self._engine, self._agent, action)
        except (NothingToPlayError, JournalError) as error:
            self._say(str(error), "error")
        else:
            self._say(f"written to {written}; asciinema play plays it", "ok")
