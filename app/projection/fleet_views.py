"""The fleet board's model, from what a crew and all agents of the engine are doing.

Pure but for what it remembers: an agent of which nothing happened is not looked at again, so that two hundred
of them can be looked at ten times a second.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from enum import IntEnum
from typing import Any

from engine.core.agents import Mode
from engine.core.state import AgentState
from engine.core.text import clean_line, short_duration
from engine.crew.ontology.context import ORCHESTRATOR, HumanRequest
from engine.crew.ontology.kinds import ConfidenceSource, HandoffState
from engine.crew.state import CrewState, Handoff, Move, Registered
from engine.inquiry.inbox import Need, NeedKind, needs_of
from engine.value import dataclass, field, replace
from widgets.base.asked import Asked, AskOption
from widgets.dialogs.fleet import FleetModel
from widgets.panes.fleet_grid import FleetRow, label_at

TYPE, LIVE = "type ", "live "
"""What the keys of rows begin with: registered agents, and agents of the engine."""
TALKS = "conversation"
"""The reason of a request that only waits for the operator's next word."""
APPROVALS = ("allow once", "allow for this session", "allow always", "deny")
OPENS = "go to it"
_STYLES = {
    HandoffState.QUEUED: "dim",
    HandoffState.RUNNING: "accent",
    HandoffState.WAITING_HUMAN: "warning",
    HandoffState.PAUSED: "text",
    HandoffState.COMPLETED: "success",
    HandoffState.CANCELLED: "dim",
}
"""Styles of states; as an error for all others."""


class Group(IntEnum):
    """What stands before what on the board."""

    WAITING = 0
    FAILED = 1
    RUNNING = 2
    PAUSED = 3
    QUEUED = 4
    IDLE = 5
    OFF = 6


_WORDS = {
    Group.WAITING: "waiting on you",
    Group.FAILED: "failed",
    Group.RUNNING: "running",
    Group.PAUSED: "paused",
    Group.QUEUED: "queued",
    Group.OFF: "off",
}
_GROUPS = {
    HandoffState.WAITING_HUMAN: Group.WAITING,
    HandoffState.RUNNING: Group.RUNNING,
    HandoffState.PAUSED: Group.PAUSED,
    HandoffState.QUEUED: Group.QUEUED,
}


def state_style(state: HandoffState) -> str:
    """How a handoff's state is coloured, beside its mark and its word."""
    return _STYLES.get(state, "error")


def seconds_since(since: str | datetime, now: datetime) -> float:
    """Seconds since a moment; 0 where it is none, or still to come."""
    if not since:
        return 0.0
    began = datetime.fromisoformat(since) if isinstance(since, str) else since
    return max(0.0, (now - began).total_seconds())


def seconds_used(handoff: Handoff, now: datetime) -> float:
    """Seconds of its deadline that a handoff has used up."""
    running = handoff.state is HandoffState.RUNNING
    return handoff.spent_s + (seconds_since(handoff.moves[-1].at, now) if running else 0.0)


@dataclass(frozen=True, slots=True)
class _Entry:
    """A row and its place."""

    group: Group
    since: str
    """Since when it stands so, ISO 8601; empty where nobody knows."""
    row: FleetRow
    timed: bool = True
    """Whether the time since then belongs behind its word."""


@dataclass(slots=True)
class _Work:
    """What of a crew's handoffs is open, by agent."""

    version: int = -1
    over: int = 0
    """Runs that have handed their work back."""
    open: dict[str, list[Handoff]] = field(default_factory=dict)
    requests: dict[str, list[HumanRequest]] = field(default_factory=dict)


