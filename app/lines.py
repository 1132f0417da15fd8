"""An event as one line for a person: used by headless runs, `sessions show` and the mind pane."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engine.domain.action import ResultStatus
from engine.domain.break_lines import write_break
from engine.domain.goal import GoalStatus
from engine.domain.metacognition import JobOutcome
from engine.domain.plan import StepStatus
from engine.domain.session import Job
from engine.domain.text import clean_line
from engine.domain.thinking import Decision, DecisionKind
from engine.journal import events as ev
from engine.journal.event import Event
from engine.steering.envelopes import envelope_text
from engine.steering.rules import rule_text
from engine.thinkers.procedural import ProceduralThinker

TEXT_LIMIT = 400
SLOW_SAVE_MS = 1_000
"""From here on it is told that an action waited for its snapshot; quicker ones are only in the journal."""


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

    def plain(self) -> str:
        """The line for a terminal without colours."""
        return f"{self.time} {self.stream:<12} {self.glyph} {self.text}"


def line_of(event: Event, payload: ev.Payload | None = None) -> Line | None:
    """The event as a line, or None when it is too small to tell."""
    said = _say(payload if payload is not None else ev.payload_of(event))
    if said is None:
        return None
    glyph, kind, text = said
    return Line(event.ref, event.at[11:19], event.stream, glyph, kind, clean_line(text, limit=TEXT_LIMIT))


def call_text(command: str, args: dict[str, object]) -> str:
    """A tool call as a person would type it, cut to a line."""
    first = ("path", "source", "target", "venv_name")
    ordered = sorted(args, key=lambda name: (name not in first, name))
    shown = " ".join(_argument_text(str(args[name])) for name in ordered)
    return clean_line(f"{command} {shown}", limit=120)


def ending_jobs(jobs: Sequence[Job]) -> str:
    """What becomes of running jobs when the session ends, on a line; empty when there are none."""
    if not jobs:
        return ""
    listed = ", ".join(f"{job.id} {clean_line(job.command, limit=80)}" for job in jobs)
    return f"{'jobs end' if len(jobs) > 1 else 'job ends'} with the session: {listed}"


def _argument_text(text: str) -> str:
    """An argument in a line; a longer text by its size."""
    lines = text.strip("\n").count("\n") + 1
    return f"({lines} lines)" if lines > 1 else text


def _say(said: ev.Payload) -> tuple[str, str, str] | None:
    for tell in _TELLERS:
        line = tell(said)
        if line is not None:
            return line
    return None


def _say_session(said: ev.Payload) -> tuple[str, str, str] | None:
    match said:
        case ev.SessionOpened():
            return "○", "session", f"session {said.session} opened"
        case ev.SessionClosed():
            return "○", "session", f"session {said.session} closed"
        case ev.TierAccepted():
            return "!", "warning", f"programs run in the jail {said.tier}, as accepted: {said.reason}"
        case ev.ServerTrusted():
            return "!", "operator", f"the server {said.server} may start: {said.what}"
        case ev.ServerDistrusted():
            return "-", "operator", f"the server {said.server} may not start"
        case ev.AgentCreated():
            return "+", "session", f"agent {said.agent_id} created ({said.agent_type})"
        case ev.AgentDeleted():
            return "-", "session", "agent deleted"
        case ev.AgentResumed():
            return "▶", "operator", "running"
        case ev.AgentPaused():
            return "‖", "operator", f"paused: {said.reason}"
        case ev.AgentStopped():
            return "■", "operator", f"stopped: {said.reason}"
        case ev.AgentHeld():
            return "‖", "operator", said.reason
        case ev.AgentThawed():
            return "▷", "operator", "its processes go on"
        case ev.StopObserved():
            left = "; ".join(f"still runs: {one.kind} {one.name} {one.what}" for one in said.receipt.running)
            seen = f"receipt: {len(said.receipt.stopped)} stopped, {left or 'nothing runs'}"
            return "■", "operator", f"{seen}, seen after {said.receipt.took_ms} ms"
        case ev.StepGranted():
            return "▷", "operator", "one action allowed"
    return None


def _say_goal(said: ev.Payload) -> tuple[str, str, str] | None:
    match said:
        case ev.GoalAdopted():
            return "●", "goal", f"goal {said.goal}: {said.text}"
        case ev.GoalSelected():
            return "→", "thought", f"deliberation: pursue {said.goal}"
        case ev.GoalMoved():
            where = f"serves {said.parent} now" if said.parent else "serves no other goal now"
            return "●", "operator", f"goal {said.goal} {where}"
        case ev.GoalChanged():
            return "●", "operator", f"goal {said.goal} is now: {said.text} (priority {said.priority})"
        case ev.GoalEnded(status=GoalStatus.ACHIEVED):
            return "✓", "success", f"goal {said.goal} achieved"
        case ev.GoalEnded():
            return "✗", "error", f"goal {said.goal} {said.status}: {said.reason}"
        case ev.BeliefAdded():
            return "∴", "thought", f"believes {said.key} = {str(said.value)[:120]}"
        case ev.BeliefRemoved():
            return "∴", "thought", f"no longer believes {said.key}"
        case ev.BeliefOutweighed():
            guess = f"{said.key} = {str(said.value)[:120]} ({said.confidence:.0%})"
            return "∴", "thought", f"does not take {guess}: what is held is surer"
        case ev.ThoughtRecorded():
            return "…", "thought", said.text
    return None


def _steps(steps: Sequence[object]) -> str:
    return f"{len(steps)} step{'' if len(steps) == 1 else 's'}"


def _say_plan(said: ev.Payload) -> tuple[str, str, str] | None:
    match said:
        case ev.PlanAsked() if said.thinker != ProceduralThinker.name:
            return "→", "thought", f"asks {said.thinker} for a plan of {said.goal}"
        case ev.PlanGenerated():
            recipes = sorted({step.provenance.recipe for step in said.steps if step.provenance.recipe})
            by = f"; recipes: {', '.join(recipes)}" if recipes else ""
            return "≡", "thought", f"{said.thinker} proposes {_steps(said.steps)}{by}"
        case ev.PlanAdopted():
            return "≡", "plan", f"plan {said.plan} for {said.goal}: {_steps(said.steps)}"
        case ev.PlanRevised():
            return "≡", "plan", f"plan {said.plan}: {said.change}"
        case ev.PlanRejected():
            return "✗", "error", f"no plan for {said.goal}: {'; '.join(said.problems)}"
        case ev.StepEnded(status=StepStatus.COMPLETED):
            return "✓", "success", f"{said.step} {said.summary}"
        case ev.StepEnded(status=StepStatus.FAILED):
            return "✗", "error", f"{said.step} {said.summary}"
        case ev.StepEnded():
            return "»", "operator", f"{said.step} {said.status}: {said.summary}"
    return None


def _say_action(said: ev.Payload) -> tuple[str, str, str] | None:
    match said:
        case ev.ActionRequested():
            return "·", "action", f"{said.action} {call_text(said.command, said.args)}"
        case ev.ParametersAsked():
            return "→", "thought", f"{said.action} asks {said.model} for {', '.join(said.missing)}"
        case ev.ParametersProcessed() if said.corrections:
            told = "; ".join(one.words for one in said.corrections)
            return "✎", "plan", f"{said.action} corrected: {told}"
        case ev.OperatorNeeded():
            return "‖", "operator", f"{said.action} needs you: {said.why}"
        case ev.ActionHeld():
            return "‖", "operator", f"{said.action} held: {said.reason}"
        case ev.ActionWithdrawn():
            return "·", "action", f"{said.action} withdrawn: {said.reason}"
        case ev.SnapshotTaken() if said.duration_ms >= SLOW_SAVE_MS:
            left_out = f", {said.skipped} things left out" if said.skipped else ""
            what = f"{said.files} files{left_out}, in {said.duration_ms / 1000:.1f} s"
            return "·", "action", f"{said.action} saved first: {what}"
        case ev.SnapshotFailed():
            return "✗", "warning", f"{said.action} could not be saved first: {said.reason}"
        case ev.ActionStarted():
            return "▶", "action", f"{said.action} started"
        case ev.ActionFinished(status=ResultStatus.SUCCESS):
            return "·", "action", f"{said.action} {said.status} in {said.duration_ms} ms: {said.summary}"
        case ev.ActionFinished():
            return "✗", "error", f"{said.action} {said.status} ({said.code}): {said.summary}"
        case ev.ActionCancelled():
            return "■", "warning", f"{said.action} cut off: {said.reason}"
        case ev.ActionOutcomeUnknown():
            return "!", "warning", f"{said.action}: outcome unknown"
    return None


def _say_job(said: ev.Payload) -> tuple[str, str, str] | None:
    match said:
        case ev.JobStarted():
            return "▶", "action", f"job {said.job} runs: {said.command}"
        case ev.JobEnded(code=0):
            return "✓", "success", f"job {said.job} {said.message}"
        case ev.JobEnded(ended="cancelled"):
            return "■", "operator", f"job {said.job} {said.message}"
        case ev.JobEnded():
            return "✗", "warning", f"job {said.job} {said.message}"
        case ev.JobStopAsked():
            return "■", "operator", f"job {said.job} is to end"
    return None


def _say_shell(said: ev.Payload) -> tuple[str, str, str] | None:
    match said:
        case ev.ShellReturned():
            return "◂", "operator", f"shell handed back{': ' if said.note else ''}{said.note}"
        case ev.ChangesOffered():
            changes = "; ".join(offer.text for offer in said.offers) or "nothing but its place"
            return "?", "warning", f"changed at the shell: {changes}"
        case ev.ChangesSettled():
            untold = f"; not of {', '.join(said.rejected)}" if said.rejected else ""
            return "✓", "operator", f"told the agent of {', '.join(said.accepted) or 'no change'}{untold}"
    return None


def _say_mind(said: ev.Payload) -> tuple[str, str, str] | None:
    match said:
        case ev.ReasonerAdvanced() if said.said:
            return "…", "thought", " · ".join(said.said)
        case ev.BeliefTold():
            return "∴", "operator", f"{'forgets' if said.removed else 'believes'} {said.literal}"
        case ev.MessageHeard():
            return "◂", "thought", f"{said.sender} {said.performative} {said.content}"
        case ev.IntentionSteered():
            return "»", "operator", f"intention {said.intention}: {said.reason}"
        case ev.MindBreakpointChanged(cleared=True):
            return "◎", "operator", f"no breakpoint on {said.on} {said.pattern}"
        case ev.MindBreakpointChanged():
            off = "" if said.enabled else ", switched off"
            return "◉", "operator", f"breakpoint {said.breakpoint} on {said.on} {said.pattern}{off}"
        case ev.MindBreakpointHit():
            return "◉", "warning", f"breakpoint {said.breakpoint}: {said.what}"
        case ev.TracingSet():
            return "○", "operator", f"tracing is {'on' if said.on else 'off'}"
    return _say_generation(said)


def _say_generation(said: ev.Payload) -> tuple[str, str, str] | None:
    match said:
        case ev.GenerationBegun():
            return "?", "plan", f"{said.generation}: plans are needed for {said.goal} ({said.trigger})"
        case ev.GenerationAsked():
            return "→", "thought", f"{said.generation}: asks {said.model} for plans, attempt {said.attempt}"
        case ev.GenerationAnswered(error=""):
            took = f"{said.duration_ms / 1000:.1f} s, {said.tokens} tokens"
            return "←", "thought", f"{said.generation}: {said.model} answered ({took})"
        case ev.GenerationAnswered():
            return "✗", "error", f"{said.generation}: no answer: {said.error}"
        case ev.GenerationReviewed():
            good = sum(plan.accepted for plan in said.plans)
            wrong = f"; {said.failure}" if said.failure else ""
            return "≡", "thought", f"{said.generation}: {good} of {len(said.plans)} plans can be used{wrong}"
        case ev.PlansHeld():
            return "?", "warning", f"{said.generation}: plans wait for your approval"
        case ev.PlansDecided():
            return "✓", "operator", f"{said.generation}: {said.decision}"
        case ev.GenerationSettled() if said.plans:
            return "≡", "plan", f"{said.generation}: {len(said.plans)} plans installed"
        case ev.GenerationSettled():
            return "✗", "error", f"{said.generation}: no plans: {said.reason}"
    return None


def _say_model(said: ev.Payload) -> tuple[str, str, str] | None:
    match said:
        case ev.ModelCalled(error=""):
            cost = "price unknown" if said.cost_usd is None else f"${said.cost_usd:.4f}"
            cut = ", cut off" if said.partial else ""
            took = f"{said.duration_ms / 1000:.1f} s"
            return "←", "session", f"{said.model}: {said.tokens} tokens, {cost}, {took}{cut}"
        case ev.ModelCalled():
            return "✗", "warning", f"{said.model}: {said.error}"
        case ev.ThinkingFailed():
            what = f"decision on {said.step}" if said.step else f"plan for {said.goal}"
            return "✗", "error", f"no {what}: {said.message}"
        case ev.BudgetReached():
            return "‖", "warning", f"{held_before(said)}: {said.reason}"
        case ev.BudgetEased():
            return "▶", "operator", f"there is more of the budget of {said.budget} now"
        case ev.BudgetSet():
            whose = said.goal or "the agent"
            return "$", "operator", f"budget of {whose}: {said.limits or 'as the settings say'}"
        case ev.DecisionMade():
            return "→", "plan", decision_text(said.decision)
    return None


def held_before(said: ev.BudgetReached) -> str:
    """What a budget does not let begin, in words."""
    return "held, as its time is up" if said.before == "time" else f"held before {_AN[said.before]}"


_AN = {"call": "a call", "action": "an action"}
_DECIDED: dict[DecisionKind, str] = {
    DecisionKind.CALL: "call",
    DecisionKind.THINK: "a thought",
    DecisionKind.PLAN: "a new plan",
    DecisionKind.SUBGOAL: "first another goal",
    DecisionKind.FINISH: "done",
    DecisionKind.GIVE_UP: "given up",
    DecisionKind.ASK: "asks you",
}


def decision_text(decision: Decision) -> str:
    """What a thinker decided, in a line."""
    said = clean_line(decision.text)
    if decision.kind is DecisionKind.CALL:
        said = " · ".join(filter(None, (call_text(decision.command, decision.args), said)))
    return f"decided: {_DECIDED[decision.kind]}" + (f": {said}" if said else "")


def _say_time(said: ev.Payload) -> tuple[str, str, str] | None:
    match said:
        case ev.RewindBegun():
            return "◂", "operator", f"rewind to event {said.to} begins; the files of now are saved"
        case ev.RewindFailed():
            return "✗", "error", f"rewind: {said.reason}"
        case ev.RewindCutOff():
            return "!", "warning", f"the rewind to event {said.to} was cut off; how far it came is unknown"
        case ev.Rewound():
            several = "path" if said.changed == 1 else "paths"
            files = f", {said.changed} {several} changed" if said.snapshot else ""
            return "◂", "operator", f"rewound to event {said.to}: {said.what}{files}"
        case ev.AgentForked():
            return "⑂", "operator", f"begins where {said.parent} stood, with files of its own"
    return None


def _say_trouble(said: ev.Payload) -> tuple[str, str, str] | None:
    match said:
        case ev.CommandRefused():
            return "✗", "warning", f"refused: {said.reason}"
        case ev.FailureRecorded():
            return "✗", "error", f"{said.failure}: {said.message}"
        case ev.RecoveryChosen():
            tries = f" {said.attempt}/{said.of} in {said.delay_s:g} s" if said.delay_s else ""
            return "↻", "warning", f"recovery {said.strategy}{tries}: {said.why}"
        case ev.RecoveryEnded():
            came = "worked" if said.success else "did not work"
            rests = f"; it rests until tick {said.rests_until}" if said.rests_until else ""
            return "↻", "plan", f"recovery {said.strategy} {came}{rests}"
        case ev.RecoveryHastened():
            return "↻", "operator", f"the plan for {said.goal} is asked for again now"
        case ev.InterventionOpened():
            return "?", "warning", f"your turn: {said.reason}"
        case ev.InterventionClosed():
            return "✓", "operator", f"decided: {said.resolution}"
        case ev.SnapshotWaived():
            return "!", "operator", f"{said.step} runs without a snapshot"
        case ev.BreakpointSet():
            return "◉", "operator", f"breakpoint on {said.step}"
        case ev.BreakpointCleared():
            return "◎", "operator", f"no breakpoint on {said.step}"
        case ev.BreakpointHit(breakpoint=""):
            return "◉", "warning", f"breakpoint reached: {said.step}"
        case ev.BreakpointHit():
            return "◉", "warning", f"breakpoint {said.breakpoint}: {said.what}"
        case ev.BreakpointAdded():
            return "◉", "operator", f"breakpoint {said.breakpoint}: {write_break(said.spec)}"
        case ev.BreakpointChanged(cleared=True):
            return "◎", "operator", f"no breakpoint {said.breakpoint}"
        case ev.BreakpointChanged():
            return "◉", "operator", f"breakpoint {said.breakpoint} {'on' if said.enabled else 'off'}"
    return None


def _say_approval(said: ev.Payload) -> tuple[str, str, str] | None:
    match said:
        case ev.ApprovalsSet():
            rules = len(said.policy.rules)
            return "¿", "operator", f"approvals ({said.source}): {rules} rules, else {said.policy.default}"
        case ev.ApprovalAsked():
            what = call_text(said.call.command, said.call.args)
            return "?", "warning", f"may {said.action} run? {what}: {said.why}"
        case ev.ApprovalAnswered(allowed=True):
            return "✓", "operator", f"{said.action} allowed ({said.scope})"
        case ev.ApprovalAnswered():
            return "✗", "operator", f"{said.action} denied" + (f": {said.reason}" if said.reason else "")
        case ev.RuleGranted():
            return (
                "✓",
                "operator",
                f"{said.grant} ({said.scope}), unasked: {rule_text(said.rule)}",
            )
        case ev.RuleRevoked():
            return "✗", "operator", f"{said.grant} holds no longer"
        case ev.PlanAccepted():
            within = f"; unasked within: {envelope_text(said.envelope)}" if said.envelope else ""
            return "≡", "operator", f"plan of {said.goal} accepted: {len(said.steps)} steps{within}"
        case ev.EnvelopeRevoked():
            return "✗", "operator", f"the envelope of {said.goal} holds no longer"
        case ev.ReplanHeld():
            counts = f"{said.added} added, {said.removed} removed, {said.changed} changed"
            return "?", "warning", f"re-plan of {said.goal} waits for you: {said.change} ({counts})"
        case ev.ReplanRejected():
            why = f": {said.reason}" if said.reason else ""
            return "✗", "operator", f"re-plan of {said.goal} rejected{why}"
    return None


def _say_meta(said: ev.Payload) -> tuple[str, str, str] | None:
    match said:
        case ev.BackgroundStarted():
            about = f" ({said.about})" if said.about else ""
            return "↺", "thought", f"{said.job} {said.task}{about} in the background: {said.why}"
        case ev.StuckNoticed() if said.signs:
            held = ", so it is held" if said.holds else ""
            return "↻", "warning", f"may be stuck{held}: {'; '.join(sign.text for sign in said.signs)}"
        case ev.StuckNoticed():
            return "↻", "thought", "stuck no longer"
        case ev.BackgroundEnded(outcome=JobOutcome.DONE):
            how = "computed" if said.computed else "written by a model"
            return "↺", "thought", f"{said.job} {said.message} ({how})"
        case ev.BackgroundEnded():
            return "↺", "warning", f"{said.job} {said.outcome}: {said.message}"
        case ev.ThresholdsAdapted():
            due = f"reflection after {said.reflection}, consolidation after {said.consolidation}"
            return "↺", "thought", f"{due}: {said.failures} of {said.calls} actions failed"
        case ev.ReplanAsked():
            return "↺", "plan", f"the rest of {said.goal} is planned anew, as a reflection asks"
    return _say_meta_command(said)


def _say_dispute(said: ev.Payload) -> tuple[str, str, str] | None:
    match said:
        case ev.ResultDisputed(lifted=True):
            return "≠", "operator", f"{said.event} is no longer marked as wrong"
        case ev.ResultDisputed():
            return (
                "≠",
                "operator",
                f"{said.event} is marked as wrong{': ' if said.reason else ''}{said.reason}",
            )
    return None


def _say_meta_command(said: ev.Payload) -> tuple[str, str, str] | None:
    match said:
        case ev.ThresholdsSet():
            named = {"reflection": said.reflection, "consolidation": said.consolidation}
            told = ", ".join(f"{name} after {value}" for name, value in named.items() if value is not None)
            return "↺", "operator", told
        case ev.MetaForced():
            return "↺", "operator", f"{said.task} is to be done now"
        case ev.MetaVetoed():
            return "↺", "operator", f"{said.task} {'allowed again' if said.lifted else 'vetoed'}"
        case ev.BackgroundCancelAsked():
            return "■", "operator", f"{said.job} is to end"
        case ev.GuidanceGiven():
            return "»", "operator", f"to the thinker: {said.text}"
    return None


_TELLERS = (
    *(_say_session, _say_goal, _say_plan, _say_action, _say_approval),
    *(_say_job, _say_shell, _say_mind, _say_dispute, _say_meta, _say_model, _say_time, _say_trouble),
)
