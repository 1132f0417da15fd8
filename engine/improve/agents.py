"""What the commands on agents do: at once by `AgentService`, what takes long as jobs."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from engine.core.improvement import JobStatus
from engine.core.text import RULE, clean, clean_line, fence
from engine.crew.builder.builds import Builds, builds_of
from engine.crew.builder.findings import BuildResult, PendingBuild, PhaseRecord, build_report
from engine.improve import agent_creation as creating
from engine.improve import deployment as deploying
from engine.improve.agent_creation import CreatedAgent, RemovedAgent, tool_registry
from engine.improve.agent_specification import Specification, argument_of
from engine.improve.ports import JobRefused, JobRequest, JobResult, MastermindHost, Progress, Worker
from engine.improve.state import EventStream
from engine.models.choice import NO_MODEL
from engine.models.completion import ask
from engine.models.prompt_parts import DIRECTORY, PARTS, read_parts
from engine.planning.thinkers.claude_prompt import decider_blocks, system_blocks
from engine.value import asdict, dataclass, replace

PHASES = 7
BUILD_STATUS = {
    "built": JobStatus.DONE,
    "up_to_date": JobStatus.DONE,
    "dry_run": JobStatus.DONE,
    "needs_operator": JobStatus.NEEDS_OPERATOR,
    "failed": JobStatus.FAILED,
}
Prepare = Callable[[dict[str, Any]], dict[str, Any]]
"""What is done to typed settings first, such as reading a program's file; it may refuse."""


class AgentService:
    """Creates and removes agents, with a line of Mastermind's log for each.

    Args:
        host: the engine.
        stream: Mastermind's stream.
    """

    def __init__(self, host: MastermindHost, stream: EventStream) -> None:
        self.host = host
        self._stream = stream

    def understand(self, argument: str, prepare: Prepare = lambda config: config) -> Specification:
        """What `agent_create ARGUMENT` would make; nothing is done, no model is asked.

        Raises:
            CreationError: it would be refused; the message is one line.
        """
        return creating.preview(self.host, argument, prepare=prepare)

    async def create(self, specification: Specification, *, operator: str = "operator") -> CreatedAgent:
        """Make the agent that was understood.

        Raises:
            CreationError: there is none; the message is one line.
        """
        made = await creating.create(self.host, specification, operator=operator)
        data = {"agent": made.agent, "type": made.agent_type, "goals": len(made.goals), "event": made.event}
        await self._note("agent.created", made.message, data, operator)
        return made

    async def remove(self, ident: str, *, operator: str = "operator") -> RemovedAgent:
        """Delete an agent.

        Raises:
            RemovalError: it is still there; the message is one line.
        """
        gone = await creating.remove(self.host, ident, operator=operator)
        data = {"agent": ident, "ended": gone.ended, "event": gone.event}
        await self._note("agent.deleted", gone.message, data, operator)
        return gone

    async def _note(self, topic: str, text: str, data: dict[str, Any], operator: str) -> None:
        self._stream.tell(topic, text, data, actor=f"operator:{operator}")
        await self._stream.commit()


ROLE_LIMIT = 500
ANSWER_TOKENS = 500
"""As much as the original asked for."""
TEMPERATURE = 0.5


class IntrospectionError(JobRefused):
    """There is nothing to say, or it cannot be kept; the message says why, in one line."""


@dataclass(frozen=True, slots=True)
class Introspection:
    """What was found out about a role."""

    role: str
    agent: str
    """The agent that the role names; empty for none."""
    prompt: str
    """A system prompt in the first person; empty without a model."""
    model: str
    """The model that wrote it; empty for none."""
    note: str
    """Why there is no prompt; empty where there is one."""
    tools: tuple[str, ...]
    """Commands that an agent in this role may call."""
    policies: Mapping[str, str]
    """What its programs may do, and what is asked, in words by subject."""
    parts: Mapping[str, str]
    """The parts of the prompt that are in force for it, by name."""

    def as_json(self) -> dict[str, Any]:
        """The answer as plain values."""
        return asdict(self)

    @property
    def text(self) -> str:
        """The answer for a person."""
        lines = [self.prompt, ""] if self.prompt else [self.note, ""]
        lines.append(f"tools: {', '.join(self.tools)}")
        lines += [f"{subject}: {words}" for subject, words in self.policies.items()]
        lines += [f"prompt part {name}: {len(words):,} characters" for name, words in self.parts.items()]
        return "\n".join(lines)


_SYSTEM = """You write system prompts. You are given a role, and what an agent in that role can really do.
Write the prompt in the first person, beginning with "I am", in plain words, at most 250 words: who I am, what
I answer for, how I work, when I ask the operator. Claim no tool, right or knowledge that is not listed.
Answer with the prompt alone."""


