"""The code room's parts as Mastermind takes them: who audits, mends and lays down suites of projects."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from engine.domain.improvement import Component, ComponentKind, Finding, Proposal
from engine.mastermind.code.box import BoxError, Workshop
from engine.mastermind.code.findings import findings
from engine.mastermind.code.projects import projects
from engine.mastermind.code.proposing import propose
from engine.mastermind.code.suite import project_suite
from engine.mastermind.parts import AuditUnavailable, JobRefused, Progress, Suite
from engine.sandbox import SandboxPolicy

_KINDS = (ComponentKind.PROJECT, ComponentKind.MODULE)
Policy = Callable[[], SandboxPolicy]
"""What programs may do in the workspace now."""


class CodeAuditor:
    """Knows the workspace's Python projects, and finds what could be better in them.

    Args:
        workspace: the workspace's directory.
        policy: of the sandbox.
    """

    name = "code"

    def __init__(self, workspace: Path, policy: Policy) -> None:
        self._workspace, self._policy = workspace, policy

    async def components(self) -> Sequence[Component]:
        """Every project and each of its modules."""
        return await asyncio.to_thread(projects, self._workspace)

    def fits(self, component: Component) -> bool:
        """Projects and modules."""
        return component.kind in _KINDS

    async def audit(
        self, component: Component, tree: Path, context: str, progress: Progress
    ) -> Sequence[Finding]:
        """What could be better in a project or module; nothing for other components.

        Raises:
            AuditUnavailable: its programs cannot be run here.
        """
        if component.kind not in _KINDS:
            return []
        progress.tell(0, 1, f"running the tests and benchmarks of {component.id}")
        try:
            workshop = await asyncio.to_thread(Workshop.standing, self._policy())
        except BoxError as error:
            raise AuditUnavailable(str(error)) from error
        found = await findings(tree, component, workshop=workshop)
        progress.tell(1, 1, f"{len(found)} findings")
        return found


class Fixers:
    """Proposes mechanical changes of Python projects; see `engine.mastermind.code.proposing`."""

    name = "fixers"

    def __init__(self, workspace: Path, policy: Policy) -> None:
        self._workspace, self._policy = workspace, policy

    def fits(self, component: Component) -> bool:
        """Projects and modules."""
        return component.kind in _KINDS

    async def propose(
        self,
        component: Component,
        tree: Path,
        findings: Sequence[Finding],
        rng: random.Random,
        budget_usd: float,
    ) -> Iterable[Proposal]:
        """Changes, the most promising first; they cost nothing."""
        try:
            workshop = await asyncio.to_thread(Workshop.standing, self._policy())
        except BoxError:
            workshop = None
        return await propose(tree, component, findings, rng, workshop=workshop)


class ProjectSuites:
    """Lays down how Python projects are judged; see `engine.mastermind.code.suite`.

    Args:
        policy: of the sandbox.
        held_out: the directory with held-out tests by project, `.pilothouse/held_out` of the workspace.
    """

    def __init__(self, policy: Policy, held_out: Path) -> None:
        self._policy, self._held_out = policy, held_out

    def fits(self, component: Component) -> bool:
        """Projects and modules."""
        return component.kind in _KINDS

    def roots(self, component: Component) -> tuple[str, ...]:
        """The project's directory."""
        return ("/".join(component.paths[0].split("/")[:2]),)

    async def make(self, component: Component, before: Path, seed: int) -> Suite:
        """The suite of a project, from the tree as it is before any change.

        Raises:
            JobRefused: it cannot be judged; the message says why.
        """
        try:
            workshop = await asyncio.to_thread(Workshop.standing, self._policy())
            suite = await project_suite(
                before, component, workshop=workshop, seed=seed, held_out=self._held_out
            )
        except (BoxError, OSError) as error:
            raise JobRefused(f"{component.id} cannot be judged: {error}") from error
        return suite
