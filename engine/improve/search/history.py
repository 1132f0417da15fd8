"""Reads from the journal how agents fared: goals, and what people did by hand.

One pass over the events of the kinds that are needed. An event without the expected shape is passed over.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from engine.core.journal import Event, of_agent
from engine.core.store.port import JournalStore

BY_HAND = {
    "edit_step": "edited a step",
    "insert_step": "added a step",
    "delete_step": "took a step out",
    "move_step": "moved a step",
    "skip_step": "skipped a step",
    "retry_step": "ran a step again",
    "give_result": "gave a result by hand",
    "replace_plan": "replaced the plan",
    "call_tool": "called a tool",
    "take_shell": "took the shell",
}
"""Commands by which an operator does an agent's work, in words."""
CHANGES_PLAN = frozenset(
    {"edit_step", "insert_step", "delete_step", "move_step", "skip_step", "replace_plan"}
)
"""Those that leave a plan which the thinker would not have made."""
_GOALS = ("goal.adopted", "goal.changed", "goal.ended", "plan.generated", "plan.adopted", "plan.revised")
_PEOPLE = ("command.received", "command.refused")
_KINDS = ("agent.created", "agent.configured", *_GOALS, "step.ended", *_PEOPLE)
_SLICE = 2_000
"""Events that are read at a time."""

Json = dict[str, Any]


@dataclass(slots=True)
class ManualAction:
    """Something that a person did by hand."""

    ref: str
    agent: str
    do: str
    goal: str = ""


@dataclass(slots=True)
class PastGoal:
    """A goal and what was done for it."""

    ref: str
    text: str
    thinker: str = ""
    """Who planned it last."""
    uncovered: list[tuple[str, str]] = field(default_factory=list)
    """Clauses that no recipe covered when it was planned first, with the event that says so."""
    steps: list[Json] = field(default_factory=list)
    """The plan as it stood last."""
    done: dict[str, str] = field(default_factory=dict)
    """Status by step."""
    hands: list[ManualAction] = field(default_factory=list)
    status: str = ""
    """Empty while it is open."""

    @property
    def followed(self) -> list[Json]:
        """The steps that were completed, in order."""
        return [step for step in self.steps if self.done.get(str(step.get("id"))) == "completed"]


@dataclass(slots=True)
class History:
    """What the journal says."""

    agents: dict[str, Json] = field(default_factory=dict)
    """What each agent was created with: `type`, `description` and `meta`."""
    goals: dict[tuple[str, str], PastGoal] = field(default_factory=dict)
    """By agent and id."""
    hands: list[ManualAction] = field(default_factory=list)


async def read_history(store: JournalStore, cancelled: Callable[[], bool] = lambda: False) -> History:
    """Everything that an audit and learning need to know.

    Raises:
        JournalReadError: the journal cannot be read.
    """
    reading, after = _Reading(), 0
    while not cancelled() and (events := await store.of_kinds(_KINDS, after, _SLICE)):
        await asyncio.to_thread(reading.take_all, events)
        after = events[-1].seq
    return reading.finished()


class _Reading:
    """A history as it is put together."""

    def __init__(self) -> None:
        self.history = History()
        self._goals: dict[tuple[str, str], str] = {}
        """The goal of each step, by agent and step."""
        self._refused: set[str] = set()

    def take_all(self, events: Sequence[Event]) -> None:
        """Take in events in their order."""
        for event in events:
            if not of_agent(event.stream):
                continue
            try:
                self._take(event, event.stream, json.loads(event.body))
            except (KeyError, TypeError, ValueError, AttributeError, RecursionError):
                continue

    def finished(self) -> History:
        """The history, without commands that were refused."""
        history = self.history
        history.hands = [hand for hand in history.hands if hand.ref not in self._refused]
        for goal in history.goals.values():
            goal.hands = [hand for hand in goal.hands if hand.ref not in self._refused]
        return history

    def _take(self, event: Event, agent: str, data: Json) -> None:
        if event.kind in _GOALS:
            self._goal(event, agent, data)
        elif event.kind == "command.received":
            self._command(event, agent, data["command"])
        elif event.kind == "command.refused":
            self._refused.update(event.causes)
        elif event.kind == "step.ended":
            self.history.goals[agent, data["goal"]].done[data["step"]] = data["status"]
        elif event.kind == "agent.configured":
            self.history.agents[agent]["meta"].update(data["settings"])
        else:
            created = {"type": data["agent_type"], "description": data["description"]}
            self.history.agents[agent] = {**created, "meta": data["config"]["meta"]}

    def _goal(self, event: Event, agent: str, data: Json) -> None:
        ident = data["goal"]
        if event.kind == "goal.adopted":
            self.history.goals[agent, ident] = PastGoal(event.ref, data["text"])
            return
        goal = self.history.goals[agent, ident]
        match event.kind:
            case "goal.changed":
                goal.text = data["text"]
            case "goal.ended":
                goal.status = data["status"]
            case "plan.generated":
                goal.thinker = data["thinker"]
                goal.uncovered = goal.uncovered or [(gap["clause"], event.ref) for gap in data["uncovered"]]
            case _:
                goal.steps = [*goal.steps[: data.get("kept", 0)], *data["steps"]]
                self._goals |= {(agent, step["id"]): ident for step in goal.steps}

    def _command(self, event: Event, agent: str, command: Json) -> None:
        if command["do"] not in BY_HAND or not event.actor.startswith("operator"):
            return
        step = command.get("step") or command.get("before") or ""
        goal = command.get("goal") or self._goals.get((agent, step), "")
        hand = ManualAction(event.ref, agent, command["do"], goal)
        self.history.hands.append(hand)
        if (agent, goal) in self.history.goals:
            self.history.goals[agent, goal].hands.append(hand)
