"""The kinds of events of the stream `workspace@mastermind`: what Mastermind did, and why.

The stream is no agent's: it is verified with the rest and not replayed. `engine.mastermind.fold` makes the
state of it. Source: mindX spec §6.
"""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import Field

from engine.domain.improvement import CampaignStatus, Component, Finding, ItemStatus, Verdict
from engine.domain.mastermind import (
    Application,
    BacklogItem,
    CampaignBudget,
    Candidate,
    Identity,
    JobStatus,
    Shadow,
)
from engine.journal.payload import Payload


class JobAsked(Payload):
    """A piece of work was asked for; it begins when there is room for it."""

    kind: ClassVar[str] = "mastermind.job_asked"
    job: str
    verb: str
    argument: str = ""
    heavy: bool = False


class JobBegun(Payload):
    """A job began."""

    kind: ClassVar[str] = "mastermind.job_begun"
    job: str


class JobProgressed(Payload):
    """How far a job is; told a few times a second at most."""

    kind: ClassVar[str] = "mastermind.job_progressed"
    job: str
    done: float = 0.0
    of: float = 0.0
    text: str = ""


class JobEnded(Payload):
    """A job is over, with all that it started."""

    kind: ClassVar[str] = "mastermind.job_ended"
    job: str
    status: JobStatus
    message: str = ""
    answer: dict[str, Any] = Field(default_factory=dict)
    error: str = ""


class ItemAdded(Payload):
    """The backlog has one more item."""

    kind: ClassVar[str] = "mastermind.item_added"
    item: BacklogItem


class ItemMerged(Payload):
    """What was to be added is in the backlog already; the higher priority counts."""

    kind: ClassVar[str] = "mastermind.item_merged"
    item: str
    priority: int = Field(ge=1, le=10)
    evidence: tuple[str, ...] = ()
    """All of its evidence now."""
    suggestion: str = ""
    """The words that were merged, where they differ."""


class ItemMoved(Payload):
    """An item stands elsewhere."""

    kind: ClassVar[str] = "mastermind.item_moved"
    item: str
    status: ItemStatus
    message: str = ""
    campaign: str = ""
    decided: bool = False
    """Whether the actor decided it, as by approving or rejecting."""


class CampaignBegun(Payload):
    """An attempt to make something better begins."""

    kind: ClassVar[str] = "mastermind.campaign_begun"
    campaign: str
    directive: str
    component: Component
    rule: str = ""
    seed: int
    budget: CampaignBudget
    job: str = ""
    item: str = ""


class CampaignStaged(Payload):
    """A campaign is at another stage, or says how it is at this one."""

    kind: ClassVar[str] = "mastermind.campaign_staged"
    campaign: str
    status: CampaignStatus
    text: str = ""
    chosen: str = ""
    """The candidate that waits for the operator; empty leaves it as it was."""
    job: str = ""
    """The job that works on it from here; empty leaves it as it was."""
    usd: float = 0.0
    """What a model cost without a candidate to show for it."""
    proposing: bool = False
    """Whether that was for a proposal, of which `ProposalsKept` may have told already."""


class CampaignFound(Payload):
    """What the audit of a campaign found."""

    kind: ClassVar[str] = "mastermind.campaign_found"
    campaign: str
    findings: tuple[Finding, ...]


class CampaignSplit(Payload):
    """How a campaign is judged: how many checks may be worked with, choose, and are sealed."""

    kind: ClassVar[str] = "mastermind.campaign_split"
    campaign: str
    sets: dict[str, int]
    suite: str = ""


class ProposalsKept(Payload):
    """What a proposer was paid for is kept, so that a campaign that goes on does not pay again."""

    kind: ClassVar[str] = "mastermind.proposals_kept"
    campaign: str
    key: str
    """Of who proposed it and the tree that it builds on."""
    blob: str
    usd: float = 0.0


class ModelCharged(Payload):
    """A call of a model that Mastermind made is over; it counts for the workspace's budget."""

    kind: ClassVar[str] = "mastermind.model_charged"
    model: str
    tokens: int = 0
    usd: float = 0.0
    unpriced: int = 0
    request: str = ""
    """Digest of what was asked."""
    trouble: str = ""
    """Why there is no answer; empty where there is one."""


class ShadowRun(Payload):
    """A candidate ran beside what is there, on tasks that it was not chosen by; nothing was changed."""

    kind: ClassVar[str] = "mastermind.shadow_run"
    campaign: str
    shadow: Shadow


class CandidateMade(Payload):
    """A change is to be tried."""

    kind: ClassVar[str] = "mastermind.candidate_made"
    campaign: str
    candidate: Candidate


class CandidateJudged(Payload):
    """What the judge says of a candidate."""

    kind: ClassVar[str] = "mastermind.candidate_judged"
    campaign: str
    candidate: str
    verdict: Verdict
    again: str = ""
    """The candidate that was judged, where this one is the same; judging it cost nothing."""


class ApplyBegun(Payload):
    """A candidate's files are about to be written; what was there can be had again."""

    kind: ClassVar[str] = "mastermind.apply_begun"
    campaign: str
    application: Application


class ApplyEnded(Payload):
    """All of a candidate's files are written."""

    kind: ClassVar[str] = "mastermind.apply_ended"
    campaign: str
    tree: str
    """Hash over the component's files."""


class RollbackBegun(Payload):
    """A campaign's files are about to be brought back."""

    kind: ClassVar[str] = "mastermind.rollback_begun"
    campaign: str
    reason: str = ""


class RolledBack(Payload):
    """All files that a campaign touched are as they were before it."""

    kind: ClassVar[str] = "mastermind.rolled_back"
    campaign: str
    tree: str
    reason: str = ""
    status: CampaignStatus = CampaignStatus.ROLLED_BACK
    """Failed where it did not pass its validation, waiting again where the session ended in it."""


class WatchTold(Payload):
    """What was applied does worse than what was there before."""

    kind: ClassVar[str] = "mastermind.watch_told"
    campaign: str
    text: str
    before: int
    after: int


class Noted(Payload):
    """Something else that Mastermind did, or was told; a line of its log."""

    kind: ClassVar[str] = "mastermind.noted"
    topic: str
    """Such as `agent.created`."""
    text: str
    data: dict[str, Any] = Field(default_factory=dict)


class IdentityCreated(Payload):
    """Somebody can sign from now on."""

    kind: ClassVar[str] = "mastermind.identity_created"
    identity: Identity


class IdentityDeprecated(Payload):
    """An identity is given up; what it signed can still be checked."""

    kind: ClassVar[str] = "mastermind.identity_deprecated"
    address: str
    reason: str = ""


class AutonomyChanged(Payload):
    """Whether the backlog is worked off by itself."""

    kind: ClassVar[str] = "mastermind.autonomy"
    job: str
    """The job that does it; empty when none does."""
    reason: str = ""
