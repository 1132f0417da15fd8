"""What the events of a stream bring to a reasoner, each kind by a function of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from engine.bdi import control
from engine.bdi.beliefs import is_source
from engine.bdi.believing import BeliefChange, announce, believe
from engine.bdi.messages import Message, Performative
from engine.bdi.parser import parse_literal, parse_term
from engine.bdi.problems import ErrorId, EvaluationError, ProgramError
from engine.bdi.terms import Struct, atom, canonical
from engine.domain.reasoning import REQUEST, MindBreakpoint
from engine.journal import events as ev
from engine.reasoner.actions import answered, plain, term_of

if TYPE_CHECKING:
    from engine.reasoner.reasoner import Reasoner

OPERATOR = Struct("source", (atom("operator"),))


def _goal_adopted(mind: Reasoner, said: ev.GoalAdopted) -> None:
    sign, literal = read_goal(said.text)
    # Where too many events wait the goal is not pursued, and so ends with the next look at it.
    with suppress(EvaluationError):
        mind.agent.achieve(literal, sign=sign, tag=said.goal)


def _goal_ended(mind: Reasoner, said: ev.GoalEnded) -> None:
    for intention in list(mind.agent.intentions.values()):
        if intention.tag == said.goal:
            mind.agent.drop(intention.id, said.reason or "its goal was given up")
    for event in [one for one in mind.agent.events if one.tag == said.goal]:
        mind.agent.events.remove(event)


def _told(mind: Reasoner, said: ev.BeliefTold) -> None:
    literal = parse_literal(said.literal)
    if said.removed:
        fact = mind.agent.beliefs.find(plain(literal))
        if fact is not None:
            mind.agent.beliefs.drop(fact)
            _announce(mind, BeliefChange("-", fact.plain, fact.annotations))
        return
    if not any(map(is_source, literal.annotations)):
        literal = literal.with_annotations((*literal.annotations, OPERATOR))
    with suppress(EvaluationError):
        change = believe(mind.agent, literal)
        if change is not None:
            _announce(mind, change)


def _announce(mind: Reasoner, change: BeliefChange) -> None:
    """Raise the event of a change that came from outside; too many that wait leave it out."""
    with suppress(EvaluationError):
        announce(mind.agent, change)


def _perceived(mind: Reasoner, said: ev.WorldPerceived) -> None:
    mind.facts |= said.facts
    if said.world is not None:
        mind.world = percepts_of(said.world)
    _look(mind)


def _learned(mind: Reasoner, said: ev.BeliefAdded) -> None:
    mind.facts[said.key] = said.value
    _look(mind)


def _unlearned(mind: Reasoner, said: ev.BeliefRemoved) -> None:
    mind.facts[said.key] = None
    _look(mind)


def _look(mind: Reasoner) -> None:
    mind.agent.perceive((*mind.world, *facts_of(mind.facts)))


def _requested(mind: Reasoner, said: ev.ActionRequested) -> None:
    if said.step.startswith(REQUEST):
        mind.requests[said.action] = int(said.step[len(REQUEST) :])


def _started(mind: Reasoner, said: ev.ActionStarted) -> None:
    if mind.strides.by_step and said.action in mind.requests:
        mind.strides.taken = 0


def _finished(mind: Reasoner, said: ev.ActionFinished) -> None:
    number = mind.requests.pop(said.action, None)
    if said.world is not None:
        mind.world = percepts_of(said.world)
        _look(mind)
    intention = mind.agent.pending.get(number) if number is not None else None
    if number is None or intention is None or intention.pending is None:
        return
    action = canonical(intention.pending.what)
    assert isinstance(action, Struct)
    reason = "" if said.code is None else str(said.result.get("message") or said.summary or said.code)
    mind.agent.feedback(number, said.code is None, reason, answered(action, said.result))


def _unknown(mind: Reasoner, said: ev.ActionOutcomeUnknown) -> None:
    number = mind.requests.pop(said.action, None)
    if number is not None:
        mind.agent.feedback(number, False, "the program ended while it ran; its outcome is unknown")


def _put_back(mind: Reasoner, said: ev.ActionCancelled | ev.ActionWithdrawn) -> None:
    mind.requests.pop(said.action, None)


def _heard(mind: Reasoner, said: ev.MessageHeard) -> None:
    try:
        content = parse_term(said.content)
    except ProgramError:
        return
    kind = Performative(said.performative)
    mind.agent.receive(Message(said.sender, mind.agent.name, kind, content, said.number, said.answers))


def _steered(mind: Reasoner, said: ev.IntentionSteered) -> None:
    if said.intention not in mind.agent.intentions:
        return
    match said.how:
        case "suspend":
            mind.agent.suspend(said.intention, said.reason)
        case "resume":
            # Not `agent.resume`, which takes it that a plan was made for an intention that waits for one.
            control.resume(mind.agent, mind.agent.intentions[said.intention])
        case "drop":
            mind.agent.drop(said.intention, said.reason)
        case "fail":
            mind.agent.fail(said.intention, ErrorId.INTERNAL_ACTION_FAILED, said.reason)


def _traced(mind: Reasoner, said: ev.TracingSet) -> None:
    mind.tracing = said.on


def _generation_begun(mind: Reasoner, said: ev.GenerationBegun) -> None:
    mind.making.begin(said)


def _generation_settled(mind: Reasoner, said: ev.GenerationSettled) -> None:
    mind.making.settle(said, mind.at)


def _break_changed(mind: Reasoner, said: ev.MindBreakpointChanged) -> None:
    one = MindBreakpoint(said.breakpoint, said.on, said.pattern, said.enabled)
    mind.watch.change(one, cleared=said.cleared)


def _granted(mind: Reasoner, said: ev.StepGranted) -> None:
    mind.strides.taken = 0


def read_goal(text: str) -> tuple[str, Struct]:
    """Sign and literal of a goal as an operator writes it: `reach(home)`, `!reach(home)`, `?where(X)`.

    Raises:
        ProgramError: it is none; the message names the place.
    """
    written = text.strip().removesuffix(".")
    sign = "+?" if written.startswith(("?", "+?")) else "+!"
    return sign, parse_literal(written.lstrip("+").lstrip("!?"), "the goal")


def percepts_of(world: Mapping[str, Any]) -> tuple[Struct, ...]:
    """What is perceived in a world."""
    return tuple(parse_literal(str(one)) for one in world.get("percepts", ()))


def facts_of(facts: Mapping[str, Any]) -> tuple[Struct, ...]:
    """Facts about the workspace as percepts: `workspace.entries` becomes a `workspace_entries(Item)` each."""
    found: list[Struct] = []
    for key, value in facts.items():
        if value is None:
            continue
        functor = "".join(one if one.isalnum() else "_" for one in key).lower()
        if functor[:1].isalpha():
            items = value if isinstance(value, list) else [value]
            found += [Struct(functor, (term_of(item),)) for item in items]
    return tuple(found)


INPUTS: dict[type[ev.Payload], Callable[[Reasoner, Any], None]] = {
    ev.BeliefAdded: _learned,
    ev.BeliefRemoved: _unlearned,
    ev.GoalAdopted: _goal_adopted,
    ev.GoalEnded: _goal_ended,
    ev.BeliefTold: _told,
    ev.WorldPerceived: _perceived,
    ev.ActionRequested: _requested,
    ev.ActionStarted: _started,
    ev.ActionFinished: _finished,
    ev.ActionOutcomeUnknown: _unknown,
    ev.ActionCancelled: _put_back,
    ev.ActionWithdrawn: _put_back,
    ev.MessageHeard: _heard,
    ev.IntentionSteered: _steered,
    ev.StepGranted: _granted,
    ev.TracingSet: _traced,
    ev.MindBreakpointChanged: _break_changed,
    ev.GenerationBegun: _generation_begun,
    ev.GenerationSettled: _generation_settled,
}
