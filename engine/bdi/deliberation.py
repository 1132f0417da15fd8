"""Deliberation: an event is selected, and one of its applicable plans becomes intended (spec §1.6)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from engine.bdi import failures, goal_states, messages, progress, waiting
from engine.bdi import trace as record
from engine.bdi.formulas import conjunction, conjuncts
from engine.bdi.goal_states import GoalState
from engine.bdi.intentions import Event, Frame, Intention
from engine.bdi.patterns import Env
from engine.bdi.plans import CompiledPlan
from engine.bdi.printing import text_of
from engine.bdi.problems import ErrorId, EvaluationError
from engine.bdi.semantics import EventPolicy
from engine.bdi.terms import Cell, Term, deref
from engine.bdi.trace import Change
from engine.bdi.unification import Trail, undo

if TYPE_CHECKING:
    from engine.bdi.agent import BdiAgent


@dataclass(frozen=True, slots=True)
class Option:
    """An applicable plan with what its trigger and context have bound."""

    plan: CompiledPlan
    env: Env
    bound: tuple[tuple[Cell, Term], ...]


@dataclass(slots=True)
class Selection:
    """The three selection functions; None stands for the default, which is also the fastest."""

    event: Callable[[Sequence[Event]], Event] | None = None
    """Default: the oldest."""
    option: Callable[[Event, Sequence[Option]], Option] | None = None
    """Default: the first applicable plan in the order of the program."""
    intention: Callable[[Sequence[Intention]], Intention] | None = None
    """Default: round robin."""


def deliberate(agent: BdiAgent) -> bool:
    """Handle one event; False when none could be, or all were irrelevant and cost nothing."""
    one_per_cycle = agent.semantics.event_policy is _ONE_PER_CYCLE
    while agent.events:
        event = _select_event(agent)
        if event is None:
            return False
        if event.intention is not None:
            event.intention.event = None
        if agent.tracer is not None:
            number = event.intention.id if event.intention else 0
            agent.tracer(record.EventSelected(agent.name, agent.cycles, event.text, number))
        if _handle(agent, event) or one_per_cycle:
            return True
    return False


_ONE_PER_CYCLE = EventPolicy.ONE_PER_CYCLE


def _select_event(agent: BdiAgent) -> Event | None:
    if not agent.atomics and not agent.suspensions and agent.selection.event is None:
        return agent.events.popleft()
    held = agent.atomic()
    able = [one for one in agent.events if one.intention is None or not one.intention.suspended]
    if held is not None:
        able = [one for one in able if one.intention is held]
    if not able:
        return None
    chosen = able[0] if agent.selection.event is None or held else agent.selection.event(able)
    agent.events.remove(chosen)
    return chosen


def select_intention(agent: BdiAgent) -> Intention | None:
    """Take the intention whose step is run; None when none can go on."""
    if agent.atomics or agent.selection.intention is not None:
        return _choose_intention(agent)
    while agent.ready:
        intention = agent.ready.popleft()
        if intention.suspended:
            intention.parked = True
        else:
            return intention
    return None


def by_priority(intentions: Sequence[Intention]) -> Intention:
    """The intention whose plan has the highest `[priority(n)]`; among equal ones the first, in turn."""
    return max(intentions, key=lambda one: one.priority)


def _choose_intention(agent: BdiAgent) -> Intention | None:
    able = [one for one in agent.ready if not one.suspended]
    held = agent.atomic()
    if held is not None:
        able = [one for one in able if one is held]
    if not able:
        return None
    choose = agent.selection.intention
    chosen = able[0] if choose is None or held else choose(able)
    agent.ready.remove(chosen)
    return chosen


def _handle(agent: BdiAgent, event: Event) -> bool:
    """Find a plan for an event; False when it was one of no consequence."""
    try:
        chosen, relevant = _choose(agent, event)
        if chosen is not None:
            _intend(agent, event, *chosen)
            return True
    except EvaluationError as error:
        failures.fail_event(agent, event, error.error_id, str(error))
        return True
    if event.sign[1:] and event.sign[0] != "^":
        return _no_plan(agent, event, relevant)
    if agent.tracer is not None:
        reason = ErrorId.NO_APPLICABLE if relevant else ErrorId.NO_RELEVANT
        agent.tracer(record.EventDropped(agent.name, agent.cycles, event.text, reason))
    if event.intention is not None:
        agent.step_done(event.intention)
        return True
    return False


def _no_plan(agent: BdiAgent, event: Event, relevant: bool) -> bool:
    if messages.by_default(agent, event):
        return True
    if relevant:
        failures.fail_event(agent, event, ErrorId.NO_APPLICABLE, f"no plan for {event.text} applies now")
    elif event.failure is None and agent.on_missing_plan is not None and agent.on_missing_plan(event):
        waiting.for_generation(agent, event)
    else:
        failures.fail_event(agent, event, ErrorId.NO_RELEVANT, f"there is no plan for {event.text}")
    return True


def _choose(agent: BdiAgent, event: Event) -> tuple[tuple[CompiledPlan, Env] | None, bool]:
    """The plan to use with its environment, and whether any plan was relevant.

    Raises:
        EvaluationError: a context ran into a limit.
    """
    select = agent.selection.option
    options: list[Option] = []
    trail: Trail = []
    relevant = False
    for plan in agent.plans.candidates(event.sign, event.literal):
        env = plan.enter(event.literal, trail)
        if env is not None:
            relevant = True
            bound = trail if plan.context is None else _applicable(agent, event, plan, env)
            if bound is not None:
                if agent.tracer is not None:
                    agent.tracer(_considered(agent, event, plan, True))
                if select is None:
                    return (plan, env), True
                options.append(Option(plan, env, tuple((cell, deref(cell)) for cell in (*trail, *bound))))
                undo(bound, 0)
        if trail:
            undo(trail, 0)
    if select is None or not options:
        return None, relevant
    chosen = select(event, options)
    for cell, value in chosen.bound:
        if cell is not value:
            cell.ref = value
    return (chosen.plan, chosen.env), True


def _applicable(agent: BdiAgent, event: Event, plan: CompiledPlan, env: Env) -> Trail | None:
    """What a context binds when it holds; one that cannot be evaluated does not hold."""
    assert plan.context is not None
    bound: Trail | None = None
    reason = ""
    try:
        bound = plan.context.first(env, agent)
    except EvaluationError as error:
        if error.error_id is ErrorId.LIMIT_EXCEEDED:
            raise
        reason = str(error)
    if bound is None and agent.tracer is not None:
        agent.tracer(_considered(agent, event, plan, False, tuple(guards(agent, event, plan)), reason))
    return bound


def _considered(
    agent: BdiAgent,
    event: Event,
    plan: CompiledPlan,
    applicable: bool,
    held: tuple[record.Guard, ...] = (),
    reason: str = "",
) -> record.OptionConsidered:
    return record.OptionConsidered(agent.name, agent.cycles, event.text, plan.name, applicable, held, reason)


def guards(agent: BdiAgent, event: Event, plan: CompiledPlan) -> Iterator[record.Guard]:
    """Each condition of a plan's context, and whether it holds together with the earlier ones that do."""
    kept: list[Term] = []
    for part in conjuncts(plan.plan.context):
        probe = CompiledPlan(replace(plan.plan, context=conjunction([*kept, part]), body=()), plan.name)
        trail: Trail = []
        env = probe.enter(event.literal, trail)
        try:
            holds = env is not None and (probe.context is None or probe.context.holds(env, agent))
        except EvaluationError:
            holds = False
        undo(trail, 0)
        if holds:
            kept.append(part)
        yield record.Guard(text_of(part), holds)


