"""Agents and what they work on: which one is shown, missions, goals, failures."""

from __future__ import annotations

from functools import partial

from app.cockpit.context import CockpitContext
from app.cockpit.controllers.layout import Layout
from engine.core import commands as cmd
from engine.core.recovery import Failure
from engine.core.state import AgentState
from engine.core.text import clean_line
from widgets.base.line_pane import CopyRequested
from widgets.panes.goals import GoalActionName, IntentionVerb
from widgets.panes.plan import PlanPane


class Agents:
    """Which agent the panes show, and the keys of its goals, beliefs and failures."""

    def __init__(self, context: CockpitContext, layout: Layout) -> None:
        self._context = context
        self._layout = layout
        context.frame_hooks.append(self._select_awaited)
        self._awaited = ""
        """An agent that is to be shown once the projection has it."""

    def select(self, agent: str) -> None:
        """Show an agent in all panes, as it is now."""
        self._layout.to_now()
        if agent == self._context.agent:
            self._context.say(f"{agent} is shown already")
            return
        if not self._context.projector.select(agent):
            known = ", ".join(state.agent_id for state in self._context.projector.states)
            self._context.say(f"there is no agent '{agent}'; agents: {known or 'none yet'}", "error")

    def select_soon(self, agent: str) -> None:
        """Look at an agent as soon as the projection has it."""
        self._awaited = agent
        self._select_awaited()

    def _select_awaited(self) -> None:
        if self._awaited and self._context.live.select(self._awaited):
            self._layout.to_now()
            self._context.live.select(self._awaited)
            self._awaited = ""

    def on_goal_stack_agent(self, agent_id: str) -> None:
        """Show the agent."""
        self.select(agent_id)

    def on_error_panel_error_chosen(self, error_id: str) -> None:
        """Show the step that failed."""
        state = self._context.state
        failure = next((f for f in state.failures if f.event == error_id), None) if state else None
        if failure is not None and failure.step:
            self._context.pane(PlanPane).select(failure.step)
            self._layout.show_pane("plan")

    def on_error_panel_retry(self, error_id: str) -> None:
        """Retry what failed."""
        failure = self._failure(error_id)
        if failure is not None:
            goal = "" if failure.step else failure.goal
            self._context.send(cmd.RetryStep(agent=self._context.agent, step=failure.step, goal=goal))

    def on_error_panel_give_up(self, error_id: str) -> None:
        """Give up the goal that failed, once the operator agrees."""
        failure = self._failure(error_id)
        if self._context.refused_in_past() or failure is None or not failure.goal:
            return
        state = self._context.state
        goal = state.goals.get(failure.goal) if state is not None else None
        what = clean_line(goal.text) if goal is not None else failure.goal
        self._context.confirm_command(
            f"Give up goal {failure.goal}?",
            f"“{what}” fails, and so does what it serves; nothing is undone.",
            cmd.AbortGoal(agent=self._context.agent, goal=failure.goal),
        )

    def _failure(self, error_id: str) -> Failure | None:
        """An open failure of the agent that is looked at."""
        state = self._context.state
        known = state.failures if state is not None else []
        failure = next((each for each in known if each.event == error_id), None)
        if failure is None or not failure.resolved:
            return failure
        self._context.say(f"{failure.subject}: that is resolved already", "note")
        return None

    def on_copy_requested(self, event: CopyRequested) -> None:
        """Copy to the clipboard."""
        self._context.copy(event.text, event.what)

    def on_goal_stack_goal_action(self, goal_id: str, action: GoalActionName) -> None:
        """Do what a key of the goal stack asks for."""
        state, goal = self._context.state, goal_id
        known = state.goals.get(goal) if state is not None else None
        if known is None or self._context.refused_in_past():
            return
        if known.status.terminal:
            self._context.say(f"goal {goal} is {known.status}; what is over cannot be changed", "error")
            return
        match action:
            case "reword":
                was = tuple(known.text.splitlines())
                self._context.open_bar(f"reword {goal} {clean_line(known.text)}", was)
            case "subgoal" | "under":
                self._context.open_bar(f"{action} {goal} ")
            case "raise" | "lower":
                by = 1 if action == "raise" else -1
                self._context.ask(partial(self._change_priority, goal, by))
            case "drop":
                self._ask_to_drop(goal, known.text)

    async def _change_priority(self, goal: str, by: int, state: AgentState) -> None:
        known = state.goals.get(goal)
        if known is not None:
            change = cmd.ChangeGoal(agent=state.agent_id, goal=goal, priority=known.priority + by)
            if (await self._context.submit(change)).ok:
                self._context.say(f"goal {goal} has priority {known.priority + by}", "ok")

    def _ask_to_drop(self, goal: str, text: str) -> None:
        self._context.confirm_command(
            f"Drop goal {goal}?",
            f"“{clean_line(text)}” is given up with all that serves it; nothing is undone.",
            cmd.DropGoal(agent=self._context.agent, goal=goal),
        )

    def on_beliefs_pane_belief_chosen(self, literal: str) -> None:
        """Say where a belief comes from."""
        state = self._context.reasoner
        held = state.held_beliefs.get(literal.partition("[")[0]) if state else None
        held = held or (state.held_beliefs.get(literal) if state else None)
        if held is not None:
            sources = ", ".join(held.sources)
            self._context.say(f"{held.text}: from {sources}, since tick {held.tick}, by {held.event}", "note")

    def on_goal_stack_intention_action(self, intention_id: str, action: IntentionVerb) -> None:
        """Steer an intention; dropping it is confirmed first."""
        steer = cmd.SteerIntention(agent=self._context.agent, intention=int(intention_id), how=action)
        if action != "drop":
            self._context.send(steer)
            return
        state = self._context.reasoner
        view = state.intentions.get(int(intention_id)) if state else None
        goal = view.frames[0].goal if view is not None and view.frames else "no plan yet"
        self._context.confirm_command(
            f"Drop intention {intention_id}?",
            f"{goal} is given up without a failure event; nothing that it did is undone.",
            steer,
        )

    def on_goal_stack_intention_plan(self, intention_id: str) -> None:
        """Show the plan that an intention carries out."""
        self._context.intention = int(intention_id)
        self._context.projector.out_of_date()
        self._layout.show_pane("plan")
