"""What Mastermind improves and how that is judged: jobs, backlog, campaigns, what was applied."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import field, replace
from enum import StrEnum
from typing import Any

from engine.value import dataclass


class ComponentKind(StrEnum):
    """What sort of thing can be improved."""

    PROJECT = "project"
    """A Python project in the sandbox, with its tests."""
    MODULE = "module"
    """One file of such a project."""
    PLANS = "plans"
    RECIPES = "recipes"
    """The procedural thinker's recipes in the workspace."""
    PROMPT = "prompt"
    """Words that a model is given."""
    THRESHOLDS = "thresholds"
    """Numbers by which an agent's loop decides."""
    TOOL = "tool"
    AGENT = "agent"


@dataclass(frozen=True, slots=True)
class Component:
    """Something that can be improved, with how that is measured."""

    id: str
    """A word such as `sample` or `sample/stats.py`; unique in a workspace."""
    kind: ComponentKind
    title: str
    paths: tuple[str, ...] = ()
    """Its files, from the workspace's directory; a candidate may change these and no others."""
    measure: str = ""
    """How a candidate is measured, in words."""
    critical: bool = False
    """Whether the operator approves before anything is tried."""
    aliases: tuple[str, ...] = ()
    unsearched: str = ""
    """What of it is not looked at, and why; empty where all of it is."""


class Concern(StrEnum):
    """What a finding, and an item of the backlog, is about."""

    TEST = "failing test"
    SPEED = "slow"
    ROBUSTNESS = "missing check"
    COMPLEXITY = "complexity"
    STYLE = "static finding"
    FAILURES = "failures"
    REPAIRS = "repeated repairs"
    """The same recovery, again and again."""
    INTERVENTIONS = "manual interventions"
    """What the operator had to do by hand."""
    IDEA = "suggestion"


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that an audit found, with what shows it."""

    target: str
    """The id of the component."""
    concern: Concern
    text: str
    """One sentence for a person."""
    evidence: tuple[str, ...] = ()
    """References of events (`pilot:31`), places in files (`stats.py:12`), lines of a test's output."""
    severity: int = 5
    """1 to 10, 10 the worst."""
    path: str = ""
    line: int = 0
    """The place, where there is one: from the workspace's directory; lines count from 1."""
    name: str = ""
    """What is meant there: a function, a test, a rule's code."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """A change that is to be tried: the new contents of files."""

    title: str
    origin: str
    """Who thought of it: `fixer:membership`, `search:thresholds`, `model:claude-…`, `operator`."""
    files: Mapping[str, str | None] = field(default_factory=dict)
    """New text by path from the workspace's directory; None removes the file."""
    why: str = ""
    answers: tuple[Finding, ...] = ()
    """What it is to mend."""
    parent: str = ""
    """The candidate that it was made from."""
    cost_usd: float = 0.0
    tokens: int = 0
    """What thinking of it cost."""


class Ruling(StrEnum):
    """What the judge says of a candidate."""

    BETTER = "better"
    """The interval of its gain lies above nothing, and nothing that held broke."""
    NO_BETTER = "no better"
    REJECTED = "rejected"
    """It broke a rule of the judging; the reasons name it."""
    BROKEN = "broken"
    """Something that held before does not hold with it."""


