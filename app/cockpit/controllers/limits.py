"""What holds an agent: budgets, and breakpoints of every kind."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from app.cockpit.context import CockpitContext
from app.commands.budgets import budget_command
from app.commands.command import Context, GrammarError
from app.projection import pictures
from app.projection import steering_views as views
from app.projection.steering_text import break_rows
from engine.agent.steering.budget_status import BudgetStatus, budget_statuses
from engine.agent.steering.ledger import Ledger
from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.state import AgentState
from widgets.base.facts import Fact
from widgets.dialogs.lists import BreakpointsDialog, BudgetsDialog
from widgets.dialogs.picture import Picture

LOOK_EVERY_S = 0.5
SAMPLES = 24
"""Moments of the past from which a picture is drawn."""


class Limits:
    """The budgets that the shown agent draws on, its breakpoints, and dry runs."""

    def __init__(self, context: CockpitContext, ask_why: Callable[[str], None]) -> None:
        self._context = context
        self._ask_why = ask_why
        self._budget_goal = ""
        """The goal whose budgets are shown; empty for the one at hand."""
        context.watchers.append(self._watch)
        context.app.set_interval(LOOK_EVERY_S, self._look_at_budgets, name="budgets")

    def open_budgets(self, goal: str = "") -> None:
        """Show the budgets of a goal, its agent, those it works for, and the workspace."""
        state = self._context.shown_state()
        if self._context.engine is not None and state is not None and self._context.no_dialog:
            self._budget_goal = goal
            self._context.push(BudgetsDialog(views.budgets(self._budgets(), state)))

    def _look_at_budgets(self) -> None:
        """Bring open budgets up to date."""
        dialog, state = self._context.showing(BudgetsDialog), self._context.state
        if dialog is not None and state is not None:
            dialog.show(views.budgets(self._budgets(), state))

    def _budgets(self) -> tuple[BudgetStatus, ...]:
        state, engine = self._context.state, self._context.engine
        if state is None or engine is None:
            return ()
        if not self._context.in_past:
            return engine.budgets(self._context.agent, self._budget_goal)
        # What others had taken then is not in this agent's state.
        of_then = budget_statuses(Ledger(now=lambda: state.at), state, self._budget_goal)
        return tuple(budget for budget in of_then if budget.budget.startswith("goal "))

    def on_budgets_dialog_set(self, row: str, amount: str) -> None:
        """Set a budget, as if it were typed in the bar."""
        budget, _, kind = row.rpartition("/")
        what, _, name = budget.partition(" ")
        context = Context(agent=self._context.agent, state=self._context.state)
        try:
            line = f"{budget if what == 'goal' else what} {kind} {amount}"
            command = budget_command(context, {"amounts": line})
        except (GrammarError, ValueError) as error:
            self._say(str(error))
            return
        if what == "agent":
            command = command.model_copy(update={"agent": name})
        self._context.send(command, self._budget_set)

    def on_budgets_dialog_lift(self, row: str) -> None:
        """Take a limit away."""
        if row:
            self.on_budgets_dialog_set(row, "none")

    def on_budgets_dialog_more(self, row: str) -> None:
        """Give a quarter more."""
        lines = {f"{status.budget}/{line.kind}": line for status in self._budgets() for line in status.lines}
        if row in lines and (more := views.quarter(lines[row])):
            self.on_budgets_dialog_set(row, more)
        elif row:
            self._say("this has no limit: enter sets one")

    def on_budgets_dialog_picture(self, row: str) -> None:
        """Draw how a goal or the agent takes an amount, and what it will have taken."""
        budget = row.rpartition("/")[0]
        if budget.startswith("goal ") or budget == f"agent {self._context.agent}":
            self._context.show_picture(partial(self._burn, row, []))
        elif row:
            self._say("a goal's budget and this agent's own have a picture")

    async def _burn(self, row: str, history: list[AgentState]) -> Picture:
        budget, _, kind = row.rpartition("/")
        engine, now = self._context.engine, self._context.state
        status = next((each for each in self._budgets() if each.budget == budget), None)
        if engine is None or now is None or status is None:
            return Picture(row, words=(Fact("", f"{budget} is over"),))
        if not history:
            past = engine.past(now.agent_id)
            count = min(SAMPLES, now.version)
            history += [await past.state(now.version * at // count) for at in range(1, count + 1)]
        line = next(line for line in status.lines if line.kind == kind)
        return pictures.burn([*history, now], budget.partition("goal ")[2], line)

    def _budget_set(self, receipt: cmd.Receipt) -> None:
        self._say(receipt.message)
        self._look_at_budgets()

    def _say(self, message: str) -> None:
        if (dialog := self._context.showing(BudgetsDialog)) is not None:
            dialog.say(message)

    def action_breakpoints(self) -> None:
        """All breakpoints of the agent."""
        state = self._context.shown_state()
        if state is not None and not self._context.refused_in_past() and self._context.no_dialog:
            self._context.push(BreakpointsDialog(views.breakpoints(state)))

    def _watch(self, agent: str, payload: ev.Payload) -> None:
        """Bring an open list up to date."""
        dialog, state = self._context.showing(BreakpointsDialog), self._context.state
        if dialog is not None and state is not None:
            dialog.show(views.breakpoints(state))

    def on_breakpoints_dialog_add(self, _row: str) -> None:
        """Type a breakpoint in the bar, which says how each kind is written."""
        self._context.app.screen.dismiss(None)
        self._context.app.call_later(self._context.open_bar, "break ")

    def on_breakpoints_dialog_switch(self, row: str) -> None:
        """Switch a breakpoint on or off."""
        for point in break_rows(self._context.state) if self._context.state is not None else ():
            if point.id == row:
                command = cmd.ChangeBreak(
                    agent=self._context.agent, breakpoint=row, enabled=not point.enabled
                )
                self._context.send(command)

    def on_breakpoints_dialog_remove(self, row: str) -> None:
        """Clear a breakpoint."""
        if row:
            self._context.send(cmd.ChangeBreak(agent=self._context.agent, breakpoint=row, cleared=True))

    def on_breakpoints_dialog_why(self, row: str) -> None:
        """Ask why of the event at which a breakpoint held last."""
        dialog, state = self._context.showing(BreakpointsDialog), self._context.state
        point = next((each for each in break_rows(state) if each.id == row), None) if state else None
        if dialog is None or point is None:
            return
        if point.last:
            dialog.dismiss(None)
            self._context.app.call_later(self._ask_why, point.last)
        else:
            dialog.say(
                "where it held is in the mind stream" if point.stopped else "it has not held the agent yet"
            )
