"""Bodies compiled to flat code: blocks become jumps."""

from __future__ import annotations

from dataclasses import replace

from engine.bdi import instructions as code
from engine.bdi.compiler import FORMULAS_INSIDE, compile_formula, extract_calls
from engine.bdi.errors import ErrorId
from engine.bdi.plans import CompiledPlan, Instruction
from engine.bdi.rewriting import variables
from engine.bdi.syntax import Body, BodyItem, For, If, Step, StepKind, While, is_body, is_internal
from engine.bdi.term_compiler import Scope, builder, is_computed
from engine.bdi.terms import QUOTED_PLAN, VARIABLE_LITERAL, Struct, Term, Var
from engine.value import dataclass


@dataclass(slots=True, eq=False)
class _Label:
    """A place in the code that is not known yet."""

    at: int = -1


def compile_body(body: Body, scope: Scope) -> list[Instruction]:
    """The steps of a body as code; the place behind the last one is its end."""
    compiler = _BodyCompiler(scope)
    end = _Label()
    compiler.block(body, end)
    end.at = len(compiler.code)
    for instruction, label in zip(compiler.code, compiler.following, strict=True):
        instruction.next = label.at
    for branch, otherwise in compiler.branches:
        branch.otherwise = otherwise.at
    for loop, start in compiler.loops:
        loop.body = start.at
    return compiler.code


class _BodyCompiler:
    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.code: list[Instruction] = []
        self.following: list[_Label] = []
        self.branches: list[tuple[code.Branch, _Label]] = []
        self.loops: list[tuple[code.While, _Label]] = []

    def block(self, body: Body, after: _Label) -> _Label:
        """Compile steps that continue at `after`; where they start."""
        if not body:
            return after
        start = _Label(len(self.code))
        for item in body[:-1]:
            following = _Label()
            self.item(item, following)
            following.at = len(self.code)
        self.item(body[-1], after)
        return start

    def item(self, item: BodyItem, after: _Label) -> None:
        """Compile one item."""
        if isinstance(item, Step):
            self.emit(self.step(self.with_draws(item)), after)
        elif isinstance(item, If):
            self.choice(item, after)
        else:
            self.loop(item, after)

    def emit(self, instruction: Instruction, after: _Label) -> None:
        """Put an instruction behind the others."""
        instruction.at = len(self.code)
        self.code.append(instruction)
        self.following.append(after)

    def choice(self, item: If, after: _Label) -> None:
        """Compile `if … elif … else`; what is bound inside is visible behind it."""
        fresh = self.scope.unwritten(*_terms_of(item))
        self.scope.written.update(fresh)
        last = len(item.branches) - 1
        for number, (condition, body) in enumerate(item.branches):
            branch = code.Branch(item, compile_formula(condition, self.scope), fresh)
            fresh = []
            self.emit(branch, after)
            self.following[branch.at] = self.block(body, after)
            more = number < last or item.otherwise
            self.branches.append((branch, _Label(len(self.code)) if more else after))
        self.block(item.otherwise, after)

    def loop(self, item: For | While, after: _Label) -> None:
        """Compile a loop; its variables are written anew in each round and behind it."""
        written = set(self.scope.written)
        inside = {
            self.scope.slot(variable)
            for term in _terms_of(item)
            for variable in variables(term)
            if not variable.anonymous
        }
        outer = sorted(inside & written)
        kind = code.For if isinstance(item, For) else code.While
        loop = kind(item, compile_formula(item.condition, self.scope), outer)
        self.emit(loop, after)
        self.loops.append((loop, self.block(item.body, _Label(loop.at))))
        self.scope.written = written

    def with_draws(self, item: Step) -> Step:
        """The step behind the calls in its terms, which formulas make for themselves."""
        if item.kind is StepKind.CONSTRAINT or not isinstance(item.term, Struct):
            return item
        if item.term.functor in FORMULAS_INSIDE:
            return item
        term, calls = extract_calls(item.term, self.scope)
        for call in calls:
            following = _Label(len(self.code) + 1)
            kind = StepKind.INTERNAL if is_internal(call.functor) else StepKind.CONSTRAINT
            self.emit(self.step(Step(kind, call, item.position)), following)
        if calls and not isinstance(term, Struct) and item.kind is StepKind.INTERNAL:
            return replace(item, term=term, kind=StepKind.CONSTRAINT)  # the value of a function is no formula
        return replace(item, term=term) if calls else item

    def step(self, item: Step) -> Instruction:
        """Compile a plain step."""
        term, scope = item.term, self.scope
        match item.kind:
            case StepKind.TEST:
                return self.test(item)
            case StepKind.CONSTRAINT if is_indirect_step(term):
                return code.Perform(item, builder(term, scope))
            case StepKind.CONSTRAINT:
                return code.Constraint(item, compile_formula(term, scope), ErrorId.CONSTRAINT_FAILED)
            case StepKind.INTERNAL:
                return self.internal(item)
            case StepKind.ACTION if isinstance(term, Struct) and term.indicator == "generate_plan/1":
                return code.Internal(item, ".generate_plan", [builder(arg, scope) for arg in term.args])
        return _LITERALS.get(item.kind, code.Believe)(item, builder(term, scope))

    def test(self, item: Step) -> Instruction:
        """Compile `?formula`, and its literal for a `+?` plan, which sees what was written before it."""
        before = set(self.scope.written)
        formula = compile_formula(item.term, self.scope)
        after, self.scope.written = self.scope.written, before
        make = builder(item.term, self.scope)
        self.scope.written = after
        return code.Test(item, formula, make)

    def internal(self, item: Step) -> Instruction:
        """Compile `.name(…)`."""
        term = item.term
        assert isinstance(term, Struct)
        if term.functor in FORMULAS_INSIDE:
            return code.Constraint(item, compile_formula(term, self.scope), ErrorId.INTERNAL_ACTION_FAILED)
        if term.functor == ".wait" and term.args and _is_formula(term.args[0]):
            formula = compile_formula(term.args[0], self.scope)
            more = [builder(arg, self.scope) for arg in term.args[1:3]]
            return code.WaitFor(item, formula, *more, *[None] * (2 - len(more)))
        return code.Internal(item, term.functor, [builder(arg, self.scope) for arg in term.args])


_LITERALS: dict[StepKind, type[code.Literal]] = {
    StepKind.ACHIEVE: code.Achieve,
    StepKind.SPAWN: code.Spawn,
    StepKind.ACTION: code.External,
}


def is_indirect_step(term: Term) -> bool:
    """True for a step that is what a variable stands for, or a body in braces."""
    return isinstance(term, Var) or (
        isinstance(term, Struct) and (term.functor == VARIABLE_LITERAL or is_body(term))
    )


def _is_formula(term: Term) -> bool:
    return isinstance(term, Struct) and term.functor != QUOTED_PLAN and not is_computed(term)


def _terms_of(item: BodyItem) -> list[Term]:
    """Every term of an item and of the blocks inside, in the order of the text."""
    if isinstance(item, Step):
        return [item.term]
    if isinstance(item, If):
        inside = [term for condition, body in item.branches for term in (condition, *_terms_in(body))]
        return inside + _terms_in(item.otherwise)
    return [item.condition, *_terms_in(item.body)]


def _terms_in(body: Body) -> list[Term]:
    return [term for item in body for term in _terms_of(item)]


CompiledPlan.compile_body = staticmethod(compile_body)
