"""What Mastermind is put together from: who audits, proposes, lays down how it is judged, and judges.

Each is a protocol, so that the parts know nothing of each other; `engine.mastermind.mastermind` takes those
that are there. Source: mindX spec §6.4, steering spec §3 idea 13.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from engine.domain.improvement import Component, Finding, Proposal, Verdict
from engine.domain.mastermind import JobStatus, MastermindSettings
from engine.domain.ports import Clock, Ids
from engine.journal.blobs import BlobStore
from engine.journal.store import JournalStore
from engine.sandbox.report import SandboxReport
from engine.steering.standing import Standing


class House(Protocol):
    """What Mastermind needs of the engine; `engine.engine.Engine` is one."""

    workspace: Path
    root: Path
    """Where agents work: the sandbox."""
    store: JournalStore
    blobs: BlobStore
    session: str

    @property
    def clock(self) -> Clock:
        """What time it is."""

    @property
    def ids(self) -> Ids:
        """Names that are unique."""

    @property
    def mastermind_settings(self) -> MastermindSettings:
        """How Mastermind works here."""

    def draw_seed(self) -> int:
        """A seed for what is to be random."""

    def files_changed(self) -> None:
        """Told when files of the workspace were changed by something else than an action."""

    def sandbox(self, agent: str = "") -> SandboxReport:
        """How programs are held here; its `policy` is the workspace's."""

    @property
    def agents(self) -> tuple[str, ...]:
        """Ids of the agents that exist."""

    @property
    def model(self) -> Any:
        """The client of the model that thinks (`engine.models.port.ModelClient`), or None; its calls count
        for the workspace's budget.
        """

    def budgets(self, agent: str, goal: str = "") -> tuple[Standing, ...]:
        """The budgets that an agent draws on; without one, the workspace's."""

    @property
    def model_name(self) -> str:
        """The model's name; empty where there is none."""


class Progress(Protocol):
    """How a job tells where it is, and learns that it is not wanted any more."""

    def tell(self, done: float, of: float, text: str) -> None:
        """Say how far it is; may be called from any thread and as often as one likes."""

    @property
    def cancelled(self) -> bool:
        """Whether it is to end; threads look at this, coroutines are cancelled."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a job."""

    status: JobStatus
    message: str
    answer: Mapping[str, Any] = field(default_factory=dict)
    """As JSON."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What a job was asked to do."""

    job: str
    argument: str
    options: Mapping[str, Any]
    """What the command said besides, by the names of `StartJob`'s fields and of its `options`."""
    actor: str


Worker = Callable[[Asked, Progress], Awaitable[Outcome]]
"""Does a job; raises `JobRefused` for what a person did wrong, in one clear line."""


class JobRefused(Exception):  # noqa: N818 - it is an answer, and no fault
    """A job cannot be done as it was asked; nothing was changed."""


class AuditUnavailable(Exception):  # noqa: N818
    """An audit could not be made, as when a model is down; nothing was found and nothing is added."""


class NothingProposed(Exception):  # noqa: N818 - it is an answer, and no fault
    """Nobody thought of a change; the message says why, and `cost_usd` what asking cost."""

    def __init__(self, message: str, cost_usd: float = 0.0) -> None:
        super().__init__(message)
        self.cost_usd = cost_usd


class NotJudged(Exception):  # noqa: N818 - it is an answer, and no fault
    """Nothing can be said of a component or candidate as things are; the message says what is missing."""


class Suite(Protocol):
    """How a component is judged; what it asks is between its maker and the comparer."""

    @property
    def key(self) -> str:
        """Hash of all that it is made of: another one means another judgement."""


@runtime_checkable
class Paying(Protocol):
    """A suite that asks a model, which costs money."""

    def allow(self, usd: float) -> None:
        """Say what judging may cost from now on, in dollars."""

    def paid(self) -> float:
        """What it cost since this was asked last, in dollars."""

    def unsound(self, tree: Path) -> tuple[str, ...]:
        """What is wrong with a tree's files that can be seen for nothing; blocking."""


class Auditor(Protocol):
    """Knows components, and finds what could be better in them."""

    name: str

    async def components(self) -> Sequence[Component]:
        """What there is that can be improved."""

    def fits(self, component: Component) -> bool:
        """Whether it can look at such a component."""

    async def audit(
        self, component: Component, tree: Path, context: str, progress: Progress
    ) -> Sequence[Finding]:
        """What could be better in a component; empty when nothing was found.

        Args:
            component: what is looked at.
            tree: stands for the workspace's directory, with the files that the component needs.
            context: what the operator said.
            progress: to tell how far it is.

        Raises:
            AuditUnavailable: it could not be looked; the message says why.
        """


class Proposer(Protocol):
    """Thinks of changes."""

    name: str

    def fits(self, component: Component) -> bool:
        """Whether it can think of changes to such a component."""

    async def propose(
        self,
        component: Component,
        tree: Path,
        findings: Sequence[Finding],
        rng: random.Random,
        budget_usd: float,
    ) -> Iterable[Proposal]:
        """Changes, the most promising first; the same for the same randomness where no model is asked.

        Args:
            component: what is to be better.
            tree: stands for the workspace's directory; what is proposed builds on its files.
            findings: what is to be mended.
            rng: all randomness that it uses.
            budget_usd: what models may cost; 0 asks none.

        Raises:
            NothingProposed: it has none and says why; the campaign tells it and goes on.
        """


class SuiteMaker(Protocol):
    """Lays down how a component is judged."""

    def fits(self, component: Component) -> bool:
        """Whether it knows how such a component is judged."""

    def roots(self, component: Component) -> tuple[str, ...]:
        """Files and directories, from the workspace's, that it takes to look at it and to judge it."""

    async def make(self, component: Component, before: Path, seed: int) -> Suite:
        """The suite; `before` stands for the workspace's directory and has the files of `roots`.

        Raises:
            JobRefused: it cannot be judged, as where it has no tests; the message says why.
            NotJudged: what it takes is not to be had here; the campaign ends without an improvement.
        """


class Comparer(Protocol):
    """Judges a candidate against what is there."""

    async def compare(
        self,
        before: Path,
        after: Path,
        component: Component,
        proposal: Proposal,
        suite: Suite,
        *,
        seed: int,
        seconds: float,
        sealed: bool = True,
    ) -> Verdict:
        """What it says of a candidate.

        Args:
            before: stands for the workspace's directory.
            after: the same with the candidate's files.
            component: its paths may differ and no others.
            proposal: what the candidate says it is.
            suite: how it is judged.
            seed: the same one gives the same verdict where the measure is deterministic.
            seconds: processor time that it may take.
            sealed: False asks only what may be seen, to choose among candidates; that decides nothing.

        Raises:
            NotJudged: nothing can be said of it as things are.
        """


@runtime_checkable
class Preparing(Protocol):
    """A comparer that takes up how programs are held when a campaign begins."""

    def prepare(self) -> None:
        """A campaign begins, or what was found is looked at again."""
