"""The words of the command bar about approvals, envelopes, accepted plans and the inbox."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from app.verb import Context, GrammarError, Intent, Local, Verb, only, split_word
from engine.domain import commands as cmd
from engine.domain.approval import Scope
from engine.steering.policies import ABOUT

ALL = "all"
_ACTION = re.compile(r"a\d+")


def _head(rest: str, fits: Any) -> tuple[str, str]:
    """The first word where it fits, and the rest."""
    head, _, tail = split_word(rest)
    return (head, tail.strip()) if head and fits(head) else ("", rest)


def _is_scope(text: str) -> bool:
    return text in list(Scope)


def _is_action(text: str) -> bool:
    return bool(_ACTION.fullmatch(text))


def _check(rule: str) -> None:
    """Refuse a rule that cannot be read, before anything is sent."""
    from engine.steering.rules import RuleError, read_rule

    if rule:
        try:
            read_rule(rule)
        except RuleError as error:
            raise GrammarError(str(error)) from None


def _read_approve(rest: str, context: Context) -> Intent:
    """`approve`, `approve a12 always write paths=src/**`, `approve all session …`, `approve {"path": …}`."""
    head, _, tail = split_word(rest)
    if head == ALL:
        scope, rule = _head(tail.strip(), _is_scope)
        if not rule:
            raise GrammarError("say what is allowed: approve all [once|session|always] write paths=src/**")
        _check(rule)
        return Local("approve_all", f"{scope or Scope.ONCE} {rule}")
    action, rest = _head(rest, _is_action)
    if rest.startswith("{"):
        return cmd.AnswerApproval(agent=context.agent, action=action, allow=True, args=_arguments(rest))
    scope, rule = _head(rest, _is_scope)
    _check(rule)
    return cmd.AnswerApproval.model_validate(
        {"agent": context.agent, "action": action, "allow": True, "scope": scope or "once", "rule": rule}
    )


def _arguments(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise GrammarError(f"the arguments are no JSON: {error}") from None
    if not isinstance(found, dict):
        raise GrammarError("the arguments are a JSON object")
    return found


def _read_deny(rest: str, context: Context) -> Intent:
    action, reason = _head(rest, _ACTION.fullmatch)
    return cmd.AnswerApproval(agent=context.agent, action=action, allow=False, reason=reason)


def _read_allow(rest: str, context: Context) -> Intent:
    scope, rule = _head(rest, lambda text: _is_scope(text) and text != Scope.ONCE)
    if not rule:
        raise GrammarError("say what is allowed unasked: allow [session|always] write paths=src/**")
    _check(rule)
    return cmd.GrantRule.model_validate({"agent": context.agent, "rule": rule, "scope": scope or "session"})


def _read_approvals(rest: str, context: Context) -> Intent:
    if not rest:
        return Local("approvals")
    policy: Any = _arguments(rest) if rest.startswith("{") else only(rest, "a preset")
    if isinstance(policy, str) and policy not in ABOUT:
        raise GrammarError(f"there is no preset '{policy[:40]}'; presets: {', '.join(ABOUT)}")
    return cmd.SetApprovals(agent=context.agent, policy=policy)


def _goal(rest: str, context: Context) -> tuple[str, str]:
    """The goal that is named, else the one at hand, and what follows."""
    goal, tail = _head(rest, re.compile(r"[gG]\d+").fullmatch)
    state = context.state
    if goal:
        return goal.lower(), tail
    if state is None or not state.open_goals:
        raise GrammarError("a goal is missing, and none is open")
    return state.goal_at_hand or state.open_goals[0].id, rest


def _read_accept(rest: str, context: Context) -> Intent:
    from engine.domain.approval import Envelope
    from engine.steering.envelopes import given_envelope
    from engine.steering.rules import RuleError

    goal, tail = _goal(rest, context)
    try:
        given = _arguments(tail) if tail.startswith("{") else given_envelope(tail, Envelope(goal))
    except RuleError as error:
        raise GrammarError(str(error)) from None
    return cmd.AcceptPlan(agent=context.agent, goal=goal, envelope=given)


def _read_envelope(rest: str, context: Context) -> Intent:
    goal, tail = _goal(rest, context)
    if tail:
        raise GrammarError(f"only a goal is expected; '{tail[:40]}' is too much; accept changes an envelope")
    return Local("envelope", goal)


def _read_reject(rest: str, context: Context) -> Intent:
    state = context.state
    goal, reason = _head(rest, re.compile(r"[gG]\d+").fullmatch)
    if not goal:
        held = list(state.approvals.held) if state is not None else []
        if not held:
            raise GrammarError("no re-plan waits for you")
        goal = held[0]
    return cmd.RejectReplan(agent=context.agent, goal=goal.lower(), reason=reason)


def _inbox(rest: str, context: Context) -> Intent:
    if rest:
        raise GrammarError("nothing follows this word")
    return Local("inbox")


def _waiting(context: Context) -> Iterable[tuple[str, str]]:
    question = context.state.approvals.question if context.state else None
    if question is not None:
        yield question.action, question.call.name
        yield from ((scope.value, "how long it holds") for scope in Scope)
    yield ALL, "whoever asks for what the rule covers"


def _grants(context: Context) -> Iterable[tuple[str, str]]:
    from engine.steering.rules import rule_text

    if context.state is not None:
        for grant in context.state.approvals.grants:
            yield grant.id, f"{grant.scope}: {rule_text(grant.rule)}"
        yield from ((goal, "its envelope") for goal in context.state.approvals.envelopes)


def _goals(context: Context) -> Iterable[tuple[str, str]]:
    return [(goal.id, goal.text) for goal in context.state.open_goals] if context.state else []


VERBS: tuple[Verb, ...] = (
    Verb("inbox", "inbox", "everything that needs you, of all agents", _inbox, "Approvals"),
    Verb("approve", "approve [ACTION|all] [once|session|always] [RULE] | approve [ACTION] {ARGUMENTS}",
         "let what waits run; of all agents what the rule covers; or run it with other arguments",
         _read_approve, "Approvals", choices=_waiting),
    Verb("deny", "deny [ACTION] [REASON]", "what waits may not run; the agent sees the reason", _read_deny,
         "Approvals", choices=_waiting),
    Verb("allow", "allow [session|always] RULE", "let calls run unasked: allow always write paths=src/**",
         _read_allow, "Approvals"),
    Verb("approvals", "approvals [PRESET|JSON]", "what is asked and granted; or ask more of this agent",
         _read_approvals, "Approvals", choices=lambda c: ABOUT.items()),
    Verb("revoke", "revoke GRANT|GOAL", "ask again about what was granted, or what an envelope covers",
         lambda rest, c: cmd.RevokeRule(agent=c.agent, grant=only(rest, "a grant")), "Approvals",
         choices=_grants),
    Verb("accept", "accept [GOAL] [PART=VALUE …]", "accept a plan, and what may be done for it unasked",
         _read_accept, "Approvals", choices=_goals),
    Verb("envelope", "envelope [GOAL]", "what may be done for a goal unasked, or what would be proposed",
         _read_envelope, "Approvals", choices=_goals),
    Verb("reject", "reject [GOAL] [REASON]", "refuse a re-plan that waits", _read_reject, "Approvals"),
)  # fmt: skip
