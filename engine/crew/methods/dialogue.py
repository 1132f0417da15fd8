"""A guided session, as a machine of steps with the operator as its user, and the rules of a role's replies.

Every move is a function of the steps and the session and gives another session, or is refused with the
reason; a refused move changes nothing. Nothing is ever stored that the operator did not say.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import isfinite
from typing import Any

from pydantic import Field

from engine.crew.ontology.context import ProblemClarity
from engine.crew.ontology.criteria import Subject, check, check_all, question_count
from engine.crew.ontology.kinds import Check, InputKind, OntologyValue, OntologyWord
from engine.crew.ontology.results import CriterionResult
from engine.crew.ontology.spec import Criterion, GuidedStep, RoleRules

TEXT_LIMIT = 20_000
LINE_LIMIT = 500


class MoveRefused(ValueError):  # noqa: N818 - a refusal is no error of anybody
    """A move cannot be made; the message says why, and nothing changed."""


class StepStatus(OntologyWord):
    """Where a step stands."""

    PENDING = "pending"
    ANSWERED = "answered"
    SKIPPED = "skipped"
    STALE = "stale"
    """Answered, and something that it depends on has changed since."""

    @property
    def settled(self) -> bool:
        """Whether steps that depend on it may be taken."""
        return self is not StepStatus.PENDING


class StepState(OntologyValue):
    """A step of a session."""

    status: StepStatus = StepStatus.PENDING
    value: Any = None
    reason: str = ""
    """Why it was skipped."""


class GuidedSession(OntologyValue):
    """Where a guided agent and its operator stand; saved after every move."""

    steps: dict[str, StepState] = Field(default_factory=dict)
    active: str | None = None
    """The step that is asked; None when all were gone through."""
    history: tuple[str, ...] = ()
    """Steps that were active before, in the order in which they were visited."""
    saved: bool = False
    """Whether the operator left it to come back."""

    def of(self, step: str) -> StepState:
        """How a step stands."""
        return self.steps.get(step, StepState())

    @property
    def answers(self) -> dict[str, Any]:
        """What was said, by step, stale answers among them."""
        given = (StepStatus.ANSWERED, StepStatus.STALE)
        return {step: state.value for step, state in self.steps.items() if state.status in given}


def begin(steps: Sequence[GuidedStep]) -> GuidedSession:
    """A session at its first step."""
    fresh = GuidedSession(steps={step.id: StepState() for step in steps})
    return _with(fresh, active=_next(steps, fresh))


def answer(steps: Sequence[GuidedStep], session: GuidedSession, value: object) -> GuidedSession:
    """Answer the active step and continue.

    Raises:
        MoveRefused: the answer does not fit; the step stays active.
    """
    step = _active(steps, session)
    given = checked_answer(step, value)
    before = session.of(step.id)
    changed = before.status is not StepStatus.PENDING and before.value != given
    after = StepState(status=StepStatus.ANSWERED, value=given)
    return _settled(steps, session, step.id, after, changed=changed)


def confirm(steps: Sequence[GuidedStep], session: GuidedSession, step_id: str = "") -> GuidedSession:
    """Say that a stale answer still holds.

    Raises:
        MoveRefused: it is not stale.
    """
    step = _step(steps, step_id or session.active or "")
    state = session.of(step.id)
    if state.status is not StepStatus.STALE:
        raise MoveRefused(f"{step.title!r} is {state.status}; only a stale answer is confirmed")
    states = {**session.steps, step.id: StepState(status=StepStatus.ANSWERED, value=state.value)}
    confirmed = _with(session, steps=states)
    return _on(steps, confirmed, step.id) if session.active == step.id else confirmed


def back(steps: Sequence[GuidedStep], session: GuidedSession) -> GuidedSession:
    """Go to the step that was visited before; no answer changes.

    Raises:
        MoveRefused: this is the first.
    """
    known = {step.id for step in steps}
    history = tuple(step for step in session.history if step in known)
    if not history:
        raise MoveRefused("this is the first step; there is nothing before it")
    return _with(session, active=history[-1], history=history[:-1])


def skip(steps: Sequence[GuidedStep], session: GuidedSession, reason: str = "") -> GuidedSession:
    """Pass over the active step.

    Raises:
        MoveRefused: it is required; the message says why it cannot be.
    """
    step = _active(steps, session)
    if step.required:
        raise MoveRefused(f"{step.title!r} is required and cannot be skipped; the result needs it")
    if not step.skippable:
        raise MoveRefused(f"{step.title!r} cannot be skipped: the agent says so")
    said = session.of(step.id).status in (StepStatus.ANSWERED, StepStatus.STALE)
    after = StepState(status=StepStatus.SKIPPED, reason=reason.strip())
    return _settled(steps, session, step.id, after, changed=said)


def jump(steps: Sequence[GuidedStep], session: GuidedSession, step_id: str) -> GuidedSession:
    """Go to a step that was visited, or whose dependencies are met.

    Raises:
        MoveRefused: it is neither.
    """
    step = _step(steps, step_id)
    if step.id == session.active:
        raise MoveRefused(f"{step.title!r} is the step that is asked now")
    open_ones = [name for name in step.depends_on if not session.of(name).status.settled]
    if step.id not in session.history and not session.of(step.id).status.settled and open_ones:
        titles = ", ".join(_step(steps, name).title for name in open_ones)
        raise MoveRefused(f"{step.title!r} needs an answer to {titles} first")
    visited = session.history if session.active is None else (*session.history, session.active)
    return _with(session, active=step.id, history=visited)


def leave(session: GuidedSession) -> GuidedSession:
    """Save it and come back later."""
    return _with(session, saved=True)


def resume(steps: Sequence[GuidedStep], session: GuidedSession) -> GuidedSession:
    """A session resumed with the steps that there are now; answers that fit no longer are stale."""
    states = {step.id: session.of(step.id) for step in steps}
    for step in steps:
        state = states[step.id]
        if state.status is StepStatus.ANSWERED and _unfit(step, state.value):
            states[step.id] = StepState(status=StepStatus.STALE, value=state.value)
    taken = GuidedSession(
        steps=states,
        active=session.active if session.active in states else None,
        history=tuple(name for name in session.history if name in states),
    )
    return taken if taken.active is not None else _with(taken, active=_next(steps, taken))


def unfinished(steps: Sequence[GuidedStep], session: GuidedSession) -> tuple[str, ...]:
    """Why the session cannot be finished yet, a line each; empty when it can."""
    lines = []
    for step in steps:
        status = session.of(step.id).status
        if status is StepStatus.STALE:
            lines.append(f"{step.title!r} is stale: confirm it or answer it anew")
        elif step.required and status is not StepStatus.ANSWERED:
            lines.append(f"{step.title!r} is required and not answered")
    return tuple(lines)


def finish(steps: Sequence[GuidedStep], session: GuidedSession) -> Mapping[str, Any]:
    """The answers of a session that is complete.

    Raises:
        MoveRefused: it is not; every reason is given.
    """
    if why := unfinished(steps, session):
        raise MoveRefused("; ".join(why))
    return session.answers


def stale(session: GuidedSession) -> tuple[str, ...]:
    """The steps whose answers are to be looked at again."""
    return tuple(name for name, state in session.steps.items() if state.status is StepStatus.STALE)


def export(title: str, steps: Sequence[GuidedStep], session: GuidedSession) -> str:
    """The session as Markdown: every step, with what was skipped named as such."""
    blocks = [f"# {title}"]
    for step in steps:
        state = session.of(step.id)
        fields = {
            StepStatus.PENDING: "*not answered*",
            StepStatus.SKIPPED: "*skipped*" + (f": {state.reason}" if state.reason else ""),
        }.get(state.status) or _shown(state.value)
        stale_mark = "\n*(stale)*" if state.status is StepStatus.STALE else ""
        blocks.append(f"## {step.title}\n{fields}{stale_mark}")
    return "\n\n".join(blocks)


# ------------------------------------------------------------------ what an answer may be


def checked_answer(step: GuidedStep, value: object) -> Any:
    """The answer as it is stored.

    Raises:
        MoveRefused: it does not fit the step; the message says what does.
    """
    given = _READERS[step.input](step, value)
    subject = Subject(text=_shown(given), data={"value": given})
    for criterion in step.validators:
        result = check(criterion, subject)
        if result.passed is False:
            raise MoveRefused(result.message)
    return given


def _unfit(step: GuidedStep, value: object) -> bool:
    try:
        checked_answer(step, value)
    except MoveRefused:
        return True
    return False


def _text(step: GuidedStep, value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise MoveRefused(f"{step.title!r} needs some words")
    limit = LINE_LIMIT if step.input is InputKind.TEXT else TEXT_LIMIT
    if len(value) > limit:
        raise MoveRefused(f"{step.title!r} takes up to {limit:,} characters; these are {len(value):,}")
    return value.strip()


def _choice(step: GuidedStep, value: object) -> str:
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= len(step.options):
        return step.options[value - 1]
    chosen = str(value).strip()
    if chosen.isdigit() and chosen not in step.options and 1 <= int(chosen) <= len(step.options):
        return step.options[int(chosen) - 1]
    matches = [option for option in step.options if option.casefold() == chosen.casefold()]
    if not matches:
        raise MoveRefused(f"{chosen[:60]!r} is none of the options: {', '.join(step.options)}")
    return matches[0]


def _multi(step: GuidedStep, value: object) -> list[str]:
    parts = value if isinstance(value, list | tuple) else str(value).split(",")
    chosen = list(dict.fromkeys(_choice(step, part) for part in parts if str(part).strip()))
    if not chosen:
        raise MoveRefused(f"choose at least one of: {', '.join(step.options)}")
    return chosen


def _number(step: GuidedStep, value: object) -> float:
    try:
        number = float(str(value).strip().replace("\N{MINUS SIGN}", "-"))
    except ValueError:
        number = float("nan")
    if isinstance(value, bool) or not isfinite(number):
        raise MoveRefused(f"{step.title!r} needs a number; {str(value)[:40]!r} is none")
    return number


def _confirm(step: GuidedStep, value: object) -> bool:
    words = {"yes": True, "y": True, "true": True, "no": False, "n": False, "false": False}
    confirmed = value if isinstance(value, bool) else words.get(str(value).strip().casefold())
    if confirmed is None:
        raise MoveRefused(f"{step.title!r} is answered by yes or no")
    return confirmed


_READERS: dict[InputKind, Callable[[GuidedStep, object], Any]] = {
    InputKind.TEXT: _text,
    InputKind.LONG_TEXT: _text,
    InputKind.CHOICE: _choice,
    InputKind.MULTI: _multi,
    InputKind.NUMBER: _number,
    InputKind.CONFIRM: _confirm,
}


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:g}"
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


# ------------------------------------------------------------------ from step to step


def _with(session: GuidedSession, **changes: Any) -> GuidedSession:
    return session.model_copy(update={"saved": False} | changes)


def _step(steps: Sequence[GuidedStep], step_id: str) -> GuidedStep:
    match_ = next((step for step in steps if step.id == step_id), None)
    if match_ is None:
        known = ", ".join(step.id for step in steps)
        raise MoveRefused(f"there is no step {step_id[:64]!r}; steps: {known}")
    return match_


def _active(steps: Sequence[GuidedStep], session: GuidedSession) -> GuidedStep:
    if session.active is None:
        raise MoveRefused("every step was gone through; finish, or jump to one")
    return _step(steps, session.active)


def _next(steps: Sequence[GuidedStep], session: GuidedSession) -> str | None:
    """The first step that is open and may be taken."""
    for step in steps:
        ready = all(session.of(name).status.settled for name in step.depends_on)
        if session.of(step.id).status is StepStatus.PENDING and ready:
            return step.id
    return next(iter(stale(session)), None)


def _on(steps: Sequence[GuidedStep], session: GuidedSession, done: str) -> GuidedSession:
    return _with(session, active=_next(steps, session), history=(*session.history, done))


def _settled(
    steps: Sequence[GuidedStep], session: GuidedSession, step_id: str, state: StepState, *, changed: bool
) -> GuidedSession:
    """The session behind a step; where it changed, every answer is stale that depends on it, however far."""
    states = {**session.steps, step_id: state}
    touched = {step_id} if changed else set()
    for step in steps:  # dependencies point backwards only
        if touched & set(step.depends_on):
            touched.add(step.id)
            if (before := session.of(step.id)).status is StepStatus.ANSWERED:
                states[step.id] = StepState(status=StepStatus.STALE, value=before.value)
    return _on(steps, _with(session, steps=states), step_id)


_LIST = r"(?m)^\s*(?:[-*•]|\d+[.)])\s+\S"
_RECOMMENDS = (
    r"(?i)\b(i|we)('d| would)? (recommend|suggest|advise|propose)\b|"
    r"\byou (should|ought to|could try|need to|might want to)\b|"
    r"\bmy (recommendation|advice|suggestion)\b|\bthe (best|right) (solution|approach|way) (is|would be)\b|"
    r"\b(try|consider|start by) \w+ing\b"
)


class RoleState(OntologyValue):
    """Where a role stands in its conversation."""

    clarity: ProblemClarity = ProblemClarity()
    questions: int = 0
    """How many it has asked."""
    parked: tuple[str, ...] = ()
    """Ideas that waited when it spoke last."""
    turns: int = 0
    flagged: int = 0
    """Replies that were shown although they broke a rule."""

    @property
    def ready(self) -> bool:
        """Whether the problem is ready for analysis."""
        return self.clarity.is_ready_for_analysis


def lint_reply(reply: str, *, ready: bool, rules: RoleRules | None = None) -> tuple[CriterionResult, ...]:
    """Everything that a reply is looked at for.

    Args:
        reply: what the role wants to say.
        ready: whether the problem is ready for analysis; before that nothing is recommended.
        rules: what this role is held to; a clarifier's rules by default.
    """
    held = rules or RoleRules()
    questions = question_count(reply)
    criteria = [
        Criterion(check=Check.NON_EMPTY, message="say something"),
        Criterion(check=Check.MAX_WORDS, args={"n": held.max_words}, message=f"use {held.max_words} words"),
    ]
    if held.questions is not None:
        asks = "one question" if held.questions == 1 else f"{held.questions} questions"
        message = f"ask exactly {asks}; there are {questions}"
        criteria.append(Criterion(check=Check.QUESTION_COUNT, args={"n": held.questions}, message=message))
    unwanted = [("say it without a list", _LIST)] if not held.lists else []
    if not ready and not held.recommends:
        unwanted.append(("recommend nothing before the problem is clear", _RECOMMENDS))
    for message, pattern in unwanted:
        args = {"pattern": pattern, "absent": True}
        criteria.append(Criterion(check=Check.REGEX, args=args, message=message))
    return check_all(criteria, Subject(text=reply))


def replied(state: RoleState, reply: str, *, flagged: bool) -> RoleState:
    """The state after a reply was shown."""
    counts = {"questions": question_count(reply), "turns": 1, "flagged": int(flagged)}
    return state.model_copy(update={name: getattr(state, name) + more for name, more in counts.items()})


def parked(state: RoleState, ideas: Sequence[str]) -> RoleState:
    """The state with the ideas that wait now; the operator takes them up, or drops them, meanwhile."""
    return state.model_copy(update={"parked": tuple(ideas)})
