"""Meta-cognition in view: what is due, what runs, and what the operator wants of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.cockpit.base import CockpitBase
from engine.domain import commands as cmd

if TYPE_CHECKING:
    from widgets.dialogs.metacognition import MetaDialog


class MetaKeys(CockpitBase):
    """The gauges, and forcing, vetoing, cancelling and guiding."""

    _gauges: MetaDialog | None = None
    """The open gauges."""

    def action_meta(self) -> None:
        """Show what is due and what runs in the background."""
        state = self._projector.state
        if state is None:
            self._say("there is no agent yet", "error")
        elif len(self.screen_stack) == 1:
            from app.projection import meta_views
            from widgets.dialogs.metacognition import MetaDialog

            self._gauges = MetaDialog(meta_views.meta(state, self._shown_time))
            self.push_screen(self._gauges, self._gauges_closed)

    def _gauges_closed(self, _none: None) -> None:
        self._gauges = None

    def _look_at_gauges(self) -> None:
        """Bring open gauges up to date."""
        state = self._projector.state
        if self._gauges is not None and state is not None:
            from app.projection import meta_views

            self._gauges.show(meta_views.meta(state, self._shown_time))

    def action_guide(self) -> None:
        """Write what the thinker is to be told."""
        self._open_bar("guide ")

    # The names of the handlers say which dialog's message they take, so that it need not be imported before.

    def on_meta_dialog_force_requested(self, event: MetaDialog.ForceRequested) -> None:
        """Do a task now."""
        self._send(cmd.ForceMeta.model_validate({"agent": self._agent, "task": event.task}))

    def on_meta_dialog_veto_requested(self, event: MetaDialog.VetoRequested) -> None:
        """Keep a task from beginning by itself, or let it again."""
        veto = {"agent": self._agent, "task": event.task, "lifted": not event.on}
        self._send(cmd.VetoMeta.model_validate(veto))

    def on_meta_dialog_cancel_requested(self, event: MetaDialog.CancelRequested) -> None:
        """Cut a background job off."""
        self._send(cmd.CancelBackground(agent=self._agent, job=event.job))

    def on_meta_dialog_threshold_requested(self, event: MetaDialog.ThresholdRequested) -> None:
        """Set after how many successes a task is due."""
        which = {"reflect": "reflection", "consolidate": "consolidation"}[event.task]
        self._send(cmd.SetThresholds.model_validate({"agent": self._agent, which: event.value}))