async def introspect(host: MastermindHost, role: str) -> Introspection:
    """What a role is; an agent's id stands for the role that it has.

    Args:
        host: the engine, with its model or without.
        role: the role in words, or the id of an agent.

    Raises:
        IntrospectionError: no role is named.
        ModelError: the model could not be asked, or gave nothing that can be used.
    """
    role = clean_line(role, limit=ROLE_LIMIT)
    if not role:
        raise IntrospectionError("a role is missing: introspect reviewer, or introspect AGENT")
    agent = role if role in host.agents else ""
    introspection = await _computed(host, role, agent)
    if host.model is None:
        return introspection
    facts = "\n".join(
        [
            f"tools: {', '.join(introspection.tools)}",
            *(f"{k}: {v}" for k, v in introspection.policies.items()),
        ]
    )
    question = f"{fence('the role', role)}\n{fence('what an agent can do here', facts)}\nWrite the prompt."
    answer = await ask(
        host.model,
        host.model_name,
        f"{_SYSTEM}\n\n{RULE}",
        question,
        max_tokens=ANSWER_TOKENS,
        temperature=TEMPERATURE,
    )
    prompt = clean(answer.text).strip()
    if not prompt:
        raise IntrospectionError(f"{host.model_name} said nothing that can be a prompt; try again")
    return replace(introspection, prompt=prompt, model=host.model_name, note="")


async def _computed(host: MastermindHost, role: str, agent: str) -> Introspection:
    """What needs no model."""
    tools = tuple(
        f"{row.tool} {row.command}" for row in tool_registry(host.registry) if "agents" in row.callers
    )
    policies = dict(host.sandbox(agent).policy.facts())
    parts: dict[str, str] = {}
    if agent:
        state = await host.view(agent)
        kept = state.approvals.policies
        asked = [
            f"{source}: {len(entry.rules)} rules, else {entry.default}" for source, entry in kept.items()
        ]
        policies["asks"] = "; ".join(asked) or "nothing"
        policies["thinks"] = f"by {state.config.thinker}" + (
            ", one action at a time" if state.config.decides else ""
        )
        if state.config.replans:
            own = await asyncio.to_thread(read_parts, host.workspace)
            decides = state.config.decides
            blocks = decider_blocks(own) if decides else system_blocks(host.registry, own)
            parts = {block.name: block.text for block in blocks}
    note = f"no prompt was written: {NO_MODEL}" if host.model is None else ""
    return Introspection(role, agent, "", "", note, tools, policies, parts)


def save_prompt(workspace: Path, introspection: Introspection) -> Path:
    """Keep a prompt as `prompts/ROLE.md`, where it can be improved as any other component.

    Raises:
        IntrospectionError: there is none, another one has the name, or it cannot be written.
    """
    if not introspection.prompt:
        raise IntrospectionError(f"there is no prompt to keep: {introspection.note}")
    name = re.sub(r"[^a-z0-9]+", "-", introspection.role.casefold()).strip("-")[:60] or "role"
    if name in PARTS:
        raise IntrospectionError(
            f"prompts/{name}.md is what every model is guided by: give the role another name"
        )
    path = workspace / DIRECTORY / f"{name}.md"
    content = introspection.prompt.rstrip() + "\n"
    fresh = path.with_name(f".{path.name}.new")
    try:
        if path.exists():
            if path.read_text(encoding="utf-8") == content:
                return path
            raise IntrospectionError(f"{path} is there with other words; move it away first")
        path.parent.mkdir(exist_ok=True)
        fresh.write_text(content, encoding="utf-8")
        os.link(fresh, path)
    except OSError as error:
        raise IntrospectionError(f"{path} cannot be written: {error.strerror}") from None
    finally:
        with suppress(OSError):
            fresh.unlink()
    return path


