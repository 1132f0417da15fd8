"""What commands about approvals, envelopes, accepted plans and budgets lead to."""

from __future__ import annotations

from dataclasses import replace

from engine.agent.decisions.goals import open_goal
from engine.agent.decisions.outcome import (
    CommandResult,
    RefusedError,
    close_turn,
    fresh_id,
    handles,
    needed,
    refuse,
)
from engine.agent.steering.envelopes import cost_of, envelope_of, envelope_text, key_of, make_call, propose
from engine.agent.steering.rules import (
    ABOUT,
    mismatch,
    read_policy,
    read_rule,
    rule_line,
    rule_matches,
    rule_text,
    words_of,
)
from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.approvals import Answer, Envelope, Proposal, Question, Scope, Source
from engine.core.budgets import SpendingLimits
from engine.core.plan import Plan, PlanStep, StepStatus
from engine.core.reasons import NONE, Reason, free_text
from engine.core.state import AgentState
from engine.planning.plan_notation import step_problems
from engine.tools.registry import ToolRegistry
from engine.value import fields_of


@handles(cmd.AnswerApproval)
def _answer(state: AgentState, command: cmd.AnswerApproval, registry: ToolRegistry) -> CommandResult:
    question = _question(state, command.action)
    contradicted = _contradicted(state, question, allow=command.allow)
    if not command.allow:
        refuse(command.args is not None or command.rule, Reason("refused.denial-with-rule"))
        denied = _answered(question, allow=False, reason=free_text(command.reason))
        why = f": {command.reason}" if command.reason else ""
        return CommandResult(f"{question.action} denied{why}", (denied, *contradicted))
    if question.call.request and (command.scope != "once" or command.args is not None):
        raise RefusedError(Reason("refused.request-once", why=question.why))
    if command.args is not None:
        return _edit_and_allow(state, command, question, registry)
    rule = read_rule(command.rule) if command.rule else question.offered
    if why := mismatch(rule, question.call):
        about = {"rule": rule_text(rule), "action": question.action}
        raise RefusedError(Reason("refused.rule-does-not-cover", **about, why=why))
    given = free_text(command.reason)
    answered = _answered(question, allow=True, scope=Scope(command.scope), reason=given)
    if command.scope == "once":
        return CommandResult(f"{question.action} allowed once", (answered, *contradicted))
    granted = ev.RuleGranted(grant=fresh_id(state, "r"), rule=rule, scope=Scope(command.scope))
    words = f"{question.action} allowed, and {_held(command.scope)} {words_of(rule)} ({granted.grant})"
    return CommandResult(words, (answered, granted, *contradicted))


@handles(cmd.DenyOverdue)
def _deny_overdue(state: AgentState, command: cmd.DenyOverdue, registry: ToolRegistry) -> CommandResult:
    question, reason = _question(state, command.action), Reason("approval.overdue", seconds=command.after_s)
    denied = _answered(question, allow=False, reason=reason)
    return CommandResult(f"{question.action} denied: {reason}", (denied,))


def _contradicted(state: AgentState, question: Question, *, allow: bool) -> tuple[ev.ProposalClosed, ...]:
    """Proposed rules that would have given another answer than the operator gives now."""
    against = Answer.DENY if allow else Answer.ALLOW
    return tuple(
        ev.ProposalClosed(
            proposal=proposal.id, reason=Reason("proposal.contradicted", action=question.action)
        )
        for proposal in state.approvals.proposals
        if proposal.learned.rule.answer is against and rule_matches(proposal.learned.rule, question.call)
    )


def _question(state: AgentState, action: str) -> Question:
    known = state.approvals
    question = known.question
    if question is not None and action in ("", question.action):
        return question
    before = next((answered for answered in reversed(known.answered) if answered.action == action), None)
    if before is not None:
        raise RefusedError(Reason("refused.already-answered", action=action, words=before.words))
    if question is not None:
        raise RefusedError(Reason("refused.waits-for-no-approval", action=action, waiting=question.action))
    raise RefusedError(Reason("refused.no-approval-waits", agent=state.agent_id))


def _answered(
    question: Question, *, allow: bool, key: str = "", scope: Scope = Scope.ONCE, reason: Reason = NONE
) -> ev.ApprovalAnswered:
    about = {**fields_of(question, "action", "step", "goal"), "key": key or question.key}
    return ev.ApprovalAnswered(**about, allowed=allow, scope=scope, reason=reason)


