"""The model of the dialog on a guided session."""

from __future__ import annotations

from collections.abc import Callable

from app.projection.fleet_views import (
    handoff_status,
    handoff_style,
    last_transition,
    moment_text,
    open_request,
    value_text,
)
from engine.core.agents import GUIDED
from engine.core.crew_commands import GuidedMove
from engine.crew.methods import dialogue as machine
from engine.crew.methods.dialogue import GuidedSession, StepStatus
from engine.crew.ontology.context import HumanRequest
from engine.crew.ontology.kinds import HandoffState, InputKind
from engine.crew.ontology.spec import GuidedStep
from engine.crew.state import CrewState, Handoff
from widgets.base.facts import Section
from widgets.dialogs.guided import Answer, GuidedModel, GuidedStepRequest, StepLine

_MARKS = {StepStatus.ANSWERED: "✓", StepStatus.SKIPPED: "»", StepStatus.STALE: "!", StepStatus.PENDING: "·"}
_MADE = {*GuidedMove.model_fields["move"].annotation.__args__, "leave", "take"}  # type: ignore[union-attr]
"""What is noted of a move that was made; of one that was refused it is the reason."""
_NO_DRAFT = "there is no draft"
_OWN = ("not done: ", "draft: ", _NO_DRAFT)
"""Beginnings of lines of a question's context that have a place of their own."""


def guided(state: CrewState, handoff: Handoff) -> GuidedModel:
    """Where a guided handoff and its operator stand."""
    steps = handoff.spec.steps if handoff.spec is not None else ()
    session, request = session_of(handoff), open_request(state, handoff.id, "guided")
    now = next((step for step in steps if step.id == session.active), None)
    at = steps.index(now) + 1 if now is not None else len(steps)
    return GuidedModel(
        handoff=handoff.id,
        title=handoff.spec.name if handoff.spec is not None else handoff.agent,
        place=f"{at}/{len(steps)}",
        state=handoff_status(handoff),
        rail=tuple(_line(step, session) for step in steps),
        asked=request.id if request is not None else "",
        step=_asked(now, session) if now is not None else None,
        told=_told(handoff, request),
        refused=handoff.note if handoff.note not in _MADE else "",
        draft=_draft(request),
        partial=_partial(steps, session),
        missing=machine.unfinished(steps, session),
        paused=handoff.state is HandoffState.PAUSED,
        over=not handoff.open,
    )


def session_of(handoff: Handoff) -> GuidedSession:
    """The session as it was kept last."""
    kept = handoff.progress.get(GUIDED)
    if isinstance(kept, dict):
        return GuidedSession.loaded(kept)[0]
    return machine.begin(handoff.spec.steps if handoff.spec is not None else ())


def checker(handoff: Handoff) -> Callable[[str, Answer], str]:
    """What is wrong with an answer to a step; the same rules as where it is stored."""
    steps = {step.id: step for step in handoff.spec.steps} if handoff.spec is not None else {}

    def check(step: str, value: Answer) -> str:
        if step not in steps:
            return ""
        try:
            machine.checked_answer(steps[step], list(value) if isinstance(value, tuple) else value)
        except machine.MoveRefused as error:
            return str(error)
        return ""

    return check


def _line(step: GuidedStep, session: GuidedSession) -> StepLine:
    status = session.of(step.id).status
    here = step.id == session.active
    mark = "●" if here else _MARKS[status]
    word = "now" if here else "" if status is StepStatus.PENDING else status.value
    style = handoff_style("!" if status is StepStatus.STALE else mark)
    return StepLine(step.id, step.title, mark, style, word)


def _asked(step: GuidedStep, session: GuidedSession) -> GuidedStepRequest:
    state = session.of(step.id)
    notes = ["required" if step.required else "can be skipped" if step.may_skip else "cannot be skipped"]
    if step.input is InputKind.MULTI:
        notes.append("space marks, enter gives what is marked")
    if state.status is StepStatus.STALE:
        notes.append("! stale: something that it depends on has changed; enter confirms it as it is")
    if state.status is StepStatus.SKIPPED:
        notes.append("» skipped before" + (f": {state.reason}" if state.reason else ""))
    return GuidedStepRequest(
        *(step.id, step.title, step.prompt),
        step.input.value,
        step.options,
        _value(step, state.value),
        " · ".join(notes),
        step.may_skip,
    )


def _value(step: GuidedStep, value: object) -> Answer:
    if value is None:
        return () if step.input is InputKind.MULTI else ""
    if step.input is InputKind.MULTI and isinstance(value, list | tuple):
        return tuple(map(str, value))
    if isinstance(value, bool):
        return value
    return value_text(value)


def _told(handoff: Handoff, request: HumanRequest | None) -> tuple[str, ...]:
    """When it was saved, and what the run says besides of the agent's changes since."""
    lines = []
    if (saved := last_transition(handoff, HandoffState.PAUSED)) is not None:
        again = "; resumed, nothing in the agent has changed since"
        paused = handoff.state is HandoffState.PAUSED
        lines.append(f"saved {moment_text(saved.at)}{'' if paused else again}")
    if request is None:
        return tuple(lines)
    session = session_of(handoff)
    own = machine.unfinished(handoff.spec.steps, session) if handoff.spec is not None else ()
    context = request.context.split("\ndraft: ", 1)[0]
    changed = [
        line for line in context.split("\n")[1:] if line and not line.startswith(_OWN) and line not in own
    ]
    if changed and lines:
        lines[0] = f"saved {moment_text(saved.at)}; since then:" if saved is not None else lines[0]
    return (*lines, *changed, *(line for line in context.split("\n") if line.startswith(_NO_DRAFT)))


def _draft(request: HumanRequest | None) -> str:
    options = request.options if request is not None else ()
    take = next((option for option in options if option.id == "take"), None)
    if request is None or take is None:
        return ""
    return str(take.args.get("draft") or request.context.partition("\ndraft: ")[2])


def _partial(steps: tuple[GuidedStep, ...], session: GuidedSession) -> tuple[Section, ...]:
    sections = []
    for step in steps:
        state = session.of(step.id)
        mark = _MARKS[state.status]
        if state.status in (StepStatus.ANSWERED, StepStatus.STALE):
            stale = " (stale)" if state.status is StepStatus.STALE else ""
            sections.append(Section(f"{mark} {step.title}{stale}", value_text(state.value)))
        elif state.status is StepStatus.SKIPPED:
            sections.append(Section(f"{mark} {step.title}: skipped", state.reason, "text"))
    for name, value in session.appendix.items():
        sections.append(Section(f"{name}: its step is gone", value_text(value)))
    return tuple(sections)
