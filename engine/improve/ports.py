"""Ports of Mastermind: what it needs of the engine, who audits, proposes and judges, and what suites are.

A suite says what is asked and what is right; the judge decides how it is asked, so a suite holds no rule of
the judging. Paths in the trees that it is shown are those of `Component.paths` and `Proposal.files`.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from engine.core.improvement import (
    Candidate,
    Component,
    Finding,
    JobStatus,
    MastermindSettings,
    Proposal,
    Ruling,
)
from engine.core.trust import FolderTrust
from engine.value import dataclass, field

if TYPE_CHECKING:
    from engine.agent.steering.budget_status import BudgetStatus
    from engine.core.budgets import SpendingLimits
    from engine.core.command import Command, Receipt
    from engine.core.ports import Clock
    from engine.core.state import AgentState
    from engine.core.store.blobs import BlobStore
    from engine.core.store.port import JournalStore
    from engine.crew.crew import Crew
    from engine.planning.library.plan_library import PlanLibrary
    from engine.sandbox.tier import SandboxReport


class MastermindHost(Protocol):
    """What Mastermind needs of the engine; `engine.api.engine.Engine` is one."""

    workspace: Path
    root: Path
    """Where agents work: the sandbox."""
    library: PlanLibrary
    store: JournalStore
    blobs: BlobStore
    trust: FolderTrust | None
    """What the user trusts of the folder; None for all."""

    @property
    def clock(self) -> Clock:
        """What time it is."""

    @property
    def mastermind_settings(self) -> MastermindSettings:
        """How Mastermind works here."""

    @property
    def agents(self) -> tuple[str, ...]:
        """Ids of the agents that exist."""

    @property
    def model(self) -> Any:
        """The client of the model that thinks (`engine.models.completion.ModelClient`), or None.

        Its calls count for the workspace's budget.
        """

    @property
    def model_name(self) -> str:
        """The model's name; empty where there is none."""

    async def open_scratch(self, place: Path, limits: SpendingLimits | None) -> Any:
        """An engine like this one on a scratch workspace, where nothing is kept.

        Args:
            place: its directory.
            limits: what models may take; None for an engine without a model, whose clock waits less.
        """

    def draw_seed(self) -> int:
        """A seed for what is to be random."""

    def files_changed(self) -> None:
        """Take note that files of the workspace were changed by something else than an action."""

    def sandbox(self, agent: str = "") -> SandboxReport:
        """How an agent's programs are held; without one, the workspace's."""

    def budgets(self, agent: str, goal: str = "") -> tuple[BudgetStatus, ...]:
        """The budgets that an agent draws on; without one, the workspace's."""

    def family(self, agent: str) -> tuple[str, ...]:
        """An agent and those that work for it."""

    def fault(self, agent: str) -> str:
        """Why an agent does nothing; empty when it is well."""

    async def submit(self, command: Command, *, operator: str = "operator") -> Receipt:
        """Carry out a command."""

    async def view(self, agent_id: str, at: int | None = None) -> AgentState:
        """An agent's state, deleted or not.

        Raises:
            KeyError: there never was such an agent.
        """

    async def stopped(self) -> None:
        """Return when all that was to be stopped is, or is said not to be."""

    async def faulted(self, agent: str) -> str:
        """Wait until an agent's cycle has ended."""

    async def crew(self) -> Crew:
        """The crew, which registers agents."""


class Progress(Protocol):
    """How a job reports where it is, and learns that it is cancelled."""

    def tell(self, done: float, of: float, text: str) -> None:
        """Report how far it is; may be called from any thread, as often as is useful."""

    @property
    def cancelled(self) -> bool:
        """Whether it is to end; threads look at this, coroutines are cancelled."""


@dataclass(frozen=True, slots=True)
class JobResult:
    """The result of a job."""

    status: JobStatus
    message: str
    answer: Mapping[str, Any] = field(default_factory=dict)
    """As JSON."""


