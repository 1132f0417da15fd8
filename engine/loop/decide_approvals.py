"""What follows from commands about approvals, envelopes and accepted plans."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from engine.domain import commands as cmd
from engine.domain.approval import Envelope, Question, Rule, Scope, Source
from engine.domain.plan import Plan, PlanStep, StepStatus
from engine.domain.ports import CommandSpec
from engine.domain.state import AgentState
from engine.generation.validation import step_problems
from engine.journal import events as ev
from engine.loop.decide_goals import open_goal
from engine.loop.outcome import Outcome, RefusedError, close_turn, fresh_id
from engine.steering.calls import cost_of, key_of, make_call
from engine.steering.envelopes import envelope_of, envelope_text, propose
from engine.steering.policies import ABOUT, read_policy
from engine.steering.rules import RuleError, misses, read_rule, rule_text, words_of
from engine.tools.registry import ToolRegistry


def _answer(state: AgentState, said: cmd.AnswerApproval, registry: ToolRegistry) -> Outcome:
    question = _question(state, said.action)
    if not said.allow:
        if said.args is not None or said.rule:
            raise RefusedError("a denial has a reason and nothing else")
        denied = _answered(question, said, question.key)
        why = f": {said.reason}" if said.reason else ""
        return Outcome(f"{question.action} denied{why}", (denied,))
    if question.call.request and (said.scope != "once" or said.args is not None):
        raise RefusedError(f"a request is allowed once, as it is, or denied: {question.why}")
    if said.args is not None:
        return _edit_and_allow(state, said, question, registry)
    rule = _rule(said.rule) if said.rule else question.offered
    if why := misses(rule, question.call):
        raise RefusedError(f"the rule {rule_text(rule)} does not cover {question.action}: {why}")
    answered = _answered(question, said, question.key)
    if said.scope == "once":
        return Outcome(f"{question.action} allowed once", (answered,))
    granted = ev.RuleGranted(grant=fresh_id(state, "r"), rule=rule, scope=Scope(said.scope))
    words = f"{question.action} allowed, and {_held(said.scope)} {words_of(rule)} ({granted.grant})"
    return Outcome(words, (answered, granted))


def _question(state: AgentState, action: str) -> Question:
    known = state.approvals
    question = known.question
    if question is not None and action in ("", question.action):
        return question
    before = next((one for one in reversed(known.answered) if one.action == action), None)
    if before is not None:
        raise RefusedError(f"{action} is answered already: {before.words}")
    if question is not None:
        raise RefusedError(f"{action} does not wait for approval; {question.action} does")
    raise RefusedError(f"{state.agent_id} waits for no approval")


def _answered(question: Question, said: cmd.AnswerApproval, key: str) -> ev.ApprovalAnswered:
    return ev.ApprovalAnswered(
        action=question.action,
        step=question.step,
        goal=question.goal,
        key=key,
        allowed=said.allow,
        scope=Scope(said.scope) if said.allow else Scope.ONCE,
        reason=said.reason,
    )


def _edit_and_allow(
    state: AgentState, said: cmd.AnswerApproval, question: Question, registry: ToolRegistry
) -> Outcome:
    """Run the step once with other arguments."""
    found = state.find_step(question.step)
    if found is None:
        raise RefusedError("this call is no step of a plan, so its arguments cannot be changed here")
    if said.scope != "once" or said.rule:
        raise RefusedError("a call whose arguments are changed is allowed once")
    plan, step = found
    assert said.args is not None
    edited = replace(step, args=said.args, provenance=replace(step.provenance, by="operator"))
    problems = step_problems(edited, registry)
    if problems:
        raise RefusedError("; ".join(problems))
    checked = registry.check(edited.tool, edited.command, edited.args)
    spec = registry.get(edited.tool).commands[edited.command]
    call = make_call(spec, edited.tool, checked.args, cwd=state.sandbox.cwd, goal=plan.goal)
    steps = tuple(edited if old.id == step.id else old for old in plan.steps)
    revised = ev.PlanRevised(plan=plan.id, goal=plan.goal, change=f"step {step.id} edited", steps=steps)
    return Outcome(
        f"{step.id} allowed once with other arguments", (revised, _answered(question, said, key_of(call)))
    )


def _rule(text: str) -> Rule:
    try:
        return read_rule(text)
    except RuleError as error:
        raise RefusedError(str(error)) from None


def _held(scope: str) -> str:
    return "until this session ends" if scope == "session" else "from now on"


def _grant(state: AgentState, said: cmd.GrantRule, registry: ToolRegistry) -> Outcome:
    rule = _rule(said.rule)
    if any(grant.rule == rule and grant.scope == said.scope for grant in state.approvals.grants):
        return Outcome("this is granted already")
    granted = ev.RuleGranted(grant=fresh_id(state, "r"), rule=rule, scope=Scope(said.scope))
    return Outcome(f"{granted.grant}: {_held(said.scope)} {words_of(rule)}, unasked", (granted,))


def _revoke(state: AgentState, said: cmd.RevokeRule, registry: ToolRegistry) -> Outcome:
    known, wanted = state.approvals, said.grant.lower()
    wanted = f"r{wanted}" if wanted.isdigit() else wanted
    if wanted in known.envelopes:
        return Outcome(f"the envelope of {wanted} holds no longer", (ev.EnvelopeRevoked(goal=wanted),))
    if all(grant.id != wanted for grant in known.grants):
        ids = ", ".join((*(grant.id for grant in known.grants), *known.envelopes)) or "nothing"
        raise RefusedError(f"there is no grant '{said.grant}'; granted: {ids}")
    return Outcome(f"{wanted} holds no longer", (ev.RuleRevoked(grant=wanted),))


def _set(state: AgentState, said: cmd.SetApprovals, registry: ToolRegistry) -> Outcome:
    try:
        policy = read_policy(said.policy)
    except RuleError as error:
        raise RefusedError(str(error)) from None
    about = ABOUT.get(said.policy, "") if isinstance(said.policy, str) else ""
    words = about or f"{len(policy.rules)} rules, else {policy.default}"
    beside = (
        ""
        if set(state.approvals.policies) <= {Source.OPERATOR}
        else "; the stricter of this and the settings"
    )
    return Outcome(f"{words}{beside}", (ev.ApprovalsSet(source=Source.OPERATOR, policy=policy),))


# ------------------------------------------------------------------ plans


def proposed_envelope(state: AgentState, plan: Plan, registry: ToolRegistry) -> Envelope:
    """The narrowest envelope that covers what is left of a plan, as it would run from here."""

    def spec_of(tool: str, command: str) -> CommandSpec | None:
        return registry.get(tool).commands.get(command) if tool in registry else None

    steps = [state.as_settled(step) for step in plan.steps]
    return propose(plan.goal, steps, spec_of, state.sandbox.cwd)


def _accept(state: AgentState, said: cmd.AcceptPlan, registry: ToolRegistry) -> Outcome:
    goal = open_goal(state, said.goal)
    plan = state.plans.get(goal.id)
    if plan is None:
        raise RefusedError(f"{goal.id} has no plan yet that could be accepted")
    try:
        envelope = envelope_of(said.envelope, proposed_envelope(state, plan, registry))
    except RuleError as error:
        raise RefusedError(str(error)) from None
    before = state.approvals.envelopes.get(goal.id)
    accepted = ev.PlanAccepted(plan=plan.id, goal=goal.id, steps=plan.steps, envelope=envelope)
    spent = cost_of(state, goal.id)
    if envelope.spend_usd is not None and spent > envelope.spend_usd:
        raise RefusedError(f"{goal.id} has cost ${spent:.2f} already, more than ${envelope.spend_usd:g}")
    again = " in place of the one before" if before is not None else ""
    words = f"plan of {goal.id} accepted{again}; unasked within: {envelope_text(envelope)}"
    return Outcome(words, (accepted, *close_turn(state, goal=goal.id, resolution="plan accepted")))


def _reject(state: AgentState, said: cmd.RejectReplan, registry: ToolRegistry) -> Outcome:
    goal = open_goal(state, said.goal)
    held, accepted = state.approvals.held.get(goal.id), state.approvals.accepted.get(goal.id)
    plan = state.plans.get(goal.id)
    if held is None or accepted is None or plan is None:
        raise RefusedError(f"no re-plan of {goal.id} waits for you")
    rejected = ev.ReplanRejected(goal=goal.id, reason=said.reason)
    if state.config.replans and not state.config.decides and goal.id not in state.replans:
        words = said.reason or "no reason was given"
        told = ev.GuidanceGiven(text=f"The operator rejected your new plan for {goal.id}: {words}")
        again = ev.ReplanAsked(goal=goal.id)
        return Outcome(f"re-plan of {goal.id} rejected; the thinker is asked again", (rejected, told, again))
    back = _back(plan, accepted.steps)
    revised = ev.PlanRevised(plan=plan.id, goal=goal.id, change="back to the accepted plan", steps=back)
    step = next((one.id for one in back if not one.status.terminal), "")
    reason = f"you rejected the re-plan: {said.reason}" if said.reason else "you rejected the re-plan"
    turn = ev.InterventionOpened(goal=goal.id, step=step, reason=reason)
    events = (rejected, revised) if state.intervention is not None else (rejected, revised, turn)
    return Outcome(f"re-plan of {goal.id} rejected; the accepted plan is back, and it is your turn", events)


def _back(plan: Plan, accepted: tuple[PlanStep, ...]) -> tuple[PlanStep, ...]:
    """What of the plan is done, then what of the accepted one is not."""
    done = [step for step in plan.steps if step.status.terminal]
    ids = {step.id for step in done}
    rest = [replace(step, status=StepStatus.PLANNED, summary="") for step in accepted if step.id not in ids]
    return (*done, *rest)


HANDLERS: Mapping[type[cmd.Command], Callable[[AgentState, Any, ToolRegistry], Outcome]] = {
    cmd.AnswerApproval: _answer,
    cmd.GrantRule: _grant,
    cmd.RevokeRule: _revoke,
    cmd.SetApprovals: _set,
    cmd.AcceptPlan: _accept,
    cmd.RejectReplan: _reject,
}
