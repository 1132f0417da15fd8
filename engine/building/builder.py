"""The builder: seven phases with checkpoints that can fail, from a skill to an agent (ontology spec §2)."""

from __future__ import annotations

import asyncio
import errno
import json
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from engine.agents.kinds import Tier
from engine.agents.spec import AgentSpec
from engine.building.assembly import ToolsAt
from engine.building.codegen import SKILL, generate, spec_sha256
from engine.building.findings import (
    BuildResult,
    CheckOutcome,
    Choice,
    Findings,
    Mode,
    PhaseRecord,
    Status,
)
from engine.building.folders import FolderRegistrar
from engine.building.locking import held
from engine.building.phases import PHASES, NeedsOperatorError, Surroundings, Work
from engine.building.registering import (
    Registrar,
    RegistrationError,
    Version,
    remove_agent,
    repair,
    roll_back,
    swap_in,
    versions_of,
)
from engine.building.request import BUILDER_VERSION, BUILT_IN, PROJECT, SANDBOX, USER, Request, source_of
from engine.building.resources import hashes
from engine.building.staging import (
    BUILD,
    Build,
    Places,
    clear_old,
    intact,
    read_build,
    read_files,
    remove_tree,
    set_read_only,
    write_files,
)
from engine.building.trying import try_files
from engine.building.workspace_tools import WorkspaceTools
from engine.sandbox import SandboxPolicy
from engine.sandbox.completion import to_the_end

_CODES = {errno.ENOSPC: "DISK_FULL", errno.EDQUOT: "DISK_FULL"}
_Phase = Callable[[Work, Findings], Awaitable[tuple[CheckOutcome, ...]]]


