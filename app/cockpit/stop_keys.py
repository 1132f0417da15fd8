"""Stopping in grades: at once with a key, or from a panel; the receipt stays until it was read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual import on

from app import stopping
from app.cockpit.base import CockpitBase
from engine.domain import commands as cmd
from engine.domain.stopping import StopReceipt
from widgets.facts import Fact
from widgets.stop_receipt import StopReceiptModel, StopReceiptPane

if TYPE_CHECKING:
    from widgets.dialogs.stop import StopDialog, StopModel

KEYS = {"after": "a", "hold": "h", "cut": "c", "cancel": "t", "freeze": "f", "kill": "K"}
"""The key of each grade in the panel."""


class StopKeys(CockpitBase):
    """The key that stops, the panel of grades, and the receipts."""

    _stop_panel: StopDialog | None = None
    """The open panel."""
    _receipts: tuple[StopReceipt, ...] = ()
    """Those that have not been put away, the newest of each agent."""

    def action_stop(self) -> None:
        """End everything of the agent at once; pressed again it looks again."""
        self._send(cmd.Stop(agent=self._agent))

    def action_stop_panel(self) -> None:
        """Choose how much is to be stopped, and of whom."""
        if self._projector.state is None:
            self._say("there is no agent yet", "error")
        elif len(self.screen_stack) == 1 and not self._refused_in_past():
            from widgets.dialogs.stop import StopDialog

            self._stop_panel = StopDialog(self._stop_model())
            self.push_screen(self._stop_panel, self._stop_panel_closed)

    def _stop_panel_closed(self, _none: None) -> None:
        self._stop_panel = None

    def _stop_model(self) -> StopModel:
        from widgets.dialogs.stop import GradeLine, ScopeLine, StopModel

        family = len(self._engine.family(self._agent)) if self._engine is not None else 1
        states = list(self._live.states)
        counts = {"agent": 1, "children": family, "all": len(states)}
        return StopModel(
            self._agent,
            tuple(
                GradeLine(grade.value, KEYS[grade.value], name, does)
                for grade, (name, does) in stopping.GRADES.items()
            ),
            tuple(ScopeLine(scope, name, counts[scope]) for scope, name in stopping.SCOPES.items()),
            frozen=any(state.frozen for state in states),
            receipt=self._stop_lines(),
        )

    def _stop_lines(self) -> tuple[Fact, ...]:
        return tuple(Fact("", text, style) for one in self._receipts for style, text in stopping.rows(one))

    def _take_receipt(self, receipt: StopReceipt) -> None:
        """Show a receipt beside those of other agents; a new stop of an agent puts all before it away."""
        known = next((one for one in self._receipts if one.agent == receipt.agent), None)
        others = [one for one in self._receipts if one.agent != receipt.agent]
        anew = known is not None and known.stop != receipt.stop
        self._show_receipts((receipt,) if anew else (*others, receipt))

    def _goes_on(self, agent: str) -> None:
        """The receipt of an agent that goes on is history."""
        if any(one.agent == agent for one in self._receipts):
            self._show_receipts(tuple(one for one in self._receipts if one.agent != agent))

    def _show_receipts(self, receipts: tuple[StopReceipt, ...]) -> None:
        self._receipts = receipts
        hint = "X grades · esc or a click closes"
        self.query_one("#receipt", StopReceiptPane).show(StopReceiptModel(self._stop_lines(), hint))
        if self._stop_panel is not None:
            self._stop_panel.show(self._stop_model())

    def action_close_receipt(self) -> None:
        """Put the receipts away."""
        self._show_receipts(())

    @on(StopReceiptPane.Dismissed)
    def _receipt_dismissed(self) -> None:
        self.action_close_receipt()

    # The names of the handlers say which dialog's message they take, so that it need not be imported before.

    def on_stop_dialog_stop_requested(self, event: StopDialog.StopRequested) -> None:
        """Stop as was chosen."""
        stop = {"agent": self._agent, "grade": event.grade, "scope": event.scope}
        self._send(cmd.Stop.model_validate(stop))

    def on_stop_dialog_thaw_requested(self, event: StopDialog.ThawRequested) -> None:
        """Let frozen processes go on."""
        self._send(cmd.Thaw.model_validate({"agent": self._agent, "scope": event.scope}))