class AgentJobs:
    """The verbs on agents as jobs; what the operator has to confirm ends as `NEEDS_OPERATOR`."""

    def __init__(self, service: AgentService) -> None:
        self._service = service

    @property
    def workers(self) -> dict[str, Worker]:
        """By verb."""
        return {
            "agent_create": self.create,
            "agent_delete": self.delete,
            "introspect": self.introspect,
            "deploy": self.deploy,
            "agent_build": self.build,
        }

    async def create(self, asked: JobRequest, progress: Progress) -> JobResult:
        """`agent_create`; with the option `fill` a model fills in goals that a sentence leaves open.

        What a model filled in is shown first: `argument` in the answer is what creates just that.
        """
        service = self._service
        specification = service.understand(asked.argument)
        shown = {"understood": list(specification.lines)}
        if specification.understood is not None and specification.understood.questions:
            lines = [question.line for question in specification.understood.questions]
            return JobResult(JobStatus.NEEDS_OPERATOR, "\n".join(lines), shown)
        if asked.options.get("fill"):
            if service.host.model is None:
                raise JobRefused(f"a model is to fill in what it is to do: {NO_MODEL}")
            progress.tell(0, 2, "asking the model what it is to do")
            filled, completed = await creating.complete_specification(specification, service.host)
            if completed:
                answer = {"understood": list(filled.lines), "argument": argument_of(filled)}
                return JobResult(JobStatus.NEEDS_OPERATOR, "\n".join([completed, *filled.lines]), answer)
        progress.tell(0, 1, f"creating {specification.id}")
        made = await service.create(specification, operator=_operator(asked))
        result = {"agent": made.agent, "goals": list(made.goals)}
        return JobResult(JobStatus.DONE, made.message, {**result, **shown})

    async def delete(self, asked: JobRequest, progress: Progress) -> JobResult:
        """`agent_delete`."""
        ident = asked.argument.strip()
        progress.tell(0, 1, f"stopping {ident}")
        gone = await self._service.remove(ident, operator=_operator(asked))
        answer = {"agent": gone.agent, "ended": gone.ended, "alive": gone.alive}
        return JobResult(JobStatus.FAILED if gone.alive else JobStatus.DONE, gone.message, answer)

    async def introspect(self, asked: JobRequest, progress: Progress) -> JobResult:
        """`introspect`; the option `keep` keeps the prompt."""
        progress.tell(0, 1, f"introspecting {asked.argument[:60]}")
        host = self._service.host
        introspection = await introspect(host, asked.argument)
        kept = str(save_prompt(host.workspace, introspection)) if asked.options.get("keep") else ""
        text = f"{introspection.text}\nkept as {kept}" if kept else introspection.text
        status = JobStatus.DONE if introspection.prompt else JobStatus.REFUSED
        return JobResult(status, text, {**introspection.as_json(), "kept": kept})

    async def deploy(self, asked: JobRequest, progress: Progress) -> JobResult:
        """`deploy`: first it shows its steps and a digest of them.

        With the option `approved` set to that digest, and `deployment` to what was shown, it does them.
        """
        host, given, approved = (
            self._service.host,
            asked.options.get("deployment"),
            asked.options.get("approved"),
        )
        if given is None:
            deployment = await deploying.read_deployment(host, asked.argument)
        else:
            deployment = deploying.Deployment.from_json(given)
        ready = deploying.prepare(host, deployment)
        digest, lines = deploying.steps_digest(ready.steps), [step.line for step in ready.steps]
        shown = {"steps": lines, "approve": digest, "deployment": deployment.as_json()}
        if approved != digest:
            again = "these steps are others than those approved; " if approved else ""
            text = "\n".join([f"{again}to be approved:", *lines])
            return JobResult(JobStatus.NEEDS_OPERATOR, text, shown)
        result = await deploying.deploy(host, ready, progress.tell, operator=_operator(asked))
        status = JobStatus.DONE if result.ok else JobStatus.FAILED
        status = JobStatus.NEEDS_OPERATOR if result.needs_operator else status
        return JobResult(status, result.message, {**shown, **result.as_json()})

    async def build(self, asked: JobRequest, progress: Progress) -> JobResult:
        """`agent_build`: build an agent of the skill that the argument names; the crew has its events."""

        def report(record: PhaseRecord) -> None:
            mark = "passed" if record.passed else "failed"
            progress.tell(record.number, PHASES, f"{record.number} {record.name} {mark}")

        builds = await self._builds()
        return _build_result(await builds.build(_pending_build(asked), report, actor=asked.actor))

    async def _builds(self) -> Builds:
        builds = builds_of(await self._service.host.crew())
        if builds is None:
            raise JobRefused("nobody builds agents here")
        return builds


def _pending_build(asked: JobRequest) -> PendingBuild:
    path, options = asked.argument.strip(), asked.options
    if not path:
        raise JobRefused("the path of a skill's folder is missing")
    place = Path(path).expanduser()
    if not place.is_dir() and place.name.lower() != "skill.md":
        raise JobRefused(f"{clean_line(path, limit=200)} is no folder with a SKILL.md")
    overrides = {"type": options["type"]} if options.get("type") else {}
    return PendingBuild(
        place,
        dry_run=bool(options.get("dry-run")),
        trust=True if options.get("trust") else None,
        interactive=True,
        overrides=overrides,
    )


def _build_result(result: BuildResult) -> JobResult:
    return JobResult(BUILD_STATUS[result.status.value], build_report(result), result.as_json())


def _operator(asked: JobRequest) -> str:
    return asked.actor.removeprefix("operator:") or "operator"
