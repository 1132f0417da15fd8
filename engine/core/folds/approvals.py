"""What approvals do to an agent's state; `engine.core.fold` applies it with all else."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from engine.core import events as ev
from engine.core.approvals import (
    ANSWERS_KEPT,
    DENIALS_KEPT,
    PROPOSALS_KEPT,
    Accepted,
    Answer,
    Answered,
    Approvals,
    Denial,
    Grant,
    HeldReplan,
    NotCounted,
    Proposal,
    Question,
    Review,
    Scope,
)
from engine.core.journal import Event
from engine.core.plan import PlanStep, StepStatus
from engine.core.reasons import Reason
from engine.core.state import AgentState, count_id, folds
from engine.value import fields_of

OPERATOR = "operator:"


def _change(state: AgentState, **changes: Any) -> None:
    state.approvals = replace(state.approvals, **changes)


# ------------------------------------------------------------------ what else happens


def reopened(state: AgentState) -> None:
    """Another session begins: what was allowed for the last one is not allowed any more."""
    known = state.approvals
    if known != _NONE:
        aside = known.not_counted
        grants = (*aside.grants, *known.grants)
        _change(
            state,
            grants=tuple(grant for grant in grants if grant.scope is Scope.ALWAYS),
            once={**aside.once, **known.once},
            envelopes={**aside.envelopes, **known.envelopes},
            not_counted=NotCounted(),
        )


def resumed(state: AgentState) -> None:
    """The operator lets the agent run: what was denied, or asked in another session, may be asked again."""
    if state.approvals.denied or state.approvals.refusals:
        _change(state, denied=(), refusals=0)
    stepped(state)


def stepped(state: AgentState) -> None:
    """The agent may act: what was asked in another session is asked again where it still is to be."""
    question = state.approvals.question
    if question is not None and (state.action is None or state.action.id != question.action):
        _change(state, question=None)


def requested(state: AgentState, step: str) -> None:
    """An action is about to pass the gate: another step is no longer waited with."""
    question = state.approvals.question
    if question is not None and step and step != question.step:
        _change(state, question=None)


def withdrawn(state: AgentState, action: str, event: Event) -> None:
    """An action will not start: no answer is waited for, unless only the session has ended."""
    question = state.approvals.question
    if question is not None and question.action == action and event.actor != "system":
        _change(state, question=None)


def began(state: AgentState, step: str) -> None:
    """An action of a step begins or is refused: what was allowed once is used up."""
    known = state.approvals
    if step in known.once or (known.question is not None and known.question.step == step):
        once = {other: key for other, key in known.once.items() if other != step}
        question = known.question if known.question is None or known.question.step != step else None
        _change(state, once=once, question=question)


def client_over(state: AgentState) -> None:
    """A client's call is over: no answer is waited for, and a denial was about that call alone."""
    began(state, "")
    kept = tuple(denial for denial in state.approvals.denied if denial.goal)
    if len(kept) != len(state.approvals.denied):
        _change(state, denied=kept)


def step_over(state: AgentState, goal: str, step: str, status: StepStatus, event: Event) -> None:
    """A step has ended, or is put back; where the operator has it tried again it may be asked for again."""
    if status.terminal:
        began(state, step)
    elif status is StepStatus.PLANNED and event.actor.startswith(OPERATOR) and state.approvals.denied:
        _change(state, denied=tuple(denial for denial in state.approvals.denied if denial.goal != goal))


def goal_over(state: AgentState, goal: str) -> None:
    """A goal has ended or is another one: its envelope and its accepted plan end with it."""
    known = state.approvals
    if known == _NONE:
        return
    question = known.question
    _change(
        state,
        question=None if question is not None and question.goal == goal else question,
        envelopes=_without(known.envelopes, goal),
        not_counted=replace(known.not_counted, envelopes=_without(known.not_counted.envelopes, goal)),
        accepted=_without(known.accepted, goal),
        held=_without(known.held, goal),
        denied=tuple(denial for denial in known.denied if denial.goal != goal),
    )