class Fleet:
    """Makes the board's models, and gives each agent the label that it keeps."""

    def __init__(self) -> None:
        self._labels: dict[str, str] = {}
        self._known: dict[str, tuple[int, str, _Entry]] = {}
        self._work = _Work()

    def model(
        self,
        crew: CrewState | None,
        agents: Iterable[AgentState],
        now: datetime,
        *,
        faults: Collection[str] = (),
        message: str = "",
    ) -> FleetModel:
        """What the board shows.

        Args:
            crew: what the crew knows; None while it is not open.
            agents: the states of the engine's agents.
            now: what time it is, aware.
            faults: agents that ended by a fault of the program.
            message: the result of the last key.
        """
        entries: list[_Entry] = []
        if crew is not None:
            self._look(crew)
            entries += [self._registered(crew, agent, now) for agent in crew.agents.values()]
            entries += self._strangers(crew, now)
        entries += self._live(crew, agents, now, faults)
        # Who lives comes before those that only could be asked.
        entries.sort(key=_place)
        rows = tuple(self._row(entry, now) for entry in entries)
        counts = Counter(entry.group for entry in entries)
        parts = [f"{len(rows)} agents" if len(rows) != 1 else "1 agent"]
        parts += [f"{counts[group]} {word}" for group, word in _WORDS.items() if counts[group]]
        if over := self._work.over:
            parts.append(f"{over:,} ended run{'' if over == 1 else 's'}: h")
        if crew is not None and crew.holder != ORCHESTRATOR:
            parts.append(f"◆ {crew.holder} speaks with you")
        return FleetModel(rows, " · ".join(parts), message)

    def _row(self, entry: _Entry, now: datetime) -> FleetRow:
        row = entry.row
        label = self._labels.get(row.key)
        if label is None:
            label = self._labels[row.key] = label_at(len(self._labels))
        timed = entry.timed and bool(entry.since)
        since = f" {short_duration(seconds_since(entry.since, now))}" if timed else ""
        return replace(row, label=label, state=f"{row.state}{since}")

    def _look(self, crew: CrewState) -> None:
        """Sort what is open, where something has happened since."""
        if self._work.version == crew.version:
            return
        self._work = work = _Work(crew.version)
        for handoff in crew.handoffs.values():
            if handoff.proof:
                continue  # it is shown with its build
            if handoff.open:
                work.open.setdefault(handoff.agent, []).append(handoff)
            elif handoff.run:
                work.over += 1
        for request in crew.open_requests():
            handed = crew.handoffs.get(request.handoff_id or "")
            work.requests.setdefault(handed.agent if handed else request.agent_id, []).append(request)

    # -------------------------------------------------------------- registered agents

    def _registered(self, crew: CrewState, registered: Registered, now: datetime) -> _Entry:
        spec = registered.spec
        handed = self._work.open.get(spec.id, [])
        asked = self._work.requests.get(spec.id, [])
        last = crew.handoffs.get(registered.last)
        row = FleetRow(
            TYPE + spec.id,
            spec.id,
            "·",
            "dim",
            "idle",
            badge=spec.type.badge,
            version=spec.version,
            floor=crew.holder == spec.id,
            queued=sum(each.state is HandoffState.QUEUED for each in handed),
            last=last_result(last),
            used=f"{registered.successes}/{registered.runs}" if registered.runs else "-",
            tools="degraded" if registered.spec.tools.degraded else "ok",
            work=clean_line(spec.description, limit=200),
            note=_note(last),
            asked=_with_ideas(first_request(asked, now), crew, spec.id) if asked else None,
        )
        busiest = min(handed, key=_rank, default=None)
        waits = [each for each in asked if each.reason_code != TALKS]
        if busiest is not None:
            return _busy(row, busiest, waits, now)
        if waits:
            since = waits[0].created_at.isoformat()
            return _Entry(Group.WAITING, since, _as(row, "?", "warning", "waiting"))
        if not registered.enabled:
            return _Entry(Group.OFF, "", _as(row, "⊘", "dim", "off"), timed=False)
        if last is not None and last.state in (HandoffState.FAILED, HandoffState.TIMED_OUT):
            failed = _as(row, last.state.glyph, "error", last.state.words)
            return _Entry(Group.FAILED, last.moves[-1].at, failed)
        return _Entry(Group.IDLE, last.moves[-1].at if last is not None else "", row)

    def _strangers(self, crew: CrewState, now: datetime) -> Iterable[_Entry]:
        """Who asks and is not registered: sub-agents, and the crew's manager itself."""
        for name, asked in self._work.requests.items():
            if name not in crew.agents:
                row = FleetRow(TYPE + name, name, "?", "warning", "waiting", asked=first_request(asked, now))
                yield _Entry(Group.WAITING, asked[0].created_at.isoformat(), row)

    # -------------------------------------------------------------- agents of the engine

    def _live(
        self, crew: CrewState | None, agents: Iterable[AgentState], now: datetime, faults: Collection[str]
    ) -> Iterable[_Entry]:
        for state in agents:
            handoff = crew.handoff_of(state.agent_id) if crew is not None else None
            if state.deleted or state.handed_back or state.proves:
                continue
            if crew is not None and handoff is None and state.hands_back:
                continue  # it is being made, and shown in its agent's row a moment later
            if crew and handoff and (handoff.agent in crew.agents or not handoff.open):
                continue  # another row shows the run already, or it is over
            # A fault of the program has no event.
            about = "fault" if state.agent_id in faults else ""
            before = self._known.get(state.agent_id)
            if before is None or before[:2] != (state.version, about):
                before = (state.version, about, _entry(state, handoff, fault=bool(about)))
                self._known[state.agent_id] = before
            entry = before[2]
            if entry.row.asked is not None and entry.since:
                waited = short_duration(seconds_since(entry.since, now))
                entry = replace(entry, row=replace(entry.row, asked=replace(entry.row.asked, waited=waited)))
            yield entry


