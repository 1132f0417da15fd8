"""Saving the workspace between the gate and the start of an action."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from engine.actions.saving import NoSaver, Saved, Saver, Unsaved
from engine.domain.failure import FailureKind
from engine.domain.goal import Goal
from engine.domain.plan import PlanStep
from engine.journal import events as ev
from engine.loop.recovering import RecoveringAgent

SHOWN_AFTER_S = 0.1
"""How long an action may be saved for before its request is shown to those who watch."""
_NOBODY = NoSaver()


class SavingAgent(RecoveringAgent):
    """Has the workspace saved before each action that may change it."""

    async def _saved(self, may_start: Callable[[], bool]) -> Saved | None:
        """What came of saving the workspace; None when the action may not start, or not as it was saved for.

        Whatever closes the gate, such as a pause, an edit or a stop, cuts the saving off at once.
        """
        action, saver = self.state.action, self._saver()
        assert action is not None

        def as_before() -> bool:
            return may_start() and self._saver() is saver

        shown = asyncio.get_running_loop().call_later(SHOWN_AFTER_S, self.commit_soon)
        try:
            saved = await self._while(as_before, saver.save(self.state.agent_id, action))
        finally:
            shown.cancel()
        return saved if as_before() else None

    def _saver(self) -> Saver:
        """Who saves the workspace: nobody where the action changes nothing or the operator waives it."""
        action = self.state.action
        if action is None or (action.step and action.step == self.state.unsaved_step):
            return _NOBODY
        changes = self.around.registry.get(action.tool).commands[action.command].mutates
        return self.around.saver if changes else _NOBODY

    def _record_saved(self, saved: Saved) -> None:
        action = self.state.action
        if action is not None and not isinstance(saved, Unsaved):
            self.append(saved, "system", action.event)

    def _not_saved(self, goal: Goal, step: PlanStep, failed: ev.SnapshotFailed) -> None:
        """Withdraw the action and let the operator decide, or give up where nobody is there."""
        action = self.state.action
        assert action is not None
        refused = self.append(failed, "system", action.event)
        withdrawn = ev.ActionWithdrawn(action=action.id, reason="the workspace could not be saved")
        self.append(withdrawn, "agent", refused.ref)
        message = (
            f"the workspace could not be saved before this step. {failed.reason} Mend that and retry, "
            "or run the step without a snapshot: it cannot be undone then"
        )
        self._step_failed(step, goal.id, FailureKind.DEPENDENCY_NOT_MET, message, refused.ref)
