"""Notifying the operator of what needs them and of what is done."""

from __future__ import annotations

import os

from app.cockpit.base import CockpitBase
from app.notifying import Notifier, TerminalNotifier
from engine.inquiry.notices import Told, notice_of
from engine.journal import events as ev
from engine.journal.event import Event
from engine.sandbox.desktop import desktop


class Notices(CockpitBase):
    """Looks at each new event once."""

    notifier: Notifier | None = None
    """Who is told; the terminal and the desktop where nobody was named."""
    _told: Told | None = None

    def _notice(self, event: Event, said: ev.Payload) -> None:
        """Notify of an event where it is one of those few."""
        states = self._projector.states if isinstance(said, ev.GoalEnded) else ()
        state = next((one for one in states if one.agent_id == event.stream), None)
        notice = notice_of(event, said, state)
        # Who hands a shell back in this pane is there and sees the question.
        if notice is None or (isinstance(said, ev.ChangesOffered) and event.stream == self._agent):
            return
        if self._told is None:
            self._told = Told(self._settings.notify)
        if self._told.passes(notice):
            self.run_worker(self._notifier().tell(notice), name="notification", exit_on_error=False)

    def _notifier(self) -> Notifier:
        if self.notifier is None:
            self.notifier = TerminalNotifier(self._write_raw, os.environ, desktop(os.environ))
        return self.notifier

    def _write_raw(self, text: str) -> None:
        if self._driver is not None and not self.is_headless:
            self._driver.write(text)
