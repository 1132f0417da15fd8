"""The keys that change the plan."""

from __future__ import annotations

import json
from functools import partial
from typing import Literal

from textual import on

from app.cockpit.base import CockpitBase
from app.projection import views
from engine.domain import commands as cmd
from engine.domain.plan import Op, PlanStep
from engine.domain.state import AgentState
from widgets import PlanPane
from widgets.dialogs import StepDraft, StepEdit, StepEditor
from widgets.dialogs.step_editor import parse_args


class PlanKeys(CockpitBase):
    """Breakpoints, and editing, skipping, inserting, deleting and moving steps."""

    def _chosen_step(self) -> PlanStep | None:
        """The selected step, else the pending one; none in the past."""
        if self._refused_in_past():
            return None
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
        step = self._chosen_step()
        if step is not None:
            self._ask(partial(self._toggle_breakpoint, step.id), self._agent)

    async def _toggle_breakpoint(self, step: str, state: AgentState) -> None:
        on_now = step in state.breakpoints
        await self._submit(cmd.SetBreakpoint(agent=state.agent_id, step=step, on=not on_now))

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

    def action_move_up(self) -> None:
        """Move the selected step up."""
        self._move(-1)

    def action_move_down(self) -> None:
        """Move the selected step down."""
        self._move(1)

    def _move(self, by: Literal[-1, 1]) -> None:
        step = self._chosen_step()
        if step is not None:
            self._send(cmd.MoveStep(agent=self._agent, step=step.id, by=by))

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
        if self._refused_in_past():
            return
        if step.status.terminal:
            self._say(f"step {step.id} is {step.status}; what is done cannot be changed", "error")
            return
        state = self._projector.state
        if state is not None and state.acting and state.action and state.action.step == step.id:
            self._say(f"step {step.id} is running; wait for it, or cut it off with .", "error")
            return
        step = state.as_settled(step) if state is not None else step
        if step.op is not Op.ACT:
            # Such a step calls no tool; the bar takes its arguments.
            self._open_bar(f"edit {step.id} {json.dumps({'args': step.args}, ensure_ascii=False)}")
            return
        title = f"Edit {step.id} and retry" if retry else f"Edit {step.id}"
        draft = StepDraft(f"{title}: {views.step_text(step)}", step.tool, step.command, step.args)
        self.push_screen(StepEditor(draft, self._check), partial(self._edited, step.id))

    def _check(self, tool: str, command: str, args_text: str) -> list[str]:
        assert self._engine is not None
        return self._engine.check_call(tool, command, parse_args(args_text))

    def _edited(self, step: str, edit: StepEdit | None) -> None:
        if edit is None:
            state = self._projector.state
            waits = state is not None and state.intervention is not None
            self._say("nothing was changed" + ("; i opens your choices again" if waits else ""), "note")
            return
        self._send(
            cmd.EditStep(agent=self._agent, step=step, tool=edit.tool, command=edit.command, args=edit.args)
        )

    @on(PlanPane.EditRequested)
    def _edit_requested(self, event: PlanPane.EditRequested) -> None:
        self.action_edit()