def _place(entry: _Entry) -> tuple[Group, bool, str, bool, str]:
    """Of those that do nothing the operator's own agents come first, then the roles that could be asked."""
    role = entry.row.key.startswith(TYPE)
    return entry.group, role and entry.group >= Group.IDLE, entry.since or "~", role, entry.row.name


def _as(row: FleetRow, mark: str, style: str, state: str, **more: Any) -> FleetRow:
    return replace(row, mark=mark, style=style, state=state, **more)


def _rank(handoff: Handoff) -> tuple[int, str]:
    return _GROUPS[handoff.state], handoff.moves[-1].at


def _busy(row: FleetRow, handoff: Handoff, waits: Sequence[HumanRequest], now: datetime) -> _Entry:
    """The row of an agent that works on something."""
    state, since = handoff.state, handoff.moves[-1].at
    group = Group.WAITING if waits else _GROUPS[state]
    word, timed = state.words, True
    talks = row.asked is not None and not waits and state is HandoffState.WAITING_HUMAN
    mark, style = state.glyph, state_style(state)
    if talks:
        group, word, mark, style = Group.RUNNING, "talking", HandoffState.RUNNING.glyph, "accent"
    elif state is HandoffState.RUNNING:
        limit = f"/{handoff.limit_s:.0f}" if handoff.limit_s else ""
        word, timed = f"{state.words} {seconds_used(handoff, now):.0f}{limit}s", False
    elif waits:
        mark, style, since = "?", "warning", waits[0].created_at.isoformat()
        word = "waiting"
    task = clean_line(handoff.context.task_description, limit=160)
    work = " · ".join(filter(None, (clean_line(handoff.note, limit=80), task, handoff.id)))
    return _Entry(group, since, _as(row, mark, style, word, work=work), timed)


def last_result(handoff: Handoff | None) -> str:
    """What came last, with how sure it was; `-` where nothing came, or nobody said how sure."""
    if handoff is None or handoff.result is None:
        return "-"
    sure = handoff.result.confidence_source is not ConfidenceSource.NONE
    confidence = f"{handoff.result.confidence:.2f}" if sure else ("-" if handoff.result.success else "")
    return f"{handoff.state.glyph}{confidence}"


def _note(handoff: Handoff | None) -> str:
    if handoff is None or handoff.result is None:
        return ""
    result = handoff.result
    if result.error is not None:
        return clean_line(f"{handoff.id} {result.error_code or ''}: {result.end}", limit=600)
    words = result.key_findings[0] if result.key_findings else result.output
    return clean_line(f"{handoff.id}: {words}", limit=600)


def _with_ideas(asked: Asked, crew: CrewState, agent: str) -> Asked:
    """What a role asks, with the ideas that it has parked so far."""
    ideas = " · ".join(f"{idea.id} {clean_line(idea.text, limit=80)}" for idea in crew.parked(agent))
    return replace(asked, context=f"{asked.context} parked: {ideas}".strip()) if ideas else asked


