"""Changes of an agent's beliefs and the events they raise."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from engine.bdi import trace as record
from engine.bdi import waits as waiting
from engine.bdi.beliefs import SELF_ONLY, Clause, Fact, Predicate, sourced
from engine.bdi.compiler import compile_rule
from engine.bdi.errors import ErrorId, EvaluationError
from engine.bdi.intentions import Event, Frame, Intention, RunningAgent
from engine.bdi.plans import Instruction, LoadedProgram, stored_form
from engine.bdi.printer import brief_text, shown_text
from engine.bdi.rewriting import canonical, is_ground, nests_within, resolved
from engine.bdi.semantics import EventPolicy
from engine.bdi.syntax import NESTING_LIMIT, Rule
from engine.bdi.terms import PERCEPT, QUOTED_PLAN, SELF, Struct, Term, annotation_set, without_open_tail
from engine.bdi.unification import Trail, annotations_within, undo, unify


class BeliefChange(NamedTuple):
    """A belief that was added to or removed, with the annotations that came or went."""

    sign: str
    """`+` or `-`."""
    plain: Struct
    annotations: tuple[Term, ...]

    @property
    def literal(self) -> Struct:
        """The belief as an event shows it."""
        return self.plain.with_annotations(self.annotations)


_ONE_PER_CYCLE = EventPolicy.ONE_PER_CYCLE


def begin(agent: RunningAgent, loaded: LoadedProgram) -> None:
    """Adopt what a program knows, of which queries ask the first first: as in Jason it is added last."""
    if agent.rules is not loaded.rules:
        for name, clauses in loaded.rules.items():
            _hold(agent, name, clauses)
    added = []
    for item in reversed(loaded.knowledge) if agent.beliefs.newest_first else loaded.knowledge:
        if isinstance(item, Clause):
            item.place = agent.beliefs.places
        elif new := agent.beliefs.add(*item):
            added.append(BeliefChange("+", item[0], new))
    for change in added:
        announce(agent, change)


def believe(agent: RunningAgent, literal: Struct) -> BeliefChange | None:
    """Add a belief, from the agent itself where it names no source; None when nothing changed.

    Raises:
        EvaluationError: the belief base is full.
    """
    if literal.functor == QUOTED_PLAN:
        change_rules(agent, literal)
        return None
    plain = stored_form(literal)
    new = agent.beliefs.add(plain, sourced(without_open_tail(literal.annotations)))
    return BeliefChange("+", plain, new) if new else None


def forget(agent: RunningAgent, literal: Struct) -> BeliefChange | None:
    """Remove the first belief that fits, or only the sources that are named; None when there is none.

    Without a source the agent's own copy is meant. Variables of the literal are bound.
    """
    plain = literal.with_annotations(()) if literal.annotations else literal
    if plain.functor == QUOTED_PLAN:
        change_rules(agent, plain, removed=True)
        return None
    return _forget(agent, literal, lambda fact, trail: unify(plain, fact.pattern, trail))


def change_rules(agent: RunningAgent, term: Struct, *, removed: bool = False) -> None:
    """Hold a rule, `{ head :- body }`, before the others, or no longer.

    Raises:
        EvaluationError: it is no rule, or there are too many.
    """
    clause = rule_of(term)
    clause.place = agent.beliefs.places
    _hold(agent, clause.indicator, [] if removed else [clause], clause.term)


def rule_of(term: Struct) -> Clause:
    """The rule that a quoted one says; raises EvaluationError where it is none."""
    made = canonical(term.with_annotations(()))
    if not nests_within(made, NESTING_LIMIT):
        raise EvaluationError(ErrorId.LIMIT_EXCEEDED, f"a rule nests deeper than {NESTING_LIMIT} levels")
    match made:
        case Struct(args=(":-", Struct() as head, body)):
            return compile_rule(Rule(head, body))
    raise EvaluationError(ErrorId.EVALUATION_FAILED, f"{brief_text(term)} is no belief and no rule")


def _hold(agent: RunningAgent, name: str, new: list[Clause], without: Struct | None = None) -> None:
    """Hold rules before those of their name, and no longer the one that is left out."""
    old = [clause for clause in agent.rules.get(name, ()) if clause.term != without]
    if len(old) + len(new) > agent.limits.frames:
        raise EvaluationError(ErrorId.LIMIT_EXCEEDED, f"there are {len(old)} rules for {name}")
    agent.rules = {**agent.rules, name: new + old}


def replaced(agent: RunningAgent, literal: Struct) -> BeliefChange | None:
    """Remove the first belief with this functor and number of arguments, for `-+`."""
    return _forget(agent, literal, None)


def _forget(
    agent: RunningAgent, literal: Struct, fits: Callable[[Fact, Trail], bool] | None
) -> BeliefChange | None:
    predicate = agent.beliefs.predicates.get(literal.indicator)
    if predicate is None:
        return None
    pair = sourced(literal.annotations)
    trail: Trail = []
    first = literal.args[0] if fits is not None and literal.args else None
    for fact in _among(agent, predicate, literal, first):
        if (fits is None or fits(fact, trail)) and (
            SELF in fact.annotations
            if pair is SELF_ONLY
            else annotations_within(pair, fact.annotations, trail)
        ):
            gone = pair if pair is SELF_ONLY else annotation_set([resolved(term) for term in pair])
            agent.beliefs.remove(fact, gone)
            return BeliefChange("-", fact.plain, gone)
        undo(trail, 0)
    return None


def _among(agent: RunningAgent, predicate: Predicate, literal: Struct, first: Term | None) -> Iterable[Fact]:
    if first is not None and not predicate.open and is_ground(literal):
        fact = predicate.by_args.get(literal.args)
        return () if fact is None else (fact,)
    return predicate.candidates(first).facts(newest_first=agent.beliefs.newest_first)


def announce(agent: RunningAgent, change: BeliefChange) -> None:
    """Raise the external event of a change, if it may matter to a plan."""
    notify_change(agent, change)
    relevant = agent.plans.knows(change.sign, change.plain.indicator)
    if relevant or agent.semantics.event_policy is _ONE_PER_CYCLE:
        agent.post(Event(change.sign, change.literal))


def notify_change(agent: RunningAgent, change: BeliefChange) -> None:
    """Trace a change, and let those who wait for it know."""
    agent.belief_version += 1
    if agent.tracer is not None:
        kind = record.BeliefAdded if change.sign == "+" else record.BeliefRemoved
        agent.trace(kind, shown_text(change.literal))
    if agent.watchers:
        waiting.happened(agent, change.sign, change.literal)


def step_changed(
    agent: RunningAgent, change: BeliefChange | None, intention: Intention, frame: Frame, step: Instruction
) -> bool:
    """After a body step: False when its intention waits for the event to be handled."""
    if change is not None:
        if agent.semantics.same_focus and agent.plans.knows(change.sign, change.plain.indicator):
            notify_change(agent, change)
            agent.post(Event(change.sign, change.literal, intention))
            return False
        announce(agent, change)
    frame.pc = step.next
    return True


def perceive(agent: RunningAgent, percepts: tuple[Struct, ...]) -> bool:
    """Make the beliefs from percepts these, removals first; False when they were these already.

    What finds no room among too many beliefs or events is left out.
    """
    try:
        return _perceive(agent, percepts)
    except EvaluationError as error:
        agent.trace(record.EventDropped, "percepts", str(error))
        return True


def _perceive(agent: RunningAgent, percepts: tuple[Struct, ...]) -> bool:
    seen = dict.fromkeys(map(stored_form, percepts))
    gone = agent.beliefs.unseen(seen)
    for fact in gone:
        agent.beliefs.remove(fact, (PERCEPT,))
    for fact in gone[-1:] if agent.semantics.last_removal_only else gone:
        announce(agent, BeliefChange("-", fact.plain, (PERCEPT,)))
    new = [plain for plain in seen if plain not in agent.beliefs.percepts]
    for plain in new:
        if agent.beliefs.add(plain, (PERCEPT,)):
            announce(agent, BeliefChange("+", plain, (PERCEPT,)))
    return bool(gone or new)
