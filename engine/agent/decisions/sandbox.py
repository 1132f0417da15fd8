"""What commands about the sandbox session lead to: stops, the operator's shell, jobs, snapshots."""

from __future__ import annotations

from engine.agent.decisions.outcome import CommandResult, RefusedError, handles, needed, refuse, step_of
from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.agents import RunState
from engine.core.beliefs import BeliefSource
from engine.core.plan import StepStatus
from engine.core.reasons import Reason
from engine.core.sandbox import SHELL_COMMAND, SHELL_TOOL, StopGrade
from engine.core.state import AgentState
from engine.tools.registry import ToolRegistry

_SAID = {
    StopGrade.HOLD: "held",
    StopGrade.CUT: "held, its model cut off",
    StopGrade.CANCEL: "held, its action cancelled",
    StopGrade.FREEZE: "frozen",
}
_JOBS = {StopGrade.FREEZE: "frozen", StopGrade.KILL: "ended"}


@handles(cmd.Stop)
def _stop(state: AgentState, command: cmd.Stop, registry: ToolRegistry) -> CommandResult:
    grade = StopGrade(command.grade)
    if _stands(state, grade):
        return CommandResult(_already(state))
    if grade is StopGrade.AFTER:
        return _after_this_step(state)
    if grade is StopGrade.KILL:
        running = f"; {state.action.command} is cut off" if state.acting and state.action else ""
        return CommandResult(
            f"stopped{running}{jobs_text(state, _JOBS[grade])}", (ev.AgentStopped(reason=command.reason),)
        )
    reason = Reason(f"run.{grade}")
    message = f"{_SAID[grade]}{jobs_text(state, _JOBS.get(grade, 'go on'))}"
    return CommandResult(message, (ev.AgentHeld(grade=grade, reason=reason),))


def _stands(state: AgentState, grade: StopGrade) -> bool:
    """Whether all that the grade stops was stopped before, as far as the state can tell."""
    if grade is StopGrade.KILL:
        idle = state.action is None and not state.requests and not state.running_jobs
        return state.run is RunState.STOPPED and idle
    if state.run is RunState.STOPPED:
        return grade.rank <= StopGrade.CUT.rank or _stands_stopped(state, grade)
    if state.run is RunState.RUNNING or state.grants or (state.requests and grade is not StopGrade.AFTER):
        return False
    if grade.rank <= StopGrade.HOLD.rank:
        return True
    if grade is StopGrade.FREEZE:
        return state.frozen
    cut = state.held != "" and StopGrade(state.held).rank >= StopGrade.CUT.rank and not state.meta.running
    return cut and not (grade is StopGrade.CANCEL and state.acting)


def _stands_stopped(state: AgentState, grade: StopGrade) -> bool:
    """Whether nothing that the grade stops runs of a stopped agent: the operator may have started it."""
    jobs = state.running_jobs if grade is StopGrade.FREEZE else ()
    return not (state.acting or state.requests or jobs) or (state.frozen and grade is StopGrade.FREEZE)


def _already(state: AgentState) -> str:
    if state.run is RunState.STOPPED:
        return "already stopped"
    return "already frozen" if state.frozen else f"held already: {state.run_reason or 'by you'}"


def _after_this_step(state: AgentState) -> CommandResult:
    """Let what is under way be finished; a step that failed is not tried again before the agent continues."""
    if state.grants and state.run is RunState.PAUSED:
        return CommandResult("already held after this step")
    waits = state.intervention or state.handover or state.retry or state.returned or state.shell_taken
    begun = state.has_work and not state.acting and not waits
    if begun:
        return CommandResult("held after this step", (ev.StepGranted(),))
    message = f"held when {state.action.command} has ended" if state.acting and state.action else "held"
    return CommandResult(
        f"{message}{jobs_text(state, 'go on')}", (ev.AgentPaused(reason=Reason("run.after")),)
    )


@handles(cmd.Thaw)
def _thaw(state: AgentState, command: cmd.Thaw, registry: ToolRegistry) -> CommandResult:
    if not state.frozen:
        return CommandResult("nothing is frozen")
    return CommandResult("thawed; the agent is held until you let it run", (ev.AgentThawed(),))


def refuse_frozen(state: AgentState) -> None:
    """Refuse while the agent's processes are frozen."""
    refuse(state.frozen, Reason("refused.processes-frozen"))


def jobs_text(state: AgentState, what: str) -> str:
    """What happens to the background jobs, for the end of a receipt; empty when none runs."""
    count = len(state.running_jobs)
    return f"; {count} background job{'s' * (count > 1)}: {what}" if count else ""


def can_resume(state: AgentState) -> None:
    """Refuse while something waits for the operator."""
    if state.intervention is not None:
        raise RefusedError(Reason("refused.decision-waits", reason=state.intervention.reason))
    refuse(state.shell_taken, Reason("refused.shell-taken"))
    refuse(state.returned is not None, Reason("refused.changes-being-read"))
    refuse(state.handover is not None, Reason("refused.changes-to-settle"))


