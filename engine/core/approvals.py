"""Approvals: what may be done unasked, what is asked, what was answered, which plan was accepted.

Values, commands and events.
"""

from __future__ import annotations

from dataclasses import field
from enum import StrEnum
from typing import Any, Literal

from pydantic import Field

from engine.core.actions import Reversibility
from engine.core.command import Command
from engine.core.journal import Payload
from engine.core.plan import PlanStep
from engine.core.reasons import NONE, Reason
from engine.value import dataclass

ANSWERS_KEPT = 20
"""Answers that a state remembers, so that a second one is refused in words."""
PROPOSALS_KEPT = 50
"""Proposed rules, and declined ones, that a state remembers."""
REFUSALS_HOLD = 3
"""Refusals of the automatic reviewer in a row after which the agent is held."""
DENIALS_KEPT = 50
"""Denied calls that a state remembers, so that they are not asked for again at once."""
OUTSIDE = "outside"
"""Stands for a path that does not lie beneath the root by its words."""


class Answer(StrEnum):
    """What is done with a call, the mildest first."""

    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"

    @property
    def strictness(self) -> int:
        """0 for allow, 1 for ask, 2 for deny."""
        return list(Answer).index(self)


class Source(StrEnum):
    """Who set a policy; of several the strictest answer counts."""

    WORKSPACE = "workspace"
    """`[approvals]` of `pilothouse.toml`."""
    AGENT = "agent"
    """`"approvals"` in the agent's configuration."""
    OPERATOR = "operator"
    """Set while the agent lives."""
    FOLDER = "folder"
    """Of a folder that the user does not trust, beside the user's own settings."""


class Scope(StrEnum):
    """How long an answer holds."""

    ONCE = "once"
    SESSION = "session"
    ALWAYS = "always"


@dataclass(frozen=True, slots=True)
class Rule:
    """Which calls are meant, and what is done with them; what is left empty says nothing.

    Names, arguments and paths are globs. Where a call touches several paths, a rule that allows needs all of
    them to fit, one that asks or denies any.
    """

    answer: Answer = Answer.ALLOW
    tool: str = ""
    command: str = ""
    args: dict[str, str] = field(default_factory=dict)
    """Globs of arguments by name; a program's line is its argument `command`."""
    paths: tuple[str, ...] = ()
    """Globs beneath the sandbox root; `**` crosses directories, `*` does not."""
    reversible: bool | None = None
    changes: bool | None = None
    """Whether the call may change something that lasts."""
    network: bool | None = None
    """Whether the call says that it reaches the network."""
    cost_over: float | None = None
    """US dollars that models took for the goal so far, beyond which the rule is meant."""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Policy:
    """Rules in their order, of which the first that fits counts."""

    rules: tuple[Rule, ...] = ()
    default: Answer = Answer.ALLOW

    @property
    def silent(self) -> bool:
        """True when it asks and denies nothing."""
        return not self.rules and self.default is Answer.ALLOW


@dataclass(frozen=True, slots=True)
class Call:
    """One call as it would be made now: everything that a rule or an envelope can be about."""

    tool: str
    command: str
    args: dict[str, Any]
    undo: Reversibility = Reversibility.NONE
    changes: bool = False
    paths: tuple[str, ...] = ()
    """What it touches, relative to the root; `outside…` for what does not lie beneath it by its words."""
    line: str = ""
    """The program that it runs, with its arguments; empty where it runs none."""
    hosts: tuple[str, ...] = ()
    """Hosts that it names; `?` where it reaches the network and names none."""
    goal: str = ""
    step: str = ""
    cost_usd: float = 0.0
    """What models took for its goal so far, with the goals below."""
    needs: Reason = NONE
    """Why it needs the operator whatever the rules say, in words; empty where it does not."""
    request: bool = False
    """Whether only a word on this very call will do."""
    client: str = ""
    """The client that it is for; empty for an agent's own."""

    @property
    def name(self) -> str:
        """Tool and command."""
        return f"{self.tool}.{self.command}"


@dataclass(frozen=True, slots=True)
class Question:
    """A call that waits for the operator's word."""

    action: str
    step: str
    goal: str
    call: Call
    key: str
    """The same for calls that are the same in all their arguments."""
    why: Reason
    """Which rule asks, or what of the envelope is left."""
    offered: Rule = field(default_factory=Rule)
    """The narrowest rule that allows it."""
    at: str = ""
    event: str = ""


@dataclass(frozen=True, slots=True)
class Review:
    """What an automatic reviewer said of a call, before the operator was asked."""

    action: str
    key: str
    answer: Answer
    """`allow` where it has nothing against it; the operator is asked all the same."""
    reason: str
    by: str
    trouble: Reason = NONE
    """Why it has no opinion; empty where it has one."""
    event: str = ""


