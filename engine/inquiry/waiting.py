"""What an agent waits for right now: a pure function of its state, which always has an answer."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from engine.core import events as ev
from engine.core.agents import Mode, RunState
from engine.core.events import payload_of
from engine.core.journal import Event
from engine.core.plan import Op
from engine.core.reasoner import GenerationStage
from engine.core.state import AgentState
from engine.inquiry.inbox import asked_of
from engine.value import dataclass, replace

if TYPE_CHECKING:
    from engine.core.store.port import JournalStore
    from engine.models.completion import RetryWait


_GENERATING = {
    GenerationStage.BEGUN: "plans for {goal} are about to be asked for",
    GenerationStage.ASKED: "a model makes plans for {goal}",
    GenerationStage.ANSWERED: "the plans made for {goal} are reviewed",
    GenerationStage.REVIEWED: "the plans made for {goal} are about to be settled",
    GenerationStage.DECIDED: "what you decided on the plans for {goal} is about to be done",
}
"""What is going on at each stage of making plans."""


class WaitKind(StrEnum):
    """Who or what has to come next."""

    JOURNAL = "journal"
    """The disk: nothing acts before what happened is recorded."""
    OPERATOR = "operator"
    """A decision or a turn of the operator's."""
    WORKSPACE = "workspace"
    """Its files are looked at or saved."""
    TOOL = "tool"
    """An action that runs, or is being made ready."""
    RETRY = "retry"
    """The end of recovery's delay."""
    MODEL = "model"
    """A thinker's answer, or plans that are being made."""
    BUDGET = "budget"
    """More of a budget."""
    GATE = "gate"
    """The operator's leave to act: it is paused, stopped, or stands at a breakpoint."""
    TIME = "time"
    """A moment that its program waits for."""
    BACKGROUND = "background"
    """Nothing but jobs beside its work."""
    ITSELF = "itself"
    """Nothing: it is about to continue."""
    NOTHING = "nothing"
    """Nobody: there is nothing to do."""


