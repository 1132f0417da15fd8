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
            WhyRow(one.ref, one.lead, one.glyph, one.kind, one.text, one.time) for one in found.lines
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

    # -------------------------------------------------------------- what is wrong

    def _mark_entered(self, word: str, line: str) -> None:
        """Do what `wrong`, `right` or `retract` asks in the bar."""
        what, _, rest = line.partition(" ")
        work = self._retract(what) if word == "retract" else self._mark(what, rest, lifted=word == "right")
        self.run_worker(work, name="mark", group="mark", exit_on_error=False)

    def on_why_dialog_mark_asked(self, event: WhyDialog.MarkAsked) -> None:
        """Mark the event under the cursor as wrong, or take its mark back."""
        self.run_worker(
            self._mark(event.ref, "", lifted=None), name="mark", group="mark", exit_on_error=False
        )

    def on_why_dialog_retract_asked(self, event: WhyDialog.RetractAsked) -> None:
        """Take back what stands on the event under the cursor alone."""
        self.run_worker(self._retract(event.ref), name="mark", group="mark", exit_on_error=False)

    async def _mark(self, what: str, reason: str, *, lifted: bool | None) -> None:
        """Mark something, and show what stands on it; with None a mark is set, or taken back where it is."""
        from app.disputing import dispute, marked
        from engine.inquiry import UnknownSubjectError

        if self._engine is None or self._refused_in_past():
            return
        try:
            record = await self._engine.record()
            ref = marked(record, what, self._agent)
        except (UnknownSubjectError, JournalError) as error:
            self._say(str(error), "error")
            return
        lifts = ref in record.disputes if lifted is None else lifted
        receipt = await dispute(self._submit, ref, reason, lifted=lifts)
        if receipt.ok:
            await self._answer_why(ref, "backward" if lifts else "wrong")

    async def _retract(self, what: str) -> None:
        """Ask whether the beliefs are to be taken back that nothing else speaks for, and do it."""
        from app.disputing import NONE, marked, retract
        from engine.inquiry import UnknownSubjectError, standing_alone
        from widgets.dialogs.confirm import ConfirmDialog, ConfirmModel

        if self._engine is None or self._refused_in_past():
            return
        try:
            record = await self._engine.record()
            ref = marked(record, what, self._agent)
        except (UnknownSubjectError, JournalError) as error:
            self._say(str(error), "error")
            return
        alone = standing_alone(record, [ref])
        if not alone:
            self._say(NONE.format(ref=ref), "note")
            return
        names = ", ".join(one.name for one in alone)
        model = ConfirmModel(
            f"Take back {len(alone)} belief{'s' * (len(alone) != 1)} that nothing but {ref} speaks for?",
            f"{names}. Each is forgotten by a command of its own, and can be believed again.",
            yes="take them back",
        )
        if await self.push_screen_wait(ConfirmDialog(model)):
            receipts = await retract(self._submit, alone)
            done = sum(receipt.ok for receipt in receipts)
            failed = next((receipt.message for receipt in receipts if not receipt.ok), "")
            self._say(f"{done} forgotten{': ' * bool(failed)}{failed}", "error" if failed else "ok")

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
            rows = tuple(WhyRow(one.ref, one.lead, one.glyph, one.kind, one.text) for one in lines)
            self.push_screen(WhyDialog(WhyModel("", "drift", f"Does {self._agent} keep to its plan?", rows)))
