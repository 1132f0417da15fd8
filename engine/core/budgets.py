"""Budgets: what may be taken, what was, and why not more; commands, and the events that hold agents."""

from __future__ import annotations

import operator
from dataclasses import replace
from enum import StrEnum
from functools import lru_cache

from pydantic import Field

from engine.core.command import Command
from engine.core.journal import Payload
from engine.core.reasons import Reason
from engine.value import dataclass


class BudgetKind(StrEnum):
    """What a budget counts; the order is the one in which they are shown."""

    USD = "usd"
    TOKENS = "tokens"
    CALLS = "calls"
    """Calls of models."""
    ACTIONS = "actions"
    """Actions of plans and programs that were started; the operator's own calls are none."""
    SECONDS = "seconds"
    """Time at work, see `engine.core.folds.agents.works`."""


DISK = "disk"
"""What holds where the data of the workspace take all the room that the settings give them."""
EXACT = 9
"""Decimals to which sums of dollars are compared."""


@dataclass(frozen=True, slots=True)
class SpendingLimits:
    """What may be taken over all sessions; None is no limit of its own."""

    usd: float | None = None
    tokens: int | None = None
    calls: int | None = None
    actions: int | None = None
    seconds: float | None = None
    lifted: tuple[str, ...] = ()
    """Kinds without a limit even where the settings have one."""

    def of(self, kind: BudgetKind) -> float | None:
        """The limit of a kind, in its own unit."""
        amount: float | None = getattr(self, kind.value)
        return amount

    @lru_cache(maxsize=1024)  # noqa: B019  values that are asked for before each action of each agent
    def over(self, usual: SpendingLimits) -> SpendingLimits:
        """These limits, and where there is none of a kind the usual one."""
        given = {
            kind.value: usual.of(kind)
            for kind in BudgetKind
            if self.of(kind) is None and kind.value not in self.lifted
        }
        return replace(self, **given)  # type: ignore[arg-type]

    def with_these(self, given: SpendingLimits) -> SpendingLimits:
        """These limits with others in place of some: those that are given or lifted."""
        named = {kind.value: given.of(kind) for kind in BudgetKind if given.of(kind) is not None}
        lifted = [kind for kind in (*self.lifted, *given.lifted) if kind not in named]
        blank = dict.fromkeys(given.lifted)
        return replace(self, **{**blank, **named}, lifted=tuple(dict.fromkeys(lifted)))  # type: ignore[arg-type]

    @property
    def any(self) -> bool:
        """Whether there is a limit."""
        return any(self.of(kind) is not None for kind in BudgetKind)

    def __str__(self) -> str:
        """`$2, 1,000,000 tokens, 90 s`."""
        parts = [amount_text(kind, limit) for kind in BudgetKind if (limit := self.of(kind)) is not None]
        return ", ".join([*parts, *(f"no limit of {kind}" for kind in self.lifted)])


@dataclass(frozen=True, slots=True)
class Spent:
    """What was taken: calls of models with their tokens and dollars, actions, and time."""

    calls: int = 0
    tokens: int = 0
    usd: float = 0.0
    """Of the calls whose price is known."""
    unpriced: int = 0
    """Calls of unknown price."""
    actions: int = 0
    us: int = 0
    """Microseconds at work."""

    def of(self, kind: BudgetKind) -> float:
        """How much of a kind, in its own unit."""
        if kind is BudgetKind.SECONDS:
            return self.us / 1_000_000
        amount: float = getattr(self, kind.value)
        return amount

    def __add__(self, other: Spent) -> Spent:
        return Spent(*map(operator.add, _AMOUNTS(self), _AMOUNTS(other)))

    def __sub__(self, other: Spent) -> Spent:
        return Spent(*map(operator.sub, _AMOUNTS(self), _AMOUNTS(other)))

    def at_least(self, limits: SpendingLimits) -> Spent:
        """This, or of each kind what the limits say where that is more."""
        return Spent(
            max(self.calls, limits.calls or 0),
            max(self.tokens, limits.tokens or 0),
            max(self.usd, limits.usd or 0.0),
            self.unpriced,
            max(self.actions, limits.actions or 0),
            max(self.us, round((limits.seconds or 0.0) * 1_000_000)),
        )


