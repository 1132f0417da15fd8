"""Decides plan by plan whether generated plans may be installed, before any reaches the plan library.

Refused are duplicates, unknown actions, answers without a plan for the goal, and plans whose goals wait for
each other in a circle. Recursion is no circle as long as there is a plan in which it can end, whatever its
conditions: which one fits is known only later.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from difflib import get_close_matches

from engine.bdi.printer import text_of, trigger_text
from engine.bdi.rewriting import rewrite
from engine.bdi.syntax import Operation, Plan, Step, StepKind, Trigger, TriggerKind, steps_of
from engine.bdi.terms import Cell, Struct, Term
from engine.bdi.unification import unify
from engine.planning.pgp.answer_parser import Answer, ParsedPlan
from engine.planning.pgp.documentation import ActionSpec
from engine.planning.pgp.plan_comparison import same_guard
from engine.value import dataclass


def matches(trigger: Trigger, event: Trigger) -> bool:
    """Whether a plan with this trigger reacts to the event, whatever its context."""
    if (trigger.operation, trigger.kind) != (event.operation, event.kind):
        return False
    return unify(_with_cells(trigger.literal), _with_cells(event.literal), [])


def _with_cells(term: Term) -> Term:
    cells: dict[str, Term] = {}
    return rewrite(term, lambda term: cells.setdefault(text_of(term), Cell()))


def endless_plans(plans: Sequence[Plan], known: Collection[Trigger]) -> Mapping[int, str]:
    """Why a plan can never come to its end, by its place among the plans; without those that can.

    A goal that no plan here is for may get one, so it is taken to end; so is one that the agent has a plan
    for, or a plan for its failure.

    Args:
        plans: those of one answer.
        known: triggers of the plans that the agent has.
    """
    waits = [_waits(plan, plans, known) for plan in plans]
    ending: set[int] = set()
    while more := {
        place
        for place, goals in enumerate(waits)
        if place not in ending and all(ending.intersection(able) for _, able in goals)
    }:
        ending |= more
    return {place: _circle(place, plans, waits, ending) for place in range(len(plans)) if place not in ending}


_Waits = list[tuple[Trigger, list[int]]]
"""The goals that a plan waits for, each with the places of the plans that are for it."""


def _waits(plan: Plan, plans: Sequence[Plan], known: Collection[Trigger]) -> _Waits:
    edges: _Waits = []
    for item in plan.body:
        match item:
            case Step(kind=StepKind.ACHIEVE, term=Struct() as term):
                goal = Trigger(Operation.ADDED, TriggerKind.ACHIEVE, term)
                failed = Trigger(Operation.REMOVED, TriggerKind.ACHIEVE, term)
                able = [place for place, plan in enumerate(plans) if matches(plan.trigger, goal)]
                if able and not any(matches(plan, goal) or matches(plan, failed) for plan in known):
                    edges.append((goal, able))
    return edges


def _circle(place: int, plans: Sequence[Plan], waits: Sequence[_Waits], ending: Collection[int]) -> str:
    """The goals that a plan waits for, up to where they begin again."""
    chain, seen = [trigger_text(plans[place].trigger)], set()
    while place not in seen:
        seen.add(place)
        goal, able = next(next_place for next_place in waits[place] if not set(next_place[1]) & set(ending))
        chain.append(trigger_text(goal))
        place = able[0]
    return f"it can never end, as its goals wait for each other in a circle: {' → '.join(chain)}"


GENERATE = ("generate_plan", 1)
"""The action by which a generated plan may generate further ones; every agent with the procedure has it."""


@dataclass(frozen=True, slots=True)
class GenerationLimits:
    """How much an agent may generate."""

    plans_per_trigger: int = 20
    plans_per_agent: int = 200
    body_steps: int = 50
    attempts_per_goal: int = 3
    depth: int = 5
    """Generations for goals of generated plans, inside one another (C3)."""
    repairs: int = 2
    """Times that a model reads what was wrong with its answer."""


DEFAULT_LIMITS = GenerationLimits()


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a plan may be installed, with every reason why not."""

    read: ParsedPlan
    reasons: tuple[str, ...] = ()

    @property
    def accepted(self) -> bool:
        """Whether nothing speaks against it."""
        return not self.reasons


