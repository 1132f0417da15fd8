"""What shows that a goal was achieved: its criteria with the steps that show them, and its last results.

Source: spec steering §6 idea 10 ("done" with its evidence).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from engine.domain.goal import GoalStatus
from engine.domain.plan import StepStatus
from engine.domain.thinking import DecisionKind
from engine.journal import events as ev
from engine.journal.event import Event

RESULTS = 5
"""Newest results that are told."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A step's result; for a criterion where one is named."""

    criterion: str
    """Empty for a result that stands for no criterion."""
    step: str
    """Empty where nothing shows the criterion."""
    summary: str = ""
    ref: str = ""
    """The event by which the step was completed; empty where it never was."""

    @property
    def holds(self) -> bool:
        """True where a completed step stands behind it."""
        return bool(self.ref)


@dataclass(frozen=True, slots=True)
class Evidence:
    """What there is to show for a goal."""

    goal: str
    text: str
    status: GoalStatus
    reason: str
    ref: str
    """The event by which it ended; that by which it was adopted while it is open."""
    criteria: tuple[Shown, ...] = ()
    results: tuple[Shown, ...] = ()
    """The newest results, oldest first."""

    @property
    def complete(self) -> bool:
        """True where every criterion is shown, and without criteria where there is any result."""
        return all(one.holds for one in self.criteria) if self.criteria else bool(self.results)


@dataclass(slots=True)
class _Ends:
    adopted: ev.GoalAdopted | None = None
    text: str = ""
    ref: str = ""
    status: GoalStatus = GoalStatus.ACTIVE
    reason: str = ""
    named: tuple[str, ...] = ()
    done: dict[str, Shown] = field(default_factory=dict)


def evidence_of(events: Iterable[Event], goal: str) -> Evidence | None:
    """What there is to show for a goal; None when the events have no such goal.

    Args:
        events: the agent's events in their order.
        goal: the goal's id.
    """
    found = _Ends()
    for event in events:
        if event.kind in _KINDS:
            _see(found, event, goal)
    if found.adopted is None:
        return None
    criteria = found.adopted.criteria
    steps = (*found.named, *("" for _ in criteria))[: len(criteria)]
    return Evidence(
        goal,
        found.text,
        found.status,
        found.reason,
        found.ref,
        tuple(_shown(found, text, step) for text, step in zip(criteria, steps, strict=True)),
        tuple(found.done.values())[-RESULTS:],
    )


_KINDS = frozenset(
    kind.kind for kind in (ev.GoalAdopted, ev.GoalChanged, ev.GoalEnded, ev.DecisionMade, ev.StepEnded)
)


def _see(found: _Ends, event: Event, goal: str) -> None:
    said = ev.payload_of(event)
    match said:
        case ev.GoalAdopted(goal=ident) if ident == goal:
            found.adopted, found.text, found.ref = said, said.text, event.ref
        case ev.GoalChanged(goal=ident) if ident == goal:
            found.text = said.text
        case ev.GoalEnded(goal=ident) if ident == goal:
            found.status, found.reason, found.ref = said.status, said.reason, event.ref
        case ev.DecisionMade(goal=ident) if ident == goal and said.decision.kind is DecisionKind.FINISH:
            found.named = said.decision.evidence
        case ev.StepEnded(goal=ident) if ident == goal:
            found.done.pop(said.step, None)
            if said.status is StepStatus.COMPLETED:
                found.done[said.step] = Shown("", said.step, said.summary, event.ref)


def _shown(found: _Ends, criterion: str, step: str) -> Shown:
    done = found.done.get(step)
    return Shown(criterion, step, done.summary if done else "", done.ref if done else "")
