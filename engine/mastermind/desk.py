"""The desk for agents: one object with all that the verbs on agents, identities and registries do.

The cockpit and the command line call its methods and get typed answers; what takes long is registered as jobs
(`take_part`). Source: mindX spec §1.2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

from engine.domain.mastermind import JobStatus
from engine.journal.store import DATA_DIRECTORY
from engine.mastermind import creating, deploying, registry
from engine.mastermind import introspect as looking
from engine.mastermind.agent_types import CreationError
from engine.mastermind.building import BuildJobs, WithCrew
from engine.mastermind.creating import Created, RemovalError, Removed
from engine.mastermind.deploying import DeployHelm
from engine.mastermind.deployment import DeployError, Deployment, DeployStep, digest_of
from engine.mastermind.identities import Identities, IdentityRow, Made, Signed, Verified
from engine.mastermind.introspect import Introspection, IntrospectionError
from engine.mastermind.keys import KEYS_DIRECTORY, KeyRing
from engine.mastermind.mastermind import Mastermind
from engine.mastermind.parts import Asked, House, JobRefused, Outcome, Progress
from engine.mastermind.recorded import RecordedIdentities
from engine.mastermind.registry import AgentRow, ToolRow
from engine.mastermind.specifying import Specification, argument_of
from engine.mastermind.state import Spine
from engine.models import ModelError
from engine.models.choice import NO_MODEL

Prepare = Callable[[dict[str, Any]], dict[str, Any]]
"""What is done to typed settings first, such as reading a program's file; it may refuse."""


class Ground(House, DeployHelm, WithCrew, Protocol):
    """What Mastermind with its desk stands on; `engine.engine.Engine` is one."""


def _as_typed(config: dict[str, Any]) -> dict[str, Any]:
    return config