_GOING_ON = frozenset({WaitKind.TOOL, WaitKind.WORKSPACE, WaitKind.MODEL, WaitKind.RETRY, WaitKind.ITSELF})
"""What an agent waits for while it works."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """What an agent waits for."""

    kind: WaitKind
    what: str
    """In words, on a line; made of what agents and tools said, so not cleaned."""
    since: str = ""
    """When the wait began, ISO 8601 UTC; empty where only the event is known."""
    event: str = ""
    """The event by which it waits; empty where there is none to be named."""


def waiting_for(state: AgentState, *, trouble: str = "") -> Waiting:
    """What the agent waits for.

    Args:
        state: how it stands.
        trouble: why the journal cannot record, when it cannot.
    """
    if trouble:
        return Waiting(WaitKind.JOURNAL, f"the journal cannot record: {trouble}", state.at)
    if state.deleted:
        return Waiting(WaitKind.NOTHING, "the agent was deleted", event=state.run_event)
    if state.frozen:
        return Waiting(WaitKind.GATE, "you: its processes are frozen; thaw or run it", event=state.run_event)
    waiting = _on_what_runs(state) or _on_the_operator(state) or _on_its_own(state) or _on_nothing(state)
    if state.meta.stuck is not None and waiting.kind in _GOING_ON:
        return replace(waiting, what=f"{waiting.what}; it may be stuck: {state.meta.stuck.text}")
    return waiting


def with_newest_event(waiting: Waiting, newest: Event | None) -> Waiting:
    """The same, told more exactly by the newest event of the agent's stream.

    Args:
        waiting: what the state says.
        newest: the newest durable event; None where there is none.
    """
    inexact = (WaitKind.TOOL, WaitKind.WORKSPACE, WaitKind.MODEL, WaitKind.GATE)
    if newest is None or waiting.kind not in inexact:
        return waiting
    match payload_of(newest):
        case ev.ParametersAsked() as payload:
            what = f"{payload.model} is asked for {', '.join(payload.missing)} of {payload.action}"
            return Waiting(WaitKind.MODEL, what, newest.at, newest.ref)
        case ev.SnapshotTaken() as payload:
            what = f"{payload.action} is about to start: the files are saved"
            return Waiting(WaitKind.TOOL, what, newest.at, newest.ref)
        case ev.ActionHeld() as payload if waiting.kind is WaitKind.WORKSPACE:
            what = f"{payload.action} is held: {payload.reason}"
            return Waiting(WaitKind.GATE, what, newest.at, newest.ref)
        case ev.ModelSaid() if waiting.kind is WaitKind.MODEL:
            return replace(waiting, what=f"{waiting.what}; its answer is coming in")
    return waiting


async def waiting_now(
    store: JournalStore, state: AgentState, *, trouble: str = "", rest: RetryWait | None = None
) -> Waiting:
    """What an agent waits for, told by its state and its newest durable events, with since when.

    Args:
        store: the journal.
        state: the agent's state now.
        trouble: why its events are not durable yet, where that is so.
        rest: the newest pause that the client of models took between two tries; None while it takes none.

    Raises:
        JournalError: the journal cannot be read.
    """
    waiting = waiting_for(state, trouble=trouble)
    last = await store.last(1, state.agent_id)
    waiting = with_newest_event(waiting, last[0] if last else None)
    if waiting.kind is WaitKind.MODEL and rest is not None:
        what = f"{waiting.what}; it answered {rest.why}, and is asked again after {rest.seconds:.1f} s"
        return replace(waiting, what=what, since=rest.at)
    if waiting.kind is WaitKind.MODEL and not waiting.since:
        kinds = (ev.PlanAsked.kind, ev.DecisionAsked.kind)
        asked = [event for kind in kinds for event in await store.last(1, state.agent_id, kind=kind)]
        if asked:
            newest = max(asked, key=lambda event: event.version)
            return replace(waiting, since=newest.at, event=newest.ref)
    if not waiting.since:
        event = await store.get(waiting.event) if waiting.event else None
        waiting = replace(waiting, since=event.at if event is not None else state.at)
    return waiting


def _on_what_runs(state: AgentState) -> Waiting | None:
    back = state.rewinding
    if back is not None:
        what = f"its files are brought back to event {back.to}"
        return Waiting(WaitKind.WORKSPACE, what, event=back.event)
    action = state.action
    if action is None or not (action.started or not action.step):
        return None
    if action.shell and action.started:
        return Waiting(WaitKind.OPERATOR, "you hold its shell", action.at, action.event)
    if action.started:
        ends = ""
        if state.run is RunState.STOPPED and action.step:
            ends = " (stopped: it is being ended)"
        elif state.run is not RunState.RUNNING:
            ends = " (paused: nothing starts after it)"
        what = f"{action.id} {action.tool}.{action.command} runs{ends}"
        return Waiting(WaitKind.TOOL, what, action.at, action.event)
    what = f"{action.id} {action.tool}.{action.command}, your call, is made ready: the files are saved first"
    return Waiting(WaitKind.WORKSPACE, what, action.at, action.event)


def _on_the_operator(state: AgentState) -> Waiting | None:
    if state.returned is not None:
        what = "its files are compared with those before your shell"
        return Waiting(WaitKind.WORKSPACE, what, event=state.returned.event)
    if state.requests:
        asked = state.requests[0]
        call = f"your call {asked.tool}.{asked.command} begins"
        what = "your shell is opened" if state.shell_taken else call
        return Waiting(WaitKind.TOOL, what, event=asked.event)
    if (need := next(asked_of(state), None)) is not None:
        return Waiting(WaitKind.OPERATOR, f"you: {need.what}", need.since, need.event)
    return _on_its_gate(state)


def _on_its_gate(state: AgentState) -> Waiting | None:
    """Which of the operator's commands keeps it from going on."""
    if state.run is RunState.STOPPED:
        what = f"you: it is stopped ({state.run_reason})"
        return Waiting(WaitKind.GATE, what, event=state.run_event)
    if state.run is not RunState.PAUSED or state.grants or not state.has_work:
        return None
    if state.held_by is not None or state.run_reason.is_a("run.budget"):
        return Waiting(WaitKind.BUDGET, state.run_reason, event=state.run_event)
    if state.timed_out:
        what = f"you: it is {Mode.TIMED_OUT} {state.pause_point}, {state.run_reason}; run resumes it"
        return Waiting(WaitKind.GATE, what, event=state.run_event)
    if state.breakpoint_hit:
        what = f"you: it stands at the breakpoint on {state.breakpoint_hit}"
        return Waiting(WaitKind.GATE, what, event=state.run_event)
    why = f": {state.run_reason}" if state.run_reason not in ("", "paused") else ""
    return Waiting(WaitKind.GATE, f"you: it is paused {state.pause_point}{why}", event=state.run_event)


