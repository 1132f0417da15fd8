"""Budgets in view: spent, left, expected; and giving more."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.timer import Timer

from app.cockpit.base import CockpitBase
from app.verb import Context, GrammarError
from engine.domain import commands as cmd
from engine.steering.ledger import Ledger
from engine.steering.standing import Standing, standings

if TYPE_CHECKING:
    from widgets.dialogs.budgets import BudgetsDialog, BudgetsModel

LOOK_EVERY_S = 0.5


class BudgetKeys(CockpitBase):
    """The budgets that the shown agent draws on."""

    _budgets: BudgetsDialog | None = None
    """The open budgets."""
    _budget_goal = ""
    """The goal that was asked about; empty for the one at hand."""
    _budget_timer: Timer | None = None

    def action_budgets(self) -> None:
        """Show the budgets of the goal at hand, its agent, those it works for, and the workspace."""
        self._open_budgets("")

    def _open_budgets(self, goal: str) -> None:
        if self._engine is None or self._projector.state is None:
            self._say("there is no agent yet", "error")
        elif len(self.screen_stack) == 1:
            from widgets.dialogs.budgets import BudgetsDialog

            self._budget_goal = goal
            self._budgets = BudgetsDialog(self._budgets_now())
            self._budget_timer = self.set_interval(LOOK_EVERY_S, self._look_at_budgets, name="budgets")
            self.push_screen(self._budgets, self._budgets_closed)

    def _budgets_closed(self, _none: None) -> None:
        self._budgets = None
        if self._budget_timer is not None:
            self._budget_timer.stop()

    def _look_at_budgets(self) -> None:
        """Bring the open budgets up to date."""
        if self._budgets is not None:
            self._budgets.show(self._budgets_now())

    def _budgets_now(self) -> BudgetsModel:
        from app.projection import budget_views

        state = self._projector.state
        assert self._engine is not None
        assert state is not None
        found: tuple[Standing, ...]
        if self._in_past:
            # What others had taken then is not in this agent's state.
            of_then = standings(Ledger(now=lambda: state.at), state, self._budget_goal)
            found = tuple(one for one in of_then if one.budget.startswith("goal "))
        else:
            found = self._engine.budgets(self._agent, self._budget_goal)
        return budget_views.budgets(found, state)

    def _read_budget(self, line: str) -> cmd.Command | str:
        """The command that a line makes, or what is wrong with it."""
        from app.budget_verbs import read_budget

        try:
            intent = read_budget(line, Context(agent=self._agent, state=self._projector.state))
        except (GrammarError, ValueError) as error:
            return str(error)
        return intent if isinstance(intent, cmd.Command) else "an amount is missing"

    # The handler's name says which dialog's message it takes, so that it need not be imported before.

    def on_budgets_dialog_set_requested(self, event: BudgetsDialog.SetRequested) -> None:
        """Set a budget, as if it were typed in the bar."""
        what, _, name = event.budget.partition(" ")
        scope = event.budget if what == "goal" else what
        command = self._read_budget(f"{scope} {event.kind} {event.amount}")
        if isinstance(command, str):
            if self._budgets is not None:
                self._budgets.say(command)
            return
        if what == "agent":
            command = command.model_copy(update={"agent": name})
        self.run_worker(self._set_budget(command), name="budget", exit_on_error=False)

    async def _set_budget(self, command: cmd.Command) -> None:
        receipt = await self._submit(command)
        if self._budgets is not None:
            self._budgets.say(receipt.message)
            self._look_at_budgets()
