"""Commands on what an agent holds true, remembers and thinks about."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from engine.domain.command import Command


class Believe(Command):
    """Put a belief into the agent's mind."""

    do: Literal["believe"] = "believe"
    key: str = Field(min_length=1, max_length=200)
    value: Any


class Forget(Command):
    """Take a belief out of the agent's mind."""

    do: Literal["forget"] = "forget"
    key: str


class Dispute(Command):
    """Mark something recorded as wrong, or take that back; nothing else follows by itself."""

    do: Literal["dispute"] = "dispute"
    event: str = Field(min_length=1, max_length=200)
    """An event of the agent's, as `stream:version`."""
    reason: str = Field(default="", max_length=2_000)
    lifted: bool = False


class TellBelief(Command):
    """Give a reasoner a belief, or take one away, whatever its sources."""

    do: Literal["tell_belief"] = "tell_belief"
    literal: str = Field(min_length=1, max_length=10_000)
    removed: bool = False


class SteerIntention(Command):
    """Hold an intention back, let it go on, let its present step fail, or take it away."""

    do: Literal["steer_intention"] = "steer_intention"
    intention: int
    how: Literal["suspend", "resume", "drop", "fail"]
    reason: str = Field(default="", max_length=1_000)


class DecidePlans(Command):
    """Say what becomes of plans that a model made and that wait for approval."""

    do: Literal["decide_plans"] = "decide_plans"
    generation: str
    decision: Literal["approve", "reject", "again"]
    text: str = Field(default="", max_length=1_000_000)
    """To approve: the plans as edited, or empty for the accepted ones as they are. Else the reason."""


class ForceMeta(Command):
    """Have a background task done now, whether it is due or not."""

    do: Literal["force_meta"] = "force_meta"
    task: Literal["adapt", "reflect", "consolidate", "optimise", "promote", "maintain", "link"]


class VetoMeta(Command):
    """Let a background task not be begun by itself, or let it again."""

    do: Literal["veto_meta"] = "veto_meta"
    task: Literal["adapt", "reflect", "consolidate", "optimise", "promote", "maintain", "link"]
    lifted: bool = False


class CancelBackground(Command):
    """Cut a background job of the agent's thinking off."""

    do: Literal["cancel_background"] = "cancel_background"
    job: str = Field(min_length=1, max_length=64)


class SetThresholds(Command):
    """Say after how many successes a reflection and a consolidation are due; None leaves one as it is."""

    do: Literal["set_thresholds"] = "set_thresholds"
    reflection: int | None = Field(default=None, ge=0, le=1_000_000)
    consolidation: int | None = Field(default=None, ge=0, le=1_000_000)


class Guide(Command):
    """Say something to the thinker; the next prompt has it, once."""

    do: Literal["guide"] = "guide"
    text: str = Field(min_length=1, max_length=4_000)


class Remember(Command):
    """Write to memory as the operator; an agent's current workflow stands for one that is not named."""

    do: Literal["remember"] = "remember"
    verb: str = Field(min_length=1, max_length=100)
    """Name of the request, ours or the seed's."""
    arguments: dict[str, Any] = Field(default_factory=dict)


MindCommand = (
    Believe
    | Forget
    | Dispute
    | TellBelief
    | SteerIntention
    | DecidePlans
    | ForceMeta
    | VetoMeta
    | CancelBackground
    | SetThresholds
    | Guide
    | Remember
)