class Builder:
    """Builds agents of a workspace.

    Args:
        workspace: the directory; staging is `.builds`, agents are in `agents`.
        registrar: who knows the agents; the folders themselves where nobody is given.
        tools: what tools there are; those of the workspace where nobody is given.
        policy: of the sandbox in which generated code is tried.
        models: the configured model of each tier.
        told: called with each phase when it is over.
        pace: awaited before each phase, with its number; None goes on at once.
        now: the time, in seconds since 1970.
    """

    def __init__(
        self,
        workspace: Path,
        *,
        registrar: Registrar | None = None,
        tools: ToolsAt | None = None,
        policy: SandboxPolicy | None = None,
        models: Mapping[Tier, str] | None = None,
        told: Callable[[PhaseRecord], None] = lambda _record: None,
        pace: Callable[[int], Awaitable[None]] | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.places = Places(workspace.absolute())
        self.registrar = registrar or FolderRegistrar(self.places)
        self._policy = policy or SandboxPolicy()
        place = self.places.workspace
        tools = tools or WorkspaceTools(place, place / SANDBOX, self._policy)
        self._around = Surroundings(tools, self.registrar, models or {})
        self._told, self._pace, self._now = told, pace, now

    async def build(
        self,
        source: str | Path,
        *,
        mode: Mode | str = Mode.LENIENT,
        dry_run: bool = False,
        overrides: Mapping[str, Any] | None = None,
        interactive: bool = False,
        live: bool = False,
        scope: str = PROJECT,
        trusted: bool = True,
    ) -> BuildResult:
        """Build an agent; whatever goes wrong is in the result.

        Args:
            source: a skill's folder, its SKILL.md, or the text of one.
            mode: `lenient` as clients read, or `strict` as the standard's validator does.
            dry_run: everything but registering; nothing is left behind.
            overrides: parts of the spec that count above what the skill and its agent.yaml say; `mcp:
                optional` makes required servers optional.
            interactive: whether somebody is there to be asked.
            live: whether the first handoff uses the configured model.
            scope: `project` or `user`.
            trusted: whether the folder is trusted.

        Raises:
            asyncio.CancelledError: every process has ended, and there is no agent that was not there before.
        """
        request = Request(
            source_of(source), Mode(mode), dry_run, overrides or {}, interactive, live, scope, trusted
        )
        run = _Run(self, request)
        try:
            result = await run.whole()
        except asyncio.CancelledError:
            await to_the_end(asyncio.to_thread(remove_tree, run.staged))
            raise
        return result

    async def remove(self, agent_id: str) -> bool:
        """Undo an agent's registration; its history stays. Says whether there was one."""
        if not self.places.names(agent_id):
            return False
        async with held(self.places, agent_id):
            return await remove_agent(agent_id, self.places, self.registrar)

    async def versions(self, agent_id: str) -> list[Version]:
        """Earlier versions of an agent, newest first."""
        known = self.places.names(agent_id)
        return await asyncio.to_thread(versions_of, self.places, agent_id) if known else []

    async def roll_back(self, agent_id: str, version: str = "") -> AgentSpec:
        """Make an earlier version the one that answers.

        Raises:
            RegistrationError: there is none, or it could not be registered.
        """
        if not self.places.names(agent_id):
            raise RegistrationError(f"there is no agent {agent_id}")
        async with held(self.places, agent_id):
            return await roll_back(agent_id, version, self.places, self.registrar)

    async def repair(self) -> tuple[str, ...]:
        """Finish or undo what a process that died was registering; call it at the start."""
        return await repair(self.places, self.registrar)


class _Run:
    """One build."""

    def __init__(self, builder: Builder, request: Request) -> None:
        self._builder, self._request = builder, request
        self._places = builder.places
        self._work = Work(
            request.source, request.mode, request.overrides, request.interactive, builder._around
        )
        self._records: list[PhaseRecord] = []
        self._began = time.monotonic()
        self._files: dict[str, bytes] = {}
        self._written = False
        stamp = datetime.fromtimestamp(builder._now(), UTC).strftime("%Y%m%dT%H%M%S")
        self.staged = self._places.builds / f"b-{stamp}-{secrets.token_hex(4)}"

    async def whole(self) -> BuildResult:
        """All phases, as far as they pass."""
        try:
            if not await self._phase(*PHASES[0]):
                return self._result(Status.FAILED)
            self._ask_for_trust()
            async with held(self._places, self._work.agent_id):
                return await self._further()
        except NeedsOperatorError as error:
            return self._result(Status.NEEDS_OPERATOR, choice=error.choice)
        except OSError as error:
            found = Findings()
            words = f"the workspace cannot be used: {error.strerror or error}"
            where = str(error.filename or self._places.workspace)
            found.error(_CODES.get(error.errno or 0, "IO"), words, where, "it has to be a place to write to")
            self._record("workspace", False, (), found, time.monotonic())
            return self._result(Status.FAILED)

    def _ask_for_trust(self) -> None:
        if not self._request.trusted:
            question = f"{self._request.source} is a folder that others can write to. Trust this skill?"
            raise NeedsOperatorError(Choice(question, ("trust", "abort"), "trusted"))

    async def _further(self) -> BuildResult:
        await self._look_at_former()
        if (same := await self._up_to_date()) is not None:
            return same
        for name, phase in (*PHASES[1:], ("code generation", self._generate)):
            if not await self._phase(name, phase):
                return await self._failed()
        if self._request.dry_run:
            await asyncio.to_thread(remove_tree, self.staged)
            return self._result(Status.DRY_RUN)
        if not await self._phase("registration", self._register):
            return await self._failed()
        return self._result(Status.BUILT, output=self._places.agent(self._work.agent_id))

    async def _failed(self) -> BuildResult:
        """Staging is kept for inspection, save where the disk is full."""
        full = any(one.code == "DISK_FULL" for record in self._records for one in record.findings)
        if full or not self._written:
            await asyncio.to_thread(remove_tree, self.staged)
        there = await asyncio.to_thread(self.staged.exists)
        return self._result(Status.FAILED, output=self.staged if there else None)

    async def _phase(self, name: str, phase: _Phase) -> bool:
        """Run a phase and record it; whatever it raises is a finding."""
        if self._builder._pace is not None:
            await self._builder._pace(len(self._records) + 1)
        found, began = Findings(), time.monotonic()
        checks: tuple[CheckOutcome, ...] = ()
        try:
            checks = await phase(self._work, found)
        except OSError as error:
            code = _CODES.get(error.errno or 0, "IO")
            where = str(error.filename or self._places.workspace)
            hint = "make room, and build again" if code == "DISK_FULL" else "it has to be a place to write to"
            found.error(code, error.strerror or str(error), where, hint)
        except NeedsOperatorError:
            self._record(name, False, checks, found, began)
            raise
        except Exception as error:  # noqa: BLE001 - a fault of ours ends a build, not the cockpit
            found.error("INTERNAL", f"{type(error).__name__}: {error}", hint="this is a fault of the builder")
        passed = not found.errors and all(one.passed for one in checks)
        if not passed and not found.errors:
            wrong = ", ".join(one.name for one in checks if not one.passed)
            found.error("CHECKPOINT", f"the checkpoint does not pass: {wrong}")
        self._record(name, passed, checks, found, began)
        return passed

    def _record(
        self, name: str, passed: bool, checks: tuple[CheckOutcome, ...], found: Findings, began: float
    ) -> None:
        record = PhaseRecord(
            len(self._records) + 1, name, passed, checks, tuple(found.all), time.monotonic() - began
        )
        self._records.append(record)
        self._builder._told(record)

    # ------------------------------------------------------------------ what is there already

    async def _look_at_former(self) -> None:
        work = self._work
        work.former = await self._builder.registrar.resolve(work.agent_id)
        build = await asyncio.to_thread(read_build, self._places.agent(work.agent_id))
        if work.former is not None and work.former.metadata.source == BUILT_IN and build is None:
            work.former = None  # the workspace's own agent has versions of its own
        work.former_sha256 = build.source_sha256 if build else ""

    async def _up_to_date(self) -> BuildResult | None:
        """The agent that is there, when it is what this build would make, or goes before it."""
        work, request = self._work, self._request
        agent = self._places.agent(work.agent_id)
        build = await asyncio.to_thread(read_build, agent)
        if build is None or work.former is None or work.skill is None:
            return None
        shadowed = build.scope == PROJECT and request.scope == USER
        if not shadowed and not await self._same(build, agent):
            return None
        if shadowed:
            found = Findings()
            words = f"the project's skill of this name is built; the user's, {request.source}, is passed over"
            found.warn("SHADOWED", words)
            self._records[0] = replace(self._records[0], findings=(*self._records[0].findings, *found.all))
        work.spec = work.former
        self._files = {
            path: text.encode() for path, text in (await asyncio.to_thread(read_files, agent)).items()
        }
        return self._result(Status.UP_TO_DATE, output=agent)

    async def _same(self, build: Build, agent: Path) -> bool:
        work = self._work
        if (build.source_sha256, build.builder_version, build.overrides_sha256) != (
            work.skill.source_sha256 if work.skill else "",
            BUILDER_VERSION,
            self._request.overrides_sha256,
        ):
            return False
        healthy = work.former is not None and spec_sha256(work.former) == build.spec_sha256
        return healthy and await asyncio.to_thread(intact, agent, build)

    # ------------------------------------------------------------------ phases 6 and 7

    async def _generate(self, work: Work, found: Findings) -> tuple[CheckOutcome, ...]:
        """Phase 6: files, tried in the sandbox. Checks compiles and tests_pass."""
        if work.spec is None or work.skill is None or work.folder is None:
            raise RuntimeError("a phase ran before the spec was there")
        self._files = generate(work.spec, work.skill, work.folder, found)
        if found.errors:
            return ()
        await to_the_end(asyncio.to_thread(self._stage, work))
        tried = await try_files(self._files, self._places.builds, self._builder._policy, found)
        if tried.output:
            await asyncio.to_thread(write_files, self.staged, {"tests.log": tried.output.encode()})
        return tried.compiles, tried.tests_pass

    def _stage(self, work: Work) -> None:
        assert work.folder is not None
        clear_old(self._places, self._builder._now())
        run = {f"{SKILL}/{path}" for path in work.folder.executable}
        self._written = True
        write_files(self.staged, self._files, run)

    async def _register(self, work: Work, found: Findings) -> tuple[CheckOutcome, ...]:
        """Phase 7: swapped in, registered, proved. Checks registered and e2e_passes."""
        spec = work.spec
        if spec is None:
            raise RuntimeError("a phase ran before the spec was there")
        await to_the_end(asyncio.to_thread(self._seal, spec))
        try:
            proof = await swap_in(
                self.staged, spec, self._places, self._builder.registrar, live=self._request.live
            )
        except RegistrationError as error:
            found.error("NOT_REGISTERED", str(error), hint="the former version is back")
            return ()
        return (
            CheckOutcome("registered", True, f"{spec.id} {spec.version}"),
            CheckOutcome("e2e_passes", proof.passed, proof.message),
        )

    def _seal(self, spec: AgentSpec) -> None:
        """Write BUILD.json and take the right to write from the skill's copy."""
        work, request = self._work, self._request
        assert work.folder is not None
        assert work.decision is not None
        built = datetime.fromtimestamp(self._builder._now(), UTC).isoformat()
        said = {
            "agent": spec.id,
            "version": spec.version,
            "builder_version": BUILDER_VERSION,
            "source_sha256": work.folder.sha256,
            "overrides_sha256": request.overrides_sha256,
            "spec_sha256": spec_sha256(spec),
            "files": hashes(self._files.items()),
            "phases": [record.as_json() for record in self._records],
            "type": work.decision.as_json(),
            "license": spec.metadata.license,
            "scope": request.scope,
            "source": work.folder.source,
            "built_at": built,
        }
        text = json.dumps(said, indent=2, sort_keys=True) + "\n"
        write_files(self.staged, {BUILD: text.encode()})
        set_read_only(self.staged / SKILL)

    def _result(
        self, status: Status, *, output: Path | None = None, choice: Choice | None = None
    ) -> BuildResult:
        texts = {
            path: data.decode("utf-8")
            for path, data in self._files.items()
            if not path.startswith(f"{SKILL}/")
        }
        return BuildResult(
            status,
            self._work.spec,
            texts,
            str(output) if output else "",
            tuple(self._records),
            tuple(one for record in self._records for one in record.findings),
            choice,
            time.monotonic() - self._began,
        )
