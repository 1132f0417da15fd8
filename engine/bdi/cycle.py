"""The phases of a cycle, and what the agent reports of them; the second is in `deliberation`.

Deliberation: an event is selected, and one of its applicable plans becomes intended.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from engine.bdi import belief_revision as believing
from engine.bdi import goal_states, messages
from engine.bdi import trace as record
from engine.bdi import waits as waiting
from engine.bdi.compiler import compile_formula
from engine.bdi.errors import ErrorId, EvaluationError
from engine.bdi.goal_states import GoalState
from engine.bdi.instructions import EMPTY_TURN
from engine.bdi.intentions import ActionRequest, Event, Frame, Intention, Message, Phase, RunningAgent
from engine.bdi.plans import CompiledPlan, with_source, written_term
from engine.bdi.printer import shown_text, text_of
from engine.bdi.rewriting import canonical, instantiated, rewrite
from engine.bdi.semantics import EventPolicy
from engine.bdi.syntax import conjunction, conjuncts
from engine.bdi.term_compiler import UNWRITTEN, Env, Scope
from engine.bdi.terms import QUOTED_PLAN, TRUE, Struct, Term, Var, list_of
from engine.bdi.trace import Change, StepRun
from engine.bdi.unification import Trail, undo
from engine.bdi.waits import new_intention


def deliberate(agent: RunningAgent) -> bool:
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
            agent.trace(record.EventSelected, event.text, number)
        if _handle(agent, event) or one_per_cycle:
            return True
    return False


_ONE_PER_CYCLE = EventPolicy.ONE_PER_CYCLE


def _select_event(agent: RunningAgent) -> Event | None:
    """Take the oldest event that can be handled."""
    if not agent.atomics and not agent.suspensions:
        return agent.events.popleft()
    held = agent.atomic()
    for event in agent.events:
        intention = event.intention
        if (intention is None or not intention.suspended) and (held is None or intention is held):
            agent.events.remove(event)
            return event
    return None


def select_intention(agent: RunningAgent) -> Intention | None:
    """Take the intention whose step is run; None when none can continue."""
    if agent.atomics:
        return _choose_intention(agent)
    while agent.ready:
        intention = agent.ready.popleft()
        if intention.suspended:
            intention.parked = True
        else:
            return intention
    return None


def _choose_intention(agent: RunningAgent) -> Intention | None:
    """The atomic one where it can continue, else the first."""
    held = agent.atomic()
    for intention in agent.ready:
        if not intention.suspended and (held is None or intention is held):
            agent.ready.remove(intention)
            return intention
    return None


def _handle(agent: RunningAgent, event: Event) -> bool:
    """Find a plan for an event; False when it was one of no consequence."""
    try:
        chosen, relevant = _choose(agent, event)
        if chosen is not None:
            _intend(agent, event, *chosen)
            return True
    except EvaluationError as error:
        goal_states.fail_event(agent, event, error.error_id, str(error))
        return True
    if event.sign[1:] and event.sign[0] != "^":
        return _no_plan(agent, event, relevant)
    if agent.tracer is not None:
        reason = ErrorId.NO_APPLICABLE if relevant else ErrorId.NO_RELEVANT
        agent.trace(record.EventDropped, event.text, reason)
    if event.intention is not None:
        agent.step_done(event.intention)
        return True
    return False


def _no_plan(agent: RunningAgent, event: Event, relevant: bool) -> bool:
    if messages.by_default(agent, event):
        return True
    if relevant:
        goal_states.fail_event(agent, event, ErrorId.NO_APPLICABLE, f"no plan for {event.text} applies now")
    elif event.failure is None and agent.on_missing_plan is not None and agent.on_missing_plan(event):
        waiting.for_generation(agent, event)
    else:
        goal_states.fail_event(agent, event, ErrorId.NO_RELEVANT, f"there is no plan for {event.text}")
    return True


def _choose(agent: RunningAgent, event: Event) -> tuple[tuple[CompiledPlan, Env] | None, bool]:
    """The first applicable plan with its environment, and whether any plan was relevant.

    Raises:
        EvaluationError: a context ran into a limit.
    """
    trail: Trail = []
    relevant, fits = False, _selected if SELECTS in agent.rules else _applies
    for plan in agent.plans.candidates(event.sign, event.literal):
        env = plan.enter(event.literal, trail)
        if env is not None:
            relevant = True
            if (plan.context is None and fits is _applies) or fits(agent, event, plan, env):
                if agent.tracer is not None:
                    agent.tracer(_considered(agent, event, plan, True))
                return (plan, env), True
        if trail:
            undo(trail, 0)
    return None, relevant


SELECTS = "select__option/4"
"""A rule that says which applicable plan is taken: event, number of the intention or -1, plan, bindings."""


def _selected(agent: RunningAgent, event: Event, plan: CompiledPlan, env: Env) -> bool:
    """Whether the program's own rule holds for a plan with some answer to its context, which binds."""
    query = (plan.context or ALWAYS).answers(env, agent)
    while query.advance():
        if _is_option(agent, event, plan, env):
            return True
    return False


ALWAYS = compile_formula(TRUE, Scope())


