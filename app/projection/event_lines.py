"""An event as one line for a person: used by headless runs, `sessions show` and the mind pane."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from engine.agent.steering.envelopes import envelope_text
from engine.agent.steering.rules import rule_line, rule_text
from engine.core import events as ev
from engine.core.actions import ResultStatus
from engine.core.approvals import Answer
from engine.core.breakpoints import write_break
from engine.core.control import operator_of
from engine.core.goals import GoalStatus, ending_of
from engine.core.journal import Event
from engine.core.metacognition import JobOutcome
from engine.core.plan import Op, PlanStep, StepStatus
from engine.core.reasons import TEMPLATE, read_words
from engine.core.recovery import Strategy
from engine.core.sandbox import Job
from engine.core.text import clean_line
from engine.core.thinking import Decision, DecisionKind
from engine.models.endpoint import AUTO
from engine.planning.thinkers import CLAUDE
from engine.planning.thinkers.procedural import ProceduralThinker
from engine.value import dataclass

TEXT_LIMIT = 400
WHEN = {"now": "now", "after": "after this action", "plan": "in the next plan"}
"""When a message to a thinker is to be taken up."""
SLOW_SAVE_MS = 1_000
"""From here on a line says that an action waited for its snapshot; quicker ones are only in the journal."""


@dataclass(frozen=True, slots=True)
class Line:
    """What happened, in words; the text is cleaned."""

    ref: str
    time: str
    """Clock time, `HH:MM:SS`."""
    stream: str
    glyph: str
    kind: str
    """`goal`, `plan`, `action`, `success`, `warning`, `error`, `operator`, `thought`, `session`."""
    text: str
    by: str = ""
    """The operator whose doing it is; empty where no person's."""

    def plain(self) -> str:
        """The line for a terminal without colours."""
        by = f"{self.by}: " if self.by else ""
        return f"{self.time} {self.stream:<12} {self.glyph} {by}{self.text}"


def line_of(event: Event, payload: ev.Payload | None = None) -> Line | None:
    """The event as a line, or None when it is too small to tell."""
    parts = table_words(_WORDS, payload if payload is not None else ev.payload_of(event))
    if parts is None:
        return None
    glyph, kind, text = parts
    shown, by = clean_line(text, limit=TEXT_LIMIT), clean_line(operator_of(event.actor))
    named = shown.startswith(f"{by} ")
    return Line(event.ref, event.at[11:19], event.stream, glyph, kind, shown, "" if named else by)


def call_text(command: str, args: dict[str, object]) -> str:
    """A tool call as a person would type it, cut to a line."""
    first = ("path", "source", "target", "venv_name")
    ordered = sorted(args, key=lambda name: (name not in first, name))
    shown = " ".join(_argument_text(str(args[name])) for name in ordered)
    return clean_line(f"{command} {shown}", limit=120)


def step_text(step: PlanStep) -> str:
    """A step as a person would type it."""
    if step.op is Op.ACHIEVE:
        return f"achieve: {step.args.get('goal', '')}"
    if step.op is Op.THINK:
        return f"think: {step.description}"
    return call_text(step.command if step.op is Op.ACT else step.op.value, step.args)


def ending_jobs_text(jobs: Sequence[Job]) -> str:
    """What happens to running jobs when the session ends, on a line; empty when there are none."""
    if not jobs:
        return ""
    listed = ", ".join(f"{job.id} {clean_line(job.command, limit=80)}" for job in jobs)
    return f"{'jobs end' if len(jobs) > 1 else 'job ends'} with the session: {listed}"


def _argument_text(text: str) -> str:
    """An argument in a line; a longer text by its size."""
    lines = text.strip("\n").count("\n") + 1
    return f"({lines} lines)" if lines > 1 else text


Words = Mapping[type[ev.Payload], "str | Callable[[Any], str | None]"]
"""Glyph, kind and text of events, or what makes them; None where an event is too small to tell."""


def table_words(table: Words, payload: ev.Payload) -> tuple[str, str, str] | None:
    """Glyph, kind and text of an event by a table, or by `event_lines.txt`."""
    words: str | Callable[[Any], str | None] | None = table.get(type(payload))
    if words is None:
        cases = _LINES.get(payload.kind, ())
        words = next((words for field, words in cases if not field or getattr(payload, field)), None)
    words = words(payload) if callable(words) else words and TEMPLATE.format(words, p=payload)
    if words is None:
        return None
    glyph, kind, text = words.split(" ", 2)
    return glyph, kind, text


def _receipt(p: ev.StopObserved) -> str:
    left = "; ".join(f"still runs: {item.kind} {item.name} {item.what}" for item in p.receipt.running)
    seen = f"receipt: {len(p.receipt.stopped)} stopped, {left or 'nothing runs'}"
    return f"■ operator {seen}, seen after {p.receipt.took_ms} ms"


