"""Carrying out a deployment: agents are created, run and removed, each step shown and approved first.

Source: mindX spec §1.2, `deploy`. Agents of a deployment are agents like all others: what they do passes the
one gate, asks what policies say, and stands in the journal.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from pydantic import BaseModel, ConfigDict, Field

from engine.domain import commands as cmd
from engine.domain.state import AgentState, RunState
from engine.domain.text import clean_line
from engine.journal.event import Event
from engine.mastermind.agent_types import CreationError
from engine.mastermind.creating import Helm, RemovalError, allowed, create, ever, remove
from engine.mastermind.deployment import (
    AGENTS_LIMIT,
    Act,
    DeployError,
    Deployment,
    DeployStep,
    Group,
    checked,
    parse_deployment,
)
from engine.mastermind.identities import Identities
from engine.mastermind.specifying import Specification, specify
from engine.models.port import Recorder, unrecorded

Approve = Callable[[DeployStep], Awaitable[bool]]
"""Asks the operator about a step right before it is done."""
Tell = Callable[[int, int, str], None]
"""Told how many steps are done, of how many, and what is done now."""


class DeployHelm(Helm, Protocol):
    """What is needed of the engine besides, to wait for agents; `engine.engine.Engine` is one."""

    def events(
        self, since: int = 0, *, stream: str | None = None, follow: bool = True
    ) -> AsyncIterator[Event]:
        """Durable events, then new ones as they come."""

    async def head(self) -> int:
        """The place of the newest durable event."""

    async def faulted(self, agent: str) -> str:
        """Wait until an agent's cycle has ended."""


@dataclass(frozen=True, slots=True)
class AgentOutcome:
    """What became of one agent of a deployment."""

    agent: str
    status: str
    """`done`, `failed`, `needs you` or `not run`."""
    goals: dict[str, str]
    """Goals by text, to where they stand."""
    deleted: bool = False


@dataclass(slots=True)
class Deployed:
    """What came of a deployment."""

    outcomes: dict[str, AgentOutcome] = field(default_factory=dict)
    declined: tuple[str, ...] = ()
    """Steps that the operator did not approve."""
    trouble: tuple[str, ...] = ()
    """Steps that could not be done, with why."""

    @property
    def ok(self) -> bool:
        """Whether every agent that was run reached its goals, and every step was done."""
        fine = all(one.status in ("done", "not run") for one in self.outcomes.values())
        return fine and not self.declined and not self.trouble and bool(self.outcomes)

    @property
    def needs_operator(self) -> bool:
        """Whether an agent waits for a decision."""
        return any(one.status == "needs you" for one in self.outcomes.values())

    @property
    def message(self) -> str:
        """What came of it, in a few lines."""
        lines = [
            f"{one.agent}: {one.status}{', deleted; its history stays' if one.deleted else ''}"
            for one in self.outcomes.values()
        ]
        lines += [f"not approved: {step}" for step in self.declined]
        lines += [f"could not be done: {why}" for why in self.trouble]
        return "\n".join(lines) or "nothing was done"

    def as_json(self) -> dict[str, Any]:
        """The outcome as plain values."""
        agents = [
            {"agent": one.agent, "status": one.status, "goals": one.goals, "deleted": one.deleted}
            for one in self.outcomes.values()
        ]
        return {"agents": agents, "declined": list(self.declined), "trouble": list(self.trouble)}


@dataclass(frozen=True, slots=True)
class Prepared:
    """A deployment that is ready to be shown: its steps, and what each agent will be."""

    said: Deployment
    steps: tuple[DeployStep, ...]
    agents: tuple[Specification, ...]