@dataclass(frozen=True, slots=True)
class Review:
    """The verdicts on all plans of an answer."""

    goal: Trigger
    answer: Answer
    verdicts: tuple[Verdict, ...]

    @property
    def accepted(self) -> tuple[Plan, ...]:
        """The plans that may be installed, in the order of the answer."""
        return tuple(verdict.read.plan for verdict in self.verdicts if verdict.accepted)

    @property
    def failure(self) -> str:
        """Why the generation as a whole failed; empty when a plan for the goal was accepted."""
        if any(matches(plan.trigger, self.goal) for plan in self.accepted):
            return ""
        counts = f"{len(self.verdicts)} read, {len(self.accepted)} accepted" if self.verdicts else "none read"
        return f"no usable plan for {trigger_text(self.goal)} in the answer: {counts}"

    @property
    def complaints(self) -> tuple[str, ...]:
        """Everything that is wrong with the answer, one line each, in the order of its lines."""
        lines = [(problem.line, problem.reason) for problem in self.answer.problems]
        lines += [
            (verdict.read.line, f"{trigger_text(verdict.read.plan.trigger)}: {reason}")
            for verdict in self.verdicts
            for reason in verdict.reasons
        ]
        return tuple(f"line {line}: {reason}" for line, reason in sorted(lines))

    @property
    def repair_request(self) -> str:
        """What a model reads so that it may mend its answer."""
        listed = "\n".join(f"- {text}" for text in (self.failure, *self.complaints) if text)
        return f"Your plans cannot be used as they are:\n{listed}\nGive the whole set of plans again."


def review(
    answer: Answer,
    goal: Trigger,
    actions: Collection[ActionSpec],
    limits: GenerationLimits = DEFAULT_LIMITS,
    known: Collection[Trigger] | None = None,
) -> Review:
    """The verdict on each plan of an answer.

    Args:
        answer: what was read.
        goal: the event that plans are needed for.
        actions: what the agent can do.
        limits: how much may be generated.
        known: triggers of the plans that the agent has; None where they are unknown, and then plans that
            can never end are not looked for.
    """
    verdicts: list[Verdict] = []
    for read in answer.plans:
        reasons = [*unknown_actions(read.plan, actions)]
        accepted = (verdict.read for verdict in verdicts if verdict.accepted)
        twin = next((earlier for earlier in accepted if same_guard(earlier.plan, read.plan)), None)
        if twin is not None:
            reasons.append(f"has the event and the conditions of the plan in line {twin.line}")
        steps = sum(1 for _ in steps_of(read.plan.body))
        if steps > limits.body_steps:
            reasons.append(f"has {steps} operations; {limits.body_steps} are allowed")
        verdicts.append(Verdict(read, tuple(reasons)))
    if known is not None:
        verdicts = _without_circles(verdicts, known)
    return Review(goal, answer, tuple(verdicts))


def _without_circles(verdicts: list[Verdict], known: Collection[Trigger]) -> list[Verdict]:
    """The verdicts, those on plans that can never end with the reason."""
    accepted = [verdict for verdict in verdicts if verdict.accepted]
    why = endless_plans([plan.read.plan for plan in accepted], known)
    circles = {id(accepted[place]): reason for place, reason in why.items()}
    return [
        Verdict(verdict.read, (circles[id(verdict)],)) if id(verdict) in circles else verdict
        for verdict in verdicts
    ]


def unknown_actions(plan: Plan, actions: Collection[ActionSpec]) -> Iterator[str]:
    """A reason for each use of an action that the agent lacks, or that takes other arguments (C4)."""
    arities = {(arity.name, len(arity.parameters)) for arity in actions} | {GENERATE}
    names = Counter(name for name, _ in arities)
    for step in steps_of(plan.body):
        if not isinstance(step, Step) or step.kind not in (StepKind.ACTION, StepKind.INTERNAL):
            continue
        if not isinstance(step.term, Struct):
            yield f"line {step.position.line}: {text_of(step.term)} is no action"
            continue
        name, arity = step.term.functor.removeprefix("."), len(step.term.args)
        if (name, arity) in arities:
            continue
        if name in names:
            takes = " or ".join(str(known) for arity, known in sorted(arities) if arity == name)
            yield f"line {step.position.line}: {name} takes {takes} arguments, not {arity}"
            continue
        near = get_close_matches(name, list(names), n=1)
        meant = f"; did you mean {near[0]}?" if near else ""
        yield f"line {step.position.line}: there is no action {name}/{arity}{meant}"
