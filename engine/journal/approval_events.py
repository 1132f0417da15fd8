"""The kinds of events about approvals, envelopes and accepted plans."""

from __future__ import annotations

from typing import ClassVar

from engine.domain.approval import Call, Envelope, Policy, Rule, Scope, Source
from engine.domain.plan import PlanStep
from engine.journal.payload import Payload


class ApprovalsSet(Payload):
    """From here on this policy holds for the agent, beside those of the other sources."""

    kind: ClassVar[str] = "approvals.set"
    external: ClassVar[bool] = True
    source: Source
    policy: Policy


class ApprovalAsked(Payload):
    """An action stands at the gate until the operator has said whether it may run."""

    kind: ClassVar[str] = "approval.asked"
    action: str
    step: str
    goal: str = ""
    call: Call
    key: str
    why: str
    offered: Rule


class ApprovalAnswered(Payload):
    """The operator said what becomes of a call that was asked about."""

    kind: ClassVar[str] = "approval.answered"
    action: str
    step: str
    goal: str = ""
    key: str
    allowed: bool
    scope: Scope = Scope.ONCE
    reason: str = ""


class RuleGranted(Payload):
    """Calls that fit the rule are not asked about any more."""

    kind: ClassVar[str] = "approval.granted"
    grant: str
    rule: Rule
    scope: Scope


class RuleRevoked(Payload):
    """A rule that was granted holds no longer."""

    kind: ClassVar[str] = "approval.revoked"
    grant: str


class PlanAccepted(Payload):
    """The operator accepted a plan as it is, with what may be done for it unasked."""

    kind: ClassVar[str] = "plan.accepted"
    plan: str
    goal: str
    steps: tuple[PlanStep, ...]
    envelope: Envelope | None = None
    """None where the goal's envelope stays as it was."""


class EnvelopeRevoked(Payload):
    """A goal's envelope holds no longer; its accepted plan stays."""

    kind: ClassVar[str] = "envelope.revoked"
    goal: str


class ReplanHeld(Payload):
    """The agent came to a re-plan that the operator has not accepted, and waits."""

    kind: ClassVar[str] = "plan.held"
    goal: str
    change: str
    added: int = 0
    removed: int = 0
    changed: int = 0


class ReplanRejected(Payload):
    """The operator does not want a re-plan."""

    kind: ClassVar[str] = "plan.replan_rejected"
    goal: str
    reason: str = ""
