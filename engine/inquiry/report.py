"""A session as a report: events in, titled tables of plain text out; pure.

The texts are as they were recorded: whoever writes them to a file escapes them.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from engine.core import events as ev
from engine.core.actions import ResultStatus
from engine.core.command import NOT_TOLD
from engine.core.goals import GoalStatus
from engine.core.journal import Event, of_agent
from engine.core.plan import PlanStep, StepStatus
from engine.core.thinking import DecisionKind
from engine.memory import notes as noting
from engine.value import dataclass, field

TEXT_LIMIT = 2_000
"""Characters of one cell."""
OPERATOR = "operator:"


@dataclass(frozen=True, slots=True)
class Table:
    """One chapter of a report."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...] = ()
    """As many cells as columns; a cell may have several lines."""


@dataclass(frozen=True, slots=True)
class Report:
    """What happened, in chapters."""

    title: str
    facts: tuple[tuple[str, str], ...]
    """What there is to say of all of it, with labels."""
    tables: tuple[Table, ...]


@dataclass(slots=True)
class _Goal:
    agent: str
    ident: str
    text: str
    criteria: tuple[str, ...] = ()
    status: str = "open"
    reason: str = ""
    evidence: list[str] = field(default_factory=list)
    shown: bool = False
    """Whether anything happened to it in the part that is told."""


@dataclass(slots=True)
class _Action:
    agent: str
    call: str
    by: str
    at: str
    ref: str
    goal: str
    ended: str = "not over"
    took: str = ""
    summary: str = ""
    failed: bool = False
    shown: bool = False


