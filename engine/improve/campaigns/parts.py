"""Who audits, proposes and judges in a campaign."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from engine.core.improvement import Component, Finding
from engine.improve.judge.judge import Judge
from engine.improve.ports import Auditor, AuditUnavailable, JobRefused, Progress, Proposer, SuiteMaker


@dataclass(slots=True)
class CampaignParts:
    """Who does what in a campaign."""

    auditors: Sequence[Auditor]
    proposers: Sequence[Proposer]
    suites: Sequence[SuiteMaker]
    judge: Judge

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