@dataclass(frozen=True, slots=True)
class Grant:
    """A rule that the operator gave, and that is honoured until it is revoked or its time is over."""

    id: str
    rule: Rule
    scope: Scope
    by: str = ""
    event: str = ""


@dataclass(frozen=True, slots=True)
class LearnedRule:
    """A rule that gives the operator's answers, and how it does over the agent's whole history."""

    rule: Rule
    hits: int
    """Answers of the operator's that it would have given."""
    misses: int = 0
    """Answers alike to calls of the same kind that it would have left to the operator."""
    calls: int = 0
    """Calls of the whole history that it is about, asked about or not."""
    evidence: tuple[str, ...] = ()
    """The newest of the answers."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """A learned rule that waits for the operator's word; it does nothing by itself."""

    id: str
    learned: LearnedRule
    event: str = ""


@dataclass(frozen=True, slots=True)
class Denial:
    """A call that the operator does not want; it is not asked for again until they let it be retried."""

    goal: str
    key: str
    reason: Reason
    by: str = ""
    event: str = ""


@dataclass(frozen=True, slots=True)
class Answered:
    """What an operator said to a question."""

    action: str
    words: str
    event: str = ""


@dataclass(frozen=True, slots=True)
class Envelope:
    """What may be done for a goal without asking; it ends with the goal.

    What changes nothing never leaves an envelope.
    """

    goal: str
    commands: tuple[str, ...] = ()
    """Globs of `tool.command` that may change something."""
    paths: tuple[str, ...] = ()
    """Globs beneath the root that may be changed."""
    programs: tuple[str, ...] = ()
    """Globs of program lines that may run."""
    hosts: tuple[str, ...] = ()
    """Globs of hosts that may be reached; empty for no network, `*` for all."""
    spend_usd: float | None = None
    """What models may take for the goal; None says nothing of it."""
    irreversible: bool = False
    """Whether calls are covered that cannot be undone from the workspace's snapshots."""
    children: bool = False
    """Whether goals below it are covered too."""
    by: str = ""
    event: str = ""


@dataclass(frozen=True, slots=True)
class Accepted:
    """A plan as the operator accepted it."""

    goal: str
    steps: tuple[PlanStep, ...]
    required: tuple[str, ...] = ()
    """Steps that the operator saw and that are to be shown done; not those that were decided on later."""
    by: str = ""
    event: str = ""


@dataclass(frozen=True, slots=True)
class HeldReplan:
    """A plan that is not the accepted one any more, and waits for the operator."""

    goal: str
    change: Reason
    """What was done to the plan."""
    event: str
    """The revision."""
    told: str = ""
    """The event that told the operator; empty before the agent came to it."""
    at: str = ""


@dataclass(frozen=True, slots=True)
class NotCounted:
    """What was granted and does not count in this session."""

    grants: tuple[Grant, ...] = ()
    once: dict[str, str] = field(default_factory=dict)
    envelopes: dict[str, Envelope] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Approvals:
    """All that a state knows of approvals."""

    policies: dict[str, Policy] = field(default_factory=dict)
    """By `Source`."""
    question: Question | None = None
    grants: tuple[Grant, ...] = ()
    once: dict[str, str] = field(default_factory=dict)
    """Step to the key of the call that may run once."""
    denied: tuple[Denial, ...] = ()
    answered: tuple[Answered, ...] = ()
    envelopes: dict[str, Envelope] = field(default_factory=dict)
    """By goal."""
    accepted: dict[str, Accepted] = field(default_factory=dict)
    """By goal."""
    held: dict[str, HeldReplan] = field(default_factory=dict)
    """By goal."""
    elaborated: str = ""
    """The newest decision for an open step of an accepted plan; the revision that follows is part of it."""
    not_counted: NotCounted = field(default_factory=NotCounted)
    proposals: tuple[Proposal, ...] = ()
    """Rules that were learned from answers and wait."""
    review: Review | None = None
    """The newest."""
    refusals: int = 0
    """Reviews in a row that denied."""
    declined: tuple[LearnedRule, ...] = ()
    """Those that the operator declined or took up; each comes again with more evidence only."""


class AnswerApproval(Command, do="answer_approval"):
    """Decide an action that waits for approval."""

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


class DenyOverdue(Command, do="deny_overdue"):
    """Deny an action that nobody decided about in the time that the settings allow; refused before."""

    action: str
    after_s: float = 0
    """How long was waited; the engine fills it in, whatever was given."""


class GrantRule(Command, do="grant_rule"):
    """Let calls that fit a rule run unasked."""

    rule: str = Field(min_length=1, max_length=2_000)
    scope: Literal["session", "always"] = "session"


