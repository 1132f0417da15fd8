"""View models of an agent whose goals an AgentSpeak(L) program pursues: pure functions of its state.

View model of the error panel: what went wrong, what was tried against it, what comes next.

View models of the past: the timeline, and the status line of a state that is no longer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from app.projection.event_lines import line_of, strategy_text
from engine.agent.recovery import TAXONOMY, StrategyRecord
from engine.bdi.trace import FrameView, IntentionView, ItemView
from engine.core.agents import HELD_MODES
from engine.core.journal import Event
from engine.core.plan import StepStatus
from engine.core.reasoner import Generation, GenerationStage
from engine.core.recovery import OF_GOALS, Failure, Strategy
from engine.core.state import AgentState
from engine.core.streams import Mark
from engine.core.text import clean_line
from widgets.base.facts import ListModel
from widgets.base.rows import Row
from widgets.panes.beliefs import belief_row
from widgets.panes.errors import error_rows
from widgets.panes.goals import FrameLine, IntentionMark, intention_rows
from widgets.panes.plan import PlanModel, StepLine, StepMark
from widgets.panes.status_bar import StatusModel
from widgets.panes.timeline import TimelineMark, TimelineModel
from widgets.panes.world import SignKind, WorldModel, WorldSign

ERRORS_SHOWN = 50


def errors(state: AgentState) -> ListModel:
    """Open failures, then settled ones, the newest first; of a step that failed again and again the last."""
    settled = [failure for failure in reversed(state.failures) if failure.resolved]
    shown = (open_failures(state) + settled)[:ERRORS_SHOWN]
    opened = sum(not failure.resolved for failure in shown)
    rows = [row for failure in shown for row in _error(state, failure)]
    return ListModel(rows=rows, caption=f"{opened} open" if opened else "")


def open_failures(state: AgentState) -> list[Failure]:
    """What is wrong now: the newest open failure of each step, or of each goal where no step is concerned."""
    newest: dict[tuple[str, str], Failure] = {}
    for failure in reversed(state.failures):
        if not failure.resolved:
            newest.setdefault((failure.goal, failure.step), failure)
    return list(newest.values())


def _error(state: AgentState, failure: Failure) -> list[Row]:
    turn = state.intervention
    waits = turn is not None and (failure.step, failure.goal) == (turn.step, turn.goal)
    recovery = [strategy_text(failure.strategy)] if failure.strategy else []
    if failure.strategy is Strategy.RETRY_WITH_DELAY and failure.of:
        recovery.append(f"{failure.attempt}/{failure.of}")
    if (delay := round(failure.delay_s, 1)) and not failure.resolved:
        recovery.append(f"{delay:g}s")
    if due := _next_try(state, failure):
        recovery.append(f"· next try {due}")
    past = {"tried": _tried(state, failure), "rates": _rates(state, failure)}
    return error_rows(
        failure.event,
        failure.kind.value,
        failure.subject,
        failure.message,
        recovery,
        resolved=failure.resolved,
        worked=_worked(state, failure),
        waits=waits,
        history=" · ".join(f"{name} {text}" for name, text in past.items() if text),
    )


def _worked(state: AgentState, failure: Failure) -> bool:
    """Whether what failed has worked since: the recovery, or the step in the end."""
    place = state.find_step(failure.step)
    if place is None:
        return failure.succeeded is not False
    step = place[1]
    return step.status is StepStatus.COMPLETED and not step.summary.is_a("step.by-hand")


def _next_try(state: AgentState, failure: Failure) -> str:
    """When recovery tries again what failed; empty when it waits for no time."""
    retry = state.retry
    if failure.resolved or retry is None or (retry.goal, retry.step) != (failure.goal, failure.step):
        return ""
    due = datetime.fromisoformat(retry.at) + timedelta(seconds=retry.delay_s)
    return due.strftime("%H:%M:%S")


def _tried(state: AgentState, failure: Failure) -> str:
    """Strategies that were tried on the same step or its goal's plan, with their results, oldest first."""
    marks: dict[str, str] = {}
    for other in state.failures:
        same = other.step == failure.step or other.strategy in OF_GOALS
        if other.goal == failure.goal and same and other.strategy and other.succeeded is not None:
            marks[other.strategy] = marks.get(other.strategy, "") + ("✓" if other.succeeded else "✗")
    return ", ".join(f"{strategy_text(strategy)} {results}" for strategy, results in marks.items())


