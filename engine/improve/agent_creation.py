"""Creates, removes and lists agents by the commands that any operator has, so that gate and journal hold.

`preview` reads what was typed, `complete_specification` may have a model fill in what a sentence leaves open,
`create` makes the agent; `describe_removal` and `remove` take one away; the registries list what there is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from engine.core import commands as cmd
from engine.core.actions import Reversibility
from engine.core.agents import CORE_STAYS
from engine.core.budgets import BudgetKind, Spent, amount_text
from engine.core.journal import of_agent
from engine.core.state import AgentState
from engine.core.text import RULE, clean_line, fence
from engine.improve.agent_specification import (
    Specification,
    check_specification,
    specification_of,
    specify,
    with_parts,
)
from engine.improve.agent_types import CheckContext, CreationError
from engine.improve.ports import JobRefused, MastermindHost
from engine.improve.sentence_rules import SentencePart
from engine.models.messages import Text, user_message
from engine.models.request import ModelRequest
from engine.models.structured import ask_for
from engine.tools.registry import ToolRegistry
from engine.value import asdict, dataclass


class RemovalError(JobRefused):
    """The agent was not deleted; the message says why and what to do, in one line."""


@dataclass(frozen=True, slots=True)
class CreatedAgent:
    """An agent that was created; it is paused."""

    agent: str
    agent_type: str
    goals: tuple[str, ...]
    """Ids of its goals."""
    message: str
    event: str
    """The event that brought it to be."""


@dataclass(frozen=True, slots=True)
class RemovedAgent:
    """An agent that was deleted."""

    agent: str
    ended: int
    """Processes that were ended with it."""
    alive: int
    """Processes that could not be ended."""
    message: str
    event: str


def all_agent_ids(host: MastermindHost) -> tuple[str, ...]:
    """Ids of all agents that are or were."""
    return tuple(name for name in host.store.names if of_agent(name))


def check_context(host: MastermindHost) -> CheckContext:
    """What configurations are checked against in a workspace."""
    thinkers = ("procedural", "claude") if host.model is not None else ("procedural",)
    return CheckContext(host.sandbox().policy, host.agents, thinkers)


def preview(
    host: MastermindHost,
    argument: str,
    *,
    prepare: Callable[[dict[str, Any]], dict[str, Any]] = lambda config: config,
) -> Specification:
    """What `agent_create ARGUMENT` would make; nothing is created and no model is asked.

    Raises:
        CreationError: it would be refused; the message is one line.
    """
    return specify(argument, check_context(host), host.library, taken=all_agent_ids(host), prepare=prepare)


async def create(
    host: MastermindHost, specification: Specification, *, operator: str = "operator"
) -> CreatedAgent:
    """Make an agent: created, its budget set aside, its goals adopted, and paused.

    Args:
        host: the engine.
        specification: what it is to be.
        operator: who asks.

    Raises:
        CreationError: there is none; the message says why.
    """
    if specification.understood is not None and specification.understood.questions:
        raise CreationError(specification.understood.questions[0].line)
    commands = _commands(check_specification(specification, check_context(host)))
    receipt = await host.submit(commands[0], operator=operator)
    if not receipt.ok:
        raise CreationError(clean_line(receipt.message, limit=1_000))
    for command in commands[1:]:
        adopted = await host.submit(command, operator=operator)
        if not adopted.ok:
            await host.submit(cmd.DeleteAgent(agent=specification.id), operator=operator)
            why = clean_line(adopted.message, limit=1_000)
            raise CreationError(f"{why}; {specification.id} was deleted again, its history has the name")
    goals = tuple((await host.view(specification.id)).goals)
    what = (
        f"{len(goals)} goal{'s' if len(goals) != 1 else ''}"
        if goals
        else "no goal yet: goal TEXT gives it one"
    )
    message = f"agent {specification.id} created, a {specification.kind.name}, with {what}; it is paused"
    return CreatedAgent(specification.id, specification.kind.name, goals, message, receipt.event)


def _commands(specification: Specification) -> Sequence[cmd.Command]:
    """The commands that make an agent, the one that creates it first."""
    ident = specification.id
    try:
        created = cmd.CreateAgent(
            agent=ident,
            agent_type=specification.kind.name,
            description=specification.description,
            config=dict(specification.config),
        )
        return (created, *(cmd.AdoptGoal(agent=ident, text=text) for text in specification.goals))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        why = f"{where}: {first['msg'].removeprefix('Value error, ')}"
        raise CreationError(clean_line(why, limit=500)) from None


# ------------------------------------------------------------------ what a sentence leaves open


class AgentSketch(BaseModel):
    """What the agent is to do, where the operator's sentence does not say it."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    goals: tuple[str, ...] = Field(min_length=1, max_length=5)
    """Each something to be done, as an order to the agent."""
    style: str = Field(default="plan", pattern="^(plan|decide)$")
    """`decide` where each action depends on what the one before found, else `plan`."""


