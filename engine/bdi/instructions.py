"""The steps of compiled bodies: each works on an agent and says whether its intention can continue."""

from __future__ import annotations

from collections.abc import Iterator

from engine.bdi import belief_revision as believing
from engine.bdi import waits as waiting
from engine.bdi.beliefs import TRIES, Answers
from engine.bdi.compiler import Formula, compile_formula
from engine.bdi.errors import ErrorId, EvaluationError, Position, unbound
from engine.bdi.intentions import Event, Frame, Intention, Loop, RunningAgent, Waiting
from engine.bdi.plans import CompiledPlan, Instruction
from engine.bdi.printer import brief_text
from engine.bdi.rewriting import canonical, instantiated, is_ground, resolved, rewrite
from engine.bdi.syntax import Operation, Plan, Step, StepKind, Trigger, TriggerKind, body_of
from engine.bdi.term_compiler import Builder, Scope
from engine.bdi.terms import TRUE, Cell, Cons, Struct, Term, Var, subterms
from engine.bdi.unification import unify
from engine.value import dataclass, field


@dataclass(slots=True, eq=False)
class Literal(Instruction):
    """A step about one literal."""

    make: Builder

    def literal(self, frame: Frame) -> Struct:
        """The literal with the values it has now."""
        made = self.make(frame.env)
        if type(made) is not Struct or not made.functor:
            raise _no_literal(made)
        for term in made.args:
            if (type(term) is Struct or type(term) is Cons) and not term.ground:
                return _settled(made)
        return _settled(made) if made.annotations else made


def _no_literal(term: Term) -> EvaluationError:
    if isinstance(term, Cell | Struct):
        return unbound("a variable that stands for a literal")
    return EvaluationError(ErrorId.EVALUATION_FAILED, f"{brief_text(term)} is not a literal")


def _settled(literal: Struct) -> Struct:
    made = resolved(literal)
    assert isinstance(made, Struct)
    return made


def free_cells(literal: Struct) -> tuple[Cell, ...]:
    """The variables of a literal that have no value."""
    for term in literal.args:
        if type(term) is Cell or ((type(term) is Struct or type(term) is Cons) and not term.ground):
            return tuple(cell for cell in subterms(literal) if isinstance(cell, Cell))
    return ()


class Achieve(Literal):
    """`!goal`."""

    __slots__ = ()

    def execute(self, agent: RunningAgent, intention: Intention, frame: Frame) -> bool:
        literal = self.literal(frame)
        agent.post(Event("+!", literal, intention, free_cells(literal)))
        return False


class Spawn(Literal):
    """`!!goal`: an intention of its own, with copies of the variables."""

    __slots__ = ()

    def execute(self, agent: RunningAgent, intention: Intention, frame: Frame) -> bool:
        agent.achieve(self.literal(frame))
        frame.pc = self.next
        return True


def fresh_copy(literal: Struct) -> Struct:
    """A copy whose variables are its own."""
    if is_ground(literal):
        return literal
    copy = instantiated(canonical(literal))
    assert isinstance(copy, Struct)
    return copy


@dataclass(slots=True, eq=False)
class Test(Literal):
    """`?formula`: the belief base first, then a plan for `+?`."""

    formula: Formula

    def execute(self, agent: RunningAgent, intention: Intention, frame: Frame) -> bool:
        if self.formula.holds(frame.env, agent):
            frame.pc = self.next
            return True
        made = self.make(frame.env)
        if isinstance(made, Struct) and agent.plans.knows("+?", made.indicator):
            literal = _settled(made)
            agent.post(Event("+?", literal, intention, free_cells(literal)))
            return False
        raise EvaluationError(ErrorId.TEST_GOAL_FAILED, f"?{brief_text(made)} has no answer")


@dataclass(slots=True, eq=False)
class Believe(Literal):
    """`+belief`, `-belief`, and what else changes beliefs."""

    def execute(self, agent: RunningAgent, intention: Intention, frame: Frame) -> bool:
        literal, kind = self.literal(frame), self.item.kind if isinstance(self.item, Step) else None
        if kind is StepKind.UPDATE and (gone := believing.replaced(agent, literal)) is not None:
            believing.announce(agent, gone)  # the first belief with this functor goes as an external event
        removes = kind in (StepKind.REMOVE, StepKind.REMOVE_APART)
        change = believing.forget(agent, literal) if removes else believing.believe(agent, literal)
        if kind not in (StepKind.ADD_APART, StepKind.REMOVE_APART):
            return believing.step_changed(agent, change, intention, frame, self)
        if change is not None:
            believing.announce(agent, change)
        frame.pc = self.next
        return True


@dataclass(slots=True, eq=False)
class Constraint(Instruction):
    """A formula that must hold."""

    formula: Formula
    error: ErrorId

    def execute(self, agent: RunningAgent, intention: Intention, frame: Frame) -> bool:
        if not self.formula.holds(frame.env, agent):
            raise EvaluationError(self.error, "the condition does not hold")
        frame.pc = self.next
        return True


@dataclass(slots=True, eq=False)
class Perform(Instruction):
    """A variable or a body in braces: what it stands for is run on the same intention, in its own frame."""

    make: Builder

    def execute(self, agent: RunningAgent, intention: Intention, frame: Frame) -> bool:
        meant = self.make(frame.env)
        if len(intention.frames) >= agent.limits.frames:
            raise EvaluationError(ErrorId.LIMIT_EXCEEDED, f"{len(intention.frames)} bodies lie in each other")
        inner = body_frame(meant, frame, self.item.position)
        if not inner.code:
            frame.pc = self.next
            return True
        intention.push(inner)
        agent.go_on(intention)
        return False


