"""Builds of an open workspace: told by events as they go, registered with the crew (ontology spec §2)."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.agents.kinds import ErrorCode
from engine.agents.result import HandoffResult
from engine.building.agent_base import AgentFolderError, read_agent
from engine.building.builder import Builder
from engine.building.codegen import spec_sha256
from engine.building.findings import BuildResult, PhaseRecord
from engine.building.registering import Registrar, RegistrationError, Version, pending
from engine.building.request import BUILT_IN, PROJECT
from engine.building.staging import Places, intact, read_build
from engine.building.telling import phase_line, report
from engine.building.watching import watch
from engine.building.workspace_tools import WorkspaceTools
from engine.crew.builds.proving import ACTOR, Prover
from engine.crew.builds.registrar import CrewRegistrar, as_built, source_of
from engine.crew.builds.shipped import ShippedAgents, ShippedError
from engine.crew.builds.steps import Steps, path_in
from engine.crew.parts import Built, HandoffError
from engine.crew.state import Handoff
from engine.domain.text import clean, clean_line
from engine.journal import crew_events as ce
from engine.sandbox import SandboxPolicy

if TYPE_CHECKING:
    from engine.crew.crew import Crew

TRUSTED = "trusted"
"""What the operator is asked about a folder (`Choice.key`)."""
TRIED = "tried"
"""How often the operator had a build begun again."""
Told = Callable[[PhaseRecord], None]
Pace = Callable[[int], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Wanted:
    """A build that is asked for."""

    path: Path
    strict: bool = False
    dry_run: bool = False
    live: bool = False
    trust: bool | None = None
    """Whether the folder is trusted; None asks about those that agents can write to, False about any."""
    interactive: bool = False
    """Whether somebody is there to be asked."""
    overrides: Mapping[str, Any] = field(default_factory=dict)
    scope: str = PROJECT


class Builds:
    """Builds agents and knows the built-in ones.

    Args:
        crew: registers them.
        root: the sandbox root.
        policy: of the sandbox.
        thinks: whether there is a model for live proofs.
    """

    def __init__(self, crew: Crew, root: Path, policy: SandboxPolicy, *, thinks: bool) -> None:
        self._crew, self._root, self._policy = crew, root, policy
        self.places = Places(crew.ground.workspace.absolute())
        self.prover = Prover(crew, thinks=thinks)
        self.shipped = ShippedAgents()
        self.registrar = CrewRegistrar(crew, self.prover, self.shipped)
        self.troubles: dict[str, str] = {}
        """Why built-in agents or agents of the workspace are not there, by id."""
        self._steps: dict[str, Steps] = {}
        self._repairing: asyncio.Task[None] | None = None
        crew.handoffs.ended.append(self._ended)

    # -------------------------------------------------------------- life

    async def open(self) -> None:
        """Register the built-in agents and those that lie in the workspace.

        Raises:
            JournalError: it could not be recorded.
        """
        for build in self._crew.state.builds.values():
            if not build.over:
                self._note(
                    build.id, build.phase, "interrupted", build.agent, "the session ended before it did"
                )
        taken = await asyncio.to_thread(self._lying)
        for agent_id in taken:
            if wrong := await self._taken_in(agent_id):
                self.troubles[agent_id] = clean_line(wrong, limit=500)
        try:
            if self._crew.ground.crew_settings.built_ins:
                await self.shipped.register(self._crew, taken)
        except ShippedError as error:
            self.troubles[BUILT_IN] = clean_line(str(error), limit=500)
        await self._crew.spine.commit()

    def begin(self) -> None:
        """Finish or undo what a process that died was registering, and end its proofs."""
        state = self._crew.state
        proofs = [one.id for one in state.open() if one.proof and not one.context.parent_id]
        if proofs or self.places.builds.is_dir():
            self._repairing = asyncio.create_task(self._repaired(proofs), name="repair of builds")

    async def settled(self) -> None:
        """Wait until what a process that died left is in order."""
        if self._repairing is not None:
            await asyncio.wait([self._repairing])

    async def close(self) -> None:
        """End what is under way."""
        for steps in list(self._steps.values()):
            await steps.close()
        if self._repairing is not None:
            self._repairing.cancel()
            await asyncio.gather(self._repairing, return_exceptions=True)

    async def _repaired(self, proofs: list[str]) -> None:
        for name in proofs:
            await self._crew.handoffs.cancel(name, "the process that proved it ended", actor=ACTOR)
        for line in await self._builder().repair():
            self._note(self._new_id(), "registration", "repaired", line.partition(" ")[0].rstrip(":"), line)
        await self._crew.spine.commit()

    def _lying(self) -> tuple[str, ...]:
        """Agents of the workspace; one that is being registered is repaired first."""
        under_way = pending(self.places)
        return tuple(name for name in self.places.ids() if name not in under_way)

    async def _taken_in(self, agent_id: str) -> str:
        """Register an agent of the workspace that was built where no crew was; what is wrong with it."""
        folder, source = self.places.agent(agent_id), source_of(agent_id)
        if self._crew.state.removed.get(agent_id) == source:
            return ""
        build = await asyncio.to_thread(read_build, folder)
        known = self._crew.state.agents.get(agent_id)
        now = spec_sha256(as_built(known.spec)) if known is not None and known.source == source else ""
        if build is not None and now == build.spec_sha256:
            return ""
        if build is None or not await asyncio.to_thread(intact, folder, build):
            return "it is not as it was built; build it again"
        try:
            spec = await asyncio.to_thread(read_agent, folder)
            await self.registrar.register(spec, folder)
        except (AgentFolderError, RegistrationError) as error:
            return str(error)
        return ""

    @property
    def registered(self) -> tuple[str, ...]:
        """Ids of the agents that are registered."""
        return tuple(self._crew.state.agents)

    # -------------------------------------------------------------- builds

    async def build(
        self, wanted: Wanted, told: Told = lambda _record: None, *, actor: str = ACTOR
    ) -> BuildResult:
        """Build an agent; each phase is an event, and whatever goes wrong is in the result.

        Raises:
            asyncio.CancelledError: nothing of it runs, and there is no agent that was not there before.
            JournalError: it could not be recorded.
        """
        return await self._built(wanted, told, actor=actor)

    async def _built(
        self, wanted: Wanted, told: Told, *, actor: str, pace: Pace | None = None
    ) -> BuildResult:
        await self.settled()
        await self.registrar.ready()
        build, path = self._new_id(), wanted.path.expanduser().absolute()
        self._note(build, "", "begun", "", str(path), actor=actor)

        def noted(record: PhaseRecord) -> None:
            said = {**record.as_json(), "duration_seconds": round(record.duration_seconds, 3)}
            state = "passed" if record.passed else "failed"
            self._note(build, record.name, state, "", phase_line(record), said, actor=actor)
            told(record)

        try:
            result = await self._builder(noted, pace).build(
                path,
                mode="strict" if wanted.strict else "lenient",
                dry_run=wanted.dry_run,
                live=wanted.live,
                overrides=wanted.overrides,
                interactive=wanted.interactive,
                trusted=await asyncio.to_thread(self._trusts, path) if wanted.trust is None else wanted.trust,
                scope=wanted.scope,
            )
        except asyncio.CancelledError:
            self._note(build, "", "cancelled", "", "it was cancelled; nothing of it is left", actor=actor)
            raise
        agent = result.spec.id if result.spec is not None else ""
        short = {
            name: value for name, value in result.as_json().items() if name not in ("phases", "warnings")
        }
        self._note(build, "", str(result.status), agent, report(result), short, actor=actor)
        await self._crew.spine.commit()
        return result

    async def remove(self, agent_id: str, *, actor: str = ACTOR) -> str:
        """Undo an agent's registration; its history stays. Says what became of it.

        Raises:
            HandoffError: there is no such agent.
            JournalError: it could not be recorded.
        """
        self._crew.registry.entry(agent_id)
        if not await self._builder().remove(agent_id):
            await self._crew.registry.remove(agent_id, reason="removed", actor=actor)
        await self._crew.graph_caught_up()
        if agent_id in self._crew.state.agents:
            return f"{agent_id} of the workspace is removed; the built-in one answers again"
        kept = " its versions are kept;" if await self.versions(agent_id) else ""
        return f"{agent_id} is removed;{kept} what runs goes on"

    async def again(self, agent_id: str) -> Wanted:
        """How an agent of the workspace is built once more: of its folder, with the type that was chosen.

        Raises:
            RegistrationError: it was built of none, or the folder is gone.
        """
        entry = self._crew.state.agents.get(agent_id)
        if entry is not None and entry.source.startswith(BUILT_IN):
            said = "comes with the program; build PATH builds a skill of your own that goes before it"
            raise RegistrationError(f"{agent_id} {said}")
        build = await asyncio.to_thread(read_build, self.places.agent(agent_id))
        if entry is None or entry.source != source_of(agent_id) or build is None:
            raise RegistrationError(f"{agent_id} was not built of a folder, so it cannot be built again")
        if not await asyncio.to_thread(Path(build.source).is_dir):
            where = clean_line(build.source, limit=200)
            raise RegistrationError(f"the folder of {agent_id} is gone: {where}; build PATH builds another")
        overrides = {"type": build.type} if build.type else {}
        return Wanted(Path(build.source), interactive=True, overrides=overrides)

    async def versions(self, agent_id: str) -> list[Version]:
        """Earlier versions of an agent, newest first."""
        return await self._builder().versions(agent_id)

    async def roll_back(self, agent_id: str, version: str = "") -> str:
        """Make an earlier version the one that answers; says which.

        Raises:
            RegistrationError: there is none, or it could not be registered.
        """
        await self.settled()
        await self.registrar.ready()
        spec = await self._builder().roll_back(agent_id, version)
        await self._crew.spine.commit()
        return f"{spec.id} {spec.version} answers again"

    async def watch(self, wanted: Wanted, told: Callable[[BuildResult], None]) -> None:
        """Build, and again after each burst of changes, until this is cancelled."""
        path = wanted.path.expanduser().absolute()
        folder = path if await asyncio.to_thread(path.is_dir) else path.parent
        stop = asyncio.Event()
        with contextlib.closing(_Setting(stop)):
            await watch(folder, lambda: self.build(wanted), told, stop)

    def _trusts(self, path: Path) -> bool:
        """Whether a folder lies where no agent can write."""
        return not path.resolve().is_relative_to(self._root.resolve())

    def _builder(self, told: Told = lambda _record: None, pace: Pace | None = None) -> Builder:
        registrar: Registrar = self.registrar
        tools = WorkspaceTools(self.places.workspace, self._root, self._policy, self._crew.ground.servers)
        return Builder(
            self.places.workspace,
            registrar=registrar,
            tools=tools,
            policy=self._policy,
            told=told,
            pace=pace,
        )

    # -------------------------------------------------------------- by the agent that builds

    async def phase(self, handoff: Handoff, number: int, decided: Mapping[str, str]) -> Built:
        """See `engine.crew.parts.Desk.build`; a build that was without what is decided is begun again.

        The task names the skill, or `path` in the handoff's metadata does.

        Raises:
            HandoffError: no skill is named.
        """
        steps = self._steps.get(handoff.id)
        if steps is None or steps.decided != decided:
            if steps is not None:
                await steps.close()
            named = handoff.context.metadata.get("path") or path_in(handoff.context.task_description)
            if not named:
                said = "the task names no skill: give the path of its folder"
                raise HandoffError(ErrorCode.CHECKPOINT, said)
            wanted = Wanted(
                Path(str(named)),
                trust=_trusted(handoff, decided),
                interactive=True,
                overrides={name: value for name, value in decided.items() if name not in (TRUSTED, TRIED)},
            )

            async def begin(told: Told, pace: Pace) -> BuildResult:
                return await self._built(wanted, told, actor=handoff.agent, pace=pace)

            steps = self._steps[handoff.id] = Steps(begin, decided)
        return _as_built(await steps.phase(number))

    def _ended(self, handoff: Handoff, _result: HandoffResult) -> None:
        if (steps := self._steps.pop(handoff.id, None)) is not None:
            self._crew.handoffs.own(steps.close(), f"build of {handoff.id}")

    # -------------------------------------------------------------- events

    def _new_id(self) -> str:
        return f"b-{len(self._crew.state.builds) + 1}"

    def _note(
        self,
        build: str,
        phase: str,
        state: str,
        agent: str,
        message: str,
        data: Mapping[str, Any] | None = None,
        *,
        actor: str = ACTOR,
    ) -> None:
        said = ce.BuildStaged(
            build=build,
            phase=phase,
            state=state,
            agent=agent,
            message=clean(message, limit=4_000),
            data=dict(data or {}),
        )
        self._crew.spine.append(said, actor=actor)
        self._crew.spine.log.commit_soon()


def _as_built(found: PhaseRecord | BuildResult) -> Built:
    if isinstance(found, PhaseRecord):
        said = "\n".join((phase_line(found), *map(str, found.findings)))
        return Built(found.passed, said, found.as_json())
    choice = found.choice
    asks, about = (choice.question, choice.key) if choice is not None else ("", "")
    options = choice.options if choice is not None else ()
    return Built(found.success, report(found), found.as_json(), asks, about, options)


def _trusted(handoff: Handoff, decided: Mapping[str, str]) -> bool | None:
    """Whether a skill is trusted: what another agent names is asked about in any case."""
    if TRUSTED in decided:
        return decided[TRUSTED] == "trust"
    return None if not handoff.caller else False


class _Setting:
    """Sets an event when it is closed."""

    def __init__(self, event: asyncio.Event) -> None:
        self.close = event.set
