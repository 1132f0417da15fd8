"""The keys that change the plan."""

from __future__ import annotations

from functools import partial

from textual import on

from app.cockpit.base import CockpitBase
from app.projection import views
from engine.domain import commands as cmd
from engine.domain.plan import PlanStep
from widgets import PlanPane
from widgets.dialogs import StepDraft, StepEdit, StepEditor
from widgets.dialogs.step_editor import parse_args


class PlanKeys(CockpitBase):
    """Breakpoints, and editing, skipping, inserting, deleting and moving steps."""

    def _chosen_step(self) -> PlanStep | None:
        """The selected step, else the pending one."""
        state = self._projector.state
        if state is None or state.plan is None:
            self._say("there is no plan yet", "error")
            return None
        selected = state.plan.step(self.query_one("#plan", PlanPane).selected)
        chosen = selected if selected is not None else state.step
        if chosen is None:
            self._say("no step is selected", "error")
        return chosen

    def action_breakpoint(self) -> None:
        """Set or clear a breakpoint on the selected step."""
        step, state = self._chosen_step(), self._projector.state
        if step is not None and state is not None:
            on_now = step.id in state.breakpoints
            self._send(cmd.SetBreakpoint(agent=self._agent, step=step.id, on=not on_now))

    def action_skip(self) -> None:
        """Go on without the selected step."""
        step = self._chosen_step()
        if step is not None:
            self._send(cmd.SkipStep(agent=self._agent, step=step.id))

    def action_delete(self) -> None:
        """Take the selected step out."""
        step = self._chosen_step()
        if step is not None:
            self._send(cmd.DeleteStep(agent=self._agent, step=step.id))

    def action_move(self, by: int) -> None:
        """Move the selected step."""
        step = self._chosen_step()
        if step is not None:
            self._send(cmd.MoveStep(agent=self._agent, step=step.id, by=-1 if by < 0 else 1))

    def action_insert(self) -> None:
        """Let the operator type a new step before the selected one."""
        step = self._chosen_step()
        if step is not None:
            before = "" if step.status.terminal else f"before {step.id} "
            self._open_bar(f"insert {before}")

    def action_edit(self) -> None:
        """Edit the selected or pending step."""
        step = self._chosen_step()
        if step is not None:
            self._edit(step, retry=False)

    def _edit(self, step: PlanStep, *, retry: bool) -> None:
        if step.status.terminal:
            self._say(f"step {step.id} is {step.status}; what is done cannot be changed", "error")
            return
        title = f"Edit {step.id} and retry" if retry else f"Edit {step.id}"
        draft = StepDraft(f"{title}: {views.step_text(step)}", step.tool, step.command, step.args)
        self.push_screen(StepEditor(draft, self._check), partial(self._edited, step.id))

    def _check(self, tool: str, command: str, args_text: str) -> list[str]:
        assert self._engine is not None
        return self._engine.check_call(tool, command, parse_args(args_text))

    def _edited(self, step: str, edit: StepEdit | None) -> None:
        if edit is None:
            self._say("nothing was changed", "note")
            return
        self._send(
            cmd.EditStep(agent=self._agent, step=step, tool=edit.tool, command=edit.command, args=edit.args)
        )

    @on(PlanPane.EditRequested)
    def _edit_requested(self, event: PlanPane.EditRequested) -> None:
        self.action_edit()
