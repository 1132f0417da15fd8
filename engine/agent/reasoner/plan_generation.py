"""The plans that models make for a reasoner: what is asked, what was answered, what the journal shows.

Plans for a reasoner made by a model: the prompt, the verdict on the answer, and plans as text again.

All of it is pure; who is asked, and when, is the agent's affair.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress

from engine.agent.reasoner.actions import ActionTable, GenerationSettings, plain
from engine.bdi.agent import BdiAgent
from engine.bdi.errors import ProgramError
from engine.bdi.parser import parse_literal, parse_plan, parse_program, parse_trigger
from engine.bdi.printer import plan_text, text_of, trigger_text
from engine.bdi.syntax import Operation, Step, StepKind, Trigger, TriggerKind, steps_of
from engine.bdi.terms import Struct
from engine.core import events as ev
from engine.core.reasoner import GeneratedPlan, ProposedPlan
from engine.planning.pgp.answer_layout import InventionKind
from engine.planning.pgp.answer_parser import Invention, parse_answer, with_inventions
from engine.planning.pgp.documentation import ActionSpec, Documentation
from engine.planning.pgp.generated_plans import GeneratedPlans, Provenance
from engine.planning.pgp.procedure import PlanQuestion, ReactiveProcedure
from engine.planning.pgp.prompts import PromptVariant
from engine.planning.pgp.requests import GenerationConfig, Prompt, context_of, prompt_of
from engine.planning.pgp.validation import GenerationLimits, matches, review
from engine.value import dataclass, replace


@dataclass(frozen=True, slots=True)
class Reviewed:
    """The verdict on an answer, ready for the journal."""

    plans: tuple[ProposedPlan, ...]
    problems: tuple[str, ...]
    failure: str
    repair: str
    inventions: tuple[tuple[str, str, str], ...] = ()
    """Kind, template and purpose of the goals and beliefs that the answer makes up."""


def config_of(settings: GenerationSettings) -> GenerationConfig:
    """What a generation is run with, with the agent's level over the defaults."""
    return GenerationConfig().over(
        model=settings.model,
        temperature=settings.temperature,
        max_tokens=settings.max_tokens,
        request_timeout_s=settings.request_timeout_s,
        user_prompt=PromptVariant(settings.prompt),
        remarks=settings.remarks,
    )


def limits_of(settings: GenerationSettings) -> GenerationLimits:
    """How much the agent may generate."""
    return GenerationLimits(attempts_per_goal=settings.attempts, repairs=settings.repairs)


def actions_of(known: Documentation, table: ActionTable) -> tuple[ActionSpec, ...]:
    """The actions that plans may use: those that the program documents, else all that the agent has."""
    if known.actions:
        return known.actions
    return tuple(
        ActionSpec(name, tuple(parameter.name for parameter in spec.parameters), spec.description)
        for name, (_, spec) in table.commands.items()
    )


def reviewed(
    answer: str,
    goal: str,
    actions: Collection[ActionSpec],
    limits: GenerationLimits,
    known: Collection[Trigger] = (),
) -> Reviewed:
    """The verdict on each plan of an answer; takes up to seconds for a long one.

    Args:
        answer: as the model gave it.
        goal: the event that plans are needed for.
        actions: what plans may use.
        limits: how much may be generated.
        known: triggers of the plans that the agent has.
    """
    trigger = parse_trigger(goal)
    read = parse_answer(answer, actions)
    verdict = review(read, trigger, actions, limits, known)
    plans = tuple(ProposedPlan(plan_text(plan.read.plan), plan.reasons) for plan in verdict.verdicts)
    problems = tuple(f"line {problem.line}: {problem.reason}" for problem in read.problems)
    made_up = tuple((str(made.kind), text_of(made.template), made.purpose) for made in read.inventions)
    return Reviewed(plans, problems, verdict.failure, verdict.repair_request, made_up)