class RevokeRule(Command, do="revoke_rule"):
    """Ask again about calls that fit a rule which was granted, or that a goal's envelope covers."""

    grant: str = Field(min_length=1, max_length=40)
    """Id of the grant, or of the goal whose envelope it is."""


class ProposeRules(Command, do="propose_rules"):
    """Learn rules from what the operator allowed and denied; none holds before it is taken up."""

    needed: int = Field(default=3, ge=2, le=1_000)
    """How many equal answers a rule needs."""
    learned: tuple[LearnedRule, ...] = ()
    """What was learned; the engine fills it in, whatever was given."""


class TakeRule(Command, do="take_rule"):
    """Let a proposed rule hold from now on, sealed as any grant is."""

    proposal: str = Field(min_length=1, max_length=40)
    scope: Literal["session", "always"] = "always"


class DeclineRule(Command, do="decline_rule"):
    """Refuse a proposed rule; it is proposed again only once there is more evidence."""

    proposal: str = Field(min_length=1, max_length=40)


class SetApprovals(Command, do="set_approvals"):
    """Say what this agent is to ask about, beside what the workspace says; `allow` adds nothing."""

    policy: str | dict[str, Any]
    """A preset's name, or a policy as in the settings."""


class AcceptPlan(Command, do="accept_plan"):
    """Accept a goal's plan as it is now, with what may be done for it unasked."""

    goal: str
    envelope: dict[str, Any] = Field(default_factory=dict)
    """Parts of the envelope that are other than proposed; see `engine.agent.steering.envelopes`."""


class RejectReplan(Command, do="reject_replan"):
    """Refuse a re-plan that waits: the thinker is asked again, or the operator's turn begins."""

    goal: str
    reason: str = Field(default="", max_length=2_000)


class ApprovalsSet(Payload, kind="approvals.set", external=True):
    """From here on this policy holds for the agent, beside those of the other sources."""

    source: Source
    policy: Policy


class ApprovalAsked(Payload, kind="approval.asked"):
    """An action stands at the gate until the operator has said whether it may run."""

    action: str
    step: str
    goal: str = ""
    call: Call
    key: str
    why: Reason
    offered: Rule


class ApprovalAnswered(Payload, kind="approval.answered"):
    """The operator decided about a call that was asked about."""

    action: str
    step: str
    goal: str = ""
    key: str
    allowed: bool
    scope: Scope = Scope.ONCE
    reason: Reason = NONE
    seal: str = ""


class RuleGranted(Payload, kind="approval.granted"):
    """Calls that fit the rule are not asked about any more."""

    grant: str
    rule: Rule
    scope: Scope
    seal: str = ""
    """Made with the user's key (`engine.core.trust`); without it the grant counts in its own session only."""


class GrantsNotCounted(Payload, kind="approval.not_counted", external=True):
    """What of an earlier session does not count in this one, as this user did not grant it here."""

    grants: tuple[str, ...] = ()
    once: tuple[str, ...] = ()
    """Steps that were allowed once."""
    envelopes: tuple[str, ...] = ()
    """Goals."""
    journal: bool = False
    """Whether the journal is somebody else's: its budgets and its autonomous mode do not count either."""


class CallReviewed(Payload, kind="approval.reviewed", external=True):
    """An automatic reviewer looked at a call that the operator would be asked about."""

    action: str
    key: str
    answer: Answer
    reason: str = ""
    by: str
    trouble: Reason = NONE


class RuleProposed(Payload, kind="approval.proposed"):
    """A rule was learned from the operator's answers; under an id that there is, with newer counts."""

    proposal: str
    learned: LearnedRule


class ProposalClosed(Payload, kind="approval.proposal_closed"):
    """A proposed rule waits no longer."""

    proposal: str
    reason: Reason


class RuleRevoked(Payload, kind="approval.revoked"):
    """A rule that was granted holds no longer."""

    grant: str


class PlanAccepted(Payload, kind="plan.accepted"):
    """The operator accepted a plan as it is, with what may be done for it unasked."""

    plan: str
    goal: str
    steps: tuple[PlanStep, ...]
    envelope: Envelope | None = None
    """None where the goal's envelope stays as it was."""
    seal: str = ""


class EnvelopeRevoked(Payload, kind="envelope.revoked"):
    """A goal's envelope holds no longer; its accepted plan stays."""

    goal: str


class ReplanHeld(Payload, kind="plan.held"):
    """The agent came to a re-plan that the operator has not accepted, and waits."""

    goal: str
    change: Reason
    added: int = 0
    removed: int = 0
    changed: int = 0


class ReplanRejected(Payload, kind="plan.replan_rejected"):
    """The operator does not want a re-plan."""

    goal: str
    reason: str = ""