def _rates(state: AgentState, failure: Failure) -> str:
    """How well the strategies that may answer such a failure have done so far."""
    learned = StrategyRecord(state.recovery_rates, state.resting, state.tick)
    known: list[str] = []
    for strategy, _tries in TAXONOMY[failure.kind].ladder:
        if strategy in OF_GOALS and not state.config.replans:
            continue
        until = learned.rests(failure.kind, strategy)
        rests = f" (rests until tick {until})" if until else ""
        known.append(f"{strategy_text(strategy)} {learned.rate(failure.kind, strategy):.0%}{rests}")
    return ", ".join(known)


INTENTIONS_SHOWN = 200
SIGNS: dict[str, tuple[str, SignKind]] = {
    "A": ("the agent", "agent"),
    "H": ("home", "home"),
    "R": ("rock", "object"),
    "#": ("obstacle", "obstacle"),
}
_WAITS = {"wait": "time", "ask": "an answer", "generation": "a plan", "waiting for an event": "its goal"}
"""Words for what an intention waits for, where the reasoner's own would not be understood."""


# ------------------------------------------------------------------ intentions and the plan


def intention_rows_of(state: AgentState) -> list[Row]:
    """A tree for each intention, the oldest first."""
    shown, pursued = list(state.intentions.values())[:INTENTIONS_SHOWN], pursued_intention(state)
    return [row for each in shown for row in _intention(each, pending=each is pursued)]


def _intention(view: IntentionView, *, pending: bool) -> Iterator[Row]:
    marks: dict[str, IntentionMark] = {"suspended": "suspended", "running": "running" if pending else "ready"}
    waits = "" if view.state in marks else _WAITS.get(view.state, view.state)
    mark, frames = marks.get(view.state, "waiting"), tuple(map(_frame, view.frames))
    return intention_rows(str(view.id), mark, waits, view.reason, frames)


def _frame(frame: FrameView) -> FrameLine:
    step = next((item.text for item in frame.items if item.current), "")
    return FrameLine(frame.goal, frame.plan, step, frame.bindings, frame.collapsed)


def pursued_intention(state: AgentState) -> IntentionView | None:
    """The intention whose step runs, or would run next; else the first that waits."""
    running = state.action.step if state.action is not None else ""
    chosen = next((step for step in state.wanted if step.step == running), next(iter(state.wanted), None))
    pending = state.mind.pending if state.mind is not None else None
    for number in (step.intention for step in (chosen, pending) if step is not None):
        if number in state.intentions:
            return state.intentions[number]
    return next(iter(state.intentions.values()), None)


def plan(state: AgentState, chosen: int = 0) -> PlanModel:
    """The body of the innermost plan of an intention, by default of the one that is pursued."""
    intention = state.intentions.get(chosen) or pursued_intention(state)
    frame = intention.frames[-1] if intention is not None and intention.frames else None
    if intention is None or frame is None:
        return PlanModel()
    place = next((at for at, item in enumerate(frame.items) if item.current), len(frame.items))
    made = next((step for step in state.generated if step.label == frame.plan), None)
    next_step = next((step.step for step in state.wanted if step.intention == intention.id), "")
    steps = (
        StepLine(
            id=f"i{intention.id}.{len(intention.frames)}.{at}",
            text="  " * item.depth + item.text,
            status=_mark(state, intention, item, at, place),
            held=item.current and state.mode in HELD_MODES,
            args=dict(frame.bindings) if item.current else {},
            corrected=corrected(state, next_step) if item.current else (),
            thinker=made.model if made else "the program",
            recipe=f"@{frame.plan} line {item.position.line}",
            clause=f"{made.generation}: {_proof(made.verified, made.succeeded, made.steps)}" if made else "",
            clause_index=1 if made else 0,
            source=True,
            waits=_waits_for_plan(state) if item.current and intention.state == "generation" else "",
        )
        for at, item in enumerate(frame.items)
    )
    return PlanModel(steps=tuple(steps), goal=f"{frame.goal} by @{frame.plan}")


def _waits_for_plan(state: AgentState) -> str:
    """How far the making of plans has come."""
    if held_generation(state) is not None:
        return "plans wait: a opens them"
    begun = any(each.stage is GenerationStage.BEGUN for each in state.generations.values())
    return "waits for a plan: s or space asks for it" if begun else "waits for a plan: a model is asked"