@dataclass(frozen=True, slots=True)
class Gain:
    """A paired comparison on tasks that the candidate has not seen."""

    mean: float
    low: float
    high: float
    """The interval at 95 %, of the mean of the paired differences; above 0 is better."""
    pairs: int
    unit: str
    """`tests passed`, `× faster`, `steps`, …"""
    before: float = 0.0
    after: float = 0.0

    @property
    def shown(self) -> bool:
        """Whether it is above nothing with its whole interval."""
        return self.low > 0

    @property
    def words(self) -> str:
        """The mean in its unit; where less than nothing is saved, how much more is taken."""
        saved = self.mean >= 0 or not self.unit.endswith(" saved")
        more = f"{-self.mean:.3g} {self.unit.removesuffix(' saved')} more"
        return f"{self.mean:+.3g} {self.unit}" if saved else more


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of judging one candidate."""

    ruling: Ruling
    reasons: tuple[str, ...] = ()
    gain: Gain | None = None
    mended: tuple[str, ...] = ()
    """Checks that failed before and hold now."""
    broken: tuple[str, ...] = ()
    """Checks that held before and fail now."""
    seconds: float = 0.0
    """Processor time that judging took."""
    cheats: tuple[str, ...] = ()
    """Rules of the judging that it broke or tried to break, by name."""


class ItemStatus(StrEnum):
    """Where an item of the backlog stands."""

    PENDING = "pending"
    PENDING_APPROVAL = "pending approval"
    IN_PROGRESS = "in progress"
    COMPLETED = "completed"
    FAILED = "failed"
    REJECTED = "rejected"
    ROLLED_BACK = "rolled back"


class CampaignStatus(StrEnum):
    """Where a campaign stands."""

    AUDITING = "auditing"
    PROPOSING = "proposing"
    JUDGING = "judging"
    NEEDS_OPERATOR = "needs you"
    """A candidate is better, and waits for the operator to look at its difference."""
    APPLIED = "applied"
    NO_IMPROVEMENT = "no improvement found"
    DECLINED = "declined"
    FAILED = "failed"
    CANCELLED = "cancelled"
    INTERRUPTED = "interrupted"
    """The session ended in it; going on pays nothing twice."""
    ROLLED_BACK = "rolled back"

    @property
    def over(self) -> bool:
        """Whether nothing more follows by itself."""
        return self not in (self.AUDITING, self.PROPOSING, self.JUDGING, self.NEEDS_OPERATOR)


RESUMABLE = tuple(
    CampaignStatus[name] for name in ["INTERRUPTED", "CANCELLED", "FAILED", "NEEDS_OPERATOR", "ROLLED_BACK"]
)
"""Where a campaign can continue from."""
OPEN_ITEMS = (ItemStatus.PENDING, ItemStatus.PENDING_APPROVAL, ItemStatus.IN_PROGRESS)


class JobStatus(StrEnum):
    """Where a job stands."""

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    NEEDS_OPERATOR = "needs you"
    """It ended with something that the operator decides: two readings, a candidate to look at."""
    REFUSED = "refused"
    """It could not be begun as asked; nothing was changed."""
    FAILED = "failed"
    CANCELLED = "cancelled"
    INTERRUPTED = "interrupted"

    @property
    def over(self) -> bool:
        """Whether nothing more follows."""
        return self not in (self.QUEUED, self.RUNNING)


@dataclass(frozen=True, slots=True)
class JobRecord:
    """A background job."""

    id: str
    """`j1`, `j2`, …"""
    verb: str
    argument: str = ""
    """What was typed behind the verb."""
    actor: str = ""
    heavy: bool = False
    """Whether it takes much of the machine; such jobs run one at a time."""
    status: JobStatus = JobStatus.QUEUED
    done: float = 0.0
    of: float = 0.0
    """How much is done of how much; 0 of 0 where that is not known."""
    text: str = ""
    """What it is at."""
    message: str = ""
    """Its result, in one line or a few."""
    answer: Mapping[str, Any] = field(default_factory=dict)
    """Its result, as JSON."""
    error: str = ""
    """Id under which the log has the traceback; empty where nothing broke."""
    asked: str = ""
    begun: str = ""
    ended: str = ""
    event: str = ""
    """Reference of the event by which it was asked for."""


@dataclass(frozen=True, slots=True)
class BacklogItem:
    """Something that could be better, and its result."""

    id: str
    """`i1`, `i2`, …"""
    uid: str
    """A long id that says the same in every session: 16 hexadecimal digits."""
    target: str
    """Id of the component."""
    concern: Concern
    suggestion: str
    """One sentence for a person."""
    priority: int = 5
    """1 to 10, 10 the most urgent."""
    source: str = ""
    """Who proposed it: `audit`, `operator:…`, `model:…`."""
    status: ItemStatus = ItemStatus.PENDING
    critical: bool = False
    """Whether the operator approves before anything is tried."""
    attempts: int = 0
    merged: int = 0
    """How many like it were found while it was pending."""
    evidence: tuple[str, ...] = ()
    finding: Finding | None = None
    """The finding that it stands for, where an audit made it."""
    added: str = ""
    changed: str = ""
    tried: str = ""
    """Times as those of events; `tried` is that of the last attempt's beginning."""
    decided_by: str = ""
    campaign: str = ""
    """The newest campaign on it."""
    message: str = ""
    """Why it stands as it does."""


