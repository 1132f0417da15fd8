"""Breakpoints of every kind, and stepping, by key."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from pydantic import ValidationError

from app.break_verbs import break_command
from app.cockpit.why_keys import WhyKeys
from app.verb import Context, GrammarError
from engine.domain import commands as cmd
from engine.domain.breakpoints import BreakKind
from engine.engine import Engine

if TYPE_CHECKING:
    from widgets.dialogs.breakpoints import BreakpointsDialog

TYPED_S = 0.25
"""How long nothing is typed before a dry run begins."""


class BreakKeys(WhyKeys):
    """The list of breakpoints, dry runs, and steps over and out of goals."""

    _breaks: BreakpointsDialog | None = None
    """The open list."""

    # -------------------------------------------------------------- stepping

    def action_step_over(self) -> None:
        """One step with everything below it."""
        self._send(cmd.Step(agent=self._agent, scope="over"))

    def action_step_out(self) -> None:
        """Until the pending step's plan is through."""
        self._send(cmd.Step(agent=self._agent, scope="out"))

    def _step_all(self, scope: str) -> None:
        """Step every paused agent that has something to do."""
        from app.doing import steppable

        if self._refused_in_past():
            return
        waiting = [state.agent_id for state in self._live.states if steppable(state)]
        for agent in waiting:
            self._send(cmd.Step.model_validate({"agent": agent, "scope": scope}))
        if not waiting:
            self._say("no agent is paused with something to do", "note")

    # -------------------------------------------------------------- the list

    def action_breakpoints(self) -> None:
        """All breakpoints of the agent."""
        state = self._projector.state
        if state is None:
            self._say("there is no agent yet", "error")
        elif not self._refused_in_past() and len(self.screen_stack) == 1:
            from app.projection import break_views
            from widgets.dialogs.breakpoints import BreakpointsDialog

            self._breaks = BreakpointsDialog(break_views.breakpoints(state), self._check_break)
            self.push_screen(self._breaks, self._breaks_closed)

    def _breaks_closed(self, _none: None) -> None:
        self._breaks = None

    def _show_breakpoints(self) -> None:
        """Bring an open list up to date."""
        state = self._projector.state
        if self._breaks is not None and state is not None:
            from app.projection import break_views

            self._breaks.show(break_views.breakpoints(state))

    def _break_of(self, kind: str, pattern: str) -> cmd.Command:
        """The command that sets a breakpoint.

        Raises:
            GrammarError: it cannot be set; the message says why.
        """
        if kind == BreakKind.STEP and not pattern:
            raise GrammarError("say which step: s12, or words of its description")
        try:
            return break_command(f"{kind} {pattern}", Context(self._agent, self._projector.state))
        except ValidationError as error:
            raise GrammarError(error.errors()[0]["msg"]) from None

    def _check_break(self, kind: str, pattern: str) -> str:
        """What is wrong with a breakpoint; empty when it can be set."""
        try:
            command = self._break_of(kind, pattern)
        except GrammarError as error:
            return str(error)
        return Engine.check_breakpoint(kind, pattern) if isinstance(command, cmd.BreakOn) else ""

    # The names of the handlers say which dialog's message they take, so that it need not be imported before.

    def on_breakpoints_dialog_add_requested(self, event: BreakpointsDialog.AddRequested) -> None:
        """Set a breakpoint."""
        self._send(self._break_of(event.kind, event.pattern))

    def on_breakpoints_dialog_switch_requested(self, event: BreakpointsDialog.SwitchRequested) -> None:
        """Switch a breakpoint on or off."""
        self._send(cmd.ChangeBreak(agent=self._agent, breakpoint=event.breakpoint_id, enabled=event.enabled))

    def on_breakpoints_dialog_remove_requested(self, event: BreakpointsDialog.RemoveRequested) -> None:
        """Clear a breakpoint."""
        self._send(cmd.ChangeBreak(agent=self._agent, breakpoint=event.breakpoint_id, cleared=True))

    def on_breakpoints_dialog_why_requested(self, event: BreakpointsDialog.WhyRequested) -> None:
        """Ask why of the event at which a breakpoint held last."""
        self.call_later(self._ask_why, event.event)

    def on_breakpoints_dialog_dry_run_requested(self, event: BreakpointsDialog.DryRunRequested) -> None:
        """Say how often a breakpoint would have held, once typing has stopped."""
        work = self._dry_run(self._agent, event.kind, event.pattern)
        self.run_worker(work, name="dry run", group="dry run", exclusive=True, exit_on_error=False)

    async def _dry_run(self, agent: str, kind: str, pattern: str) -> None:
        from app.breaking import dry_line

        await asyncio.sleep(TYPED_S)
        command = self._break_of(kind, pattern)
        match command:
            case cmd.SetBreak():
                line = command.line
            case cmd.SetBreakpoint():
                line = f"step {command.step}"
            case _:
                return  # what a reasoner's program does is not compared with its past
        if self._engine is not None and self._breaks is not None:
            told = dry_line(await self._engine.dry_run(agent, [line]))
            if self._breaks is not None:
                self._breaks.tell(kind, pattern, told)

    def _dry_entered(self, text: str) -> None:
        """Answer a dry run that was typed in the bar."""
        if self._engine is None or not self._agent:
            self._say("there is no agent yet", "error")
        else:
            work = self._answer_dry(self._engine, self._agent, text)
            self.run_worker(work, name="dry run", group="dry run", exclusive=True, exit_on_error=False)

    async def _answer_dry(self, engine: Engine, agent: str, text: str) -> None:
        """Show where a breakpoint would have held; enter asks why there."""
        from app.breaking import dry_line, split_dry
        from engine.domain.break_lines import BreakError
        from widgets.dialogs.why import WhyDialog, WhyModel, WhyRow

        try:
            told = await engine.dry_run(agent, [split_dry(text)[0]], split_dry(text)[1])
        except BreakError as error:
            self._say(str(error), "error")
            return
        (result,) = told.results
        self._say(dry_line(told), "note")
        rows = tuple(WhyRow(one.event, "", "◉", "break", one.what, one.at[11:19]) for one in result.stops)
        if rows and len(self.screen_stack) == 1:
            self.push_screen(WhyDialog(WhyModel("", "dry run", dry_line(told), rows)))

    def _tell_held(self, agent: str, why: str) -> None:
        """Say that a breakpoint holds an agent, shown or not."""
        self._show_breakpoints()
        if agent == self._agent:
            self._say(f"{why}; s steps, space goes on, B lists", "note")
        else:
            self._say(f"{agent} is held: {why}", "note")
