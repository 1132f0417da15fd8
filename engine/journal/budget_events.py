"""The kinds of events by which budgets are set, hold agents, and let them go on."""

from __future__ import annotations

from typing import ClassVar

from engine.domain.budgets import SpendingLimits
from engine.journal.payload import Payload


class BudgetSet(Payload):
    """The operator said what an agent may take, or a goal of it."""

    kind: ClassVar[str] = "model.budget_set"
    limits: SpendingLimits | None
    """None where the workspace's settings hold again; of a goal where it has none of its own any more."""
    goal: str = ""
    """The goal; empty for the whole agent."""


class WorkspaceBudgetSet(Payload):
    """The operator said what all agents together may take; an event of the workspace's stream."""

    kind: ClassVar[str] = "workspace.budget_set"
    limits: SpendingLimits | None
    """None where the settings hold again."""


class BudgetReached(Payload):
    """What comes next could break a budget, so the agent is held before it."""

    kind: ClassVar[str] = "model.budget_reached"
    external: ClassVar[bool] = True
    reason: str
    before: str = "call"
    """What is not begun: a `call` of a model, an `action`; `time` where what runs ends and nothing begins."""
    budget: str = ""
    """Whose budget: `goal g1`, `agent pilot-1`, `workspace`; older journals do not say it."""
    of: str = ""
    """The kind of budget."""


class BudgetEased(Payload):
    """The budget that held the agent was raised, or others left more of it."""

    kind: ClassVar[str] = "budget.eased"
    external: ClassVar[bool] = True
    budget: str
