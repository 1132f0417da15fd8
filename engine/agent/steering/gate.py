"""The one gate: why an action may not start now, as a pure function of an agent's state.

Every action of every actor passes here. The strictest policy decides about a call; a grant or an envelope of
the operator's answers where one would ask, but never where one denies, and what leaves the envelope of its
goal is asked about whatever the policies say. Breakpoints hold before a step, or before whatever comes next;
the fold says which were reached (`engine.core.folds.breakpoints`), so a replay pauses at the same places.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from engine.agent.steering.envelopes import key_of, leaves
from engine.agent.steering.rules import rule_matches, rule_text, words_of
from engine.core.actions import Reversibility
from engine.core.agents import RunState
from engine.core.approvals import Answer, Call, Grant, HeldReplan, Policy, Source
from engine.core.breakpoints import Reached
from engine.core.folds.breakpoints import due, place_of
from engine.core.reasons import NONE, Reason
from engine.core.state import AgentState
from engine.value import dataclass

V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class GateVerdict:
    """The verdict on a call, and why."""

    answer: Answer
    why: Reason = NONE
    """Which rule, or what of the envelope is left."""
    cause: str = ""
    """The event that it follows from, where there is one."""

    @property
    def allows(self) -> bool:
        """True when the call may be made."""
        return self.answer is Answer.ALLOW


def gate_verdict(state: AgentState, call: Call) -> GateVerdict:
    """The verdict on a call that the agent is about to make; a reviewer may deny what would be asked."""
    decided, review = _by_operator(state, call), state.approvals.review
    if decided.answer is not Answer.ASK or review is None or state.action is None:
        return decided
    if review.answer is not Answer.DENY or (review.action, review.key) != (state.action.id, key_of(call)):
        return decided
    return GateVerdict(Answer.DENY, Reason("gate.reviewed", by=review.by, why=review.reason), review.event)


def _by_operator(state: AgentState, call: Call) -> GateVerdict:
    """The verdict by what the operator said, in the settings or since."""
    known, key = state.approvals, key_of(call)
    if call.step in known.once and known.once[call.step] == key:
        return GateVerdict(Answer.ALLOW, Reason("gate.once"))
    for denial in known.denied:
        if (denial.goal, denial.key) == (call.goal, key):
            why = Reason("gate.denied", by=denial.by or "the operator", why=denial.reason)
            return GateVerdict(Answer.DENY, why, denial.event)
    decided = _by_policies(state, call)
    if decided.answer is Answer.DENY:
        return decided
    if (grant := _granted(state, call, Answer.DENY)) is not None:
        why = Reason("gate.rule-denies", grant=grant.id, rule=rule_text(grant.rule))
        return GateVerdict(Answer.DENY, why, grant.event)
    if call.request:
        return _unattended(state, GateVerdict(Answer.ASK, call.needs), call)
    if (grant := _granted(state, call, Answer.ALLOW)) is not None:
        why = Reason("gate.granted", grant=grant.id, rule=rule_text(grant.rule))
        return GateVerdict(Answer.ALLOW, why, grant.event)
    return _unattended(state, _enveloped(state, call, _safe(state, call, decided)), call)


def held_replan(state: AgentState, goal: str) -> HeldReplan | None:
    """The re-plan of a goal, or of one above it, that waits for the operator; None when none does."""
    return _nearest(state, goal, state.approvals.held)


def _nearest(state: AgentState, goal: str, given: Mapping[str, V]) -> V | None:
    """What is given for a goal, or for the nearest above it for which there is something."""
    lineage = state.lineage(goal) if given else ()
    return next((given[ancestor.id] for ancestor in lineage if ancestor.id in given), None)


def _enveloped(state: AgentState, call: Call, decided: GateVerdict) -> GateVerdict:
    envelope = _nearest(state, call.goal, state.approvals.envelopes)  # of the goal, or the nearest above
    if envelope is None:
        return decided
    if left := leaves(envelope, call):
        words = Reason("gate.leaves", goal=envelope.goal, left=tuple(left))
        return GateVerdict(Answer.ASK, words, envelope.event)
    return GateVerdict(Answer.ALLOW, Reason("gate.within", goal=envelope.goal), envelope.event)


def _safe(state: AgentState, call: Call, decided: GateVerdict) -> GateVerdict:
    """Ask about what would be destroyed while autonomous mode is off, where no rule of the operator's allows;
    and about whatever a client would start.
    """
    needs = NONE if state.sandbox.autonomous else call.needs
    if call.client and call.undo is Reversibility.IRREVERSIBLE:
        needs = Reason("action.irreversible", client=call.client)
    if not needs or not decided.allows:
        return decided
    policies = (state.approvals.policies.get(source) for source in (Source.WORKSPACE, Source.OPERATOR))
    rules = (rule for policy in policies if policy is not None for rule in policy.rules)
    # The policies allow it: where a rule of theirs is about it, that is the operator's word.
    return decided if any(rule_matches(rule, call) for rule in rules) else GateVerdict(Answer.ASK, needs)


def _unattended(state: AgentState, decided: GateVerdict, call: Call) -> GateVerdict:
    """Where nobody will answer, what would be asked is denied."""
    there = state.config.ask
    if call.client:
        there = state.action is not None and state.action.attended
    if decided.answer is not Answer.ASK or there:
        return decided
    return GateVerdict(Answer.DENY, Reason("gate.no-operator", why=decided.why), decided.cause)


def _by_policies(state: AgentState, call: Call) -> GateVerdict:
    strictest = GateVerdict(Answer.ALLOW)
    for source, policy in sorted(state.approvals.policies.items()):
        verdict = _first(policy, call, source)
        if verdict.answer.strictness > strictest.answer.strictness:
            strictest = verdict
    return strictest


def _first(policy: Policy, call: Call, source: str) -> GateVerdict:
    for number, rule in enumerate(policy.rules, 1):
        if rule_matches(rule, call):
            words = rule.reason or words_of(rule)
            return GateVerdict(rule.answer, Reason("gate.rule", rule=words, source=source, number=number))
    return GateVerdict(policy.default, Reason("gate.no-rule", source=source))


def _granted(state: AgentState, call: Call, answer: Answer) -> Grant | None:
    grants = (grant for grant in state.approvals.grants if grant.rule.answer is answer)
    return next((grant for grant in grants if rule_matches(grant.rule, call)), None)


@dataclass(frozen=True, slots=True)
class BreakpointHold:
    """The breakpoints for which an agent is to be held now."""

    reason: Reason
    """For the status line and the journal."""
    step: str = ""
    """The step before which it stands, where a breakpoint on that step alone holds it."""
    came: tuple[Reached, ...] = ()
    """The others that have come."""
    at: str = ""
    """The action or step that may run when it continues, where these hold right before it."""


def breakpoint_hold(state: AgentState, step: str = "") -> BreakpointHold | None:
    """The breakpoints that hold the agent now; None when none do.

    Args:
        state: the agent's state at this moment.
        step: the step that stands at the gate; empty between two steps.
    """
    if state.reached:
        return BreakpointHold(_reason(state.reached), came=state.reached)
    if not step or not _goes_on(state, step):
        return None
    if step in state.breakpoints and state.breakpoint_hit != step:
        return BreakpointHold(Reason("run.breakpoint.step", step=step), step=step)
    met = due(state, step)
    return BreakpointHold(_reason(met), came=met, at=place_of(state, step)) if met else None


def _goes_on(state: AgentState, step: str) -> bool:
    """Whether the agent runs, or steps beyond the one action that the operator has in view."""
    if state.run is RunState.RUNNING:
        return True
    stride = state.stride
    return bool(state.grants) and stride is not None and stride.scope != "step" and stride.step != step


def _reason(came: tuple[Reached, ...]) -> Reason:
    first = {"breakpoint": came[0].breakpoint, "what": came[0].what}
    more = len(came) - 1
    return Reason("run.breakpoint.several", **first, more=more) if more else Reason("run.breakpoint", **first)


@dataclass(frozen=True, slots=True)
class Hold:
    """Why an action may not start now."""

    reason: Reason
    """For the status line and the journal."""
    breakpoint: BreakpointHold | None = None
    """The breakpoints that are newly reached; the agent is then to be paused there."""
    asks: bool = False
    """True when the operator is to say whether it may continue."""
    verdict: GateVerdict | None = None
    """The verdict on the call, where that is what holds it."""


def hold(
    state: AgentState, *, step: str = "", trouble: Exception | None = None, call: Call | None = None
) -> Hold | None:
    """Why an action may not start in this state, or None when it may.

    Args:
        state: the agent's state at this moment.
        step: the plan step that the action belongs to; empty for an action of the operator, whom
            only a deleted agent and a broken journal hold, and for one of a client (`Call.client`), which
            is asked about as an agent's is.
        trouble: why the journal cannot record, when it cannot; then nothing acts.
        call: the call that would be made, once its arguments are settled; None where none is made yet.
    """
    if trouble is not None:
        return Hold(Reason("gate.journal", error=str(trouble)))
    if state.deleted:
        return Hold(Reason("action.agent-deleted"))
    if state.rewinding is not None:
        return Hold(Reason("gate.rewind"))
    if not step:
        return _asked(state, call) if call is not None and call.client else None
    if state.run is RunState.STOPPED:
        return Hold(state.run_reason or Reason("action.stopped"))
    if state.intervention is not None:
        return Hold(Reason("gate.operator"))
    if state.handover is not None:
        return Hold(Reason("gate.handover"))
    if (stand := breakpoint_hold(state, step)) is not None:
        return Hold(stand.reason, stand)
    if state.run is not RunState.RUNNING and not state.grants:
        return Hold(state.run_reason or Reason("gate.paused"))
    if held_replan(state, state.current_goal) is not None:
        return Hold(Reason("gate.replan"), asks=True)
    return _asked(state, call) if call is not None else None


def _asked(state: AgentState, call: Call) -> Hold | None:
    """Whether the policies, rules and envelopes hold a call."""
    decided = gate_verdict(state, call)
    if decided.allows:
        return None
    reason = Reason("gate.verdict", answer=decided.answer.value, why=decided.why)
    return Hold(reason, asks=decided.answer is Answer.ASK, verdict=decided)


def may_think(state: AgentState, *, free: bool) -> bool:
    """Whether the agent may perceive, deliberate and plan now.

    A paused agent plans only when thinking is free, so that the operator sees what it would do.
    """
    if state.deleted or state.run is RunState.STOPPED or state.rewinding is not None:
        return False
    if state.intervention is not None or state.handover is not None:
        return False
    return free or state.run is RunState.RUNNING or state.grants > 0
