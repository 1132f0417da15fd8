"""Commands about approvals, envelopes and accepted plans; the inbox."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import partial

from app.commands.arguments import (
    REASON,
    Flag,
    Prefix,
    Rest,
    Word,
    among,
    json_object,
    matching,
    open_goals,
    read_goal_id,
)
from app.commands.command import Context, Form, GrammarError, Group, Show, Submit, Values, late
from engine.agent.steering.envelopes import given_envelope
from engine.agent.steering.rules import ABOUT, RuleError, read_rule, rule_line, rule_text
from engine.core import commands as cmd
from engine.core.approvals import Envelope, Scope

SCOPES = "|".join(Scope)
command = Group("Approvals")


def _rule(text: str, _context: Context) -> str:
    """A rule that can be read; one that cannot is refused before anything is sent."""
    try:
        read_rule(text)
    except RuleError as error:
        raise GrammarError(str(error)) from None
    return text


def accepted_plan(context: Context, values: Values) -> cmd.AcceptPlan:
    """The command that accepts a plan.

    Raises:
        GrammarError: no goal is open, or the envelope cannot be read.
    """
    goal, parts = str(values.get("goal") or _goal_at_hand(context)).lower(), values.get("parts") or ""
    try:
        given = json_object(parts, context) if parts[:1] == "{" else given_envelope(parts, Envelope(goal))
    except RuleError as error:
        raise GrammarError(str(error)) from None
    return cmd.AcceptPlan(agent=context.agent, goal=goal, envelope=given)


def _goal_at_hand(context: Context) -> str:
    state = context.state
    if state is None or not state.open_goals:
        raise GrammarError("a goal is missing, and none is open")
    return state.goal_at_hand or state.open_goals[0].id


def _reject(context: Context, values: Values) -> cmd.Command:
    held = list(context.state.approvals.held) if context.state is not None else []
    if not values.get("goal") and not held:
        raise GrammarError("no re-plan waits for you")
    goal = str(values.get("goal") or held[0]).lower()
    return cmd.RejectReplan(agent=context.agent, goal=goal, reason=values.get("reason", ""))


def _waiting(context: Context) -> Iterable[tuple[str, str]]:
    question = context.state.approvals.question if context.state else None
    if question is not None:
        yield question.action, question.call.name
        yield from ((scope.value, "how long it holds") for scope in Scope)
    yield "all", "whoever asks for what the rule covers"


def _grants(context: Context) -> Iterable[tuple[str, str]]:
    if context.state is not None:
        for grant in context.state.approvals.grants:
            yield grant.id, f"{grant.scope}: {rule_text(grant.rule)}"
        yield from ((goal, "its envelope") for goal in context.state.approvals.envelopes)


def _proposed(context: Context) -> Iterable[tuple[str, str]]:
    for proposal in context.state.approvals.proposals if context.state is not None else ():
        yield proposal.id, rule_line(proposal.learned.rule)


def _rules(context: Context) -> Iterable[tuple[str, str]]:
    yield "propose", "learn rules from your answers"
    for ident, line in _proposed(context):
        yield f"take {ident}", line
        yield f"decline {ident}", line


def _named_goal(text: str, context: Context) -> str:
    if not re.fullmatch(r"[gG]\d+", text):
        raise GrammarError(f"only a goal is expected; '{text[:40]}' is too much; accept changes an envelope")
    return read_goal_id(text, context)


PRESET = among(tuple(ABOUT), f"there is no preset '{{}}'; presets: {', '.join(ABOUT)}")
ACTION = Prefix("action", r"(a\d+)", "ACTION")
SCOPE = Prefix("scope", rf"({SCOPES})", SCOPES)
KEPT = Prefix("scope", r"(session|always)", "session|always")
GOAL = Prefix("goal", r"([gG]\d+)", "GOAL", offers=open_goals)


PROPOSAL = Word("proposal", "a proposed rule", shown="RULE", offers=_proposed)
NEEDED = Word(
    "needed",
    "a number",
    True,
    "ANSWERS",
    matching(r"[1-9]\d{0,2}", "'{}' is no number of answers from 1 to 999", int),
    default=3,
)
POLICY = Rest("policy", "a policy", shown="JSON", parse=json_object)
RULE = partial(Rest, "rule", parse=_rule)
ALL = "what is allowed, such as: approve all [once|session|always] write paths=src/**,"
UNASKED = "what is allowed unasked, such as: allow [session|always] write paths=src/**,"
ARGUMENTS = Rest("args", "arguments", shown="{ARGUMENTS}", parse=json_object)
COMMANDS = (
    command("inbox", Show(late("inbox:show_inbox"), "inbox")),
    command(
        "approve",
        Submit(cmd.AnswerApproval, {"allow": True}),
        *(ACTION, SCOPE, RULE("a rule", optional=True)),
        forms=(
            Form(late("inbox:approve_all"), (SCOPE, RULE(ALL)), word="all"),
            Form(Submit(cmd.AnswerApproval, {"allow": True}), (ACTION, ARGUMENTS), when=r"(a\d+\s+)?\{"),
        ),
        choices=_waiting,
    ),
    command("deny", Submit(cmd.AnswerApproval, {"allow": False}), *(ACTION, REASON), choices=_waiting),
    command("allow", cmd.GrantRule, *(KEPT, RULE(UNASKED))),
    command(
        "approvals",
        cmd.SetApprovals,
        Word("policy", "a preset", shown="[PRESET|JSON]", parse=PRESET, offers=lambda _c: ABOUT.items()),
        forms=(
            Form(Show(late("inbox:show_approvals")), when=r"\Z"),
            Form(Submit(cmd.SetApprovals), (POLICY,), when=r"\{"),
        ),
    ),
    command("revoke", cmd.RevokeRule, Word("grant", "a grant", shown="GRANT|GOAL", offers=_grants)),
    command(
        "rules",
        Show(late("inbox:show_rules")),
        forms=(
            Form(Show(late("inbox:propose_rules"), changes=True), (NEEDED,), word="propose"),
            Form(Submit(cmd.TakeRule), (PROPOSAL, KEPT), word="take"),
            Form(Submit(cmd.DeclineRule), (PROPOSAL,), word="decline"),
        ),
        choices=_rules,
    ),
    command(
        "accept",
        Submit(accepted_plan),
        *(GOAL, Flag("yes", behind=True, hidden=True)),
        *(Rest("parts", "parts", optional=True, shown="[PART=VALUE …]"),),
        asks_first=late("inbox:show_accepted"),
    ),
    command(
        "envelope",
        Show(late("inbox:show_envelope")),
        Rest("goal", "a goal", optional=True, parse=_named_goal, offers=open_goals, default=_goal_at_hand),
    ),
    command("reject", Submit(_reject), GOAL, REASON),
)
