"""Commands to Mastermind: what an operator asks of the jobs, the backlog and the campaigns.

They go through `Engine.submit` like all others and concern no agent. Source: mindX spec §1.2, §6.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from engine.domain.command import Command
from engine.domain.improvement import Concern

_Id = Annotated[str, Field(min_length=1, max_length=64)]
_Words = Annotated[str, Field(max_length=8_000)]


class ForMastermind(Command):
    """What Mastermind carries out, and no agent."""


class StartJob(ForMastermind):
    """Begin a piece of work that goes on beside the cockpit; the receipt's data has its id as `job`.

    The verbs are those that `Mastermind.verbs` lists: `evolve`, `coord_improve`, `coord_analyze`,
    `coord_process_backlog`, `coord_query`, `campaign_resume`, `coord_shadow` and what other parts registered.
    """

    do: Literal["mastermind_start"] = "mastermind_start"
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
    count: int = Field(default=1, ge=1, le=1_000)
    """Items of the backlog that are worked off."""
    auto: bool = False
    """Whether the backlog is worked off by itself, until it is empty, stopped or out of budget."""
    options: dict[str, Any] = Field(default_factory=dict)
    """What a verb of another part takes besides."""


class CancelJob(ForMastermind):
    """End a job with all that it started."""

    do: Literal["mastermind_cancel"] = "mastermind_cancel"
    job: _Id


class AddItem(ForMastermind):
    """Put a suggestion into the backlog."""

    do: Literal["mastermind_add"] = "mastermind_add"
    target: str = Field(min_length=1, max_length=500)
    suggestion: str = Field(min_length=1, max_length=4_000)
    priority: int = Field(default=5, ge=1, le=10)
    concern: Concern = Concern.IDEA
    critical: bool = False
    evidence: tuple[str, ...] = Field(default=(), max_length=100)


class SettleItem(ForMastermind):
    """Approve or reject an item of the backlog; an item may be named by a unique prefix of its id."""

    do: Literal["mastermind_settle"] = "mastermind_settle"
    item: _Id
    approve: bool
    reason: str = Field(default="", max_length=4_000)


class ApplyCandidate(ForMastermind):
    """Write the candidate that a campaign found better to the workspace."""

    do: Literal["mastermind_apply"] = "mastermind_apply"
    campaign: _Id
    diff: str = Field(default="", max_length=64)
    """Blob of the difference that the operator saw; empty takes the one that is there."""


class DeclineCampaign(ForMastermind):
    """Say no to the candidate that waits."""

    do: Literal["mastermind_decline"] = "mastermind_decline"
    campaign: _Id
    reason: str = Field(default="", max_length=4_000)


class RollBack(ForMastermind):
    """Bring the files back that a campaign changed."""

    do: Literal["mastermind_roll_back"] = "mastermind_roll_back"
    campaign: _Id = "last"
    """A campaign's id, or `last` for the newest one that is applied."""


AnyMastermindCommand = (
    StartJob | CancelJob | AddItem | SettleItem | ApplyCandidate | DeclineCampaign | RollBack
)
