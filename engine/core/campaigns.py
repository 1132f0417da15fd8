"""Commands to Mastermind and the events of its stream `workspace@mastermind`.

The stream is no agent's: it is verified with the rest and not replayed. `engine.improve.state` folds it.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from engine.core import improvement as imp
from engine.core.command import Command
from engine.core.journal import Payload
from engine.core.reasons import NONE, Reason

_Id = Annotated[str, Field(min_length=1, max_length=64)]
_Words = Annotated[str, Field(max_length=8_000)]


class ForMastermind(Command):
    """What Mastermind carries out, and no agent."""


class StartJob(ForMastermind, do="mastermind_start"):
    """Begin a piece of background work; the receipt's data has its id as `job`.

    The verbs are those that `Mastermind.verbs` lists: `evolve`, `coord_improve`, `coord_analyze`,
    `coord_process_backlog`, `campaign_resume`, `coord_shadow` and what other parts registered.
    """

    verb: str = Field(pattern=r"^[a-z][a-z0-9_]{0,39}$")
    argument: _Words = ""
    """What was typed behind the verb, as it stands."""
    component: str = Field(default="", max_length=500)
    """The component that the operator chose where several fit; empty where the argument says it."""
    seed: int | None = Field(default=None, ge=0, le=2**63 - 1)
    """Of the campaign's randomness; None draws one, which is recorded."""
    candidates: int | None = Field(default=None, ge=1, le=1_000)
    seconds: float | None = Field(default=None, gt=0, le=86_400, allow_inf_nan=False)
    """Processor time of judging."""
    usd: float | None = Field(default=None, ge=0, le=10_000, allow_inf_nan=False)
    """What models may cost."""
    tokens: int | None = Field(default=None, ge=0, le=1_000_000_000)
    """What a model without a price may read and write."""
    allow: bool | None = None
    """Whether a change may reach for files, programs, the network and the like that was not reached for."""
    count: int = Field(default=1, ge=1, le=1_000)
    """Items of the backlog that are worked off."""
    auto: bool = False
    """Whether the backlog is worked off by itself, until it is empty, stopped or out of budget."""
    options: dict[str, Any] = Field(default_factory=dict)
    """What a verb of another part takes besides."""


class CancelJob(ForMastermind, do="mastermind_cancel"):
    """End a job with all that it started."""

    job: _Id


class AddItem(ForMastermind, do="mastermind_add"):
    """Put a suggestion into the backlog."""

    target: str = Field(min_length=1, max_length=500)
    suggestion: str = Field(min_length=1, max_length=4_000)
    priority: int = Field(default=5, ge=1, le=10)
    concern: imp.Concern = imp.Concern.IDEA
    critical: bool = False
    evidence: tuple[str, ...] = Field(default=(), max_length=100)


class SettleItem(ForMastermind, do="mastermind_settle"):
    """Approve or reject an item of the backlog; an item may be named by a unique prefix of its id."""

    item: _Id
    approve: bool
    reason: str = Field(default="", max_length=4_000)


class ApplyCandidate(ForMastermind, do="mastermind_apply"):
    """Write the candidate that a campaign found better to the workspace."""

    campaign: _Id
    diff: str = Field(default="", max_length=64)
    """Blob of the difference that the operator saw; empty takes the one that is there."""


class DeclineCampaign(ForMastermind, do="mastermind_decline"):
    """Say no to the candidate that waits."""

    campaign: _Id
    reason: str = Field(default="", max_length=4_000)


class RollBack(ForMastermind, do="mastermind_roll_back"):
    """Bring the files back that a campaign changed."""

    campaign: _Id = "last"
    """A campaign's id, or `last` for the newest one that is applied."""


class JobAsked(Payload, kind="mastermind.job_asked"):
    """A piece of work was asked for; it begins when there is room for it."""

    job: str
    verb: str
    argument: str = ""
    heavy: bool = False


class JobBegun(Payload, kind="mastermind.job_begun"):
    """A job began."""

    job: str


class JobProgressed(Payload, kind="mastermind.job_progressed"):
    """How far a job is; told a few times a second at most."""

    job: str
    done: float = 0.0
    of: float = 0.0
    text: Reason = NONE


class JobEnded(Payload, kind="mastermind.job_ended"):
    """A job is over, with all that it started."""

    job: str
    status: imp.JobStatus
    message: Reason = NONE
    answer: dict[str, Any] = Field(default_factory=dict)
    error: str = ""


class ItemAdded(Payload, kind="mastermind.item_added"):
    """The backlog has one more item."""

    item: imp.BacklogItem


class ItemMerged(Payload, kind="mastermind.item_merged"):
    """What was to be added is in the backlog already; the higher priority counts."""

    item: str
    priority: int = Field(ge=1, le=10)
    evidence: tuple[str, ...] = ()
    """All of its evidence now."""
    suggestion: str = ""
    """The words that were merged, where they differ."""


