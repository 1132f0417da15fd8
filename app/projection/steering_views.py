"""View models of approvals: questions, the inbox, plans to accept.

Breakpoints as the dialog shows them.

The budgets dialog's model, from where the budgets stand.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace

from app.projection.event_lines import step_text
from app.projection.steering_text import BreakRow, break_rows, forecast_text, is_shown, shown_amount
from engine.agent.steering.budget_status import BudgetStatus, BudgetStatusLine
from engine.agent.steering.envelopes import LISTS, envelope_parts, given_envelope
from engine.agent.steering.rules import (
    RuleError,
    mismatch,
    narrowest_rule_for,
    read_rule,
    rule_text,
    words_of,
)
from engine.api.workspace_engine import WorkspaceEngine
from engine.core.actions import Reversibility
from engine.core.approvals import Call, Envelope, Question
from engine.core.budgets import BudgetKind
from engine.core.plan import Op, PlanStep, plan_difference
from engine.core.state import AgentState
from engine.core.text import clean_line, duration_text, short_duration
from engine.inquiry.inbox import Need, NeedKind, review_text
from widgets.base.facts import ListModel, Section
from widgets.base.rows import BLANK_MARK, Row, blank, heading
from widgets.base.text_layout import Piece, bar
from widgets.dialogs.approvals import ApprovalModel, PlanApprovalModel, ScopeView
from widgets.dialogs.lists import GROUP

Asked = Sequence[tuple[AgentState, Question]]


def questions(asked: Asked, now: str, deny_after_s: float | None = None) -> ApprovalModel:
    """What some agents ask.

    Args:
        asked: agents with what they wait for.
        now: ISO 8601 UTC.
        deny_after_s: when what nobody answers is denied by itself; None for never.
    """
    whose = asked[0][0].agent_id if len(asked) == 1 else f"{len(asked)} agents"
    return ApprovalModel(
        f"{whose} ask{'s' if len(asked) == 1 else ''}",
        tuple(_asked(state, question, now, deny_after_s) for state, question in asked),
        rule_text(narrowest_rule_for([question.call for _, question in asked])),
        editable=len(asked) == 1 and asked[0][0].find_step(asked[0][1].step) is not None,
    )


def _asked(state: AgentState, question: Question, now: str, deny_after_s: float | None) -> Section:
    *notes, last = consequences(state, question)
    last += f"; has waited {duration_text(question.at, now)}"
    last += f", denied by itself after {short_duration(deny_after_s)}" if deny_after_s else ""
    title = f"{state.agent_id} {question.action} {question.call.name}"
    return Section(title, arguments(question.call), notes=(*notes, last))


def consequences(state: AgentState, question: Question) -> tuple[str, ...]:
    """Why an agent asks, what a reviewer said, whether it can be undone, and for what it is; not cleaned."""
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
    review = review_text(state, question)
    return (
        f"why asked: {question.why}",
        *([review] if review else []),
        f"{undo[call.undo]}" + (f"; reaches {hosts}" if hosts else ""),
        whom,
    )


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
        if (why := mismatch(rule, question.call))
    )
    return ScopeView(words_of(rule), refused)


def inbox(needs: Sequence[Need] = (), now: str = "") -> ListModel:
    """Everything that waits, with how long it has; several of one shape stand below a heading."""
    groups: dict[str, list[Need]] = {}
    for need in needs:
        together = need.kind is NeedKind.APPROVAL and need.group
        groups.setdefault(GROUP + need.group if together else need.key, []).append(need)
    rows = []
    for key, group in groups.items():
        if len(group) > 1:
            head = f"{len(group)} ask for {clean_line(group[0].group, limit=80)}"
            rows.append(Row(key, (Piece(head, "heading"),), mark=Piece("▾", "warning")))
        rows += [_need_row(need, now, 2 * (len(group) > 1)) for need in group]
    kinds = {key: group[0].kind.value for key, group in groups.items()} | {n.key: n.kind.value for n in needs}
    return ListModel("Inbox: what needs you", rows, kinds=kinds)


def _need_row(need: Need, now: str, indent: int) -> Row:
    kind, what = need.kind.value, clean_line(need.what, limit=600)
    return Row(
        need.key,
        (
            Piece(f"{' ' * indent}{clean_line(need.agent, limit=20):<14} ", "strong"),
            Piece(f"{kind:<15} ", "accent"),
            Piece(what),
        ),
        tail=(Piece(duration_text(need.since, now) if need.since else "", "dim"), *_left(need, now)),
        indent=indent + 4,
        most=3,
        mark=Piece("!", "error") if need.urgent else Piece("?", "warning"),
        copy=f"{clean_line(need.agent)} {kind} {what}",
    )


def _left(need: Need, now: str) -> tuple[Piece, ...]:
    return (Piece(f" ✗ in {duration_text(now, need.until)}", "warning"),) if need.until else ()


# ------------------------------------------------------------------ plans


def plan_to_accept(engine: WorkspaceEngine, state: AgentState, goal: str) -> PlanApprovalModel | None:
    """A goal's plan, or its re-plan as a difference, with the envelope that would cover it."""
    plan, goal_state = state.plans.get(goal), state.goals.get(goal)
    proposed = engine.propose(state, goal)
    if plan is None or goal_state is None or proposed is None:
        return None
    held, accepted = state.approvals.held.get(goal), state.approvals.accepted.get(goal)
    present = state.approvals.envelopes.get(goal)
    if held is None or accepted is None:
        steps = (Section("The plan", _lines(plan.steps)),)
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
        tuple(Section(title, text) for title, text in sections if text),
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