_AMOUNTS = operator.attrgetter("calls", "tokens", "usd", "unpriced", "actions", "us")
LEAST = Spent(calls=1, tokens=1, usd=10.0**-EXACT, actions=1, us=1)
"""The least that can still be taken."""


@dataclass(frozen=True, slots=True)
class StepCosts:
    """What the steps of a goal's plan took that are done."""

    steps: int = 0
    began: Spent = Spent()
    """What the goal had taken when the present step began."""
    taken: Spent = Spent()
    squares: tuple[float, ...] = (0.0,) * len(BudgetKind)
    """Of each kind the sum of the squares of what each step took, by which they can be seen to vary."""

    def stepped(self, spent: Spent) -> StepCosts:
        """The pace with one more step done, when the goal has taken this much."""
        step = spent - self.began
        squares = (old + step.of(kind) ** 2 for old, kind in zip(self.squares, BudgetKind, strict=True))
        return StepCosts(self.steps + 1, spent, self.taken + step, tuple(squares))

    def __add__(self, other: StepCosts) -> StepCosts:
        squares = tuple(ours + theirs for ours, theirs in zip(self.squares, other.squares, strict=True))
        return StepCosts(self.steps + other.steps, self.began, self.taken + other.taken, squares)


@dataclass(frozen=True, slots=True)
class BudgetHold:
    """A budget that holds an agent."""

    budget: str
    """Whose: `goal g1`, `agent pilot-1`, `workspace`."""
    kind: str
    event: str = ""
    """The event that holds it; once the agent is run or paused by another one, the budget no longer does."""
    goes_on: bool = False
    """Whether it continues by itself when the budget is raised: it was running when it was held, and nobody
    has closed the workspace since."""


@dataclass(frozen=True, slots=True)
class BudgetObjection:
    """Why something may not be started: the budget that it would break."""

    budget: str
    kind: str
    """A kind of budget, or `DISK`."""
    reason: Reason


def amount_text(kind: BudgetKind, amount: float) -> str:
    """An amount with its unit: `$2.50`, `1,000 tokens`, `90 s`."""
    match kind:
        case BudgetKind.USD:
            # Cents, and more where they would hide what is meant.
            return f"${amount:g}" if amount == round(amount, 2) else f"${amount:.4f}"
        case BudgetKind.SECONDS:
            return f"{amount:,.1f} s".replace(".0 s", " s")
        case _:
            return f"{amount:,.0f} {kind.value}"


def broken_budget(limits: SpendingLimits, spent: Spent, following: Spent) -> tuple[BudgetKind, Reason] | None:
    """The kind of budget that a next step could break, and why; None when it may be taken.

    A kind of which the step takes nothing does not hold it.

    Args:
        limits: what may be taken in all.
        spent: what counts against it already.
        following: the most that the step can take.
    """
    for kind in BudgetKind:
        limit, most = limits.of(kind), following.of(kind)
        if limit is None:
            continue
        if kind is BudgetKind.USD and (following.unpriced or (most > 0 and spent.unpriced)):
            return kind, UNPRICED
        if most > 0 and round(spent.of(kind) + most, EXACT) > limit:
            return kind, _why(kind, limit, spent.of(kind), most)
    return None


UNPRICED = Reason("budget.unpriced")


def _why(kind: BudgetKind, limit: float, spent: float, most: float) -> Reason:
    left = max(limit - spent, 0.0)
    match kind:
        case BudgetKind.USD:
            return Reason("budget.usd", most=most, left=left, limit=limit)
        case BudgetKind.TOKENS:
            return Reason("budget.tokens", most=most, left=left, limit=limit)
        case _:
            return Reason("budget.used-up", amount=amount_text(kind, limit))


