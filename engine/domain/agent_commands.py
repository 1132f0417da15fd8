"""Commands on an agent as a whole: that it is there, that it runs, and what it may take."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from engine.domain.budgets import BudgetKind, SpendingLimits
from engine.domain.command import AgentId, Command


class CreateAgent(Command):
    """Bring an agent to be."""

    do: Literal["create_agent"] = "create_agent"
    agent: AgentId
    agent_type: str = "bdi_agent"
    description: str = Field(default="", max_length=4_000)
    config: dict[str, Any] = Field(default_factory=dict)


class DeleteAgent(Command):
    """Remove an agent; its history stays."""

    do: Literal["delete_agent"] = "delete_agent"


class Run(Command):
    """Let the agent run."""

    do: Literal["run"] = "run"
    max_loops: int | None = Field(default=None, ge=1)
    until: str | None = None
    """Pause when this goal has ended."""
    ask: bool = True
    """False when nobody will answer the agent's questions."""


class Pause(Command):
    """Start no new action."""

    do: Literal["pause"] = "pause"


class Step(Command):
    """Allow exactly one action or body step, or the whole of a goal."""

    do: Literal["step"] = "step"
    scope: Literal["step", "over", "out"] = "step"
    """`over`: until the pending step is through, with the goals below it. `out`: until its plan is."""
    strides: bool = True
    """False as it was recorded before agents with plans could step into, over and out of goals."""


class BudgetAmounts(Command):
    """What a budget is to be."""

    usd: float | None = Field(default=None, ge=0, le=1_000_000, allow_inf_nan=False)
    tokens: int | None = Field(default=None, ge=0, le=10**15)
    calls: int | None = Field(default=None, ge=0, le=10**9)
    actions: int | None = Field(default=None, ge=0, le=10**9)
    seconds: float | None = Field(default=None, ge=0, le=10**9, allow_inf_nan=False)
    keep: bool = False
    """Whether limits that are not named stay; else only the named ones hold."""
    more: tuple[BudgetKind, ...] = ()
    """Kinds of which the amount comes on top of the limit; of what was spent where there is none."""
    lifted: tuple[BudgetKind, ...] = ()
    """Kinds that are to have no limit, whatever the settings say."""

    @property
    def limits(self) -> SpendingLimits:
        """The limits that are named."""
        return SpendingLimits(
            self.usd, self.tokens, self.calls, self.actions, self.seconds, tuple(map(str, self.lifted))
        )


class SetBudget(BudgetAmounts):
    """Say what an agent or a goal may take over all sessions; nothing given is the settings' budget."""

    do: Literal["set_budget"] = "set_budget"
    goal: str = ""
    """The goal, with those below it; empty for the agent, with those that work for it."""


class SetWorkspaceBudget(BudgetAmounts):
    """Say what all agents together may take over all sessions; nothing given is the settings' budget."""

    do: Literal["set_workspace_budget"] = "set_workspace_budget"


class Stop(Command):
    """Stop in a grade: from holding the agent after its step to ending all that runs (the usual)."""

    do: Literal["stop"] = "stop"
    reason: str = "stopped by the operator"
    grade: Literal["after", "hold", "cut", "cancel", "freeze", "kill"] = "kill"
    """See `engine.domain.stopping.StopGrade`."""
    scope: Literal["agent", "children", "all"] = "agent"
    """This agent, with those that work for it too, or every agent of the workspace."""


class Thaw(Command):
    """Let frozen processes go on; the agent stays held."""

    do: Literal["thaw"] = "thaw"
    scope: Literal["agent", "children", "all"] = "agent"


class Intervene(Command):
    """Take the agent's turn: it waits for the operator's decision."""

    do: Literal["intervene"] = "intervene"


class HandBack(Command):
    """End the intervention without changing anything; the agent looks at its workspace afresh."""

    do: Literal["hand_back"] = "hand_back"


AgentCommand = (
    CreateAgent
    | DeleteAgent
    | Run
    | Pause
    | Step
    | Stop
    | Thaw
    | Intervene
    | HandBack
    | SetBudget
    | SetWorkspaceBudget
)
