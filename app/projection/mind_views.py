"""View models of an agent whose goals an AgentSpeak(L) program pursues: pure functions of its state."""

from __future__ import annotations

from collections.abc import Iterable

from engine.bdi.views import FrameView, IntentionView, ItemView
from engine.domain.reasoning import Generation, GenerationStage
from engine.domain.state import HELD_MODES, AgentState
from widgets import (
    BeliefLine,
    BeliefsModel,
    FrameLine,
    IntentionLine,
    IntentionsModel,
    PlanModel,
    StepLine,
    WorldModel,
)
from widgets.dialogs import (
    GeneratedPlansModel,
    ProposedPlan,
)
from widgets.intentions import IntentionMark
from widgets.plan import StepMark
from widgets.world import SignKind, WorldSign

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


def intentions(state: AgentState) -> IntentionsModel:
    """A tree for each intention, the oldest first."""
    shown = list(state.intentions.values())[:INTENTIONS_SHOWN]
    next_one = pursued(state)
    return IntentionsModel(
        tuple(_intention(one, pending=next_one is not None and one.id == next_one.id) for one in shown)
    )


def _intention(one: IntentionView, *, pending: bool) -> IntentionLine:
    mark: IntentionMark = "waiting"
    waits, reason = _WAITS.get(one.state, one.state), one.reason
    match one.state:
        case "suspended":
            mark, waits = "suspended", ""
        case "running":
            mark, waits = ("running" if pending else "ready"), ""
    frames = tuple(map(_frame, one.frames))
    return IntentionLine(str(one.id), mark, waits, reason, frames)


def _frame(frame: FrameView) -> FrameLine:
    step = next((item.text for item in frame.items if item.current), "")
    return FrameLine(frame.goal, frame.plan, step, frame.bindings, frame.collapsed)


def pursued(state: AgentState) -> IntentionView | None:
    """The intention whose step runs, or would run next; else the first that waits."""
    running = state.action.step if state.action is not None else ""
    wanted = next((one for one in state.wanted if one.step == running), None) or next(
        iter(state.wanted), None
    )
    if wanted is not None and wanted.intention in state.intentions:
        return state.intentions[wanted.intention]
    pending = state.mind.pending if state.mind is not None else None
    if pending is not None and pending.intention in state.intentions:
        return state.intentions[pending.intention]
    return next(iter(state.intentions.values()), None)


def plan(state: AgentState, chosen: int = 0) -> PlanModel:
    """The body of the innermost plan of an intention, by default of the one that is pursued."""
    intention = state.intentions.get(chosen) or pursued(state)
    frame = intention.frames[-1] if intention is not None and intention.frames else None
    if intention is None or frame is None:
        return PlanModel()
    place = next((at for at, item in enumerate(frame.items) if item.current), len(frame.items))
    made = next((one for one in state.generated if one.label == frame.plan), None)
    wanted = next((one.step for one in state.wanted if one.intention == intention.id), "")
    steps = (
        StepLine(
            id=f"i{intention.id}.{len(intention.frames)}.{at}",
            text="  " * item.depth + item.text,
            status=_mark(state, intention, item, at, place),
            held=item.current and state.mode in HELD_MODES,
            args=dict(frame.bindings) if item.current else {},
            corrected=corrected(state, wanted) if item.current else (),
            thinker=made.model if made else "the program",
            recipe=f"@{frame.plan} line {item.position.line}",
            clause=f"{made.generation}: {_proof(made.verified, made.succeeded, made.steps)}" if made else "",
            clause_index=1 if made else 0,
        )
        for at, item in enumerate(frame.items)
    )
    return PlanModel(steps=tuple(steps), goal=f"{frame.goal} by @{frame.plan}")


def corrected(state: AgentState, step: str) -> tuple[str, ...]:
    """What of a step's arguments was changed, and why."""
    settled = state.settled.get(step)
    return tuple(one.words for one in settled.corrections) if settled else ()


def _proof(verified: bool, succeeded: int, steps: int) -> str:
    return "verified" if verified else f"{succeeded} of {steps} steps have worked"


def _mark(state: AgentState, intention: IntentionView, item: ItemView, at: int, place: int) -> StepMark:
    """How a line of the body stands; only lines outside of loops and branches are known to be done."""
    if item.current:
        waits = any(one.intention == intention.id for one in state.wanted)
        return "running" if waits and state.acting else "next"
    return "completed" if at < place and item.depth == 0 else "planned"


# ------------------------------------------------------------------ beliefs and the world


def beliefs(state: AgentState) -> BeliefsModel:
    """What the reasoner believes, in the order it came."""
    return BeliefsModel(
        tuple(
            BeliefLine(
                one.text + (f"[{','.join(one.annotations)}]" if one.annotations else ""),
                one.sources,
                since=one.tick,
                event=one.event,
                fresh=one.tick == state.tick and state.tick > 0,
            )
            for one in state.held_beliefs.values()
        )
    )


def world(state: AgentState) -> WorldModel:
    """The small world that the agent lives in."""
    data = state.world
    lines = tuple(str(line) for line in data.get("lines", ()))
    used = {sign for line in lines for sign in line.split()}
    trail = [one for one in data.get("trail", ()) if isinstance(one, list) and len(one) == 2]
    facts = [one for one in data.get("facts", ()) if isinstance(one, list) and len(one) == 2]
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
    waiting = (one for one in state.generations.values() if one.stage is GenerationStage.HELD)
    return next(waiting, None)


def generated_plans(state: AgentState, one: Generation) -> GeneratedPlansModel:
    """Plans that a model made, with the prompt and the answer that made them."""
    settings = state.config.meta.get("generation")
    repairs = settings.get("repairs", 2) if isinstance(settings, dict) else 2
    return GeneratedPlansModel(
        goal=one.goal,
        plans=tuple(ProposedPlan(plan.text, plan.accepted, plan.reasons) for plan in one.plans),
        model=one.model,
        attempt=one.attempt,
        attempts=max(one.attempt, int(repairs) + 1),
        problems=tuple(_problems(one)),
        answer=one.answer,
        system=one.system,
        user=one.prompt,
        facts=(
            ("took", f"{one.duration_ms / 1000:.1f} s"),
            ("tokens", f"{one.tokens}"),
            ("", one.trigger),
        ),
    )


def _problems(one: Generation) -> Iterable[str]:
    if one.reason:
        yield one.reason
    yield from one.problems
