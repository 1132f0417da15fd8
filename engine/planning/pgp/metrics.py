"""The metrics of generated plans, and PRAS, which a model judges.

Each metric is given by the thesis' text; the variants ending in `_ref` have the artefacts of the thesis' own
program, so that its tables can be compared. The judge of PRAS follows the seven steps of the thesis' listing
5.5 (`prompts/judge.md`) and ends with a score from 0 to 1; a score that cannot be read is reported, and none
is made up.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from importlib.resources import files

from engine.bdi.printer import item_text
from engine.bdi.rewriting import variables
from engine.bdi.syntax import RELATIONS, Plan, Step, StepKind, steps_of
from engine.bdi.terms import TRUE, Struct, Term
from engine.planning.pgp.answer_layout import InventionKind, ProblemKind
from engine.planning.pgp.answer_parser import Answer
from engine.planning.pgp.documentation import Meaning
from engine.planning.pgp.plan_comparison import (
    conditions_of,
    event_key,
    leaves_of,
    numbered_variables,
    subsumes,
)
from engine.planning.pgp.prompts import without_annotations
from engine.planning.pgp.requests import AskError, Prompt, Reply
from engine.value import asdict, dataclass

_SCORE = re.compile(r"\bscore\b[\"'*`\s]{0,4}[:=][\"'*`\s]{0,4}([^\s\"'*`,;}\])]{1,40})", re.I)
_NUMBER = re.compile(r"(?:[01](?:\.\d*)?|\.\d+)(?:/1)?")


@dataclass(frozen=True, slots=True)
class Judgement:
    """A judge's score, or why there is none."""

    value: float | None
    """From 0, altogether different, to 1, alike."""
    problem: str = ""
    words: str = ""
    """The judge's own, unchanged."""


def judge_prompt(answer: str, reference: str) -> Prompt:
    """The prompt that has an answer judged.

    Args:
        answer: the text to be judged, as a model gave it.
        reference: the plans a person wrote, in the answer format.
    """
    system = (files("engine.planning.pgp") / "prompts" / "judge.md").read_text(encoding="utf-8")
    user = f"# Reference\n{_fenced(reference)}\n# Answer to be judged\n{_fenced(answer)}\n"
    return Prompt(system, user)


def _fenced(text: str) -> str:
    """The text between tildes that it cannot close itself."""
    longest = max((len(run) for run in re.findall("~+", text)), default=0)
    fence = "~" * max(3, longest + 1)
    return f"{fence}\n{text.rstrip()}\n{fence}\n"


def read_score(text: str) -> Judgement:
    """The score of a judge's answer: `Score: 0.75`, or the field `score` of an object; never raises."""
    written = [score.rstrip(".") for score in _SCORE.findall(text)]
    if not written:
        return Judgement(None, "the judge gave no line 'Score: …'", text)
    if unread := [number for number in written if not _NUMBER.fullmatch(number)]:
        return Judgement(None, f"the judge's score '{unread[0]}' is no number from 0 to 1", text)
    values = sorted({float(number.removesuffix("/1")) for number in written})
    if len(values) > 1:
        listed = ", ".join(f"{value:g}" for value in values)
        return Judgement(None, f"the judge gave several scores: {listed}", text)
    if values[0] > 1:
        return Judgement(None, f"the judge's score {values[0]:g} is above 1", text)
    return Judgement(values[0], words=text)


def judged_reply(reply: Reply | AskError) -> Judgement:
    """What a judge's reply is worth."""
    if isinstance(reply, AskError):
        return Judgement(None, f"the judge did not answer: {reply}")
    return read_score(reply.text)