class ItemMoved(Payload, kind="mastermind.item_moved"):
    """An item stands elsewhere."""

    item: str
    status: imp.ItemStatus
    message: Reason = NONE
    campaign: str = ""
    decided: bool = False
    """Whether the actor decided it, as by approving or rejecting."""


class CampaignBegun(Payload, kind="mastermind.campaign_begun"):
    """An attempt to make something better begins."""

    campaign: str
    directive: str
    component: imp.Component
    rule: str = ""
    seed: int
    budget: imp.CampaignBudget
    job: str = ""
    item: str = ""


class CampaignStaged(Payload, kind="mastermind.campaign_staged"):
    """A campaign is at another stage, or says how it is at this one."""

    campaign: str
    status: imp.CampaignStatus
    text: str = ""
    chosen: str = ""
    """The candidate that waits for the operator; empty leaves it as it was."""
    job: str = ""
    """The job that works on it from here; empty leaves it as it was."""
    usd: float = 0.0
    """What a model cost without a candidate to show for it."""
    tokens: int = 0
    """What it read and wrote for that."""
    proposing: bool = False
    """Whether that was for a proposal, of which `ProposalsKept` may have told already."""


class CampaignFound(Payload, kind="mastermind.campaign_found"):
    """What the audit of a campaign found."""

    campaign: str
    findings: tuple[imp.Finding, ...]


class CampaignSplit(Payload, kind="mastermind.campaign_split"):
    """How a campaign is judged: how many checks may be worked with, choose, and are sealed."""

    campaign: str
    sets: dict[str, int]
    suite: str = ""


class ProposalsKept(Payload, kind="mastermind.proposals_kept"):
    """What a proposer was paid for is kept, so that a campaign that continues does not pay again."""

    campaign: str
    key: str
    """Of who proposed it and the tree that it builds on."""
    blob: str
    usd: float = 0.0
    tokens: int = 0


class ModelCharged(Payload, kind="mastermind.model_charged"):
    """A call of a model that Mastermind made is over; it counts for the workspace's budget."""

    model: str
    tokens: int = 0
    usd: float = 0.0
    unpriced: int = 0
    request: str = ""
    """Digest of what was asked."""
    trouble: str = ""
    """Why there is no answer; empty where there is one."""


class ShadowRun(Payload, kind="mastermind.shadow_run"):
    """A candidate ran beside what is there, on tasks that it was not chosen by; nothing was changed."""

    campaign: str
    shadow: imp.Shadow


class CandidateMade(Payload, kind="mastermind.candidate_made"):
    """A change is to be tried."""

    campaign: str
    candidate: imp.Candidate


class CandidateJudged(Payload, kind="mastermind.candidate_judged"):
    """What the judge says of a candidate."""

    campaign: str
    candidate: str
    verdict: imp.Verdict
    again: str = ""
    """The candidate that was judged, where this one is the same; judging it cost nothing."""


class ApplyBegun(Payload, kind="mastermind.apply_begun"):
    """A candidate's files are about to be written; what was there can be restored."""

    campaign: str
    application: imp.Application


class ApplyEnded(Payload, kind="mastermind.apply_ended"):
    """All of a candidate's files are written."""

    campaign: str
    tree: str
    """Hash over the component's files."""


class RollbackBegun(Payload, kind="mastermind.rollback_begun"):
    """A campaign's files are about to be brought back."""

    campaign: str
    reason: Reason = NONE


class RolledBack(Payload, kind="mastermind.rolled_back"):
    """All files that a campaign touched are as they were before it."""

    campaign: str
    tree: str
    reason: Reason = NONE
    status: imp.CampaignStatus = imp.CampaignStatus.ROLLED_BACK
    """Failed where it did not pass its validation, waiting again where the session ended in it."""


class WatchTold(Payload, kind="mastermind.watch_told"):
    """What was applied does worse than what was there before."""

    campaign: str
    text: str
    before: int
    after: int


class Noted(Payload, kind="mastermind.noted"):
    """Something else that Mastermind did, or was told; a line of its log."""

    topic: str
    """Such as `agent.created`."""
    text: str
    data: dict[str, Any] = Field(default_factory=dict)


class IdentityCreated(Payload, kind="mastermind.identity_created"):
    """A key can sign from now on."""

    identity: imp.Identity


class IdentityDeprecated(Payload, kind="mastermind.identity_deprecated"):
    """An identity is given up; what it signed can still be checked."""

    address: str
    reason: str = ""


class AutonomyChanged(Payload, kind="mastermind.autonomy"):
    """Whether the backlog is worked off by itself."""

    job: str
    """The job that does it; empty when none does."""
    reason: str = ""