@dataclass(frozen=True, slots=True)
class CampaignBudget:
    """What a campaign may take."""

    candidates: int = 12
    """How many candidates are judged at most."""
    seconds: float = 600.0
    """Processor time of judging, in seconds."""
    usd: float = 0.0
    """What models may cost; 0 asks none, unless tokens are given."""
    tokens: int = 0
    """What a model may read and write that has no price; 0 asks none."""
    allow: bool = False
    """Whether a change may reach for files, programs, the network and the like that was not reached for."""


@dataclass(frozen=True, slots=True)
class Stage:
    """What a campaign did, and when."""

    at: str
    status: CampaignStatus
    text: str
    event: str = ""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A change that a campaign tries; its texts are blobs."""

    id: str
    """`k1.3`: the third of campaign `k1`."""
    component: str
    title: str
    origin: str
    why: str = ""
    parent: str = ""
    """The candidate that it was made from."""
    files: Mapping[str, str | None] = field(default_factory=dict)
    """Blob of the new contents by path from the workspace's directory; None removes the file."""
    before: Mapping[str, str | None] = field(default_factory=dict)
    """Blob of what each of these files held when the difference was made; None where there was none."""
    diff: str = ""
    """Blob of the difference as unified text."""
    added: int = 0
    removed: int = 0
    """Lines of the difference."""
    key: str = ""
    """Hash of the tree before, the candidate and the suite: what was judged under it is not judged again."""
    answers: tuple[Finding, ...] = ()
    cost_usd: float = 0.0
    verdict: Verdict | None = None
    again: str = ""
    """The candidate whose verdict this one has, where the same was judged before."""


@dataclass(frozen=True, slots=True)
class FileVersion:
    """A file as it was at a moment."""

    blob: str | None
    """None where there was none."""
    mode: int = 0
    """Its permission bits."""


@dataclass(frozen=True, slots=True)
class Application:
    """A candidate that was written to the workspace, with what it takes to go back."""

    candidate: str
    before: Mapping[str, FileVersion] = field(default_factory=dict)
    after: Mapping[str, FileVersion] = field(default_factory=dict)
    """The files that it touches, by path from the workspace's directory."""
    made: tuple[str, ...] = ()
    """Directories that it made, outermost first."""
    tree_before: str = ""
    tree_after: str = ""
    """Hash over the component's files."""
    begun: str = ""
    ended: str = ""
    """Empty while it is being written."""
    undoing: bool = False
    """Whether it is being taken back."""
    failures_before: int = 0
    actions_before: int = 0
    """How many of the newest actions on the component had failed when it was applied, of how many."""


@dataclass(frozen=True, slots=True)
class Shadow:
    """The result of running a candidate beside what is there, with no effect on anything."""

    candidate: str
    seed: int
    """Of the tasks that were drawn for it."""
    verdict: Verdict
    sealed: int = 0
    """How many sealed checks it was asked."""
    fresh: bool = True
    """Whether the tasks are others than those of the campaign; recorded goals may be the same."""
    usd: float = 0.0
    """What a model cost by which it was judged."""
    at: str = ""


