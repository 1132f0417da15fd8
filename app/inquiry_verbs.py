"""Words of the command bar that ask the journal."""

from __future__ import annotations

from collections.abc import Iterable

from app.verb import Context, GrammarError, Intent, Local, Verb, only

WAYS = ("forward", "wrong")


def split_way(rest: str) -> tuple[str, str]:
    """What is asked about, and which way: `backward` where nothing is said of it."""
    what, _, last = rest.rpartition(" ")
    return (what.strip(), last) if last in WAYS else (rest, "backward")


def _read_why(rest: str, context: Context) -> Intent:
    return Local("why", rest)


def _read_drift(rest: str, context: Context) -> Intent:
    goal = only(rest, "a goal").lower() if rest else ""
    if goal and context.state is not None and goal not in context.state.goals:
        known = ", ".join(context.state.goals) or "none yet"
        raise GrammarError(f"there is no goal '{goal[:40]}'; goals: {known}")
    return Local("drift", goal)


def _subjects(context: Context) -> Iterable[tuple[str, str]]:
    state = context.state
    if state is None:
        return []
    steps = [(step.id, step.description) for step in state.plan.steps] if state.plan else []
    goals = [(goal.id, goal.text) for goal in state.goals.values()]
    beliefs = [(key, str(belief.value)[:60]) for key, belief in state.beliefs.items()]
    return [("error", "the newest failure"), *steps, *goals, *beliefs]


def _goals(context: Context) -> Iterable[tuple[str, str]]:
    return [(goal.id, goal.text) for goal in context.state.goals.values()] if context.state else []


VERBS: tuple[Verb, ...] = (
    Verb("why", "why [EVENT|ACTION|STEP|GOAL|BELIEF|error|FILE] [forward|wrong]", "what it stands on; "
         "forward: what stands on it; wrong: what would be in doubt", _read_why, "Mind", choices=_subjects),
    Verb("drift", "drift [GOAL]", "whether the agent keeps to its plan: actions, changes of plans, evidence",
         _read_drift, "Plan", choices=_goals),
)  # fmt: skip