def decided(state: AgentState, goal: str, event: Event) -> None:
    """The thinker decided on an open step; what it puts in front of that step is part of an accepted plan."""
    if goal in state.approvals.accepted:
        _change(state, elaborated=event.ref)


def replanned(
    state: AgentState,
    goal: str,
    change: Reason,
    before: Iterable[PlanStep],
    after: Iterable[PlanStep],
    event: Event,
) -> None:
    """A plan is another one: of an accepted plan the operator's changes count, the agent's wait."""
    known = state.approvals
    accepted, held = known.accepted.get(goal), known.held.get(goal)
    kept = {step.id: step for step in after}
    question = known.question
    if question is not None and question.goal == goal and _changed(question, before, kept):
        _change(state, question=None)
    if accepted is None:
        return
    if event.actor.startswith(OPERATOR):
        revised = _revised_by_operator(accepted, kept)
        _change(state, accepted={**known.accepted, goal: revised}, held=_without(known.held, goal))
        return
    if known.elaborated in event.causes and held is None:
        revised = replace(accepted, steps=tuple(kept.values()))
        _change(state, accepted={**known.accepted, goal: revised})
        return
    was = {step.id: call_of_step(step) for step in accepted.steps}
    same = all(was.get(step.id) == call_of_step(step) for step in kept.values() if not step.status.terminal)
    if same and was.keys() <= kept.keys():
        return
    _change(state, held={**known.held, goal: HeldReplan(goal, change, event.ref, at=event.at)})


def _revised_by_operator(accepted: Accepted, kept: Mapping[str, PlanStep]) -> Accepted:
    """An accepted plan with the operator's steps in it; all that are not given up are required."""
    alive = tuple(step.id for step in kept.values() if step.status is not StepStatus.ABANDONED)
    required = tuple(ident for ident in accepted.required if ident in kept and ident not in alive)
    return replace(accepted, steps=tuple(kept.values()), required=(*required, *alive))


def call_of_step(step: PlanStep) -> tuple[Any, ...]:
    """What a step does, by which it is told whether it is the one that was accepted."""
    return step.op, step.tool, step.command, step.args


def _changed(question: Question, before: Iterable[PlanStep], after: dict[str, PlanStep]) -> bool:
    old = next((step for step in before if step.id == question.step), None)
    new = after.get(question.step)
    return old is not None and (new is None or call_of_step(new) != call_of_step(old))


def _without(values: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in values.items() if key != name}


# ------------------------------------------------------------------ events of approvals


@folds(ev.ApprovalsSet)
def _set(state: AgentState, payload: ev.ApprovalsSet, event: Event) -> None:
    policies = _without(state.approvals.policies, payload.source)
    if not payload.policy.silent:
        policies[payload.source.value] = payload.policy
    _change(state, policies=policies)


@folds(ev.ApprovalAsked)
def _asked(state: AgentState, payload: ev.ApprovalAsked, event: Event) -> None:
    about = fields_of(payload, "action", "step", "goal", "call", "key", "why", "offered")
    _change(state, question=Question(**about, at=event.at, event=event.ref))


@folds(ev.ApprovalAnswered)
def _answered(state: AgentState, payload: ev.ApprovalAnswered, event: Event) -> None:
    known, who = state.approvals, event.actor.removeprefix(OPERATOR)
    words = f"{'allowed' if payload.allowed else 'denied'} by {who}"
    changes: dict[str, Any] = {
        "question": None,
        "refusals": 0,
        "answered": (*known.answered, Answered(payload.action, words, event.ref))[-ANSWERS_KEPT:],
    }
    if payload.allowed:
        changes["once"] = {**known.once, payload.step: payload.key}
    else:
        denial = Denial(payload.goal, payload.key, payload.reason, who, event.ref)
        changes["denied"] = (*known.denied, denial)[-DENIALS_KEPT:]
    _change(state, **changes)


@folds(ev.RuleGranted)
def _granted(state: AgentState, payload: ev.RuleGranted, event: Event) -> None:
    count_id(state, payload.grant)
    who = event.actor.removeprefix(OPERATOR)
    grant = Grant(payload.grant, payload.rule, payload.scope, who, event.ref)
    _change(state, grants=(*state.approvals.grants, grant))


