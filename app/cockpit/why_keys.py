"""Why this? What is selected, answered from the journal."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from app.cockpit.base import CockpitBase
from app.inquiry_verbs import split_way
from engine.domain.ports import SystemClock
from engine.journal.errors import JournalError
from widgets import BeliefsPane, ErrorPanel, GoalStack, PlanPane, WorkingMemory

if TYPE_CHECKING:
    from widgets.dialogs.why import WhyDialog

BELIEF, GOAL = "belief:", "goal:"


class WhyKeys(CockpitBase):
    """Asking why, and what stands on something."""

    def action_why(self) -> None:
        """Ask about what is selected in the focused pane, else about the newest action."""
        if len(self.screen_stack) == 1:
            self._ask_why(self._selected_subject())

    def _ask_why(self, line: str) -> None:
        """Answer a question as it is typed in the bar."""
        self.run_worker(self._answer_why(*split_way(line)), name="why", group="why", exit_on_error=False)

    def _selected_subject(self) -> str:
        """The step, failure, belief or goal under the cursor of the focused pane; empty for none."""
        focused = self.focused
        pane = next((one for one in focused.ancestors_with_self if one.id), None) if focused else None
        match pane:
            case PlanPane():
                return pane.selected
            case ErrorPanel():
                return pane.cursor
            case WorkingMemory() if pane.cursor.startswith((BELIEF, GOAL)):
                return pane.cursor.partition(":")[2]
            case BeliefsPane():
                return pane.cursor.partition("[")[0]
            case GoalStack() if pane.cursor.startswith(GOAL):
                return pane.cursor.partition(":")[2]
        return ""

    async def _answer_why(self, what: str, way: str) -> None:
        """Read the journal, and show the answer in the dialog, open or not."""
        from app.inquiring import Way, find
        from engine.inquiry import UnknownSubjectError
        from widgets.dialogs.why import WhyDialog, WhyModel, WhyRow

        if self._engine is None:
            self._say("the workspace is still opening", "error")
            return
        try:
            record = await self._engine.record()
            found = await asyncio.to_thread(find, record, what, Way(way), self._agent)
        except (UnknownSubjectError, JournalError) as error:
            self._say(str(error), "error")
            return
        rows = tuple(
            WhyRow(one.ref, one.depth, one.glyph, one.kind, one.text, one.time) for one in found.lines
        )
        asked = found.subject.name if found.subject.kind != "error" else found.subject.newest
        model = WhyModel(asked, way, found.title, rows, found.notes)
        if isinstance(self.screen, WhyDialog):
            self.screen.show(model)
        elif len(self.screen_stack) == 1:
            self.push_screen(WhyDialog(model))

    # The handler's name says which dialog's message it takes, so that it need not be imported before.

    def on_why_dialog_asked(self, event: WhyDialog.Asked) -> None:
        """Answer on in the open dialog."""
        self._ask_why(f"{event.what} {event.way}" if event.way != "backward" else event.what)

    async def _tell_status(self) -> None:
        """Say where the agent stands, what it waits for, and how long it has."""
        from app.inquiring import waiting_text

        state = self._projector.state
        if self._engine is None or state is None:
            self._say("no agent", "note")
            return
        waits = await self._engine.waiting(state.agent_id)
        told = waiting_text(waits, SystemClock().now())
        self._say(f"{state.agent_id} {state.mode} · {state.pause_point} · {told}", "note")

    async def _tell_drift(self, goal: str) -> None:
        """Show how the agent has kept to its plans."""
        from app.inquiring import drift_lines
        from widgets.dialogs.why import WhyDialog, WhyModel, WhyRow

        if self._engine is None or not self._agent:
            self._say("there is no agent yet", "error")
            return
        lines = drift_lines(await self._engine.store.read(self._agent), goal)
        if not lines:
            self._say("no plan and no action yet", "note")
        elif len(self.screen_stack) == 1:
            rows = tuple(WhyRow(one.ref, one.depth, one.glyph, one.kind, one.text) for one in lines)
            self.push_screen(WhyDialog(WhyModel("", "drift", f"Does {self._agent} keep to its plan?", rows)))
