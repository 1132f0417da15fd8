"""Whether generated plans may be installed: no duplicates (C1), no unknown actions (C4), one for the goal.

The verdict is given plan by plan before anything reaches the plan library (spec BDI §2.1).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from difflib import get_close_matches

from engine.bdi.printing import text_of, trigger_text
from engine.bdi.syntax import Plan, Step, StepKind, Trigger, steps_of
from engine.bdi.terms import Struct
from engine.generation.pgp.answer import Answer, ReadPlan
from engine.generation.pgp.circles import endless, matches
from engine.generation.pgp.documentation import ActionSpec
from engine.generation.pgp.renaming import same_guard

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
    """Times that a model is told what was wrong with its answer."""


DEFAULT_LIMITS = GenerationLimits()


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a plan may be installed, with every reason why not."""

    read: ReadPlan
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
        return tuple(one.read.plan for one in self.verdicts if one.accepted)

    @property
    def failure(self) -> str:
        """Why the generation as a whole failed; empty when a plan for the goal was accepted."""
        if any(handles(plan, self.goal) for plan in self.accepted):
            return ""
        found = f"{len(self.verdicts)} read, {len(self.accepted)} accepted" if self.verdicts else "none read"
        return f"no usable plan for {trigger_text(self.goal)} in the answer: {found}"

    @property
    def complaints(self) -> tuple[str, ...]:
        """Everything that is wrong with the answer, one line each, in the order of its lines."""
        lines = [(problem.line, problem.reason) for problem in self.answer.problems]
        lines += [
            (one.read.line, f"{trigger_text(one.read.plan.trigger)}: {reason}")
            for one in self.verdicts
            for reason in one.reasons
        ]
        return tuple(f"line {line}: {reason}" for line, reason in sorted(lines))

    @property
    def repair_request(self) -> str:
        """What a model is told so that it may mend its answer."""
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
        twin = next((one for one in verdicts if one.accepted and same_guard(one.read.plan, read.plan)), None)
        if twin is not None:
            reasons.append(f"has the event and the conditions of the plan in line {twin.read.line}")
        steps = sum(1 for _ in steps_of(read.plan.body))
        if steps > limits.body_steps:
            reasons.append(f"has {steps} operations; {limits.body_steps} are allowed")
        verdicts.append(Verdict(read, tuple(reasons)))
    if known is not None:
        verdicts = _without_circles(verdicts, known)
    return Review(goal, answer, tuple(verdicts))


def _without_circles(verdicts: list[Verdict], known: Collection[Trigger]) -> list[Verdict]:
    """The verdicts, those on plans that can never end with the reason."""
    accepted = [one for one in verdicts if one.accepted]
    why = endless([one.read.plan for one in accepted], known)
    circles = {id(accepted[place]): reason for place, reason in why.items()}
    return [Verdict(one.read, (circles[id(one)],)) if id(one) in circles else one for one in verdicts]


def handles(plan: Plan, goal: Trigger) -> bool:
    """Whether a plan reacts to this event, whatever its context."""
    return matches(plan.trigger, goal)


def unknown_actions(plan: Plan, actions: Collection[ActionSpec]) -> Iterator[str]:
    """A reason for each use of an action that the agent lacks, or that takes other arguments (C4)."""
    arities = {(one.name, len(one.parameters)) for one in actions} | {GENERATE}
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
            takes = " or ".join(str(known) for one, known in sorted(arities) if one == name)
            yield f"line {step.position.line}: {name} takes {takes} arguments, not {arity}"
            continue
        near = get_close_matches(name, list(names), n=1)
        meant = f"; did you mean {near[0]}?" if near else ""
        yield f"line {step.position.line}: there is no action {name}/{arity}{meant}"
