"""The fleet board's model, from what a crew and all agents of the engine are doing (ontology spec §4).

Pure but for what it remembers: an agent of which nothing happened is not looked at again, so that two hundred
of them can be looked at ten times a second.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import IntEnum

from engine.agents.context import ORCHESTRATOR
from engine.agents.human import HumanRequest
from engine.agents.kinds import ConfidenceSource, HandoffState
from engine.crew.state import CrewState, Handoff, Registered
from engine.domain.goal import GoalStatus
from engine.domain.running import RUN_TYPES
from engine.domain.state import AgentState, Mode
from engine.domain.text import clean_line
from engine.inquiry import Need, NeedKind, needs_of
from widgets.dialogs.fleet import FleetModel
from widgets.fleet_grid import Asked, AskOption, FleetRow, label_at

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


def style_of(state: HandoffState) -> str:
    """How a handoff's state is coloured, beside its mark and its word."""
    return _STYLES.get(state, "error")


def lasted_s(since: str | datetime, now: datetime) -> float:
    """Seconds since a moment; 0 where it is none, or still to come."""
    if not since:
        return 0.0
    began = datetime.fromisoformat(since) if isinstance(since, str) else since
    return max(0.0, (now - began).total_seconds())


def short(seconds: float) -> str:
    """A time in few cells: `12s`, `4m`, `3h`, `2d`."""
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "m")):
        if seconds >= size:
            return f"{int(seconds // size)}{unit}"
    return f"{int(seconds)}s"


def at_work_s(handoff: Handoff, now: datetime) -> float:
    """Seconds of its deadline that a handoff has used up."""
    running = handoff.state is HandoffState.RUNNING
    return handoff.spent_s + (lasted_s(handoff.moves[-1].at, now) if running else 0.0)


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
        said: str = "",
    ) -> FleetModel:
        """What the board shows.

        Args:
            crew: what the crew knows; None while it is not open.
            agents: the states of the engine's agents.
            now: what time it is, aware.
            faults: agents that ended by a fault of the program.
            said: what came of the last key.
        """
        entries: list[_Entry] = []
        if crew is not None:
            self._look(crew)
            entries += [self._registered(crew, one, now) for one in crew.agents.values()]
            entries += self._strangers(crew, now)
        entries += self._live(crew, agents, now, faults)
        # Who lives comes before those that only could be asked.
        entries.sort(
            key=lambda one: (one.group, one.since or "~", one.row.key.startswith(TYPE), one.row.name)
        )
        rows = tuple(self._row(one, now) for one in entries)
        counts = Counter(one.group for one in entries)
        parts = [f"{len(rows)} agents" if len(rows) != 1 else "1 agent"]
        parts += [f"{counts[group]} {word}" for group, word in _WORDS.items() if counts[group]]
        if over := self._work.over:
            parts.append(f"{over:,} ended run{'' if over == 1 else 's'}: h")
        if crew is not None and crew.holder != ORCHESTRATOR:
            parts.append(f"◆ {crew.holder} speaks with you")
        return FleetModel(rows, " · ".join(parts), said)

    def _row(self, entry: _Entry, now: datetime) -> FleetRow:
        row = entry.row
        label = self._labels.get(row.key)
        if label is None:
            label = self._labels[row.key] = label_at(len(self._labels))
        state = (
            f"{row.state} {short(lasted_s(entry.since, now))}" if entry.timed and entry.since else row.state
        )
        return replace(row, label=label, state=state)

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

    def _registered(self, crew: CrewState, one: Registered, now: datetime) -> _Entry:
        spec = one.spec
        handed = self._work.open.get(spec.id, [])
        asked = self._work.requests.get(spec.id, [])
        last = crew.handoffs.get(one.last)
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
            last=last_of(last),
            used=f"{one.successes}/{one.runs}" if one.runs else "-",
            tools=tools_of(crew, one),
            work=clean_line(spec.description, limit=200),
            note=_note(last),
            asked=_with_ideas(asked_by(asked, now), crew, spec.id) if asked else None,
        )
        busiest = min(handed, key=_rank, default=None)
        waits = [each for each in asked if each.reason_code != TALKS]
        if busiest is not None:
            return _busy(row, busiest, waits, now)
        if waits:
            since = waits[0].created_at.isoformat()
            return _Entry(Group.WAITING, since, replace(row, mark="?", style="warning", state="waiting"))
        if not one.enabled:
            return _Entry(Group.OFF, "", replace(row, mark="⊘", state="off"), timed=False)
        if last is not None and last.state in (HandoffState.FAILED, HandoffState.TIMED_OUT):
            failed = replace(row, mark=last.state.glyph, style="error", state=last.state.words)
            return _Entry(Group.FAILED, last.moves[-1].at, failed)
        return _Entry(Group.IDLE, last.moves[-1].at if last is not None else "", row)

    def _strangers(self, crew: CrewState, now: datetime) -> Iterable[_Entry]:
        """Who asks and is not registered: sub-agents, and the crew's manager itself."""
        for name, asked in self._work.requests.items():
            if name not in crew.agents:
                row = FleetRow(TYPE + name, name, "?", "warning", "waiting", asked=asked_by(asked, now))
                yield _Entry(Group.WAITING, asked[0].created_at.isoformat(), row)

    # -------------------------------------------------------------- agents of the engine

    def _live(
        self, crew: CrewState | None, agents: Iterable[AgentState], now: datetime, faults: Collection[str]
    ) -> Iterable[_Entry]:
        for state in agents:
            handoff = crew.handoff_of(state.agent_id) if crew is not None else None
            history = state.deleted or state.handed_back or state.proves
            if history or (handoff is not None and self._stands_for(crew, handoff)):
                continue
            if handoff is None and crew is not None and state.agent_type in RUN_TYPES:
                continue  # it is being made, and told in its agent's row a moment later
            # A fault of the program has no event.
            about = "fault" if state.agent_id in faults else ""
            before = self._known.get(state.agent_id)
            if before is None or before[:2] != (state.version, about):
                before = (state.version, about, _entry(state, handoff, fault=bool(about)))
                self._known[state.agent_id] = before
            entry = before[2]
            if entry.row.asked is not None and entry.since:
                waited = short(lasted_s(entry.since, now))
                entry = replace(entry, row=replace(entry.row, asked=replace(entry.row.asked, waited=waited)))
            yield entry

    @staticmethod
    def _stands_for(crew: CrewState | None, handoff: Handoff) -> bool:
        """Whether another row tells of a run already, or it is over."""
        return crew is None or handoff.agent in crew.agents or not handoff.open


