"""What happened between two places of the journal, for an operator who comes back; pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from engine.core import events as ev
from engine.core.actions import ResultStatus
from engine.core.goals import GoalStatus
from engine.core.journal import Event, of_agent
from engine.core.reasons import Reason
from engine.core.state import AgentState
from engine.inquiry.inbox import asked_of
from engine.memory import notes as noting
from engine.value import dataclass, field

KINDS = noting.KINDS | {
    kind.kind for kind in (ev.FailureRecorded, ev.RecoveryEnded, ev.ModelCalled, ev.StuckNoticed)
}
"""Events that are looked at; all others are only counted."""
LISTED = 50
"""Failures and files that are named one by one; all are counted."""


@dataclass(frozen=True, slots=True)
class EndedGoal:
    """A root goal that is over."""

    agent: str
    goal: str
    text: str
    status: GoalStatus
    reason: Reason
    event: str


@dataclass(frozen=True, slots=True)
class FailureSummary:
    """A failure; those that a sub-goal handed up are counted where they came from."""

    agent: str
    message: str
    event: str


@dataclass(slots=True)
class Recap:
    """What happened; texts are as they were recorded."""

    since: int = 0
    """The place of the last event before it."""
    until: int = 0
    """The place of its last event."""
    events: int = 0
    goals: list[EndedGoal] = field(default_factory=list)
    actions: int = 0
    """Actions that came to an end."""
    failed_actions: int = 0
    failures: int = 0
    recovered: int = 0
    """Recoveries that worked."""
    troubles: list[FailureSummary] = field(default_factory=list)
    """The newest failures, the newest first."""
    waiting: tuple[tuple[str, str], ...] = ()
    """Agents that wait for the operator at the end of it, and for what."""
    stuck: list[FailureSummary] = field(default_factory=list)
    """When agents were seen to be stuck, the newest first, and by what."""
    calls: int = 0
    tokens: int = 0
    cost_usd: float = 0.0
    unpriced: int = 0
    """Calls whose price nobody knows; they are not in the cost."""
    files: list[tuple[str, str]] = field(default_factory=list)
    """Agents and the files that their actions wrote, each once; what programs wrote is not known."""

    @property
    def quiet(self) -> bool:
        """Whether there is nothing that an operator would want to know."""
        return not (self.goals or self.failures or self.waiting or self.stuck or self.calls or self.files)


def recap(
    events: Iterable[Event],
    now: Mapping[str, AgentState],
    before: Mapping[str, AgentState] | None = None,
    *,
    since: int = 0,
) -> Recap:
    """What happened in these events.

    Args:
        events: all events behind `since`, in their order.
        now: the agents' states at the end of them, by stream.
        before: their states before them, from which the directories of files are known; missing ones are new.
        since: the place of the last event before them.

    Raises:
        JournalError: this version does not know what an event says.
    """
    summary, noters, before = Recap(since, since), dict[str, noting.NoteCollector](), before or {}
    for event in events:
        summary.events, summary.until = summary.events + 1, event.seq
        agent = event.stream
        if not of_agent(agent) or event.kind not in KINDS:
            continue
        payload = ev.payload_of(event)
        _take(summary, event, payload, now.get(agent))
        if agent not in noters:
            state = before.get(agent)
            noters[agent] = noting.NoteCollector.after(state) if state else noting.NoteCollector()
        note = noters[agent].note(payload)
        if isinstance(note, noting.ActionEndNote) and note.file is not None:
            summary.files.append((agent, note.file.path))
    needs = ((agent, next(asked_of(state), None)) for agent, state in now.items() if not state.deleted)
    summary.waiting = tuple((agent, need.what) for agent, need in needs if need is not None)
    summary.troubles, summary.stuck = summary.troubles[: -LISTED - 1 : -1], summary.stuck[: -LISTED - 1 : -1]
    summary.files = list(dict.fromkeys(summary.files))
    return summary


def _take(summary: Recap, event: Event, payload: ev.Payload, state: AgentState | None) -> None:
    """Bring in an event of an agent."""
    agent = event.stream
    match payload:
        case ev.GoalEnded():
            goal = state.goals.get(payload.goal) if state is not None else None
            if goal is None or goal.parent is None:
                text = goal.text if goal is not None else ""
                ended = (payload.goal, text, payload.status, payload.reason, event.ref)
                summary.goals.append(EndedGoal(agent, *ended))
        case ev.FailureRecorded(escalated_from=""):
            summary.failures += 1
            summary.troubles.append(FailureSummary(agent, f"{payload.failure}: {payload.message}", event.ref))
        case ev.StuckNoticed() if payload.signs:
            signs = "; ".join(sign.text for sign in payload.signs)
            summary.stuck.append(FailureSummary(agent, signs, event.ref))
        case ev.RecoveryEnded(success=True):
            summary.recovered += 1
        case ev.ActionFinished():
            summary.actions += 1
            summary.failed_actions += payload.status is not ResultStatus.SUCCESS
        case ev.ActionCancelled() | ev.ActionOutcomeUnknown():
            summary.actions += 1
        case ev.ModelCalled():
            summary.calls += 1
            summary.tokens += payload.tokens
            summary.cost_usd += payload.cost_usd or 0.0
            summary.unpriced += payload.cost_usd is None
