"""The reactive procedure on one agent: a goal that finds no relevant plan gets plans, then is pursued again.

It sits on the reasoner's hooks and knows no model. Whoever owns it takes the open questions, finds an
answer however long that takes, and settles them between two cycles; meanwhile only the asking intentions
wait, and those that ask for the same goal share one answer (spec BDI §2.3-2.5; §7 34, 37-39, 41).
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.bdi import waiting
from engine.bdi.agent import BdiAgent
from engine.bdi.intentions import Event, Intention
from engine.bdi.loading import stored
from engine.bdi.printing import text_of
from engine.bdi.problems import ErrorId, EvaluationError
from engine.bdi.syntax import Operation, Trigger, TriggerKind
from engine.bdi.terms import QUOTED_PLAN, SELF, Struct, Term, canonical
from engine.generation.pgp.missing_plans import MissingPlans, meta_plan, missing_plan_belief
from engine.generation.pgp.partial_plans import GeneratedPlans, Installation, Provenance, install
from engine.generation.pgp.renaming import event_key
from engine.generation.pgp.validation import DEFAULT_LIMITS, GenerationLimits, Review, handles


@dataclass(frozen=True, slots=True)
class Question:
    """A goal for which intentions wait for plans."""

    goal: Trigger
    depth: int
    """Generated plans above it whose goals led to it."""
    intentions: tuple[Intention, ...]


class ReactiveProcedure:
    """The plans that an agent has generated, and those that it waits for.

    Args:
        agent: its hooks for missing plans are taken.
        limits: how much it may generate.
    """

    def __init__(self, agent: BdiAgent, limits: GenerationLimits = DEFAULT_LIMITS) -> None:
        self._agent = agent
        self._limits = limits
        self._questions: dict[str, Question] = {}
        self._meta_plans: dict[str, str] = {}
        self.missing = MissingPlans()
        self.generated = GeneratedPlans()
        self.asked = 0
        """Questions that were ever put."""
        agent.on_missing_plan = self._on_missing_plan
        agent.on_generate_plan = self._on_generate_plan

    @property
    def questions(self) -> tuple[Question, ...]:
        """What waits for an answer, the oldest first."""
        return tuple(self._questions.values())

    def settle(self, question: Question, review: Review, provenance: Provenance) -> Installation | None:
        """Install what was accepted and let the intentions go on; without a usable plan their step fails."""
        asked = self._questions.pop(event_key(question.goal))
        self._forget_missing(asked.goal)
        self.missing = self.missing.settled(asked.goal)
        names = {id(one.plan): one.name for one in self._agent.plans}
        library = [one.plan for one in self._agent.plans]
        done = install(review.accepted, library, self.generated, provenance, self._limits)
        failure = review.failure or _refused(asked.goal, done)
        if not failure:
            for plan in done.removed:
                self._agent.plans.remove(names[id(plan)])
            for plan in reversed(done.added):
                self._agent.plans.add(plan, before=True)
            self.generated = done.generated
        for intention in asked.intentions:
            if intention.pending is None:
                continue
            if failure:
                waiting.fail(self._agent, intention, ErrorId.PGP_FAILED, failure)
            else:
                waiting.generation_done(self._agent, intention)
        return None if failure else done

    # ------------------------------------------------------------------ what the agent asks

    def _on_missing_plan(self, event: Event) -> bool:
        """Let the goal fail for want of a plan, and give the failure the meta plan that mends it."""
        literal = canonical(event.literal)
        assert isinstance(literal, Struct)
        goal = Trigger(Operation(event.sign[0]), TriggerKind(event.sign[1:]), literal.with_annotations(()))
        key = event_key(goal)
        allowed = self.missing.may_ask(goal, self._limits.attempts_per_goal)
        if allowed and self._depth(event.intention) <= self._limits.depth and key not in self._meta_plans:
            self._meta_plans[key] = self._agent.plans.add(meta_plan(goal), before=True).name
            self._agent.beliefs.add(stored(missing_plan_belief(goal)), (SELF,))
        return False

    def _on_generate_plan(self, intention: Intention, term: Term) -> bool:
        goal = _goal_of(term)
        key = event_key(goal)
        known = self._questions.get(key)
        if known is None:
            self.asked += 1
            self.missing = self.missing.asked(goal)
        before = known.intentions if known else ()
        self._questions[key] = Question(goal, self._depth(intention), (*before, intention))
        return True

    def _depth(self, intention: Intention | None) -> int:
        if intention is None:
            return 0
        depths = {one.label: one.provenance.depth + 1 for one in self.generated.plans}
        return max((depths.get(frame.plan.name, 0) for frame in intention.frames), default=0)

    def _forget_missing(self, goal: Trigger) -> None:
        """Take the meta plan and its belief back; whoever carries the plan out goes on with it."""
        name = self._meta_plans.pop(event_key(goal), None)
        if name is not None:
            self._agent.plans.remove(name)
        fact = self._agent.beliefs.find(stored(missing_plan_belief(goal)))
        if fact is not None:
            self._agent.beliefs.remove(fact, (SELF,))


def _refused(goal: Trigger, done: Installation) -> str:
    """Why no plan for the goal was installed though some were accepted; empty when one was."""
    if any(handles(plan, goal) for plan in done.added):
        return ""
    return "; ".join(one.reason for one in done.refused)


def _goal_of(term: Term) -> Trigger:
    """The event that the argument of `.generate_plan` means: a goal to achieve, or a quoted trigger."""
    found = canonical(term)
    sign: Term = "+!"
    if isinstance(found, Struct) and found.functor == QUOTED_PLAN and len(found.args) == 2:
        sign, found = found.args
    if not isinstance(found, Struct) or sign not in ("+!", "+?"):
        raise EvaluationError(ErrorId.PGP_FAILED, f"plans are generated for goals: {text_of(term)} is none")
    return Trigger(Operation.ADDED, TriggerKind(str(sign)[1:]), found)