def _rank(handoff: Handoff) -> tuple[int, str]:
    return _GROUPS[handoff.state], handoff.moves[-1].at


def _busy(row: FleetRow, handoff: Handoff, waits: Sequence[HumanRequest], now: datetime) -> _Entry:
    """The row of an agent that works on something."""
    state, since = handoff.state, handoff.moves[-1].at
    group = Group.WAITING if waits else _GROUPS[state]
    word, timed = state.words, True
    talks = row.asked is not None and not waits and state is HandoffState.WAITING_HUMAN
    mark, style = state.glyph, style_of(state)
    if talks:
        group, word, mark, style = Group.RUNNING, "talking", HandoffState.RUNNING.glyph, "accent"
    elif state is HandoffState.RUNNING:
        limit = f"/{handoff.limit_s:.0f}" if handoff.limit_s else ""
        word, timed = f"{state.words} {at_work_s(handoff, now):.0f}{limit}s", False
    elif waits:
        mark, style, since = "?", "warning", waits[0].created_at.isoformat()
        word = "waiting"
    task = clean_line(handoff.context.task_description, limit=160)
    work = " · ".join(filter(None, (clean_line(handoff.note, limit=80), task, handoff.id)))
    return _Entry(group, since, replace(row, mark=mark, style=style, state=word, work=work), timed)


def last_of(handoff: Handoff | None) -> str:
    """What came last, with how sure it was; `-` where nothing came, or nobody said how sure."""
    if handoff is None or handoff.result is None:
        return "-"
    sure = handoff.result.confidence_source is not ConfidenceSource.NONE
    told = f"{handoff.result.confidence:.2f}" if sure else ("-" if handoff.result.success else "")
    return f"{handoff.state.glyph}{told}"


