"""Plans for a reasoner made by a model: the prompt, the verdict on the answer, and plans as text again.

All of it is pure; who is asked, and when, is the agent's affair (spec BDI §2).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass

from engine.bdi.agent import BdiAgent
from engine.bdi.parser import parse_literal, parse_plan, parse_program, parse_trigger
from engine.bdi.printing import plan_text, text_of
from engine.bdi.problems import ProgramError
from engine.bdi.syntax import Plan, Trigger
from engine.domain.reasoning import ProposedPlan
from engine.generation.pgp.answer import Invention, read_answer
from engine.generation.pgp.answer_layout import InventionKind
from engine.generation.pgp.asking import Prompt, context_of, prompt_of
from engine.generation.pgp.config import EffectiveConfig, GenerationConfig, resolve
from engine.generation.pgp.documentation import ActionSpec, Documentation
from engine.generation.pgp.prompt import PromptVariant, user_prompt
from engine.generation.pgp.validation import GenerationLimits, handles, review
from engine.reasoner.actions import ActionTable
from engine.reasoner.config import GenerationSettings


@dataclass(frozen=True, slots=True)
class Reviewed:
    """The verdict on an answer, ready for the journal."""

    plans: tuple[ProposedPlan, ...]
    problems: tuple[str, ...]
    failure: str
    repair: str
    inventions: tuple[tuple[str, str, str], ...] = ()
    """Kind, template and purpose of the goals and beliefs that the answer makes up."""


@dataclass(frozen=True, slots=True)
class PlansRead:
    """Plans that an operator wrote or edited."""

    texts: tuple[str, ...]
    problems: tuple[str, ...]


def config_of(settings: GenerationSettings) -> EffectiveConfig:
    """What a generation is run with, with the agent's level over the defaults."""
    agent = GenerationConfig(
        model=settings.model,
        temperature=settings.temperature,
        max_tokens=settings.max_tokens,
        request_timeout_s=settings.request_timeout_s,
        user_prompt=user_prompt(PromptVariant(settings.prompt)),
        remarks=settings.remarks,
    )
    return resolve(None, agent, None)


def limits_of(settings: GenerationSettings) -> GenerationLimits:
    """How much the agent may generate."""
    return GenerationLimits(attempts_per_goal=settings.attempts, repairs=settings.repairs)


def actions_of(known: Documentation, table: ActionTable) -> tuple[ActionSpec, ...]:
    """The actions that plans may use: those that the program documents, else all that the agent has."""
    if known.actions:
        return known.actions
    return tuple(
        ActionSpec(name, tuple(one.name for one in spec.parameters), spec.description)
        for name, (_, spec) in table.commands.items()
    )


def prompt_for(
    agent: BdiAgent, goal: Trigger, known: Documentation, config: EffectiveConfig, repair: str = ""
) -> Prompt:
    """The prompt for a goal, from the agent as it is now.

    Args:
        agent: whose beliefs and plans it shows.
        goal: the event that plans are needed for.
        known: what is documented, with the actions that plans may use.
        config: what the generation is run with.
        repair: what the model is to mend of its last answer.
    """
    prompt = prompt_of(context_of(agent, goal, known), config)
    return Prompt(prompt.system, f"{prompt.user}\n{repair}\n") if repair else prompt


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
    wanted = parse_trigger(goal)
    read = read_answer(answer, actions)
    verdict = review(read, wanted, actions, limits, known)
    plans = tuple(ProposedPlan(plan_text(one.read.plan), one.reasons) for one in verdict.verdicts)
    problems = tuple(f"line {one.line}: {one.reason}" for one in read.problems)
    made_up = tuple(_invention(one) for one in read.inventions)
    return Reviewed(plans, problems, verdict.failure, verdict.repair_request, made_up)


def inventions_of(stored: Sequence[Sequence[str]]) -> tuple[Invention, ...]:
    """Inventions from what `reviewed` gave."""
    found: list[Invention] = []
    for kind, template, purpose in stored:
        with suppress(ProgramError):
            found.append(Invention(InventionKind(kind), parse_literal(template), purpose, 0, template))
    return tuple(found)


def _invention(one: Invention) -> tuple[str, str, str]:
    return str(one.kind), text_of(one.template), one.purpose


def read_plans(text: str, goal: str) -> PlansRead:
    """The plans that an operator wrote; at least one must be for the goal."""
    try:
        program = parse_program(text, "the plans")
    except ProgramError as error:
        return PlansRead((), tuple(map(str, error.problems)))
    if program.goals or program.beliefs or program.rules:
        return PlansRead((), ("only plans may stand here: no beliefs, rules or goals",))
    if not any(handles(plan, parse_trigger(goal)) for plan in program.plans):
        return PlansRead((), (f"none of these plans is for {goal}",))
    return PlansRead(tuple(map(plan_text, program.plans)), ())


def plans_of(texts: Sequence[str]) -> tuple[Plan, ...]:
    """Plans from the texts that `plan_text` gave."""
    return tuple(parse_plan(text) for text in texts)
