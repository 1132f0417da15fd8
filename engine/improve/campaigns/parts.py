"""Who audits, proposes and judges in a campaign, and where it writes."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from engine.core.improvement import Component, Finding
from engine.core.store.blobs import BlobStore
from engine.improve.campaigns.files import WorkspacePaths
from engine.improve.judge.judge import Judge
from engine.improve.ports import Auditor, AuditUnavailable, JobRefused, Progress, Proposer, SuiteMaker
from engine.improve.state import EventStream


@dataclass(slots=True)
class CampaignParts:
    """What a campaign works with."""

    auditors: Sequence[Auditor]
    proposers: Sequence[Proposer]
    suites: Sequence[SuiteMaker]
    judge: Judge
    stream: EventStream
    """Where events go."""
    places: WorkspacePaths
    """The workspace's files."""
    blobs: BlobStore
    """Where contents go."""
    scratch: Path
    """A directory for trees."""

    def maker(self, component: Component) -> SuiteMaker:
        """Who knows how a component is judged.

        Raises:
            JobRefused: it cannot be judged.
        """
        suite_maker = next((maker for maker in self.suites if maker.fits(component)), None)
        if suite_maker is None:
            raise JobRefused(f"{component.id} cannot be judged: nothing here measures {component.kind}")
        return suite_maker

    async def audit(
        self, component: Component, tree: Path, progress: Progress
    ) -> tuple[list[Finding], list[str]]:
        """The findings of all auditors, and why others could not look.

        Raises:
            AuditUnavailable: none could.
        """
        findings: list[Finding] = []
        missing: list[str] = []
        fitting = [auditor for auditor in self.auditors if auditor.fits(component)]
        for auditor in fitting:
            try:
                findings += await auditor.audit(component, tree, progress)
            except AuditUnavailable as error:
                missing.append(str(error))
        if missing and len(missing) == len(fitting):
            raise AuditUnavailable("; ".join(missing))
        return findings, missing

    @asynccontextmanager
    async def trees(
        self, component: Component, name: str
    ) -> AsyncIterator[tuple[SuiteMaker, Path, tuple[str, ...]]]:
        """The maker of a component's suite, a directory with its files in `now`, and what these lack.

        Raises:
            JobRefused: it cannot be judged, or is too large.
        """
        maker, place = self.maker(component), self.scratch / name
        self.judge.prepare()
        try:
            roots = (*maker.roots(component), *component.paths)
            lacks = await asyncio.to_thread(self.places.copy, roots, place / "now")
            yield maker, place, lacks
        finally:
            await asyncio.shield(asyncio.to_thread(shutil.rmtree, place, ignore_errors=True))
