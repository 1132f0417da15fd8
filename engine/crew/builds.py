"""Runs the builds of an open workspace, and registers agents with the crew by events.

Each phase of a build is an event. A built-in agent is a skill of the package, read in memory by the first
five phases of a build; nothing is written for it but the event that registers it, and it is registered anew
when its skill has changed. An agent of the workspace with the same id takes precedence.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from engine.core import crew as ce
from engine.core.reasons import Reason
from engine.core.text import clean, clean_line
from engine.core.trust import CHANGED
from engine.crew.builder.builder import Builder
from engine.crew.builder.findings import (
    BUILDER_VERSION,
    BUILT_IN,
    BuildResult,
    Findings,
    PendingBuild,
    PhaseRecord,
    Status,
    build_report,
    phase_line,
)
from engine.crew.builder.model_reading import read_with_model
from engine.crew.builder.phases import PHASES, BuildState, run_phase
from engine.crew.builder.registration import (
    AgentFolderError,
    RegistrationError,
    intact,
    read_agent,
    read_build,
    read_instructions,
    repair,
    spec_sha256,
)
from engine.crew.builder.skill import read_folder
from engine.crew.crew import Crew
from engine.crew.ontology.kinds import ErrorCode
from engine.crew.ontology.spec import AgentSpec
from engine.crew.ports import HandoffError
from engine.crew.run_service import BUILT
from engine.crew.state import Registered
from engine.planning.library.plan_library import shipped_agents
from engine.value import dataclass, replace

ACTOR = "builder"
BEFORE_BUILT_IN = "it goes before the built-in agent of this id"


def source_of(agent_id: str) -> str:
    """What an agent of the workspace is registered as."""
    return f"{BUILT}{agent_id}"


def with_file_text(spec: AgentSpec, text: str) -> AgentSpec:
    """A spec with the text of its file in it, so that what counts stands in the journal."""
    return spec.model_copy(update={"instructions": spec.instructions.model_copy(update={"system": text})})


def without_file_text(spec: AgentSpec) -> AgentSpec:
    """A registered spec as agent.yaml says it, whose text is a file."""
    return with_file_text(spec, "") if spec.instructions.system_file else spec


class CrewRegistrar:
    """Registers agents with a crew (`engine.crew.builder.registration.Registrar`).

    Args:
        crew: the crew.
        shipped: the built-in agents, which are there again where the workspace's own one goes.
    """

    def __init__(self, crew: Crew, shipped: BuiltInAgents) -> None:
        self._crew, self._shipped = crew, shipped
        self._former: dict[str, Registered] = {}
        """What an agent was that has no folder and is being replaced."""

    async def resolve(self, agent_id: str) -> AgentSpec | None:
        """See `Registrar.resolve`."""
        entry = self._crew.state.agents.get(agent_id)
        return without_file_text(entry.spec) if entry is not None else None

    async def register(self, spec: AgentSpec, folder: Path) -> None:
        """See `Registrar.register`."""
        source = source_of(spec.id)
        before = self._crew.state.agents.get(spec.id)
        if before is not None and before.source != source:
            self._former[spec.id] = before
        warnings = (BEFORE_BUILT_IN,) if spec.id in await self._shipped.ids() else ()
        try:
            text = await asyncio.to_thread(read_instructions, folder, spec)
            await self._crew.registry.register(
                with_file_text(spec, text), source=source, actor=ACTOR, warnings=warnings
            )
        except (AgentFolderError, HandoffError) as error:
            raise RegistrationError(str(error)) from error

    async def remove(self, agent_id: str) -> None:
        """See `Registrar.remove`; what was there before the agent had a folder is there again."""
        former = self._former.pop(agent_id, None)
        now = self._crew.state.agents.get(agent_id)
        if now is None:
            return
        if former is not None:
            await self._crew.registry.register(former.spec, source=former.source, actor=ACTOR)
        elif now.source == source_of(agent_id) and (built_in := await self._shipped.get(agent_id)):
            await self._crew.registry.register(built_in.spec, source=built_in.source, actor=ACTOR)
        else:
            await self._crew.registry.remove(agent_id, reason=Reason("registry.undone"), actor=ACTOR)


class BuiltInAgentError(Exception):
    """A skill of the package makes no agent; the message says why. It is a fault of ours."""


@dataclass(frozen=True, slots=True)
class BuiltInAgent:
    """A built-in agent."""

    spec: AgentSpec
    """With its whole text."""
    source: str
    """`built-in`, and the hash of its skill."""


async def _asked_later(server: str, tools: Sequence[str]) -> str:
    """Whether servers are up is asked when a handoff is admitted."""
    return ""


_MADE: dict[tuple[Path, str], BuiltInAgent] = {}
"""Agents by the folder and the hash of their skill: they are the same for every crew of the process."""


async def built_in_agent(folder: Path) -> BuiltInAgent:
    """The agent of a shipped skill; made once as long as the skill stays the same.

    Raises:
        BuiltInAgentError: it makes none.
    """
    files = await asyncio.to_thread(read_folder, folder, Findings())
    key = (folder, files.sha256 if files is not None else "")
    if key not in _MADE:
        _MADE[key] = await _made(folder)
    return _MADE[key]


async def _made(folder: Path) -> BuiltInAgent:
    work = BuildState(PendingBuild(folder), _asked_later)
    for name, phase in PHASES:
        findings = Findings()
        checks = await run_phase(phase, work, findings)
        if findings.errors or not all(result.passed for result in checks):
            message = "; ".join(map(str, findings.errors)) or "its checkpoint does not pass"
            raise BuiltInAgentError(f"{folder.name}: {name}: {message}")
    assert work.spec is not None
    spec = with_file_text(work.spec, work.skill.body.decode("utf-8"))
    spec = spec.model_copy(update={"metadata": spec.metadata.model_copy(update={"source": BUILT_IN})})
    return BuiltInAgent(spec, _source(work.skill.source_sha256))


def _source(sha256: str) -> str:
    return f"{BUILT_IN} {BUILDER_VERSION}-{sha256[:16]}"


class BuiltInAgents:
    """The built-in agents of the package."""

    def __init__(self) -> None:
        self._folders: dict[str, Path] = {}

    async def ids(self) -> tuple[str, ...]:
        """Their ids: the names of their folders."""
        if not self._folders:
            folders = await asyncio.to_thread(shipped_agents)
            self._folders = {folder.name: folder for folder in folders}
        return tuple(self._folders)

    async def get(self, agent_id: str) -> BuiltInAgent | None:
        """One of them; None for an id that none has.

        Raises:
            BuiltInAgentError: its skill makes no agent.
        """
        return await built_in_agent(self._folders[agent_id]) if agent_id in await self.ids() else None

    async def register(self, crew: Crew, taken: Collection[str]) -> None:
        """Register those that are not registered as their skills are now; no other skill is built.

        Args:
            crew: with whom.
            taken: ids that the workspace has agents of its own for.

        Raises:
            JournalError: it could not be recorded.
            BuiltInAgentError: a skill makes no agent.
        """
        ids = await self.ids()
        for name, entry in list(crew.state.agents.items()):
            if entry.source.startswith(BUILT_IN) and name not in ids:
                await crew.registry.remove(name, reason=Reason("registry.unshipped"))
        for name in ids:
            known, removed = crew.state.agents.get(name), crew.state.removed.get(name, "")
            others = known is not None and not known.source.startswith(BUILT_IN)
            if name in taken or others or removed.startswith(BUILT_IN):
                continue
            files = await asyncio.to_thread(read_folder, self._folders[name], Findings())
            now = _source(files.sha256) if files is not None else ""
            if known is None or known.source != now:
                made = await self.get(name)
                assert made is not None
                await crew.registry.register(made.spec, source=made.source, expected=self._folders)


ProgressListener = Callable[[PhaseRecord], None]


class Builds:
    """Builds agents and knows the built-in ones.

    Args:
        crew: registers them.
        root: the sandbox root.
    """

    def __init__(self, crew: Crew, root: Path) -> None:
        self._crew, self._root = crew, root
        self.shipped = BuiltInAgents()
        self.registrar = CrewRegistrar(crew, self.shipped)
        workspace = crew.engine.workspace.absolute()
        model = crew.engine.model
        ask = partial(read_with_model, model, crew.engine.model_name) if model is not None else None
        self._builder = Builder(workspace, registrar=self.registrar, lacks=crew.lacks, ask=ask)
        self.places = self._builder.places
        self.troubles: dict[str, str] = {}
        """Why built-in agents or agents of the workspace are not there, by id."""

    # -------------------------------------------------------------- life

    async def open(self) -> None:
        """Register the built-in agents and those that lie in the workspace.

        Raises:
            JournalError: it could not be recorded.
        """
        for build in self._crew.state.builds.values():
            if not build.over:
                why = "the session ended before it did"
                self._note(build.id, build.phase, "interrupted", build.agent, why)
        await asyncio.to_thread(repair, self.places)
        taken = await self._trusted(await asyncio.to_thread(self.places.ids))
        for agent_id in taken:
            if wrong := await self._taken_in(agent_id):
                self.troubles[agent_id] = clean_line(wrong, limit=500)
        try:
            if self._crew.engine.crew_settings.built_ins:
                await self.shipped.register(self._crew, taken)
        except BuiltInAgentError as error:
            self.troubles[BUILT_IN] = clean_line(str(error), limit=500)
        await self._crew.stream.commit()

    async def _trusted(self, there: Collection[str]) -> tuple[str, ...]:
        """The agents of the folder that its user trusts; others, and a foreign journal's, do no work."""
        trust = self._crew.engine.trust
        if trust is None:
            return tuple(there)
        counts = [each for each in there if await asyncio.to_thread(trust.admits_tree, f"{BUILT}{each}")]
        for name, entry in list(self._crew.state.agents.items()):
            if entry.source == source_of(name) and name not in counts:
                await self._crew.registry.remove(name, reason=Reason("registry.untrusted"))
            elif trust.foreign and entry.enabled and not entry.source.startswith(BUILT):
                await self._crew.registry.enable(name, enabled=False)
        if trust.restricted:
            return tuple(counts)
        self.troubles |= {each: CHANGED for each in there if each not in counts}
        return tuple(counts)

    async def _taken_in(self, agent_id: str) -> str:
        """Register an agent of the workspace that was built where no crew was; what is wrong with it."""
        folder, source = self.places.agent(agent_id), source_of(agent_id)
        if self._crew.state.removed.get(agent_id) == source:
            return ""
        build = await asyncio.to_thread(read_build, folder)
        known = self._crew.state.agents.get(agent_id)
        now = known.spec if known is not None and known.source == source else None
        if build and now is not None and spec_sha256(without_file_text(now)) == build.spec_sha256:
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
        self, request: PendingBuild, on_phase: ProgressListener = lambda _record: None, *, actor: str = ACTOR
    ) -> BuildResult:
        """Build an agent; each phase is an event, and whatever goes wrong is in the result.

        Raises:
            asyncio.CancelledError: nothing of it runs, and there is no agent that was not there before.
            JournalError: it could not be recorded.
        """
        build, path = f"b-{len(self._crew.state.builds) + 1}", request.path.expanduser().absolute()
        self._note(build, "", "begun", "", str(path), actor=actor)

        def noted(record: PhaseRecord) -> None:
            fields = {**record.as_json(), "duration_seconds": round(record.duration_seconds, 3)}
            state = "passed" if record.passed else "failed"
            self._note(build, record.name, state, "", phase_line(record), fields, actor=actor)
            on_phase(record)

        try:
            trust = request.trust
            if trust is None:
                trust = await asyncio.to_thread(self._trusts, path)
            result = await self._builder.build(replace(request, path=path, trust=trust), noted)
            if result.status is Status.BUILT and result.spec is not None:
                await self._placed(result.spec.id)
        except asyncio.CancelledError:
            self._note(build, "", "cancelled", "", "it was cancelled; nothing of it is left", actor=actor)
            raise
        agent = result.spec.id if result.spec is not None else ""
        short = result.as_json()
        del short["phases"], short["warnings"]
        self._note(build, "", str(result.status), agent, build_report(result), short, actor=actor)
        await self._crew.stream.commit()
        return result

    async def add(self, path: Path, *, actor: str = ACTOR) -> str:
        """See `CrewBuilds.add`."""
        result = await self.build(PendingBuild(path), actor=actor)
        if result.status not in (Status.BUILT, Status.UP_TO_DATE):
            raise HandoffError(ErrorCode.BAD_CONTEXT, f"{path.name}: {build_report(result)}")
        return build_report(result)

    async def remove(self, agent_id: str, *, actor: str = ACTOR) -> str:
        """Undo an agent's registration; its history stays. Returns the result in words.

        Raises:
            HandoffError: there is no such agent.
            JournalError: it could not be recorded.
        """
        self._crew.registry.entry(agent_id)
        removed = await self._builder.remove(agent_id)
        await self._placed(agent_id)
        if not removed:
            await self._crew.registry.remove(agent_id, reason=Reason("registry.removed"), actor=actor)
        if agent_id in self._crew.state.agents:
            return f"{agent_id} of the workspace is removed; the built-in one answers again"
        return f"{agent_id} is removed; what runs continues"

    async def _placed(self, agent_id: str) -> None:
        """What the user had built, or removed, is trusted as it is now."""
        if (trust := self._crew.engine.trust) is not None:
            await asyncio.to_thread(trust.wrote_tree, f"{BUILT}{agent_id}")

    def _trusts(self, path: Path) -> bool:
        """Whether a folder lies where no agent can write."""
        return not path.resolve().is_relative_to(self._root.resolve())

    # -------------------------------------------------------------- events

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
        message, held = clean(message, limit=4_000), dict(data or {})
        event = ce.BuildStaged(build=build, phase=phase, state=state, agent=agent, message=message, data=held)
        self._crew.stream.append(event, actor=actor)
        self._crew.stream.log.commit_soon()


def builds_of(crew: Crew) -> Builds | None:
    """What builds the agents of a crew; None where none are built."""
    return crew.builds if isinstance(crew.builds, Builds) else None


async def plug_in(crew: Any) -> None:
    """Let a crew build agents, and have the built-in ones."""
    engine = crew.engine
    builds = crew.builds = Builds(crew, engine.root)
    crew.service.skills = builds.places
    engine.allow_reading(crew.service.skill_folder)
    await builds.open()
