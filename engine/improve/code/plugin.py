"""What Mastermind knows of Python projects: what could be better in them, changes, and how these are judged.

The fixers propose mechanical changes for slow places that a benchmark reaches, and for failing tests. A
missing check has no fixer: what is right there is not to be read off the code, so it is only listed.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from engine.core.improvement import Component, ComponentKind, Concern, Finding, Proposal
from engine.core.offload import in_thread
from engine.improve.code.findings import MEASURED, ExaminedProject, examine_project, findings_of_examined
from engine.improve.code.projects import BAD, SlowError, project_of, projects, tools
from engine.improve.code.repair import Repair, alike, repair_tests
from engine.improve.code.slow_code import fix_slow_place, slow_places
from engine.improve.code.source import Source, walk_files
from engine.improve.code.suite import estimate_checks, project_suite
from engine.improve.judge.box import BoxError, Boxes
from engine.improve.ports import (
    AuditUnavailable,
    JobRefused,
    NothingProposed,
    NotJudged,
    Progress,
    ProposalRequest,
    Suite,
)
from engine.sandbox.policy import SandboxPolicy

_REASONS = 2
"""Groups of failing tests that changes are searched for in one go."""


async def mechanical_proposals(asked: ProposalRequest, seen: ExaminedProject, boxes: Boxes) -> list[Proposal]:
    """Changes that may mend findings, the worst finding's first and its most plausible change first.

    Args:
        asked: a project or module, of which only its files are changed; what is equally plausible is
            ordered by its randomness.
        seen: the project as it was examined.
        boxes: where changes for failing tests are tried.
    """
    project = seen.project
    may = frozenset(project.inside(path) for path in asked.component.paths) & set(project.modules)
    proposals: list[Proposal] = []
    for finding in sorted(asked.findings, key=lambda finding: -finding.severity):
        path, worth = project.inside(finding.path), finding.severity >= MEASURED
        if finding.concern is Concern.SPEED and worth and path in may & seen.sources.keys():
            proposals += await in_thread(_faster, seen.sources[path], finding)
    mended, late = await _mended(boxes, asked, seen, may)
    if late and not mended and not proposals:
        raise NothingProposed(late)
    return [*mended, *proposals]


def _faster(source: Source, finding: Finding) -> list[Proposal]:
    for place in slow_places(source):
        meant = place.line == finding.line and finding.name == f"{place.kind}:{place.function}"
        if meant and (text := fix_slow_place(source, place)) is not None:
            title = f"{place.function} no longer {place.text.partition(';')[0]}"
            words = (title, f"fixer:{place.kind}", {finding.path: text})
            return [Proposal(*words, why=finding.text, answers=(finding,))]
    return []


async def _mended(
    boxes: Boxes, asked: ProposalRequest, seen: ExaminedProject, may: frozenset[str]
) -> tuple[list[Proposal], str]:
    project, tests = seen.project, seen.tests
    sources = {path: source for path, source in seen.sources.items() if path in may}
    proposals: list[Proposal] = []
    failing = {finding.name: finding for finding in asked.findings if finding.concern is Concern.TEST}
    left = [name for name in failing if tests.get(name, {}).get("outcome") in BAD]
    late = ""
    for _ in range(_REASONS if left else 0):
        some = alike(tests, left)
        left = [name for name in left if name not in some]
        kept: list[Repair] = []
        with suppress(BoxError):
            try:
                most_s = asked.seconds / _REASONS
                kept = await repair_tests(boxes, asked.tree, seen, sources, some, asked.rng, most_s)
            except SlowError as error:
                late = f"{some[0]}: {error}"
        for change in kept:
            left = [name for name in left if name not in change.mends]
            what, files = (
                f"{change.path}:{change.line} {change.words}",
                {project.path(change.path): change.text},
            )
            why = f"with it {change.mends[0]} passes and nothing that passed fails; "
            why += f"{len(kept)} of at most {change.tried} changes tried did that"
            answers = tuple(failing[name] for name in change.mends if name in failing)
            proposals.append(Proposal(what, "fixer:repair", files, why=why, answers=answers))
        if not left:
            break
    return proposals, late


_KEPT = 6
"""States of projects that are remembered."""


class PythonProjects:
    """Audits the workspace's Python projects, proposes mechanical changes of them and makes their suites.

    A project's tests and benchmarks are run once for each state of its files, whoever asks.

    Args:
        workspace: the workspace's directory.
        policy: what programs may do in the workspace now.
        held_out: the directory with held-out tests by project, `.pilothouse/held_out` of the workspace.
    """

    name = "fixers"

    def __init__(self, workspace: Path, policy: Callable[[], SandboxPolicy], held_out: Path) -> None:
        self._workspace, self._policy, self._held_out = workspace, policy, held_out
        self._seen: dict[tuple[str, str], ExaminedProject] = {}

    def fits(self, component: Component) -> bool:
        """Projects, modules and tools."""
        return component.kind in (ComponentKind.PROJECT, ComponentKind.MODULE, ComponentKind.TOOL)

    proposes = fits

    async def _examined(self, tree: Path, component: Component) -> tuple[Boxes, ExaminedProject | None]:
        """Where programs are run, and a component's project as it was looked at; None where there is none.

        Raises:
            BoxError: nothing can be run.
        """
        boxes = await asyncio.to_thread(Boxes, None, self._policy())
        project = await asyncio.to_thread(project_of, tree, component)
        if project is None:
            return boxes, None
        key = (project.id, await asyncio.to_thread(_state, tree / project.directory))
        if key not in self._seen:
            seen = await examine_project(boxes, tree, project)
            while len(self._seen) >= _KEPT:
                del self._seen[next(iter(self._seen))]
            self._seen[key] = seen
        return boxes, self._seen[key]

    async def components(self) -> Sequence[Component]:
        """Every project and each of its modules, and every tool."""
        return await asyncio.to_thread(lambda: [*projects(self._workspace), *tools(self._workspace)])

    async def audit(self, component: Component, tree: Path, progress: Progress) -> Sequence[Finding]:
        """What could be better in a project or module.

        Raises:
            AuditUnavailable: its programs cannot be run here.
        """
        progress.tell(0, 1, f"running the tests and benchmarks of {component.id}")
        try:
            boxes, seen = await self._examined(tree, component)
        except BoxError as error:
            raise AuditUnavailable(str(error)) from error
        findings = await findings_of_examined(tree, component, seen, boxes) if seen is not None else []
        progress.tell(1, 1, f"{len(findings)} findings")
        return findings

    async def propose(self, asked: ProposalRequest) -> Iterable[Proposal]:
        """Changes, the most promising first; they cost nothing."""
        try:
            boxes, seen = await self._examined(asked.tree, asked.component)
        except BoxError as error:
            raise NothingProposed(str(error)) from error
        return await mechanical_proposals(asked, seen, boxes) if seen is not None else ()

    def roots(self, component: Component) -> tuple[str, ...]:
        """The project's directory."""
        return ("/".join(component.paths[0].split("/")[:2]),)

    async def sets(self, component: Component, workspace: Path) -> Mapping[str, str]:
        """What is asked, in words by split, by the names in the files; nothing is run."""
        return await asyncio.to_thread(estimate_checks, workspace, component, self._held_out)

    async def make(self, component: Component, before: Path, seed: int) -> Suite:
        """The suite of a project, from the tree as it is before any change; see `engine.improve.code.suite`.

        Raises:
            JobRefused: it cannot be judged; the message says why.
            NotJudged: it is a tool with nothing beside it that could show a change to be better.
        """
        try:
            boxes, seen = await self._examined(before, component)
            return await project_suite(
                before, component, boxes=boxes, seed=seed, held_out=self._held_out, seen=seen
            )
        except (BoxError, OSError) as error:
            lacking = NotJudged if component.kind is ComponentKind.TOOL else JobRefused
            raise lacking(f"{component.id} cannot be judged: {error}") from error


def _state(top: Path) -> str:
    """One hash over a project's files."""
    digest = hashlib.sha256()
    for path in walk_files(top.resolve(), hidden=True):
        try:
            held = hashlib.sha256((top / path).read_bytes()).hexdigest()
        except OSError as error:
            held = str(error)
        digest.update(f"{path}\0{held}\0".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()