def _edit_and_allow(
    state: AgentState, command: cmd.AnswerApproval, question: Question, registry: ToolRegistry
) -> CommandResult:
    """Run the step once with other arguments."""
    plan, step = needed(state.find_step(question.step), Reason("refused.call-not-a-step"))
    refuse(command.scope != "once" or command.rule, Reason("refused.edited-call-once"))
    assert command.args is not None
    edited = replace(step, args=command.args, provenance=replace(step.provenance, by="operator"))
    problems = step_problems(edited, registry)
    refuse(problems, "; ".join(problems))
    checked = registry.check(edited.tool, edited.command, edited.args)
    spec = registry.get(edited.tool).commands[edited.command]
    call = make_call(spec, edited.tool, checked.args, cwd=state.sandbox.cwd, goal=plan.goal)
    steps = tuple(edited if old.id == step.id else old for old in plan.steps)
    change = Reason("plan.step", step=step.id, change="edited")
    revised = ev.PlanRevised(plan=plan.id, goal=plan.goal, change=change, steps=steps)
    return CommandResult(
        f"{step.id} allowed once with other arguments",
        (revised, _answered(question, allow=True, key=key_of(call), reason=free_text(command.reason))),
    )


def _held(scope: str) -> str:
    return "until this session ends" if scope == "session" else "from now on"


@handles(cmd.GrantRule)
def _grant(state: AgentState, command: cmd.GrantRule, registry: ToolRegistry) -> CommandResult:
    rule = read_rule(command.rule)
    if any(grant.rule == rule and grant.scope == command.scope for grant in state.approvals.grants):
        return CommandResult("this is granted already")
    granted = ev.RuleGranted(grant=fresh_id(state, "r"), rule=rule, scope=Scope(command.scope))
    return CommandResult(f"{granted.grant}: {_held(command.scope)} {words_of(rule)}, unasked", (granted,))


@handles(cmd.RevokeRule)
def _revoke(state: AgentState, command: cmd.RevokeRule, registry: ToolRegistry) -> CommandResult:
    known, ident = state.approvals, command.grant.lower()
    ident = f"r{ident}" if ident.isdigit() else ident
    if ident in known.envelopes:
        return CommandResult(f"the envelope of {ident} holds no longer", (ev.EnvelopeRevoked(goal=ident),))
    if all(grant.id != ident for grant in known.grants):
        ids = ", ".join((*(grant.id for grant in known.grants), *known.envelopes)) or "nothing"
        raise RefusedError(Reason("refused.no-grant", grant=command.grant, ids=ids))
    return CommandResult(f"{ident} holds no longer", (ev.RuleRevoked(grant=ident),))


@handles(cmd.ProposeRules)
def _propose(state: AgentState, command: cmd.ProposeRules, registry: ToolRegistry) -> CommandResult:
    known = state.approvals
    here = {rule_line(each.learned.rule): each for each in known.proposals}
    declined = {rule_line(learned.rule): learned.hits for learned in known.declined}
    events: list[ev.RuleProposed] = []
    fresh = 0
    for learned in command.learned:
        line = rule_line(learned.rule)
        before = here.get(line)
        if before is not None and before.learned != learned:
            events.append(ev.RuleProposed(proposal=before.id, learned=learned))
        elif before is None and learned.hits > declined.get(line, 0):
            fresh += 1
            events.append(ev.RuleProposed(proposal=fresh_id(state, "l", fresh), learned=learned))
    waiting = len(here) + fresh
    words = f"{fresh} new, {waiting} waiting" if waiting else "your answers give no new rule"
    return CommandResult(f"{words}; none holds before you take it up" if waiting else words, tuple(events))


def _proposal(state: AgentState, ident: str) -> Proposal:
    for proposal in state.approvals.proposals:
        if proposal.id == ident.lower():
            return proposal
    ids = ", ".join(proposal.id for proposal in state.approvals.proposals) or "none"
    raise RefusedError(Reason("refused.no-proposal", proposal=ident, ids=ids))


@handles(cmd.TakeRule)
def _take(state: AgentState, command: cmd.TakeRule, registry: ToolRegistry) -> CommandResult:
    proposal = _proposal(state, command.proposal)
    rule = proposal.learned.rule
    grant = ev.RuleGranted(grant=fresh_id(state, "r"), rule=rule, scope=Scope(command.scope))
    closed = ev.ProposalClosed(proposal=proposal.id, reason=Reason("proposal.taken", grant=grant.grant))
    what = "unasked" if rule.answer is Answer.ALLOW else "denied"
    words = f"{grant.grant}: {_held(command.scope)} {what}: {words_of(rule)}; revoke {grant.grant} ends it"
    return CommandResult(words, (grant, closed))


@handles(cmd.DeclineRule)
def _decline(state: AgentState, command: cmd.DeclineRule, registry: ToolRegistry) -> CommandResult:
    proposal = _proposal(state, command.proposal)
    closed = ev.ProposalClosed(proposal=proposal.id, reason=Reason("proposal.declined"))
    return CommandResult(f"{proposal.id} declined; it comes again with more evidence only", (closed,))