def corrected(state: AgentState, step: str) -> tuple[str, ...]:
    """What of a step's arguments was changed, and why."""
    settled = state.settled.get(step)
    return tuple(correction.words for correction in settled.corrections) if settled else ()


def _proof(verified: bool, succeeded: int, steps: int) -> str:
    return "verified" if verified else f"{succeeded} of {steps} steps have worked"


def _mark(state: AgentState, intention: IntentionView, item: ItemView, at: int, place: int) -> StepMark:
    """How a line of the body stands; only lines outside of loops and branches are known to be done."""
    if item.current:
        waits = any(step.intention == intention.id for step in state.wanted)
        return "running" if waits and state.acting else "next"
    return "completed" if at < place and item.depth == 0 else "planned"


# ------------------------------------------------------------------ beliefs and the world


def beliefs(state: AgentState) -> ListModel:
    """What the reasoner believes, the newest first."""
    rows = []
    for held in reversed(state.held_beliefs.values()):
        annotations = f"[{','.join(held.annotations)}]" if held.annotations else ""
        fresh = held.tick == state.tick and state.tick > 0
        rows.append(belief_row(f"{held.text}{annotations}", tuple(held.sources), held.tick, fresh))
    return ListModel(rows=rows, caption=f"{len(rows):,} · newest first" if rows else "")


def world(state: AgentState) -> WorldModel:
    """The small world that the agent lives in."""
    data = state.world
    lines = tuple(str(line) for line in data.get("lines", ()))
    used = {sign for line in lines for sign in line.split()}
    trail = [pair for pair in data.get("trail", ()) if isinstance(pair, list) and len(pair) == 2]
    facts = [pair for pair in data.get("facts", ()) if isinstance(pair, list) and len(pair) == 2]
    cycles = state.mind.cycles if state.mind is not None else 0
    last = next((str(text) for label, text in facts if label == "last"), "")
    return WorldModel(
        title=str(data.get("world", "")),
        lines=lines,
        legend=tuple(WorldSign(sign, *SIGNS[sign]) for sign in SIGNS if sign in used),
        facts=(("cycles", str(cycles)), *((str(label), str(text)) for label, text in facts)),
        trail=tuple((int(x), int(y)) for x, y in trail),
        moved=last.removeprefix("moved ") if last.startswith("moved ") else "",
    )


# ------------------------------------------------------------------ generated plans


def held_generation(state: AgentState) -> Generation | None:
    """The oldest plans that wait for approval."""
    return next((each for each in state.generations.values() if each.stage is GenerationStage.HELD), None)


def attempts_of(state: AgentState, generation: Generation) -> int:
    """How often a model is asked for such plans at the most."""
    settings = state.config.meta.get("generation")
    repairs = settings.get("repairs", 2) if isinstance(settings, dict) else 2
    return max(generation.attempt, int(repairs) + 1)


def timeline(marks: Sequence[Mark], event: Event, head: int) -> TimelineModel:
    """The timeline with the place of an event on it.

    Args:
        marks: of the agent's stream, oldest first.
        event: what is looked at.
        head: the newest version of the stream.
    """
    line = line_of(event)
    by = f"{line.by}: " if line is not None and line.by else ""
    words = f"{line.glyph} {by}{line.text}" if line is not None else event.kind
    place = sum(mark.version <= event.version for mark in marks)
    return TimelineModel(
        marks=tuple(TimelineMark(_part(mark.version, head), mark.kind.value) for mark in marks),
        place=_part(event.version, head),
        label=clean_line(f"{event.at[11:19]} {event.ref} {words}"),
        count=f"{place}/{len(marks)}",
    )


def _part(version: int, head: int) -> float:
    return (version - 1) / (head - 1) if head > 1 else 0.0


def status(model: StatusModel, past: AgentState, head: int) -> StatusModel:
    """The status line of a past state: that it is one, which, and how far now is ahead.

    Args:
        model: the status line as that state would have had it.
        past: the state.
        head: the version that the agent has come to by now.
    """
    ahead = head - past.version
    point = f"event {past.version} · {past.at[11:19]} · now is {ahead} event{'s' * (ahead != 1)} ahead"
    return replace(model, mode="PAST", point=point, asks=False)
