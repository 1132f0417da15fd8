"""The code room's parts as Mastermind takes them: who audits, mends and lays down suites of projects."""

from __future__ import annotations

import asyncio
import hashlib
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from engine.domain.improvement import Component, ComponentKind, Finding, Proposal
from engine.mastermind.code.box import BoxError, Workshop
from engine.mastermind.code.findings import Examined, examine, found_in
from engine.mastermind.code.projects import project_of, projects, tools
from engine.mastermind.code.proposing import propose
from engine.mastermind.code.suite import foretold, project_suite
from engine.mastermind.code.tree import LeftOut, walk
from engine.mastermind.parts import AuditUnavailable, JobRefused, NotJudged, Progress, Suite
from engine.sandbox import SandboxPolicy

_KEPT = 6
"""States of projects that are remembered."""
_KINDS = (ComponentKind.PROJECT, ComponentKind.MODULE, ComponentKind.TOOL)
Policy = Callable[[], SandboxPolicy]
"""What programs may do in the workspace now."""


class Looking:
    """Runs a project's tests and benchmarks once for each state of its files, whoever asks.

    Args:
        policy: of the sandbox.
    """

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._seen: dict[tuple[str, str], Examined] = {}

    async def workshop(self) -> Workshop:
        """Where programs are run.

        Raises:
            BoxError: there is no jail that the policy is content with.
        """
        return await asyncio.to_thread(Workshop.standing, self._policy())

    async def at(self, tree: Path, component: Component) -> Examined | None:
        """The project that a component is or belongs to, as it was looked at; None where there is none.

        Raises:
            BoxError: nothing can be run.
        """
        workshop = await self.workshop()
        project = await asyncio.to_thread(project_of, tree, component)
        if project is None:
            return None
        key = (project.id, await asyncio.to_thread(_state, tree / project.directory))
        if key not in self._seen:
            seen = await examine(workshop, tree, project)
            while len(self._seen) >= _KEPT:
                del self._seen[next(iter(self._seen))]
            self._seen[key] = seen
        return self._seen[key]


def _state(top: Path) -> str:
    """One hash over a project's files."""
    found = hashlib.sha256()
    for path in walk(top.resolve(), LeftOut(), hidden=True):
        try:
            held = hashlib.sha256((top / path).read_bytes()).hexdigest()
        except OSError as error:
            held = str(error)
        found.update(f"{path}\0{held}\0".encode("utf-8", "surrogateescape"))
    return found.hexdigest()


class CodeAuditor:
    """Knows the workspace's Python projects, and finds what could be better in them.

    Args:
        workspace: the workspace's directory.
        looking: runs what is to be run.
    """

    name = "code"

    def __init__(self, workspace: Path, looking: Looking) -> None:
        self._workspace, self._looking = workspace, looking

    async def components(self) -> Sequence[Component]:
        """Every project and each of its modules, and every tool."""

        def found() -> list[Component]:
            return [*projects(self._workspace), *tools(self._workspace)]

        return await asyncio.to_thread(found)

    def fits(self, component: Component) -> bool:
        """Projects, modules and tools."""
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
            workshop = await self._looking.workshop()
            seen = await self._looking.at(tree, component)
        except BoxError as error:
            raise AuditUnavailable(str(error)) from error
        found = await found_in(tree, component, seen, workshop) if seen is not None else []
        progress.tell(1, 1, f"{len(found)} findings")
        return found


class Fixers:
    """Proposes mechanical changes of Python projects; see `engine.mastermind.code.proposing`."""

    name = "fixers"

    def __init__(self, looking: Looking) -> None:
        self._looking = looking

    def fits(self, component: Component) -> bool:
        """Projects, modules and tools."""
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
            workshop = await self._looking.workshop()
            seen = await self._looking.at(tree, component)
        except BoxError:
            return await propose(tree, component, findings, rng)
        return await propose(tree, component, findings, rng, workshop=workshop, seen=seen)


class ProjectSuites:
    """Lays down how Python projects are judged; see `engine.mastermind.code.suite`.

    Args:
        looking: runs what is to be run.
        held_out: the directory with held-out tests by project, `.pilothouse/held_out` of the workspace.
    """

    def __init__(self, looking: Looking, held_out: Path) -> None:
        self._looking, self._held_out = looking, held_out

    def fits(self, component: Component) -> bool:
        """Projects, modules and tools."""
        return component.kind in _KINDS

    def roots(self, component: Component) -> tuple[str, ...]:
        """The project's directory."""
        return ("/".join(component.paths[0].split("/")[:2]),)

    async def sets(self, component: Component, workspace: Path) -> Mapping[str, str]:
        """What is asked, in words by split, by the names in the files; nothing is run."""
        return await asyncio.to_thread(foretold, workspace, component, self._held_out)

    async def make(self, component: Component, before: Path, seed: int) -> Suite:
        """The suite of a project, from the tree as it is before any change.

        Raises:
            JobRefused: it cannot be judged; the message says why.
            NotJudged: it is a tool with nothing beside it that could show a change to be better.
        """
        try:
            workshop = await self._looking.workshop()
            seen = await self._looking.at(before, component)
            suite = await project_suite(
                before, component, workshop=workshop, seed=seed, held_out=self._held_out, seen=seen
            )
        except (BoxError, OSError) as error:
            lacking = NotJudged if component.kind is ComponentKind.TOOL else JobRefused
            raise lacking(f"{component.id} cannot be judged: {error}") from error
        return suite
