"""View models of approvals: questions, the inbox, plans to accept.

Breakpoints as the dialog shows them.

The budgets dialog's model, from where the budgets stand.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace

from app.projection.event_lines import duration_text, step_text
from app.projection.steering_text import break_rows, forecast_text, is_shown, shown_amount
from engine.agent.steering.budget_status import BudgetStatus, BudgetStatusLine
from engine.agent.steering.envelopes import LISTS, envelope_parts, given_envelope
from engine.agent.steering.rules import RuleError, misses, offered_for, read_rule, rule_text, words_of
from engine.api.engine import Engine
from engine.core.actions import Reversibility
from engine.core.approvals import Call, Envelope, Question
from engine.core.breakpoints import ON_MIND, USAGE, BreakKind
from engine.core.budgets import BudgetKind
from engine.core.plan import Op, PlanStep, plan_difference
from engine.core.state import AgentState
from engine.inquiry.inbox import Need, NeedKind
from widgets.dialogs.approvals import ApprovalModel, AskedCall, PlanApprovalModel, ScopeView
from widgets.dialogs.inbox import InboxLine, InboxModel
from widgets.dialogs.limits import (
    MIND_KINDS,
    BreakpointLine,
    BreakpointsModel,
    BudgetRow,
    BudgetSection,
    BudgetsModel,
    KindLine,
)

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
        Reversibility.NONE: "changes nothing",
        Reversibility.WORKSPACE: "can be undone from the workspace's snapshot",
        Reversibility.IRREVERSIBLE: "cannot be undone: a program may reach beyond the files",
    }
    whom = f"for {question.goal} {goal.text if goal else ''}"
    if call.client:
        whom = f"for the client {call.client}, as one call"
    hosts = ", ".join("hosts that it does not name" if host == "?" else host for host in call.hosts)
    notes = (
        f"why asked: {question.why}",
        f"{undo[call.undo]}" + (f"; reaches {hosts}" if hosts else ""),
        f"{whom}; has waited {duration_text(question.at, now)}",
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


def inbox(needs: Iterable[Need], now: str, message: str = "") -> InboxModel:
    """Everything that waits, with how long it has."""
    lines = tuple(
        InboxLine(
            need.key,
            need.agent,
            need.kind.value,
            need.what,
            duration_text(need.since, now) if need.since else "",
            need.group if need.kind is NeedKind.APPROVAL else "",
            need.urgent,
        )
        for need in needs
    )
    return InboxModel(lines, message)


# ------------------------------------------------------------------ plans


def plan_to_accept(engine: Engine, state: AgentState, goal: str) -> PlanApprovalModel | None:
    """A goal's plan, or its re-plan as a difference, with the envelope that would cover it."""
    plan, goal_state = state.plans.get(goal), state.goals.get(goal)
    proposed = engine.propose(state, goal)
    if plan is None or goal_state is None or proposed is None:
        return None
    held, accepted = state.approvals.held.get(goal), state.approvals.accepted.get(goal)
    present = state.approvals.envelopes.get(goal)
    if held is None or accepted is None:
        steps = (("The plan", _lines(plan.steps)),)
        title = f"Accept the plan of {goal}: {goal_state.text}"
        return PlanApprovalModel(title, steps, parts(present or proposed))
    changed = plan_difference(accepted.steps, plan.steps)
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
    what = f"decide: {step.description}" if step.op is Op.THINK else step_text(step)
    return f"{step.id:<4} {step.status.value:<9} {what}"


_KEYS = {BreakKind.SPEND: "m", BreakKind.EVERY: "n"}
"""Keys of kinds whose first letter is another's."""


def breakpoints(state: AgentState) -> BreakpointsModel:
    """All breakpoints of an agent, and the kinds that it can have."""
    lines = tuple(
        BreakpointLine(row.id, row.kind, row.text, row.enabled, row.stopped, row.matched or 0, row.last)
        for row in break_rows(state)
    )
    return BreakpointsModel(lines, state.agent_id, _kinds(state.reasons))


def _kinds(reasons: bool) -> tuple[KindLine, ...]:
    general = tuple(
        KindLine(kind, _KEYS.get(kind, kind[0]), what, f"{usage}, such as {example}")
        for kind, (usage, what, example) in USAGE.items()
        if reasons or kind is not BreakKind.INTENTION
    )
    if not reasons:
        return general
    return (*MIND_KINDS, *(kind for kind in general if kind.kind not in ON_MIND))


def budgets(statuses: Sequence[BudgetStatus], state: AgentState) -> BudgetsModel:
    """The model for the budgets that an agent draws on."""
    return BudgetsModel(state.agent_id, tuple(_section(status, state) for status in statuses))


def _section(budget_status: BudgetStatus, state: AgentState) -> BudgetSection:
    goal = state.goals.get(budget_status.budget.removeprefix("goal "))
    title = f"{budget_status.budget}: {goal.text}" if goal is not None else budget_status.budget
    basis = budget_status.basis
    if budget_status.unpriced:
        basis = f"{basis}{'; ' if basis else ''}{budget_status.unpriced} calls of unknown price"
    held = f"holds {', '.join(budget_status.held)}" if budget_status.held else ""
    return BudgetSection(
        budget_status.budget, title, tuple(_line(line) for line in budget_status.lines), basis, held
    )


def _line(line: BudgetStatusLine) -> BudgetRow:
    kind, limit = line.kind, line.limit
    ends = line.forecast
    return BudgetRow(
        kind.value,
        shown_amount(kind, line.taken),
        shown_amount(kind, limit) if limit is not None else "",
        shown_amount(kind, line.left) if line.left is not None else "",
        shown_amount(kind, line.reserved) if is_shown(kind, line.reserved) else "",
        part=_part(line.taken, limit),
        reserved_part=_part(line.reserved, limit),
        forecast=forecast_text(kind, ends) if ends is not None and ends.high > 0 else "",
        short=ends is not None and limit is not None and ends.likely > limit,
        more=_quarter(kind, limit),
    )


def _part(amount: float, limit: float | None) -> float:
    return min(1.0, amount / limit) if limit else float(limit is not None)


def _quarter(kind: BudgetKind, limit: float | None) -> str:
    """What the quick top-up adds: a quarter of the limit; empty where there is none."""
    if limit is None:
        return ""
    if kind is BudgetKind.USD:
        return f"+{max(round(limit / 4, 2), 0.01):g}"
    return f"+{max(round(limit / 4), 1)}"
