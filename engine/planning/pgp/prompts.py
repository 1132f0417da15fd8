"""The prompts of plan generation: what a model reads once, and what of the agent.

The three variants of the user prompt differ in the purposes (hints) and the remarks alone. Filters decide
which parts of the agent reach the model. Plans are shown in the form in which a model is to write them, and
prompts are nested sections whose headings' depth follows from the nesting.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from functools import cache
from importlib.resources import files

from engine.bdi.printer import item_text, text_of
from engine.bdi.syntax import BodyItem, Operation, Plan, Step, StepKind, Trigger
from engine.bdi.terms import Struct, Term
from engine.planning.pgp.documentation import ActionSpec, Documentation, Meaning, meaning_of
from engine.planning.pgp.plan_comparison import conditions_of, event_key
from engine.value import dataclass, field, replace

MISSING_PLAN = "missing_plan_for"
"""The belief that a goal has no plan; the reactive procedure's own, never shown to a model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationContext:
    """The agent as a model may see it."""

    goal: Trigger
    """The event that plans are needed for, such as `+!reach(home)`."""
    beliefs: tuple[Struct, ...] = ()
    plans: tuple[Plan, ...] = ()
    known: Documentation = field(default_factory=Documentation)
    """Actions, what is admissible, meanings and remarks."""


def shown_context(context: GenerationContext, hidden: Sequence[str]) -> GenerationContext:
    """The context without hidden actions, failure plans and what is the procedure's own.

    Failure plans mend what the model cannot see; of the plans for one event the first stands for all.
    """
    kept: dict[str, Plan] = {}
    for plan in context.plans:
        if not plan.trigger.is_goal or plan.trigger.operation is Operation.ADDED:
            kept.setdefault(event_key(plan.trigger), plan)
    beliefs = tuple(belief for belief in context.beliefs if belief.functor != MISSING_PLAN)
    actions = tuple(action for action in context.known.actions if action.name not in hidden)
    known = replace(context.known, actions=actions)
    return replace(context, plans=tuple(kept.values()), beliefs=beliefs, known=known)


_TRIGGER_WORDS = {
    "+!": "achieve ",
    "-!": "achieve failure ",
    "+?": "test ",
    "-?": "test failure ",
    "^!": "state of goal ",
    "^?": "state of test ",
    "+": "add ",
    "-": "remove ",
}


def _with_purpose(text: str, purpose: str) -> str:
    return f"{text}: {purpose}" if purpose else text


def admissible(meaning: Meaning) -> str:
    """A template and what it means."""
    return _with_purpose(text_of(meaning.template), meaning.of(meaning.template))


def belief(term: Struct, meanings: Iterable[Meaning]) -> str:
    """A belief without its sources, and what it means."""
    bare = term.with_annotations(())
    return _with_purpose(text_of(bare), meaning_of(bare, meanings))


def action(spec: ActionSpec) -> str:
    """An action's signature and what it does."""
    template = spec.template
    text = text_of(template) if template.args else f"{template.functor}()"
    return _with_purpose(text, Meaning(template, spec.purpose).of(template))


def trigger(event: Trigger, meanings: Iterable[Meaning] = ()) -> str:
    """An event as the answer format spells it, `achieve reach(home)`, and what its goal means."""
    text = f"{_TRIGGER_WORDS[event.operation + event.kind]}{text_of(event.literal)}"
    meaning = meaning_of(event.literal, meanings) if isinstance(event.literal, Struct) else ""
    return _with_purpose(text, meaning)


STEP_WORDS = {
    StepKind.ACHIEVE: "achieve",
    StepKind.SPAWN: "spawn",
    StepKind.TEST: "test",
    StepKind.ADD: "add",
    StepKind.REMOVE: "remove",
    StepKind.UPDATE: "update",
}

_AS_IN_A_PROGRAM = (StepKind.CONSTRAINT, StepKind.ADD_APART, StepKind.REMOVE_APART)


def as_answer(plans: Iterable[Plan]) -> str:
    """Plans in one fenced block; what the format has no word for stands as in a program.

    Sources and other annotations are left out: a model does not see them.
    """
    return "```yaml\n" + "\n---\n".join(map(_plan, plans)) + "\n```\n"


