"""The plan library: compiled plans in their order, indexed by trigger and its first argument.

A program made ready to run; many agents share one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from engine.bdi.beliefs import Clause, is_source, sourced
from engine.bdi.compiler import Formula, compile_formula, compile_rule
from engine.bdi.errors import ErrorId, EvaluationError, ProgramError
from engine.bdi.parser import parse_plan
from engine.bdi.printer import headline, plan_text, text_of
from engine.bdi.rewriting import canonical, instantiated, is_ground
from engine.bdi.syntax import SPACE_MARK, Belief, Body, BodyItem, Plan, Program, Rule, plan_of, plan_term
from engine.bdi.term_compiler import (
    UNWRITTEN,
    Env,
    Scope,
    annotation_matcher,
    builder,
    is_computed,
    is_constant,
    key_of,
    matchers,
)
from engine.bdi.terms import (
    QUOTED_PLAN,
    SELF,
    TRUE,
    VARIABLE_LITERAL,
    Struct,
    Term,
    atom,
    subterms,
    without_open_tail,
)
from engine.bdi.unification import Trail, undo
from engine.value import dataclass, field


@dataclass(slots=True, eq=False)
class Instruction:
    """One step of a body."""

    item: BodyItem
    _text: str = field(default="", init=False)
    at: int = field(default=0, init=False)
    """Its place in the code."""
    next: int = field(default=0, init=False)
    """Place of the step that follows."""
    formula: Formula | None = field(default=None, init=False)
    """What the step asks or waits for, where it does."""

    @property
    def text(self) -> str:
        """The step on one line."""
        if not self._text:
            self._text = headline(self.item)
        return self._text

    def execute(self, agent: Any, intention: Any, frame: Any) -> bool:
        """Run it; False when the intention has to wait, True when the frame stands at its next step.

        Subclasses narrow the types to `RunningAgent`, `Intention` and `Frame`, which stand above this module.

        Raises:
            EvaluationError: the step fails.
        """
        raise NotImplementedError


class CompiledPlan:
    """A plan ready to run, shared by all agents that have it; compiled when it is first tried."""

    compile_body: ClassVar[Callable[[Body, Scope], list[Instruction]]]
    """Set by `engine.bdi.body_compiler`, which needs the instructions and so stands above this module."""

    def __init__(self, plan: Plan, name: str) -> None:
        self.plan = plan
        self.name = name
        """Its label, or a name given to it; unique in a library."""
        self.sign = f"{plan.trigger.operation}{plan.trigger.kind}"
        self.indicator: str | None = None
        """None when the trigger is a variable, which any literal fits."""
        self.key: int | float | str | None = None
        """What an event's first argument must be filed under; None when anything fits."""
        literal = plan.trigger.literal
        if isinstance(literal, Struct) and literal.functor not in (VARIABLE_LITERAL, SPACE_MARK):
            self.indicator = literal.indicator
            if literal.args and is_constant(literal.args[0]):
                self.key = key_of(literal.args[0])
        self.atomic = plan.note("atomic") is not None
        self.breakpoint = plan.note("breakpoint") is not None
        """True when whoever watches wants to hold when it is selected."""
        self.priority = plan.note("priority")
        """What its label says of it; plans that differ in it do not take each other's place on a stack."""
        self.plain = not (self.atomic or self.priority)
        """True when nothing on its label changes how its intention runs."""
        self.code: list[Instruction] = []
        self.context: Formula | None = None
        self.slots: dict[str, int] = {}
        """Places of its variables in an environment."""
        self._size = -1

    @property
    def text(self) -> str:
        """The plan as a program would write it."""
        return plan_text(self.plan)

    def compile(self) -> None:
        """Make it ready to run, if that has not been done."""
        if self._size >= 0:
            return
        scope = Scope()
        literal = self.plan.trigger.literal
        args: tuple[Term, ...] = (literal,)
        if isinstance(literal, Struct) and literal.functor != SPACE_MARK:
            args = literal.args
        self._head = matchers(args, scope)
        annotations = literal.annotations if isinstance(literal, Struct) else ()
        self._notes = annotation_matcher(annotations, scope) if annotations else None
        if self.plan.context != TRUE:
            self.context = compile_formula(self.plan.context, scope)
        self.code = CompiledPlan.compile_body(self.plan.body, scope)
        self.slots = scope.slots
        self._size = scope.size

    def enter(self, literal: Struct, trail: Trail) -> Env | None:
        """The environment of the plan when its trigger, as left side, fits an event's literal."""
        if self._size < 0:
            self.compile()
        env: Env = [UNWRITTEN] * self._size
        args = literal.args if self.indicator is not None else (literal,)
        for place, match in self._head:
            if not match(args[place], env, trail):
                return None
        if self._notes is not None:
            notes = literal.annotations
            if not any(map(is_source, notes)):  # what is not said to come from elsewhere is the agent's own
                notes = (*notes, SELF)
            if not self._notes(notes, env, trail):
                return None
        return env


