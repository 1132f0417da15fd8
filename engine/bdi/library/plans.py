"""The plan library: plans added, removed and shown."""

from __future__ import annotations

from dataclasses import replace

from engine.bdi import waiting
from engine.bdi.actions import Call, failed
from engine.bdi.intentions import Waiting
from engine.bdi.library.registry import internal
from engine.bdi.parser import parse_plan, parse_trigger
from engine.bdi.plans import CompiledPlan
from engine.bdi.printing import on_one_line, text_of
from engine.bdi.problems import ErrorId, EvaluationError, ProgramError
from engine.bdi.syntax import Plan
from engine.bdi.terms import QUOTED_PLAN, Struct, Term, atom, deref, instantiated, list_of


def as_term(plan: CompiledPlan) -> Term:
    """A plan as a quoted term."""
    return Struct(QUOTED_PLAN, (on_one_line(plan.text.removesuffix(".")),))


def quoted_text(term: Term) -> str | None:
    """What a term in braces or a string says; None for anything else."""
    if isinstance(term, Struct) and term.functor == QUOTED_PLAN:
        return text_of(term)[2:-2]
    return term if isinstance(term, str) else None


def trigger_of(call: Call, place: int) -> tuple[str, Struct]:
    """Sign and literal of `{ +!g(X) }`, whose variables are those of the clause around it, or of a string."""
    found = call.value(place)
    if isinstance(found, Struct) and found.functor == QUOTED_PLAN and len(found.args) == 2:
        sign, literal = found.args
    else:
        try:
            trigger = parse_trigger(quoted_text(found) or "")
        except ProgramError as error:
            raise failed(f"{call.name}: not an event: {error.problems[0]}") from None
        sign, literal = f"{trigger.operation}{trigger.kind}", instantiated(trigger.literal)
    if not (isinstance(sign, str) and isinstance(literal, Struct)):
        raise call.wrong(place, "an event")
    return sign, literal


def read_plan(text: str, origin: str, source: str) -> Plan:
    """A plan from text, with the agent that it comes from as an annotation of its label."""
    try:
        plan = parse_plan(text, origin)
    except ProgramError as error:
        raise failed(f"not a plan: {error.problems[0]}") from None
    if source == "self":
        return plan
    label = plan.label or Struct("")
    return replace(
        plan, label=label.with_annotations((*label.annotations, Struct("source", (atom(source),))))
    )


@internal(".add_plan", 1, 3)
def add_plan(call: Call) -> bool:
    """`.add_plan({ +!g <- a }, source, begin)`: behind the other plans unless `begin` is said."""
    source = call.name_of(1) if len(call) > 1 else "self"
    before = len(call) > 2 and call.name_of(2) == "begin"
    try:
        plan = read_plan(quoted_text(call.value(0)) or "", call.agent.name, source)
        call.agent.plans.add(plan, before=before)
    except ValueError as error:
        raise failed(f".add_plan: {error}") from None
    return True


@internal(".remove_plan", 1, 2)
def remove_plan(call: Call) -> bool:
    """The plan with this label, or each of a list of labels."""
    found = deref(call.args[0])
    names = [found] if isinstance(found, Struct) else call.items(0)
    for one in names:
        if not isinstance(label := deref(one), Struct) or call.agent.plans.get(label.functor) is None:
            return False
        call.agent.plans.remove(label.functor)
    return True


@internal(".relevant_plans", 2, 3)
def relevant_plans(call: Call) -> bool:
    """Plans for a trigger, as terms, and their labels."""
    found = call.agent.plans.relevant(*trigger_of(call, 0))
    labels = list_of([atom(plan.name) for plan in found])
    return call.unify(1, list_of(map(as_term, found))) and (len(call) == 2 or call.unify(2, labels))


@internal(".plan_label", 2)
def plan_label(call: Call) -> bool:
    """`.plan_label(P, label)`: the plan with this label."""
    found = call.agent.plans.get(call.name_of(1))
    return found is not None and call.unify(0, as_term(found))


@internal(".list_plans", 0, 1)
def list_plans(call: Call) -> bool:
    """Say all plans, or those for an event: `.list_plans({ +!g(_) })`."""
    plans = call.agent.plans
    for plan in plans.relevant(*trigger_of(call, 0)) if len(call) else plans:
        call.agent.say(plan.text)
    return True


@internal(".generate_plan", 1)
def generate_plan(call: Call) -> bool:
    """Have a plan made for a goal; the intention waits until it is there (§2.3)."""
    intention, goal = call.step(), call.value(0)
    ask = call.agent.on_generate_plan
    if ask is None or not ask(intention, goal):
        raise EvaluationError(ErrorId.PGP_FAILED, "nothing here generates plans")
    waiting.begin(call.agent, intention, Waiting.GENERATION, goal)
    return True