@dataclass(frozen=True, slots=True)
class JobRequest:
    """What a job was asked to do."""

    job: str
    argument: str
    options: Mapping[str, Any]
    """What the command said besides, by the names of `StartJob`'s fields and of its `options`."""
    actor: str


Worker = Callable[[JobRequest, Progress], Awaitable[JobResult]]
"""Does a job; raises `JobRefused` for what a person did wrong, in one clear line."""


class JobRefused(Exception):  # noqa: N818 - it is an answer, and no fault
    """A job cannot be done as it was asked; nothing was changed."""


class AuditUnavailable(Exception):  # noqa: N818
    """An audit could not be made, as when a model is down; nothing was found and nothing is added."""


class NothingProposed(Exception):  # noqa: N818 - it is an answer, and no fault
    """No change was proposed; the message says why, and `cost_usd` what asking cost."""

    def __init__(self, message: str, cost_usd: float = 0.0, tokens: int = 0) -> None:
        super().__init__(message)
        self.cost_usd, self.tokens = cost_usd, tokens


class NotJudged(Exception):  # noqa: N818 - it is an answer, and no fault
    """Nothing can be said of a component or candidate as things are; the message says what is missing."""


class Split(StrEnum):
    """Who may know of a check."""

    WORK = "work"
    """Proposers see it and work with it: a project's own tests."""
    CHOOSE = "choose"
    """Candidates are compared with each other by it; proposers do not see it."""
    SEALED = "sealed"
    """Asked only when the judge decides; proposers never see it or its answers."""


VISIBLE = (Split.WORK, Split.CHOOSE)
"""What is asked before a decision is due."""
ASKED_AGAIN = 7919
"""How far apart the seeds are with which a check is asked again: the first time is the campaign's own."""


class Outcome(StrEnum):
    """The result of a check in one tree."""

    HOLDS = "holds"
    FAILS = "fails"
    """It ran and was wrong; an error and a limit that was reached are wrong, too."""
    SKIPPED = "skipped"
    """It was there and did not run."""
    MISSING = "missing"
    """It was not reported: its process ended before that."""


@dataclass(frozen=True, slots=True)
class Measure:
    """What a better candidate has less of."""

    unit: str
    """`processor time`, `steps`, `goals achieved`."""
    timed: bool = False
    """Whether it is processor time, by the kernel, from outside of the candidate's process; no two runs are
    alike. Else it is `Report.cost`, of use where no candidate code runs."""
    least: float = 0.0
    """The gain that its interval has to exceed, in the unit or in percent. Time needs some: where code lies
    in memory moves it by a percent or so without anything being better."""

    @classmethod
    def time(cls) -> Measure:
        """Processor time, in percent saved."""
        return cls("% of processor time saved", True, 2.0)


@dataclass(frozen=True, slots=True)
class Call:
    """A question to candidate code: call this with that."""

    target: str
    """`module:name` or `module:Class.name`, as the box's import path finds it."""
    args: tuple[Any, ...] = ()
    """Plain values: None, bool, int, float, complex, str, bytes, tuple, list, set, frozenset, dict."""
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    again: bool = False
    """Whether it gets the arguments of the call before it, changed in place, in the place of its own."""


