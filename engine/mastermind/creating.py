"""Bringing agents to be and taking them away, by the commands that any operator has (mindX spec §5.3).

`specify` (in `specifying`) reads what was typed, `complete` may have a model fill in what a sentence leaves
open, `create` makes the agent; `removal` and `remove` take one away. Nothing here is done to an engine but by
`Engine.submit`, so that gate, ledger and journal hold as for everybody.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from engine.domain import commands as cmd
from engine.domain.state import CORE_STAYS, AgentState
from engine.domain.text import clean_line
from engine.journal.event import of_agent
from engine.journal.store import JournalStore
from engine.library import PlanLibrary
from engine.mastermind.addresses import IdentityError
from engine.mastermind.agent_types import Allowed, CreationError
from engine.mastermind.identities import Identities
from engine.mastermind.reading import Part
from engine.mastermind.specifying import Specification, checked, of_understood, specify
from engine.mastermind.understanding import with_parts
from engine.models.port import ModelClient, Recorder, unrecorded
from engine.sandbox.report import SandboxReport
from engine.tools.registry import ToolRegistry


class Helm(Protocol):
    """What is needed of the engine; `engine.engine.Engine` is one."""

    workspace: Path
    root: Path
    """Where agents work: the sandbox."""
    library: PlanLibrary
    registry: ToolRegistry
    store: JournalStore

    @property
    def agents(self) -> tuple[str, ...]:
        """Ids of the agents that exist."""

    @property
    def model(self) -> ModelClient | None:
        """Who asks the model; None where there is none."""

    @property
    def model_name(self) -> str:
        """The model's name; empty where there is none."""

    async def submit(self, command: cmd.Command, *, operator: str = "operator") -> cmd.Receipt:
        """Carry out a command."""

    async def view(self, agent_id: str, at: int | None = None) -> AgentState:
        """An agent's state, deleted or not.

        Raises:
            KeyError: there never was such an agent.
        """

    async def stopped(self) -> None:
        """Return when all that was to be stopped is, or is said not to be."""

    def sandbox(self, agent: str = "") -> SandboxReport:
        """How an agent's programs are held."""

    def family(self, agent: str) -> tuple[str, ...]:
        """An agent and those that work for it."""

    def fault(self, agent: str) -> str:
        """Why an agent does nothing; empty when it is well."""


class RemovalError(ValueError):
    """The agent was not deleted; the message says why and what to do, in one line."""


@dataclass(frozen=True, slots=True)
class Created:
    """An agent that was created; it is paused."""

    agent: str
    agent_type: str
    goals: tuple[str, ...]
    """Ids of its goals."""
    address: str
    """By which it signs; empty where it has no identity."""
    message: str
    event: str
    """The event that brought it to be."""


@dataclass(frozen=True, slots=True)
class Removed:
    """An agent that was deleted."""

    agent: str
    ended: int
    """Processes that were ended with it."""
    alive: int
    """Processes that could not be ended, and are told."""
    message: str
    event: str


def ever(helm: Helm) -> tuple[str, ...]:
    """Ids of all agents that are or were."""
    return tuple(name for name in helm.store.names if of_agent(name))


def allowed(helm: Helm) -> Allowed:
    """What configurations are checked against in a workspace."""
    thinkers = ("procedural", "claude") if helm.model is not None else ("procedural",)
    return Allowed(helm.sandbox().policy, helm.agents, thinkers)


def preview(
    helm: Helm, argument: str, *, prepare: Callable[[dict[str, Any]], dict[str, Any]] = lambda config: config
) -> Specification:
    """What `agent_create ARGUMENT` would make; nothing is created and no model is asked.

    Raises:
        CreationError: it would be refused; the message is one line.
    """
    return specify(argument, allowed(helm), helm.library, taken=ever(helm), prepare=prepare)


async def create(
    helm: Helm, said: Specification, *, operator: str = "operator", identities: Identities | None = None
) -> Created:
    """Make an agent: created, its budget set aside, its goals adopted, with an identity, and paused.

    Args:
        helm: the engine.
        said: what it is to be.
        operator: who asks.
        identities: where it gets its identity; None gives it none.

    Raises:
        CreationError: there is none; the message says why.
    """
    if said.understood is not None and said.understood.questions:
        raise CreationError(said.understood.questions[0].line)
    commands = _commands(checked(said, allowed(helm)))
    receipt = await helm.submit(commands[0], operator=operator)
    if not receipt.ok:
        raise CreationError(clean_line(receipt.message, limit=1_000))
    for command in commands[1:]:
        adopted = await helm.submit(command, operator=operator)
        if not adopted.ok:
            await helm.submit(cmd.DeleteAgent(agent=said.id), operator=operator)
            why = clean_line(adopted.message, limit=1_000)
            raise CreationError(f"{why}; {said.id} was deleted again, its history has the name")
    goals = tuple((await helm.view(said.id)).goals)
    address, note = await _identity(identities, said.id, operator)
    what = (
        f"{len(goals)} goal{'s' if len(goals) != 1 else ''}"
        if goals
        else "no goal yet: goal TEXT gives it one"
    )
    message = f"agent {said.id} created, a {said.kind.name}, with {what}; it is paused{note}"
    return Created(said.id, said.kind.name, goals, address, message, receipt.event)


