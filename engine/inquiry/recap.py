"""What happened between two places of the journal, for an operator who comes back; pure.

Source: spec steering §1 row 52, §5 story "leave 10 minutes; recap on return matches the log".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from engine.domain.action import ResultStatus
from engine.domain.goal import GoalStatus
from engine.domain.reasoning import GenerationStage
from engine.domain.state import AgentState, Mode
from engine.journal import events as ev
from engine.journal.event import Event, of_agent
from engine.memory import noting

KINDS = noting.KINDS | {
    ev.FailureRecorded.kind,
    ev.RecoveryEnded.kind,
    ev.ModelCalled.kind,
    ev.StuckNoticed.kind,
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
    reason: str
    event: str


@dataclass(frozen=True, slots=True)
class Trouble:
    """A failure; those that a sub-goal handed up are counted where they came from."""

    agent: str
    message: str
    event: str


@dataclass(frozen=True, slots=True)
class Recap:
    """What happened; texts are as they were recorded."""

    since: int = 0
    """The place of the last event before it."""
    until: int = 0
    """The place of its last event."""
    events: int = 0
    goals: tuple[EndedGoal, ...] = ()
    actions: int = 0
    """Actions that came to an end."""
    failed_actions: int = 0
    failures: int = 0
    recovered: int = 0
    """Recoveries that worked."""
    troubles: tuple[Trouble, ...] = ()
    """The newest failures, the newest first."""
    waiting: tuple[tuple[str, str], ...] = ()
    """Agents that wait for the operator at the end of it, and for what."""
    stuck: tuple[Trouble, ...] = ()
    """When agents were seen to be stuck, the newest first, and by what."""
    calls: int = 0
    tokens: int = 0
    cost_usd: float = 0.0
    unpriced: int = 0
    """Calls whose price nobody knows; they are not in the cost."""
    files: tuple[tuple[str, str], ...] = ()
    """Agents and the files that their actions wrote, each once; what programs wrote is not known."""

    @property
    def quiet(self) -> bool:
        """Whether there is nothing that an operator would want to be told."""
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
    told = _Told(now, before or {})
    count, until = 0, since
    for event in events:
        count, until = count + 1, event.seq
        if of_agent(event.stream) and event.kind in KINDS:
            told.take(event, ev.payload_of(event))
    waiting = tuple((agent, why) for agent, state in now.items() if (why := waits_for(state)))
    return Recap(
        since,
        until,
        count,
        tuple(told.goals),
        told.actions,
        told.failed,
        told.failures,
        told.recovered,
        tuple(told.troubles[: -LISTED - 1 : -1]),
        waiting,
        tuple(told.stuck[: -LISTED - 1 : -1]),
        told.calls,
        told.tokens,
        told.usd,
        told.unpriced,
        tuple(told.files),
    )


def waits_for(state: AgentState) -> str:
    """Which decision of the operator's an agent waits for; empty when for none."""
    if state.deleted or state.shell_taken:
        return ""
    if state.intervention is not None:
        return state.intervention.reason
    if state.handover is not None:
        return "what it is to know of the changes at the shell"
    held = [one for one in state.generations.values() if one.stage is GenerationStage.HELD]
    if held:
        return f"plans of {held[0].id} to be approved"
    return "an action to be approved" if state.mode is Mode.WAITING else ""


class _Told:
    """What the events say, gathered as they come."""

    def __init__(self, now: Mapping[str, AgentState], before: Mapping[str, AgentState]) -> None:
        self._now = now
        self._before = before
        self._noters: dict[str, noting.Noter] = {}
        self.goals: list[EndedGoal] = []
        self.troubles: list[Trouble] = []
        self.stuck: list[Trouble] = []
        self.files: dict[tuple[str, str], None] = {}
        self.actions = self.failed = self.failures = self.recovered = 0
        self.calls = self.tokens = self.unpriced = 0
        self.usd = 0.0

    def take(self, event: Event, said: ev.Payload) -> None:
        """Bring in an event of an agent."""
        agent = event.stream
        match said:
            case ev.GoalEnded():
                state = self._now.get(agent)
                goal = state.goals.get(said.goal) if state is not None else None
                if goal is None or goal.parent is None:
                    text = goal.text if goal is not None else ""
                    self.goals.append(EndedGoal(agent, said.goal, text, said.status, said.reason, event.ref))
            case ev.FailureRecorded(escalated_from=""):
                self.failures += 1
                self.troubles.append(Trouble(agent, f"{said.failure}: {said.message}", event.ref))
            case ev.StuckNoticed() if said.signs:
                self.stuck.append(Trouble(agent, "; ".join(sign.text for sign in said.signs), event.ref))
            case ev.RecoveryEnded(success=True):
                self.recovered += 1
            case ev.ActionFinished():
                self.actions += 1
                self.failed += said.status is not ResultStatus.SUCCESS
            case ev.ActionCancelled() | ev.ActionOutcomeUnknown():
                self.actions += 1
            case ev.ModelCalled():
                self.calls += 1
                self.tokens += said.tokens
                self.usd += said.cost_usd or 0.0
                self.unpriced += said.cost_usd is None
        self._note(agent, said)

    def _note(self, agent: str, said: ev.Payload) -> None:
        if agent not in self._noters:
            before = self._before.get(agent)
            self._noters[agent] = noting.Noter.after(before) if before is not None else noting.Noter()
        note = self._noters[agent].note(said)
        if isinstance(note, noting.DeedEnded) and note.file is not None:
            self.files[agent, note.file.path] = None