def _goal_ended(p: ev.GoalEnded) -> str:
    mark, words = ending_of(p.status, p.reason)
    glyph = {"achieved": "✓ success", "partly": "◐ warning"}.get(mark, "✗ error")
    return f"{glyph} goal {p.goal} {words}" + (f": {p.reason}" if p.status is not GoalStatus.ACHIEVED else "")


def _steps(steps: Sequence[object]) -> str:
    return f"{len(steps)} step{'' if len(steps) == 1 else 's'}"


def thinker_name(thinker: str) -> str:
    """A thinker as a reader knows it: a model by its own name."""
    name = thinker.removeprefix(f"{CLAUDE}:")
    return "the model" if name in (CLAUDE, AUTO) else name


def _plan_asked(p: ev.PlanAsked) -> str | None:
    free = p.thinker == ProceduralThinker.name
    return None if free else f"→ thought asks {thinker_name(p.thinker)} for a plan of {p.goal}"


def _plan_generated(p: ev.PlanGenerated) -> str:
    recipes = sorted({step.provenance.recipe for step in p.steps if step.provenance.recipe})
    by = f"; recipes: {', '.join(recipes)}" if recipes else ""
    return f"≡ thought {thinker_name(p.thinker)} proposes {_steps(p.steps)}{by}"


def _step_ended(p: ev.StepEnded) -> str:
    marks = {StepStatus.COMPLETED: "✓ success", StepStatus.FAILED: "✗ error"}
    if p.status in marks and not p.summary.is_a("step.by-hand"):
        return f"{marks[p.status]} {p.step} {p.summary}"
    return f"» operator {p.step} {p.status}: {p.summary}"


def _corrected(p: ev.ParametersProcessed) -> str | None:
    corrections = "; ".join(correction.words for correction in p.corrections)
    return f"✎ plan {p.action} corrected: {corrections}" if p.corrections else None


def _saved(p: ev.SnapshotTaken) -> str | None:
    left_out = f", {p.skipped} things left out" if p.skipped else ""
    what = f"{p.files} files{left_out}, in {p.duration_ms / 1000:.1f} s"
    return f"· action {p.action} saved first: {what}" if p.duration_ms >= SLOW_SAVE_MS else None


def _finished(p: ev.ActionFinished) -> str:
    if p.status is ResultStatus.SUCCESS:
        return f"· action {p.action} {p.status} in {p.duration_ms} ms: {p.summary}"
    return f"✗ error {p.action} {p.status} ({p.code}): {p.summary}"


def _job_ended(p: ev.JobEnded) -> str:
    mark = "✓ success" if p.code == 0 else "■ operator" if p.ended == "cancelled" else "✗ warning"
    return f"{mark} job {p.job} {p.message}"


def _reviewed(p: ev.GenerationReviewed) -> str:
    good, wrong = sum(plan.accepted for plan in p.plans), f"; {p.failure}" if p.failure else ""
    return f"≡ thought {p.generation}: {good} of {len(p.plans)} plans can be used{wrong}"


def _called(p: ev.ModelCalled) -> str:
    if p.error:
        return f"✗ warning {p.model}: {p.error}"
    cost = "price unknown" if p.cost_usd is None else f"${p.cost_usd:.4f}"
    cut = ", cut off" if p.partial else ""
    return f"← session {p.model}: {p.tokens} tokens, {cost}, {p.duration_ms / 1000:.1f} s{cut}"


def budget_hold_text(budget_reached: ev.BudgetReached) -> str:
    """What a budget does not let begin, in words."""
    held = {
        "time": "held, as its time is up",
        "call": "held before a call",
        "action": "held before an action",
    }
    return held[budget_reached.before]


_DECIDED: dict[DecisionKind, str] = {
    DecisionKind.CALL: "call",
    DecisionKind.THINK: "a thought",
    DecisionKind.PLAN: "a new plan",
    DecisionKind.SUBGOAL: "first another goal",
    DecisionKind.FINISH: "done",
    DecisionKind.GIVE_UP: "given up",
    DecisionKind.ASK: "asks you",
    DecisionKind.OUTLINE: "what it means to do",
}


def decision_text(decision: Decision) -> str:
    """What a thinker decided, in a line."""
    words = clean_line(decision.text)
    if decision.kind is DecisionKind.CALL:
        words = " · ".join(filter(None, (call_text(decision.command, decision.args), words)))
    return f"decided: {_DECIDED[decision.kind]}" + (f": {words}" if words else "")


_STRATEGIES = {
    Strategy.RETRY_WITH_DELAY: "retry after a pause",
    Strategy.ALTERNATIVE_TOOL: "another tool",
    Strategy.SIMPLIFIED_APPROACH: "a simpler plan",
    Strategy.ESCALATE_TO_AGINT: "another plan",
    Strategy.FALLBACK_MANUAL: "ask the operator",
    Strategy.ABORT_GRACEFULLY: "give the goal up",
    Strategy.DECIDE_ANEW: "decide again",
}


def strategy_text(recorded: str) -> str:
    """A recovery strategy in words, with what stands behind its name."""
    name, blank, rest = recorded.partition(" ")
    return (_STRATEGIES[Strategy(name)] if name in _STRATEGIES else name) + blank + rest