class Desk:
    """What can be done with agents and identities in an open workspace.

    Args:
        helm: the engine.
        spine: Mastermind's stream, where identities and what was done are recorded.
    """

    def __init__(self, helm: DeployHelm, spine: Spine) -> None:
        self.helm = helm
        self._spine = spine
        keys = KeyRing(helm.workspace / DATA_DIRECTORY / KEYS_DIRECTORY, helm.root)
        self.identities = Identities(keys, RecordedIdentities(spine))

    @classmethod
    def at(cls, mastermind: Mastermind, helm: DeployHelm) -> Desk:
        """The desk of an engine whose Mastermind is open."""
        return cls(helm, mastermind.spine)

    # -------------------------------------------------------------- agents

    def understand(self, argument: str, prepare: Prepare = _as_typed) -> Specification:
        """What `agent_create ARGUMENT` would make; nothing is done, no model is asked.

        Raises:
            CreationError: it would be refused; the message is one line.
        """
        return creating.preview(self.helm, argument, prepare=prepare)

    async def create(self, said: Specification, *, operator: str = "operator") -> Created:
        """Make the agent that was understood.

        Raises:
            CreationError: there is none; the message is one line.
        """
        made = await creating.create(self.helm, said, operator=operator, identities=self.identities)
        data = {"agent": made.agent, "type": made.agent_type, "goals": len(made.goals), "event": made.event}
        await self._note("agent.created", made.message, data, operator)
        return made

    async def complete(self, said: Specification) -> tuple[Specification, str]:
        """Have a model fill in what a sentence leaves open; see `creating.complete`.

        Raises:
            ModelError: the model could not be asked, or gave nothing that can be used.
        """
        return await creating.complete(said, self.helm)

    async def removal(self, ident: str) -> tuple[str, ...]:
        """What deleting an agent would do, line by line.

        Raises:
            RemovalError: it would be refused; the message is one line.
        """
        return await creating.removal(self.helm, ident)

    async def remove(self, ident: str, *, operator: str = "operator") -> Removed:
        """Delete an agent; its identity stays until it is given up.

        Raises:
            RemovalError: it is still there; the message is one line.
        """
        gone = await creating.remove(self.helm, ident, operator=operator)
        data = {"agent": ident, "ended": gone.ended, "event": gone.event}
        await self._note("agent.deleted", gone.message, data, operator)
        return gone

    async def agents(self) -> tuple[AgentRow, ...]:
        """All agents that are or were (`show_agent_registry`)."""
        return await registry.agent_registry(self.helm, self.identities)

    def tools(self) -> tuple[ToolRow, ...]:
        """Every command of every tool (`show_tool_registry`)."""
        return registry.tool_registry(self.helm.registry)

    # -------------------------------------------------------------- identities

    async def id_list(self) -> tuple[IdentityRow, ...]:
        """All identities that are or were."""
        return await self.identities.rows()

    async def id_create(self, entity: str, *, operator: str = "operator") -> Made:
        """An entity's identity, made where it has none.

        Raises:
            IdentityError: there is none; the message is one line.
        """
        return await self.identities.create(entity, actor=f"operator:{operator}")

    async def id_deprecate(self, wanted: str, reason: str = "", *, operator: str = "operator") -> str:
        """Give an identity up; ask first, with the words of `identities.deprecation`.

        Raises:
            IdentityError: it was not done as a whole; the message is one line.
        """
        return await self.identities.deprecate(wanted, reason, actor=f"operator:{operator}")

    async def sign(self, ident: str, message: str, *, operator: str = "operator") -> Signed:
        """Sign a message as an agent; the log has that it was done, and not what was signed.

        Raises:
            IdentityError: nothing was signed; the message is one line.
        """
        signed = await self.identities.sign(ident, message)
        data = {"entity": signed.entity, "address": signed.address, "characters": len(message)}
        told = f"{signed.entity} signed a message of {len(message):,} characters"
        await self._note("identity.signed", told, data, operator)
        return signed

    async def verify(self, address: str, signature: str, message: str) -> Verified:
        """Whether an address signed a message.

        Raises:
            IdentityError: one of them cannot be read; the message is one line.
        """
        return await self.identities.verify(address, signature, message)

    # -------------------------------------------------------------- with a model

    async def introspect(self, role: str) -> Introspection:
        """What a role is; see `introspect.introspect`."""
        return await looking.introspect(self.helm, role)

    def keep(self, found: Introspection) -> Path:
        """Keep a prompt below `prompts/`; see `introspect.keep`."""
        return looking.keep(self.helm.workspace, found)

    async def _note(self, topic: str, text: str, data: Mapping[str, Any], operator: str) -> None:
        self._spine.tell(topic, text, dict(data), actor=f"operator:{operator}")
        await self._spine.commit()


# ------------------------------------------------------------------ as jobs


def take_part(mastermind: Mastermind, helm: Ground) -> Desk:
    """Let what takes long be jobs: agents made, deleted and built, roles, deployments; gives the desk."""
    desk = Desk.at(mastermind, helm)
    jobs = _Jobs(desk)
    mastermind.register("agent_create", jobs.create)
    mastermind.register("agent_delete", jobs.delete)
    mastermind.register("introspect", jobs.introspect)
    mastermind.register("deploy", jobs.deploy)
    builds = BuildJobs(helm)
    mastermind.register("agent_build", builds.build)
    mastermind.register("agent_watch", builds.watch)
    return desk


