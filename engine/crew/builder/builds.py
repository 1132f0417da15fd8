"""Runs the builds of an open workspace: each phase is an event, and the agent is registered with the crew.

For the agent that builds agents, a build goes one phase at a time, as that agent passes its checkpoints.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from engine.core import crew as ce
from engine.core.text import clean, clean_line
from engine.crew.builder.agent_base import AgentFolderError, read_agent
from engine.crew.builder.agent_folders import SkillFolders
from engine.crew.builder.builder import Builder
from engine.crew.builder.built_in_agents import (
    BuiltInAgentError,
    BuiltInAgents,
    CrewRegistrar,
    source_of,
    without_file_text,
)
from engine.crew.builder.findings import (
    BUILT_IN,
    BuildResult,
    PendingBuild,
    PhaseRecord,
    build_report,
    phase_line,
)
from engine.crew.builder.generated_code import spec_sha256
from engine.crew.builder.proof import ACTOR, Prover
from engine.crew.builder.registration import (
    BuildPaths,
    RegistrationError,
    Version,
    intact,
    pending,
    read_build,
)
from engine.crew.builder.skill_folder import watch
from engine.crew.builder.tools import WorkspaceTools
from engine.crew.crew import Crew
from engine.crew.ontology.kinds import ErrorCode
from engine.crew.ontology.results import HandoffResult
from engine.crew.ports import BuildPhaseResult, HandoffError
from engine.crew.state import Handoff
from engine.sandbox.policy import SandboxPolicy

_QUOTED = re.compile(r"[`'\"“]([^`'\"”\n]{1,1000})[`'\"”]")
_PATH = re.compile(r"(?:^|(?<=\s))(~?\.{0,2}/\S+|[\w.-]+(?:/[\w.-]+)+/?|\S*SKILL\.md)", re.I)


def path_in_task(task: str) -> str:
    """The path that a task names; empty where it names none. In quotes it may have blanks."""
    for quoted in _QUOTED.finditer(task):
        if "/" in quoted[1] or quoted[1].lower().endswith("skill.md"):
            return quoted[1].strip()
    path = _PATH.search(task)
    return path[1].rstrip(".,;:!?)") if path else ""


class StepwiseBuild:
    """A build under way.

    Args:
        begin: builds; it reports each phase, and waits before each until it may begin.
        decided: what the operator had decided when it began.
    """

    def __init__(
        self,
        begin: Callable[
            [Callable[[PhaseRecord], None], Callable[[int], Awaitable[None]]], Awaitable[BuildResult]
        ],
        decided: Mapping[str, str],
    ) -> None:
        self.decided = dict(decided)
        self._records: list[PhaseRecord] = []
        self._leave = 0
        self._news = asyncio.Event()
        self._task = asyncio.ensure_future(begin(self._told, self._pace))
        self._task.add_done_callback(lambda _task: self._tell())

    async def phase(self, number: int) -> PhaseRecord | BuildResult:
        """Let the build go on up to a phase; its record, or the result where there is no such phase.

        A cancellation of who waits leaves the build where it is.
        """
        self._leave = max(self._leave, number)
        self._tell()
        while len(self._records) < number and not self._task.done():
            await self._news.wait()
        last = number > len(self._records) or not self._records[number - 1].passed
        if last or number == _LAST:
            return await asyncio.shield(self._task)
        return self._records[number - 1]

    async def close(self) -> None:
        """End it where it has not ended; nothing of it runs afterwards."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    def _told(self, record: PhaseRecord) -> None:
        self._records.append(record)
        self._tell()

    async def _pace(self, number: int) -> None:
        while number > self._leave:
            await self._news.wait()

    def _tell(self) -> None:
        news, self._news = self._news, asyncio.Event()
        news.set()


_LAST = 7
"""The phase after which there is a result."""