def _note(handoff: Handoff | None) -> str:
    if handoff is None or handoff.result is None:
        return ""
    result = handoff.result
    if result.error is not None:
        return clean_line(f"{handoff.id} {result.error_code or ''}: {result.error}", limit=600)
    said = result.key_findings[0] if result.key_findings else result.output
    return clean_line(f"{handoff.id}: {said}", limit=600)


def _with_ideas(asked: Asked, crew: CrewState, agent: str) -> Asked:
    """What a role asks, with the ideas that it has parked so far."""
    ideas = " · ".join(f"{one.id} {clean_line(one.text, limit=80)}" for one in crew.parked(agent))
    return replace(asked, context=f"{asked.context} parked: {ideas}".strip()) if ideas else asked


_NOT_THERE = ("down", "waits for your leave")
"""States of a server (`engine.mcp.health.ServerState`) in which none of its tools can be had."""


def tools_of(crew: CrewState, one: Registered) -> str:
    """Whether its servers can be had: ok, degraded, or down where a required one is."""
    worst = "degraded" if one.spec.tools.degraded else "ok"
    for use in one.spec.tools.mcp_servers:
        server = crew.servers.get(use.server)
        if server is not None and server.state in _NOT_THERE and use.required:
            return "down"
        if server is not None and server.state in (*_NOT_THERE, "degraded"):
            worst = "degraded"
    return worst


def asked_by(requests: Sequence[HumanRequest], now: datetime) -> Asked:
    """The first of an agent's open requests: what waits before what only listens."""
    ordered = sorted(requests, key=lambda one: one.reason_code == TALKS)
    one = ordered[0]
    options = []
    for option in one.options:
        usual = " (by default)" if option.id == one.default_option else ""
        options.append(AskOption(option.label + usual, "must" if option.needs_words else option.words))
    return Asked(
        one.id,
        one.title + (f" (asked {one.times} times)" if one.times > 1 else ""),
        one.question,
        tuple(options),
        one.context,
        one.allow_free_text,
        short(lasted_s(one.created_at, now)),
        len(ordered) - 1,
    )


def _entry(state: AgentState, handoff: Handoff | None, *, fault: bool) -> _Entry:
    """The row of an agent of the engine."""
    goal = state.goal or next(iter(reversed(state.goals.values())), None)
    work = clean_line(goal.text, limit=200) if goal is not None else ""
    badge = handoff.spec.type.badge if handoff is not None and handoff.spec is not None else ""
    row = FleetRow(
        LIVE + state.agent_id, state.agent_id, "·", "dim", "idle", badge=badge or _badge(state), work=work
    )
    if fault:
        note = "it ended by a fault of the program; ? says which"
        return _Entry(Group.FAILED, "", replace(row, mark="✗", style="error", state="fault", note=note))
    needs = needs_of(state)
    if needs:
        told = _needed(needs)
        since = needs[0].since or state.at
        return _Entry(
            Group.WAITING, since, replace(row, mark="?", style="warning", state="waiting", asked=told)
        )
    if state.mode in (Mode.RUNNING, Mode.STEPPING):
        return _Entry(Group.RUNNING, "", replace(row, mark="▶", style="accent", state="running"), timed=False)
    if state.mode in (Mode.PAUSED, Mode.FROZEN, Mode.SHELL) and state.open_goals:
        word = state.mode.value.lower()
        return _Entry(Group.PAUSED, state.at, replace(row, mark="‖", style="text", state=word))
    if state.mode is Mode.STOPPED:
        return _Entry(Group.OFF, "", replace(row, mark="⊘", state="stopped"), timed=False)
    if goal is not None and goal.status is GoalStatus.FAILED:
        failed = replace(row, mark="✗", style="error", state="failed", last="✗", note=goal.reason)
        return _Entry(Group.FAILED, state.at, failed)
    done = goal is not None and goal.status is GoalStatus.ACHIEVED
    return _Entry(Group.IDLE, state.at if goal is not None else "", replace(row, last="✓-" if done else "-"))


def _badge(state: AgentState) -> str:
    return "BDI" if not state.reasons else "ASL"


def _needed(needs: Sequence[Need]) -> Asked:
    need = needs[0]
    approves = need.kind is NeedKind.APPROVAL
    options = APPROVALS if approves else (OPENS,)
    shown = tuple(AskOption(label) for label in options)
    return Asked(need.thing or need.key, need.kind.value, need.what, shown, more=len(needs) - 1)
