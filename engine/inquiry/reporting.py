"""A session as a report: events in, titled tables of plain text out; pure.

The texts are as they were recorded: whoever writes them to a file escapes them.
Source: issue "Steering", item 10; spec steering §1 row 53.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from engine.domain.action import ResultStatus
from engine.domain.goal import GoalStatus
from engine.domain.plan import PlanStep, StepStatus
from engine.domain.thinking import DecisionKind
from engine.journal import events as ev
from engine.journal.event import Event, of_agent
from engine.memory import noting

TEXT_LIMIT = 2_000
"""Characters of one cell."""
OPERATOR = "operator:"
KINDS = noting.KINDS | {
    kind.kind
    for kind in (
        *(ev.StepEnded, ev.DecisionMade, ev.PlanRejected, ev.FailureRecorded, ev.RecoveryChosen),
        *(ev.RecoveryEnded, ev.ThinkingFailed, ev.BudgetReached, ev.CommandReceived, ev.CommandRefused),
        *(ev.InterventionOpened, ev.InterventionClosed, ev.ShellReturned, ev.TierAccepted, ev.ModelCalled),
        *(ev.ServerTrusted, ev.ServerDistrusted),
    )
}
"""Events that are told; all others are only counted."""


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
    """Goes along with the events, oldest first, and keeps what a report needs of them.

    Args:
        first: the place (`seq`) from which on it is told; events before it say what goals and actions are.
    """

    def __init__(self, first: int = 1) -> None:
        self._first = first
        self._steps: dict[tuple[str, str], PlanStep] = {}
        self._noters: dict[str, noting.Noter] = {}
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
        said = ev.payload_of(event)
        if of_agent(event.stream):
            self._goal(event, said, inside)
            self._action(event, said, inside)
            self._file(event, said, inside)
            if inside:
                self._plan(event, said)
                self._trouble(event, said)
                self._call(event, said)
        if inside:
            self._turn(event, said)

    def _goal(self, event: Event, said: ev.Payload, inside: bool) -> None:
        agent = event.stream
        match said:
            case ev.GoalAdopted():
                self.goals[agent, said.goal] = _Goal(agent, said.goal, said.text, said.criteria, shown=inside)
            case ev.GoalChanged() if known := self.goals.get((agent, said.goal)):
                known.text = said.text
            case ev.GoalEnded() if known := self.goals.get((agent, said.goal)):
                known.status, known.reason = said.status.value, said.reason
                known.shown |= inside
            case ev.StepEnded(status=StepStatus.COMPLETED) if known := self.goals.get((agent, said.goal)):
                what = self._steps.get((agent, said.step))
                words = what.description if what is not None else ""
                known.evidence.append(f"{said.step} {words}: {said.summary} ({event.ref})")
                known.shown |= inside
            case ev.PlanAdopted() | ev.PlanRevised():
                self._steps |= {(agent, step.id): step for step in said.steps}
            case ev.DecisionMade() if said.decision.kind is DecisionKind.FINISH:
                if known := self.goals.get((agent, said.goal)):
                    pairs = zip(known.criteria, said.decision.evidence, strict=False)
                    known.evidence += [f"“{criterion}” is shown by {step}" for criterion, step in pairs]

    def _plan(self, event: Event, said: ev.Payload) -> None:
        match said:
            case ev.PlanAdopted():
                steps = "\n".join(f"{step.id} {step.description}" for step in said.steps)
                told = (said.goal, f"plan {said.plan} adopted", steps)
            case ev.PlanRevised():
                steps = "\n".join(f"{step.id} {step.description} ({step.status})" for step in said.steps)
                told = (said.goal, f"plan {said.plan}: {said.change}", steps)
            case ev.PlanRejected():
                told = (said.goal, "a plan was rejected", "\n".join(said.problems))
            case _:
                return
        self.plans.append((_time(event), event.stream, *told, _who(event)))

    def _action(self, event: Event, said: ev.Payload, inside: bool) -> None:
        agent = event.stream
        if isinstance(said, ev.ActionRequested):
            args = json.dumps(said.args, ensure_ascii=False, sort_keys=True)
            call = f"{said.tool} {said.command} {args}"
            self.actions[agent, said.action] = _Action(
                agent, call, _who(event), _time(event), event.ref, said.goal, shown=inside
            )
            return
        known = self.actions.get((agent, getattr(said, "action", "")))
        if known is None:
            return
        match said:
            case ev.ActionFinished():
                code = f" ({said.code})" if said.code else ""
                known.ended, known.took = f"{said.status}{code}", f"{said.duration_ms} ms"
                known.summary, known.failed = said.summary, said.status is not ResultStatus.SUCCESS
            case ev.ActionCancelled():
                known.ended, known.summary = "cut off", said.reason
            case ev.ActionOutcomeUnknown():
                known.ended = "outcome unknown"
            case ev.ActionWithdrawn():
                known.ended, known.summary = "withdrawn", said.reason
            case _:
                return
        known.shown |= inside

    def _file(self, event: Event, said: ev.Payload, inside: bool) -> None:
        note = self._noters.setdefault(event.stream, noting.Noter()).note(said)
        if inside and isinstance(note, noting.DeedEnded) and note.file is not None:
            known = self.actions.get((event.stream, note.deed.action))
            by = known.by if known is not None else ""
            path = note.file.path
            times = int(self.files[event.stream, path][2]) + 1 if (event.stream, path) in self.files else 1
            self.files[event.stream, path] = (path, event.stream, str(times), _time(event), by)

    def _trouble(self, event: Event, said: ev.Payload) -> None:
        match said:
            case ev.FailureRecorded():
                told = (said.failure.value, said.goal or said.action, said.message)
            case ev.RecoveryChosen():
                told = (f"recovery {said.strategy}", said.step or said.goal, said.why)
            case ev.RecoveryEnded():
                came = "it worked" if said.success else "it did not work"
                told = (f"recovery {said.strategy}", said.step or said.goal, came)
            case ev.ThinkingFailed():
                told = (said.failure.value, said.step or said.goal, said.message)
            case ev.ActionFinished() if said.status is not ResultStatus.SUCCESS:
                told = ("action failed", said.action, said.summary)
            case ev.BudgetReached():
                told = ("budget", "", said.reason)
            case _:
                return
        self.troubles.append((_time(event), event.stream, *told))

    def _turn(self, event: Event, said: ev.Payload) -> None:
        match said:
            case ev.CommandReceived():
                fields = {name: value for name, value in said.command.items() if name not in ("do", "agent")}
                said_so = json.dumps(fields, ensure_ascii=False, sort_keys=True) if fields else ""
                told = (str(said.command.get("do", "")), said_so)
            case ev.CommandRefused():
                told = ("refused", said.reason)
            case ev.InterventionOpened():
                told = ("your turn", said.reason)
            case ev.InterventionClosed():
                told = ("decided", said.resolution)
            case ev.ShellReturned():
                told = ("shell handed back", said.note)
            case ev.ChangesSettled():
                told = ("told the agent of", ", ".join(said.accepted) or "no change")
            case ev.TierAccepted():
                told = (f"jail {said.tier} accepted", said.reason)
            case ev.ServerTrusted():
                told = (f"the server {said.server} may start", said.what)
            case ev.ServerDistrusted():
                told = (f"the server {said.server} may not start", "")
            case _:
                return
        self.turns.append((_time(event), event.stream, _who(event), *told))

    def _call(self, event: Event, said: ev.Payload) -> None:
        if not isinstance(said, ev.ModelCalled):
            return
        self.tokens += said.tokens
        self.usd += said.cost_usd or 0.0
        self.unpriced += said.cost_usd is None
        cost = "unknown" if said.cost_usd is None else f"${said.cost_usd:.4f}"
        came = said.error or ("cut off" if said.partial else "ok")
        took = f"{said.duration_ms} ms"
        what = f"{said.purpose} {said.goal}".strip()
        row = (_time(event), event.stream, said.model, what, f"{said.tokens:,}", cost, took, came)
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
        facts = (
            ("from", self.times[0] if self.times else ""),
            ("to", self.times[-1] if self.times else ""),
            ("events", f"{self.count:,}"),
            ("agents", ", ".join(sorted({goal.agent for goal in goals} | {one.agent for one in actions}))),
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
                (one.ident, one.agent, "\n|| ".join((one.text, *one.criteria)), one.status, one.reason,
                 "\n".join(one.evidence))
                for one in goals
            ),
        ),
        Table("Plans and their changes", ("at", "agent", "goal", "change", "steps", "by"),
              tuple(teller.plans)),
        Table(
            "Actions",
            ("at", "agent", "event", "goal", "call", "by", "result", "took", "summary"),
            tuple(
                (one.at, one.agent, one.ref, one.goal, one.call, one.by, one.ended, one.took, one.summary)
                for one in actions
            ),
        ),
        Table("Errors and recoveries", ("at", "agent", "what", "of", "message"), tuple(teller.troubles)),
        Table("What the operator did", ("at", "where", "who", "what", "words"), tuple(teller.turns)),
        Table(
            "Calls of models",
            ("at", "agent", "model", "for", "tokens", "cost", "took", "came of it"),
            tuple(teller.calls),
        ),
        Table("Files written", ("file", "agent", "times", "last at", "by"), tuple(teller.files.values())),
    ]  # fmt: skip


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
