"""The plans that models make for a reasoner: what is asked, what came of it, what the journal shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from engine.bdi.agent import BdiAgent
from engine.bdi.parser import parse_trigger
from engine.bdi.printing import plan_text, trigger_text
from engine.bdi.syntax import Operation, Step, StepKind, Trigger, TriggerKind, steps_of
from engine.bdi.terms import Struct
from engine.domain.reasoning import GeneratedPlan
from engine.generation.pgp.asking import Prompt
from engine.generation.pgp.config import EffectiveConfig
from engine.generation.pgp.documentation import Documentation
from engine.generation.pgp.inventions import with_inventions
from engine.generation.pgp.partial_plans import GeneratedPlans, Provenance
from engine.generation.pgp.reactive import Question, ReactiveProcedure
from engine.journal import events as ev
from engine.reasoner.actions import ActionTable, plain
from engine.reasoner.config import GenerationSettings
from engine.reasoner.generation import actions_of, inventions_of, limits_of, plans_of, prompt_for


class PlanMaking:
    """What models are asked for on a reasoner's behalf, and what they have given it.

    Args:
        agent: whose plans they are.
        config: its settings.
        documented: what its program says of its goals, beliefs and actions.
        actions: what the program can do.
    """

    def __init__(
        self, agent: BdiAgent, config: GenerationSettings, documented: Documentation, actions: ActionTable
    ) -> None:
        self._agent = agent
        self.procedure = ReactiveProcedure(agent, limits_of(config)) if config.on else None
        """Makes plans for goals that have none; None where they are to fail."""
        self.known = replace(documented, actions=actions_of(documented, actions))
        """What a model is told, with what earlier answers have made up."""
        self.questions: dict[str, Question] = {}
        """Questions that are being answered, by generation."""
        self.inventions: list[tuple[str, str, str]] = []
        """Goals and beliefs that the answers so far have made up."""
        self.begun = 0
        """Generations that were ever begun."""
        self.shown = GeneratedPlans()
        """The generated plans as they were last shown."""

    def begin(self, said: ev.GenerationBegun) -> None:
        """Take up that plans are being made for a goal."""
        self.begun += 1
        if self.procedure is None:
            return
        if said.trigger == "proactive":
            self.procedure.propose(parse_trigger(said.goal))
        asked = {trigger_text(one.goal): one for one in self.procedure.questions}
        if said.goal in asked:
            self.questions[said.generation] = asked[said.goal]

    def settle(self, said: ev.GenerationSettled, at: str) -> None:
        """Install what came of a generation, or give the goal up."""
        question = self.questions.pop(said.generation, None)
        if question is None or self.procedure is None:
            return
        if not said.plans:
            self.procedure.give_up(question, said.reason)
            return
        source = Provenance(
            goal=trigger_text(question.goal),
            model=said.model,
            prompt_id=said.generation,
            time=at,
            depth=question.depth,
        )
        self.procedure.install(question, plans_of(said.plans), source, approved=said.approved)
        self.inventions += said.inventions
        self.known = with_inventions(self.known, inventions_of(said.inventions))

    def refusals(self, generation: str, plans: Sequence[str], *, approved: bool) -> tuple[bool, str]:
        """Whether none of these plans for a generation's goal could be installed, and why some could not."""
        question = self.questions.get(generation)
        if question is None or self.procedure is None:
            return True, "nobody waits for these plans any more"
        return self.procedure.refusals(question, plans_of(plans), approved=approved)

    def prompt(self, generation: str, config: EffectiveConfig, repair: str) -> Prompt | None:
        """What a model is to be asked for a generation; None when nobody waits for it any more."""
        question = self.questions.get(generation)
        return prompt_for(self._agent, question.goal, self.known, config, repair) if question else None

    def new(self) -> tuple[ev.GenerationBegun, ...]:
        """Goals that have come to need plans."""
        if self.procedure is None:
            return ()
        answered = {trigger_text(one.goal) for one in self.questions.values()}
        new = [one for one in self.procedure.questions if trigger_text(one.goal) not in answered]
        return tuple(
            ev.GenerationBegun(
                generation=f"q{self.begun + number}",
                goal=trigger_text(one.goal),
                trigger="reactive" if self.procedure.is_reactive(one.goal) else "on demand",
            )
            for number, one in enumerate(new, 1)
        )

    @property
    def triggers(self) -> tuple[Trigger, ...]:
        """Triggers of the plans that it has, without those that stand for a missing plan."""
        return self.procedure.triggers if self.procedure is not None else ()

    def unplanned(self) -> str:
        """A goal that some plan pursues and that no plan is for, the first one; empty when there is none."""
        for plan in self._agent.plans:
            for step in steps_of(plan.plan.body):
                if not isinstance(step, Step) or step.kind not in (StepKind.ACHIEVE, StepKind.SPAWN):
                    continue
                if not isinstance(step.term, Struct) or self._agent.plans.knows("+!", step.term.indicator):
                    continue
                goal = Trigger(Operation.ADDED, TriggerKind.ACHIEVE, plain(step.term))
                if self.procedure is not None and self.procedure.may_propose(goal):
                    return trigger_text(goal)
        return ""

    def news(self) -> tuple[GeneratedPlan, ...] | None:
        """The generated plans, when they are not as they were last shown."""
        if self.procedure is None or self.procedure.generated == self.shown:
            return None
        self.shown = self.procedure.generated
        return tuple(
            GeneratedPlan(
                one.label,
                one.provenance.goal,
                plan_text(one.plan),
                one.provenance.model,
                one.provenance.prompt_id,
                len(one.plan.body),
                len(one.succeeded),
                one.verified,
            )
            for one in self.shown.plans
        )