AMOUNT_LIMITS: dict[BudgetKind, float] = {
    BudgetKind.USD: 1_000_000,
    BudgetKind.TOKENS: 10**15,
    BudgetKind.CALLS: 10**9,
    BudgetKind.ACTIONS: 10**9,
    BudgetKind.SECONDS: 10**9,
}
"""The most that a budget can be."""


def check_limits(given: object) -> str:
    """What is wrong with limits written as an object of amounts by kind; empty when they can be used."""
    if not isinstance(given, dict):
        return "a budget is amounts by kind, such as budget.usd=1"
    for name, amount in given.items():
        if name not in list(BudgetKind):
            return f"'{str(name)[:20]}' is no kind of budget; kinds: {', '.join(BudgetKind)}"
        most = AMOUNT_LIMITS[BudgetKind(name)]
        whole = name not in (BudgetKind.USD, BudgetKind.SECONDS)
        number = isinstance(amount, int if whole else int | float) and not isinstance(amount, bool)
        if not number or not 0 <= amount <= most:
            kind = "whole number" if whole else "number"
            return f"budget.{name}: a {kind} from 0 to {most:,.0f} is expected, not {str(amount)[:20]!r}"
    return ""


def limits_from(given: dict[str, object]) -> SpendingLimits:
    """Limits from amounts by kind; none where they cannot be used, see `check_limits`."""
    return SpendingLimits() if check_limits(given) else SpendingLimits(**given)  # type: ignore[arg-type]


class BudgetSet(Payload, kind="model.budget_set"):
    """The operator said what an agent may take, or a goal of it."""

    limits: SpendingLimits | None
    """None where the workspace's settings hold again; of a goal where it has none of its own any more."""
    goal: str = ""
    """The goal; empty for the whole agent."""


class WorkspaceBudgetSet(Payload, kind="workspace.budget_set"):
    """The operator said what all agents together may take; an event of the workspace's stream."""

    limits: SpendingLimits | None
    """None where the settings hold again."""


class BudgetReached(Payload, kind="model.budget_reached", external=True):
    """What comes next could break a budget, so the agent is held before it."""

    reason: Reason
    before: str = "call"
    """What is not begun: a `call` of a model, an `action`; `time` where what runs ends and nothing begins."""
    budget: str = ""
    """Whose budget: `goal g1`, `agent pilot-1`, `workspace`; older journals do not say it."""
    of: str = ""
    """The kind of budget."""


class BudgetEased(Payload, kind="budget.eased", external=True):
    """The budget that held the agent was raised, or others left more of it."""

    budget: str


class BudgetAmounts(Command):
    """What a budget is to be."""

    usd: float | None = Field(default=None, ge=0, le=1_000_000, allow_inf_nan=False)
    tokens: int | None = Field(default=None, ge=0, le=10**15)
    calls: int | None = Field(default=None, ge=0, le=10**9)
    actions: int | None = Field(default=None, ge=0, le=10**9)
    seconds: float | None = Field(default=None, ge=0, le=10**9, allow_inf_nan=False)
    keep: bool = False
    """Whether limits that are not named stay; else only the named ones hold."""
    more: tuple[BudgetKind, ...] = ()
    """Kinds of which the amount comes on top of the limit; of what was spent where there is none."""
    lifted: tuple[BudgetKind, ...] = ()
    """Kinds that are to have no limit, whatever the settings say."""

    @property
    def limits(self) -> SpendingLimits:
        """The limits that are named."""
        return SpendingLimits(
            self.usd, self.tokens, self.calls, self.actions, self.seconds, tuple(map(str, self.lifted))
        )


class SetBudget(BudgetAmounts, do="set_budget"):
    """Say what an agent or a goal may take over all sessions; nothing given is the settings' budget."""

    goal: str = ""
    """The goal, with those below it; empty for the agent, with those that work for it."""


class SetWorkspaceBudget(BudgetAmounts, do="set_workspace_budget"):
    """Say what all agents together may take over all sessions; nothing given is the settings' budget."""
