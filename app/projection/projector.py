"""The projector: folds the event stream and knows what every pane would show."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Any

from app.projection.event_lines import call_text, line_of
from engine.core import events as ev
from engine.core.actions import ResultStatus
from engine.core.agents import ACP
from engine.core.beliefs import BeliefSource
from engine.core.fold import apply
from engine.core.journal import Event, of_agent
from engine.core.state import AgentState
from engine.core.text import clean, clean_line
from engine.inquiry.waiting import WaitKind, waiting_for
from widgets.base.facts import ListModel
from widgets.base.line_pane import Notice
from widgets.base.rows import Row
from widgets.panes.mind_stream import MindKind, mind_row
from widgets.panes.session import SessionChunk, SessionModel, size_text

MIND_KEPT = 2_000
SAID_LIMIT = 2_000
"""Characters of a model's answer in one line of the mind pane."""
_SAID_KINDS: dict[str, MindKind] = {"thinking": "deliberation", "text": "thought", "tool input": "plan"}
SLICE = 32
"""Events of a story that are taken in between two turns of the loop."""
SESSION_KEPT = 400
"""Chunks of the session kept for an agent that is not shown."""
LAST_WORDS = 6
"""Lines of a failed step's output that the operator is shown when it is their turn."""
RESULT_LINES = 12
"""Lines of a native command's answer that the session pane shows."""
READING = Notice("reading what has happened …", "loading")
NOTHING_CHANGED = "nothing changed while you held the shell"


class Pane(StrEnum):
    """The panes that can be out of date."""

    GOALS = "goals"
    PLAN = "plan"
    MEMORY = "memory"
    ERRORS = "errors"
    SESSION = "session"
    MIND = "mind"
    STATUS = "status"


_ALL = frozenset(Pane)
PANES_CONCERNED: dict[type[ev.Payload], frozenset[Pane]] = {
    **dict.fromkeys((ev.ActionOutput, ev.JobOutput), frozenset({Pane.SESSION})),
    ev.ModelSaid: frozenset({Pane.MIND}),
}
"""The panes that an event changes, where not all; the status line is drawn every frame."""
_NOT_OF_THE_MIND = (
    *(ev.ActionStarted, ev.ActionHeld, ev.SnapshotFailed),
    *(ev.StepGranted, ev.SessionOpened, ev.SessionClosed),
)
"""Events that the plan and the session pane show already."""

_MIND_KINDS: dict[str, MindKind] = {
    "goal": "decision",
    "plan": "plan",
    "thought": "thought",
    "action": "decision",
    "warning": "reflection",
    "error": "note",
    "success": "note",
    "operator": "note",
    "session": "note",
}


@dataclass(slots=True)
class _Shown:
    """What is kept of one agent."""

    state: AgentState
    mind: deque[Row] = field(default_factory=lambda: deque(maxlen=MIND_KEPT))
    chunks: deque[SessionChunk] = field(default_factory=lambda: deque(maxlen=SESSION_KEPT))
    fresh: deque[SessionChunk] = field(default_factory=lambda: deque(maxlen=SESSION_KEPT))
    """Chunks that the pane has not been given yet; the oldest go where nobody looks for long."""
    session: SessionModel = field(default_factory=SessionModel)
    hidden: int = 0
    jobs_hidden: dict[str, int] = field(default_factory=dict)
    """Characters of each running job's output that were not kept."""
    saying: str = ""
    """The stream of a model's answer that the last line of the mind pane is part of."""
    said: str = ""
    """What of the answer stands in that line, or is to begin one."""
    asked: str = ""
    """Since when a model is asked, ISO 8601 UTC; empty where none is."""
    heard: int = 0
    """Characters of its answer so far."""
    waits: tuple[str, float, str] | None = None
    """Why the call waits before it is made again, for how many seconds, and since when."""
    last_words: dict[str, str] = field(default_factory=dict)
    """The end of what each failing step printed last."""
    story_read: bool = True
    """Whether the mind and the session hold what has happened; else the state alone is kept up."""
    waiting: list[Event] | None = None
    """What has come since its story began to be read."""


