"""Budgets at the gate: the action that would break one is not started, and holds the agent."""

from __future__ import annotations

from engine.domain.budgets import Objection, Spent
from engine.journal import events as ev
from engine.loop.saving import SavingAgent


class BudgetedAgent(SavingAgent):
    """Asks the workspace's ledger before an action, and is held by it."""

    def _overspends(self, cause: str) -> bool:
        """Whether the requested action would break a budget; the agent is held then.

        There is no await between this and the start of the action.
        """
        action, ledger = self.state.action, self.around.ledger
        if ledger is None or action is None:
            return False
        entry = ledger.enter(self.state.agent_id, action.goal, Spent(actions=1), action=action.id)
        if not isinstance(entry, Objection):
            return False
        self._held_by(entry, "action", action.event, cause)
        return True

    def time_is_up(self, objection: Objection) -> None:
        """Be held by a budget of time: what runs ends by itself, and nothing follows it."""
        self._held_by(objection, "time", self.state.run_event)
        self.commit_soon()
        self.poke()

    def ease(self, actor: str) -> None:
        """Go on, as there is more of the budget that holds the agent."""
        held = self.state.held_by
        if held is not None:
            self.append(ev.BudgetEased(budget=held.budget), actor, held.event)
            self.poke()

    def _held_by(self, objection: Objection, before: str, *causes: str) -> None:
        said = ev.BudgetReached(
            reason=objection.reason, before=before, budget=objection.budget, of=objection.kind
        )
        self.append(said, "system", *causes)