_SYSTEM = """You turn an operator's sentence about a new agent into what the agent is to do. It works in a
sandboxed directory. Say what the sentence means and nothing that it does not; ask for no other rights, money,
network or programs: these are the operator's, and nothing that you say changes them."""


async def complete_specification(
    specification: Specification, host: MastermindHost
) -> tuple[Specification, str]:
    """A specification whose goal a model fills in, where a sentence names none.

    It can add goals and a style and nothing else: budgets, policy, tools, parent and approvals stay as the
    operator's words have them.

    Args:
        specification: what was read.
        host: the engine, with its model.

    Returns:
        The specification, and a line on what the model did, empty where it was not asked.

    Raises:
        ModelError: the model could not be asked, or gave nothing that can be used.
    """
    understood = specification.understood
    if (
        host.model is None
        or understood is None
        or understood.questions
        or specification.goals
        or not understood.text
    ):
        return specification, ""

    def wrong(sketch: AgentSketch) -> list[str]:
        return [why for text in sketch.goals if (why := specification.kind.check_goal(text))]

    about = f"The agent is a {specification.kind.name}: {specification.kind.about}."
    question = user_message(f"{about}\n{fence('the sentence', understood.text)}")
    system = (Text(f"{_SYSTEM}\n\n{RULE}", "role"),)
    request = ModelRequest(host.model_name, (question,), system, max_tokens=2_000)
    completion = await ask_for(host.model, request, AgentSketch, name="agent", check=wrong)
    rule = f"proposed by {host.model_name}"
    parts = [SentencePart("goal", " ".join(text.split()), "", rule) for text in completion.value.goals]
    if "style" in specification.kind.settings and specification.config.get("thinker", "claude") == "claude":
        parts.append(SentencePart("style", completion.value.style, "", rule))
    filled = specification_of(specification.kind, specification.id, with_parts(understood, parts))
    count = len(completion.value.goals)
    line = f"{host.model_name} filled in {count} goal(s); look at them before you create it"
    return check_specification(filled, check_context(host)), line


# ------------------------------------------------------------------ taking away


async def describe_removal(host: MastermindHost, ident: str) -> tuple[str, ...]:
    """What deleting an agent would do, line by line; nothing is changed.

    Raises:
        RemovalError: it would be refused.
    """
    state = await _removable(host, ident)
    running = [job.command for job in state.running_jobs]
    lines = [f"{ident} is stopped and deleted; its {state.version} events and its files stay"]
    if state.acting and state.action is not None:
        lines.append(f"its action is cut off: {state.action.tool} {state.action.command}")
    lines += [f"its background job is ended: {clean_line(command, limit=120)}" for command in running]
    if helpers := host.family(ident)[1:]:
        lines.append(f"{', '.join(helpers)} worked for it and stay")
    return tuple(lines)