@folds(ev.GrantsNotCounted)
def _not_counted(state: AgentState, payload: ev.GrantsNotCounted, event: Event) -> None:
    known = state.approvals
    aside = NotCounted(
        tuple(grant for grant in known.grants if grant.id in payload.grants),
        {step: key for step, key in known.once.items() if step in payload.once},
        {goal: envelope for goal, envelope in known.envelopes.items() if goal in payload.envelopes},
    )
    _change(
        state,
        grants=tuple(grant for grant in known.grants if grant.id not in payload.grants),
        once={step: key for step, key in known.once.items() if step not in aside.once},
        envelopes={goal: held for goal, held in known.envelopes.items() if goal not in aside.envelopes},
        not_counted=aside,
    )
    if payload.journal:
        _change(state, policies={})
        state.budget, state.goal_budgets = None, {}
        state.sandbox = replace(state.sandbox, autonomous=False)


@folds(ev.CallReviewed)
def _reviewed(state: AgentState, payload: ev.CallReviewed, event: Event) -> None:
    review = Review(
        *(payload.action, payload.key, payload.answer, payload.reason, payload.by),
        trouble=payload.trouble,
        event=event.ref,
    )
    refused = state.approvals.refusals + 1 if payload.answer is Answer.DENY else 0
    _change(state, review=review, refusals=refused)


@folds(ev.RuleProposed)
def _proposed(state: AgentState, payload: ev.RuleProposed, event: Event) -> None:
    known = state.approvals
    count_id(state, payload.proposal)
    others = tuple(other for other in known.proposals if other.id != payload.proposal)
    proposal = Proposal(payload.proposal, payload.learned, event.ref)
    _change(state, proposals=(*others, proposal)[-PROPOSALS_KEPT:])


@folds(ev.ProposalClosed)
def _closed(state: AgentState, payload: ev.ProposalClosed, event: Event) -> None:
    known = state.approvals
    closed = tuple(each.learned for each in known.proposals if each.id == payload.proposal)
    _change(state, proposals=tuple(each for each in known.proposals if each.id != payload.proposal))
    if not payload.reason.is_a("proposal.contradicted"):
        rules = [learned.rule for learned in closed]
        others = tuple(learned for learned in known.declined if learned.rule not in rules)
        _change(state, declined=(*others, *closed)[-PROPOSALS_KEPT:])


@folds(ev.RuleRevoked)
def _revoked(state: AgentState, payload: ev.RuleRevoked, event: Event) -> None:
    _change(state, grants=tuple(grant for grant in state.approvals.grants if grant.id != payload.grant))


@folds(ev.PlanAccepted)
def _accepted(state: AgentState, payload: ev.PlanAccepted, event: Event) -> None:
    known, who = state.approvals, event.actor.removeprefix(OPERATOR)
    envelopes = known.envelopes
    required = tuple(step.id for step in payload.steps if step.status is not StepStatus.ABANDONED)
    if payload.envelope is not None:
        envelopes = {**envelopes, payload.goal: replace(payload.envelope, by=who, event=event.ref)}
    _change(
        state,
        accepted={
            **known.accepted,
            payload.goal: Accepted(payload.goal, payload.steps, required, who, event.ref),
        },
        envelopes=envelopes,
        held=_without(known.held, payload.goal),
    )


@folds(ev.EnvelopeRevoked)
def _envelope_revoked(state: AgentState, payload: ev.EnvelopeRevoked, event: Event) -> None:
    _change(state, envelopes=_without(state.approvals.envelopes, payload.goal))


@folds(ev.ReplanHeld)
def _held(state: AgentState, payload: ev.ReplanHeld, event: Event) -> None:
    held = state.approvals.held.get(payload.goal)
    if held is not None:
        reported = replace(held, told=event.ref, at=event.at)
        _change(state, held={**state.approvals.held, payload.goal: reported})


_NONE = Approvals()