def first_request(requests: Sequence[HumanRequest], now: datetime) -> Asked:
    """The first of an agent's open requests: what waits before what only listens."""
    ordered = sorted(requests, key=lambda request: request.reason_code == TALKS)
    request = ordered[0]
    options = []
    for option in request.options:
        outputs = option.args.get("outputs")
        draft = json.dumps(outputs, ensure_ascii=False, indent=2) if outputs else ""
        words = "must" if option.needs_words else option.words
        options.append(AskOption(option.label, words, draft))
    return Asked(
        request.id,
        request.title + (f" (asked {request.times} times)" if request.times > 1 else ""),
        request.question,
        tuple(options),
        request.context,
        True,
        short_duration(seconds_since(request.created_at, now)),
        len(ordered) - 1,
    )


def _entry(state: AgentState, handoff: Handoff | None, *, fault: bool) -> _Entry:
    """The row of an agent of the engine."""
    goal = state.goal or next(iter(reversed(state.goals.values())), None)
    work = clean_line(goal.text, limit=200) if goal is not None else ""
    badge = "ASL" if state.reasons else "BDI"
    if handoff is not None and handoff.spec is not None:
        badge = handoff.spec.type.badge or badge
    row = FleetRow(LIVE + state.agent_id, state.agent_id, "·", "dim", "idle", badge=badge, work=work)
    row = replace(row, holder=state.control.holder)
    if fault:
        note = "it ended by a fault of the program; ? says which"
        return _Entry(Group.FAILED, "", _as(row, "✗", "error", "fault", note=note))
    if needs := [need for need in needs_of(state) if not need.of]:
        asked = _needed(needs)
        return _Entry(
            Group.WAITING, needs[0].since or state.at, _as(row, "?", "warning", "waiting", asked=asked)
        )
    if state.mode in (Mode.RUNNING, Mode.STEPPING):
        return _Entry(Group.RUNNING, "", _as(row, "▶", "accent", "running"), timed=False)
    if state.mode in (Mode.PAUSED, Mode.FROZEN, Mode.SHELL) and state.open_goals:
        return _Entry(Group.PAUSED, state.at, _as(row, "‖", "text", state.mode.value.lower()))
    if state.mode is Mode.STOPPED:
        return _Entry(Group.OFF, "", _as(row, "⊘", "dim", "stopped"), timed=False)
    mark = goal.ending[0] if goal is not None else ""
    if goal is not None and mark == "failed":
        return _Entry(Group.FAILED, state.at, _as(row, "✗", "error", "failed", last="✗", note=goal.reason))
    last = {"achieved": "✓-", "partly": "◐-"}.get(mark, "-")
    return _Entry(Group.IDLE, state.at if goal is not None else "", replace(row, last=last))


def _needed(needs: Sequence[Need]) -> Asked:
    need = needs[0]
    shown = tuple(map(AskOption, APPROVALS if need.kind is NeedKind.APPROVAL else (OPENS,)))
    return Asked(need.thing or need.key, need.kind.value, need.what, shown, more=len(needs) - 1)


# ------------------------------------------------------------------ what the dialogs of a crew share

STYLES = {"✓": "success", "✗": "error", "!": "warning", "?": "warning", "●": "accent", "▶": "accent"}
"""The style of a mark; of others it is dim."""


def handoff_style(mark: str) -> str:
    """The style of a mark."""
    return STYLES.get(mark, "dim")


def handoff_status(handoff: Handoff) -> str:
    """How it stands: mark and word, never colour alone."""
    return f"{handoff.state.glyph} {handoff.state.words}"


def last_transition(handoff: Handoff, target: str) -> Move | None:
    """The last time that it came to stand there."""
    return next((move for move in reversed(handoff.moves) if move.target == target), None)


def moment_text(at: str) -> str:
    """A moment as day and time of day."""
    return f"{at[:10]} {at[11:19]} UTC"


def value_text(value: Any) -> str:
    """A value as text: words as they are, all else as JSON."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return value
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, list | tuple) and all(isinstance(part, str) for part in value):
        return ", ".join(value)
    return json.dumps(value, ensure_ascii=False, indent=1, default=str)


def handoff_title(handoff: Handoff) -> str:
    """What is done, by whom."""
    name = handoff.spec.name if handoff.spec is not None else handoff.agent
    task = clean_line(handoff.context.task_description, limit=80)
    return f"{name}: {task}" if task else name
