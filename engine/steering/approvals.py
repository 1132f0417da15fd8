"""What becomes of a call: a pure function of an agent's state, asked at the gate.

The strictest policy decides; a grant or an envelope of the operator's answers in their place where one would
ask, but never where one denies. What leaves the envelope of its goal is asked whatever the policies say.
Source: spec steering §1 rows 18 and 19, §3 idea 3.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.domain.action import Undo
from engine.domain.approval import Answer, Call, Envelope, Grant, HeldReplan, Policy, Source
from engine.domain.state import AgentState
from engine.steering.calls import key_of
from engine.steering.envelopes import leaves
from engine.steering.rules import means, rule_text, words_of

NOBODY = "nobody is there to approve it"
UNANSWERED = "nobody answered"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What becomes of a call, and why."""

    answer: Answer
    why: str = ""
    """Which rule, in words, or what of the envelope is left."""
    cause: str = ""
    """The event that it follows from, where there is one."""

    @property
    def allows(self) -> bool:
        """True when the call may be made."""
        return self.answer is Answer.ALLOW


def verdict(state: AgentState, call: Call) -> Verdict:
    """What becomes of a call that the agent is about to make."""
    known, key = state.approvals, key_of(call)
    if call.step in known.once and known.once[call.step] == key:
        return Verdict(Answer.ALLOW, "allowed once")
    for denial in known.denied:
        if (denial.goal, denial.key) == (call.goal, key):
            said = f": {denial.reason}" if denial.reason else ""
            return Verdict(Answer.DENY, f"{denial.by or 'the operator'} denied it{said}", denial.event)
    decided = _by_policies(state, call)
    if decided.answer is Answer.DENY:
        return decided
    if call.request:
        return _unattended(state, Verdict(Answer.ASK, call.needs), call)
    if (grant := _granted(state, call)) is not None:
        return Verdict(Answer.ALLOW, f"allowed by {grant.id}: {rule_text(grant.rule)}", grant.event)
    return _unattended(state, _enveloped(state, call, _safe(state, call, decided)), call)


def held_replan(state: AgentState, goal: str) -> HeldReplan | None:
    """The re-plan of a goal, or of one above it, that waits for the operator; None when none does."""
    held = state.approvals.held
    return next((held[one.id] for one in state.lineage(goal) if one.id in held), None) if held else None


def envelope_over(state: AgentState, goal: str) -> Envelope | None:
    """The envelope of a goal, or of the nearest goal above that has one."""
    envelopes = state.approvals.envelopes
    if not envelopes:
        return None
    return next((envelopes[one.id] for one in state.lineage(goal) if one.id in envelopes), None)


def _enveloped(state: AgentState, call: Call, decided: Verdict) -> Verdict:
    envelope = envelope_over(state, call.goal)
    if envelope is None:
        return decided
    if left := leaves(envelope, call):
        words = f"it leaves the envelope of {envelope.goal}: {'; '.join(left)}"
        return Verdict(Answer.ASK, words, envelope.event)
    return Verdict(Answer.ALLOW, f"within the envelope of {envelope.goal}", envelope.event)


def _safe(state: AgentState, call: Call, decided: Verdict) -> Verdict:
    """Ask about what would be destroyed while autonomous mode is off, where no rule of the operator's allows;
    and about whatever a client would start.

    Source: mindX spec §7 item 58.
    """
    needs = "" if state.sandbox.autonomous else call.needs
    if call.client and call.undo is Undo.IRREVERSIBLE:
        needs = f"what {call.client} starts here cannot be undone"
    if not needs or not decided.allows:
        return decided
    policies = (state.approvals.policies.get(source) for source in (Source.WORKSPACE, Source.OPERATOR))
    rules = (rule for policy in policies if policy is not None for rule in policy.rules)
    # The policies allow it: where a rule of theirs is about it, that is the operator's word.
    return decided if any(means(rule, call) for rule in rules) else Verdict(Answer.ASK, needs)


def _unattended(state: AgentState, decided: Verdict, call: Call) -> Verdict:
    """Where nobody will answer, what would be asked is denied."""
    there = state.config.ask
    if call.client:
        there = state.action is not None and state.action.attended
    if decided.answer is not Answer.ASK or there:
        return decided
    return Verdict(Answer.DENY, f"{NOBODY} ({decided.why})", decided.cause)


def _by_policies(state: AgentState, call: Call) -> Verdict:
    found = Verdict(Answer.ALLOW)
    for source, policy in sorted(state.approvals.policies.items()):
        said = _first(policy, call, source)
        if said.answer.strictness > found.answer.strictness:
            found = said
    return found


def _first(policy: Policy, call: Call, source: str) -> Verdict:
    for number, rule in enumerate(policy.rules, 1):
        if means(rule, call):
            return Verdict(rule.answer, f"{rule.reason or words_of(rule)} ({source} rule {number})")
    return Verdict(policy.default, f"no rule is about it ({source})")


def _granted(state: AgentState, call: Call) -> Grant | None:
    return next((grant for grant in state.approvals.grants if means(grant.rule, call)), None)