class _Options:
    """The plans for one trigger, by the key of the first argument."""

    __slots__ = ("all", "by_key", "for_any")

    def __init__(self, plans: Iterable[CompiledPlan]) -> None:
        self.all: list[CompiledPlan] = list(plans)
        self.for_any: list[CompiledPlan] = []
        self.by_key: dict[int | float | str, list[CompiledPlan]] = {}
        for plan in self.all:
            if plan.key is None:
                self.for_any.append(plan)
                for listed in self.by_key.values():
                    listed.append(plan)
            else:
                listed = self.by_key.get(plan.key) or self.by_key.setdefault(plan.key, list(self.for_any))
                listed.append(plan)

    def fitting(self, literal: Struct) -> Sequence[CompiledPlan]:
        """Plans that may fit, in order."""
        if self.by_key:
            key = key_of(literal.args[0])
            if key is not None:
                return self.by_key.get(key, self.for_any)
        return self.all


class PlanLibrary:
    """Plans in the order in which they are tried."""

    def __init__(self, plans: Iterable[CompiledPlan] = ()) -> None:
        self._plans = tuple(plans)
        self._named = {plan.name: plan for plan in self._plans}
        self._index: dict[str, dict[str | None, _Options]] | None = None
        self.meta = any(plan.sign[0] == "^" for plan in self._plans)
        """True when some plan asks what happens to goals."""
        self.given = 0
        """Names given to plans without a label."""
        self.watch: Callable[[CompiledPlan | None, CompiledPlan | None], None] | None = None
        """Told of each plan that is added and each that goes."""

    def copy(self) -> PlanLibrary:
        """A library of its own with the same plans; the index is shared until one of them changes."""
        made = PlanLibrary()
        made._plans, made._named, made.given = self._plans, self._named, self.given
        made.meta = self.meta
        made._index = self._indexed()
        return made

    def __iter__(self) -> Iterator[CompiledPlan]:
        return iter(self._plans)

    def __len__(self) -> int:
        return len(self._plans)

    def get(self, name: str) -> CompiledPlan | None:
        """The plan with this label."""
        return self._named.get(name)

    def add(self, plan: Plan, *, before: bool = False) -> CompiledPlan:
        """Put a plan behind the others, or before them.

        Raises:
            ValueError: another plan has its label.
        """
        made = CompiledPlan(plan, plan.name or self._name())
        if made.name in self._named:
            raise ValueError(f"there is a plan '{made.name}' already")
        self._set((made, *self._plans) if before else (*self._plans, made), made)
        return made

    def replace(self, name: str, plan: Plan) -> CompiledPlan:
        """Put a plan in the place of another.

        Raises:
            KeyError: there is no plan with this name.
            ValueError: a third plan has its label.
        """
        if name not in self._named:
            raise KeyError(f"there is no plan '{name}'")
        made = CompiledPlan(plan, plan.name or name)
        if made.name != name and made.name in self._named:
            raise ValueError(f"there is a plan '{made.name}' already")
        gone = self._named[name]
        self._set(
            tuple(made if compiled_plan is gone else compiled_plan for compiled_plan in self._plans),
            made,
            gone,
        )
        return made

    def remove(self, name: str) -> CompiledPlan:
        """Take a plan away; intentions that carry it out continue.

        Raises:
            KeyError: there is no plan with this name.
        """
        plan = self._named.get(name)
        if plan is None:
            raise KeyError(f"there is no plan '{name}'")
        self._set(
            tuple(compiled_plan for compiled_plan in self._plans if compiled_plan is not plan), None, plan
        )
        return plan

    def load(self, plans: Iterable[Plan]) -> None:
        """Put many plans behind the others at once; a label that is taken is replaced by a given name."""
        made = list(self._plans)
        taken = set(self._named)
        for plan in plans:
            name = plan.name if plan.name and plan.name not in taken else self._name()
            taken.add(name)
            made.append(CompiledPlan(plan, name))
        self._set(tuple(made))

    def restore(self, plans: Iterable[CompiledPlan], given: int) -> None:
        """Hold exactly these plans."""
        self._set(tuple(plans))
        self.given = given

    def _name(self) -> str:
        self.given += 1
        while f"{GIVEN}{self.given}" in self._named:
            self.given += 1
        return f"{GIVEN}{self.given}"

    def _set(
        self,
        plans: tuple[CompiledPlan, ...],
        added: CompiledPlan | None = None,
        removed: CompiledPlan | None = None,
    ) -> None:
        self._plans = plans
        self._named = {plan.name: plan for plan in plans}
        self._index = None
        self.meta = any(plan.sign[0] == "^" for plan in plans)
        if self.watch is not None and (added or removed):
            self.watch(added, removed)

    # ------------------------------------------------------------------ finding

    def candidates(self, sign: str, literal: Struct) -> Sequence[CompiledPlan]:
        """Plans whose trigger may fit, in order."""
        triggers = self._indexed().get(sign)
        if triggers is None:
            return ()
        options = triggers.get(literal.indicator) or triggers.get(None)
        return options.fitting(literal) if options is not None else ()

    def relevant(self, sign: str, literal: Struct) -> list[CompiledPlan]:
        """Plans whose trigger fits an event: `+!` and a goal, for example."""
        plans: list[CompiledPlan] = []
        for plan in self.candidates(sign, literal):
            trail: Trail = []
            if plan.enter(literal, trail) is not None:
                plans.append(plan)
            undo(trail, 0)
        return plans

    def knows(self, sign: str, indicator: str) -> bool:
        """True when some plan may handle such an event."""
        triggers = self._indexed().get(sign)
        return triggers is not None and (indicator in triggers or None in triggers)

    def names(self, sign: str, indicator: str) -> bool:
        """True when some plan's trigger names this goal or belief, where a variable does not count."""
        return indicator in self._indexed().get(sign, ())

    def _indexed(self) -> dict[str, dict[str | None, _Options]]:
        if self._index is None:
            self._index = {
                sign: _by_indicator([plan for plan in self._plans if plan.sign == sign])
                for sign in {plan.sign for plan in self._plans}
            }
        return self._index


