"""What holds an agent: budgets, and breakpoints of every kind."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from pydantic import ValidationError

from app.cockpit.context import CockpitContext, beside_screen
from app.commands.breakpoints import break_command
from app.commands.budgets import budget_command
from app.commands.command import Context, GrammarError
from app.projection import steering_views as break_views
from app.projection import steering_views as budget_views
from app.projection.steering_text import dry_run_line, split_dry_run
from engine.agent.steering.budget_status import BudgetStatus, budget_statuses
from engine.agent.steering.ledger import Ledger
from engine.api.queries import check_breakpoint
from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.breakpoints import BreakError, BreakKind
from widgets.dialogs.limits import BreakpointsDialog, BudgetsDialog, BudgetsModel
from widgets.dialogs.review import WhyDialog, WhyModel, WhyRow

LOOK_EVERY_S = 0.5

TYPED_S = 0.25
"""How long nothing is typed before a dry run begins."""

CHANGES_BREAKPOINTS = (
    *(ev.MindBreakpointChanged, ev.BreakpointAdded, ev.BreakpointChanged),
    *(ev.BreakpointSet, ev.BreakpointHit),
)
"""Events after which the list of breakpoints shows something else."""


class Limits:
    """The budgets that the shown agent draws on, its breakpoints, and dry runs."""

    def __init__(self, context: CockpitContext, ask_why: Callable[[str], None]) -> None:
        self._context = context
        self._ask_why = ask_why
        self._budget_goal = ""
        """The goal whose budgets are shown; empty for the one at hand."""
        context.watchers.append(self._watch)
        context.app.set_interval(LOOK_EVERY_S, self._look_at_budgets, name="budgets")

    def action_budgets(self) -> None:
        """Show the budgets of the goal at hand, its agent, those it works for, and the workspace."""
        self.open_budgets()

    def open_budgets(self, goal: str = "") -> None:
        """Show the budgets of a goal; without one, of the goal at hand."""
        if self._context.engine is None or self._context.state is None:
            self._context.say("there is no agent yet", "error")
        elif self._context.no_dialog:
            self._budget_goal = goal
            self._context.push(BudgetsDialog(self._budgets_now()))

    def _look_at_budgets(self) -> None:
        """Bring open budgets up to date."""
        if (dialog := self._context.showing(BudgetsDialog)) is not None:
            dialog.show(self._budgets_now())

    def _budgets_now(self) -> BudgetsModel:
        state = self._context.state
        assert self._context.engine is not None
        assert state is not None
        budgets: tuple[BudgetStatus, ...]
        if self._context.in_past:
            # What others had taken then is not in this agent's state.
            of_then = budget_statuses(Ledger(now=lambda: state.at), state, self._budget_goal)
            budgets = tuple(budget for budget in of_then if budget.budget.startswith("goal "))
        else:
            budgets = self._context.engine.budgets(self._context.agent, self._budget_goal)
        return budget_views.budgets(budgets, state)

    def _read_budget(self, line: str) -> cmd.Command | str:
        """The command that a line makes, or what is wrong with it."""
        try:
            context = Context(agent=self._context.agent, state=self._context.state)
            return budget_command(context, {"amounts": line})
        except (GrammarError, ValueError) as error:
            return str(error)

    def on_budgets_dialog_set(self, budget: str, kind: str, amount: str) -> None:
        """Set a budget, as if it were typed in the bar."""
        what, _, name = budget.partition(" ")
        scope = budget if what == "goal" else what
        command = self._read_budget(f"{scope} {kind} {amount}")
        if isinstance(command, str):
            self._say(command)
            return
        if what == "agent":
            command = command.model_copy(update={"agent": name})
        self._context.send(command, self._budget_set)

    def _budget_set(self, receipt: cmd.Receipt) -> None:
        self._say(receipt.message)
        self._look_at_budgets()

    def _say(self, message: str) -> None:
        if (dialog := self._context.showing(BudgetsDialog)) is not None:
            dialog.say(message)

    def action_breakpoints(self) -> None:
        """All breakpoints of the agent."""
        state = self._context.state
        if state is None:
            self._context.say("there is no agent yet", "error")
        elif not self._context.refused_in_past() and self._context.no_dialog:
            self._context.push(BreakpointsDialog(break_views.breakpoints(state), self._check_break))

    def _watch(self, agent: str, payload: ev.Payload) -> None:
        """Bring an open list up to date."""
        dialog, state = self._context.showing(BreakpointsDialog), self._context.state
        if dialog is not None and state is not None and isinstance(payload, CHANGES_BREAKPOINTS):
            dialog.show(break_views.breakpoints(state))

    def _break_of(self, kind: str, pattern: str) -> cmd.Command:
        """The command that sets a breakpoint.

        Raises:
            GrammarError: it cannot be set; the message says why.
        """
        if kind == BreakKind.STEP and not pattern:
            raise GrammarError("say which step: s12, or words of its description")
        try:
            return break_command(f"{kind} {pattern}", Context(self._context.agent, self._context.state))
        except ValidationError as error:
            raise GrammarError(error.errors()[0]["msg"]) from None

    def _check_break(self, kind: str, pattern: str) -> str:
        """What is wrong with a breakpoint; empty when it can be set."""
        try:
            command = self._break_of(kind, pattern)
        except GrammarError as error:
            return str(error)
        return check_breakpoint(kind, pattern) if isinstance(command, cmd.BreakOn) else ""

    def on_breakpoints_dialog_add(self, kind: str, pattern: str) -> None:
        """Set a breakpoint."""
        self._context.send(self._break_of(kind, pattern))

    def on_breakpoints_dialog_switch(self, breakpoint_id: str, enabled: bool) -> None:
        """Switch a breakpoint on or off."""
        self._context.send(
            cmd.ChangeBreak(agent=self._context.agent, breakpoint=breakpoint_id, enabled=enabled)
        )

    def on_breakpoints_dialog_remove(self, breakpoint_id: str) -> None:
        """Clear a breakpoint."""
        self._context.send(cmd.ChangeBreak(agent=self._context.agent, breakpoint=breakpoint_id, cleared=True))

    def on_breakpoints_dialog_why(self, event: str) -> None:
        """Ask why of the event at which a breakpoint held last."""
        self._context.app.call_later(self._ask_why, event)

    def on_breakpoints_dialog_dry_run(self, kind: str, pattern: str) -> None:
        """Say how often a breakpoint would have held, once typing has stopped."""
        work = self._dry_run(self._context.agent, kind, pattern)
        self._context.run(work, "dry run", group="dry run", last=True)

    async def _dry_run(self, agent: str, kind: str, pattern: str) -> None:
        await asyncio.sleep(TYPED_S)
        command = self._break_of(kind, pattern)
        match command:
            case cmd.SetBreak():
                line = command.line
            case cmd.SetBreakpoint():
                line = f"step {command.step}"
            case _:
                return  # what a reasoner's program does is not compared with its past
        if self._context.engine is not None:
            result = await self._context.engine.dry_run(agent, [line])
            if (dialog := self._context.showing(BreakpointsDialog)) is not None:
                dialog.tell(kind, pattern, dry_run_line(result))

    @beside_screen("dry run", BreakError, group="dry run")
    async def dry_run(self, line: str) -> None:
        """Show where a breakpoint typed in the bar would have held; enter asks why there."""
        agent = self._context.agent
        if (engine := self._context.engine_of(agent)) is None:
            return
        pattern, last = split_dry_run(line)
        answer = await engine.dry_run(agent, [pattern], last)
        line = dry_run_line(answer)
        (result,) = answer.results
        self._context.say(line, "note")
        rows = tuple(WhyRow(stop.event, "", "◉", "break", stop.what, stop.at[11:19]) for stop in result.stops)
        if rows and self._context.no_dialog:
            self._context.push(WhyDialog(WhyModel("", "dry run", line, rows)))
