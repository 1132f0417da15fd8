"""Deployments: directives such as `create 2 agents that run the tests, run them, delete them`, done in steps.

Reading a directive is pure: what does not parse is named, never guessed at. The steps are shown and approved
as a whole before they are done. Agents of a deployment are agents like all others: their actions pass the
gate, ask what policies say, and are in the journal.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from enum import StrEnum
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from engine.core import commands as cmd
from engine.core.agents import RunState
from engine.core.command import check_agent_id
from engine.core.goals import GoalStatus
from engine.core.journal import canonical
from engine.core.state import AgentState
from engine.core.text import RULE, clean_line, fence
from engine.improve.agent_creation import RemovalError, all_agent_ids, check_context, create, remove
from engine.improve.agent_specification import Specification, specify
from engine.improve.agent_types import CreationError
from engine.improve.ports import JobRefused, MastermindHost
from engine.models.messages import Text, user_message
from engine.models.request import ModelRequest
from engine.models.structured import ask_for
from engine.planning.library.words import words_of
from engine.value import asdict, dataclass, field, replace

AGENTS_LIMIT = 16
"""Agents of one deployment."""
DIRECTIVE_LIMIT = 8_000
"""Characters of a directive."""
USAGE = "deploy create N agents that …, run them, delete them"
Tell = Callable[[int, int, str], None]
"""Takes how many steps are done, of how many, and what is done now."""


class DeployError(JobRefused):
    """The directive is not carried out; the message says what was not understood, in one line."""


class DeployAction(StrEnum):
    """What a step does."""

    CREATE = "create"
    RUN = "run"
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class AgentGroup:
    """Agents that are alike."""

    count: int
    sentence: str
    """What each is, as behind `agent_create TYPE ID`."""
    kind: str = "bdi_agent"
    stem: str = "worker"
    """Their ids are this and a number; just this where it is one agent that was named."""
    named: bool = False


@dataclass(frozen=True, slots=True)
class Deployment:
    """What a directive asks for."""

    directive: str
    groups: tuple[AgentGroup, ...]
    run: bool = False
    delete: bool = False
    origin: str = "as it was typed"
    """Who read it: as it was typed, or a model's name."""

    @property
    def count(self) -> int:
        """How many agents there will be."""
        return sum(group.count for group in self.groups)

    def as_json(self) -> dict[str, Any]:
        """The deployment as plain values, from which `from_json` makes it again."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Deployment:
        """The deployment of such values.

        Raises:
            DeployError: they are none.
        """
        try:
            groups = tuple(AgentGroup(**group) for group in value["groups"])
            return check_deployment(cls(**{**value, "groups": groups}))
        except (KeyError, TypeError):
            raise DeployError("what was approved cannot be read; look at the steps again") from None

    def ids(self, taken: Collection[str]) -> tuple[tuple[str, AgentGroup], ...]:
        """An id for each agent that no agent has or had."""
        used = set(taken)
        ids: list[tuple[str, AgentGroup]] = []
        for group in self.groups:
            single = group.named and group.count == 1
            numbered = (f"{group.stem}-{number}" for number in range(1, len(used) + self.count + 1))
            free = [group.stem] if single else [name for name in numbered if name not in used][: group.count]
            used.update(free)
            ids += [(name, group) for name in free]
        return tuple(ids)


@dataclass(frozen=True, slots=True)
class DeployStep:
    """One step of a deployment, as it is shown before it is done."""

    number: int
    act: DeployAction
    agent: str
    lines: tuple[str, ...]
    """What it does, for a person."""

    @property
    def line(self) -> str:
        """The step on one line."""
        return f"{self.number}. {self.act} {self.agent}: {'; '.join(self.lines)}"


def steps_digest(steps: Sequence[DeployStep]) -> str:
    """What says that exactly these steps were seen, 16 hexadecimal digits."""
    return hashlib.sha256("\n".join(step.line for step in steps).encode()).hexdigest()[:16]


_WORDS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_NUMBERS = {"a": 1, "an": 1, **{word: number for number, word in enumerate(_WORDS, 1)}}
_VERBS = r"(?:create|make|deploy|run|start|use|delete|remove)"
_THEM = r"(?:them|it|all|these|those|the\s+agents?)(?:\s+all)?"
_JOINT = re.compile(
    rf"(?:[,;.]\s*(?:and\s+|then\s+)*|\b(?:and|then)\s+(?:then\s+)?)(?={_VERBS}\s+(?:{_THEM}\b|"
    rf"(?:\d+|{'|'.join(_NUMBERS)})\s+(?:[\w-]+\s+){{0,2}}agents?\b))",
    re.I,
)
_CREATE = re.compile(
    rf"(?:create|make|deploy|use)\s+(?P<count>\d+|{'|'.join(_NUMBERS)})\s+(?P<type>[\w-]+\s+)??agents?"
    r"(?:\s+(?:named|called)\s+(?P<name>[\w-]+))?,?\s*(?P<what>.*)\Z",
    re.I | re.S,
)
_RUN = re.compile(
    rf"(?:run|start|use)\s+{_THEM}(?:\s+(?:to\s+the\s+end|until\s+(?:they\s+are|it\s+is)\s+done))?\Z", re.I
)
_DELETE = re.compile(
    rf"(?:delete|remove)\s+{_THEM}(?:\s+(?:after(?:wards)?|when|once)(?:\s+(?:they\s+are|it\s+is)\s+done)?)?\Z",
    re.I,
)


def parse_deployment(directive: str) -> Deployment:
    """What a directive asks for, read by its words alone.

    Raises:
        DeployError: a clause of it is none that is known; the message names it.
    """
    text = directive.strip().rstrip(".")
    if not text:
        raise DeployError(f"a directive is missing · usage: {USAGE}")
    if len(text) > DIRECTIVE_LIMIT:
        raise DeployError(f"the directive has {len(text):,} characters; at most {DIRECTIVE_LIMIT:,} are read")
    groups: list[AgentGroup] = []
    run = delete = False
    for clause in _clauses(text):
        if match := _CREATE.fullmatch(clause):
            if run or delete:
                raise DeployError("agents are created first, then run, then deleted; write it in this order")
            groups.append(_group(match))
        elif _RUN.fullmatch(clause) and groups and not delete:
            run = True
        elif _DELETE.fullmatch(clause) and groups:
            delete = True
        else:
            clause_text = clean_line(clause, limit=80)
            raise DeployError(f"“{clause_text}” is no step of a deployment here · write it as: {USAGE}")
    return check_deployment(Deployment(directive, tuple(groups), run, delete))


def check_deployment(deployment: Deployment) -> Deployment:
    """The deployment, if it creates a number of agents that can be watched.

    Raises:
        DeployError: it creates none, or too many.
    """
    if 0 < deployment.count <= AGENTS_LIMIT:
        return deployment
    raise DeployError(f"{deployment.count} agents: a deployment creates 1 to {AGENTS_LIMIT}")


def _clauses(text: str) -> list[str]:
    masked = text
    for word in words_of(text):
        if word.quoted:
            masked = f"{masked[: word.start]}{'x' * (word.end - word.start)}{masked[word.end :]}"
    cuts = [(match.start(), match.end()) for match in _JOINT.finditer(masked)]
    starts, ends = [0, *(end for _, end in cuts)], [*(start for start, _ in cuts), len(text)]
    clauses = [text[start:end].strip(" ,;") for start, end in zip(starts, ends, strict=True)]
    return [clause for clause in clauses if clause]


def _group(match: re.Match[str]) -> AgentGroup:
    word, name, what = match["count"].lower(), match["name"] or "", match["what"].strip()
    if name:
        try:
            check_agent_id(name)
        except ValueError as error:
            raise DeployError(clean_line(str(error))) from None
    count = _NUMBERS[word] if word in _NUMBERS else int(word[:6])
    kind = (match["type"] or "bdi_agent").strip()
    return AgentGroup(count, f"an agent {what}" if what else "", kind, name or "worker", bool(name))


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


async def read_deployment(host: MastermindHost, directive: str) -> Deployment:
    """What a directive asks for: by its words, and where they do not parse by a model, if there is one.

    Raises:
        DeployError: its words do not parse and there is no model; the message says which.
        ModelError: the model could not be asked, or gave nothing that can be used.
    """
    try:
        return parse_deployment(directive)
    except DeployError as error:
        if host.model is None or not directive.strip():
            hint = "" if host.model is not None else "; without a model only such clauses are understood"
            raise DeployError(f"{error}{hint}") from None
    question = user_message(fence("the directive", clean_line(directive, limit=8_000)))
    system = (Text(f"{_SYSTEM}\n\n{RULE}", "role"),)
    request = ModelRequest(host.model_name, (question,), system, max_tokens=2_000)
    sketch = (await ask_for(host.model, request, DeploymentSketch, name="deployment")).value
    # A model's goal is given as settings: no words of it become a budget, a parent or a network.
    groups = tuple(
        AgentGroup(group.count, canonical({"goal": " ".join(group.goal.split())})) for group in sketch.groups
    )
    return check_deployment(Deployment(directive, groups, sketch.run, sketch.delete, host.model_name))


@dataclass(frozen=True, slots=True)
class AgentOutcome:
    """The result of one agent of a deployment."""

    agent: str
    status: str
    """`done`, `failed`, `needs you` or `not run`."""
    goals: dict[str, str]
    """Status of its goals, by text."""
    deleted: bool = False


@dataclass(slots=True)
class DeploymentResult:
    """The result of a deployment."""

    outcomes: dict[str, AgentOutcome] = field(default_factory=dict)
    trouble: tuple[str, ...] = ()
    """Steps that could not be done, with why."""

    @property
    def ok(self) -> bool:
        """Whether every agent that was run reached its goals, and every step was done."""
        fine = all(outcome.status in ("done", "not run") for outcome in self.outcomes.values())
        return fine and not self.trouble and bool(self.outcomes)

    @property
    def needs_operator(self) -> bool:
        """Whether an agent waits for a decision."""
        return any(outcome.status == "needs you" for outcome in self.outcomes.values())

    @property
    def message(self) -> str:
        """The result in a few lines."""
        lines = [
            f"{outcome.agent}: {outcome.status}{', deleted; its history stays' if outcome.deleted else ''}"
            for outcome in self.outcomes.values()
        ]
        lines += [f"could not be done: {why}" for why in self.trouble]
        return "\n".join(lines) or "nothing was done"

    def as_json(self) -> dict[str, Any]:
        """The outcome as plain values."""
        agents = [asdict(outcome) for outcome in self.outcomes.values()]
        return {"agents": agents, "declined": [], "trouble": list(self.trouble)}


@dataclass(frozen=True, slots=True)
class PreparedDeployment:
    """A deployment that is ready to be shown: its steps, and what each agent will be."""

    steps: tuple[DeployStep, ...]
    agents: tuple[Specification, ...]


def prepare(host: MastermindHost, deployment: Deployment) -> PreparedDeployment:
    """The steps of a deployment as they are to be shown; nothing is done.

    Raises:
        DeployError: one of its agents cannot be created, or a sentence has two readings.
    """
    taken = all_agent_ids(host)
    agents: list[Specification] = []
    for ident, group in deployment.ids(taken):
        argument = f"{group.kind} {ident} {group.sentence}"
        try:
            specification = specify(argument, check_context(host), host.library, taken=taken)
        except CreationError as error:
            raise DeployError(f"{ident}: {error}") from None
        if specification.understood is not None and specification.understood.questions:
            raise DeployError(f"{ident}: {specification.understood.questions[0].line}")
        if deployment.run and not specification.goals and not specification.config.get("program"):
            raise DeployError(
                f"{ident} would have nothing to do: write agents that …, followed by what they do"
            )
        agents.append(specification)
    acts = [(DeployAction.CREATE, agent.id, agent.lines) for agent in agents]
    if deployment.run:
        ending = ("it runs until its goals have ended, or it needs you",)
        acts += [(DeployAction.RUN, agent.id, ending) for agent in agents]
    if deployment.delete:
        ending = ("it is stopped and deleted; its history and its files stay",)
        acts += [(DeployAction.DELETE, agent.id, ending) for agent in agents]
    steps = tuple(DeployStep(number, *act) for number, act in enumerate(acts, 1))
    return PreparedDeployment(steps, tuple(agents))


async def deploy(
    host: MastermindHost, prepared: PreparedDeployment, tell: Tell, *, operator: str = "operator"
) -> DeploymentResult:
    """Do the steps of a deployment in order; agents that are run, run side by side.

    Cancelled, it stops the agents that it set running with all their programs; they stay, with what they did.

    Args:
        host: the engine.
        prepared: what was shown.
        tell: takes how far it is.
        operator: who asks.
    """
    work = _DeploymentRun(host, prepared, tell, operator)
    specifications = {agent.id: agent for agent in prepared.agents}
    try:
        for step in work.steps(DeployAction.CREATE):
            await work.create(step, specifications[step.agent])
        await work.run()
        for step in work.steps(DeployAction.DELETE):
            await work.delete(step)
    except asyncio.CancelledError:
        await work.stop()
        raise
    return work.result


@dataclass(slots=True)
class _DeploymentRun:
    """One deployment under way."""

    host: MastermindHost
    prepared: PreparedDeployment
    tell: Tell
    operator: str
    result: DeploymentResult = field(default_factory=DeploymentResult)
    running: set[str] = field(default_factory=set)
    done: int = 0

    def steps(self, act: DeployAction) -> list[DeployStep]:
        """The steps of a kind, in order."""
        return [step for step in self.prepared.steps if step.act is act]

    def _begin(self, step: DeployStep) -> None:
        self.tell(self.done, len(self.prepared.steps), f"{step.act} {step.agent}")
        self.done += 1

    def _failed(self, step: DeployStep, why: str) -> None:
        self.result.trouble += (f"{step.act} {step.agent}: {clean_line(why, limit=500)}",)

    async def create(self, step: DeployStep, agent: Specification) -> None:
        self._begin(step)
        try:
            await create(self.host, agent, operator=self.operator)
        except CreationError as error:
            self._failed(step, str(error))
        else:
            goals = dict.fromkeys(agent.goals, "pending")
            self.result.outcomes[agent.id] = AgentOutcome(agent.id, "not run", goals)

    async def run(self) -> None:
        for step in self.steps(DeployAction.RUN):
            if step.agent in self.result.outcomes:
                self._begin(step)
                receipt = await self.host.submit(cmd.Run(agent=step.agent), operator=self.operator)
                if receipt.ok:
                    self.running.add(step.agent)
                else:
                    self._failed(step, receipt.message)
        async with asyncio.TaskGroup() as group:
            for agent in sorted(self.running):
                group.create_task(self._watch(agent))

    async def _watch(self, agent: str) -> None:
        state = await _at_rest(self.host, agent)
        roots = state.root_goals()
        goals = {clean_line(goal.text, limit=300): goal.status.value for goal in roots}
        reached = all(goal.status is GoalStatus.ACHIEVED for goal in roots)
        ended = all(goal.status.terminal for goal in roots)
        status = "needs you" if not ended else "done" if reached else "failed"
        if fault := self.host.fault(agent):
            status = "failed"
            self.result.trouble += (f"run {agent}: {clean_line(fault, limit=300)}",)
        self.result.outcomes[agent] = AgentOutcome(agent, status, goals)
        self.running.discard(agent)
        self.tell(self.done, len(self.prepared.steps), f"{agent} {status}")

    async def delete(self, step: DeployStep) -> None:
        outcome = self.result.outcomes.get(step.agent)
        if outcome is None:
            return
        if outcome.status == "needs you":
            self._failed(step, "it waits for you; settle that, then agent_delete it")
            return
        self._begin(step)
        try:
            await remove(self.host, step.agent, operator=self.operator)
        except RemovalError as error:
            self._failed(step, str(error))
        else:
            self.result.outcomes[step.agent] = replace(outcome, deleted=True)

    async def stop(self) -> None:
        """End what the agents that were set running do; they stay, and can be run again."""
        why = "the deployment was cancelled"
        stops = [cmd.Stop(agent=agent, reason=why) for agent in sorted(self.running)]
        await asyncio.gather(*(self.host.submit(stop, operator=self.operator) for stop in stops))
        await self.host.stopped()


def _rests(state: AgentState) -> bool:
    """Whether an agent can go no further by itself, or is done."""
    waits = state.approvals.question is not None or state.approvals.held or state.intervention is not None
    idle = not (state.busy or state.requests)
    return idle and (bool(waits) or state.run is not RunState.RUNNING or not state.has_work)


async def _at_rest(host: MastermindHost, agent: str) -> AgentState:
    """The state of an agent once it rests, or its cycle has ended."""
    ended = asyncio.create_task(host.faulted(agent))
    watch = asyncio.create_task(_followed(host, agent))
    try:
        await asyncio.wait({ended, watch}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in (ended, watch):
            task.cancel()
        await asyncio.gather(ended, watch, return_exceptions=True)
    return await host.view(agent)


async def _followed(host: MastermindHost, agent: str) -> None:
    since = await host.head()
    if _rests(await host.view(agent)):
        return
    async for _event in host.events(since, stream=agent):
        if _rests(await host.view(agent)):
            return