def prepare(helm: Helm, said: Deployment) -> Prepared:
    """The steps of a deployment as they are to be shown; nothing is done.

    Raises:
        DeployError: one of its agents cannot be created, or a sentence has two readings.
    """
    taken = ever(helm)
    agents: list[Specification] = []
    for ident, group in said.ids(taken):
        try:
            one = specify(f"{group.kind} {ident} {group.sentence}", allowed(helm), helm.library, taken=taken)
        except CreationError as error:
            raise DeployError(f"{ident}: {error}") from None
        if one.understood is not None and one.understood.questions:
            raise DeployError(f"{ident}: {one.understood.questions[0].line}")
        if said.run and not one.goals and not one.config.get("program"):
            raise DeployError(
                f"{ident} would have nothing to do: write agents that …, followed by what they do"
            )
        agents.append(one)
    acts: list[tuple[Act, str, tuple[str, ...]]] = [(Act.CREATE, one.id, one.lines) for one in agents]
    if said.run:
        told = ("it runs until its goals have ended, or it needs you",)
        acts += [(Act.RUN, one.id, told) for one in agents]
    if said.delete:
        told = ("it is stopped and deleted; its history and its files stay",)
        acts += [(Act.DELETE, one.id, told) for one in agents]
    steps = tuple(DeployStep(number, *act) for number, act in enumerate(acts, 1))
    return Prepared(said, steps, tuple(agents))


class _GroupSketch(BaseModel):
    """Agents that are alike."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    count: int = Field(ge=1, le=AGENTS_LIMIT)
    goal: str = Field(min_length=1, max_length=2_000)
    """What each of them is to do, as an order."""


class DeploymentSketch(BaseModel):
    """Agents to create for a directive, and whether they are run and deleted afterwards."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    groups: tuple[_GroupSketch, ...] = Field(min_length=1, max_length=AGENTS_LIMIT)
    run: bool = True
    delete: bool = False


_SYSTEM = """You turn an operator's directive into agents that are created, run and perhaps deleted. Each
works in the same sandboxed directory and gets one goal. Use the fewest agents that do what is asked. Money,
rights, network and programs are the operator's: you cannot give any."""


async def read_deployment(helm: Helm, directive: str, *, record: Recorder = unrecorded) -> Deployment:
    """What a directive asks for: by its words, and where they do not parse by a model, if there is one.

    Raises:
        DeployError: its words do not parse and there is no model; the message says which.
        ModelError: the model could not be asked, or gave nothing that can be used.
    """
    try:
        return parse_deployment(directive)
    except DeployError as error:
        if helm.model is None or not directive.strip():
            hint = "" if helm.model is not None else "; without a model only such clauses are understood"
            raise DeployError(f"{error}{hint}") from None
    from engine.domain.fence import RULE
    from engine.models import ModelRequest, Text, fence
    from engine.models import said as told
    from engine.models.structured import ask_for

    question = told(fence("the directive", clean_line(directive, limit=8_000)))
    system = (Text(f"{_SYSTEM}\n\n{RULE}", "role"),)
    request = ModelRequest(helm.model_name, (question,), system, max_tokens=2_000)
    found = (await ask_for(helm.model, request, DeploymentSketch, name="deployment", record=record)).value
    # A goal of a model's is a goal and nothing else: no words of it become a budget, a parent or a network.
    groups = tuple(Group(one.count, _quoted_goal(one.goal)) for one in found.groups)
    return checked(Deployment(directive, groups, found.run, found.delete, helm.model_name))


def _quoted_goal(text: str) -> str:
    """A goal as settings, so that no word of it is read as anything else."""
    from engine.journal.event import canonical

    return canonical({"goal": " ".join(text.split())})


async def deploy(
    helm: DeployHelm,
    prepared: Prepared,
    approve: Approve,
    *,
    tell: Tell = lambda _done, _of, _text: None,
    operator: str = "operator",
    identities: Identities | None = None,
) -> Deployed:
    """Do the steps of a deployment in order; agents that are run, run side by side.

    Cancelled, it stops the agents that it set running with all their programs; they stay, with what they did.

    Args:
        helm: the engine.
        prepared: what was shown.
        approve: asked about each step; one that is declined is left out, with what follows from it.
        tell: told how far it is.
        operator: who asks.
        identities: where the agents get theirs; None gives them none.
    """
    work = _Work(helm, prepared, approve, tell, operator, identities)
    try:
        for one in prepared.agents:
            await work.create(one)
        await work.run()
        for step in work.of(Act.DELETE):
            await work.delete(step)
    except asyncio.CancelledError:
        await work.stop()
        raise
    return work.came


