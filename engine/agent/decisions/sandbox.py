"""What commands about the sandbox session lead to: stops, the operator's shell, jobs, snapshots."""

from __future__ import annotations

from engine.agent.decisions.outcome import CommandOutcome, RefusedError, handles, refuse
from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.agents import RunState
from engine.core.beliefs import BeliefSource
from engine.core.plan import StepStatus
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
def _stop(state: AgentState, command: cmd.Stop, registry: ToolRegistry) -> CommandOutcome:
    grade = StopGrade(command.grade)
    if _stands(state, grade):
        return CommandOutcome(_already(state))
    if grade is StopGrade.AFTER:
        return _after_this_step(state)
    if grade is StopGrade.KILL:
        running = f"; {state.action.command} is cut off" if state.acting and state.action else ""
        return CommandOutcome(
            f"stopped{running}{jobs_text(state, _JOBS[grade])}", (ev.AgentStopped(reason=command.reason),)
        )
    reason = f"{_SAID[grade]} by the operator"
    message = f"{_SAID[grade]}{jobs_text(state, _JOBS.get(grade, 'go on'))}"
    return CommandOutcome(message, (ev.AgentHeld(grade=grade, reason=reason),))


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


def _after_this_step(state: AgentState) -> CommandOutcome:
    """Let what is under way be finished; a step that failed is not tried again before the agent goes on."""
    if state.grants and state.run is RunState.PAUSED:
        return CommandOutcome("already held after this step")
    waits = state.intervention or state.handover or state.retry or state.returned or state.shell_taken
    begun = state.has_work and not state.acting and not waits
    if begun:
        return CommandOutcome("held after this step", (ev.StepGranted(),))
    message = f"held when {state.action.command} has ended" if state.acting and state.action else "held"
    return CommandOutcome(
        f"{message}{jobs_text(state, 'go on')}", (ev.AgentPaused(reason="held by the operator"),)
    )


@handles(cmd.Thaw)
def _thaw(state: AgentState, command: cmd.Thaw, registry: ToolRegistry) -> CommandOutcome:
    if not state.frozen:
        return CommandOutcome("nothing is frozen")
    return CommandOutcome("thawed; the agent is held until you let it run", (ev.AgentThawed(),))


def refuse_frozen(state: AgentState) -> None:
    """Refuse while the agent's processes are frozen."""
    refuse(state.frozen, "its processes are frozen: thaw lets them go on, run the agent too")


def jobs_text(state: AgentState, what: str) -> str:
    """What becomes of the background jobs, for the end of a receipt; empty when none runs."""
    count = len(state.running_jobs)
    return f"; {count} background job{'s' * (count > 1)}: {what}" if count else ""


def can_resume(state: AgentState) -> None:
    """Refuse while something waits for the operator."""
    if state.intervention is not None:
        raise RefusedError(f"the agent waits for your decision: {state.intervention.reason}")
    refuse(state.shell_taken, "you have the shell; hand it back first: ctrl+]")
    if state.returned is not None:
        raise RefusedError("what you changed at the shell is being looked at; try again in a moment")
    if state.handover is not None:
        raise RefusedError("say first what the agent is to know of your changes: settle, or press t")


@handles(cmd.TakeShell)
def take_shell(state: AgentState, command: cmd.TakeShell, registry: ToolRegistry) -> CommandOutcome:
    """Hold the agent and queue the operator's shell; it opens when no action runs."""
    refuse(state.shell_taken, "you have the shell already; ctrl+] hands it back")
    if state.returned is not None:
        raise RefusedError("what you changed at the shell is being looked at; try again in a moment")
    if state.handover is not None:
        raise RefusedError("say first what the agent is to know of what you did at the shell before")
    refuse_frozen(state)
    problems = registry.validate(SHELL_TOOL, SHELL_COMMAND, {})
    refuse(problems, "; ".join(problem.message for problem in problems))
    held = (ev.AgentPaused(reason="you have the shell"),) if state.run is RunState.RUNNING else ()
    queued = ev.OperatorActionQueued(tool=SHELL_TOOL, command=SHELL_COMMAND, args={})
    busy = f" when {state.action.command} has ended" if state.acting and state.action else ""
    return CommandOutcome(f"the shell is yours{busy}; ctrl+] hands it back", (*held, queued))


@handles(cmd.ReturnShell)
def return_shell(state: AgentState, command: cmd.ReturnShell, registry: ToolRegistry) -> CommandOutcome:
    """End the operator's shell in good order."""
    action = state.action
    if action is None or not action.shell or not action.started:
        raise RefusedError("there is no shell to hand back; t takes it")
    refuse_frozen(state)
    returned = ev.ShellReturned(action=action.id, note=command.note.strip())
    return CommandOutcome("the shell is handed back", (returned,))


@handles(cmd.SettleChanges)
def settle_changes(state: AgentState, command: cmd.SettleChanges, registry: ToolRegistry) -> CommandOutcome:
    """Believe what the operator accepts of what they changed; the agent looks at its workspace afresh."""
    handover = state.handover
    if handover is None:
        raise RefusedError("no changes wait for you to settle them")
    known = {offer.key: offer for offer in handover.offers}
    accepted = tuple(known) if command.accept is None else command.accept
    unknown = [key for key in accepted if key not in known]
    refuse(unknown, f"{', '.join(unknown)}: not offered; offered are {', '.join(known) or 'none'}")
    believed = [
        ev.BeliefAdded(key=key, value=known[key].value, confidence=1.0, source=BeliefSource.OPERATOR)
        for key in dict.fromkeys(accepted)
    ]
    settled = ev.ChangesSettled(
        accepted=tuple(dict.fromkeys(accepted)),
        rejected=tuple(key for key in known if key not in accepted),
        session=handover.session if command.follow else None,
    )
    return CommandOutcome(f"the agent knows {len(believed)} of {len(known)} changes", (*believed, settled))


@handles(cmd.StopJob)
def stop_job(state: AgentState, command: cmd.StopJob, registry: ToolRegistry) -> CommandOutcome:
    """End a background job."""
    job = state.jobs.get(command.job)
    if job is None or not job.running:
        running = ", ".join(job.id for job in state.running_jobs) or "none"
        what = f"there is no job '{command.job}'" if job is None else f"job {command.job} has ended"
        raise RefusedError(f"{what}; running jobs: {running}")
    return CommandOutcome(f"job {command.job} is being ended", (ev.JobStopAsked(job=command.job),))


@handles(cmd.WaiveSnapshot)
def waive_snapshot(state: AgentState, command: cmd.WaiveSnapshot, registry: ToolRegistry) -> CommandOutcome:
    """Let a failed or pending step run without a workspace snapshot, once."""
    located = state.find_step(command.step)
    if located is None:
        raise RefusedError(f"there is no step '{command.step}'")
    plan, step = located
    refuse(step.status.terminal, f"step {step.id} is {step.status}; it will not run again")
    events: list[ev.Payload] = [ev.SnapshotWaived(step=step.id)]
    if step.status is StepStatus.FAILED:
        again = ev.StepEnded(goal=plan.goal, step=step.id, status=StepStatus.PLANNED, summary=step.summary)
        events.append(again)
    if state.intervention is not None and state.intervention.step == step.id:
        events.append(ev.InterventionClosed(resolution="run without a snapshot"))
    return CommandOutcome(f"step {step.id} runs without a snapshot; it cannot be undone", tuple(events))
