"""What the system improves in itself and how that is judged, as plain values.

Source: mindX spec §5 and §6 (what the originals meant to do), steering spec §3 idea 13 (the sealed judge).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class ComponentKind(StrEnum):
    """What sort of thing can be improved."""

    PROJECT = "project"
    """A Python project in the sandbox, with its tests."""
    MODULE = "module"
    """One file of such a project."""
    PLANS = "plans"
    """A library of plans in AgentSpeak(L)."""
    RECIPES = "recipes"
    """The procedural thinker's recipes in the workspace."""
    PROMPT = "prompt"
    """Words that a model is given."""
    THRESHOLDS = "thresholds"
    """Numbers by which an agent's loop decides."""
    TOOL = "tool"
    """A tool that was written in the workspace."""
    AGENT = "agent"
    """An agent's specification."""


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
    """Actions that fail too often."""
    REPAIRS = "repeated repairs"
    """The same recovery, again and again."""
    INTERVENTIONS = "manual interventions"
    """What the operator had to do by hand."""
    IDEA = "suggestion"
    """What a person or a model proposed."""


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
    claimed: str = ""
    """The difference that it says it makes, where it came with one; it has to be the real one."""
    why: str = ""
    answers: tuple[Finding, ...] = ()
    """What it is to mend."""
    parent: str = ""
    """The candidate that it was made from."""
    cost_usd: float = 0.0
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


@dataclass(frozen=True, slots=True)
class Verdict:
    """What came of judging one candidate."""

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
    """Where an item of the backlog stands (mindX spec §6.2)."""

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
    """The operator looked at it and said no."""
    FAILED = "failed"
    CANCELLED = "cancelled"
    INTERRUPTED = "interrupted"
    """The session ended in it; going on pays nothing twice."""
    ROLLED_BACK = "rolled back"

    @property
    def over(self) -> bool:
        """Whether nothing more comes of it by itself."""
        return self not in (self.AUDITING, self.PROPOSING, self.JUDGING, self.NEEDS_OPERATOR)