class Reporter:
    """Follows the events, oldest first, and keeps what a report needs of them.

    Args:
        first: the place (`seq`) from which on it is told; events before it say what goals and actions are.
    """

    def __init__(self, first: int = 1) -> None:
        self._first = first
        self._steps: dict[tuple[str, str], PlanStep] = {}
        self._noters: dict[str, noting.NoteCollector] = {}
        self.goals: dict[tuple[str, str], _Goal] = {}
        self.actions: dict[tuple[str, str], _Action] = {}
        self.plans: list[tuple[str, ...]] = []
        self.troubles: list[tuple[str, ...]] = []
        self.turns: list[tuple[str, ...]] = []
        self.calls: list[tuple[str, ...]] = []
        self.files: dict[tuple[str, str], tuple[str, ...]] = {}
        self.tokens, self.usd, self.unpriced = 0, 0.0, 0
        self.count = 0
        self.times: list[str] = []

    def take(self, event: Event) -> None:
        """Bring in the next event.

        Raises:
            JournalError: this version does not know what it says.
        """
        inside = event.seq >= self._first
        if inside:
            self.count += 1
            self.times = [*self.times[:1], event.at]
        if event.kind not in KINDS:
            return
        payload = ev.payload_of(event)
        if of_agent(event.stream):
            self._goal(event, payload, inside)
            self._action(event, payload, inside)
            self._file(event, payload, inside)
            if inside:
                if plan := self._plan(payload):
                    self.plans.append((_time(event), event.stream, *plan, _who(event)))
                if trouble := _TROUBLES.get(type(payload), _nothing)(payload):
                    self.troubles.append((_time(event), event.stream, *trouble))
                self._call(event, payload)
        if inside and (turn := _TURNS.get(type(payload), _nothing)(payload)):
            self.turns.append((_time(event), event.stream, _who(event), *turn))

    def _goal(self, event: Event, payload: ev.Payload, inside: bool) -> None:
        agent = event.stream
        match payload:
            case ev.GoalAdopted():
                goal = _Goal(agent, payload.goal, payload.text, payload.criteria, shown=inside)
                self.goals[agent, payload.goal] = goal
            case ev.GoalChanged() if known := self.goals.get((agent, payload.goal)):
                known.text = payload.text
            case ev.GoalEnded() if known := self.goals.get((agent, payload.goal)):
                known.status, known.reason = payload.status.value, payload.reason
                known.shown |= inside
            case ev.StepEnded(status=StepStatus.COMPLETED) if known := self.goals.get((agent, payload.goal)):
                what = self._steps.get((agent, payload.step))
                words = what.description if what is not None else ""
                known.evidence.append(f"{payload.step} {words}: {payload.summary} ({event.ref})")
                known.shown |= inside
            case ev.PlanAdopted() | ev.PlanRevised():
                self._steps |= {(agent, step.id): step for step in payload.steps}
            case ev.DecisionMade() if payload.decision.kind is DecisionKind.FINISH:
                if known := self.goals.get((agent, payload.goal)):
                    pairs = zip(known.criteria, payload.decision.evidence, strict=False)
                    known.evidence += [f"“{criterion}” is shown by {step}" for criterion, step in pairs]

    def _plan(self, payload: ev.Payload) -> tuple[str, str, str] | None:
        """Goal, change and steps."""
        match payload:
            case ev.PlanAdopted():
                steps = "\n".join(f"{step.id} {step.description}" for step in payload.steps)
                return payload.goal, f"plan {payload.plan} adopted", steps
            case ev.PlanRevised():
                kept = [f"the first {payload.kept} as they were"] if payload.kept else []
                new = [f"{step.id} {step.description} ({step.status})" for step in payload.steps]
                return payload.goal, f"plan {payload.plan}: {payload.change}", "\n".join([*kept, *new])
            case ev.PlanRejected():
                return payload.goal, "a plan was rejected", "\n".join(payload.problems)
        return None

    def _action(self, event: Event, payload: ev.Payload, inside: bool) -> None:
        agent = event.stream
        if isinstance(payload, ev.ActionRequested):
            args = json.dumps(payload.args, ensure_ascii=False, sort_keys=True)
            call = f"{payload.tool} {payload.command} {args}"
            self.actions[agent, payload.action] = _Action(
                agent, call, _who(event), _time(event), event.ref, payload.goal, shown=inside
            )
            return
        known = self.actions.get((agent, getattr(payload, "action", "")))
        if known is None:
            return
        match payload:
            case ev.ActionFinished():
                code = f" ({payload.code})" if payload.code else ""
                known.ended, known.took = f"{payload.status}{code}", f"{payload.duration_ms} ms"
                known.summary, known.failed = payload.summary, payload.status is not ResultStatus.SUCCESS
            case ev.ActionCancelled():
                known.ended, known.summary = "cut off", payload.reason
            case ev.ActionOutcomeUnknown():
                known.ended = "outcome unknown"
            case ev.ActionWithdrawn():
                known.ended, known.summary = "withdrawn", payload.reason
            case _:
                return
        known.shown |= inside

    def _file(self, event: Event, payload: ev.Payload, inside: bool) -> None:
        note = self._noters.setdefault(event.stream, noting.NoteCollector()).note(payload)
        if inside and isinstance(note, noting.ActionEndNote) and note.file is not None:
            known = self.actions.get((event.stream, note.start.action))
            by = known.by if known is not None else ""
            path = note.file.path
            times = int(self.files[event.stream, path][2]) + 1 if (event.stream, path) in self.files else 1
            self.files[event.stream, path] = (path, event.stream, str(times), _time(event), by)

    def _call(self, event: Event, payload: ev.Payload) -> None:
        if not isinstance(payload, ev.ModelCalled):
            return
        self.tokens += payload.tokens
        self.usd += payload.cost_usd or 0.0
        self.unpriced += payload.cost_usd is None
        cost = "unknown" if payload.cost_usd is None else f"${payload.cost_usd:.4f}"
        came = payload.error or ("cut off" if payload.partial else "ok")
        took = f"{payload.duration_ms} ms"
        what = f"{payload.purpose} {payload.goal}".strip()
        row = (_time(event), event.stream, payload.model, what, f"{payload.tokens:,}", cost, took, came)
        self.calls.append(row)

    def report(self, title: str) -> Report:
        """What has happened so far, under this title."""
        goals = [goal for goal in self.goals.values() if goal.shown]
        actions = [action for action in self.actions.values() if action.shown]
        achieved = sum(goal.status == GoalStatus.ACHIEVED for goal in goals)
        failed = sum(action.failed for action in actions)
        price = f"${self.usd:.4f}"
        if self.unpriced:
            price += f" and {self.unpriced} calls of unknown price"
        agents = {goal.agent for goal in goals} | {action.agent for action in actions}
        facts = (
            ("from", self.times[0] if self.times else ""),
            ("to", self.times[-1] if self.times else ""),
            ("events", f"{self.count:,}"),
            ("agents", ", ".join(sorted(agents))),
            ("goals", f"{len(goals)}, {achieved} achieved"),
            ("actions", f"{len(actions)}, {failed} failed"),
            ("model calls", f"{len(self.calls)}, {self.tokens:,} tokens, {price}"),
        )
        return Report(title, facts, tuple(map(_cut, _tables(self, goals, actions))))