class Projector:
    """States and rings of every agent; the cockpit asks it for models once a frame.

    Args:
        operator: who looks; what others did is shown with their names.
    """

    def __init__(self, operator: str = "") -> None:
        self._operator = operator
        self._agents: dict[str, _Shown] = {}
        self.selected = ""
        self.dirty: set[Pane] = set()

    @property
    def _shown(self) -> _Shown | None:
        return self._agents.get(self.selected)

    # -------------------------------------------------------------- input

    def add(self, agent: str, before: AgentState, past: list[Event]) -> None:
        """Take an agent up with its newest events, and its state before them."""
        shown = self._agents[agent] = _Shown(before)
        for event in past:
            self._bring(shown, event, ev.payload_of(event))
        if not self.selected:
            self.select(agent)
        self.dirty |= _ALL

    def add_without_story(self, agent: str, state: AgentState) -> None:
        """Take an agent up by its state alone; its story is read when it is shown."""
        self._agents[agent] = _Shown(state, story_read=False)
        if not self.selected:
            self.select(agent)
        self.dirty.add(Pane.GOALS)

    @property
    def story_read(self) -> bool:
        """Whether the mind and the session of the agent that is shown hold what has happened."""
        return self._shown is None or self._shown.story_read

    def story_to_read(self) -> str:
        """The agent that is shown, where its story is to be read and nobody does yet; else empty.

        Whoever has it reads it (`tell`); what happens meanwhile is kept.
        """
        shown = self._shown
        if shown is None or shown.story_read or shown.waiting is not None:
            return ""
        shown.waiting = []
        return self.selected

    def read_story_into(self, agent: str, before: AgentState, past: list[Event]) -> Iterator[None]:
        """Take an agent's story in, a few events at a time, up to what its state knows already."""
        old, shown = self._agents.get(agent), _Shown(before)
        for number, event in enumerate(past, 1):
            if old is None or event.version > old.state.version:
                break
            self._bring(shown, event, ev.payload_of(event))
            if not number % SLICE:
                yield
        if old is None or self._agents.get(agent) is not old:
            return
        for event in old.waiting or ():
            if event.version > shown.state.version:
                self._bring(shown, event, ev.payload_of(event))
        self._agents[agent] = shown
        if agent == self.selected:
            self.select(agent)

    def take(self, event: Event) -> ev.Payload | None:
        """Bring in a new event; answers its payload when it belongs to an agent on board."""
        if not of_agent(event.stream):
            return None
        payload = ev.payload_of(event)
        if isinstance(payload, ev.AgentCreated):
            self._agents[event.stream] = _Shown(AgentState())
        shown = self._agents.get(event.stream)
        if shown is None or event.version <= shown.state.version:
            return None
        if shown.story_read:
            self._bring(shown, event, payload)
        else:
            apply(shown.state, event, payload)
            if shown.waiting is not None:
                shown.waiting.append(event)
        if isinstance(payload, ev.AgentCreated) and not self.selected:
            self.select(event.stream)
        if isinstance(payload, ev.AgentDeleted):
            self._drop(event.stream)
        if event.stream == self.selected:
            self.dirty |= PANES_CONCERNED.get(type(payload), _ALL)
        else:
            self.dirty.add(Pane.GOALS)
        return payload

    def _drop(self, agent: str) -> None:
        del self._agents[agent]
        if self.selected == agent:
            self.selected = ""
            self.select(next(iter(self._agents), ""))

    def _bring(self, shown: _Shown, event: Event, payload: ev.Payload) -> None:
        self._remember(shown, event, payload)
        apply(shown.state, event, payload)

    def _remember(self, shown: _Shown, event: Event, payload: ev.Payload) -> None:
        if isinstance(payload, ev.ModelSaid):
            _hear(shown, event, payload)
            return
        if isinstance(payload, ev.PlanAsked | ev.DecisionAsked):
            shown.asked, shown.heard, shown.waits = event.at, 0, None
        shown.saying = ""
        line = None if _shown_elsewhere(payload) else line_of(event, payload)
        by = line.by if line is not None and line.by != self._operator else ""
        if line is not None and not _told_by_its_step(shown.state, payload):
            shown.mind.append(mind_row(line.ref, _MIND_KINDS[line.kind], line.text, line.time, by))
        chunks = self._chunks(shown, payload)
        shown.chunks.extend(chunks)
        if event.stream == self.selected:
            shown.fresh.extend(chunks)

    def asking(self, now: datetime) -> str:
        """How long the selected agent's model has been asked and what has come, or when it is asked again."""
        shown = self._shown
        if shown is None or not shown.asked or waiting_for(shown.state).kind is not WaitKind.MODEL:
            return ""
        if shown.waits is not None:
            why, seconds, since = shown.waits
            left = seconds - _seconds(since, now)
            if left > 0:
                return f"again in {left:.0f} s: {why}, r asks now"
        tokens = f"{-(-shown.heard // 4):,} tokens" if shown.heard else "no answer yet"
        return f"model {_seconds(shown.asked, now):.0f} s: {tokens}"

    # -------------------------------------------------------------- selection

    def select(self, agent: str) -> bool:
        """Show another agent; False when there is none of that name."""
        if agent and agent not in self._agents:
            return False
        self.selected = agent
        shown = self._agents.get(agent)
        if shown is not None:
            shown.fresh = shown.chunks.copy()
        self.dirty |= _ALL
        return True

    @property
    def states(self) -> list[AgentState]:
        """The state of every agent, oldest agent first."""
        return [shown.state for shown in self._agents.values()]

    @property
    def state(self) -> AgentState | None:
        """The state of the agent that is shown."""
        return self._shown.state if self._shown else None

    def out_of_date(self) -> None:
        """Have everything drawn anew."""
        self.dirty |= _ALL

    # -------------------------------------------------------------- output

    def mind(self) -> ListModel:
        """The mind pane of the agent that is shown."""
        shown = self._shown
        if shown is not None and not shown.story_read:
            return ListModel(notice=READING)
        return ListModel(rows=tuple(shown.mind) if shown else ())

    def session(self) -> tuple[list[SessionChunk], SessionModel]:
        """What the session pane has not seen yet, and how the session stands."""
        shown = self._shown
        if shown is None or not shown.story_read:
            return [], SessionModel(notice=None if shown is None else READING)
        fresh = list(shown.fresh)
        shown.fresh.clear()
        return fresh, replace(shown.session, jobs=len(shown.state.running_jobs))

    def last_words(self, step: str) -> str:
        """The end of what a step printed when it failed; empty when it printed nothing."""
        return self._shown.last_words.get(step, "") if self._shown else ""

    # -------------------------------------------------------------- the session pane

    def _chunks(self, shown: _Shown, payload: ev.Payload) -> list[SessionChunk]:
        match payload:
            case ev.ActionStarted():
                return _started(shown, self._operator)
            case ev.ActionFinished():
                return self._finished(shown, payload)
            case ev.ActionCancelled():
                shown.session = SessionModel(exit_status=130)
            case ev.ActionOutput() if payload.stream != "terminal":
                # What a terminal prints is the record of a screen, not lines to read.
                shown.hidden += payload.skipped
                return [SessionChunk(payload.text, "err" if payload.stream == "stderr" else "out")]
            case ev.JobStarted() | ev.JobOutput() | ev.JobEnded():
                return [_job_chunk(shown, payload)]
            case ev.AgentOpened() if not shown.chunks:
                return []
        if isinstance(payload, ev.ActionOutcomeUnknown):
            shown.session = SessionModel()
        note = _note(shown, payload)
        return [SessionChunk(note, "note")] if note else []

    def _finished(self, shown: _Shown, action_finished: ev.ActionFinished) -> list[SessionChunk]:
        result = action_finished.result
        code = result.get("return_code")
        good = action_finished.status is ResultStatus.SUCCESS
        shown.session = SessionModel(
            exit_status=code if isinstance(code, int) else (0 if good else 1),
            duration_s=action_finished.duration_ms / 1000,
            bytes_hidden=shown.hidden,
        )
        action = shown.state.action
        if not good and action is not None and action.step:
            shown.last_words[action.step] = _last_words(shown.chunks)
        if action is not None and action.shell:
            failed = [] if good else [SessionChunk(f"{action_finished.summary}\n", "err")]
            return [*_typed_commands(result), *failed]
        if "return_code" in result:
            message = result.get("message")
            return [SessionChunk(str(message), "note")] if message and not good else []
        return [SessionChunk(text, "out" if good else "err") for text in _answer_lines(result)]