def _commands(said: Specification) -> Sequence[cmd.Command]:
    try:
        return said.kind.construct(said)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        why = f"{where}: {first['msg'].removeprefix('Value error, ')}"
        raise CreationError(clean_line(why, limit=500)) from None


async def _identity(identities: Identities | None, agent: str, operator: str) -> tuple[str, str]:
    if identities is None:
        return "", ""
    try:
        made = await identities.create(agent, actor=f"operator:{operator}")
    except IdentityError as error:
        return "", f"; it has no identity: {error}"
    return made.identity.address, f"; it signs as {made.identity.address}"


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


async def complete(
    said: Specification, helm: Helm, *, record: Recorder = unrecorded
) -> tuple[Specification, str]:
    """A specification whose goal a model fills in, where a sentence names none.

    It can add goals and a style and nothing else: budgets, policy, tools, parent and approvals stay as the
    operator's words have them.

    Args:
        said: what was read.
        helm: the engine, with its model.
        record: told of every call.

    Returns:
        The specification, and a line on what the model did, empty where it was not asked.

    Raises:
        ModelError: the model could not be asked, or gave nothing that can be used.
    """
    understood = said.understood
    if helm.model is None or understood is None or understood.questions or said.goals or not understood.text:
        return said, ""
    from engine.domain.fence import RULE
    from engine.models import ModelRequest, Text, fence
    from engine.models import said as told
    from engine.models.structured import ask_for

    def wrong(sketch: AgentSketch) -> list[str]:
        return [why for text in sketch.goals if (why := said.kind.check_goal(text))]

    about = f"The agent is a {said.kind.name}: {said.kind.about}."
    question = told(f"{about}\n{fence('the sentence', understood.text)}")
    system = (Text(f"{_SYSTEM}\n\n{RULE}", "role"),)
    request = ModelRequest(helm.model_name, (question,), system, max_tokens=2_000)
    found = await ask_for(helm.model, request, AgentSketch, name="agent", check=wrong, record=record)
    rule = f"proposed by {helm.model_name}"
    parts = [Part("goal", " ".join(text.split()), "", rule) for text in found.value.goals]
    if "style" in said.kind.settings and said.config.get("thinker", "claude") == "claude":
        parts.append(Part("style", found.value.style, "", rule))
    filled = of_understood(said.kind, said.id, with_parts(understood, parts))
    line = f"{helm.model_name} filled in {len(found.value.goals)} goal(s); look at them before you create it"
    return checked(filled, allowed(helm)), line


# ------------------------------------------------------------------ taking away


async def removal(helm: Helm, ident: str) -> tuple[str, ...]:
    """What deleting an agent would do, line by line; nothing is changed.

    Raises:
        RemovalError: it would be refused.
    """
    state = await _removable(helm, ident)
    running = [job.command for job in state.running_jobs]
    lines = [f"{ident} is stopped and deleted; its {state.version} events and its files stay"]
    if state.acting and state.action is not None:
        lines.append(f"its action is cut off: {state.action.tool} {state.action.command}")
    lines += [f"its background job is ended: {clean_line(command, limit=120)}" for command in running]
    if helpers := helm.family(ident)[1:]:
        lines.append(f"{', '.join(helpers)} worked for it and stay")
    return tuple(lines)


async def remove(helm: Helm, ident: str, *, operator: str = "operator") -> Removed:
    """Delete an agent: all that it started is ended first, its locks are given up, its history stays.

    Raises:
        RemovalError: there is none, the workspace needs it, or it could not be stopped.
    """
    before = await _removable(helm, ident)
    stop = cmd.Stop(agent=ident, reason="it is being deleted")
    halted = await helm.submit(stop, operator=operator)
    if not halted.ok:
        raise RemovalError(f"{ident} was not deleted: {clean_line(halted.message)}")
    await helm.stopped()
    receipt = await helm.submit(cmd.DeleteAgent(agent=ident), operator=operator)
    if not receipt.ok:
        raise RemovalError(f"{ident} is stopped and was not deleted: {clean_line(receipt.message)}")
    state = await helm.view(ident)
    seen = state.stop_receipt
    fresh = seen is not None and seen != before.stop_receipt
    ended = sum(item.processes for item in seen.stopped) if fresh and seen is not None else 0
    alive = seen.alive if fresh and seen is not None else 0
    history = f"its history of {state.version} events stays"
    told = f"agent {ident} deleted; {ended} of its processes were ended; {history}"
    if alive:
        told += f"; {alive} processes could not be ended"
    return Removed(ident, ended, alive, told, receipt.event)


async def _removable(helm: Helm, ident: str) -> AgentState:
    shown = clean_line(ident, limit=40)
    try:
        state = await helm.view(ident)
    except KeyError:
        known = ", ".join(helm.agents) or "none yet"
        raise RemovalError(f"there is no agent '{shown}'; agents: {known}") from None
    if state.deleted:
        raise RemovalError(f"{shown} was deleted before; its history stays")
    if ident not in helm.agents or not of_agent(ident):
        raise RemovalError(f"there is no agent '{shown}'; agents: {', '.join(helm.agents) or 'none yet'}")
    if state.core:
        raise RemovalError(f"{shown} {CORE_STAYS}")
    if why := helm.fault(ident):
        raise RemovalError(
            f"{shown} cannot be taken up, so it cannot be deleted here: {clean_line(why, limit=300)}"
        )
    return state
