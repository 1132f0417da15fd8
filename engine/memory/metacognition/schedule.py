"""What background work is due, and why: pure functions of an agent's state.

Nothing here knows the time or what runs anywhere else, so that a replay gives the same. The thresholds of
reflection and consolidation follow how the work goes. The settings are checked where an agent is created.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from engine.core.agents import RunState
from engine.core.memory import ReflectionKind
from engine.core.metacognition import PRESETS, Bounds, MetaSettings, MetaTask, ThresholdsAdapted
from engine.core.reasons import NONE, Reason
from engine.core.state import AgentState
from engine.core.text import first_problem
from engine.model import LateModel
from engine.value import dataclass, replace

DAMPENING = 0.75
MOMENTUM = 0.2
"""By how much a rise is enlarged while nothing fails (the source's factor 1.2)."""
TARGET_FAILURE_RATE = 0.10
STABLE_FAILURE_RATE = 0.05
MINIMUM_CALLS = 5
"""Calls below which a failure rate says nothing."""
EPISODIC_BAND = (0.10, 0.30)
EPISODIC_MIDPOINT = 0.20


REFLECTION = MetaSettings().reflection
CONSOLIDATION = MetaSettings().consolidation


def adapted_reflection(
    threshold: int, calls: int, failures: int, consecutive_errors: int, bounds: Bounds = REFLECTION
) -> int:
    """The threshold of reflection after a look at how the agent's calls went.

    Args:
        threshold: the one in force.
        calls: calls of tools that are counted.
        failures: how many of them failed.
        consecutive_errors: errors since the last success.
        bounds: how far it may go.
    """
    if calls < MINIMUM_CALLS:
        return threshold
    rate = failures / calls
    # Rounded first: 0.2 - 0.1 is a little more than 0.1 in binary, and the ceiling would make a step of it.
    change = -math.ceil(round((rate - TARGET_FAILURE_RATE) * threshold * 3, 9))
    if rate < STABLE_FAILURE_RATE and not consecutive_errors and change >= 0:
        change += math.ceil(round(MOMENTUM * change, 9))
    return bounds.clamp(threshold + math.trunc(DAMPENING * change))


def adapted_consolidation(threshold: int, episodic: int, total: int, bounds: Bounds = CONSOLIDATION) -> int:
    """The threshold of consolidation after a look at how much of memory is episodic.

    Args:
        threshold: the one in force.
        episodic: episodic memories.
        total: memories of all levels; without any there is nothing to go by.
        bounds: how far it may go.
    """
    if not total:
        return threshold
    share = episodic / total
    if EPISODIC_BAND[0] <= share <= EPISODIC_BAND[1]:
        return threshold
    change = -math.ceil(round((share - EPISODIC_MIDPOINT) * threshold * 2, 9))
    return bounds.clamp(threshold + math.trunc(DAMPENING * change))


def consolidation_overdue(unconsolidated_episodic: int, threshold: int) -> bool:
    """Whether so many episodic memories wait that consolidation is due at once."""
    return unconsolidated_episodic > 2 * threshold


@dataclass(frozen=True, slots=True)
class Due:
    """Something that is to be begun now."""

    task: MetaTask
    why: str
    about: str = ""
    """Of a reflection: its kind."""


def root_goal(state: AgentState) -> str:
    """The root of the goal being pursued, or of the newest one; empty while there is none."""
    goal = state.goal or next(reversed(state.goals.values()), None)
    return state.lineage(goal.id)[-1].id if goal is not None else ""


def due(state: AgentState) -> tuple[Due, ...]:
    """What is to be begun now, in the order of `MetaTask`; no task runs twice at a time."""
    meta = state.meta
    if not meta.on or state.deleted or state.run is RunState.STOPPED:
        return ()
    return tuple(
        Due(task, why, ReflectionKind.nth(meta.cycle).value if task is MetaTask.REFLECT else "")
        for task, why in _wanted(state)
        if meta.doing(task) is None and not (task.needs_memory and not (meta.memory and root_goal(state)))
    )


def _wanted(state: AgentState) -> Iterator[tuple[MetaTask, Reason]]:
    meta = state.meta
    by_itself = state.run is RunState.RUNNING and bool(state.open_goals)
    for task in MetaTask:
        if task in meta.forced:
            yield task, Reason("meta.forced")
        elif by_itself and task not in meta.vetoed and meta.loop >= meta.resting.get(task, 0):
            why = _why(state, task)
            if why:
                yield task, why


def _why(state: AgentState, task: MetaTask) -> Reason:
    """Why a task is due by itself; empty when it is not."""
    meta = state.meta
    match task:
        case MetaTask.REFLECT:
            return _why_reflect(state)
        case MetaTask.CONSOLIDATE:
            counter, threshold = state.successes_since_consolidation, meta.consolidation_threshold
            if meta.overdue:
                return Reason("meta.episodic", memories=2 * threshold)
            return _succeeded(counter, threshold)
        case MetaTask.LINK:
            every = meta.settings.link_every
            if not meta.unlinked or not _passed(state, task, every):
                return NONE
            return Reason("meta.unlinked", actions=meta.unlinked)
    every = {
        MetaTask.ADAPT: meta.settings.adapt_every,
        MetaTask.OPTIMISE: meta.settings.optimise_every,
        MetaTask.PROMOTE: meta.settings.promote_every,
        MetaTask.MAINTAIN: meta.settings.maintain_every,
    }[task]
    return Reason("meta.every", loops=every) if _passed(state, task, every) else NONE


def _succeeded(counter: float, threshold: float) -> Reason:
    reached = counter >= threshold
    return Reason("meta.successes", successes=counter, threshold=threshold) if reached else NONE


def _passed(state: AgentState, task: MetaTask, every: int) -> bool:
    return state.meta.loop - state.meta.last.get(task, 0) >= every


def _why_reflect(state: AgentState) -> Reason:
    """Failures and successes are causes of their own, so that a reflection never causes the next."""
    meta = state.meta
    if state.needs_replan and meta.failures:
        return Reason("meta.failures", failures=meta.failures)
    if meta.loop < meta.cooldown_until:
        return NONE
    counter, threshold = state.successes_since_reflection, meta.reflection_threshold
    return _succeeded(counter, threshold)


def adaptation(state: AgentState) -> ThresholdsAdapted | None:
    """What the thresholds become after a count of memories; None while none waits to be followed."""
    meta, counts = state.meta, state.meta.counts
    if counts is None:
        return None
    reflection = adapted_reflection(
        meta.reflection_threshold,
        len(meta.window),
        meta.failed,
        state.consecutive_errors,
        meta.settings.reflection,
    )
    consolidation = adapted_consolidation(
        meta.consolidation_threshold, counts.episodic, counts.total, meta.settings.consolidation
    )
    return ThresholdsAdapted(
        reflection=reflection,
        consolidation=consolidation,
        calls=len(meta.window),
        failures=meta.failed,
        episodic=counts.episodic,
        total=counts.total,
        overdue=consolidation_overdue(counts.unconsolidated, consolidation),
    )


def replannable(state: AgentState) -> str:
    """The goal whose rest is to be planned anew, as a reflection asked for; empty when there is none now."""
    goal, plan = state.goal, state.plan
    if not state.meta.replan or goal is None or plan is None or not state.config.replans or state.reasons:
        return ""
    if state.open_thought(goal.id) is not None:
        return ""  # a thinker that decides step by step gets the feedback, and decides
    if goal.id != state.meta.replan_goal:
        return ""
    settled = goal.status.terminal or plan.complete or goal.id in state.replans or state.needs_replan
    waits_for_operator = state.intervention is not None or state.handover is not None
    return "" if settled or waits_for_operator or state.retry is not None else goal.id


def has_due_work(state: AgentState) -> bool:
    """Whether something is to be done at the next boundary of the cycle."""
    return state.meta.on and (state.meta.counts is not None or bool(replannable(state)) or bool(due(state)))


METACOGNITION_KEY = "metacognition"
"""Where the settings stand in an agent's configuration."""

Loops = Annotated[int, Field(ge=1, le=100_000)]


class MetaSettingsError(ValueError):
    """The settings cannot be used; the message says which and what they must be."""


class MetaConfiguration(BaseModel, metaclass=LateModel):
    """What an operator may set; what is left out is the preset's."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, defer_build=True)
    enabled: bool = True
    model: bool = False
    """Whether the agent's model writes reflections and consolidations; otherwise they are computed."""
    preset: Literal["seed", "long"] = "seed"
    reflection_threshold: int | None = None
    consolidation_threshold: int | None = None
    """Successes after which it is due, to begin with; clamped to the preset's bounds."""
    optimise_every: Loops | None = None
    adapt_every: Loops | None = None
    promote_every: Loops | None = None
    maintain_every: Loops | None = None
    link_every: Loops | None = None


def read_metacognition(meta: Mapping[str, Any]) -> MetaSettings:
    """The settings in an agent's configuration.

    Raises:
        MetaSettingsError: a setting is unknown or has a value that it cannot have.
    """
    given = meta.get(METACOGNITION_KEY, {})
    known = ", ".join(MetaConfiguration.model_fields)
    if not isinstance(given, Mapping):
        raise MetaSettingsError(f"{METACOGNITION_KEY}: it is a JSON object with any of {known}")
    try:
        read = MetaConfiguration.model_validate(dict(given))
    except ValidationError as error:
        raise MetaSettingsError(f"{METACOGNITION_KEY}.{first_problem(error)}; settings: {known}") from None
    usual = PRESETS[read.preset]
    intervals = ("optimise_every", "adapt_every", "promote_every", "maintain_every", "link_every")
    return replace(
        usual,
        enabled=read.enabled,
        model=read.model,
        reflection=_begun_at(usual.reflection, read.reflection_threshold),
        consolidation=_begun_at(usual.consolidation, read.consolidation_threshold),
        **{name: value for name in intervals if (value := getattr(read, name)) is not None},
    )


def _begun_at(bounds: Bounds, base: int | None) -> Bounds:
    return bounds if base is None else replace(bounds, base=bounds.clamp(base))