def _is_option(agent: RunningAgent, event: Event, plan: CompiledPlan, env: Env) -> bool:
    number = event.intention.id if event.intention is not None else -1
    trigger = Struct(QUOTED_PLAN, (event.sign, with_source(event.sign, event.literal)))
    values = {name: env[slot] for name, slot in plan.slots.items() if env[slot] is not UNWRITTEN}
    term = rewrite(
        written_term(plan), lambda name: values.get(name.name, name) if isinstance(name, Var) else name
    )
    bindings = list_of(Struct("map", (Var(name), value)) for name, value in values.items())
    scope, option = Scope(), Var("Option")
    scope.written.add(scope.slot(option))
    formula, asked = compile_formula(option, scope), scope.environment()
    asked[0] = instantiated(canonical(Struct("select__option", (trigger, number, term, bindings))))
    return formula.holds(asked, agent)


def _applies(agent: RunningAgent, event: Event, plan: CompiledPlan, env: Env) -> bool:
    """Whether a context holds, which binds its variables; one that cannot be evaluated does not hold."""
    assert plan.context is not None
    reason = ""
    try:
        if plan.context.first(env, agent) is not None:
            return True
    except EvaluationError as error:
        if error.error_id is ErrorId.LIMIT_EXCEEDED:
            raise
        reason = str(error)
    if agent.tracer is not None:
        agent.tracer(_considered(agent, event, plan, False, tuple(guards(agent, event, plan)), reason))
    return False


def _considered(
    agent: RunningAgent,
    event: Event,
    plan: CompiledPlan,
    applicable: bool,
    held: tuple[record.Guard, ...] = (),
    reason: str = "",
) -> record.OptionConsidered:
    return record.OptionConsidered(agent.name, agent.cycles, event.text, plan.name, applicable, held, reason)


def guards(agent: RunningAgent, event: Event, plan: CompiledPlan) -> Iterator[record.Guard]:
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


def _intend(agent: RunningAgent, event: Event, plan: CompiledPlan, env: Env) -> None:
    intention = event.intention or new_intention(agent, event.tag)
    frame = Frame(plan, env, event)
    if not frame.code and agent.semantics.edition > 1:
        frame.code = EMPTY_TURN
    if intention.frames:
        if _takes_over(agent, frame, intention.frames[-1]):
            caller = intention.pop()
            frame.collapsed = caller.collapsed + 1
            if agent.tracer is not None:
                goal, depth = f"{caller.sign}{shown_text(caller.literal)}", len(intention.frames)
                agent.trace(record.TailCall, intention.id, caller.plan.name, caller.pc, goal, depth)
        elif len(intention.frames) >= agent.limits.frames:
            raise EvaluationError(ErrorId.LIMIT_EXCEEDED, f"{len(intention.frames)} goals lie in each other")
    intention.push(frame)
    if frame.deadline is not None:
        frame.deadline.intention = intention
    if agent.plans.meta:
        goal_states.announce_state(agent, frame.sign, frame.literal, GoalState.EXECUTING)
    if plan.atomic and intention not in agent.atomics:
        agent.atomics.append(intention)
    if agent.tracer is not None:
        agent.trace(record.PlanSelected, event.text, plan.name, intention.id, plan.breakpoint)
        agent.changed_intention(intention, Change.UPDATED)
    if frame.code:
        agent.go_on(intention)
    else:
        agent.settle(intention)


def _takes_over(agent: RunningAgent, frame: Frame, caller: Frame) -> bool:
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


SENSE = Phase.SENSE
"""The same: asking an enumeration for a member costs more than a cycle can spare."""


class CycleReport(NamedTuple):
    """What one cycle or phase did."""

    worked: bool
    """False when there was nothing to handle and nothing to run."""
    requests: tuple[ActionRequest, ...] = ()
    messages: tuple[Message, ...] = ()


WORKED, RESTED = CycleReport(True), CycleReport(False)


def sense(agent: RunningAgent) -> bool:
    """Take in what has come from outside; False when nothing has."""
    worked = bool(agent.timers) and waiting.fire_timers(agent)
    if agent.alarms:
        worked = waiting.fire(agent) or worked
    if agent.percepts is not None:
        worked = believing.perceive(agent, agent.percepts) or worked
        agent.percepts = None
    if agent.mail:
        messages.handle(agent, agent.mail.popleft())
        worked = True
    if agent.conditions and agent.checked_version != agent.belief_version:
        worked = waiting.check_conditions(agent) or worked
    agent.checked_version = agent.belief_version
    return worked


def act(agent: RunningAgent) -> bool:
    """Run one step of one intention; False when none can continue."""
    intention = select_intention(agent)
    if intention is None:
        return False
    frame = intention.frames[-1]
    step = frame.code[frame.pc]
    if agent.tracer is not None:
        agent.trace(StepRun, intention.id, frame.plan.name, step.text, step.item.position)
    try:
        goes_on = step.execute(agent, intention, frame)
    except EvaluationError as error:
        goal_states.fail_step(agent, intention, error)
        return True
    if goes_on:
        if agent.tracer is not None:
            goal_states.step_succeeded(agent, intention, frame, step)
        if intention.suspended:
            intention.parked = True
        elif frame.pc == len(frame.code):
            agent.settle(intention)
        else:
            agent.ready.append(intention)
    return True