def _seconds(since: str, now: datetime) -> float:
    return max(0.0, (now - datetime.fromisoformat(since)).total_seconds())


def _hear(shown: _Shown, event: Event, payload: ev.ModelSaid) -> None:
    """Let a line of the mind pane grow as the model speaks; a long answer continues in a new one."""
    if payload.stream == "wait":
        why, _, seconds = payload.text.partition(" ")
        shown.waits, shown.heard, shown.saying = (why, float(seconds), event.at), 0, ""
        text = f"{why}: asks again in {seconds} s; r asks now"
        shown.mind.append(mind_row(event.ref, "thought", text, event.at[11:19]))
        return
    shown.heard += len(payload.text)
    shown.waits = None
    goes_on = shown.saying == payload.stream and len(shown.said) < SAID_LIMIT
    first = shown.mind.pop() if goes_on and shown.said.strip() and shown.mind else None
    ref, at = (first.key, first.pieces[0].text.strip()) if first is not None else (event.ref, event.at[11:19])
    parts = _parts(shown.state, payload.stream, (shown.said if goes_on else "") + payload.text)
    for number, text in enumerate(parts):
        if text.strip():
            key = f"{event.ref}/{number}" if number else ref
            shown.mind.append(mind_row(key, _SAID_KINDS.get(payload.stream, "thought"), text, at))
    shown.said, shown.saying = parts[-1], payload.stream