def _tables(teller: Reporter, goals: list[_Goal], actions: list[_Action]) -> list[Table]:
    return [
        Table(
            "Goals",
            ("goal", "agent", "text", "outcome", "why", "evidence"),
            tuple(
                (goal.ident, goal.agent, "\n|| ".join((goal.text, *goal.criteria)), goal.status, goal.reason,
                 "\n".join(goal.evidence))
                for goal in goals
            ),
        ),
        Table("Plans and their changes", ("at", "agent", "goal", "change", "steps", "by"),
              tuple(teller.plans)),
        Table(
            "Actions",
            ("at", "agent", "event", "goal", "call", "by", "result", "took", "summary"),
            tuple(
                (act.at, act.agent, act.ref, act.goal, act.call, act.by, act.ended, act.took, act.summary)
                for act in actions
            ),
        ),
        Table("Errors and recoveries", ("at", "agent", "what", "of", "message"), tuple(teller.troubles)),
        Table("What the operator did", ("at", "where", "who", "what", "words"), tuple(teller.turns)),
        Table(
            "Calls of models",
            ("at", "agent", "model", "for", "tokens", "cost", "took", "result"),
            tuple(teller.calls),
        ),
        Table("Files written", ("file", "agent", "times", "last at", "by"), tuple(teller.files.values())),
    ]  # fmt: skip


def _nothing(_said: ev.Payload) -> None:
    return None


def _command(event: ev.CommandReceived) -> tuple[str, str]:
    fields = {name: value for name, value in event.command.items() if name not in NOT_TOLD}
    words = json.dumps(fields, ensure_ascii=False, sort_keys=True) if fields else ""
    return str(event.command.get("do", "")), words


_TROUBLES: dict[type[ev.Payload], Callable[[Any], tuple[str, str, str] | None]] = {
    ev.FailureRecorded: lambda said: (said.failure.value, said.goal or said.action, said.message),
    ev.RecoveryChosen: lambda said: (f"recovery {said.strategy}", said.step or said.goal, said.why),
    ev.RecoveryEnded: lambda said: (
        *(f"recovery {said.strategy}", said.step or said.goal),
        "it worked" if said.success else "it did not work",
    ),
    ev.ThinkingFailed: lambda said: (said.failure.value, said.step or said.goal, said.message),
    ev.ActionFinished: lambda said: (
        ("action failed", said.action, said.summary) if said.status is not ResultStatus.SUCCESS else None
    ),
    ev.BudgetReached: lambda said: ("budget", "", said.reason),
}
"""What went wrong: what it is, of what, and the message."""
_TURNS: dict[type[ev.Payload], Callable[[Any], tuple[str, str] | None]] = {
    ev.CommandReceived: _command,
    ev.CommandRefused: lambda said: ("refused", said.reason),
    ev.NoteAdded: lambda said: ("note", said.text),
    ev.InterventionOpened: lambda said: ("your turn", said.reason),
    ev.InterventionClosed: lambda said: ("decided", said.resolution),
    ev.ShellReturned: lambda said: ("shell handed back", said.note),
    ev.ChangesSettled: lambda said: ("told the agent of", ", ".join(said.accepted) or "no change"),
    ev.NetworkGranted: lambda said: (f"network {said.network}", ""),
    ev.TierAccepted: lambda said: (f"jail {said.tier} accepted", said.reason),
    ev.ServerTrusted: lambda said: (f"the server {said.server} may start", said.what),
    ev.ServerDistrusted: lambda said: (f"the server {said.server} may not start", ""),
}
"""What the operator did, and its words."""


def _cut(table: Table) -> Table:
    rows = tuple(
        tuple(cell if len(cell) <= TEXT_LIMIT else cell[: TEXT_LIMIT - 1] + "…" for cell in row)
        for row in table.rows
    )
    return Table(table.title, table.columns, rows)


def _time(event: Event) -> str:
    return event.at[:19].replace("T", " ")


def _who(event: Event) -> str:
    return event.actor.removeprefix(OPERATOR)


KINDS = noting.KINDS | {
    *(kind.kind for kind in (*_TROUBLES, *_TURNS)),
    *(ev.StepEnded.kind, ev.DecisionMade.kind, ev.PlanRejected.kind, ev.ModelCalled.kind),
}
"""Events that are told; all others are only counted."""