@dataclass(slots=True)
class _Work:
    """One deployment under way."""

    helm: DeployHelm
    prepared: Prepared
    approve: Approve
    tell: Tell
    operator: str
    identities: Identities | None
    came: Deployed = field(default_factory=Deployed)
    running: set[str] = field(default_factory=set)
    done: int = 0

    def of(self, act: Act) -> Sequence[DeployStep]:
        return [step for step in self.prepared.steps if step.act is act]

    async def _approved(self, step: DeployStep) -> bool:
        self.tell(self.done, len(self.prepared.steps), f"{step.act} {step.agent}")
        self.done += 1
        if await self.approve(step):
            return True
        self.came.declined += (f"{step.act} {step.agent}",)
        return False

    def _failed(self, step: DeployStep, why: str) -> None:
        self.came.trouble += (f"{step.act} {step.agent}: {clean_line(why, limit=500)}",)

    async def create(self, one: Specification) -> None:
        step = next(step for step in self.of(Act.CREATE) if step.agent == one.id)
        if not await self._approved(step):
            return
        try:
            await create(self.helm, one, operator=self.operator, identities=self.identities)
        except CreationError as error:
            self._failed(step, str(error))
        else:
            self.came.outcomes[one.id] = AgentOutcome(one.id, "not run", dict.fromkeys(one.goals, "pending"))

    async def run(self) -> None:
        for step in self.of(Act.RUN):
            if step.agent not in self.came.outcomes or not await self._approved(step):
                continue
            receipt = await self.helm.submit(cmd.Run(agent=step.agent), operator=self.operator)
            if receipt.ok:
                self.running.add(step.agent)
            else:
                self._failed(step, receipt.message)
        watches = [asyncio.create_task(self._watch(agent)) for agent in sorted(self.running)]
        try:
            await asyncio.gather(*watches)
        finally:
            for watch in watches:
                watch.cancel()
            await asyncio.gather(*watches, return_exceptions=True)

    async def _watch(self, agent: str) -> None:
        state = await _at_rest(self.helm, agent)
        goals = {clean_line(goal.text, limit=300): goal.status.value for goal in state.root_goals()}
        ended = all(goal.status.terminal for goal in state.root_goals())
        status = "needs you" if not ended else "done" if _reached(state) else "failed"
        if fault := self.helm.fault(agent):
            status = "failed"
            self.came.trouble += (f"run {agent}: {clean_line(fault, limit=300)}",)
        self.came.outcomes[agent] = replace(self.came.outcomes[agent], status=status, goals=goals)
        self.running.discard(agent)
        self.tell(self.done, len(self.prepared.steps), f"{agent} {status}")

    async def delete(self, step: DeployStep) -> None:
        there = self.came.outcomes.get(step.agent)
        if there is None:
            return
        if there.status == "needs you":
            self._failed(step, "it waits for you; settle that, then agent_delete it")
            return
        if not await self._approved(step):
            return
        try:
            await remove(self.helm, step.agent, operator=self.operator)
        except RemovalError as error:
            self._failed(step, str(error))
        else:
            self.came.outcomes[step.agent] = replace(there, deleted=True)

    async def stop(self) -> None:
        """End what the agents that were set running do; they stay, and can be run again."""
        stops = [
            cmd.Stop(agent=agent, reason="the deployment was cancelled") for agent in sorted(self.running)
        ]
        await asyncio.gather(*(self.helm.submit(stop, operator=self.operator) for stop in stops))
        await self.helm.stopped()


def _reached(state: AgentState) -> bool:
    return all(goal.status.value == "achieved" for goal in state.root_goals())


def _rests(state: AgentState) -> bool:
    """Whether an agent can go no further by itself, or is done."""
    if state.busy or state.requests:
        return False
    if state.approvals.question is not None or state.approvals.held or state.intervention is not None:
        return True
    return state.run is not RunState.RUNNING or not state.has_work


async def _at_rest(helm: DeployHelm, agent: str) -> AgentState:
    """The state of an agent once it rests, or its cycle has ended."""
    ended = asyncio.create_task(helm.faulted(agent))
    watch = asyncio.create_task(_followed(helm, agent))
    try:
        await asyncio.wait({ended, watch}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in (ended, watch):
            task.cancel()
        await asyncio.gather(ended, watch, return_exceptions=True)
    return await helm.view(agent)


async def _followed(helm: DeployHelm, agent: str) -> None:
    since = await helm.head()
    if _rests(await helm.view(agent)):
        return
    async for _event in helm.events(since, stream=agent):
        if _rests(await helm.view(agent)):
            return
