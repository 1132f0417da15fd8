"""Looking at what the thinker was told, and what it took."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.cockpit.base import CockpitBase
from engine.journal.events import payload_of
from engine.journal.model_events import ModelCalled

if TYPE_CHECKING:
    from widgets.dialogs.context_meter import ContextDialog, ContextModel


class ContextKeys(CockpitBase):
    """The context meter."""

    _meter: ContextDialog | None = None
    """The open meter."""

    def action_context(self) -> None:
        """Show the shares of the last prompt, its words, and what calls took."""
        if len(self.screen_stack) == 1:
            self.run_worker(self._open_meter(self._agent), name="context", exit_on_error=False)

    async def _open_meter(self, agent: str) -> None:
        model = await self._metered(agent)
        if model is None:
            self._say("there is no agent yet", "error")
        elif len(self.screen_stack) == 1:
            from widgets.dialogs.context_meter import ContextDialog

            self._meter = ContextDialog(model)
            self.push_screen(self._meter, self._meter_closed)

    def _meter_closed(self, _none: None) -> None:
        self._meter = None

    async def _metered(self, agent: str) -> ContextModel | None:
        """What the meter shows of an agent; its newest call is read from the journal, not kept here."""
        from app.projection import context_views

        engine, state = self._engine, self._projector.state
        if engine is None or state is None:
            return None
        if self._past_at is None:
            found = await engine.newest(agent, ModelCalled)
        else:
            called = await engine.past(agent).newest(ModelCalled, self._past_at)
            found = (called, payload_of(called)) if called is not None else None
        if found is None or not isinstance(found[1], ModelCalled):
            return context_views.context(state)
        return context_views.context(state, found[1], found[0].at)

    def _refresh_meter(self, agent: str) -> None:
        """Bring an open meter up to date: a model was asked again."""
        if self._meter is not None and agent == self._agent and not self._in_past:
            self.run_worker(self._show_metered(agent), name="context", group="context", exclusive=True)

    async def _show_metered(self, agent: str) -> None:
        model = await self._metered(agent)
        if model is not None and self._meter is not None:
            self._meter.show(model)
