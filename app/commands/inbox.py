"""What steers agents, in words: the inbox, approvals, envelopes, breakpoints, budgets, answers to many."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from app.commands.approvals import accepted_plan
from app.commands.command import Answer, CommandHost, Values, chosen_agent
from app.projection.metacognition_views import taken_up
from app.projection.steering_text import break_rows, budget_json, budget_lines, dry_run_line, split_dry_run
from engine.agent.steering.envelopes import LISTS, envelope_of
from engine.agent.steering.rules import rule_line, rule_text, words_of
from engine.api.workspace_engine import WorkspaceEngine
from engine.core import commands as cmd
from engine.core.approvals import Answer as AnswerKind
from engine.core.approvals import Envelope, Scope
from engine.core.breakpoints import BreakError, write_break
from engine.core.ports import SystemClock
from engine.core.state import AgentState
from engine.core.text import clean_line, duration_text
from engine.inquiry.inbox import Need, NeedKind

AnsweredNeed = tuple[Need, cmd.Receipt]


async def show_inbox(host: CommandHost, _values: Values) -> Answer:
    """Everything that waits for the operator."""
    needs, now = await host.engine.inbox(), SystemClock().now()
    lines = [
        f"{need.agent:<14} {need.kind.value:<15} {need.thing:<5} {duration_text(need.since, now):>6}  "
        f"{clean_line(need.what, limit=300)}"
        + (f" — denied in {duration_text(now, need.until)}" if need.until else "")
        for need in needs
    ]
    rows = [{**asdict(need), "kind": need.kind.value} for need in needs]
    return 0, {"needs": rows}, "\n".join(lines) or "no agent needs you"


async def approve_all(host: CommandHost, values: Values) -> Answer:
    """Let run what waits of all agents, as far as a rule covers it."""
    scope, needs = values["scope"] or Scope.ONCE.value, await host.engine.inbox()
    answered = await answer_all(
        host.engine, host.operator, needs, allow=True, scope=scope, words=values["rule"]
    )
    rows = [
        {"agent": need.agent, "action": need.thing, "ok": receipt.ok, "message": receipt.message}
        for need, receipt in answered
    ]
    good = all(receipt.ok for _, receipt in answered)
    return int(not good), {"ok": good, "answers": rows}, answered_text(answered)


async def answer_all(
    engine: WorkspaceEngine, operator: str, needs: Iterable[Need], *, allow: bool, scope: str, words: str
) -> list[AnsweredNeed]:
    """Answer questions together, each checked against the rule by itself.

    Args:
        engine: the workspace.
        operator: who answers.
        needs: the questions; what is no question is left alone.
        allow: whether they may run.
        scope: how long the rule holds.
        words: the rule on a line, or why they may not.
    """
    answered: list[AnsweredNeed] = []
    for need in needs:
        if need.kind is not NeedKind.APPROVAL:
            continue
        fields = {"scope": scope, "rule": words} if allow else {"reason": words}
        command = cmd.AnswerApproval.model_validate(
            {"agent": need.agent, "action": need.thing, "allow": allow, **fields}
        )
        answered.append((need, await engine.submit(command, operator=operator)))
    return answered


def answered_text(answered: Sequence[AnsweredNeed]) -> str:
    """The results of answers to many, those first that were refused."""
    if not answered:
        return "no agent waits for approval"
    refused = [(need, receipt) for need, receipt in answered if not receipt.ok]
    good = len(answered) - len(refused)
    lines = [
        f"{need.agent} {need.thing} not answered: {clean_line(receipt.message)}" for need, receipt in refused
    ]
    return "\n".join((f"{good} of {len(answered)} answered", *lines))


async def show_approvals(host: CommandHost, _values: Values) -> Answer:
    """What an agent asks about, what was granted, and which envelopes hold."""
    known = (await host.engine.view(chosen_agent(host))).approvals
    lines: list[str] = []
    for source, policy in sorted(known.policies.items()):
        lines += [
            f"{source} rule {number}: {rule.answer} {clean_line(rule_text(rule))}"
            + (f" ({clean_line(rule.reason)})" if rule.reason else "")
            for number, rule in enumerate(policy.rules, 1)
        ]
        lines.append(f"{source}: else {policy.default}")
    lines += [
        f"{grant.id} {grant.scope}{': ' if grant.rule.answer is AnswerKind.ALLOW else ', denied: '}"
        f"{clean_line(words_of(grant.rule))} — by {grant.by}; revoke {grant.id}"
        for grant in known.grants
    ]
    for envelope in known.envelopes.values():
        lines += [f"envelope of {envelope.goal}, by {envelope.by}:", *envelope_lines(envelope)]
    answer = {
        "policies": {source: asdict(policy) for source, policy in known.policies.items()},
        "grants": [{**asdict(grant), "text": rule_text(grant.rule)} for grant in known.grants],
        "envelopes": {goal: asdict(envelope) for goal, envelope in known.envelopes.items()},
        "accepted": {goal: [step.id for step in plan.steps] for goal, plan in known.accepted.items()},
        "waiting": known.question.action if known.question is not None else "",
    }
    none = "nothing is asked: no policy is set (approvals ask-changes sets one)"
    return 0, answer, "\n".join(lines) or none


def rule_rows(state: AgentState) -> list[dict[str, Any]]:
    """The rules that were learned and wait, with how each does over the whole history."""
    return [
        {**asdict(each.learned), "id": each.id, "rule": rule_line(each.learned.rule)}
        | {"answer": each.learned.rule.answer.value, "words": words_of(each.learned.rule)}
        for each in state.approvals.proposals
    ]


async def show_rules(host: CommandHost, _values: Values) -> Answer:
    """The rules that were learned from the operator's answers and wait."""
    rows = rule_rows(await host.engine.view(chosen_agent(host)))
    lines = [
        f"{row['id']} {row['answer']} {clean_line(row['words'])}\n"
        f"     {row['hits']} answers alike, none against it, {row['misses']} like them left to you; about "
        f"{row['calls']} calls so far — rules take {row['id']}, rules decline {row['id']}"
        for row in rows
    ]
    return 0, {"rules": rows}, "\n".join(lines) or "no rule waits; rules propose looks for some"