def _plan(plan: Plan) -> str:
    conditions = [text_of(without_annotations(condition)) for condition in conditions_of(plan.context)]
    operations = [_operation(item) for item in plan.body]
    head = f"EVENT: {trigger(plan.trigger)}"
    return "\n".join([head, "CONDITIONS:", *_listed(conditions), "OPERATIONS:", *_listed(operations)])


def _listed(items: list[str]) -> list[str]:
    return [f"  - {item}" for item in items or ["<none>"]]


def _operation(item: BodyItem) -> str:
    if not isinstance(item, Step) or item.kind in _AS_IN_A_PROGRAM:
        return " ".join(item_text(item).split())
    term = without_annotations(item.term)
    if item.kind in STEP_WORDS:
        return f"{STEP_WORDS[item.kind]} {text_of(term)}"
    if isinstance(term, Struct) and term.functor == ".generate_plan":
        return f"generate {', '.join(map(text_of, term.args))}"
    text = text_of(term).removeprefix(".")
    return f"execute {text}" if isinstance(term, Struct) and term.args else f"execute {text}()"


def without_annotations(term: Term) -> Term:
    """A condition or operation without the annotations of its literals."""
    if not isinstance(term, Struct):
        return term
    if term.functor in ("not", "&", "|"):
        return term.with_args(tuple(map(without_annotations, term.args)))
    return term.with_annotations(())


def _section(title: str, *parts: str) -> str:
    """A titled part of a prompt as Markdown, the headings of its parts one level below its own."""
    text = "\n\n".join(parts)
    inside = "\n".join(f"#{line}" if line.startswith("#") else line for line in text.split("\n"))
    return f"# {title}\n\n{inside}"


def _bullets(lines: Iterable[str]) -> str:
    """A bullet list, one value a line; `None.` when there is none."""
    return "\n".join(f"- {line}" for line in lines) or "None."


OUTCOME = (
    "Give the final set of plans only, without alternatives or attempts. End with one more YAML block that "
    "lists the admissible goals and beliefs you invented, each with its purpose."
)


class PromptVariant(StrEnum):
    """How much the programmer's documentation tells the model."""

    NO_HINTS = "no-hints"
    HINTS = "hints"
    HINTS_AND_REMARKS = "hints-and-remarks"


@cache
def system_prompt() -> str:
    """What a BDI agent is, what plans are made of, how to plan and how to answer; the same for all."""
    text = (files("engine.planning.pgp") / "prompts" / "system.md").read_text(encoding="utf-8")
    return _section("System Message", text.strip()) + "\n"


def _reduced(context: GenerationContext, variant: PromptVariant) -> GenerationContext:
    if variant is PromptVariant.HINTS_AND_REMARKS:
        return context
    known = context.known
    if variant is PromptVariant.HINTS:
        return replace(context, known=replace(known, remarks=()))
    return replace(
        context,
        known=Documentation(
            admissible_goals=tuple(replace(goal, text="") for goal in known.admissible_goals),
            admissible_beliefs=tuple(replace(belief, text="") for belief in known.admissible_beliefs),
            actions=tuple(replace(action, purpose="") for action in known.actions),
        ),
    )


def user_prompt(context: GenerationContext, variant: PromptVariant) -> str:
    """The prompt about one agent and one goal, with as much documentation as the variant says."""
    context = _reduced(context, variant)
    known = context.known
    belief_meanings = (*known.admissible_beliefs, *known.meanings)
    goal_meanings = (*known.admissible_goals, *known.meanings)
    held = (belief(fact, belief_meanings) for fact in context.beliefs)
    events = (trigger(plan.trigger, goal_meanings) for plan in context.plans)
    goals = (f"achieve {admissible(goal)}" for goal in known.admissible_goals)
    state = [
        _section(
            "Beliefs",
            _section("Admissible beliefs", _bullets(map(admissible, known.admissible_beliefs))),
            _section("Actual beliefs", _bullets(held)),
        ),
        _section(
            "Goals", _section("Admissible goals", _bullets(goals)), _section("Actual goals", _bullets(events))
        ),
        _section("Admissible actions", _bullets(map(action, known.actions))),
        *([_section("Remarks", _bullets(known.remarks))] if known.remarks else []),
    ]
    text = _section(
        "User Message",
        "This is your internal state, and below it the goal that you are to plan for.",
        _section("Agent's internal state", *state),
        _section("Expected outcome", f"Create plans to pursue the goal: {trigger(context.goal)}.\n{OUTCOME}"),
    )
    return text + "\n"
