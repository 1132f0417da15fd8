"""What follows from commands about an agent's metacognition."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from engine.domain import commands as cmd
from engine.domain.metacognition import Bounds, MetaTask
from engine.domain.state import AgentState, RunState
from engine.journal import events as ev
from engine.loop.outcome import Outcome, RefusedError
from engine.tools.registry import ToolRegistry


def _switched_on(state: AgentState) -> None:
    if not state.meta.on:
        raise RefusedError(
            "metacognition is switched off for this agent: create one without "
            '"metacognition": {"enabled": false} in its configuration'
        )


def _force(state: AgentState, said: cmd.ForceMeta, registry: ToolRegistry) -> Outcome:
    _switched_on(state)
    task = MetaTask(said.task)
    if state.run is RunState.STOPPED:
        raise RefusedError("the agent is stopped; let it run or pause it first")
    if (job := state.meta.doing(task)) is not None:
        return Outcome(f"{task} runs already: {job.id}")
    if task.needs_memory and not state.meta.memory:
        raise RefusedError(f"{task} needs a memory, and there is none in this session")
    if task.needs_memory and not state.goals:
        raise RefusedError(f"{task} needs a goal whose memories it is about")
    return Outcome(f"{task} begins now", (ev.MetaForced(task=task),))


def _veto(state: AgentState, said: cmd.VetoMeta, registry: ToolRegistry) -> Outcome:
    _switched_on(state)
    task = MetaTask(said.task)
    if said.lifted == (task not in state.meta.vetoed):
        return Outcome(f"{task} is {'allowed' if said.lifted else 'vetoed'} already")
    vetoed = ev.MetaVetoed(task=task, lifted=said.lifted)
    if said.lifted:
        return Outcome(f"{task} may be begun by itself again", (vetoed,))
    job = state.meta.doing(task)
    cut = (ev.BackgroundCancelAsked(job=job.id),) if job is not None else ()
    running = f"; {job.id} is cut off" if job is not None else ""
    return Outcome(f"{task} is not begun by itself any more{running}", (vetoed, *cut))


def _cancel(state: AgentState, said: cmd.CancelBackground, registry: ToolRegistry) -> Outcome:
    job = state.meta.job(said.job)
    if job is None:
        known = ", ".join(f"{one.id} {one.task}" for one in state.meta.running) or "none"
        raise RefusedError(f"there is no background job '{said.job}'; running: {known}")
    return Outcome(f"{job.id} {job.task} is cut off", (ev.BackgroundCancelAsked(job=job.id),))


def _thresholds(state: AgentState, said: cmd.SetThresholds, registry: ToolRegistry) -> Outcome:
    _switched_on(state)
    settings, notes = state.meta.settings, []

    def within(name: str, wanted: int | None, bounds: Bounds) -> int | None:
        if wanted is None:
            return None
        value = bounds.clamp(wanted)
        clamped = f" (not {wanted}: it goes from {bounds.low} to {bounds.high})" if value != wanted else ""
        notes.append(f"{name} after {value}{clamped}")
        return value

    reflection = within("reflection", said.reflection, settings.reflection)
    consolidation = within("consolidation", said.consolidation, settings.consolidation)
    if not notes:
        raise RefusedError("say which threshold: reflection, consolidation or both")
    changed = ev.ThresholdsSet(reflection=reflection, consolidation=consolidation)
    return Outcome("; ".join(notes), (changed,))


def _guide(state: AgentState, said: cmd.Guide, registry: ToolRegistry) -> Outcome:
    text = said.text.strip()
    if not text:
        raise RefusedError("the guidance has no text")
    if not state.config.replans or state.reasons:
        raise RefusedError(
            "this agent has no thinker that reads guidance: change its goal, plan or beliefs instead"
        )
    return Outcome("in the next prompt", (ev.GuidanceGiven(text=text),))


HANDLERS: dict[type[cmd.Command], Callable[[AgentState, Any, ToolRegistry], Outcome]] = {
    cmd.ForceMeta: _force,
    cmd.VetoMeta: _veto,
    cmd.CancelBackground: _cancel,
    cmd.SetThresholds: _thresholds,
    cmd.Guide: _guide,
}