def _recovery(p: ev.RecoveryChosen) -> str:
    tries = f" {p.attempt}/{p.of} in {p.delay_s:g} s" if p.delay_s else ""
    return f"↻ warning recovery: {strategy_text(p.strategy)}{tries}: {p.why}"


def _recovery_ended(p: ev.RecoveryEnded) -> str:
    came = "worked" if p.success else "did not work"
    rests = f"; it rests until tick {p.rests_until}" if p.rests_until else ""
    return f"↻ plan recovery: {strategy_text(p.strategy)} {came}{rests}"


def _not_counted(p: ev.GrantsNotCounted) -> str:
    names = ", ".join((*p.grants, *p.once, *p.envelopes)) or "its budgets and policies"
    return f"✗ warning not granted here by you, so it does not count: {names}"


def _access_used(p: ev.AccessUsed) -> str:
    who = f"{p.token} ({p.scope})" if p.token else "no token"
    if p.use == "refused":
        return f"! warning web: {p.code} refused{f' {p.count} times' * (p.count > 1)}, {who} from {p.address}"
    return f"» operator web: {p.use} by {who} from {p.address}"


def _plan_accepted(p: ev.PlanAccepted) -> str:
    within = f"; unasked within: {envelope_text(p.envelope)}" if p.envelope else ""
    return f"≡ operator plan of {p.goal} accepted: {len(p.steps)} steps{within}"


def _stuck(p: ev.StuckNoticed) -> str:
    if not p.signs:
        return "↻ thought stuck no longer"
    held = ", so it is held" if p.holds else ""
    return f"↻ warning may be stuck{held}: {'; '.join(sign.text for sign in p.signs)}"


def _background_ended(p: ev.BackgroundEnded) -> str:
    if p.outcome is not JobOutcome.DONE:
        return f"↺ warning {p.job} {p.outcome}: {p.message}"
    return f"↺ thought {p.job} {p.message} ({'computed' if p.computed else 'written by a model'})"


def _thresholds_set(p: ev.ThresholdsSet) -> str:
    named = {"reflection": p.reflection, "consolidation": p.consolidation}
    limits = ", ".join(f"{name} after {value}" for name, value in named.items() if value is not None)
    return f"↺ operator {limits}"


_LINES: dict[str, list[tuple[str, str]]] = {}
"""By kind of event its templates, each behind the field that has to be set; the first that fits is taken."""
for _name, _words in read_words(Path(__file__).with_suffix(".txt")).items():
    _kind, _, _field = _name.partition(" ")
    _LINES.setdefault(_kind, []).append((_field, _words))
_WORDS: Words = {
    ev.StopObserved: _receipt,
    ev.GoalEnded: _goal_ended,
    ev.PlanAsked: _plan_asked,
    ev.PlanGenerated: _plan_generated,
    ev.StepEnded: _step_ended,
    ev.ActionRequested: lambda p: f"· action {p.action} {call_text(p.command, p.args)}",
    ev.ParametersProcessed: _corrected,
    ev.SnapshotTaken: _saved,
    ev.ActionFinished: _finished,
    ev.JobEnded: _job_ended,
    ev.ChangesOffered: lambda p: (
        "? warning changed at the shell: "
        + ("; ".join(offer.text for offer in p.offers) or "nothing but its place")
    ),
    ev.GenerationReviewed: _reviewed,
    ev.ModelCalled: _called,
    ev.BudgetReached: lambda p: f"‖ warning {budget_hold_text(p)}: {p.reason}",
    ev.DecisionMade: lambda p: f"→ plan {decision_text(p.decision)}",
    ev.RecoveryChosen: _recovery,
    ev.RecoveryEnded: _recovery_ended,
    ev.BreakpointAdded: lambda p: f"◉ operator breakpoint {p.breakpoint}: {write_break(p.spec)}",
    ev.ApprovalAsked: lambda p: (
        f"? warning may {p.action} run? {call_text(p.call.command, p.call.args)}: {p.why}"
    ),
    ev.RuleGranted: lambda p: (
        f"✓ operator {p.grant} ({p.scope}), "
        f"{'unasked' if p.rule.answer is Answer.ALLOW else 'denied'}: {rule_text(p.rule)}"
    ),
    ev.RuleProposed: lambda p: (
        f"¿ operator {p.proposal} proposed, from {p.learned.hits} answers: {rule_line(p.learned.rule)}"
    ),
    ev.GrantsNotCounted: _not_counted,
    ev.PlanAccepted: _plan_accepted,
    ev.StuckNoticed: _stuck,
    ev.BackgroundEnded: _background_ended,
    ev.ThresholdsSet: _thresholds_set,
    ev.AccessUsed: _access_used,
    ev.GuidanceGiven: lambda p: (
        f"» operator to the thinker{f' ({WHEN[p.when]})' if p.when else ''}: {p.text}"
    ),
}
