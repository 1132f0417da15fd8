"""The command about budgets: of an agent, a goal or the workspace."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from app.commands.arguments import Rest
from app.commands.command import Context, Form, GrammarError, Group, Show, Submit, Values, late
from engine.core import commands as cmd
from engine.core.budgets import AMOUNT_LIMITS, BudgetKind

KINDS = {**{kind.value: kind for kind in BudgetKind}, "money": BudgetKind.USD, "time": BudgetKind.SECONDS}
command = Group("Steering")
UNITS = {"s": 1.0, "m": 60.0, "h": 3_600.0}
ABOUT = {
    BudgetKind.USD: "dollars, over all sessions",
    BudgetKind.TOKENS: "prompt and answer",
    BudgetKind.CALLS: "of a model",
    BudgetKind.ACTIONS: "that were started",
    BudgetKind.SECONDS: "at work; 90, 15m, 2h",
}
USAGE = "[goal [GOAL]|agent|workspace] [KIND [+]AMOUNT|none …|usual]"
EXPECTED = "a kind and an amount are expected, such as: budget usd 5 tokens +100000"


def budget_command(context: Context, values: Values) -> cmd.Command:
    """`budget goal g1 usd 2 actions +10`.

    Raises:
        GrammarError: a kind, an amount or the goal is wrong.
    """
    scope, words, goal = _scope(values["amounts"].split(), context)
    kind = cmd.SetWorkspaceBudget if scope == "workspace" else cmd.SetBudget
    whose: dict[str, Any] = {} if scope == "workspace" else {"agent": context.agent}
    if goal:
        whose["goal"] = goal
    if words == ["usual"]:
        return kind.model_validate(whose)
    return kind.model_validate({**whose, **_amounts(words), "keep": True})


def _shown_goal(text: str, context: Context) -> str:
    """The goal whose budgets are shown; empty for those of the agent."""
    return _scope(text.split(), context)[2]


def _scope(words: list[str], context: Context) -> tuple[str, list[str], str]:
    """Whose budget it is, the words that are left, and the goal."""
    if words[:1] == ["goal"]:
        return "goal", *_goal(words[1:], context)
    if words and words[0] in ("agent", "workspace"):
        return words[0], words[1:], ""
    return "agent", words, ""


def _goal(words: list[str], context: Context) -> tuple[list[str], str]:
    state = context.state
    known = state.goals if state is not None else {}
    if words and re.fullmatch(r"[gG]?[0-9]+", words[0]):
        goal = words[0].lower() if words[0][0] in "gG" else f"g{words[0]}"
        if goal not in known:
            raise GrammarError(f"there is no goal '{goal[:40]}'; goals: {', '.join(known) or 'none yet'}")
        return words[1:], goal
    goal = state.goal_at_hand or next((each.id for each in state.open_goals), "") if state else ""
    if not goal:
        raise GrammarError("a goal is missing, and none is open")
    return words, goal


def _amounts(words: list[str]) -> dict[str, Any]:
    if len(words) % 2:
        raise GrammarError(EXPECTED)
    given: dict[str, Any] = {}
    more, lifted = [], []
    for name, amount in zip(words[::2], words[1::2], strict=True):
        kind = KINDS.get(name.lower())
        if kind is None:
            raise GrammarError(f"'{name[:20]}' is no kind of budget; kinds: {', '.join(BudgetKind)}")
        if kind.value in given or kind in lifted:
            raise GrammarError(f"{kind} is given twice")
        if amount == "none":
            lifted.append(kind)
            continue
        given[kind.value] = read_amount(kind, amount.removeprefix("+"))
        if amount.startswith("+"):
            more.append(kind)
    return {**given, "more": tuple(more), "lifted": tuple(lifted)}


def read_amount(kind: BudgetKind, text: str) -> float:
    """An amount as it is typed: `$2.50`, `100,000`, `90`, `15m`.

    Raises:
        GrammarError: it is no amount of this kind.
    """
    plain, unit = text.removeprefix("$").replace(",", ""), 1.0
    if kind is BudgetKind.SECONDS and plain[-1:] in UNITS:
        plain, unit = plain[:-1], UNITS[plain[-1]]
    try:
        amount = float(plain) * unit if kind in (BudgetKind.USD, BudgetKind.SECONDS) else int(plain)
    except ValueError:
        raise GrammarError(f"{kind}: '{text[:20]}' is no number that fits") from None
    if not 0 <= amount <= AMOUNT_LIMITS[kind]:
        raise GrammarError(f"{kind}: a number from 0 to {AMOUNT_LIMITS[kind]:,.0f} is expected")
    return amount


def _choices(context: Context) -> Iterable[tuple[str, str]]:
    yield from ((kind.value, about) for kind, about in ABOUT.items())
    yield "usual", "what the settings say"
    for goal in context.state.open_goals if context.state else ():
        yield f"goal {goal.id}", goal.text
    yield "workspace", "all agents together"


GOAL = Rest("goal", "a goal", optional=True, shown="[goal [GOAL]]", parse=_shown_goal)
ASKED = r"(agent|workspace|goal(\s+[gG]?[0-9]+)?)?\s*\Z"
COMMANDS = (
    command(
        "budget",
        Submit(budget_command),
        Rest("amounts", "an amount", shown=USAGE, offers=_choices),
        forms=(Form(Show(late("inbox:show_budgets"), "budgets"), (GOAL,), when=ASKED),),
    ),
)
