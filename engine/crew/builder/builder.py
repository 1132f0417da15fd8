"""Builds an agent of a skill in seven phases, each with a checkpoint that can fail.

One build of a workspace runs at a time.
"""

from __future__ import annotations

import asyncio
import errno
import json
import secrets
import time
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from engine.crew.builder import registration
from engine.crew.builder.findings import (
    BUILDER_VERSION,
    BUILT_IN,
    PROJECT,
    BuildResult,
    CheckResult,
    Choice,
    Findings,
    PendingBuild,
    PhaseRecord,
    Status,
)
from engine.crew.builder.model_reading import ModelReader
from engine.crew.builder.phases import PHASES, BuildState, Checks, run_phase
from engine.crew.builder.registration import (
    BUILD,
    SKILL,
    BuildPaths,
    Registrar,
    RegistrationError,
    agent_files,
    read_agent,
    spec_sha256,
)
from engine.crew.builder.skill import hashes
from engine.crew.ontology.spec import AgentSpec
from engine.crew.ports import Lacks
from engine.sandbox.completion import run_to_completion
from engine.sandbox.files import remove_directory

_Phase = Callable[[BuildState, Findings], Awaitable[Checks]]


class Builder:
    """Builds agents of a workspace.

    Args:
        workspace: the directory; staging is `.builds`, agents are in `agents`.
        registrar: who knows the agents.
        lacks: what is missing of a server's tools.
        ask: has a model read what the text alone does not tell; None where there is none.
    """

    def __init__(
        self, workspace: Path, *, registrar: Registrar, lacks: Lacks, ask: ModelReader | None = None
    ) -> None:
        self.places = BuildPaths(workspace.absolute())
        self.registrar = registrar
        self._lacks, self._ask = lacks, ask
        self._lock = asyncio.Lock()

    async def build(
        self, request: PendingBuild, on_phase: Callable[[PhaseRecord], None] = lambda _record: None
    ) -> BuildResult:
        """Build an agent; whatever goes wrong is in the result.

        Args:
            request: what is asked for.
            on_phase: called with each phase when it is over.

        Raises:
            asyncio.CancelledError: every process has ended, and there is no agent that was not there before.
        """
        async with self._lock:
            run = _Run(self, request, on_phase)
            try:
                return await run.run_phases()
            except asyncio.CancelledError:
                await run_to_completion(asyncio.to_thread(remove_directory, run.staged))
                raise

    async def remove(self, agent_id: str) -> bool:
        """Undo an agent's registration; its history stays. Says whether there was one."""
        if not self.places.names(agent_id):
            return False
        async with self._lock:
            return await registration.remove_agent(agent_id, self.places, self.registrar)


