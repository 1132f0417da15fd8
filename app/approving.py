"""Approvals in words: the inbox, what is asked and granted, envelopes, and answers to many at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from app.inquiring import lasted
from app.verb import Local
from engine.domain import commands as cmd
from engine.domain.approval import Envelope
from engine.domain.ports import SystemClock
from engine.domain.state import AgentState
from engine.domain.text import clean_line
from engine.engine import Engine
from engine.inquiry import Need, NeedKind
from engine.steering.envelopes import LISTS
from engine.steering.rules import rule_text, words_of

Answered = tuple[Need, cmd.Receipt]


def need_line(need: Need, now: str) -> str:
    """A need on a line."""
    return (
        f"{need.agent:<14} {need.kind.value:<15} {need.thing:<5} {lasted(need.since, now):>6}  "
        f"{clean_line(need.what, limit=300)}"
    )


def inbox_answer(needs: Sequence[Need], now: str) -> tuple[dict[str, Any], str]:
    """The inbox as JSON and as text."""
    rows = [{**asdict(need), "kind": need.kind.value} for need in needs]
    lines = [need_line(need, now) for need in needs]
    return {"needs": rows}, "\n".join(lines) or "nobody needs you"


async def answer_all(
    engine: Engine, operator: str, needs: Iterable[Need], *, allow: bool, scope: str, words: str
) -> list[Answered]:
    """Answer questions together, each checked against the rule by itself.

    Args:
        engine: the workspace.
        operator: who answers.
        needs: the questions; what is no question is left alone.
        allow: whether they may run.
        scope: how long the rule holds.
        words: the rule on a line, or why they may not.
    """
    answered: list[Answered] = []
    for need in needs:
        if need.kind is not NeedKind.APPROVAL:
            continue
        fields = {"scope": scope, "rule": words} if allow else {"reason": words}
        command = cmd.AnswerApproval.model_validate(
            {"agent": need.agent, "action": need.thing, "allow": allow, **fields}
        )
        answered.append((need, await engine.submit(command, operator=operator)))
    return answered


def answered_text(answered: Sequence[Answered]) -> str:
    """What became of answers to many, those first that were refused."""
    if not answered:
        return "nobody waits for approval"
    refused = [(need, receipt) for need, receipt in answered if not receipt.ok]
    good = len(answered) - len(refused)
    told = [
        f"{need.agent} {need.thing} not answered: {clean_line(receipt.message)}" for need, receipt in refused
    ]
    return "\n".join((f"{good} of {len(answered)} answered", *told))


def approvals_text(state: AgentState) -> str:
    """What an agent asks about, what was granted, and which envelopes hold."""
    known = state.approvals
    lines: list[str] = []
    for source, policy in sorted(known.policies.items()):
        lines += [
            f"{source} rule {number}: {rule.answer} {clean_line(rule_text(rule))}"
            + (f" ({clean_line(rule.reason)})" if rule.reason else "")
            for number, rule in enumerate(policy.rules, 1)
        ]
        lines.append(f"{source}: else {policy.default}")
    lines += [
        f"{grant.id} {grant.scope}: {clean_line(words_of(grant.rule))} — by {grant.by}; revoke {grant.id}"
        for grant in known.grants
    ]
    for envelope in known.envelopes.values():
        lines += [f"envelope of {envelope.goal}, by {envelope.by}:", *envelope_lines(envelope)]
    return "\n".join(lines) or "nothing is asked: no policy is set (approvals ask-changes sets one)"


def approvals_json(state: AgentState) -> dict[str, Any]:
    """The same as JSON."""
    known = state.approvals
    return {
        "policies": {source: asdict(policy) for source, policy in known.policies.items()},
        "grants": [{**asdict(grant), "text": rule_text(grant.rule)} for grant in known.grants],
        "envelopes": {goal: asdict(envelope) for goal, envelope in known.envelopes.items()},
        "accepted": {goal: [step.id for step in plan.steps] for goal, plan in known.accepted.items()},
        "waiting": known.question.action if known.question is not None else "",
    }


def envelope_lines(envelope: Envelope) -> list[str]:
    """An envelope, a part on a line."""
    names = {"commands": "may change by", "paths": "may change", "programs": "may run", "hosts": "may reach"}
    lines = []
    for name in LISTS:
        patterns = clean_line(", ".join(getattr(envelope, name)))
        lines.append(f"  {names[name]:<14} {patterns or 'nothing'}")
    spend = "no limit" if envelope.spend_usd is None else f"${envelope.spend_usd:g}"
    lines.append(f"  {'may spend':<14} {spend}")
    lines.append(f"  {'irreversible':<14} {'yes' if envelope.irreversible else 'no'}")
    lines.append(f"  {'goals below':<14} {'yes' if envelope.children else 'no'}")
    return lines


async def told_of_approvals(
    engine: Engine, intent: Local, agent: str, operator: str = "cli"
) -> tuple[int, dict[str, Any], str]:
    """What a line about approvals comes to without a screen: exit code, JSON, text."""
    if intent.action == "inbox":
        return 0, *inbox_answer(await engine.inbox(), SystemClock().now())
    if intent.action == "approve_all":
        scope, _, rule = intent.argument.partition(" ")
        done = await answer_all(engine, operator, await engine.inbox(), allow=True, scope=scope, words=rule)
        rows = [
            {"agent": need.agent, "action": need.thing, "ok": receipt.ok, "message": receipt.message}
            for need, receipt in done
        ]
        good = all(receipt.ok for _, receipt in done)
        return int(not good), {"ok": good, "answers": rows}, answered_text(done)
    if not agent:
        return 2, {}, "there is no agent yet; agent_create bdi_agent ID makes one"
    state = await engine.view(agent)
    if intent.action == "approvals":
        return 0, approvals_json(state), approvals_text(state)
    held = state.approvals.envelopes.get(intent.argument)
    envelope = held or engine.propose(state, intent.argument)
    if envelope is None:
        return 1, {"ok": False}, f"{intent.argument} has no plan yet"
    title = f"envelope of {envelope.goal}" + ("" if held else ", as it would be proposed")
    found = {"envelope": asdict(envelope), "accepted": held is not None}
    return 0, found, "\n".join((title, *envelope_lines(envelope)))