def _by_indicator(plans: list[CompiledPlan]) -> dict[str | None, _Options]:
    """Options for each functor, and under None those for every other one."""
    sorted_plans: dict[str | None, list[CompiledPlan]] = {}
    for_any: list[CompiledPlan] = []
    for plan in plans:
        if plan.indicator is None:
            for_any.append(plan)
            for listed in sorted_plans.values():
                listed.append(plan)
        else:
            sorted_plans.setdefault(plan.indicator, list(for_any)).append(plan)
    if for_any:
        sorted_plans[None] = for_any
    return {indicator: _Options(listed) for indicator, listed in sorted_plans.items()}


GIVEN = "p__"
"""Begins the names that are given to plans without a label, which are no labels elsewhere."""


def replace_name(label: Struct) -> Struct | None:
    """A label without its name, None where it has no annotations either."""
    return Struct("", (), label.annotations) if label.annotations else None


class LoadedProgram:
    """A program with its plans and rules compiled and its beliefs in the form in which they are stored."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.plans = PlanLibrary()
        self.plans.load(program.plans)
        self.rules: dict[str, list[Clause]] = {}
        self.knowledge: list[tuple[Struct, tuple[Term, ...]] | Clause] = []
        """Beliefs and rules, in the order of the text."""
        for item in program.knowledge:
            if type(item) is Belief:
                literal = evaluated(item.literal)
                annotations = sourced(without_open_tail(literal.annotations))
                self.knowledge.append((stored_form(literal), annotations))
            elif type(item) is Rule:
                clause = compile_rule(item)
                self.rules.setdefault(clause.indicator, []).append(clause)
                self.knowledge.append(clause)


def evaluated(literal: Struct) -> Struct:
    """A literal of a program with its arithmetic worked out; as it is where that cannot be done."""
    if any(is_computed(part) for arg in literal.args if type(arg) is Struct for part in subterms(arg)):
        try:
            scope = Scope()
            make = builder(literal, scope)
            made = canonical(make(scope.environment()))
        except EvaluationError:
            return literal
        assert isinstance(made, Struct)
        return made
    return literal


def stored_form(literal: Struct) -> Struct:
    """The literal as the belief base keeps it: without annotations, variables in canonical form."""
    plain = literal.with_annotations(()) if literal.annotations else literal
    if is_ground(plain):
        return plain
    made = canonical(plain)
    assert isinstance(made, Struct)
    return made


def as_term(plan: CompiledPlan) -> Term:
    """A plan as a quoted term, with variables of its own."""
    return instantiated(written_term(plan))


def with_source(sign: str, literal: Struct) -> Struct:
    """The literal of a goal as a term, which says of one of the agent's own that it is."""
    if not sign[1:] or any(map(is_source, literal.annotations)):
        return literal
    return literal.with_annotations((*literal.annotations, SELF))


