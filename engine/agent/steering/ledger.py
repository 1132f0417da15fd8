"""The workspace's one ledger: what every agent took, and whose budget a next step would break.

A goal's budget covers the goals below it, an agent's those that work for it, the workspace's all. What counts
is a function of the agents' folded states; only what is under way and in no state yet is kept here. A replay
has no ledger: what it decided is in the streams as events from outside.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

from engine.core.agents import AgentConfig, RunState
from engine.core.budgets import (
    DISK,
    LEAST,
    UNPRICED,
    BudgetKind,
    BudgetObjection,
    SpendingLimits,
    Spent,
    amount_text,
    broken_budget,
)
from engine.core.folds.agents import goal_of_work, microseconds_between, works
from engine.core.reasons import NONE, Reason
from engine.core.state import AgentState
from engine.value import dataclass

WORKSPACE = "workspace"
NO_LIMITS = SpendingLimits()


@dataclass(frozen=True, slots=True)
class Account:
    """One budget that an agent's next step draws on."""

    budget: str
    """Whose: `goal g1`, `agent pilot-1`, `workspace`."""
    title: str
    """In a sentence: `goal g1`, `boss, for which it works`, `the workspace`; empty for the agent's own."""
    limits: SpendingLimits
    charged: Callable[[], Spent]
    """What counts against it: taken, under way, and set aside for others."""
    taken: Callable[[], Spent]
    """What was taken of it, without what is under way or set aside."""


@dataclass(eq=False, slots=True)
class Entry:
    """Something that was let through and is in no state yet: a call of a model, or an action."""

    agent: str
    goal: str
    most: Spent
    action: str = ""
    """The action's id; it counts until it has started, been withdrawn or ended otherwise."""

    def takes(self, kind: BudgetKind) -> bool:
        """Whether it may take something of a kind, also where nobody knows how much."""
        return self.most.of(kind) > 0 or (kind is BudgetKind.USD and self.most.unpriced > 0)


