"""What the crew's part of the cockpit stands on: it is opened late, and asked without waiting."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from app.cockpit.approval_keys import ApprovalKeys
from app.projection import Pane
from app.verb import Context
from engine.domain import crew_commands as cc
from engine.journal import events as ev
from engine.journal.event import Event

if TYPE_CHECKING:
    from engine.crew.crew import Crew
    from engine.crew.state import CrewState


class CrewBase(ApprovalKeys):
    """The crew, once somebody needs it."""

    _crew: Crew | None = None
    _opening_crew = _crew_stale = False

    _over: tuple[int, int] | None = None
    """How many runs were over at which version of the crew's state."""

    def _runs_over(self) -> int | None:
        """How many runs of handoffs are over, ever; None while the crew is not open, and in the past."""
        state = self._crew_state
        if state is None or self._in_past:
            return None
        if self._over is None or self._over[0] != state.version:
            over = sum(not one.open and bool(one.run) and not one.proof for one in state.handoffs.values())
            self._over = (state.version, over)
        return self._over[1]

    @property
    def _crew_state(self) -> CrewState | None:
        return self._crew.state if self._crew is not None else None

    def _crew_soon(self) -> None:
        """Open the crew behind the screen, so that its names can be completed."""
        if self._engine is not None and self._crew is None and not self._opening_crew:
            self._opening_crew = True
            self.run_worker(self._open_crew(), name="crew", exit_on_error=False)

    async def _open_crew(self) -> Crew:
        """The crew, open.

        Raises:
            JournalError: its stream cannot be read.
        """
        assert self._engine is not None
        try:
            opened = await self._engine.crew()
        finally:
            self._opening_crew = False
        if self._crew is None:
            self._crew, self._crew_stale = opened, True
            self._live.dirty.add(Pane.GOALS)
            if count := len(opened.needs):
                waits = "1 request waits" if count == 1 else f"{count} requests wait"
                self._say(f"{waits} for you: F", "note")
        return opened

    def _with_crew(self, context: Context) -> Context:
        """What lines are understood against, with what the crew knows."""
        return replace(context, crew=self._crew_state)

    def _ask_crew(self, command: cc.ForCrew, then: Callable[[str], None] | None = None) -> None:
        """Send a command; the key or line that asked for it does not wait."""
        self.run_worker(self._asked_crew(command, then), name=command.do, exit_on_error=False)

    async def _asked_crew(self, command: cc.ForCrew, then: Callable[[str], None] | None = None) -> None:
        if self._engine is not None and not self._in_past:
            await self._open_crew()
        receipt = await self._submit(command)
        self._crew_stale = True
        if then is not None:
            then(receipt.message)

    def _crew_told(self, event: Event) -> None:
        """Take an event of the crew's stream in; who asks the operator rings once."""
        self._crew_stale = True
        if self._crew is None:
            self._crew_soon()
        said = ev.payload_of(event)
        if said.kind in ("crew.human_opened", "crew.human_closed"):
            self._refresh_inbox()
        if said.kind == "crew.human_opened":
            self.call_later(self._asked_of_operator, dict(getattr(said, "request", {})))
        elif said.kind == "crew.handoff_ended":
            self._live.dirty.add(Pane.GOALS)
            self.call_later(self._handoff_over, str(getattr(said, "handoff", "")))

    def _asked_of_operator(self, request: dict[str, object]) -> None:
        if request.get("reason_code") == "conversation":
            if said := str(request.get("question") or ""):
                self._say(f"{request.get('agent_id')}: {said} · say TEXT answers", "asks")
            return
        if request.get("blocking"):
            self.bell()
        told = f"{request.get('agent_id')} asks ({request.get('id')}): {request.get('title')}"
        self._say(f"{told} · F answers it", "asks" if request.get("blocking") else "note")

    def _handoff_over(self, name: str) -> None:
        """Say what came of what the operator handed over."""
        state = self._crew_state
        one = state.handoffs.get(name) if state is not None else None
        if one is None or one.context.parent_id or one.group or one.result is None:
            return
        why = f": {one.result.error_code or ''} {one.result.error}" if one.result.error else ""
        good = one.result.success
        self._say(f"{one.id} {one.agent} {one.state.words}{why} · H shows it", "ok" if good else "error")