@dataclass(frozen=True, slots=True)
class ExpectedAnswer:
    """The right answer to a call: a value, or the name of an exception's class."""

    value: Any = None
    raises: str = ""
    """`ValueError`; empty where a value is right."""


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that is asked of a tree, in a process of its own.

    Exactly one of `calls`, `test` and `data` says what: calls of candidate code in the box, a test of the
    material that pytest runs in the box, or anything that the suite's `examine` understands.
    """

    id: str
    """Unique in the suite; a word for people: `stats.mean of 3 numbers`, `tests/test_stats.py::test_mean`."""
    split: Split
    calls: tuple[Call, ...] = ()
    test: str = ""
    """A node of pytest, from the suite's root: `tests/test_stats.py::test_mean[3]`."""
    data: Any = None
    expected: tuple[ExpectedAnswer, ...] = ()
    """The right answer to each call. Without any, what the tree before answers is right: the same values, the
    same exceptions, the same changes to the arguments."""
    family: str = ""
    """What it has in common with others, such as the function that is asked: a candidate that gets every
    visible one of a family right and most of the sealed ones wrong has learned the answers by heart."""
    measured: bool = False
    """Whether its cost counts for the gain. It is then asked in alternating pairs."""
    ready: int = 0
    """How many of the first calls only make ready what the others need. They are taken as importing is: more
    than it was before counts, and what it costs as it is does not."""
    drawn: bool = False
    """Whether it was drawn when the candidate was known: an answer that is another one than before is no
    breach, but nothing says that it is right."""
    effects: bool = False
    """Whether only what calls do besides answering is compared, as the answers before are not trusted."""
    raises: tuple[str, ...] = ()
    """Exceptions that are meant; any other one may become another."""
    cases: int = 1
    """Inputs that a test asks about, as far as they can be told."""
    crashes: tuple[str, ...] = ()
    """Exceptions that failing tests report: what a call gives in the place of one of them may be anything."""
    refuses: bool = False
    """Whether a test asks for an exception: what raises in any case gets all of these right."""


@dataclass(frozen=True, slots=True)
class Report:
    """The result of one check in one tree."""

    check: str
    outcome: Outcome
    text: str = ""
    """What was wrong, in a line or a few; not cleaned."""
    answers: tuple[Any, ...] = ()
    """As the box told them, in JSON."""
    cost: float | None = None
    """In the measure's unit; None where nothing was measured."""


class Suite(Protocol):
    """What is asked of one component."""

    @property
    def key(self) -> str:
        """A hash of all that it asks and of its material: the same verdict may be given again under it."""

    @property
    def measure(self) -> Measure | None:
        """What its measured checks count; None when it only has right and wrong."""

    def checks(self, split: Split) -> Sequence[Check]:
        """The checks of a split, in any order."""

    def owns(self, path: str) -> bool:
        """Whether a file, from the workspace's directory, is the suite's: no candidate may touch it."""
        return False


@runtime_checkable
class BoxedSuite(Protocol):
    """A suite whose checks run candidate code; the judge runs it in a jail (`calls` and `test`)."""

    @property
    def root(self) -> str:
        """The project's directory, from the workspace's (`.` for itself), where its code and pytest run."""

    @property
    def imports(self) -> tuple[str, ...]:
        """Directories below the root that modules are found in: `(".",)`, `("src",)`."""

    @property
    def packages(self) -> tuple[Path, ...]:
        """Directories of this machine with packages that it needs, pytest's among them; read only."""

    @property
    def plugins(self) -> tuple[str, ...]:
        """Modules of pytest's plugins that its tests need, such as `pytest_asyncio.plugin`."""

    def material(self, split: Split) -> Mapping[str, bytes]:
        """Files of the suite that a split needs in the box, by path from the workspace's directory.

        They are laid over both trees alike. Tests are among them, expected answers are not.
        """


@runtime_checkable
class DrawingSuite(Protocol):
    """A suite that draws questions once a candidate is known."""

    def drawn(self, before: Path, after: Path, seed: str) -> Sequence[Check]:
        """Sealed checks of what could have changed between two trees; blocking."""

    async def backed(self, boxes: Any, before: Path, after: Path, mended: Sequence[str], seed: str) -> bool:
        """Whether the code around a change shows that it mends rightly what it mends.

        Args:
            boxes: an `engine.improve.judge.box.Boxes`; None where nothing can be run.
            before: the tree before.
            after: the tree with the change.
            mended: ids of the checks that hold now.
            seed: draws what is tried.
        """


@runtime_checkable
class PaidSuite(Protocol):
    """A suite that asks a model."""

    pays: bool
    """Whether it does so for this component."""
    limits: SpendingLimits
    """What it may take from now on; set anew before each judgement."""
    usd: float
    """What it took so far."""
    tokens: int


@runtime_checkable
class DataSuite(Protocol):
    """A suite that runs no candidate code, for the candidate is data: it examines the tree by itself."""

    async def examine(self, tree: Path, check: Check, *, seed: int) -> Report:
        """The result of a check (`data`) in a tree. It has to be the same for the same arguments."""


