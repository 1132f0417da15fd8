"""Which events an operator is to be notified of: *needs you* and *done*, never anything else; pure."""

from __future__ import annotations

from collections import OrderedDict
from enum import StrEnum

from engine.core import events as ev
from engine.core.journal import Event
from engine.core.state import AgentState
from engine.value import dataclass

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


def notice_of(event: Event, payload: ev.Payload, state: AgentState | None) -> Notice | None:
    """What an agent's event is to be told as; None for nearly all events.

    Args:
        event: the event, which is durable.
        payload: what it says.
        state: the agent's state after it, where there is one.
    """
    agent, by_hand = event.stream, event.actor.startswith(_OPERATOR)
    match payload:
        case ev.InterventionOpened() if not by_hand:
            return Notice(Rule.NEEDS_YOU, agent, payload.reason, f"{agent} turn {event.ref}")
        case ev.ChangesOffered():
            text = f"say what {agent} is to know of the changes at the shell"
            return Notice(Rule.NEEDS_YOU, agent, text, f"{agent} changes {event.ref}")
        case ev.PlansHeld():
            text = "plans wait for your approval"
            return Notice(Rule.NEEDS_YOU, agent, text, f"{agent} plans {payload.generation}")
        case ev.ApprovalAsked():
            text = f"may {payload.action} {payload.call.name} run? {payload.why}"
            return Notice(Rule.NEEDS_YOU, agent, text, f"{agent} approval {event.ref}")
        case ev.ReplanHeld():
            text = f"the plan of {payload.goal} is another than you accepted: {payload.change}"
            return Notice(Rule.NEEDS_YOU, agent, text, f"{agent} re-plan {event.ref}")
        case ev.BudgetReached():
            # An agent that is held before the same call again and again needs its operator once.
            return Notice(Rule.NEEDS_YOU, agent, payload.reason, f"{agent} budget {payload.reason}")
        case ev.StuckNoticed() if payload.signs:
            text = f"may be stuck: {'; '.join(sign.text for sign in payload.signs)}"
            return Notice(Rule.NEEDS_YOU, agent, text, f"{agent} stuck {event.ref}")
        case ev.GoalEnded() if not by_hand and state is not None:
            goal = state.goals.get(payload.goal)
            if goal is None or goal.parent is not None:
                return None
            why = f": {payload.reason}" if payload.reason else ""
            text = f"{payload.status} {payload.goal} {goal.text}{why}"
            return Notice(Rule.DONE, agent, text, f"{agent} goal {event.ref}")
    return None


class NoticeFilter:
    """Lets each thing through once, and only what the rule wants."""

    def __init__(self, rule: Rule) -> None:
        self._rule = rule
        self._things: OrderedDict[str, None] = OrderedDict()

    def passes(self, notice: Notice) -> bool:
        """Whether this is to be told now; it is not to be told again after that."""
        allowed = self._rule is Rule.DONE or (self._rule is Rule.NEEDS_YOU and notice.rule is Rule.NEEDS_YOU)
        if not allowed or notice.thing in self._things:
            return False
        self._things[notice.thing] = None
        if len(self._things) > REMEMBERED:
            self._things.popitem(last=False)
        return True
