"""The reactive procedure on one agent: a goal without a relevant plan gets plans, then is pursued again.

It uses the reasoner's hooks and its trace, and knows no model. Its owner takes the open questions, finds an
answer however long that takes, and settles them between two cycles; meanwhile only the asking intentions
wait, and those that ask for the same goal share one answer. A generated plan is removed when a step of it
fails, and is proved when its whole body worked.

As in the thesis (listing 3.1) the agent gets the plan `-!G : missing_plan_for(G) <- generate G; !G` and
believes `missing_plan_for(G)`. Unlike there both are withdrawn when the generation is settled, and the
attempts for a goal are limited until one proves itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from engine.bdi import waits as waiting
from engine.bdi.agent import BdiAgent
from engine.bdi.errors import ErrorId, EvaluationError
from engine.bdi.intentions import Event, Intention, Waiting
from engine.bdi.parser import parse_trigger
from engine.bdi.plans import stored_form
from engine.bdi.printer import text_of, trigger_text
from engine.bdi.rewriting import canonical
from engine.bdi.syntax import Operation, Plan, Step, StepKind, Trigger, TriggerKind
from engine.bdi.terms import QUOTED_PLAN, SELF, Struct, Term
from engine.bdi.trace import TraceEvent
from engine.planning.pgp.generated_plans import (
    TRACKED,
    FailedStep,
    GeneratedPlans,
    Installation,
    PartialPlan,
    PlanTracker,
    Provenance,
    install,
)
from engine.planning.pgp.plan_comparison import event_key
from engine.planning.pgp.prompts import MISSING_PLAN
from engine.planning.pgp.validation import DEFAULT_LIMITS, GenerationLimits, Review, matches
from engine.value import dataclass


def missing_plan_belief(goal: Trigger) -> Struct:
    """`missing_plan_for(G)[source(self)]`, to be added without an event."""
    return Struct(MISSING_PLAN, (goal.literal,), (SELF,))


def meta_plan(goal: Trigger) -> Plan:
    """The plan that generates plans for a goal without an applicable plan, and then pursues it again."""
    again = StepKind(goal.kind)
    quoted = Struct(QUOTED_PLAN, (f"{goal.operation}{goal.kind}", goal.literal))
    literal = goal.literal if goal.kind is TriggerKind.ACHIEVE else quoted
    return Plan(
        trigger=Trigger(Operation.REMOVED, goal.kind, goal.literal),
        context=Struct(MISSING_PLAN, (goal.literal,)),
        body=(Step(StepKind.INTERNAL, Struct(".generate_plan", (literal,))), Step(again, goal.literal)),
    )


@dataclass(frozen=True, slots=True)
class PlanQuestion:
    """A goal for which intentions wait for plans."""

    goal: Trigger
    depth: int
    """Generated plans above it whose goals led to it."""
    intentions: tuple[Intention, ...]
    attempt: int
    """Generations for this goal since it was last reached, with this one."""
    attempts: int
    """As many as there may be."""


class ReactiveProcedure:
    """The plans that an agent has generated, and those that it waits for.

    Args:
        agent: its hooks for missing plans are taken, and its trace is followed; who traced it already
            continues getting every record.
        limits: how much it may generate.
    """

    def __init__(self, agent: BdiAgent, limits: GenerationLimits = DEFAULT_LIMITS) -> None:
        self._agent = agent
        self._limits = limits
        self._questions: dict[str, PlanQuestion] = {}
        self._meta_plans: dict[str, str] = {}
        self._goals: dict[str, Trigger] = {}
        """Goals with attempts that count, by their event."""
        self._tracker = PlanTracker()
        self._tracer = agent.tracer
        self.attempts: dict[str, int] = {}
        """Generations begun for each goal since it was last reached, by event up to renaming."""
        self.generated = GeneratedPlans()
        self.asked = 0
        """Questions that were ever put."""
        self.failed: FailedStep | None = None
        """The last step of a generated plan that failed, with the plan that went for it."""
        agent.tracer = self._on_trace
        agent.on_missing_plan = self._on_missing_plan
        agent.on_generate_plan = self._on_generate_plan

    @property
    def questions(self) -> tuple[PlanQuestion, ...]:
        """What waits for an answer, the oldest first."""
        return tuple(self._questions.values())

    def settle(self, question: PlanQuestion, review: Review, provenance: Provenance) -> Installation | str:
        """Install what was accepted and let the intentions continue.

        Returns:
            What was installed; or why no plan could be, and then the step of each intention fails with that.
        """
        if review.failure:
            self.give_up(question, review.failure)
            return review.failure
        return self.install(question, review.accepted, provenance)

    def install(
        self, question: PlanQuestion, plans: Sequence[Plan], provenance: Provenance, *, approved: bool = False
    ) -> Installation | str:
        """Install plans that were found good, as `settle` does; `approved` ones may replace those of hand."""
        names = {id(plan.plan): plan.name for plan in self._agent.plans}
        library = [plan.plan for plan in self._agent.plans]
        done = install(plans, library, self.generated, provenance, self._limits, approved=approved)
        reached = any(matches(plan.trigger, question.goal) for plan in done.added)
        if failure := "" if reached else "; ".join(done.refused):
            self.give_up(question, failure)
            return failure
        for plan in done.removed:
            self._agent.plans.remove(names[id(plan)])
        for plan in reversed(done.added):
            self._agent.plans.add(plan, before=True)
        self.generated = done.generated
        for intention in self._closed(question):
            waiting.generation_done(self._agent, intention)
        return done

    def refusals(
        self, question: PlanQuestion, plans: Sequence[Plan], *, approved: bool = False
    ) -> tuple[bool, str]:
        """Whether `install` would install none for the question's goal, and why those that it would not."""
        library = [refusal.plan for refusal in self._agent.plans]
        nowhere = Provenance("", "", "", "")
        done = install(plans, library, self.generated, nowhere, self._limits, approved=approved)
        reasons = "; ".join(dict.fromkeys(done.refused))
        none = not any(matches(plan.trigger, question.goal) for plan in done.added)
        return none, reasons or (f"none of the plans is for {trigger_text(question.goal)}" if none else "")

    def propose(self, goal: Trigger) -> None:
        """Put a question that no intention waits for: plans for a goal that may come up (proactive)."""
        self._put(goal, 0, ())

    def may_propose(self, goal: Trigger) -> bool:
        """Whether plans for a goal may be generated before it comes up: it was not tried yet."""
        key = event_key(goal)
        return key not in self._questions and key not in self.attempts

    def is_reactive(self, goal: Trigger) -> bool:
        """Whether the question arose because the goal was pursued and had no plan."""
        return event_key(goal) in self._meta_plans

    @property
    def triggers(self) -> tuple[Trigger, ...]:
        """Triggers of the agent's plans, without those that stand for a missing plan."""
        standing = set(self._meta_plans.values())
        return tuple(plan.plan.trigger for plan in self._agent.plans if plan.name not in standing)

    def give_up(self, question: PlanQuestion, reason: str) -> None:
        """Let the step of each intention fail with `pgp_failed`: there is no answer, or none of use."""
        for intention in self._closed(question):
            waiting.fail(self._agent, intention, ErrorId.PGP_FAILED, reason)

    def _closed(self, question: PlanQuestion) -> list[Intention]:
        """The intentions that still wait, the question and what stood for the missing plan taken away."""
        asked = self._questions.pop(event_key(question.goal))
        self._forget_missing(asked.goal)
        return [intention for intention in asked.intentions if _waits_for(intention, asked.goal)]

    # ------------------------------------------------------------------ saved state

    def save(self) -> dict[str, Any]:
        """What it remembers beside the agent's own state, ready for JSON."""
        return {
            "questions": [self.question_data(question) for question in self.questions],
            "meta_plans": dict(self._meta_plans),
            "goals": {key: trigger_text(goal) for key, goal in self._goals.items()},
            "calls": self._tracker.save(),
            "attempts": dict(self.attempts),
            "waiting": sorted(self._questions),
            "generated": [
                [plan.label, plan.provenance.to_json(), sorted(plan.succeeded), plan.verified]
                for plan in self.generated.plans
            ],
            "count": self.generated.count,
            "asked": self.asked,
        }

    def restore(self, data: Mapping[str, Any]) -> None:
        """Restore a saved state; the agent's own was restored before."""
        self._questions = {
            event_key(question.goal): question for question in map(self.question_of, data["questions"])
        }
        self._meta_plans = dict(data["meta_plans"])
        self._goals = {key: parse_trigger(goal) for key, goal in data["goals"].items()}
        self._tracker.restore(data["calls"])
        self.attempts = dict(data["attempts"])
        library = {question.name: question.plan for question in self._agent.plans}
        plans = tuple(
            PartialPlan(library[label], Provenance(**source), frozenset(done), verified)
            for label, source, done, verified in data["generated"]
        )
        self.generated = GeneratedPlans(plans, data["count"])
        self.asked = data["asked"]

    def question_data(self, question: PlanQuestion) -> dict[str, Any]:
        """A question ready for JSON."""
        waiting = [each.id for each in question.intentions if each.id in self._agent.intentions]
        counts = {name: getattr(question, name) for name in ("depth", "attempt", "attempts")}
        return {"goal": trigger_text(question.goal), "intentions": waiting, **counts}

    def question_of(self, data: Mapping[str, Any]) -> PlanQuestion:
        """A question from what `question_data` gave."""
        waiting = tuple(self._agent.intentions[intention] for intention in data["intentions"])
        return PlanQuestion(**{**data, "goal": parse_trigger(data["goal"]), "intentions": waiting})

    # ------------------------------------------------------------------ what the agent asks

    def _on_missing_plan(self, event: Event) -> bool:
        """Let the goal fail with no applicable plan, and give the failure the meta plan that mends it."""
        literal = canonical(event.literal)
        assert isinstance(literal, Struct)
        goal = Trigger(Operation(event.sign[0]), TriggerKind(event.sign[1:]), literal.with_annotations(()))
        key = event_key(goal)
        if key in self._meta_plans:
            return False
        reason = self._exhausted(goal, event.intention)
        if reason:
            self._agent.warn(f"no plans are generated for {trigger_text(goal)}: {reason}")
        else:
            self._meta_plans[key] = self._agent.plans.add(meta_plan(goal), before=True).name
            self._agent.beliefs.add(stored_form(missing_plan_belief(goal)), (SELF,))
        return False

    def _exhausted(self, goal: Trigger, intention: Intention | None) -> str:
        """Which limit forbids another generation; empty when none does."""
        attempts, depth = self._limits.attempts_per_goal, self._limits.depth
        if self.attempts.get(event_key(goal), 0) >= attempts:
            return f"{attempts} of {attempts} generations gave none that reached it"
        return f"it is a goal of plans generated {depth} deep" if self._depth(intention) > depth else ""

    def _on_generate_plan(self, intention: Intention, term: Term) -> bool:
        self._put(_goal_of(term), self._depth(intention), (intention,))
        return True

    def _put(self, goal: Trigger, depth: int, intentions: tuple[Intention, ...]) -> None:
        """Put a question, or join those who wait for its answer already."""
        key = event_key(goal)
        known = self._questions.get(key)
        if known is None:
            self.asked += 1
            self.attempts[key] = self.attempts.get(key, 0) + 1
            self._goals[key] = goal
        before = known.intentions if known else ()
        attempts = self.attempts[key], self._limits.attempts_per_goal
        self._questions[key] = PlanQuestion(goal, depth, (*before, *intentions), *attempts)

    def _on_trace(self, record: TraceEvent) -> None:
        if self._tracer is not None:
            self._tracer(record)
        if not (self.generated.plans and isinstance(record, TRACKED)):
            return
        progress = self._tracker.observe(record, self.generated)
        self.generated = progress.generated
        for event in progress.reached:
            self._reached(event)
        if progress.failed is not None:
            self.failed = progress.failed
            if self._agent.plans.get(progress.failed.plan) is not None:
                self._agent.plans.remove(progress.failed.plan)

    def _reached(self, event: str) -> None:
        """Count attempts anew for every goal that the event was, or was an instance of."""
        reached = parse_trigger(event)
        for key, goal in list(self._goals.items()):
            if matches(reached, goal):
                self.attempts.pop(key, None)
                del self._goals[key]

    def _depth(self, intention: Intention | None) -> int:
        if intention is None:
            return 0
        depths = {plan.label: plan.provenance.depth + 1 for plan in self.generated.plans}
        return max((depths.get(frame.plan.name, 0) for frame in intention.frames), default=0)

    def _forget_missing(self, goal: Trigger) -> None:
        """Take the meta plan and its belief back; whoever carries the plan out continues with it."""
        name = self._meta_plans.pop(event_key(goal), None)
        if name is not None:
            self._agent.plans.remove(name)
        fact = self._agent.beliefs.find(stored_form(missing_plan_belief(goal)))
        if fact is not None:
            self._agent.beliefs.remove(fact, (SELF,))


def _waits_for(intention: Intention, goal: Trigger) -> bool:
    """Whether an intention still waits for plans for a goal, and for nothing else by now."""
    pending = intention.pending
    if pending is None or pending.kind is not Waiting.GENERATION:
        return False
    return event_key(_goal_of(pending.what)) == event_key(goal)


def _goal_of(term: Term) -> Trigger:
    """The event that the argument of `.generate_plan` means: a goal to achieve, or a quoted trigger."""
    goal = canonical(term)
    sign: Term = "+!"
    if isinstance(goal, Struct) and goal.functor == QUOTED_PLAN and len(goal.args) == 2:
        sign, goal = goal.args
    if not isinstance(goal, Struct) or sign not in ("+!", "+?"):
        raise EvaluationError(ErrorId.PGP_FAILED, f"plans are generated for goals: {text_of(term)} is none")
    return Trigger(Operation.ADDED, TriggerKind(str(sign)[1:]), goal)