async def remove(host: MastermindHost, ident: str, *, operator: str = "operator") -> RemovedAgent:
    """Delete an agent: all that it started is ended first, its locks are given up, its history stays.

    Raises:
        RemovalError: there is none, the workspace needs it, or it could not be stopped.
    """
    before = await _removable(host, ident)
    stop = cmd.Stop(agent=ident, reason="it is being deleted")
    halted = await host.submit(stop, operator=operator)
    if not halted.ok:
        raise RemovalError(f"{ident} was not deleted: {clean_line(halted.message)}")
    await host.stopped()
    receipt = await host.submit(cmd.DeleteAgent(agent=ident), operator=operator)
    if not receipt.ok:
        raise RemovalError(f"{ident} is stopped and was not deleted: {clean_line(receipt.message)}")
    state = await host.view(ident)
    seen = state.stop_receipt
    fresh = seen is not None and seen != before.stop_receipt
    ended = sum(item.processes for item in seen.stopped) if fresh and seen is not None else 0
    alive = seen.alive if fresh and seen is not None else 0
    history = f"its history of {state.version} events stays"
    message = f"agent {ident} deleted; {ended} of its processes were ended; {history}"
    if alive:
        message += f"; {alive} processes could not be ended"
    return RemovedAgent(ident, ended, alive, message, receipt.event)


async def _removable(host: MastermindHost, ident: str) -> AgentState:
    shown = clean_line(ident, limit=40)
    try:
        state = await host.view(ident)
    except KeyError:
        known = ", ".join(host.agents) or "none yet"
        raise RemovalError(f"there is no agent '{shown}'; agents: {known}") from None
    if state.deleted:
        raise RemovalError(f"{shown} was deleted before; its history stays")
    if ident not in host.agents or not of_agent(ident):
        raise RemovalError(f"there is no agent '{shown}'; agents: {', '.join(host.agents) or 'none yet'}")
    if state.core:
        raise RemovalError(f"{shown} {CORE_STAYS}")
    if why := host.fault(ident):
        raise RemovalError(
            f"{shown} cannot be taken up, so it cannot be deleted here: {clean_line(why, limit=300)}"
        )
    return state


# ------------------------------------------------------------------ what there is

DELETED = "DELETED"
FAULT = "FAULT"
_REVERSIBLE = {
    Reversibility.NONE.value: "changes nothing",
    Reversibility.WORKSPACE.value: "files can be brought back",
    Reversibility.IRREVERSIBLE.value: "cannot be undone",
}
_SHOWN_OF_PARAMETERS = ("name", "type", "required", "default", "description")
PARAMETER_SHOWN = 12
"""Parameters of a command that a line names."""


@dataclass(frozen=True, slots=True)
class AgentRow:
    """One agent that is or was."""

    id: str
    type: str
    status: str
    """Its mode, `DELETED`, or `FAULT` for one that cannot be resumed."""
    description: str
    parent: str
    """The agent that it works for; empty for none."""
    helpers: tuple[str, ...]
    """Agents that work for it, or did."""
    fork_of: str
    """The event after which it begins as a fork, such as `pilot-1:31`; empty for none."""
    forks: tuple[str, ...]
    core: bool
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
            str(parameter["name"]) if parameter["required"] else f"[{parameter['name']}]"
            for parameter in self.parameters[:PARAMETER_SHOWN]
        ]
        who = "operator only" if len(self.callers) == 1 else "agents"
        call = clean_line(f"{self.tool} {self.command} {' '.join(names)}")
        return f"{call:<52} {who:<13} {self.reversible:<26} {clean_line(self.description, limit=120)}"


async def agent_registry(host: MastermindHost) -> tuple[AgentRow, ...]:
    """All agents that are or were, in the order in which they came to be."""
    states = [await host.view(name) for name in all_agent_ids(host)]
    return tuple(_agent_row(state, states, host) for state in states)


def _agent_row(state: AgentState, states: Sequence[AgentState], host: MastermindHost) -> AgentRow:
    name = state.agent_id
    fault = "" if state.deleted else host.fault(name)
    limits = state.budget if state.budget is not None else state.config.set_aside
    spent = sum(state.spent.values(), Spent())
    return AgentRow(
        id=name,
        type=state.agent_type,
        status=DELETED if state.deleted else FAULT if fault else state.mode.value,
        description=clean_line(state.description, limit=500),
        parent=clean_line(state.config.parent, limit=40),
        helpers=tuple(state.agent_id for state in states if state.config.parent == name),
        fork_of=state.forked.parent if state.forked is not None else "",
        forks=tuple(
            state.agent_id for state in states if state.forked is not None and state.forked.agent == name
        ),
        core=state.core,
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
                {name: getattr(parameter, name) for name in _SHOWN_OF_PARAMETERS}
                for parameter in spec.parameters
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