def _on_its_own(state: AgentState) -> Waiting | None:
    """What a running agent waits for before it continues by itself."""
    retry = state.retry
    if retry is not None:
        what = f"the plan for {retry.goal}" if not retry.step else retry.step
        words = f"{what} is tried again, {retry.attempt} of {retry.of}, after {retry.delay_s:g} s"
        return Waiting(WaitKind.RETRY, words, retry.at, retry.event)
    action = state.action
    if action is not None:
        what = f"{action.id} {action.tool}.{action.command} is made ready: checked, and the files saved first"
        return Waiting(WaitKind.WORKSPACE, what, action.at, action.event)
    made = next((generation for generation in state.generations.values() if not generation.stage.over), None)
    if made is not None:
        return Waiting(WaitKind.MODEL, _GENERATING[made.stage].format(goal=made.goal), event=made.event)
    if not state.has_work:
        return None
    if not state.perceived and not state.reasons:
        return Waiting(WaitKind.WORKSPACE, "it looks at its workspace", event=state.run_event)
    mind = state.mind
    if mind is not None and mind.idle and mind.due_ms is not None and not state.wanted:
        what = "a moment that its program waits for"
        return Waiting(WaitKind.TIME, what, state.at)
    return _on_its_thinker(state) or Waiting(WaitKind.ITSELF, "nothing: it is about to continue", state.at)


def _on_its_thinker(state: AgentState) -> Waiting | None:
    thinker = state.model or state.config.thinker
    goal = state.goal
    if not state.reasons and goal is not None and not goal.status.terminal:
        if state.step is not None and state.step.op is Op.THINK:
            what = f"{thinker} decides what to do next for {goal.id}"
            return Waiting(WaitKind.MODEL, what, event=goal.event)
        if state.plan is None or state.needs_replan or goal.id in state.replans:
            return Waiting(WaitKind.MODEL, f"{thinker} plans {goal.id}", event=goal.event)
    return None


def _on_nothing(state: AgentState) -> Waiting:
    running = state.meta.running
    if running:
        named = ", ".join(f"{job.id} {job.task}" for job in running)
        what = f"nothing to do but work in the background: {named}"
        return Waiting(WaitKind.BACKGROUND, what, running[0].at, running[0].event)
    jobs = state.running_jobs
    if jobs:
        named = ", ".join(f"{job.id} {job.command}" for job in jobs)
        return Waiting(WaitKind.BACKGROUND, f"nothing to do; jobs run: {named}", jobs[0].at, jobs[0].event)
    what = "a goal: there is nothing to do" if not state.reasons else "an event: there is nothing to do"
    return Waiting(WaitKind.NOTHING, what, event=_last_end(state))


def _last_end(state: AgentState) -> str:
    """The event by which the last goal ended; empty where none has."""
    ended = [goal for goal in state.goals.values() if goal.status.terminal]
    return max(ended, key=lambda goal: goal.order).event if ended else state.run_event
