"""Messages between agents and what they do to the receiver."""

from __future__ import annotations

from collections.abc import Callable

from engine.bdi import belief_revision as believing
from engine.bdi import control
from engine.bdi import goal_states as failures
from engine.bdi import trace as record
from engine.bdi import waits as waiting
from engine.bdi.beliefs import with_origin
from engine.bdi.compiler import compile_formula
from engine.bdi.errors import ErrorId, EvaluationError
from engine.bdi.instructions import free_cells, fresh_copy
from engine.bdi.intentions import Event, Intention, Message, Pending, Performative, RunningAgent, Waiting
from engine.bdi.plans import CompiledPlan, as_term, read_plan
from engine.bdi.printer import brief_text, shown_text
from engine.bdi.rewriting import canonical, instantiated, resolved
from engine.bdi.term_compiler import Scope
from engine.bdi.terms import (
    ANNOTATION_TAIL,
    FALSE,
    QUOTED_PLAN,
    SELF,
    Cell,
    Collection,
    Struct,
    Term,
    Var,
    atom,
    deref,
    is_tail,
    items_of,
    list_of,
    subterms,
)
from engine.bdi.unification import unify


def handle(agent: RunningAgent, message: Message) -> None:
    """Do what a message says, or leave it to the agent's own plans for `+!kqml_received`.

    An answer that somebody waits for goes to the waiting intention. What cannot be done is traced and
    dropped: a sender must not be able to stop the receiver.
    """
    if agent.tracer is not None:
        agent.trace(record.MessageReceived, message.sender, message.performative, shown_text(message.content))
    if message.answers:
        asker = agent.pending.get(message.answers)
        pending = asker.pending if asker is not None else None
        if asker and pending and pending.kind is Waiting.ANSWER and pending.reason == message.sender:
            _answered(agent, asker, pending, message)
            return
        if deref(message.content) == FALSE:
            return
    own = agent.plans.names("+!", RECEIVED)
    _perform(agent, message, _received if own else _EFFECTS[message.performative])


RECEIVED = "kqml_received/4"
"""Sender, performative, content and number of a message, as a goal that a program's own plans may handle."""

_Effect = Callable[["RunningAgent", "Message"], None]


def _received(agent: RunningAgent, message: Message) -> None:
    sender, performative = atom(message.sender), atom(message.performative)
    content = instantiated(message.content)
    agent.achieve(Struct("kqml_received", (sender, performative, content, message.number)))


def by_default(agent: RunningAgent, event: Event) -> bool:
    """Do what a message says that no plan of the agent's own takes; False when the event is no message.

    Jason has plans for this behind those of the program.
    """
    if event.literal.indicator != RECEIVED or event.sign != "+!" or event.intention is not None:
        return False
    match [resolved(term) for term in event.literal.args]:
        case [Struct(functor=sender), Struct(functor=kind), content, int(number)] if kind in _KINDS:
            message = Message(sender, agent.name, Performative(kind), canonical(content), number)
            _perform(agent, message, _EFFECTS[message.performative])
            return True
    return False


_KINDS = frozenset(Performative)


def _perform(agent: RunningAgent, message: Message, effect: _Effect) -> None:
    try:
        effect(agent, message)
    except EvaluationError as error:
        if agent.tracer is not None:
            agent.trace(record.EventDropped, f"message from {message.sender}", str(error))


def _answered(agent: RunningAgent, asker: Intention, pending: Pending, message: Message) -> None:
    waiting.over(agent, asker)
    answer = message.content
    if answer != FALSE and message.performative in (Performative.TELL, Performative.TELL_HOW):
        listed = items_of(answer)
        told = [_from(agent, message, term) for term in (listed if listed is not None else [answer])]
        answer = list_of(told) if listed is not None else told[0]
    if unify(pending.what, instantiated(answer), []):
        agent.step_done(asker)
    else:
        why = f"the answer of {message.sender} is {brief_text(message.content)}"
        failures.fail_step(agent, asker, EvaluationError(ErrorId.ASK_FAILED, why))


def _from(agent: RunningAgent, message: Message, term: Term) -> Term:
    """A literal or plan of a message with who sent it as its source; anything else as it is."""
    sender = "self" if message.sender == agent.name else message.sender
    match term:
        case Struct(functor="{}", args=("@", Struct() as label, *parts)):
            told = label.with_annotations([note for note in label.annotations if note != SELF])
            return term.with_args(("@", with_origin(told, sender), *parts))
    return with_origin(term, sender) if isinstance(term, Struct) else term


def for_sending(content: Term) -> Term:
    """Content as it leaves an agent: values filled in, `source(self)` left out."""
    made = canonical(resolved(content))
    if any(isinstance(part, Collection) for part in subterms(made)):
        why = "a set, map or queue stays with its agent; send what .set.to_list and the like make of it"
        raise EvaluationError(ErrorId.INTERNAL_ACTION_FAILED, why)
    if isinstance(made, Struct) and SELF in made.annotations:
        return made.with_annotations([term for term in made.annotations if term != SELF])
    return made


def reply(
    agent: RunningAgent, question: Message, content: Term, performative: Performative = Performative.TELL
) -> None:
    """Send an answer."""
    answer = for_sending(content)
    number = agent.number()
    agent.send(Message(agent.name, question.sender, performative, answer, number, question.number))