TRUSTED = "trusted"
"""What the operator is asked about a folder (`Choice.key`)."""
TRIED = "tried"
"""How often the operator had a build begun again."""
ProgressListener = Callable[[PhaseRecord], None]
Pace = Callable[[int], Awaitable[None]]


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
        self.places = BuildPaths(crew.engine.workspace.absolute())
        self.prover = Prover(crew, thinks=thinks)
        self.shipped = BuiltInAgents()
        self.registrar = CrewRegistrar(crew, self.prover, self.shipped)
        self.troubles: dict[str, str] = {}
        """Why built-in agents or agents of the workspace are not there, by id."""
        self._steps: dict[str, StepwiseBuild] = {}
        self._repairing: asyncio.Task[None] | None = None
        crew.handoffs.moves.ended.append(self._ended)

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
            if self._crew.engine.crew_settings.built_ins:
                await self.shipped.register(self._crew, taken)
        except BuiltInAgentError as error:
            self.troubles[BUILT_IN] = clean_line(str(error), limit=500)
        await self._crew.stream.commit()

    def begin(self) -> None:
        """Finish or undo what a process that died was registering, and end its proofs."""
        state = self._crew.state
        proofs = [handoff.id for handoff in state.open() if handoff.proof and not handoff.context.parent_id]
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
            await self._crew.handoffs.endings.cancel(name, "the process that proved it ended", actor=ACTOR)
        for line in await self._builder().repair():
            self._note(self._new_id(), "registration", "repaired", line.partition(" ")[0].rstrip(":"), line)
        await self._crew.stream.commit()

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
        now = (
            spec_sha256(without_file_text(known.spec)) if known is not None and known.source == source else ""
        )
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
        self, request: PendingBuild, on_phase: ProgressListener = lambda _record: None, *, actor: str = ACTOR
    ) -> BuildResult:
        """Build an agent; each phase is an event, and whatever goes wrong is in the result.

        Raises:
            asyncio.CancelledError: nothing of it runs, and there is no agent that was not there before.
            JournalError: it could not be recorded.
        """
        return await self._built(request, on_phase, actor=actor)

    async def _built(
        self, request: PendingBuild, on_phase: ProgressListener, *, actor: str, pace: Pace | None = None
    ) -> BuildResult:
        await self.settled()
        build, path = self._new_id(), request.path.expanduser().absolute()
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
            result = await self._builder(noted, pace).build(replace(request, path=path, trust=trust))
        except asyncio.CancelledError:
            self._note(build, "", "cancelled", "", "it was cancelled; nothing of it is left", actor=actor)
            raise
        agent = result.spec.id if result.spec is not None else ""
        short = {
            name: value for name, value in result.as_json().items() if name not in ("phases", "warnings")
        }
        self._note(build, "", str(result.status), agent, build_report(result), short, actor=actor)
        await self._crew.stream.commit()
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
        if agent_id in self._crew.state.agents:
            return f"{agent_id} of the workspace is removed; the built-in one answers again"
        kept = " its versions are kept;" if await self.versions(agent_id) else ""
        return f"{agent_id} is removed;{kept} what runs goes on"

    async def again(self, agent_id: str) -> PendingBuild:
        """How an agent of the workspace is built once more: of its folder, with the type that was chosen.

        Raises:
            RegistrationError: it was built of none, or the folder is gone.
        """
        entry = self._crew.state.agents.get(agent_id)
        if entry is not None and entry.source.startswith(BUILT_IN):
            message = "comes with the program; build PATH builds a skill of your own that goes before it"
            raise RegistrationError(f"{agent_id} {message}")
        build = await asyncio.to_thread(read_build, self.places.agent(agent_id))
        if entry is None or entry.source != source_of(agent_id) or build is None:
            raise RegistrationError(f"{agent_id} was not built of a folder, so it cannot be built again")
        if not await asyncio.to_thread(Path(build.source).is_dir):
            where = clean_line(build.source, limit=200)
            raise RegistrationError(f"the folder of {agent_id} is gone: {where}; build PATH builds another")
        overrides = {"type": build.type} if build.type else {}
        return PendingBuild(Path(build.source), interactive=True, overrides=overrides)

    async def versions(self, agent_id: str) -> list[Version]:
        """Earlier versions of an agent, newest first."""
        return await self._builder().versions(agent_id)

    async def roll_back(self, agent_id: str, version: str = "") -> str:
        """Make an earlier version the one that answers; says which.

        Raises:
            RegistrationError: there is none, or it could not be registered.
        """
        await self.settled()
        spec = await self._builder().roll_back(agent_id, version)
        await self._crew.stream.commit()
        return f"{spec.id} {spec.version} answers again"

    async def watch(self, request: PendingBuild, on_result: Callable[[BuildResult], None]) -> None:
        """Build, and again after each burst of changes, until this is cancelled."""
        path = request.path.expanduser().absolute()
        folder = path if await asyncio.to_thread(path.is_dir) else path.parent
        stop = asyncio.Event()
        try:
            await watch(folder, lambda: self.build(request), on_result, stop)
        finally:
            stop.set()

    def _trusts(self, path: Path) -> bool:
        """Whether a folder lies where no agent can write."""
        return not path.resolve().is_relative_to(self._root.resolve())

    def _builder(
        self, on_phase: ProgressListener = lambda _record: None, pace: Pace | None = None
    ) -> Builder:
        tools = WorkspaceTools(self.places.workspace, self._root, self._policy, self._crew.engine.servers)
        return Builder(
            self.places.workspace,
            registrar=self.registrar,
            tools=tools,
            policy=self._policy,
            on_phase=on_phase,
            pace=pace,
        )

    # -------------------------------------------------------------- by the agent that builds

    async def phase(self, handoff: Handoff, number: int, decided: Mapping[str, str]) -> BuildPhaseResult:
        """See `engine.crew.ports.RunService.build`; a build that was without what is decided is begun again.

        The task names the skill, or `path` in the handoff's metadata does.

        Raises:
            HandoffError: no skill is named.
        """
        steps = self._steps.get(handoff.id)
        if steps is None or steps.decided != decided:
            if steps is not None:
                await steps.close()
            named = handoff.context.metadata.get("path") or path_in_task(handoff.context.task_description)
            if not named:
                message = "the task names no skill: give the path of its folder"
                raise HandoffError(ErrorCode.CHECKPOINT, message)
            request = PendingBuild(
                Path(str(named)),
                trust=_trusted(handoff, decided),
                interactive=True,
                overrides={name: value for name, value in decided.items() if name not in (TRUSTED, TRIED)},
            )

            async def begin(on_phase: ProgressListener, pace: Pace) -> BuildResult:
                return await self._built(request, on_phase, actor=handoff.agent, pace=pace)

            steps = self._steps[handoff.id] = StepwiseBuild(begin, decided)
        return _as_built(await steps.phase(number))

    def _ended(self, handoff: Handoff, _result: HandoffResult) -> None:
        if (steps := self._steps.pop(handoff.id, None)) is not None:
            self._crew.handoffs.moves.own(steps.close(), f"build of {handoff.id}")

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
        event = ce.BuildStaged(
            build=build,
            phase=phase,
            state=state,
            agent=agent,
            message=clean(message, limit=4_000),
            data=dict(data or {}),
        )
        self._crew.stream.append(event, actor=actor)
        self._crew.stream.log.commit_soon()


