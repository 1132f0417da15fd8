"""Registries of agents and tools, as they are now: read from live state and the journal, never kept apart.

Source: mindX spec §1.2, `show_agent_registry` and `show_tool_registry`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from engine.domain.action import Undo
from engine.domain.budgets import BudgetKind, Spent, amount_text
from engine.domain.state import AgentState
from engine.domain.text import clean_line
from engine.mastermind.creating import Helm, ever
from engine.mastermind.identities import Identities
from engine.tools.registry import ToolRegistry

DELETED = "DELETED"
FAULT = "FAULT"
_REVERSIBLE = {
    Undo.NONE.value: "changes nothing",
    Undo.WORKSPACE.value: "files can be brought back",
    Undo.IRREVERSIBLE.value: "cannot be undone",
}
PARAMETER_SHOWN = 12
"""Parameters of a command that a line names."""


@dataclass(frozen=True, slots=True)
class AgentRow:
    """One agent that is or was."""

    id: str
    type: str
    status: str
    """Its mode, `DELETED`, or `FAULT` for one that cannot be taken up."""
    description: str
    parent: str
    """For whom it works; empty for nobody."""
    helpers: tuple[str, ...]
    """Agents that work for it, or did."""
    fork_of: str
    """The event after which it begins as a fork, such as `pilot-1:31`; empty for none."""
    forks: tuple[str, ...]
    core: bool
    identity: str
    """The address by which it signs; empty for none."""
    thinker: str
    goals_open: int
    goals: int
    budget: Mapping[str, float]
    """What it may take over all sessions, by kind; empty where only the settings' limits hold."""
    spent: Mapping[str, float]
    """What it took itself, by kind."""
    events: int
    fault: str = ""

    def as_json(self) -> dict[str, Any]:
        """The row as plain values."""
        return asdict(self)

    @property
    def line(self) -> str:
        """The row on one line."""
        has = [f"{self.goals_open} of {self.goals} goals open"]
        has += [f"works for {self.parent}"] if self.parent else []
        has += [f"fork of {self.fork_of}"] if self.fork_of else []
        has += [f"forks: {', '.join(self.forks)}"] if self.forks else []
        has += ["core"] if self.core else []
        has += [f"budget {_amounts(self.budget)}"] if self.budget else []
        has += [f"took {_amounts(self.spent)}"] if any(self.spent.values()) else []
        has += [f"signs as {self.identity[:12]}…"] if self.identity else []
        has += [f"fault: {clean_line(self.fault, limit=200)}"] if self.fault else []
        return f"{self.id:<20} {self.type:<10} {self.status:<12} {' · '.join(has)}"


@dataclass(frozen=True, slots=True)
class ToolRow:
    """One command of one tool."""

    tool: str
    command: str
    description: str
    parameters: tuple[Mapping[str, Any], ...]
    """Each with name, type, required, default and description."""
    callers: tuple[str, ...]
    """Who may call it: `operator`, and `agents` unless it is the operator's alone."""
    changes: bool
    """Whether it may change something outside of the agent."""
    reversible: str
    """In words."""
    example: str

    def as_json(self) -> dict[str, Any]:
        """The row as plain values."""
        return asdict(self)

    @property
    def line(self) -> str:
        """The row on one line."""
        names = [
            str(one["name"]) if one["required"] else f"[{one['name']}]"
            for one in self.parameters[:PARAMETER_SHOWN]
        ]
        who = "operator only" if len(self.callers) == 1 else "agents"
        call = clean_line(f"{self.tool} {self.command} {' '.join(names)}")
        return f"{call:<52} {who:<13} {self.reversible:<26} {clean_line(self.description, limit=120)}"


async def agent_registry(helm: Helm, identities: Identities | None = None) -> tuple[AgentRow, ...]:
    """All agents that are or were, in the order in which they came to be."""
    states = [await helm.view(name) for name in ever(helm)]
    return tuple(_agent_row(state, states, helm, identities) for state in states)


def _agent_row(
    state: AgentState, states: Sequence[AgentState], helm: Helm, identities: Identities | None
) -> AgentRow:
    name = state.agent_id
    fault = "" if state.deleted else helm.fault(name)
    signs = identities.of(name) if identities is not None else None
    limits = state.budget if state.budget is not None else state.config.set_aside
    spent = sum(state.spent.values(), Spent())
    return AgentRow(
        id=name,
        type=state.agent_type,
        status=DELETED if state.deleted else FAULT if fault else state.mode.value,
        description=clean_line(state.description, limit=500),
        parent=clean_line(state.config.parent, limit=40),
        helpers=tuple(one.agent_id for one in states if one.config.parent == name),
        fork_of=state.forked.parent if state.forked is not None else "",
        forks=tuple(one.agent_id for one in states if one.forked is not None and one.forked.agent == name),
        core=state.core,
        identity=signs.address if signs is not None else "",
        thinker=state.config.thinker,
        goals_open=0 if state.deleted else len(state.open_goals),
        goals=len(state.goals),
        budget={kind.value: limit for kind in BudgetKind if (limit := limits.of(kind)) is not None},
        spent={kind.value: spent.of(kind) for kind in BudgetKind},
        events=state.version,
        fault=fault,
    )


def tool_registry(tools: ToolRegistry) -> tuple[ToolRow, ...]:
    """Every command of every tool that is registered."""
    return tuple(
        ToolRow(
            tool=tool.id,
            command=spec.name,
            description=spec.description,
            parameters=tuple(
                {
                    "name": one.name,
                    "type": one.type,
                    "required": one.required,
                    "default": one.default,
                    "description": one.description,
                }
                for one in spec.parameters
            ),
            callers=("operator",) if spec.operator_only else ("operator", "agents"),
            changes=spec.mutates or spec.writes,
            reversible="stays recorded" if spec.writes else _REVERSIBLE.get(spec.undo, spec.undo),
            example=spec.example,
        )
        for tool in tools
        for spec in tool.commands.values()
    )


def _amounts(amounts: Mapping[str, float]) -> str:
    return ", ".join(amount_text(BudgetKind(kind), amount) for kind, amount in amounts.items() if amount)