class _Jobs:
    """The verbs as jobs: refusals are `JobRefused`, what the operator is to confirm is `NEEDS_OPERATOR`."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def create(self, asked: Asked, progress: Progress) -> Outcome:
        """`agent_create`; with the option `fill` a model fills in goals that a sentence leaves open.

        What a model filled in is shown first: `argument` in the answer is what creates just that.
        """
        try:
            said = self._desk.understand(asked.argument)
            if said.understood is not None and said.understood.questions:
                lines = [one.line for one in said.understood.questions]
                return Outcome(JobStatus.NEEDS_OPERATOR, "\n".join(lines), {"understood": list(said.lines)})
            if asked.options.get("fill"):
                if self._desk.helm.model is None:
                    raise JobRefused(f"a model is to fill in what it is to do: {NO_MODEL}")
                progress.tell(0, 2, "asking the model what it is to do")
                filled, told = await self._desk.complete(said)
                if told:
                    shown = {"understood": list(filled.lines), "argument": argument_of(filled)}
                    return Outcome(JobStatus.NEEDS_OPERATOR, "\n".join([told, *filled.lines]), shown)
            progress.tell(0, 1, f"creating {said.id}")
            made = await self._desk.create(said, operator=_name(asked))
        except CreationError as error:
            raise JobRefused(str(error)) from None
        except ModelError as error:
            return Outcome(JobStatus.FAILED, f"the model: {error.message}; no agent was created")
        answer = {"agent": made.agent, "goals": list(made.goals), "address": made.address}
        return Outcome(JobStatus.DONE, made.message, {**answer, "understood": list(said.lines)})

    async def delete(self, asked: Asked, progress: Progress) -> Outcome:
        """`agent_delete`."""
        ident = asked.argument.strip()
        progress.tell(0, 1, f"stopping {ident}")
        try:
            gone = await self._desk.remove(ident, operator=_name(asked))
        except RemovalError as error:
            raise JobRefused(str(error)) from None
        status = JobStatus.FAILED if gone.alive else JobStatus.DONE
        return Outcome(status, gone.message, {"agent": gone.agent, "ended": gone.ended, "alive": gone.alive})

    async def introspect(self, asked: Asked, progress: Progress) -> Outcome:
        """`introspect`; the option `keep` keeps the prompt."""
        progress.tell(0, 1, f"introspecting {asked.argument[:60]}")
        try:
            found = await self._desk.introspect(asked.argument)
            kept = str(self._desk.keep(found)) if asked.options.get("keep") else ""
        except IntrospectionError as error:
            raise JobRefused(str(error)) from None
        except ModelError as error:
            return Outcome(JobStatus.FAILED, f"the model: {error.message}")
        told = f"{found.text}\nkept as {kept}" if kept else found.text
        status = JobStatus.DONE if found.prompt else JobStatus.REFUSED
        return Outcome(status, told, {**found.as_json(), "kept": kept})

    async def deploy(self, asked: Asked, progress: Progress) -> Outcome:
        """`deploy`: first it shows its steps and a digest of them.

        With the option `approved` set to that digest, and `deployment` to what was shown, it does them.
        """
        desk = self._desk
        given = asked.options.get("deployment")
        try:
            if given is None:
                said = await deploying.read_deployment(desk.helm, asked.argument)
            else:
                said = Deployment.from_json(given)
            ready = deploying.prepare(desk.helm, said)
        except DeployError as error:
            raise JobRefused(str(error)) from None
        except ModelError as error:
            return Outcome(JobStatus.FAILED, f"the model: {error.message}")
        digest, lines = digest_of(ready.steps), [step.line for step in ready.steps]
        shown = {"steps": lines, "approve": digest, "deployment": said.as_json()}
        if asked.options.get("approved") != digest:
            again = "these steps are others than those approved; " if asked.options.get("approved") else ""
            told = "\n".join([f"{again}to be approved:", *lines])
            return Outcome(JobStatus.NEEDS_OPERATOR, told, shown)

        async def approved(_step: DeployStep) -> bool:
            return True

        came = await deploying.deploy(
            desk.helm,
            ready,
            approved,
            tell=progress.tell,
            operator=_name(asked),
            identities=desk.identities,
        )
        status = JobStatus.DONE if came.ok else JobStatus.FAILED
        status = JobStatus.NEEDS_OPERATOR if came.needs_operator else status
        return Outcome(status, came.message, {**shown, **came.as_json()})


def _name(asked: Asked) -> str:
    return asked.actor.removeprefix("operator:") or "operator"