def _parts(state: AgentState, stream: str, text: str) -> list[str]:
    """What is shown apart of what was said: of another program each call and each message."""
    if state.config.thinker != ACP:
        return [text]
    return text.split("\n" if stream == "tool input" else "\n\n")


def _shown_elsewhere(payload: ev.Payload) -> bool:
    """Whether another pane shows this already: the session its actions, working memory what is perceived."""
    if isinstance(payload, ev.BeliefAdded):
        return payload.source is BeliefSource.PERCEPTION
    return isinstance(payload, _NOT_OF_THE_MIND)


def _told_by_its_step(state: AgentState, payload: ev.Payload) -> bool:
    """Whether the end of a plan step will say what this end of an action says."""
    return isinstance(payload, ev.ActionFinished) and state.action is not None and bool(state.action.step)


def _started(shown: _Shown, operator: str) -> list[SessionChunk]:
    """What a started action is shown as, where it runs in the sandbox."""
    action = shown.state.action
    if action is None or action.tool != "simple_coder":
        return []
    prompt = shown.state.sandbox.prompt
    if action.shell:
        name = clean_line(action.actor.removeprefix("operator:"))
        name = name if operator and name != operator else "you"
        shown.session = SessionModel(running=True, held_by=name)
        return [SessionChunk(f"{prompt} {name} took the shell", "prompt")]
    shown.session, shown.hidden = SessionModel(running=True), 0
    who = "" if action.actor == "agent" else f"  ({action.actor.removeprefix('operator:')})"
    command = action.args.get("command") if action.command == "run" else None
    typed = command if isinstance(command, str) else call_text(action.command, action.args)
    return [SessionChunk(f"{prompt} {typed}{who}", "prompt")]


def _note(shown: _Shown, payload: ev.Payload) -> str:
    """What is noted in the session pane of an event; empty for most."""
    match payload:
        case ev.SnapshotFailed():
            return f"no snapshot: {clean_line(payload.reason)}"
        case ev.ActionCancelled():
            return f"cut off: {payload.reason}"
        case ev.WorldPerceived() if shown.state.returned is not None:
            return NOTHING_CHANGED
        case ev.ChangesOffered():
            # The commands stand above already.
            offers = [offer for offer in payload.offers if offer.key != "operator.commands"]
            return _shortened([clean_line(offer.text) for offer in offers])
        case ev.ActionOutcomeUnknown():
            return "the program ended here; the outcome is unknown"
        case ev.AgentOpened():
            return "— a new session —"
    return ""


def _job_chunk(shown: _Shown, payload: ev.JobStarted | ev.JobOutput | ev.JobEnded) -> SessionChunk:
    job = clean_line(payload.job, limit=16)
    match payload:
        case ev.JobStarted():
            return SessionChunk(clean_line(payload.command), "prompt", job)
        case ev.JobOutput():
            shown.jobs_hidden[payload.job] = shown.jobs_hidden.get(payload.job, 0) + payload.skipped
            return SessionChunk(payload.text, "err" if payload.stream == "stderr" else "out", job)
        case ev.JobEnded():
            hidden = shown.jobs_hidden.pop(payload.job, 0)
            more = f" · {size_text(hidden)} not shown" if hidden else ""
            return SessionChunk(payload.message + more, "note", job)


def _last_words(chunks: deque[SessionChunk]) -> str:
    """The last lines after the newest prompt that say something."""
    texts: list[str] = []
    for chunk in reversed(chunks):
        if chunk.source:
            continue  # a background job's words, not the step's
        if chunk.kind == "prompt":
            break
        texts.append(chunk.text)
    lines = [line.rstrip() for line in clean("".join(reversed(texts))).splitlines()]
    telling = [line for line in lines if line.strip("-=~_ ")]
    return "\n".join(telling[-LAST_WORDS:])


def _typed_commands(result: dict[str, Any]) -> list[SessionChunk]:
    """What the operator typed at the shell, by the shell's own account."""
    typed = result.get("commands")
    lines = [clean_line(str(line)) for line in typed] if isinstance(typed, list) else []
    return [SessionChunk(f"$ {line}  (you)", "prompt") for line in lines]


def _answer_lines(result: dict[str, Any]) -> list[str]:
    """A native command's answer, cut to a few lines."""
    text = result.get("message") or result.get("content")
    lines = [str(item) for item in result.get("items", [])] if text is None else str(text).splitlines()
    return [_shortened(lines) + "\n"] if lines else []


def _shortened(lines: list[str]) -> str:
    """The first lines, and how many more there are."""
    more = len(lines) - RESULT_LINES
    return "\n".join(lines[:RESULT_LINES] + ([f"… {more} more lines"] if more > 0 else []))