async def propose_rules(host: CommandHost, values: Values) -> Answer:
    """Learn rules, and show those that wait."""
    fields = {"agent": chosen_agent(host), "needed": values["needed"]}
    code, answer, text = await host.submit(cmd.ProposeRules.model_validate(fields))
    if code:
        return code, answer, text
    _, rows, lines = await show_rules(host, values)
    return 0, {**answer, **rows}, f"{text}\n{lines}" if rows["rules"] else text


def envelope_lines(envelope: Envelope) -> list[str]:
    """An envelope, a part on a line."""
    names = {"commands": "may change by", "paths": "may change", "programs": "may run", "hosts": "may reach"}
    parts = {names[name]: clean_line(", ".join(getattr(envelope, name))) or "nothing" for name in LISTS}
    parts["may spend"] = "no limit" if envelope.spend_usd is None else f"${envelope.spend_usd:g}"
    parts["irreversible"] = "yes" if envelope.irreversible else "no"
    parts["goals below"] = "yes" if envelope.children else "no"
    return [f"  {label:<14} {text}" for label, text in parts.items()]


async def show_envelope(host: CommandHost, values: Values) -> Answer:
    """The envelope of a goal, or the one that would be proposed."""
    state, goal = await host.engine.view(chosen_agent(host)), values["goal"]
    held = state.approvals.envelopes.get(goal)
    envelope = held or host.engine.propose(state, goal)
    if envelope is None:
        return 1, {"ok": False}, f"{goal} has no plan yet"
    title = f"envelope of {envelope.goal}" + ("" if held else ", as it would be proposed")
    answer = {"envelope": asdict(envelope), "accepted": held is not None}
    return 0, answer, "\n".join((title, *envelope_lines(envelope)))


async def show_accepted(host: CommandHost, values: Values) -> Answer:
    """The envelope that a line would accept, and how it is accepted."""
    state, command = await host.engine.view(chosen_agent(host)), accepted_plan(host.context, values)
    proposed = host.engine.propose(state, command.goal) if command.goal in state.plans else None
    if proposed is None:
        return 1, {"ok": False}, f"{command.goal} has no plan yet"
    envelope = envelope_of(command.envelope, proposed)
    how = "nothing was accepted; the same line with --yes behind it accepts the plan"
    lines = (f"without asking, for {command.goal}:", *envelope_lines(envelope), how)
    return 0, {"ok": False, "envelope": asdict(envelope), "message": how}, "\n".join(lines)


async def show_messages(host: CommandHost, _values: Values) -> Answer:
    """What the operator said to the agent's thinker lately, each with what it led to."""
    state = await host.engine.view(chosen_agent(host))
    rows, lines = [], []
    for entry in (*state.meta.told, *state.meta.feedback):
        if entry.source != "operator":
            continue
        answer = await host.engine.store.get(entry.led) if entry.led else None
        what = taken_up(state, entry, answer)
        rows.append({"event": entry.event, "text": entry.text, "when": entry.when, "asked": entry.asked})
        rows[-1] |= {"led": entry.led, "taken_up": what}
        lines.append(f"{entry.event} {clean_line(entry.text, limit=300)}\n    {clean_line(what)}")
    return (0, {"messages": rows}, "\n".join(lines) or "no messages yet; guide TEXT says one")


# ------------------------------------------------------------------ breakpoints and budgets


async def show_breakpoints(host: CommandHost, _values: Values) -> Answer:
    """All breakpoints of the agent."""
    rows = break_rows(await host.engine.view(chosen_agent(host)))
    lines = [
        f"{row.id:<5} {'on ' if row.enabled else 'off'} {row.kind:<9} {clean_line(row.text)}"
        + (f"  ({row.counts})" if row.counts else "")
        for row in rows
    ]
    none = "no breakpoints; break KIND … sets one, such as: break error *"
    return 0, {"breakpoints": [asdict(row) for row in rows]}, "\n".join(lines) or none


async def dry_run(host: CommandHost, values: Values) -> Answer:
    """What a breakpoint would have done over the agent's history; of the holds the first twenty."""
    agent = chosen_agent(host)
    try:
        line, last = split_dry_run(values["line"])
    except BreakError as error:
        return 2, {}, str(error)
    dry = await host.engine.dry_run(agent, [line], last)
    (result,) = dry.results
    stops, line = [asdict(stop) for stop in result.stops], write_break(result.spec)
    counts = {"matched": result.matched, "stopped": result.stopped}
    lines = [dry_run_line(dry)]
    lines += [f"  {stop.event:<14} {stop.at[:19]}  {clean_line(stop.what)}" for stop in result.stops]
    if result.stopped > len(stops):
        lines.append(f"  … and {result.stopped - len(stops):,} more")
    answer = {"agent": dry.agent, "events": dry.events, "line": line, **counts, "stops": stops}
    return 0, answer, "\n".join(lines)


def show_budgets(host: CommandHost, values: Values) -> Answer:
    """The budgets that an agent draws on: spent, left, forecast."""
    budgets = host.engine.budgets(host.context.agent, values["goal"] or "")
    text = "\n".join(line for budget in budgets for line in budget_lines(budget))
    return 0, {"budgets": [budget_json(budget) for budget in budgets]}, text