class _Run:
    """One build."""

    def __init__(
        self, builder: Builder, request: PendingBuild, on_phase: Callable[[PhaseRecord], None]
    ) -> None:
        self._builder, self._request, self._on_phase = builder, request, on_phase
        self._places = builder.places
        self._work = BuildState(request, builder._lacks, ask=builder._ask)
        self._records: list[PhaseRecord] = []
        self._began = time.monotonic()
        self._files: dict[str, bytes] = {}
        self.staged = self._places.builds / f"b-{secrets.token_hex(4)}"

    async def run_phases(self) -> BuildResult:
        """All phases, as far as they pass."""
        if not await self._phase(*PHASES[0]):
            return await self._failed()
        if self._request.trust is False:
            words = f"Trust this skill? Others can write to its folder: {self._request.path}"
            choice = Choice(words, ("trust", "abort"), "trust")
            return self._result(Status.NEEDS_OPERATOR, choice=choice)
        if (same := await self._up_to_date()) is not None:
            return same
        for name, phase in (*PHASES[1:], ("files", self._generate)):
            if not await self._phase(name, phase):
                return await self._failed()
            if self._work.question is not None:
                return self._result(Status.NEEDS_OPERATOR, choice=self._work.question)
        if self._request.dry_run:
            await asyncio.to_thread(remove_directory, self.staged)
            return self._result(Status.DRY_RUN)
        if not await self._phase("registration", self._register):
            return await self._failed()
        return self._result(Status.BUILT, output=self._places.agent(self._work.agent_id))

    async def _failed(self) -> BuildResult:
        """Staging is kept for inspection, save where the disk is full."""
        if any(finding.code == "DISK_FULL" for record in self._records for finding in record.findings):
            await asyncio.to_thread(remove_directory, self.staged)
        there = await asyncio.to_thread(self.staged.exists)
        return self._result(Status.FAILED, output=self.staged if there else None)

    async def _phase(self, name: str, phase: _Phase) -> bool:
        """Run a phase and record it; whatever it raises is a finding."""
        findings, began = Findings(), time.monotonic()
        checks: Checks = ()
        try:
            checks = await run_phase(phase, self._work, findings)
        except OSError as error:
            self._cannot_use(error, findings)
        except Exception as error:  # noqa: BLE001 - a fault of ours ends a build, not the cockpit
            findings.error(
                "INTERNAL", f"{type(error).__name__}: {error}", hint="this is a fault of the builder"
            )
        passed = not findings.errors and all(result.passed for result in checks)
        if not passed and not findings.errors:
            wrong = ", ".join(result.name for result in checks if not result.passed)
            findings.error("CHECKPOINT", f"the checkpoint does not pass: {wrong}")
        took = time.monotonic() - began
        record = PhaseRecord(len(self._records) + 1, name, passed, checks, tuple(findings.all), took)
        self._records.append(record)
        self._on_phase(record)
        return passed

    def _cannot_use(self, error: OSError, findings: Findings) -> None:
        code = "DISK_FULL" if error.errno in (errno.ENOSPC, errno.EDQUOT) else "IO"
        hint = "make room, and build again" if code == "DISK_FULL" else "it has to be a place to write to"
        where = str(error.filename or self._places.workspace)
        findings.error(code, error.strerror or str(error), where, hint)

    # ------------------------------------------------------------------ what is there already

    async def _up_to_date(self) -> BuildResult | None:
        """The agent that is there, when it is what this build would make; notes the former one, if any."""
        work, agent = self._work, self._places.agent(self._work.agent_id)
        former = await self._builder.registrar.resolve(work.agent_id)
        build = await asyncio.to_thread(registration.read_build, agent)
        if former is not None and former.metadata.source == BUILT_IN and build is None:
            former = None  # the workspace's own agent has versions of its own
        work.former, work.former_sha256 = former, build.source_sha256 if build else ""
        if build is None or former is None:
            return None
        before = build.source_sha256, build.builder_version, build.overrides_sha256, build.spec_sha256
        overrides = self._request.overrides_sha256
        now = work.skill.source_sha256, BUILDER_VERSION, overrides, spec_sha256(former)
        if before != now or not await asyncio.to_thread(registration.intact, agent, build):
            return None
        work.spec = former
        self._files = dict.fromkeys(build.files, b"")
        return self._result(Status.UP_TO_DATE, output=agent)

    # ------------------------------------------------------------------ phases 6 and 7

    async def _generate(self, work: BuildState, findings: Findings) -> Checks:
        """Phase 6: the files. Checks files_written and reads_back."""
        assert work.spec is not None
        assert work.folder is not None
        self._files = agent_files(work.spec, work.skill.body, work.folder)
        run = {f"{SKILL}/{path}" for path in work.folder.executable}
        await asyncio.to_thread(registration.clear_old, self._places, time.time())
        await run_to_completion(asyncio.to_thread(registration.write_files, self.staged, self._files, run))
        same = await asyncio.to_thread(read_agent, self.staged) == work.spec
        if not same:
            findings.error("BAD_SPEC", "agent.yaml would not say what the spec says", "agent.yaml")
        written = CheckResult("files_written", True, f"{len(self._files)} files")
        return written, CheckResult("reads_back", same)

    async def _register(self, work: BuildState, findings: Findings) -> Checks:
        """Phase 7: swapped in and registered. Checks registered."""
        spec = work.spec
        assert spec is not None
        await run_to_completion(asyncio.to_thread(self._seal, spec))
        try:
            await registration.swap_in(self.staged, spec, self._places, self._builder.registrar)
        except RegistrationError as error:
            findings.error("NOT_REGISTERED", str(error), hint="the former version is back")
            return ()
        return (CheckResult("registered", True, f"{spec.id} {spec.version}"),)

    def _seal(self, spec: AgentSpec) -> None:
        """Write BUILD.json and take the right to write from the skill's copy."""
        work, request = self._work, self._request
        assert work.folder is not None
        assert work.decision is not None
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
            "built_at": datetime.now(UTC).isoformat(),
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
