"""Deployments: directives such as `create 2 agents that run the tests, run them, delete them`, done in steps.

What does not parse is named, never guessed at. The steps are shown and approved as a whole before they are
done. Agents of a deployment are agents like all others: the gate asks and the journal has what they do.
"""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import re

from engine.core import commands as cmd
from engine.core.agents import RunState
from engine.core.command import check_agent_id
from engine.core.goals import GoalStatus
from engine.core.improvement import JobStatus
from engine.core.journal import of_agent
from engine.core.reasons import Reason
from engine.core.state import AgentState
from engine.core.text import clean_line
from engine.improve.agent_creation import AgentService, RemovalError
from engine.improve.agent_specification import Specification
from engine.improve.agent_types import CreationError
from engine.improve.ports import JobRefused, JobRequest, JobResult, MastermindHost, Progress
from engine.planning.library.words import words_of
from engine.value import dataclass

AGENTS_LIMIT = 16
"""Agents of one deployment."""
DIRECTIVE_LIMIT = 8_000
"""Characters of a directive."""
USAGE = "deploy create N agents that …, run them, delete them"
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
_DOES = re.compile(r"\A(?:(?:that|which|who|to)\s+)?(\w+?)(?<!s)s?\b", re.I)
"""What an agent does: `that reads a.txt` is `read a.txt`."""
_RUN = re.compile(rf"(?:run|start|use)\s+{_THEM}\Z", re.I)
_DELETE = re.compile(rf"(?:delete|remove)\s+{_THEM}(?:\s+afterwards)?\Z", re.I)


class DeployError(JobRefused):
    """The directive is not carried out; the message says what was not understood, in one line."""


@dataclass(frozen=True, slots=True)
class Deployment:
    """What a directive asks for."""

    agents: tuple[tuple[str, str, str], ...]
    """Type, given name and words of each agent; the name is empty where none was given."""
    run: bool = False
    delete: bool = False


def parse_deployment(directive: str) -> Deployment:
    """What a directive asks for, read by its words alone.

    Raises:
        DeployError: a clause of it is none that is known; the message names it.
    """
    text = directive.strip().rstrip(".")
    if len(text) > DIRECTIVE_LIMIT:
        raise DeployError(f"the directive has {len(text):,} characters; at most {DIRECTIVE_LIMIT:,} are read")
    agents: list[tuple[str, str, str]] = []
    run = delete = False
    for clause in _clauses(text):
        if (match := _CREATE.fullmatch(clause)) and not (run or delete):
            agents += _created(match)
        elif _RUN.fullmatch(clause) and agents and not delete:
            run = True
        elif _DELETE.fullmatch(clause) and agents:
            delete = True
        else:
            shown = clean_line(clause, limit=80)
            raise DeployError(f"“{shown}” is no step of a deployment here · write it as: {USAGE}")
    if not 0 < len(agents) <= AGENTS_LIMIT:
        raise DeployError(f"a deployment creates 1 to {AGENTS_LIMIT} agents · write it as: {USAGE}")
    return Deployment(tuple(agents), run, delete)


def _clauses(text: str) -> list[str]:
    """The clauses of a directive; joints within quotes are none."""
    masked = text
    for word in words_of(text):
        if word.quoted:
            masked = f"{masked[: word.start]}{'x' * (word.end - word.start)}{masked[word.end :]}"
    cuts = [(match.start(), match.end()) for match in _JOINT.finditer(masked)]
    starts, ends = [0, *(end for _, end in cuts)], [*(start for start, _ in cuts), len(text)]
    clauses = [text[start:end].strip(" ,;") for start, end in zip(starts, ends, strict=True)]
    return [clause for clause in clauses if clause]


def _created(match: re.Match[str]) -> list[tuple[str, str, str]]:
    word, name, what = match["count"].lower(), match["name"] or "", match["what"].strip()
    try:
        check_agent_id(name or "worker")
    except ValueError as error:
        raise DeployError(clean_line(str(error))) from None
    count = min(_NUMBERS.get(word) or int(word[:6]), AGENTS_LIMIT + 1)
    kind, sentence = (match["type"] or "bdi_agent").strip(), _DOES.sub(r"\1", what)
    names = [name] if count == 1 else [f"{name}-{number}" if name else "" for number in range(1, count + 1)]
    return [(kind, each, sentence) for each in names] if count else []


@dataclass(frozen=True, slots=True)
class DeploySteps:
    """A deployment that is ready to be shown."""

    deployment: Deployment
    agents: tuple[Specification, ...]

    @property
    def lines(self) -> tuple[str, ...]:
        """The steps in order, for a person."""
        steps = [f"create {agent.id}: {'; '.join(agent.lines)}" for agent in self.agents]
        if self.deployment.run:
            ending = "it runs until its goals have ended, or it needs you"
            steps += [f"run {agent.id}: {ending}" for agent in self.agents]
        if self.deployment.delete:
            ending = "it is stopped and deleted; its history and its files stay"
            steps += [f"delete {agent.id}: {ending}" for agent in self.agents]
        return tuple(f"{number}. {step}" for number, step in enumerate(steps, 1))

    @property
    def digest(self) -> str:
        """What says that exactly these steps were seen, 16 hexadecimal digits."""
        return hashlib.sha256("\n".join(self.lines).encode()).hexdigest()[:16]


