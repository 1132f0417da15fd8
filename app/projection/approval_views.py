"""View models of approvals: questions, the inbox, plans to accept."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace

from app.inquiring import lasted
from app.lines import call_text
from engine import inquiry
from engine.domain.action import Undo
from engine.domain.approval import Call, Envelope, Question
from engine.domain.plan import Op, PlanStep
from engine.domain.state import AgentState
from engine.engine import Engine
from engine.inquiry import Need, NeedKind
from engine.steering.envelopes import LISTS, envelope_parts, given_envelope
from engine.steering.rules import RuleError, misses, offered_for, read_rule, rule_text, words_of
from widgets.dialogs.approval import ApprovalModel, AskedCall, ScopeView
from widgets.dialogs.inbox import InboxLine, InboxModel
from widgets.dialogs.plan_approval import PlanApprovalModel

Asked = Sequence[tuple[AgentState, Question]]


def questions(asked: Asked, now: str) -> ApprovalModel:
    """What some agents ask.

    Args:
        asked: agents with what they wait for.
        now: ISO 8601 UTC.
    """
    whose = asked[0][0].agent_id if len(asked) == 1 else f"{len(asked)} agents"
    return ApprovalModel(
        f"{whose} ask{'s' if len(asked) == 1 else ''}",
        tuple(_asked(state, question, now) for state, question in asked),
        rule_text(offered_for([question.call for _, question in asked])),
        editable=len(asked) == 1 and asked[0][0].find_step(asked[0][1].step) is not None,
    )


def _asked(state: AgentState, question: Question, now: str) -> AskedCall:
    call = question.call
    goal = state.goals.get(question.goal)
    undo = {
        Undo.NONE: "changes nothing",
        Undo.WORKSPACE: "can be undone from the workspace's snapshot",
        Undo.IRREVERSIBLE: "cannot be undone: a program may reach beyond the files",
    }
    whom = f"for {question.goal} {goal.text if goal else ''}"
    if call.client:
        whom = f"for the client {call.client}, as one call"
    hosts = ", ".join("hosts that it does not name" if host == "?" else host for host in call.hosts)
    notes = (
        f"why asked: {question.why}",
        f"{undo[call.undo]}" + (f"; reaches {hosts}" if hosts else ""),
        f"{whom}; has waited {lasted(question.at, now)}",
    )
    return AskedCall(f"{state.agent_id} {question.action} {call.name}", arguments(call), notes)


def arguments(call: Call) -> str:
    """A call's arguments, each under its name, whole; where it would act, relative to the root."""
    lines = [f"  {call.line}"] if call.line else []
    if call.paths:
        lines.append(f"  beneath the root: {', '.join(call.paths)}")
    for name, value in call.args.items():
        if name == "command" and call.line:
            continue
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        lines.append(f"  {name}: {text}" if "\n" not in text else f"  {name}:\n{text}")
    return "\n".join(lines)


def scope_of(asked: Asked, text: str) -> ScopeView:
    """What a rule means for questions."""
    try:
        rule = read_rule(text)
    except RuleError as error:
        return ScopeView(error=str(error))
    refused = tuple(
        f"{state.agent_id} {question.action}: {why}"
        for state, question in asked
        if (why := misses(rule, question.call))
    )
    return ScopeView(words_of(rule), refused)


def inbox(needs: Iterable[Need], now: str, said: str = "") -> InboxModel:
    """Everything that waits, with how long it has."""
    lines = tuple(
        InboxLine(
            need.key,
            need.agent,
            need.kind.value,
            need.what,
            lasted(need.since, now) if need.since else "",
            need.group if need.kind is NeedKind.APPROVAL else "",
            need.urgent,
        )
        for need in needs
    )
    return InboxModel(lines, said)


# ------------------------------------------------------------------ plans


def plan_to_accept(engine: Engine, state: AgentState, goal: str) -> PlanApprovalModel | None:
    """A goal's plan, or its re-plan as a difference, with the envelope that would cover it."""
    plan, wanted = state.plans.get(goal), state.goals.get(goal)
    proposed = engine.propose(state, goal)
    if plan is None or wanted is None or proposed is None:
        return None
    held, accepted = state.approvals.held.get(goal), state.approvals.accepted.get(goal)
    present = state.approvals.envelopes.get(goal)
    if held is None or accepted is None:
        steps = (("The plan", _lines(plan.steps)),)
        title = f"Accept the plan of {goal}: {wanted.text}"
        return PlanApprovalModel(title, steps, parts(present or proposed))
    changed = inquiry.difference(accepted.steps, plan.steps)
    sections = [
        ("Added", _lines(changed.added)),
        ("Removed", _lines(changed.removed)),
        ("Changed", "\n".join(f"  {step_line(c.old)}\n    → {step_line(c.new)}" for c in changed.changed)),
        ("Moved", "\n".join(f"  {step_line(m.step)}: {m.was} → {m.now}" for m in changed.moved)),
        ("The whole new plan", _lines(plan.steps)),
    ]
    return PlanApprovalModel(
        f"Re-plan of {goal} ({held.change}), against the plan you accepted",
        tuple((title, text) for title, text in sections if text),
        parts(replace(proposed, spend_usd=present.spend_usd if present else None)),
        replan=True,
    )


def parts(envelope: Envelope) -> str:
    """An envelope, a part on a line, as it is edited; empty lists stand there too."""
    empty = [f"{name}=none" for name in LISTS if not getattr(envelope, name)]
    spend = ["spend=none"] if envelope.spend_usd is None else []
    return "\n".join((*envelope_parts(envelope), *empty, *spend))


def envelope_problem(text: str, goal: str) -> str:
    """What is wrong with an envelope's parts; empty when nothing is."""
    try:
        given_envelope(text, Envelope(goal))
    except RuleError as error:
        return str(error)
    return ""


def _lines(steps: Iterable[PlanStep]) -> str:
    return "\n".join(f"  {step_line(step)}" for step in steps)


def step_line(step: PlanStep) -> str:
    """A step on a line."""
    match step.op:
        case Op.ACT:
            what = call_text(step.command, step.args)
        case Op.ACHIEVE:
            what = f"achieve: {step.args.get('goal', '')}"
        case Op.THINK:
            what = f"decide: {step.description}"
        case _:
            what = call_text(step.op.value, step.args)
    return f"{step.id:<4} {step.status.value:<9} {what}"
