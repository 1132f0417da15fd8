"""The prompts: what a model is told once and for all, and what of the agent (spec BDI §2.2, §2.6).

The three variants of the user prompt differ in the purposes (hints) and the remarks alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum

from engine.generation.pgp import formatters
from engine.generation.pgp.context import GenerationContext
from engine.generation.pgp.documentation import Documentation
from engine.generation.pgp.sections import Section, from_file, from_formatter, section

OUTCOME = (
    "Give the final set of plans only, without alternatives or attempts. End with one more YAML block that "
    "lists the admissible goals and beliefs you invented, each with its purpose."
)


@dataclass(frozen=True, slots=True)
class PromptBuilder:
    """A named way to write a prompt."""

    name: str
    build: Callable[[GenerationContext], tuple[Section, ...]]

    def text(self, context: GenerationContext) -> str:
        """The prompt for this context, as Markdown."""
        return "\n\n".join(part.render() for part in self.build(context)) + "\n"


class PromptVariant(StrEnum):
    """How much the programmer's documentation tells the model."""

    NO_HINTS = "no-hints"
    HINTS = "hints"
    HINTS_AND_REMARKS = "hints-and-remarks"


def _system(context: GenerationContext) -> tuple[Section, ...]:
    return (section("System Message", from_file("system.md")),)


SYSTEM_PROMPT = PromptBuilder("system", _system)
"""What a BDI agent is, what plans are made of, how to plan and how to answer; the same for every agent."""


def user_prompt(variant: PromptVariant) -> PromptBuilder:
    """The prompt about one agent and one goal, with as much documentation as the variant says."""

    def build(context: GenerationContext) -> tuple[Section, ...]:
        return _user(_reduced(context, variant))

    return PromptBuilder(f"user, {variant}", build)


def _reduced(context: GenerationContext, variant: PromptVariant) -> GenerationContext:
    if variant is PromptVariant.HINTS_AND_REMARKS:
        return context
    known = context.known
    if variant is PromptVariant.HINTS:
        return replace(context, known=replace(known, remarks=()))
    return replace(
        context,
        known=Documentation(
            admissible_goals=tuple(replace(one, text="") for one in known.admissible_goals),
            admissible_beliefs=tuple(replace(one, text="") for one in known.admissible_beliefs),
            actions=tuple(replace(one, purpose="") for one in known.actions),
        ),
    )


def _user(context: GenerationContext) -> tuple[Section, ...]:
    known = context.known
    belief_meanings = (*known.admissible_beliefs, *known.meanings)
    goal_meanings = (*known.admissible_goals, *known.meanings)
    beliefs = section(
        "Beliefs",
        section("Admissible beliefs", from_formatter(known.admissible_beliefs, formatters.admissible_belief)),
        section(
            "Actual beliefs",
            from_formatter(context.beliefs, lambda one: formatters.belief(one, belief_meanings)),
        ),
    )
    goals = section(
        "Goals",
        section("Admissible goals", from_formatter(known.admissible_goals, formatters.admissible_goal)),
        section(
            "Actual goals",
            from_formatter(context.plans, lambda one: formatters.trigger(one.trigger, goal_meanings)),
        ),
    )
    actions = section("Admissible actions", from_formatter(known.actions, formatters.action))
    remarks = [section("Remarks", from_formatter(known.remarks, str))] if known.remarks else []
    outcome = f"Create plans to pursue the goal: {formatters.trigger(context.goal)}.\n{OUTCOME}"
    return (
        section(
            "User Message",
            "This is your internal state, and below it the goal that you are to plan for.",
            section("Agent's internal state", beliefs, goals, actions, *remarks),
            section("Expected outcome", outcome),
        ),
    )