class DeployJob:
    """Carries out deployments, as jobs.

    Args:
        host: the engine.
        service: creates and removes agents.
    """

    def __init__(self, host: MastermindHost, service: AgentService) -> None:
        self._host, self._service = host, service

    async def deploy(self, asked: JobRequest, progress: Progress) -> JobResult:
        """`deploy`: shows its steps with a digest; with that in the option `approved` it does them.

        Cancelled, it stops the agents that it set running; they stay, with what they did.
        """
        steps = self.prepare(parse_deployment(asked.argument))
        shown = {"steps": list(steps.lines), "approve": steps.digest}
        if (approved := asked.options.get("approved")) != steps.digest:
            again = "these steps are others than those approved; " if approved else ""
            text = "\n".join([f"{again}to be approved:", *steps.lines])
            return JobResult(JobStatus.NEEDS_OPERATOR, text, shown)
        operator = asked.actor.removeprefix("operator:") or "operator"
        status = dict.fromkeys((agent.id for agent in steps.agents), "not run")
        for number, agent in enumerate(steps.agents):
            progress.tell(number, len(steps.lines), f"create {agent.id}")
            try:
                await self._service.create(agent, operator=operator)
            except CreationError as error:
                before = ", ".join(each.id for each in steps.agents[:number]) or "none"
                return JobResult(JobStatus.FAILED, f"{agent.id}: {error}; created before it: {before}")
        if steps.deployment.run:
            progress.tell(len(status), len(steps.lines), f"run {', '.join(status)}")
            status = dict(zip(status, await self._run(tuple(status), operator), strict=True))
        lines = {agent: f"{agent}: {how}" for agent, how in status.items()}
        for ident in status if steps.deployment.delete else ():
            lines[ident] += await self._deleted(ident, status[ident], operator)
        ending = JobStatus.FAILED if "failed" in status.values() else JobStatus.DONE
        if "needs you" in status.values():
            ending = JobStatus.NEEDS_OPERATOR
        return JobResult(ending, "\n".join(lines.values()), {"steps": shown["steps"], "agents": status})

    async def _deleted(self, agent: str, how: str, operator: str) -> str:
        if how == "needs you":
            return "; it is not deleted: settle that, then agent_delete it"
        try:
            await self._service.remove(agent, operator=operator)
        except RemovalError as error:
            return f"; {error}"
        return "; deleted, its history stays"

    def prepare(self, deployment: Deployment) -> DeploySteps:
        """The steps of a deployment as they are to be shown; nothing is done.

        Raises:
            DeployError: one of its agents would have nothing to do.
            CreationError: one of its agents cannot be created.
        """
        taken = {name for name in self._host.store.names if of_agent(name)}
        taken |= {name for _, name, _ in deployment.agents}
        workers = (f"worker-{number}" for number in itertools.count(1))
        free = (name for name in workers if name not in taken)
        agents = []
        for kind, name, sentence in deployment.agents:
            agent = self._service.understand(f"{kind} {name or next(free)} {sentence}")
            if deployment.run and not agent.goals and not agent.config.get("program"):
                why = "would have nothing to do: write agents that … and what they do"
                raise DeployError(f"{agent.id} {why}")
            agents.append(agent)
        return DeploySteps(deployment, tuple(agents))

    async def _run(self, agents: tuple[str, ...], operator: str) -> list[str]:
        """Let agents run side by side until each rests: `done`, `failed` or `needs you`."""
        try:
            return await asyncio.gather(*(self._ended(agent, operator) for agent in agents))
        except asyncio.CancelledError:
            stops = [cmd.Stop(agent=agent, reason=Reason("run.stopped.cancelling")) for agent in agents]
            await asyncio.gather(*(self._host.submit(stop, operator=operator) for stop in stops))
            await self._host.stopped()
            raise

    async def _ended(self, agent: str, operator: str) -> str:
        receipt = await self._host.submit(cmd.Run(agent=agent), operator=operator)
        if not receipt.ok:
            return "failed"
        ended = asyncio.create_task(self._host.faulted(agent))
        rest = asyncio.create_task(self._rest(agent))
        try:
            await asyncio.wait({ended, rest}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (ended, rest):
                task.cancel()
            await asyncio.gather(ended, rest, return_exceptions=True)
        state = await self._host.view(agent)
        goals = state.root_goals()
        if self._host.fault(agent):
            return "failed"
        if not all(goal.status.terminal for goal in goals):
            return "needs you"
        return "done" if all(goal.status is GoalStatus.ACHIEVED for goal in goals) else "failed"

    async def _rest(self, agent: str) -> None:
        """Wait until an agent can go no further by itself, or is done."""
        since = await self._host.store.head_seq()
        if _rests(await self._host.view(agent)):
            return
        async for _ in self._host.store.events(since, stream=agent, follow=True):
            if _rests(await self._host.view(agent)):
                return


def _rests(state: AgentState) -> bool:
    waits = state.approvals.question is not None or state.approvals.held or state.intervention is not None
    idle = not (state.busy or state.requests)
    return idle and (bool(waits) or state.run is not RunState.RUNNING or not state.has_work)