def inventions_of(stored: Sequence[Sequence[str]]) -> tuple[Invention, ...]:
    """Inventions from what `reviewed` gave."""
    inventions: list[Invention] = []
    for kind, template, purpose in stored:
        with suppress(ProgramError):
            inventions.append(Invention(InventionKind(kind), parse_literal(template), purpose, 0, template))
    return tuple(inventions)


def read_plans(text: str, goal: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The plans that an operator wrote, of which at least one must be for the goal, and what is wrong."""
    try:
        program = parse_program(text, "the plans")
    except ProgramError as error:
        return (), tuple(map(str, error.problems))
    if program.goals or program.knowledge:
        return (), ("only plans may stand here: no beliefs, rules or goals",)
    if not any(matches(plan.trigger, parse_trigger(goal)) for plan in program.plans):
        return (), (f"none of these plans is for {goal}",)
    return tuple(map(plan_text, program.plans)), ()


class GenerationRecords:
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
        self.questions: dict[str, PlanQuestion] = {}
        """Questions that are being answered, by generation."""
        self.inventions: list[tuple[str, str, str]] = []
        """Goals and beliefs that the answers so far have made up."""
        self.begun = 0
        """Generations that were ever begun."""
        self.shown = GeneratedPlans()
        """The generated plans as they were last shown."""

    def begin(self, event: ev.GenerationBegun) -> None:
        """Record that plans are being made for a goal."""
        self.begun += 1
        if self.procedure is None:
            return
        if event.trigger == "proactive":
            self.procedure.propose(parse_trigger(event.goal))
        asked = {trigger_text(question.goal): question for question in self.procedure.questions}
        if event.goal in asked:
            self.questions[event.generation] = asked[event.goal]

    def settle(self, event: ev.GenerationSettled, at: str) -> None:
        """Install the plans of a generation, or give the goal up."""
        question = self.questions.pop(event.generation, None)
        if question is None or self.procedure is None:
            return
        if not event.plans:
            self.procedure.give_up(question, event.reason)
            return
        source = Provenance(
            goal=trigger_text(question.goal),
            model=event.model,
            prompt_id=event.generation,
            time=at,
            depth=question.depth,
        )
        self.procedure.install(question, tuple(map(parse_plan, event.plans)), source, approved=event.approved)
        self.inventions += event.inventions
        self.known = with_inventions(self.known, inventions_of(event.inventions))

    def refusals(self, generation: str, plans: Sequence[str], *, approved: bool) -> tuple[bool, str]:
        """Whether none of these plans for a generation's goal could be installed, and why some could not."""
        question = self.questions.get(generation)
        if question is None or self.procedure is None:
            return True, "nobody waits for these plans any more"
        return self.procedure.refusals(question, tuple(map(parse_plan, plans)), approved=approved)

    def prompt(self, generation: str, config: GenerationConfig, repair: str) -> Prompt | None:
        """What a model is to be asked for a generation, with what to mend; None where no intention waits."""
        question = self.questions.get(generation)
        if question is None:
            return None
        prompt = prompt_of(context_of(self._agent, question.goal, self.known), config)
        return Prompt(prompt.system, f"{prompt.user}\n{repair}\n") if repair else prompt

    def new(self) -> tuple[ev.GenerationBegun, ...]:
        """Goals that have come to need plans."""
        if self.procedure is None:
            return ()
        answered = {trigger_text(question.goal) for question in self.questions.values()}
        new = [
            question for question in self.procedure.questions if trigger_text(question.goal) not in answered
        ]
        return tuple(
            ev.GenerationBegun(
                generation=f"q{self.begun + number}",
                goal=trigger_text(question.goal),
                trigger="reactive" if self.procedure.is_reactive(question.goal) else "on demand",
            )
            for number, question in enumerate(new, 1)
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
                plan.label,
                plan.provenance.goal,
                plan_text(plan.plan),
                plan.provenance.model,
                plan.provenance.prompt_id,
                len(plan.plan.body),
                len(plan.succeeded),
                plan.verified,
            )
            for plan in self.shown.plans
        )
