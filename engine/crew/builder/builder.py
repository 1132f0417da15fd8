"""Builds an agent of a skill in seven phases, each with a checkpoint that can fail.

One build of an agent runs at a time, in this process and in others.
"""

from __future__ import annotations

import asyncio
import errno
import fcntl
import json
import os
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from engine.crew.builder import registration
from engine.crew.builder.agent_files import SKILL, agent_files, read_agent, spec_sha256
from engine.crew.builder.findings import (
    BUILDER_VERSION,
    BUILT_IN,
    PROJECT,
    BuildResult,
    CheckOutcome,
    Choice,
    Findings,
    PendingBuild,
    PhaseRecord,
    Status,
)
from engine.crew.builder.phases import PHASES, BuildState, NeedsOperatorError
from engine.crew.builder.registration import BUILD, Build, BuildPaths, Registrar, RegistrationError, Version
from engine.crew.builder.skill import slug
from engine.crew.builder.skill_folder import hashes
from engine.crew.builder.tools import WorkspaceTools
from engine.crew.ontology.spec import AgentSpec
from engine.sandbox.completion import run_to_completion

_AGAIN_S = 0.05


@asynccontextmanager
async def build_lock(places: BuildPaths, agent_id: str) -> AsyncIterator[None]:
    """Wait until no other process builds this agent; the lock goes with the process that has it."""
    places.builds.mkdir(parents=True, exist_ok=True)
    path = places.builds / f"{slug(agent_id) or 'agent'}.lock"
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                await asyncio.sleep(_AGAIN_S)
        yield
    finally:
        os.close(lock)


_Phase = Callable[[BuildState, Findings], Awaitable[tuple[CheckOutcome, ...]]]


