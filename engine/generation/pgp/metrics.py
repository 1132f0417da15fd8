"""The metrics of generated plans (spec BDI §3.3).

Each is given by the thesis' text; the variants ending in `_ref` have the artefacts of the thesis' own
program, so that its tables can be compared. Success and time come from runs, see `engine.worlds`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import asdict, dataclass

from engine.bdi.formulas import RELATIONS
from engine.bdi.printing import item_text
from engine.bdi.syntax import Plan, Step, StepKind, steps_of
from engine.bdi.terms import TRUE, Struct, Term, variables
from engine.generation.pgp.answer import Answer, ProblemKind
from engine.generation.pgp.answer_format import bare
from engine.generation.pgp.answer_layout import InventionKind
from engine.generation.pgp.documentation import Meaning
from engine.generation.pgp.renaming import conditions_of, leaves_of, nameless, subsumes


@dataclass(frozen=True, slots=True)
class Metrics:
    """What can be said of the plans of one answer without running them."""

    pc: int
    """Plans."""
    cc: float
    """Conditions a plan, mean; none for `<none>`."""
    cc_ref: float
    """The same with `<none>` as one condition."""
    pbc: float
    """Operations a plan, mean; none for `<none>`."""
    gc: int
    """Plans whose event has a variable."""
    rr: int
    """Plans that an earlier one makes useless, up to renaming."""
    rr_ref: int
    """The same where plans with variables are never alike."""
    ngc: int
    """Goals invented."""
    nbc: int
    """Beliefs invented."""
    gsa: int
    """Goals that do not fit: unreadable, undeclared, unused or invented again."""
    bsa: int
    """Beliefs that do not fit."""
    bsa_ref: int
    """The same with `<none>` and relations as beliefs and goals written `g()` as unreadable beliefs."""

    def as_dict(self) -> dict[str, float]:
        """The metrics by name."""
        return asdict(self)


def measure(
    answer: Answer,
    goals: Collection[Meaning],
    beliefs: Collection[Meaning],
    written: Sequence[Plan] = (),
) -> Metrics:
    """The metrics of an answer.

    Args:
        answer: what was read of it.
        goals: what the programmer declared as admissible goals.
        beliefs: what the programmer declared as admissible beliefs.
        written: the agent's plans written by hand; generated ones, which stand first, may make them useless.
    """
    plans = [read.plan for read in answer.plans]
    all_leaves = [tuple(leaves_of(plan.context)) for plan in plans]
    new_goals = _indicators(answer, InventionKind.GOAL)
    new_beliefs = _indicators(answer, InventionKind.BELIEF)
    unread = Counter(problem.kind for problem in answer.problems)
    conditions = [one for plan in plans for one in _atoms_of(plan.context)]
    used_beliefs = {one.indicator for one in conditions if one.functor not in RELATIONS}
    artefacts = {one.indicator for one in conditions if one.functor in RELATIONS}
    if not all(all_leaves):
        artefacts.add(TRUE.indicator)
    declared = {one.template.indicator for one in beliefs}
    swapped = unread[ProblemKind.GOAL] + sum("()" in one.text for one in answer.invented(InventionKind.GOAL))
    return Metrics(
        pc=len(plans),
        cc=_mean([len(leaves) for leaves in all_leaves]),
        cc_ref=_mean([len(leaves) or 1 for leaves in all_leaves]),
        pbc=_mean([len(plan.body) for plan in plans]),
        gc=sum(bool(variables(plan.trigger.literal)) for plan in plans),
        rr=_redundant([*plans, *written], subsumes),
        rr_ref=_redundant([*plans, *written], _identical_subset),
        ngc=len(answer.invented(InventionKind.GOAL)),
        nbc=len(answer.invented(InventionKind.BELIEF)),
        gsa=unread[ProblemKind.GOAL]
        + len(_misfits({one.template.indicator for one in goals}, new_goals, set(_used_goals(plans)))),
        bsa=unread[ProblemKind.BELIEF] + len(_misfits(declared, new_beliefs, used_beliefs)),
        bsa_ref=swapped + len(_misfits(declared, new_beliefs, used_beliefs | artefacts)),
    )


def _mean(values: Sequence[int]) -> float:
    return sum(values) / len(values) if values else 0.0


def _indicators(answer: Answer, kind: InventionKind) -> set[str]:
    return {one.template.indicator for one in answer.invented(kind)}


def _misfits(declared: set[str], invented: set[str], used: set[str]) -> set[str]:
    return (used - declared - invented) | (invented - used) | (invented & declared)


def _used_goals(plans: Sequence[Plan]) -> Iterator[str]:
    for plan in plans:
        if isinstance(plan.trigger.literal, Struct):
            yield plan.trigger.literal.indicator
        for step in steps_of(plan.body):
            if isinstance(step, Step) and step.kind is StepKind.ACHIEVE and isinstance(step.term, Struct):
                yield step.term.indicator


def _atoms_of(context: Term) -> Iterator[Struct]:
    """The literals and relations of a context without their negations; internal actions are none."""
    waiting = [*leaves_of(context)]
    while waiting:
        one = waiting.pop()
        if isinstance(one, Struct) and one.functor == "not":
            waiting.extend(leaf for inside in one.args for leaf in leaves_of(inside))
        elif isinstance(one, Struct) and not one.functor.startswith("."):
            yield Struct(one.functor, one.args)


def _redundant(plans: Sequence[Plan], makes_useless: Callable[[Plan, Plan], bool]) -> int:
    return sum(
        any(makes_useless(earlier, plan) for earlier in plans[:place]) for place, plan in enumerate(plans)
    )


def _identical_subset(general: Plan, special: Plan) -> bool:
    parts = (general.trigger.literal, general.context)
    if general.trigger != special.trigger or any(map(variables, parts)):
        return False
    # Without conditions the program has the single condition `true`.
    of_general, of_special = (set(conditions_of(one.context)) or {TRUE} for one in (general, special))
    return of_general <= of_special


# ------------------------------------------------------------------ alignment


def alignment_surrogate(plans: Sequence[Plan], reference: Sequence[Plan]) -> float:
    """Likeness to reference plans from 0 to 1: F1 over their clauses up to renaming.

    It stands in for PRAS, which needs a model as judge, and is no measure of that (spec BDI §3.3). A
    clause is an event, a condition or an operation of any of the plans.
    """
    ours, theirs = (
        Counter(clause for plan in some for clause in _clauses(plan)) for some in (plans, reference)
    )
    total = ours.total() + theirs.total()
    return 2 * (ours & theirs).total() / total if total else 0.0


def _clauses(plan: Plan) -> Iterator[tuple[str, str]]:
    yield "event", f"{plan.trigger.operation}{plan.trigger.kind}{nameless(plan.trigger.literal)}"
    for condition in conditions_of(plan.context):
        yield "condition", nameless(bare(condition))
    for item in plan.body:
        kind = item.kind if isinstance(item, Step) else ""
        yield "operation", f"{kind} {nameless(item.term) if isinstance(item, Step) else item_text(item)}"