def breakpoints(state: AgentState) -> ListModel:
    """All breakpoints of an agent, the key of each row its id."""
    return ListModel(f"Breakpoints of {state.agent_id}", [_break_row(row) for row in break_rows(state)])


def _break_row(row: BreakRow) -> Row:
    came, pattern = row.matched or 0, clean_line(row.text)
    hits = f"{row.stopped:,} hit{'s' * (row.stopped != 1)}" if row.stopped else ""
    if came > row.stopped:
        hits = f"{hits} of {came:,}" if hits else f"came {came:,}"
    return Row(
        row.id,
        (
            Piece(f"{row.id:<4} ", "dim"),
            Piece(f"{row.kind:<8}", "accent" if row.enabled else "dim"),
            Piece(pattern.removeprefix(f"{row.id} "), "text" if row.enabled else "dim"),
        ),
        tail=(Piece("  ".join(filter(None, (hits, "" if row.enabled else "off"))), "dim"),),
        mark=Piece("●", "error") if row.enabled else Piece("○", "dim"),
        indent=13,
        most=3,
        copy=pattern,
    )


NEAR = 0.8
"""Part of a budget from which on little is left."""
BUDGET_BAR_CELLS = 12


def budgets(statuses: Iterable[BudgetStatus], state: AgentState) -> ListModel:
    """The budgets that an agent draws on, each below its heading; a row's key is `goal g1/usd`."""
    rows: list[Row] = []
    for status in statuses:
        goal = state.goals.get(status.budget.removeprefix("goal "))
        title = f"{status.budget}: {clean_line(goal.text)}" if goal is not None else status.budget
        held = (Piece(f"holds {', '.join(status.held)}", "warning"),) if status.held else ()
        rows += [blank(f"blank:{status.budget}")] if rows else []
        rows.append(heading(f"heading:{status.budget}", title, tail=held))
        unpriced = f"{status.unpriced} calls of unknown price" if status.unpriced else ""
        if basis := "; ".join(filter(None, (clean_line(status.basis), unpriced))):
            rows.append(
                Row(f"basis:{status.budget}", (Piece(basis, "dim"),), selectable=False, indent=2, most=2)
            )
        rows += [_budget_row(status.budget, line) for line in status.lines]
    return ListModel(f"Budgets of {state.agent_id}", rows)


def _budget_row(budget: str, line: BudgetStatusLine) -> Row:
    kind, limit, ends = line.kind, line.limit, line.forecast
    part = 0.0 if limit is None else min(1.0, line.taken / limit) if limit else 1.0
    short = ends is not None and limit is not None and ends.likely > limit
    style = "error" if part >= 1 else "warning" if part >= NEAR else "accent"
    of, left = ("", "") if limit is None else (f" of {shown_amount(kind, limit)}", "")
    if line.left is not None:
        left = f", {shown_amount(kind, line.left)} left"
    aside = f", {shown_amount(kind, line.reserved)} set aside" if is_shown(kind, line.reserved) else ""
    forecast = f"→ {forecast_text(kind, ends)}" if ends is not None and ends.high > 0 else ""
    return Row(
        f"{budget}/{kind}",
        (
            Piece(f"{kind:<9}", "dim" if limit is None else "strong"),
            *(bar(part, BUDGET_BAR_CELLS, style=style) if of else (Piece(" " * BUDGET_BAR_CELLS),)),
            Piece(f" {shown_amount(kind, line.taken)}{of}", "text" if of else "dim"),
            Piece(left, "error" if part >= 1 else "text"),
            Piece(aside, "dim"),
        ),
        tail=(Piece(forecast, "warning" if short else "dim"),),
        mark=Piece("!", "warning") if short or part >= 1 else BLANK_MARK,
        indent=9,
        most=2,
    )


def quarter(line: BudgetStatusLine) -> str:
    """What the quick top-up adds: a quarter of the limit; empty where there is none."""
    if line.limit is None:
        return ""
    fine = line.kind is BudgetKind.USD
    return f"+{max(round(line.limit / 4, 2), 0.01):g}" if fine else f"+{max(round(line.limit / 4), 1)}"
