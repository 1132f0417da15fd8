"""What the journal says of how agents fared: their actions, failures and goals, and what people did by hand.

One pass over the kinds that are needed, by a connection that cannot write, in a thread. Bodies are read as
plain JSON: an event that does not have the shape is passed over, for nothing is decided here.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engine.journal.errors import JournalReadError
from engine.journal.event import of_agent
from engine.journal.schema import read_only_uri
from engine.journal.store import DATA_DIRECTORY, DATABASE

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
_KINDS = (
    *("agent.created", "goal.adopted", "goal.changed", "goal.ended", "plan.generated", "plan.rejected"),
    *("plan.adopted", "plan.revised", "step.ended", "action.requested", "action.parameters"),
    *("action.finished", "action.cancelled", "failure.recorded", "recovery.chosen", "recovery.ended"),
    *("command.received", "command.refused", "approval.asked", "approval.answered"),
    *("model.budget_reached", "generation.settled"),
)
_SLICE = 2_000
"""Events between two looks at whether anybody still waits."""

Json = dict[str, Any]
Call = tuple[str, str, Json]
"""Tool, command, arguments."""


@dataclass(slots=True)
class Act:
    """One action, once it is over."""

    ref: str
    """The event by which it ended."""
    agent: str
    action: str
    goal: str
    step: str
    tool: str
    command: str
    args: Json
    recipe: str = ""
    """`file:recipe` that gave the step; empty where none did."""
    by_operator: bool = False
    ok: bool = False
    code: str = ""
    duration_ms: int = 0


@dataclass(slots=True)
class Hand:
    """Something that a person did by hand."""

    ref: str
    agent: str
    do: str
    goal: str = ""
    step: str = ""


@dataclass(slots=True)
class PastGoal:
    """A goal and what was done for it."""

    ref: str
    agent: str
    id: str
    text: str
    parent: str = ""
    thinker: str = ""
    """Who planned it last."""
    uncovered: list[tuple[str, str]] = field(default_factory=list)
    """Clauses that no recipe covered when it was planned first, with the event that says so."""
    steps: list[Json] = field(default_factory=list)
    """The plan as it stood last."""
    done: dict[str, str] = field(default_factory=dict)
    """Status by step."""
    hands: list[Hand] = field(default_factory=list)
    status: str = ""
    """Empty while it is open."""

    @property
    def achieved(self) -> bool:
        """Whether it was reached."""
        return self.status == "achieved"

    @property
    def changed_by_hand(self) -> bool:
        """Whether its plan is one that the thinker did not make."""
        return any(one.do in CHANGES_PLAN for one in self.hands)

    @property
    def followed(self) -> list[Json]:
        """The steps that were completed, in order."""
        return [step for step in self.steps if self.done.get(str(step.get("id"))) == "completed"]


@dataclass(slots=True)
class Failed:
    """A failure, and what recovery made of it."""

    ref: str
    agent: str
    kind: str
    subject: str
    goal: str
    step: str
    recipe: str = ""
    command: str = ""


@dataclass(slots=True)
class Recovery:
    """A strategy that was chosen, and whether it helped."""

    ref: str
    agent: str
    kind: str
    strategy: str
    goal: str
    step: str
    helped: bool | None = None
    """None where it was never seen."""


@dataclass(slots=True)
class History:
    """What the journal says."""

    events: int = 0
    """Events of agents that were read."""
    agents: dict[str, Json] = field(default_factory=dict)
    """What each agent was created with: `type`, `description` and `meta`."""
    acts: list[Act] = field(default_factory=list)
    goals: dict[tuple[str, str], PastGoal] = field(default_factory=dict)
    hands: list[Hand] = field(default_factory=list)
    failures: list[Failed] = field(default_factory=list)
    recoveries: list[Recovery] = field(default_factory=list)
    granted: list[tuple[str, str, str]] = field(default_factory=list)
    """Calls that a person allowed once: event, agent, what was asked about."""
    budgets: list[tuple[str, str, str]] = field(default_factory=list)
    """Event, agent, and the reason that was given."""
    generated: list[tuple[str, str, tuple[str, ...]]] = field(default_factory=list)
    """Plans of a reasoner that a model made: event, agent, their texts."""


async def read_created(workspace: Path) -> dict[str, Json]:
    """What each agent was created with: `type`, `description` and `meta`; off the event loop.

    Raises:
        JournalReadError: the journal cannot be read.
    """
    path = workspace / DATA_DIRECTORY / DATABASE
    found = await asyncio.to_thread(_read, path, lambda: False, ("agent.created",))
    return found.agents


async def read_history(workspace: Path, cancelled: Callable[[], bool] = lambda: False) -> History:
    """Everything that an audit and learning need to know, off the event loop.

    Raises:
        JournalReadError: the journal cannot be read.
    """
    return await asyncio.to_thread(_read, workspace / DATA_DIRECTORY / DATABASE, cancelled)


def _read(path: Path, cancelled: Callable[[], bool], kinds: tuple[str, ...] = _KINDS) -> History:
    reading = _Reading()
    if not path.exists():
        return reading.history
    # A plus keeps SQLite from looking up every one of many kinds by the index.
    column = "+kind" if len(kinds) > 1 else "kind"
    marks = ", ".join("?" * len(kinds))
    sql = (
        "select stream, version, actor, causes, kind, body from events "
        f"where {column} in ({marks}) order by seq"
    )
    try:
        connection = sqlite3.connect(read_only_uri(path), uri=True, isolation_level=None, timeout=5)
        with closing(connection), closing(connection.execute(sql, kinds)) as rows:
            for number, row in enumerate(rows):
                if number % _SLICE == 0 and cancelled():
                    break
                reading.take(*row)
    except sqlite3.Error as error:
        raise JournalReadError(f"{path} cannot be read just now ({error}).") from error
    return reading.finished()


class _Reading:
    """A history as it is put together."""

    def __init__(self) -> None:
        self.history = History()
        self._pending: dict[tuple[str, str], Act] = {}
        self._steps: dict[tuple[str, str], tuple[str, Json]] = {}
        self._asked: dict[tuple[str, str], str] = {}
        self._refused: set[str] = set()
        self._open: dict[str, list[Recovery]] = {}

    def take(self, stream: str, version: int, actor: str, causes: str, kind: str, body: str) -> None:
        """Take in one event."""
        if not of_agent(stream):
            return
        self.history.events += 1
        try:
            said = json.loads(body)
            getattr(self, f"_{kind.replace('.', '_')}")(stream, f"{stream}:{version}", said, actor, causes)
        except (KeyError, TypeError, ValueError, AttributeError, RecursionError):
            return

    def finished(self) -> History:
        """The history, without commands that were refused."""
        found = self.history
        found.hands = [one for one in found.hands if one.ref not in self._refused]
        for goal in found.goals.values():
            goal.hands = [one for one in goal.hands if one.ref not in self._refused]
        return found

    def _agent_created(self, agent: str, _ref: str, said: Json, _actor: str, _causes: str) -> None:
        self.history.agents[agent] = {
            "type": said["agent_type"],
            "description": said["description"],
            "meta": said["config"]["meta"],
        }

    # ------------------------------------------------------------------ goals and plans

    def _goal_adopted(self, agent: str, ref: str, said: Json, _actor: str, _causes: str) -> None:
        goal = PastGoal(ref, agent, said["goal"], said["text"], said.get("parent") or "")
        self.history.goals[agent, goal.id] = goal

    def _goal_changed(self, agent: str, _ref: str, said: Json, _actor: str, _causes: str) -> None:
        self.history.goals[agent, said["goal"]].text = said["text"]

    def _goal_ended(self, agent: str, _ref: str, said: Json, _actor: str, _causes: str) -> None:
        self.history.goals[agent, said["goal"]].status = said["status"]

    def _plan_generated(self, agent: str, ref: str, said: Json, _actor: str, _causes: str) -> None:
        goal = self.history.goals[agent, said["goal"]]
        goal.thinker = said["thinker"]
        if not goal.uncovered:
            goal.uncovered = [(gap["clause"], ref) for gap in said["uncovered"]]

    def _plan_rejected(self, *_said: object) -> None:
        """What is uncovered stands in the plan that was generated."""

    def _plan_adopted(self, agent: str, _ref: str, said: Json, _actor: str, _causes: str) -> None:
        goal = self.history.goals[agent, said["goal"]]
        goal.steps = said["steps"]
        for step in goal.steps:
            self._steps[agent, step["id"]] = (goal.id, step)

    _plan_revised = _plan_adopted

    def _step_ended(self, agent: str, _ref: str, said: Json, _actor: str, _causes: str) -> None:
        self.history.goals[agent, said["goal"]].done[said["step"]] = said["status"]

    # ------------------------------------------------------------------ actions

    def _action_requested(self, agent: str, ref: str, said: Json, actor: str, _causes: str) -> None:
        goal, step = self._steps.get((agent, said["step"]), (said["goal"], {}))
        self._pending[agent, said["action"]] = Act(
            ref,
            agent,
            said["action"],
            goal,
            said["step"],
            said["tool"],
            said["command"],
            said["args"],
            recipe=_recipe(step),
            by_operator=actor.startswith("operator"),
        )

    def _action_parameters(self, agent: str, _ref: str, said: Json, _actor: str, _causes: str) -> None:
        self._pending[agent, said["action"]].args = said["args"]

    def _action_finished(self, agent: str, ref: str, said: Json, _actor: str, _causes: str) -> None:
        act = self._pending.pop((agent, said["action"]))
        act.ref, act.ok = ref, said["status"] == "SUCCESS"
        act.code, act.duration_ms = said["code"] or "", said["duration_ms"]
        self.history.acts.append(act)

    def _action_cancelled(self, agent: str, _ref: str, said: Json, _actor: str, _causes: str) -> None:
        self._pending.pop((agent, said["action"]), None)

    # ------------------------------------------------------------------ failures

    def _failure_recorded(self, agent: str, ref: str, said: Json, _actor: str, _causes: str) -> None:
        if said["escalated_from"]:
            return
        _, step = self._steps.get((agent, said["step"]), ("", {}))
        self.history.failures.append(
            Failed(
                ref,
                agent,
                said["failure"],
                said["subject"],
                said["goal"],
                said["step"],
                _recipe(step),
                step.get("command", ""),
            )
        )

    def _recovery_chosen(self, agent: str, ref: str, said: Json, _actor: str, _causes: str) -> None:
        chosen = Recovery(ref, agent, said["failure"], said["strategy"], said["goal"], said["step"])
        self.history.recoveries.append(chosen)
        self._open.setdefault(agent, []).append(chosen)

    def _recovery_ended(self, agent: str, _ref: str, said: Json, _actor: str, _causes: str) -> None:
        waiting = self._open.get(agent, [])
        for one in reversed(waiting):
            same = (one.strategy, one.goal, one.step) == (said["strategy"], said["goal"], said["step"])
            if same and one.helped is None:
                one.helped = said["success"]
                waiting.remove(one)
                return

    # ------------------------------------------------------------------ people

    def _command_received(self, agent: str, ref: str, said: Json, actor: str, _causes: str) -> None:
        command = said["command"]
        do = command["do"]
        if do not in BY_HAND or not actor.startswith("operator"):
            return
        step = command.get("step") or command.get("before") or ""
        goal = command.get("goal") or self._steps.get((agent, step), ("", {}))[0]
        hand = Hand(ref, agent, do, goal, step)
        self.history.hands.append(hand)
        if (agent, goal) in self.history.goals:
            self.history.goals[agent, goal].hands.append(hand)

    def _command_refused(self, _agent: str, _ref: str, _said: Json, _actor: str, causes: str) -> None:
        self._refused.update(json.loads(causes))

    def _approval_asked(self, agent: str, _ref: str, said: Json, _actor: str, _causes: str) -> None:
        call = said["call"]
        self._asked[agent, said["action"]] = f"{call['tool']}.{call['command']}"

    def _approval_answered(self, agent: str, ref: str, said: Json, _actor: str, _causes: str) -> None:
        if said["allowed"] and said["scope"] == "once":
            what = self._asked.get((agent, said["action"]))
            self.history.granted.append((ref, agent, what or str(said["key"])))

    def _model_budget_reached(self, agent: str, ref: str, said: Json, _actor: str, _causes: str) -> None:
        self.history.budgets.append((ref, agent, said["reason"]))

    def _generation_settled(self, agent: str, ref: str, said: Json, _actor: str, _causes: str) -> None:
        if said["plans"]:
            self.history.generated.append((ref, agent, tuple(said["plans"])))


def _recipe(step: Json) -> str:
    provenance = step.get("provenance") or {}
    return str(provenance.get("recipe", ""))


def calls_of(steps: list[Json]) -> Iterator[Call]:
    """The tool calls of a plan's steps."""
    for step in steps:
        if step.get("op", "act") == "act":
            yield step.get("tool", ""), step.get("command", ""), step.get("args", {})