@dataclass(frozen=True, slots=True)
class Campaign:
    """An attempt to make something better, from the audit to its result."""

    id: str
    """`k1`, `k2`, …"""
    directive: str
    component: Component
    rule: str = ""
    """How the directive was understood, in words."""
    status: CampaignStatus = CampaignStatus.AUDITING
    seed: int = 0
    budget: CampaignBudget = CampaignBudget()
    item: str = ""
    """The item of the backlog that it is on; empty for none."""
    job: str = ""
    """The job that last worked on it."""
    findings: tuple[Finding, ...] = ()
    candidates: tuple[Candidate, ...] = ()
    chosen: str = ""
    """The candidate that waits for the operator, or was applied."""
    application: Application | None = None
    stages: tuple[Stage, ...] = ()
    message: str = ""
    seconds: float = 0.0
    """Processor time that judging has taken."""
    tokens: int = 0
    """What models read and wrote for it."""
    usd: float = 0.0
    begun: str = ""
    ended: str = ""
    actor: str = ""
    told: str = ""
    """What the watch told of it since it was applied; empty for nothing."""
    sets: Mapping[str, int] = field(default_factory=dict)
    """How many checks the suite has, by split: `work`, `choose`, `sealed`; empty until it is installed."""
    suite: str = ""
    """Hash of all that it is judged by."""
    kept: Mapping[str, str] = field(default_factory=dict)
    """Blob of what was paid for, by who proposed it and the tree that it builds on."""
    prepaid: float = 0.0
    """In USD: what was paid for answers of which no candidate is made yet; part of `usd`."""
    shadows: tuple[Shadow, ...] = ()

    def candidate(self, target: str) -> Candidate | None:
        """One of its candidates by id."""
        return next((candidate for candidate in self.candidates if candidate.id == target), None)


@dataclass(frozen=True, slots=True)
class Identity:
    """Who can sign; the private key is in no event."""

    entity: str
    address: str
    public_key: str
    """In hexadecimal."""
    created: str = ""
    deprecated: str = ""
    """When it was given up; empty while it holds."""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line of what Mastermind did and why."""

    at: str
    topic: str
    """Such as `campaign.applied`."""
    text: str
    event: str
    actor: str = ""


@dataclass(frozen=True, slots=True)
class MastermindSettings:
    """How Mastermind works, as the workspace's settings say (`[mastermind]` in pilothouse.toml)."""

    cooldown_s: float = 7_200.0
    """How long an item is left alone after a failed attempt, and not added again after it was settled."""
    interval_s: float = 30.0
    """Between two items of autonomous work."""
    watch_s: float = 86_400.0
    """Read from the settings of 0.1, and without effect."""
    approve_critical: bool = True
    """Whether critical targets wait for the operator."""
    critical: tuple[str, ...] = ("pilothouse.toml", "mastermind", "coordinator", "self_improve")
    """Stems of ids and paths that make a target critical."""
    busy_percent: float = 85.0
    """Work that is not waited for is put off while the processor is busier than that; 100 never."""
    budget: CampaignBudget = CampaignBudget()


@dataclass(slots=True)
class MastermindState:
    """Everything that Mastermind knows: the fold of its stream."""

    version: int = 0
    hash: str = ""
    jobs: dict[str, JobRecord] = field(default_factory=dict)
    items: dict[str, BacklogItem] = field(default_factory=dict)
    campaigns: dict[str, Campaign] = field(default_factory=dict)
    identities: dict[str, Identity] = field(default_factory=dict)
    """By address."""
    log: list[LogLine] = field(default_factory=list)
    """The newest lines, oldest first."""
    verdicts: dict[str, tuple[str, Verdict]] = field(default_factory=dict)
    """By key: the candidate that was judged, and how."""
    autonomous: str = ""
    """The job that works the backlog off by itself; empty for none."""

    def copy(self) -> MastermindState:
        """A state that later events do not change."""
        kept = ("jobs", "items", "campaigns", "identities", "log", "verdicts")
        return replace(self, **{name: copy(getattr(self, name)) for name in kept})