class Ledger:
    """Counts for all agents of a workspace together.

    Args:
        workspace: what the settings let all agents together take.
        usual: what the settings let each agent take.
        now: the time of day.
    """

    def __init__(
        self,
        workspace: SpendingLimits = NO_LIMITS,
        usual: SpendingLimits = NO_LIMITS,
        now: Callable[[], str] = str,
    ) -> None:
        self._settings = workspace
        self._usual = usual
        self._now = now
        self.workspace: SpendingLimits | None = None
        """What the operator set for all agents together; None where the settings hold."""
        self.disk = NONE
        """Why nothing more may be written to the disk; empty while there is room."""
        self.beside = Spent()
        """What was taken for the workspace itself and for no agent: Mastermind's calls of models."""
        self._states: dict[str, AgentState] = {}
        self._below: dict[str, list[AgentState]] = {}
        """Who works for whom, found when it is first asked for."""
        self._aside: dict[str, SpendingLimits] = {}
        """What was set aside for whom."""
        self._gone: dict[str, Spent] = {}
        """What those took that are over, by whom they worked for."""
        self._heirs: dict[str, str] = {}
        """Whom each of these worked for."""
        self._entries: dict[str, list[Entry]] = {}
        """What was let through, by its agent."""
        self._wanted: dict[str, Entry] = {}
        """What each agent that is held was not let do."""
        self._freed = asyncio.Event()

    # -------------------------------------------------------------- who draws

    def join(self, state: AgentState) -> None:
        """Count an agent, for good: what it took stays taken when it is deleted."""
        self._states[state.agent_id] = state
        self._below.clear()
        self._aside.pop(state.agent_id, None)
        if (aside := state.config.set_aside).any:
            self._aside[state.agent_id] = aside

    def count_ended_agent(self, agent: str, parent: str, spent: Spent) -> None:
        """Count what an agent took that is over for good, and keep no more of it than that.

        Args:
            agent: the agent; nothing of it is under way.
            parent: the agent that it worked for; empty for none.
            spent: what it took.
        """
        self._states.pop(agent, None)
        self._aside.pop(agent, None)
        self._entries.pop(agent, None)
        self._wanted.pop(agent, None)
        self._below.clear()
        heir = self._heirs[agent] = self._alive(parent)
        all_of_it = spent + self._gone.pop(agent, Spent())
        self._gone[heir] = self._gone.get(heir, Spent()) + all_of_it

    def _alive(self, name: str) -> str:
        """An agent, or the nearest above it that is not over."""
        while name in self._heirs:
            name = self._heirs[name]
        return name

    def admit(self, state: AgentState, *, thinks: bool) -> str:
        """Count an agent that is about to be created; or why there is no room for it, in words.

        Args:
            state: the agent, with nothing taken yet.
            thinks: whether it calls a model.
        """
        config = state.config
        if config.parent and (why := self._spent_up(config, thinks)):
            return why
        self.join(state)
        for account in self._above(state):
            before = self._without(state, account)
            if broken := broken_budget(account.limits, before, account.charged() - before):
                self.leave(state)
                kind = broken[0]
                limit, set_aside = account.limits.of(kind) or 0.0, config.set_aside.of(kind) or 0.0
                left = amount_text(kind, round(max(limit - before.of(kind), 0.0), 6))
                return (
                    f"{left} of {amount_text(kind, limit)} are left in the budget of {_of(account)}, and "
                    f"{amount_text(kind, set_aside)} are to be set aside: raise it, or set less aside"
                )
        return ""

    def leave(self, state: AgentState) -> None:
        """Forget an agent that was not created after all."""
        if self._states.get(state.agent_id) is state:
            del self._states[state.agent_id]
            self._below.clear()

    def _without(self, state: AgentState, account: Account) -> Spent:
        self.leave(state)
        try:
            return account.charged()
        finally:
            self.join(state)

    def _spent_up(self, config: AgentConfig, thinks: bool) -> str:
        """Why nothing can be begun for a parent: one of its budgets, or of those above, has nothing left."""
        stranger = AgentState(config=config)
        least = LEAST if thinks else Spent(actions=1, us=1)
        for account in self._above(stranger):
            if broken := broken_budget(account.limits, account.charged(), least):
                return _nothing_left(account, *broken)
        return ""

    def no_start(self, agent: str, *, thinks: bool) -> str:
        """Why an agent that works for another cannot be set running, in words; empty when it can."""
        state = self._states.get(agent)
        if state is None or not state.config.parent:
            return ""
        least = LEAST if thinks else Spent(actions=1, us=1)
        for account in self._above(state):
            if objection := self._breaks(Entry(agent, "", least), account):
                return _nothing_left(account, *objection)
        return ""

    # -------------------------------------------------------------- what is asked before each step

    def enter(self, agent: str, goal: str, most: Spent, *, action: str = "") -> Entry | BudgetObjection:
        """Let something be begun and count it from now on, or say whose budget it could break.

        Args:
            agent: who wants it.
            goal: the goal that it serves; empty for none.
            most: the most that it can take.
            action: the action's id, where it is one; a call is counted until `release`.
        """
        mine = self._entries.get(agent, ())
        self._entries[agent] = [
            entry for entry in mine if not self._is_over(entry) and not (action and entry.action == action)
        ]
        # To go on takes time, whatever else it takes.
        entry = Entry(agent, goal, most + Spent(us=1), action)
        state = self._states.get(agent)
        asked = state is not None and (self._limited(state) or bool(self.disk))
        objection = self._objection(entry, self.accounts(state, goal)) if state and asked else None
        if objection is not None:
            self._wanted[agent] = entry
            return objection
        self._wanted.pop(agent, None)
        return self._enter(Entry(agent, goal, most, action))

    def reserve_for_workspace(self, most: Spent) -> Entry | BudgetObjection:
        """Let a call be made for the workspace itself, or say why its budget has no room for it."""
        entry = Entry("", "", most)
        objection = self._objection(entry, self._above(AgentState()))
        return objection or self._enter(entry)

    def _enter(self, entry: Entry) -> Entry:
        self._entries.setdefault(entry.agent, []).append(entry)
        return entry

    def release(self, entry: Entry) -> None:
        """A call is over; what it took is in its agent's state."""
        self._entries[entry.agent].remove(entry)
        freed, self._freed = self._freed, asyncio.Event()
        freed.set()

    def can_wait(self, agent: str) -> bool:
        """Whether only calls under way leave no room for what the agent wants: it can wait for them."""
        waiting, kept = self._wanted.get(agent), self._entries
        calls = any(not entry.action for entries in kept.values() for entry in entries)
        if waiting is None or not calls:
            return False
        self._entries = {name: [entry for entry in entries if entry.action] for name, entries in kept.items()}
        try:
            return self._objection(waiting, self.accounts(self._states[agent], waiting.goal)) is None
        finally:
            self._entries = kept

    async def freed(self) -> None:
        """Return when a call that was under way is over."""
        await self._freed.wait()

    def overtime(self) -> Iterator[tuple[str, BudgetObjection]]:
        """Agents at work whose time is up, each with the budget that says so."""
        for name, state in self._states.items():
            may = state.run is RunState.RUNNING or state.grants > 0
            if may and works(state) and self._limited(state):
                objection = self._objection(Entry(name, "", Spent(us=1)), self.accounts(state, ""))
                if objection is not None:
                    yield name, objection

    def _limited(self, state: AgentState) -> bool:
        """Whether there may be a budget that an agent draws on."""
        own = state.budget is not None or state.goal_budgets or state.config.parent
        return bool(own) or self._usual.any or self._settings.any or self.workspace is not None

    def eased(self) -> list[str]:
        """Agents that a budget holds and that would be let continue now."""
        return [
            name
            for name, state in self._states.items()
            if state.held_by is not None and not state.deleted and self.still(name) is None
        ]

    def held(self, budget: str, state: AgentState) -> tuple[str, ...]:
        """The agents that a budget holds now, by its name; of a goal only the agent whose goal it is."""
        asked = [state] if budget.startswith("goal ") else self._states.values()
        return tuple(
            state.agent_id for state in asked if state.held_by is not None and state.held_by.budget == budget
        )

    def still(self, agent: str) -> BudgetObjection | None:
        """Why an agent that a budget holds would be held again; None when it would not."""
        state = self._states[agent]
        waiting = self._wanted.get(agent) or Entry(agent, state.goal_at_hand, LEAST)
        return self._objection(waiting, self.accounts(state, waiting.goal))

    def _is_over(self, entry: Entry) -> bool:
        """Whether an action that was let through is in its agent's state, or will not be begun."""
        if not entry.action:
            return False
        action = self._states[entry.agent].action
        return action is None or action.id != entry.action or action.started

    def _objection(self, entry: Entry, accounts: Iterator[Account]) -> BudgetObjection | None:
        if self.disk:
            return BudgetObjection(WORKSPACE, DISK, self.disk)
        for account in accounts:
            if objection := self._breaks(entry, account):
                kind, why = objection
                reason = Reason("budget.of", account=account.title, why=why) if account.title else why
                return BudgetObjection(account.budget, kind, reason)
        return None

    def _breaks(self, entry: Entry, account: Account) -> tuple[BudgetKind, Reason] | None:
        """The kind of a budget that something could break, and why; what was set aside for it breaks none."""
        if not any(account.limits.of(kind) is not None and entry.takes(kind) for kind in BudgetKind):
            return None
        before = account.charged()
        self._enter(entry)
        try:
            following = account.charged() - before
        finally:
            self._entries[entry.agent].pop()
        return broken_budget(account.limits, before, following)

    # -------------------------------------------------------------- the budgets

    def accounts(self, state: AgentState, goal: str) -> Iterator[Account]:
        """The budgets that an agent draws on, the nearest first.

        Args:
            state: the agent.
            goal: the goal that it works on; empty for the one at hand.
        """
        for ancestor in state.lineage(goal or state.goal_at_hand):
            if ancestor.id in state.goal_budgets:
                yield self.of_goal(state, ancestor.id)
        yield self._of_agent(state, "")
        yield from self._above(state)

    def of_goal(self, state: AgentState, goal: str) -> Account:
        """A goal's budget, which covers the goals below it."""

        def covers(other: str) -> bool:
            return any(ancestor.id == goal for ancestor in state.lineage(other))

        def taken() -> Spent:
            passing = Spent(us=self._passing(state) if covers(goal_of_work(state)) else 0)
            return sum((spent for other, spent in state.spent.items() if covers(other)), passing)

        def charged() -> Spent:
            mine = (entry for entry in self._entries.get(state.agent_id, ()) if covers(entry.goal))
            return sum((entry.most for entry in mine if not self._is_over(entry)), taken())

        limits = state.goal_budgets.get(goal, SpendingLimits())
        return Account(f"goal {goal}", f"goal {goal}", limits, charged, taken)

    def _of_agent(self, state: AgentState, title: str) -> Account:
        name = state.agent_id
        limits = (state.budget or SpendingLimits()).over(self._usual)
        return Account(
            f"agent {name}", title, limits, lambda: self._charged(state), lambda: self._taken(state)
        )

    def _above(self, state: AgentState) -> Iterator[Account]:
        """The budgets of those that an agent works for, nearest first, and the workspace's."""
        above = self._states.get(self._alive(state.config.parent))
        while above is not None:
            # Nobody can raise the budget of one that is no more.
            if not above.deleted:
                yield self._of_agent(above, f"{above.agent_id}, for which it works")
            above = self._states.get(self._alive(above.config.parent))
        limits = (self.workspace or SpendingLimits()).over(self._settings)
        yield Account(WORKSPACE, "the workspace", limits, self._charged_in_all, self._taken_in_all)

    # -------------------------------------------------------------- what counts

    def _own(self, state: AgentState) -> Spent:
        return taken_by(state) + Spent(us=self._passing(state))

    def _passing(self, state: AgentState) -> int:
        """Microseconds at work since the agent's newest event."""
        return microseconds_between(state.at, self._now()) if works(state) else 0

    def _charged(self, state: AgentState) -> Spent:
        """What an agent took, has under way, and has set aside for those that work for it."""
        name = state.agent_id
        mine = (entry.most for entry in self._entries.get(name, ()) if not self._is_over(entry))
        taken = self._own(state) + self._gone.get(name, Spent())
        return sum((self._reserved(child) for child in self._children(name)), sum(mine, taken))

    def _reserved(self, state: AgentState) -> Spent:
        """What an agent took, or what was set aside for it where that is more."""
        charged = self._charged(state)
        aside, own = self._aside.get(state.agent_id), state.budget
        if state.deleted or aside is None:
            return charged
        if own is None or own == aside:
            return charged.at_least(aside)
        # Whoever lets an agent take less than was set aside for it gives the rest back.
        kept = {
            kind.value: min(amount, amount if (limit := own.of(kind)) is None else limit)
            for kind in BudgetKind
            if (amount := aside.of(kind)) is not None
        }
        return charged.at_least(SpendingLimits(**kept))  # type: ignore[arg-type]

    def _taken(self, state: AgentState) -> Spent:
        below = (self._taken(child) for child in self._children(state.agent_id))
        return sum(below, self._own(state) + self._gone.get(state.agent_id, Spent()))

    def _charged_in_all(self) -> Spent:
        under_way = (entry.most for entry in self._entries.get("", ()))
        agents = (self._reserved(state) for state in self._children(""))
        gone = (spent for heir, spent in self._gone.items() if heir not in self._states)
        return sum(agents, sum(under_way, sum(gone, self.beside)))

    def _taken_in_all(self) -> Spent:
        agents = (self._own(state) for state in self._states.values())
        return sum(agents, sum(self._gone.values(), self.beside))

    def _children(self, name: str) -> list[AgentState]:
        if not self._below:
            for state in self._states.values():
                parent = self._alive(state.config.parent)
                self._below.setdefault(parent if parent in self._states else "", []).append(state)
        return self._below.get(name, [])

    # -------------------------------------------------------------- setting

    def on_top(
        self, limits: SpendingLimits, account: Account, more: tuple[BudgetKind, ...]
    ) -> SpendingLimits:
        """Limits in which the amounts of some kinds come on top of what holds, or of what counts already."""
        amounts = {kind.value: limits.of(kind) for kind in BudgetKind}
        for kind in more:
            held = account.limits.of(kind)
            base = account.charged().of(kind) if held is None else held
            total = round(base + (limits.of(kind) or 0), 6)
            amounts[kind.value] = total if kind in (BudgetKind.USD, BudgetKind.SECONDS) else round(total)
        return SpendingLimits(**amounts, lifted=limits.lifted)  # type: ignore[arg-type]

    def account(self, budget: str, state: AgentState | None = None) -> Account:
        """A budget by its name: `goal g1` and `agent pilot-1` of a state, or `workspace`.

        Raises:
            KeyError: there is no such budget.
        """
        if budget == WORKSPACE:
            return list(self._above(AgentState()))[-1]
        what, _, name = budget.partition(" ")
        if state is None:
            raise KeyError(budget)
        return self.of_goal(state, name) if what == "goal" else self._of_agent(state, "")


def taken_by(state: AgentState) -> Spent:
    """What an agent itself took up to its newest event."""
    return Spent(
        state.model_calls, state.tokens, state.cost_usd, state.unpriced_calls, state.actions, state.worked_us
    )


def _of(account: Account) -> str:
    return "the workspace" if account.budget == WORKSPACE else account.budget


def _nothing_left(account: Account, kind: BudgetKind, why: str) -> str:
    limit = account.limits.of(kind)
    if limit is None or why == UNPRICED:
        return f"{_of(account)}: {why}"
    return f"nothing is left of the budget of {_of(account)} ({amount_text(kind, limit)}): raise it first"
