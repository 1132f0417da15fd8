"""Which events an operator is to be notified of: *needs you* and *done*, never anything else; pure.

Source: spec steering §1 row 51 (blocked and done told apart), issue "Steering", item 11.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from enum import StrEnum

from engine.domain.state import AgentState
from engine.journal import events as ev
from engine.journal.event import Event

REMEMBERED = 4_096
"""Things of which it is remembered that they were told."""
_OPERATOR = "operator:"


class Rule(StrEnum):
    """What an operator wants to be notified of."""

    DONE = "done"
    """What is done, and what needs them."""
    NEEDS_YOU = "needs-you"
    OFF = "off"


@dataclass(frozen=True, slots=True)
class Notice:
    """Something to be told; its text is as it was recorded."""

    rule: Rule
    """`DONE` or `NEEDS_YOU`."""
    agent: str
    text: str
    thing: str
    """What it is about; no thing is told twice."""


def notice_of(event: Event, said: ev.Payload, state: AgentState | None) -> Notice | None:
    """What an agent's event is to be told as; None for nearly all events.

    Args:
        event: the event, which is durable.
        said: what it says.
        state: the agent's state after it, where there is one.
    """
    agent, by_hand = event.stream, event.actor.startswith(_OPERATOR)
    match said:
        case ev.InterventionOpened() if not by_hand:
            return Notice(Rule.NEEDS_YOU, agent, said.reason, f"{agent} turn {event.ref}")
        case ev.ChangesOffered():
            text = f"say what {agent} is to know of the changes at the shell"
            return Notice(Rule.NEEDS_YOU, agent, text, f"{agent} changes {event.ref}")
        case ev.PlansHeld():
            text = "plans wait for your approval"
            return Notice(Rule.NEEDS_YOU, agent, text, f"{agent} plans {said.generation}")
        case ev.ApprovalAsked():
            text = f"may {said.action} {said.call.name} run? {said.why}"
            return Notice(Rule.NEEDS_YOU, agent, text, f"{agent} approval {event.ref}")
        case ev.ReplanHeld():
            text = f"the plan of {said.goal} is another than you accepted: {said.change}"
            return Notice(Rule.NEEDS_YOU, agent, text, f"{agent} re-plan {event.ref}")
        case ev.BudgetReached():
            # An agent that is held before the same call again and again needs its operator once.
            return Notice(Rule.NEEDS_YOU, agent, said.reason, f"{agent} budget {said.reason}")
        case ev.StuckNoticed() if said.signs:
            text = f"may be stuck: {'; '.join(sign.text for sign in said.signs)}"
            return Notice(Rule.NEEDS_YOU, agent, text, f"{agent} stuck {event.ref}")
        case ev.GoalEnded() if not by_hand and state is not None:
            goal = state.goals.get(said.goal)
            if goal is None or goal.parent is not None:
                return None
            why = f": {said.reason}" if said.reason else ""
            text = f"{said.status} {said.goal} {goal.text}{why}"
            return Notice(Rule.DONE, agent, text, f"{agent} goal {event.ref}")
    return None


class Told:
    """Lets each thing through once, and only what the rule wants."""

    def __init__(self, rule: Rule) -> None:
        self._rule = rule
        self._things: OrderedDict[str, None] = OrderedDict()

    def passes(self, notice: Notice) -> bool:
        """Whether this is to be told now; it is not to be told again after that."""
        wanted = self._rule is Rule.DONE or (self._rule is Rule.NEEDS_YOU and notice.rule is Rule.NEEDS_YOU)
        if not wanted or notice.thing in self._things:
            return False
        self._things[notice.thing] = None
        if len(self._things) > REMEMBERED:
            self._things.popitem(last=False)
        return True