def paused_in_step(state: AgentState) -> CommandResult | None:
    """Before one step: a pause where the action that runs is this step, None where one may be granted.

    Raises:
        RefusedError: the agent may not go on.
    """
    can_resume(state)
    refuse_frozen(state)
    if state.run is not RunState.RUNNING or not state.acting:
        return None
    paused = ev.AgentPaused(reason=Reason("run.stepping"))
    return CommandResult("paused; the running action is this step", (paused,))


@handles(cmd.TakeShell)
def take_shell(state: AgentState, command: cmd.TakeShell, registry: ToolRegistry) -> CommandResult:
    """Hold the agent and queue the operator's shell; it opens when no action runs."""
    refuse(state.shell_taken, Reason("refused.shell-already-taken"))
    refuse(state.returned is not None, Reason("refused.changes-being-read"))
    refuse(state.handover is not None, Reason("refused.earlier-changes-to-settle"))
    refuse_frozen(state)
    problems = registry.validate(SHELL_TOOL, SHELL_COMMAND, {})
    refuse(problems, "; ".join(problem.message for problem in problems))
    held = (ev.AgentPaused(reason=Reason("run.shell")),) if state.run is RunState.RUNNING else ()
    queued = ev.OperatorActionQueued(tool=SHELL_TOOL, command=SHELL_COMMAND, args={})
    busy = f" when {state.action.command} has ended" if state.acting and state.action else ""
    return CommandResult(f"the shell is yours{busy}; ctrl+] hands it back", (*held, queued))


@handles(cmd.ReturnShell)
def return_shell(state: AgentState, command: cmd.ReturnShell, registry: ToolRegistry) -> CommandResult:
    """End the operator's shell in good order."""
    action = state.action
    if action is None or not action.shell or not action.started:
        raise RefusedError(Reason("refused.no-shell-to-hand-back"))
    refuse_frozen(state)
    returned = ev.ShellReturned(action=action.id, note=command.note.strip())
    return CommandResult("the shell is handed back", (returned,))


@handles(cmd.SettleChanges)
def settle_changes(state: AgentState, command: cmd.SettleChanges, registry: ToolRegistry) -> CommandResult:
    """Believe what the operator accepts of what they changed; the agent looks at its workspace afresh."""
    handover = needed(state.handover, Reason("refused.no-changes-to-settle"))
    known = {offer.key: offer for offer in handover.offers}
    accepted = tuple(known) if command.accept is None else command.accept
    unknown = [key for key in accepted if key not in known]
    offered = ", ".join(known) or "none"
    refuse(unknown, Reason("refused.not-offered", unknown=", ".join(unknown), known=offered))
    believed = [
        ev.BeliefAdded(key=key, value=known[key].value, confidence=1.0, source=BeliefSource.OPERATOR)
        for key in dict.fromkeys(accepted)
    ]
    settled = ev.ChangesSettled(
        accepted=tuple(dict.fromkeys(accepted)),
        rejected=tuple(key for key in known if key not in accepted),
        session=handover.session if command.follow else None,
    )
    return CommandResult(f"the agent knows {len(believed)} of {len(known)} changes", (*believed, settled))


@handles(cmd.StopJob)
def stop_job(state: AgentState, command: cmd.StopJob, registry: ToolRegistry) -> CommandResult:
    """End a background job."""
    job = state.jobs.get(command.job)
    if job is None or not job.running:
        running = ", ".join(job.id for job in state.running_jobs) or "none"
        jobs = {"job": command.job, "running": running}
        raise RefusedError(Reason("refused.no-job" if job is None else "refused.job-ended", **jobs))
    return CommandResult(f"job {command.job} is being ended", (ev.JobStopAsked(job=command.job),))


@handles(cmd.WaiveSnapshot)
def waive_snapshot(state: AgentState, command: cmd.WaiveSnapshot, registry: ToolRegistry) -> CommandResult:
    """Let a failed or pending step run without a workspace snapshot, once."""
    plan, step = step_of(state, command.step)
    refuse(step.status.terminal, Reason("refused.step-ended", step=step.id, status=step.status))
    events: list[ev.Payload] = [ev.SnapshotWaived(step=step.id)]
    if step.status is StepStatus.FAILED:
        again = ev.StepEnded(goal=plan.goal, step=step.id, status=StepStatus.PLANNED, summary=step.summary)
        events.append(again)
    if state.intervention is not None and state.intervention.step == step.id:
        events.append(ev.InterventionClosed(resolution=Reason("turn.unsaved")))
    return CommandResult(f"step {step.id} runs without a snapshot; it cannot be undone", tuple(events))
