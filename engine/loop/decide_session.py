"""What follows from commands about the sandbox session: the operator's shell, jobs, snapshots."""

from __future__ import annotations

from engine.domain import commands as cmd
from engine.domain.belief import BeliefSource
from engine.domain.plan import StepStatus
from engine.domain.session import SHELL_COMMAND, SHELL_TOOL
from engine.domain.state import AgentState, RunState
from engine.journal import events as ev
from engine.loop.decide_stop import refuse_frozen
from engine.loop.outcome import Outcome, RefusedError
from engine.tools.registry import ToolRegistry


def may_go_on(state: AgentState) -> None:
    """Refuse while something waits for the operator."""
    if state.intervention is not None:
        raise RefusedError(f"the agent waits for your decision: {state.intervention.reason}")
    if state.shell_taken:
        raise RefusedError("you have the shell; hand it back first: ctrl+]")
    if state.returned is not None:
        raise RefusedError("what you changed at the shell is being looked at; try again in a moment")
    if state.handover is not None:
        raise RefusedError("say first what the agent is to know of your changes: settle, or press t")


def take_shell(state: AgentState, said: cmd.TakeShell, registry: ToolRegistry) -> Outcome:
    """Hold the agent and queue the operator's shell; it opens when no action runs."""
    if state.shell_taken:
        raise RefusedError("you have the shell already; ctrl+] hands it back")
    if state.returned is not None:
        raise RefusedError("what you changed at the shell is being looked at; try again in a moment")
    if state.handover is not None:
        raise RefusedError("say first what the agent is to know of what you did at the shell before")
    refuse_frozen(state)
    problems = registry.validate(SHELL_TOOL, SHELL_COMMAND, {})
    if problems:
        raise RefusedError("; ".join(problem.message for problem in problems))
    held = (ev.AgentPaused(reason="you have the shell"),) if state.run is RunState.RUNNING else ()
    queued = ev.OperatorActionQueued(tool=SHELL_TOOL, command=SHELL_COMMAND, args={})
    busy = f" when {state.action.command} has ended" if state.acting and state.action else ""
    return Outcome(f"the shell is yours{busy}; ctrl+] hands it back", (*held, queued))


def return_shell(state: AgentState, said: cmd.ReturnShell, registry: ToolRegistry) -> Outcome:
    """End the operator's shell in good order."""
    action = state.action
    if action is None or not action.shell or not action.started:
        raise RefusedError("there is no shell to hand back; t takes it")
    refuse_frozen(state)
    returned = ev.ShellReturned(action=action.id, note=said.note.strip())
    return Outcome("the shell is handed back", (returned,))


def settle_changes(state: AgentState, said: cmd.SettleChanges, registry: ToolRegistry) -> Outcome:
    """Believe what the operator accepts of what they changed; the agent looks at its workspace afresh."""
    handover = state.handover
    if handover is None:
        raise RefusedError("no changes wait for you to settle them")
    known = {offer.key: offer for offer in handover.offers}
    wanted = tuple(known) if said.accept is None else said.accept
    unknown = [key for key in wanted if key not in known]
    if unknown:
        raise RefusedError(f"{', '.join(unknown)}: not offered; offered are {', '.join(known) or 'none'}")
    believed = [
        ev.BeliefAdded(key=key, value=known[key].value, confidence=1.0, source=BeliefSource.OPERATOR)
        for key in dict.fromkeys(wanted)
    ]
    settled = ev.ChangesSettled(
        accepted=tuple(dict.fromkeys(wanted)),
        rejected=tuple(key for key in known if key not in wanted),
        session=handover.session if said.follow else None,
    )
    return Outcome(f"the agent knows {len(believed)} of {len(known)} changes", (*believed, settled))


def stop_job(state: AgentState, said: cmd.StopJob, registry: ToolRegistry) -> Outcome:
    """End a background job."""
    job = state.jobs.get(said.job)
    if job is None or not job.running:
        running = ", ".join(job.id for job in state.running_jobs) or "none"
        what = f"there is no job '{said.job}'" if job is None else f"job {said.job} has ended"
        raise RefusedError(f"{what}; running jobs: {running}")
    return Outcome(f"job {said.job} is being ended", (ev.JobStopAsked(job=said.job),))


def waive_snapshot(state: AgentState, said: cmd.WaiveSnapshot, registry: ToolRegistry) -> Outcome:
    """Let a failed or pending step run without a workspace snapshot, once."""
    found = state.find_step(said.step)
    if found is None:
        raise RefusedError(f"there is no step '{said.step}'")
    plan, step = found
    if step.status.terminal:
        raise RefusedError(f"step {step.id} is {step.status}; it will not run again")
    events: list[ev.Payload] = [ev.SnapshotWaived(step=step.id)]
    if step.status is StepStatus.FAILED:
        again = ev.StepEnded(goal=plan.goal, step=step.id, status=StepStatus.PLANNED, summary=step.summary)
        events.append(again)
    if state.intervention is not None and state.intervention.step == step.id:
        events.append(ev.InterventionClosed(resolution="run without a snapshot"))
    return Outcome(f"step {step.id} runs without a snapshot; it cannot be undone", tuple(events))
