"""Commands on what is asked of the operator before it is done."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from engine.domain.command import Command


class AnswerApproval(Command):
    """Say what becomes of an action that waits for approval."""

    do: Literal["answer_approval"] = "answer_approval"
    action: str = ""
    """The action; empty for the one that waits."""
    allow: bool
    scope: Literal["once", "session", "always"] = "once"
    rule: str = Field(default="", max_length=2_000)
    """To allow: the rule on a line that is granted, and that the call must fit; empty for the one offered."""
    args: dict[str, Any] | None = None
    """To allow once: other arguments, with which the step runs."""
    reason: str = Field(default="", max_length=2_000)
    """To deny: why, as the agent is to see it."""


class GrantRule(Command):
    """Let calls that fit a rule run unasked."""

    do: Literal["grant_rule"] = "grant_rule"
    rule: str = Field(min_length=1, max_length=2_000)
    scope: Literal["session", "always"] = "session"


class RevokeRule(Command):
    """Ask again about calls that fit a rule which was granted, or that a goal's envelope covers."""

    do: Literal["revoke_rule"] = "revoke_rule"
    grant: str = Field(min_length=1, max_length=40)
    """Id of the grant, or of the goal whose envelope it is."""


class SetApprovals(Command):
    """Say what this agent is to ask about, beside what the workspace says; `allow` adds nothing."""

    do: Literal["set_approvals"] = "set_approvals"
    policy: str | dict[str, Any]
    """A preset's name, or a policy as in the settings."""


class AcceptPlan(Command):
    """Accept a goal's plan as it is now, with what may be done for it unasked."""

    do: Literal["accept_plan"] = "accept_plan"
    goal: str
    envelope: dict[str, Any] = Field(default_factory=dict)
    """Parts of the envelope that are other than proposed; see `engine.steering.envelopes`."""


class RejectReplan(Command):
    """Refuse a re-plan that waits: the thinker is asked again, or the operator's turn begins."""

    do: Literal["reject_replan"] = "reject_replan"
    goal: str
    reason: str = Field(default="", max_length=2_000)


ApprovalCommand = AnswerApproval | GrantRule | RevokeRule | SetApprovals | AcceptPlan | RejectReplan