@handles(cmd.SetApprovals)
def _set(state: AgentState, command: cmd.SetApprovals, registry: ToolRegistry) -> CommandResult:
    policy = read_policy(command.policy)
    about = ABOUT.get(command.policy, "") if isinstance(command.policy, str) else ""
    words = about or f"{len(policy.rules)} rules, else {policy.default}"
    beside = (
        ""
        if set(state.approvals.policies) <= {Source.OPERATOR}
        else "; the stricter of this and the settings"
    )
    return CommandResult(f"{words}{beside}", (ev.ApprovalsSet(source=Source.OPERATOR, policy=policy),))


# ------------------------------------------------------------------ plans


def proposed_envelope(state: AgentState, plan: Plan, registry: ToolRegistry) -> Envelope:
    """The narrowest envelope that covers what is left of a plan, as it would run from here."""
    steps = [state.as_settled(step) for step in plan.steps]
    return propose(plan.goal, steps, registry.spec, state.sandbox.cwd)


@handles(cmd.AcceptPlan)
def _accept(state: AgentState, command: cmd.AcceptPlan, registry: ToolRegistry) -> CommandResult:
    goal = open_goal(state, command.goal)
    plan = needed(state.plans.get(goal.id), Reason("refused.no-plan-to-accept", goal=goal.id))
    envelope = envelope_of(command.envelope, proposed_envelope(state, plan, registry))
    before = state.approvals.envelopes.get(goal.id)
    accepted = ev.PlanAccepted(plan=plan.id, goal=goal.id, steps=plan.steps, envelope=envelope)
    spent = cost_of(state, goal.id)
    if envelope.spend_usd is not None and spent > envelope.spend_usd:
        costs = {"spent": spent, "limit": envelope.spend_usd}
        raise RefusedError(Reason("refused.cost-above-limit", goal=goal.id, **costs))
    again = " in place of the one before" if before is not None else ""
    words = f"plan of {goal.id} accepted{again}; unasked within: {envelope_text(envelope)}"
    closed = close_turn(state, goal=goal.id, resolution=Reason("turn.plan-accepted"))
    return CommandResult(words, (accepted, *closed))


@handles(cmd.RejectReplan)
def _reject(state: AgentState, command: cmd.RejectReplan, registry: ToolRegistry) -> CommandResult:
    goal = open_goal(state, command.goal)
    held, accepted = state.approvals.held.get(goal.id), state.approvals.accepted.get(goal.id)
    plan = state.plans.get(goal.id)
    if held is None or accepted is None or plan is None:
        raise RefusedError(Reason("refused.no-replan", goal=goal.id))
    rejected = ev.ReplanRejected(goal=goal.id, reason=command.reason)
    if state.config.replans and not state.config.decides and goal.id not in state.replans:
        words = command.reason or "no reason was given"
        guidance = ev.GuidanceGiven(text=f"The operator rejected your new plan for {goal.id}: {words}")
        again = ev.ReplanAsked(goal=goal.id)
        return CommandResult(
            f"re-plan of {goal.id} rejected; the thinker is asked again", (rejected, guidance, again)
        )
    back = _back(plan, accepted.steps)
    revised = ev.PlanRevised(plan=plan.id, goal=goal.id, change=Reason("plan.accepted-again"), steps=back)
    step = next((other.id for other in back if not other.status.terminal), "")
    reason = Reason("turn.rejected", why=command.reason)
    turn = ev.InterventionOpened(goal=goal.id, step=step, reason=reason)
    events = (rejected, revised) if state.intervention is not None else (rejected, revised, turn)
    return CommandResult(
        f"re-plan of {goal.id} rejected; the accepted plan is back, and it is your turn", events
    )


def _back(plan: Plan, accepted: tuple[PlanStep, ...]) -> tuple[PlanStep, ...]:
    """What of the plan is done, then what of the accepted one is not."""
    done = [step for step in plan.steps if step.status.terminal]
    ids = {step.id for step in done}
    rest = [replace(step, status=StepStatus.PLANNED, summary=NONE) for step in accepted if step.id not in ids]
    return (*done, *rest)


def changed(old: SpendingLimits | None, command: cmd.BudgetAmounts) -> SpendingLimits | None:
    """The limits after a command; None where nothing is left of them."""
    given = command.limits
    limits = (old or SpendingLimits()).with_these(given) if command.keep else given
    return None if limits == SpendingLimits() else limits


@handles(cmd.SetBudget)
def _set_budget(state: AgentState, command: cmd.SetBudget, registry: ToolRegistry) -> CommandResult:
    refuse(command.goal and command.goal not in state.goals, Reason("refused.no-goal", goal=command.goal))
    limits = changed(state.goal_budgets.get(command.goal) if command.goal else state.budget, command)
    if command.goal:
        # Settings know no goals, so that there is nothing to lift.
        limits = replace(limits, lifted=()) if limits is not None and limits.any else None
        message = (
            f"budget of {command.goal}: {limits}"
            if limits
            else f"{command.goal} has no budget of its own now"
        )
    else:
        message = f"budget: {limits}" if limits else "the workspace's budget holds again"
    return CommandResult(message, (ev.BudgetSet(limits=limits, goal=command.goal),))