class Builder:
    """Builds agents of a workspace.

    Args:
        workspace: the directory; staging is `.builds`, agents are in `agents`.
        registrar: who knows the agents.
        tools: what tools there are.
        on_phase: called with each phase when it is over.
        now: the time, in seconds since 1970.
    """

    def __init__(
        self,
        workspace: Path,
        *,
        registrar: Registrar,
        tools: WorkspaceTools,
        on_phase: Callable[[PhaseRecord], None] = lambda _record: None,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.places = BuildPaths(workspace.absolute())
        self.registrar = registrar
        self._tools = tools
        self._told, self._now = on_phase, now

    async def build(self, request: PendingBuild) -> BuildResult:
        """Build an agent; whatever goes wrong is in the result.

        Raises:
            asyncio.CancelledError: every process has ended, and there is no agent that was not there before.
        """
        run = _Run(self, request)
        try:
            result = await run.whole()
        except asyncio.CancelledError:
            await run_to_completion(asyncio.to_thread(registration.remove_tree, run.staged))
            raise
        return result

    async def remove(self, agent_id: str) -> bool:
        """Undo an agent's registration; its history stays. Says whether there was one."""
        if not self.places.names(agent_id):
            return False
        async with build_lock(self.places, agent_id):
            return await registration.remove_agent(agent_id, self.places, self.registrar)

    async def versions(self, agent_id: str) -> list[Version]:
        """Earlier versions of an agent, newest first."""
        known = self.places.names(agent_id)
        return await asyncio.to_thread(registration.versions_of, self.places, agent_id) if known else []

    async def roll_back(self, agent_id: str, version: str = "") -> AgentSpec:
        """Make an earlier version the one that answers.

        Raises:
            RegistrationError: there is none, or it could not be registered.
        """
        if not self.places.names(agent_id):
            raise RegistrationError(f"there is no agent {agent_id}")
        async with build_lock(self.places, agent_id):
            return await registration.roll_back(agent_id, version, self.places, self.registrar)

    async def repair(self) -> tuple[str, ...]:
        """Finish or undo what a process that died was registering; call it at the start."""
        return await registration.repair(self.places, self.registrar)


class _Run:
    """One build."""

    def __init__(self, builder: Builder, request: PendingBuild) -> None:
        self._builder, self._request = builder, request
        self._places = builder.places
        self._work = BuildState(request, builder._tools)
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
            if self._request.trust is False:
                words = f"{self._request.path} is a folder that others can write to. Trust this skill?"
                choice = Choice(words, ("trust", "abort"), "trusted")
                return self._result(Status.NEEDS_OPERATOR, choice=choice)
            async with build_lock(self._places, self._work.agent_id):
                return await self._further()
        except NeedsOperatorError as error:
            return self._result(Status.NEEDS_OPERATOR, choice=error.choice)
        except OSError as error:
            findings = Findings()
            self._cannot_use(error, findings, "the workspace cannot be used: ")
            self._record("workspace", False, (), findings, time.monotonic())
            return self._result(Status.FAILED)

    async def _further(self) -> BuildResult:
        await self._look_at_former()
        if (same := await self._up_to_date()) is not None:
            return same
        for name, phase in (*PHASES[1:], ("files", self._generate)):
            if not await self._phase(name, phase):
                return await self._failed()
        if self._request.dry_run:
            await asyncio.to_thread(registration.remove_tree, self.staged)
            return self._result(Status.DRY_RUN)
        if not await self._phase("registration", self._register):
            return await self._failed()
        return self._result(Status.BUILT, output=self._places.agent(self._work.agent_id))

    async def _failed(self) -> BuildResult:
        """Staging is kept for inspection, save where the disk is full."""
        full = any(finding.code == "DISK_FULL" for record in self._records for finding in record.findings)
        if full or not self._written:
            await asyncio.to_thread(registration.remove_tree, self.staged)
        there = await asyncio.to_thread(self.staged.exists)
        return self._result(Status.FAILED, output=self.staged if there else None)

    async def _phase(self, name: str, phase: _Phase) -> bool:
        """Run a phase and record it; whatever it raises is a finding."""
        findings, began = Findings(), time.monotonic()
        checks: tuple[CheckOutcome, ...] = ()
        try:
            checks = await phase(self._work, findings)
        except OSError as error:
            self._cannot_use(error, findings)
        except NeedsOperatorError:
            self._record(name, False, checks, findings, began)
            raise
        except Exception as error:  # noqa: BLE001 - a fault of ours ends a build, not the cockpit
            findings.error(
                "INTERNAL", f"{type(error).__name__}: {error}", hint="this is a fault of the builder"
            )
        passed = not findings.errors and all(outcome.passed for outcome in checks)
        if not passed and not findings.errors:
            wrong = ", ".join(outcome.name for outcome in checks if not outcome.passed)
            findings.error("CHECKPOINT", f"the checkpoint does not pass: {wrong}")
        self._record(name, passed, checks, findings, began)
        return passed

    def _cannot_use(self, error: OSError, findings: Findings, what: str = "") -> None:
        code = "DISK_FULL" if error.errno in (errno.ENOSPC, errno.EDQUOT) else "IO"
        hint = "make room, and build again" if code == "DISK_FULL" else "it has to be a place to write to"
        where = str(error.filename or self._places.workspace)
        findings.error(code, f"{what}{error.strerror or error}", where, hint)

    def _record(
        self, name: str, passed: bool, checks: tuple[CheckOutcome, ...], findings: Findings, began: float
    ) -> None:
        record = PhaseRecord(
            len(self._records) + 1, name, passed, checks, tuple(findings.all), time.monotonic() - began
        )
        self._records.append(record)
        self._builder._told(record)

    # ------------------------------------------------------------------ what is there already

    async def _look_at_former(self) -> None:
        work = self._work
        work.former = await self._builder.registrar.resolve(work.agent_id)
        build = await asyncio.to_thread(registration.read_build, self._places.agent(work.agent_id))
        if work.former is not None and work.former.metadata.source == BUILT_IN and build is None:
            work.former = None  # the workspace's own agent has versions of its own
        work.former_sha256 = build.source_sha256 if build else ""

    async def _up_to_date(self) -> BuildResult | None:
        """The agent that is there, when it is what this build would make."""
        work = self._work
        agent = self._places.agent(work.agent_id)
        build = await asyncio.to_thread(registration.read_build, agent)
        if build is None or work.former is None or work.skill is None:
            return None
        if not await self._same(build, agent):
            return None
        work.spec = work.former
        self._files = dict.fromkeys(build.files, b"")
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
        return healthy and await asyncio.to_thread(registration.intact, agent, build)

    # ------------------------------------------------------------------ phases 6 and 7

    async def _generate(self, work: BuildState, findings: Findings) -> tuple[CheckOutcome, ...]:
        """Phase 6: the files. Checks files_written and reads_back."""
        if work.spec is None or work.skill is None or work.folder is None:
            raise RuntimeError("a phase ran before the spec was there")
        self._files = agent_files(work.spec, work.skill.body, work.folder)
        await run_to_completion(asyncio.to_thread(self._stage, work))
        same = await asyncio.to_thread(read_agent, self.staged) == work.spec
        if not same:
            findings.error("BAD_SPEC", "agent.yaml would not say what the spec says", "agent.yaml")
        written = CheckOutcome("files_written", True, f"{len(self._files)} files")
        return written, CheckOutcome("reads_back", same)

    def _stage(self, work: BuildState) -> None:
        assert work.folder is not None
        registration.clear_old(self._places, self._builder._now())
        run = {f"{SKILL}/{path}" for path in work.folder.executable}
        self._written = True
        registration.write_files(self.staged, self._files, run)

    async def _register(self, work: BuildState, findings: Findings) -> tuple[CheckOutcome, ...]:
        """Phase 7: swapped in and registered. Checks registered."""
        spec = work.spec
        if spec is None:
            raise RuntimeError("a phase ran before the spec was there")
        await run_to_completion(asyncio.to_thread(self._seal, spec))
        try:
            await registration.swap_in(self.staged, spec, self._places, self._builder.registrar)
        except RegistrationError as error:
            findings.error("NOT_REGISTERED", str(error), hint="the former version is back")
            return ()
        return (CheckOutcome("registered", True, f"{spec.id} {spec.version}"),)

    def _seal(self, spec: AgentSpec) -> None:
        """Write BUILD.json and take the right to write from the skill's copy."""
        work, request = self._work, self._request
        assert work.folder is not None
        assert work.decision is not None
        built = datetime.fromtimestamp(self._builder._now(), UTC).isoformat()
        fields = {
            "agent": spec.id,
            "version": spec.version,
            "builder_version": BUILDER_VERSION,
            "source_sha256": work.folder.sha256,
            "overrides_sha256": request.overrides_sha256,
            "spec_sha256": spec_sha256(spec),
            "files": hashes(self._files.items()),
            "phases": [record.as_json() for record in self._records],
            "type": asdict(work.decision),
            "license": spec.metadata.license,
            "scope": PROJECT,
            "source": work.folder.source,
            "built_at": built,
        }
        text = json.dumps(fields, indent=2, sort_keys=True) + "\n"
        registration.write_files(self.staged, {BUILD: text.encode()})
        registration.set_read_only(self.staged / SKILL)

    def _result(
        self, status: Status, *, output: Path | None = None, choice: Choice | None = None
    ) -> BuildResult:
        files = tuple(sorted(path for path in self._files if not path.startswith(f"{SKILL}/")))
        return BuildResult(
            status,
            self._work.spec,
            files,
            str(output) if output else "",
            tuple(self._records),
            tuple(finding for record in self._records for finding in record.findings),
            choice,
            time.monotonic() - self._began,
        )