def _intend(agent: BdiAgent, event: Event, plan: CompiledPlan, env: Env) -> None:
    intention = event.intention or new_intention(agent, event.tag)
    frame = Frame(plan, env, event)
    if intention.frames:
        if agent.semantics.tail_recursion and _takes_over(agent, frame, intention.frames[-1]):
            caller = intention.pop()
            frame.collapsed = caller.collapsed + 1
            progress.tail_call(agent, intention, caller)
        elif len(intention.frames) >= agent.limits.frames:
            raise EvaluationError(ErrorId.LIMIT_EXCEEDED, f"{len(intention.frames)} goals lie in each other")
    intention.push(frame)
    if frame.deadline is not None:
        frame.deadline.intention = intention
    if agent.plans.meta:
        goal_states.tell(agent, frame.sign, frame.literal, GoalState.EXECUTING)
    if plan.atomic and intention not in agent.atomics:
        agent.atomics.append(intention)
    if agent.tracer is not None:
        agent.tracer(
            record.PlanSelected(
                agent.name, agent.cycles, event.text, plan.name, intention.id, plan.breakpoint
            )
        )
        agent.changed_intention(intention, Change.UPDATED)
    if frame.code:
        agent.go_on(intention)
    else:
        agent.settle(intention)


def new_intention(agent: BdiAgent, tag: str = "") -> Intention:
    """An intention without a plan yet.

    Raises:
        EvaluationError: the agent has as many as it may have.
    """
    if len(agent.intentions) >= agent.limits.intentions:
        raise EvaluationError(ErrorId.LIMIT_EXCEEDED, f"the agent has {len(agent.intentions)} intentions")
    intention = Intention(agent.number(), tag)
    agent.intentions[intention.id] = intention
    agent.changed_intention(intention, Change.CREATED)
    return intention


def _takes_over(agent: BdiAgent, frame: Frame, caller: Frame) -> bool:
    """True when the caller has nothing left to do but end, and nothing that catches failures."""
    plan, plans = caller.plan, agent.plans
    return (
        caller.code[caller.pc].next == len(caller.code)
        and caller.sign == "+!" == frame.sign
        and caller.literal.indicator == frame.literal.indicator
        and (plan.plain or (not plan.atomic and plan.priority == frame.plan.priority))
        and caller.deadline is None
        and not plans.knows("-!", caller.literal.indicator)
        and not (plans.meta and plans.knows("^!", caller.literal.indicator))
    )
