"""Which events an operator is to be notified of: *needs you* and *done*, never anything else; pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from enum import StrEnum
from typing import Any

from engine.core import events as ev
from engine.core.goals import ending_of
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
    if isinstance(payload, ev.GoalEnded):
        goal = state.goals.get(payload.goal) if state is not None and not by_hand else None
        if goal is None or goal.parent is not None:
            return None
        why = f": {payload.reason}" if payload.reason else ""
        _, ended = ending_of(payload.status, payload.reason)
        return Notice(Rule.DONE, agent, f"{ended}: {payload.goal} {goal.text}{why}", event.ref)
    text = _NEEDS[type(payload)](payload) if type(payload) in _NEEDS else ""
    if not text or (by_hand and isinstance(payload, ev.InterventionOpened)):
        return None
    # An agent that is held before the same call again and again needs its operator once.
    thing = f"{agent} {text}" if isinstance(payload, ev.BudgetReached) else event.ref
    return Notice(Rule.NEEDS_YOU, agent, text, thing)


_NEEDS: dict[type[ev.Payload], Callable[[Any], str]] = {
    ev.InterventionOpened: lambda said: said.reason,
    ev.ChangesOffered: lambda said: "say what it is to know of the changes at the shell",
    ev.PlansHeld: lambda said: "plans wait for your approval",
    ev.ApprovalAsked: lambda said: f"may {said.action} {said.call.name} run? {said.why}",
    ev.ReplanHeld: lambda said: f"the plan of {said.goal} is another than you accepted: {said.change}",
    ev.BudgetReached: lambda said: said.reason,
    ev.ControlAsked: lambda said: f"{said.by} asks {said.holder} for the controls: control give {said.by}",
    ev.StuckNoticed: lambda said: (
        f"may be stuck: {'; '.join(sign.text for sign in said.signs)}" if said.signs else ""
    ),
}
"""What an event asks of the operator, in words; empty for nothing."""


class NoticeFilter:
    """Lets each thing through once, and only what the rule wants."""

    def __init__(self, rule: Rule) -> None:
        self._rule = rule
        self._things: deque[str] = deque(maxlen=REMEMBERED)

    def passes(self, notice: Notice) -> bool:
        """Whether this is to be told now; it is not to be told again after that."""
        allowed = self._rule is Rule.DONE or (self._rule is Rule.NEEDS_YOU and notice.rule is Rule.NEEDS_YOU)
        if not allowed or notice.thing in self._things:
            return False
        self._things.append(notice.thing)
        return True