def body_frame(meant: Term, frame: Frame, position: Position) -> Frame:
    """A frame that runs what a term stands for; it shares its variables with the frame around it."""
    if isinstance(meant, Cell) or (isinstance(meant, Struct) and not meant.functor):
        raise unbound("a variable that stands for a step")
    cells: dict[Term, Var] = {}
    written = rewrite(meant, lambda cell: cells.setdefault(cell, Var(f"V{len(cells)}")))
    plan = Plan(
        Trigger(Operation.ADDED, TriggerKind.BELIEF, Struct("body", tuple(cells.values()))),
        body=body_of(written, position),
        source=frame.plan.plan.source,
    )
    compiled = CompiledPlan(plan, f"body of {frame.plan.name}")
    literal = Struct("body", tuple(cells))
    env = compiled.enter(literal, [])
    assert env is not None
    return Frame(compiled, env, Event("+", literal))


class External(Literal):
    """An action of the environment."""

    __slots__ = ()

    def execute(self, agent: RunningAgent, intention: Intention, frame: Frame) -> bool:
        waiting.for_action(agent, self.literal(frame), intention)
        return False


@dataclass(slots=True, eq=False)
class Internal(Instruction):
    """`.name(…)`."""

    name: str
    args: list[Builder]

    def execute(self, agent: RunningAgent, intention: Intention, frame: Frame) -> bool:
        args = tuple([make(frame.env) for make in self.args])
        answer = agent.invoke(self.name, args, [], intention)
        if isinstance(answer, Iterator):
            answer = self._first(answer, agent.query_steps)
        if answer is False:
            raise EvaluationError(ErrorId.INTERNAL_ACTION_FAILED, f"{self.name} failed")
        if intention.pending is not None or not intention.frames or intention.frames[-1] is not frame:
            return False
        if frame.pc == self.at:
            frame.pc = self.next
        return True

    def _first(self, answers: Answers, limit: int) -> bool:
        """Whether there is an answer, looked for so many times at most."""
        for misses, fits in enumerate(answers, 1):
            if fits:
                return True
            if misses * TRIES > limit:
                raise EvaluationError(ErrorId.LIMIT_EXCEEDED, f"{self.name}: no answer within {limit} tries")
        return False


@dataclass(slots=True, eq=False)
class WaitFor(Instruction):
    """`.wait(formula, milliseconds, elapsed)`: pending until it holds; all but the formula may be missing."""

    formula: Formula
    milliseconds: Builder | None
    elapsed: Builder | None

    def execute(self, agent: RunningAgent, intention: Intention, frame: Frame) -> bool:
        if self.formula.holds(frame.env, agent):
            if self.elapsed is not None:
                unify(self.elapsed(frame.env), 0, [])
            frame.pc = self.next
            return True
        limit = None if self.milliseconds is None else self.milliseconds(frame.env)
        elapsed = None if self.elapsed is None else self.elapsed(frame.env)
        waiting.begin(agent, intention, Waiting.CONDITION, self.text, limit=limit, elapsed=elapsed)
        return False


@dataclass(slots=True, eq=False)
class Branch(Instruction):
    """The condition of an `if` or `elif`."""

    condition: Formula
    fresh: list[int]
    """Slots of variables that occur here first and may be read behind the `if`."""
    otherwise: int = field(default=0, init=False)

    def execute(self, agent: RunningAgent, intention: Intention, frame: Frame) -> bool:
        for slot in self.fresh:
            frame.env[slot] = Cell()
        frame.pc = self.next if self.condition.holds(frame.env, agent) else self.otherwise
        return True


@dataclass(slots=True, eq=False)
class While(Instruction):
    """`while`: what a round binds is free again in the next and behind the loop."""

    condition: Formula
    outer: list[int]
    """Slots of variables from outside that occur in the loop."""
    body: int = field(default=0, init=False)

    def execute(self, agent: RunningAgent, intention: Intention, frame: Frame) -> bool:
        loop = self.begin_round(frame)
        if self.another(loop, agent, frame):
            loop.rounds += 1
            frame.pc = self.body
        else:
            frame.loops.pop()
            frame.pc = self.next
        return True

    def begin_round(self, frame: Frame) -> Loop:
        """The loop's record, made when it begins; what the last round bound is freed."""
        if frame.loops and frame.loops[-1].at == self.at:
            loop = frame.loops[-1]
            for cell in loop.cells:
                cell.ref = None
            return loop
        cells = [
            subterm
            for slot in self.outer
            for subterm in subterms(frame.env[slot])
            if isinstance(subterm, Cell)
        ]
        loop = Loop(self.at, None, cells)
        frame.loops.append(loop)
        return loop

    def another(self, loop: Loop, agent: RunningAgent, frame: Frame) -> bool:
        """True when the body runs once more."""
        return self.condition.holds(frame.env, agent)


class For(While):
    """`for`: the body once for each answer, found one at a time."""

    __slots__ = ()

    def another(self, loop: Loop, agent: RunningAgent, frame: Frame) -> bool:
        if loop.answers is None:
            loop.answers = self.condition.answers(frame.env, agent)
        return loop.answers.advance()


EMPTY_TURN: list[Instruction] = [
    Constraint(Step(StepKind.CONSTRAINT, TRUE), compile_formula(TRUE, Scope()), ErrorId.CONSTRAINT_FAILED)
]
"""What an empty plan runs: nothing, in a turn of its own."""
EMPTY_TURN[0].next = 1