# ------------------------------------------------------------------ what each kind does


def _literals(agent: RunningAgent, message: Message) -> list[Struct]:
    """The literals of a message, with its sender as their source."""
    listed = items_of(message.content)
    terms = [message.content] if listed is None else listed
    return [told for term in terms if isinstance(told := _from(agent, message, term), Struct)]


def _tell(agent: RunningAgent, message: Message) -> None:
    for literal in _literals(agent, message):
        change = believing.believe(agent, literal)
        if change is not None:
            believing.announce(agent, change)


def _signal(agent: RunningAgent, message: Message) -> None:
    """The event of a new belief, with nothing believed."""
    for literal in _literals(agent, message):
        agent.post(Event("+", literal, None, free_cells(literal)))


def _untell(agent: RunningAgent, message: Message) -> None:
    for literal in _literals(agent, message):
        pattern = instantiated(literal)
        assert isinstance(pattern, Struct)
        change = believing.forget(agent, pattern)
        if change is not None:
            believing.announce(agent, change)


def _achieve(agent: RunningAgent, message: Message) -> None:
    for literal in _literals(agent, message):
        agent.achieve(literal)


def _unachieve(agent: RunningAgent, message: Message) -> None:
    listed = items_of(message.content)
    for literal in [message.content] if listed is None else listed:
        if isinstance(literal, Struct):
            control.drop_goal(agent, fresh_copy(literal), events=True)


def _ask_one(agent: RunningAgent, message: Message) -> None:
    question = instantiated(message.content)
    terms = _answers(agent, question, limit=1)
    if terms:
        reply(agent, message, terms[0])
    elif isinstance(question, Struct) and agent.plans.knows("+?", question.indicator):
        intention = waiting.new_intention(agent)
        intention.question = message
        intention.asked = question
        asked = with_origin(question, message.sender)
        agent.post(Event("+?", asked, intention, free_cells(question)))
    else:
        reply(agent, message, FALSE)


def _ask_all(agent: RunningAgent, message: Message) -> None:
    terms = _answers(agent, instantiated(message.content), limit=agent.limits.size)
    reply(agent, message, list_of(terms))


def _answers(agent: RunningAgent, question: Term, limit: int) -> list[Term]:
    """Copies of the question for what is believed, with the annotations that it does not name.

    Facts come before rules; that a belief is the agent's own is not said.
    """
    rest = Cell()
    asked = question
    if isinstance(question, Struct) and not any(map(is_tail, question.annotations)):
        asked = question.with_annotations((*question.annotations, Struct(ANNOTATION_TAIL, (rest,))))
    scope = Scope()
    literal = Var("Question")
    slot = scope.slot(literal)
    scope.written.add(slot)
    formula = compile_formula(literal, scope)
    env = scope.environment()
    env[slot] = asked
    query = formula.answers(env, agent)
    terms: list[Term] = []
    while len(terms) < limit and query.advance():
        answer = resolved(question)
        if isinstance(answer, Struct) and asked is not question:
            answer = answer.with_annotations([note for note in items_of(rest) or () if note != SELF])
        terms.append(resolved(answer))
    return terms


def _tell_how(agent: RunningAgent, message: Message) -> None:
    listed = items_of(message.content)
    for term in [message.content] if listed is None else listed:
        try:
            agent.plans.add(read_plan(term, message.sender, message.sender))
        except ValueError:
            continue  # it has the plan already


def _untell_how(agent: RunningAgent, message: Message) -> None:
    """Only a plan that this sender has told; nobody takes away what is not his."""
    name = message.content.functor if isinstance(message.content, Struct) else str(message.content)
    plan = agent.plans.get(name.removeprefix("@"))
    source = plan.plan.note("source") if plan is not None else None
    if plan is not None and source is not None and source.args == (atom(message.sender),):
        agent.plans.remove(plan.name)


def _tell_rule(agent: RunningAgent, message: Message) -> None:
    """Jason leaves this to a plan of the receiver's own; without one here the rules are taken over."""
    listed = items_of(message.content)
    for term in [message.content] if listed is None else listed:
        if isinstance(term, Struct) and term.functor == QUOTED_PLAN:
            believing.change_rules(agent, term, removed=message.performative is Performative.UNTELL_RULE)


def _ask_how(agent: RunningAgent, message: Message) -> None:
    content = message.content
    plans: list[CompiledPlan] = []
    if isinstance(content, Struct) and content.functor == QUOTED_PLAN and len(content.args) == 2:
        sign, literal = content.args
        if isinstance(sign, str) and isinstance(literal := instantiated(literal), Struct):
            plans = agent.plans.relevant(sign, literal)
    reply(agent, message, list_of(map(as_term, plans)), Performative.TELL_HOW)


_EFFECTS: dict[Performative, _Effect] = {
    Performative.TELL: _tell,
    Performative.UNTELL: _untell,
    Performative.ACHIEVE: _achieve,
    Performative.UNACHIEVE: _unachieve,
    Performative.ASK_ONE: _ask_one,
    Performative.ASK_ALL: _ask_all,
    Performative.TELL_HOW: _tell_how,
    Performative.UNTELL_HOW: _untell_how,
    Performative.ASK_HOW: _ask_how,
    Performative.SIGNAL: _signal,
    Performative.TELL_RULE: _tell_rule,
    Performative.UNTELL_RULE: _tell_rule,
}