class Auditor(Protocol):
    """Knows components, and finds what could be better in them."""

    async def components(self) -> Sequence[Component]:
        """What there is that can be improved."""

    def fits(self, component: Component) -> bool:
        """Whether it can look at such a component."""

    async def audit(self, component: Component, tree: Path, progress: Progress) -> Sequence[Finding]:
        """What could be better in a component; empty when nothing was found.

        Args:
            component: what is looked at.
            tree: stands for the workspace's directory, with the files that the component needs.
            progress: to tell how far it is.

        Raises:
            AuditUnavailable: it could not be looked; the message says why.
        """


_RISK = {Ruling.BETTER: 0, Ruling.NO_BETTER: 1, Ruling.BROKEN: 2, Ruling.REJECTED: 3}


@dataclass(frozen=True, slots=True)
class Variant:
    """A candidate that was judged, with the new texts of its files."""

    candidate: Candidate
    texts: Mapping[str, str | None]

    @property
    def gain(self) -> float:
        """What it saves or mends, as it was measured; 0 where nothing was."""
        verdict = self.candidate.verdict
        measured = verdict.gain.mean if verdict is not None and verdict.gain is not None else 0.0
        return measured + (100.0 * len(verdict.mended) if verdict is not None else 0.0)

    @property
    def size(self) -> int:
        """Lines that it changes."""
        return self.candidate.added + self.candidate.removed

    @property
    def risk(self) -> int:
        """How it was ruled on: 0 for better, 3 for rejected."""
        return _RISK[self.candidate.verdict.ruling] if self.candidate.verdict is not None else 1

    def beats(self, other: Variant) -> bool:
        """Whether it is as good in everything and better in something."""
        mine, theirs = (self.gain, -self.size, -self.risk), (other.gain, -other.size, -other.risk)
        return mine != theirs and all(one >= two for one, two in zip(mine, theirs, strict=True))


@dataclass(frozen=True, slots=True)
class ProposalRequest:
    """What changes are to be thought of."""

    component: Component
    """What is to be better."""
    tree: Path
    """Stands for the workspace's directory; what is proposed builds on its files."""
    findings: Sequence[Finding]
    """What is to be mended."""
    rng: random.Random
    """All randomness that is used."""
    budget_usd: float = 0.0
    """What models may cost."""
    budget_tokens: int = 0
    """What a model without a price may read and write; 0 for both asks none."""
    seconds: float = 600.0
    """Processor seconds that a search may take."""
    tried: Sequence[Variant] = ()
    """What was judged so far on the same tree, the oldest first."""


class Proposer(Protocol):
    """Thinks of changes."""

    name: str

    def proposes(self, component: Component) -> bool:
        """Whether it can think of changes to such a component."""

    async def propose(self, asked: ProposalRequest) -> Iterable[Proposal]:
        """Changes, the most promising first; the same for the same randomness where no model is asked.

        Raises:
            NothingProposed: it has none and says why; the campaign tells it and continues.
        """


@runtime_checkable
class Reflecting(Protocol):
    """A proposer that learns from what the judge said, and is asked again with it."""

    asks: int
    """How often it is asked on one tree at most."""


class SuiteMaker(Protocol):
    """Makes the suites by which components are judged."""

    def fits(self, component: Component) -> bool:
        """Whether it knows how such a component is judged."""

    def roots(self, component: Component) -> tuple[str, ...]:
        """Files and directories, from the workspace's, that it takes to look at it and to judge it."""

    async def sets(self, component: Component, workspace: Path) -> Mapping[str, str]:
        """What may be worked with, what chooses and what is sealed, in words by split; nothing is run."""

    async def make(self, component: Component, before: Path, seed: int) -> Suite:
        """The suite; `before` stands for the workspace's directory and has the files of `roots`.

        Raises:
            JobRefused: it cannot be judged, as where it has no tests; the message says why.
            NotJudged: what it takes is not to be had here; the campaign ends without an improvement.
        """