def _as_built(progress: PhaseRecord | BuildResult) -> BuildPhaseResult:
    if isinstance(progress, PhaseRecord):
        message = "\n".join((phase_line(progress), *map(str, progress.findings)))
        return BuildPhaseResult(progress.passed, message, progress.as_json())
    choice = progress.choice
    asks, about = (choice.question, choice.key) if choice is not None else ("", "")
    options = choice.options if choice is not None else ()
    return BuildPhaseResult(
        progress.success, build_report(progress), progress.as_json(), asks, about, options
    )


def _trusted(handoff: Handoff, decided: Mapping[str, str]) -> bool | None:
    """Whether a skill is trusted: what another agent names is asked about in any case."""
    if TRUSTED in decided:
        return decided[TRUSTED] == "trust"
    return None if not handoff.caller else False


def builds_of(crew: Crew) -> Builds | None:
    """What builds the agents of a crew; None where none are built."""
    return crew.builds if isinstance(crew.builds, Builds) else None


async def plug_in(crew: Any) -> None:
    """Let a crew build agents, and have the built-in ones."""
    engine = crew.engine
    builds = crew.builds = Builds(crew, engine.root, engine.config.policy, thinks=engine.model is not None)
    engine.script_proofs(builds.prover.scripted)
    crew.service.build_phase = builds.phase
    crew.service.skills = SkillFolders(builds.places)
    engine.let_read(crew.service.skill_folder)
    await builds.open()