@dataclass(frozen=True, slots=True)
class Metrics:
    """What can be said of the plans of one answer without running them."""

    pc: int
    """Plans."""
    cc: float
    """Beliefs a context, mean, those inside of negations too: what table 5.1 of the thesis defines."""
    cc_ref: float
    """Conditions a context, relations too, a negation as one and `<none>` as one."""
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
    answer: Answer, goals: Collection[Meaning], beliefs: Collection[Meaning], written: Sequence[Plan] = ()
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
    conditions = [condition for plan in plans for condition in _atoms_of(plan.context)]
    asked = [condition.indicator for condition in conditions if condition.functor not in RELATIONS]
    used_beliefs = set(asked)
    artefacts = {condition.indicator for condition in conditions if condition.functor in RELATIONS}
    if not all(all_leaves):
        artefacts.add(TRUE.indicator)
    declared = {belief.template.indicator for belief in beliefs}
    swapped = unread[ProblemKind.GOAL] + sum(
        "()" in invention.text for invention in answer.invented(InventionKind.GOAL)
    )
    return Metrics(
        pc=len(plans),
        cc=len(asked) / max(1, len(plans)),
        cc_ref=_mean([len(leaves) or 1 for leaves in all_leaves]),
        pbc=_mean([len(plan.body) for plan in plans]),
        gc=sum(bool(variables(plan.trigger.literal)) for plan in plans),
        rr=_redundant([*plans, *written], subsumes),
        rr_ref=_redundant([*plans, *written], _identical_subset),
        ngc=len(answer.invented(InventionKind.GOAL)),
        nbc=len(answer.invented(InventionKind.BELIEF)),
        gsa=unread[ProblemKind.GOAL]
        + len(_misfits({goal.template.indicator for goal in goals}, new_goals, set(_used_goals(plans)))),
        bsa=unread[ProblemKind.BELIEF] + len(_misfits(declared, new_beliefs, used_beliefs)),
        bsa_ref=swapped + len(_misfits(declared, new_beliefs, used_beliefs | artefacts)),
    )


def _mean(values: Sequence[int]) -> float:
    return sum(values) / len(values) if values else 0.0


def _indicators(answer: Answer, kind: InventionKind) -> set[str]:
    return {invention.template.indicator for invention in answer.invented(kind)}


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
        node = waiting.pop()
        if isinstance(node, Struct) and node.functor == "not":
            waiting.extend(leaf for inside in node.args for leaf in leaves_of(inside))
        elif isinstance(node, Struct) and not node.functor.startswith("."):
            yield Struct(node.functor, node.args)


def _redundant(plans: Sequence[Plan], makes_useless: Callable[[Plan, Plan], bool]) -> int:
    return sum(
        any(makes_useless(earlier, plan) for earlier in plans[:place]) for place, plan in enumerate(plans)
    )


def _identical_subset(general: Plan, special: Plan) -> bool:
    parts = (general.trigger.literal, general.context)
    if general.trigger != special.trigger or any(map(variables, parts)):
        return False
    # Without conditions the program has the single condition `true`.
    of_general, of_special = (set(conditions_of(terms.context)) or {TRUE} for terms in (general, special))
    return of_general <= of_special


# ------------------------------------------------------------------ alignment


def alignment_surrogate(plans: Sequence[Plan], reference: Sequence[Plan]) -> float:
    """Likeness to reference plans from 0 to 1: F1 over their clauses up to renaming.

    It stands in for PRAS, which needs a model as judge, and is no measure of that. A
    clause is an event, a condition or an operation of any of the plans.
    """
    ours, theirs = (
        Counter(clause for plan in some for clause in _clauses(plan)) for some in (plans, reference)
    )
    total = ours.total() + theirs.total()
    return 2 * (ours & theirs).total() / total if total else 0.0


def _clauses(plan: Plan) -> Iterator[tuple[str, str]]:
    yield "event", event_key(plan.trigger)
    for condition in conditions_of(plan.context):
        yield "condition", numbered_variables(without_annotations(condition))
    for item in plan.body:
        kind = item.kind if isinstance(item, Step) else ""
        yield (
            "operation",
            f"{kind} {numbered_variables(item.term) if isinstance(item, Step) else item_text(item)}",
        )
