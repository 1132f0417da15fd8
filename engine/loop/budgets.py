"""The budgets of a workspace's live agents: what sets them, and what follows for those that they hold."""

from __future__ import annotations

import sys
from collections.abc import Mapping

from engine.domain import commands as cmd
from engine.domain.budgets import Objection, SpendingLimits, Spent
from engine.domain.state import AgentState
from engine.journal import events as ev
from engine.journal.event import MASTERMIND, WORKSPACE
from engine.journal.mastermind_events import ModelCharged
from engine.journal.store import JournalStore
from engine.loop.agent import Agent
from engine.loop.decide_budget import changed
from engine.steering import ledger
from engine.steering.standing import Standing, standings


class Budgets:
    """Sets budgets and lets agents go on that they no longer hold.

    Args:
        kept: the ledger that all agents ask.
    """

    def __init__(self, kept: ledger.Ledger) -> None:
        self.ledger = kept

    async def restore(self, store: JournalStore) -> None:
        """Find what the operator set for all together in an earlier session, and what Mastermind took."""
        for event in await store.last(1, WORKSPACE, kind=ev.WorkspaceBudgetSet.kind):
            said = ev.payload_of(event)
            if isinstance(said, ev.WorkspaceBudgetSet):
                self.ledger.workspace = said.limits
        for event in await store.last(sys.maxsize, MASTERMIND, kind=ModelCharged.kind):
            said = ev.payload_of(event)
            if isinstance(said, ModelCharged):
                self.ledger.beside += charged(said)

    def resolved(self, command: cmd.Command, state: AgentState | None) -> cmd.Command:
        """A command whose amounts are to come on top of what holds, with the amounts that come of it."""
        if not isinstance(command, cmd.BudgetAmounts) or not command.more:
            return command
        if isinstance(command, cmd.SetBudget) and command.goal:
            budget = f"goal {command.goal}"
        else:
            budget = ledger.WORKSPACE if isinstance(command, cmd.SetWorkspaceBudget) else "agent"
        account = self.ledger.account(budget, state)
        found = self.ledger.on_top(command.limits, account, command.more)
        amounts = {kind.value: found.of(kind) for kind in command.more}
        return cmd.parse_command({**command.model_dump(), **amounts, "more": ()})

    def of_all(self, command: cmd.SetWorkspaceBudget) -> tuple[ev.WorkspaceBudgetSet, str]:
        """The event that sets the workspace's budget, and what is said of it; `now_holds` follows it."""
        limits = changed(self.ledger.workspace, command)
        told = f"budget of the workspace: {limits}" if limits else "the settings' budget holds again"
        return ev.WorkspaceBudgetSet(limits=limits), told

    def now_holds(self, limits: SpendingLimits | None) -> None:
        """Take what was set for all agents together."""
        self.ledger.workspace = limits

    def ease(self, agents: Mapping[str, Agent], actor: str) -> list[str]:
        """Let agents go on that no budget holds any more; their ids."""
        found = [name for name in self.ledger.eased() if name in agents]
        for name in found:
            agents[name].ease(actor)
            agents[name].commit_soon()
        return found

    def keep_time(self, agents: Mapping[str, Agent]) -> None:
        """Hold the agents whose time is up."""
        over: list[tuple[str, Objection]] = list(self.ledger.overtime())
        for name, objection in over:
            if name in agents:
                agents[name].time_is_up(objection)

    def standings(self, state: AgentState, goal: str = "") -> tuple[Standing, ...]:
        """The budgets that an agent draws on, the nearest first."""
        return standings(self.ledger, state, goal)


def charged(said: ModelCharged) -> Spent:
    """What a call of Mastermind's counts for."""
    return Spent(1, said.tokens, said.usd, said.unpriced)