def written_term(plan: CompiledPlan) -> Struct:
    """A plan as a quoted term with the variables that its text names."""
    source = plan.plan
    return plan_term(label_of(plan), source.trigger, source.context, source.body)


def label_of(plan: CompiledPlan, *more: Term) -> Struct:
    """Its name with what its label says, whom it comes from, and more."""
    label = plan.plan.label
    notes = (*(label.annotations if label else ()), *more)
    return Struct(plan.name, (), notes if any(map(is_source, notes)) else (*notes, SELF))


def read_plan(term: Term, origin: str, source: str) -> Plan:
    """A plan from a term or text, with the agent that it comes from as an annotation of its label.

    Raises:
        EvaluationError: it is no plan.
    """
    written = canonical(term)
    if isinstance(written, Struct) and written.functor == QUOTED_PLAN and len(written.args) > 1:
        plan = plan_of(written, origin)
        if plan.label is not None:
            kept = [note for note in plan.label.annotations if note != SELF]
            plan = replace(plan, label=plan.label.with_annotations(kept))
    else:
        text = written.args[0] if isinstance(written, Struct) and written.functor == QUOTED_PLAN else written
        try:
            plan = parse_plan(text if isinstance(text, str) else text_of(text), origin)
        except ProgramError as error:
            problem = f"not a plan: {error.problems[0]}"
            raise EvaluationError(ErrorId.INTERNAL_ACTION_FAILED, problem) from None
    if plan.label is not None and plan.name.startswith(GIVEN):
        plan = replace(plan, label=replace_name(plan.label))
    if source == "self":
        return plan
    label = plan.label or Struct("")
    return replace(
        plan, label=label.with_annotations((*label.annotations, Struct("source", (atom(source),))))
    )
