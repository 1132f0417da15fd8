"""Changing goals where they stand: words, urgency, what serves what, and giving up."""

from __future__ import annotations

from functools import partial

from textual import on

from app.cockpit.base import CockpitBase
from engine.domain import commands as cmd
from engine.domain.state import AgentState
from engine.domain.text import clean_line
from widgets import GoalStack
from widgets.dialogs import ConfirmDialog, ConfirmModel


class GoalKeys(CockpitBase):
    """The keys of the goal stack; what needs words is written in the command bar."""

    @on(GoalStack.GoalAction)
    def _goal_action(self, event: GoalStack.GoalAction) -> None:
        state, goal = self._projector.state, event.goal_id
        known = state.goals.get(goal) if state is not None else None
        if known is None or self._refused_in_past():
            return
        if known.status.terminal:
            self._say(f"goal {goal} is {known.status}; what is over cannot be changed", "error")
            return
        match event.action:
            case "reword":
                self._open_bar(f"reword {goal} {clean_line(known.text)}")
            case "subgoal" | "under":
                self._open_bar(f"{event.action} {goal} ")
            case "raise" | "lower":
                by = 1 if event.action == "raise" else -1
                self._ask(partial(self._hurry, goal, by), self._agent)
            case "drop":
                self._ask_to_drop(goal, known.text)

    async def _hurry(self, goal: str, by: int, state: AgentState) -> None:
        known = state.goals.get(goal)
        if known is not None:
            change = cmd.ChangeGoal(agent=state.agent_id, goal=goal, priority=known.priority + by)
            if (await self._submit(change)).ok:
                self._say(f"goal {goal} has priority {known.priority + by}", "ok")

    def _ask_to_drop(self, goal: str, text: str) -> None:
        model = ConfirmModel(
            f"Drop goal {goal}?",
            f"“{clean_line(text)}” is given up with all that serves it; nothing is undone.",
        )
        self.push_screen(ConfirmDialog(model), partial(self._dropped_goal, self._agent, goal))

    def _dropped_goal(self, agent: str, goal: str, sure: bool | None) -> None:
        if sure:
            self._send(cmd.DropGoal(agent=agent, goal=goal))
