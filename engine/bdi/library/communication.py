"""Messages sent (spec §1.9)."""

from __future__ import annotations

from engine.bdi import waiting
from engine.bdi.actions import Call, failed, nearest
from engine.bdi.intentions import Waiting
from engine.bdi.library.registry import internal
from engine.bdi.messages import Message, Performative, for_sending
from engine.bdi.terms import Struct, Term, deref, items_of

_QUESTIONS = (Performative.ASK_ONE, Performative.ASK_ALL, Performative.ASK_HOW)


@internal(".send", 3, 5)
def send(call: Call) -> bool:
    """`.send(receiver or list, performative, content, answer, milliseconds)`.

    With a fourth argument a question waits for its answer; without one the answer becomes a belief or plan.
    Of anything else the fourth argument is the number of the question that it answers.
    """
    performative = _performative(call, 1)
    listed = items_of(call.args[0])
    receivers = [_name(call, one) for one in (listed if listed is not None else [call.args[0]])]
    question = len(call) > 3 and performative in _QUESTIONS
    if (question and len(receivers) != 1) or (len(call) == 5 and not question):
        raise failed(".send: only a question to one agent has an answer")
    answers = call.integer(3) if len(call) == 4 and not question else 0
    _known(call, receivers)
    number = call.agent.number()
    if question:
        limit = call.number(4) if len(call) == 5 else None
        number = waiting.begin(
            call.agent, call.step(), Waiting.ANSWER, call.args[3], limit=limit, reason=receivers[0]
        ).number
    for receiver in receivers:
        content = for_sending(call.args[2])
        call.agent.send(Message(call.agent.name, receiver, performative, content, number, answers))
    return True


@internal(".broadcast", 2)
def broadcast(call: Call) -> bool:
    """Send to every other agent."""
    performative = _performative(call, 0)
    society = call.agent.society
    if society is None:
        raise failed(".broadcast: the agent runs alone")
    for receiver in sorted(society.names()):
        if receiver != call.agent.name:
            content = for_sending(call.args[1])
            call.agent.send(Message(call.agent.name, receiver, performative, content, call.agent.number()))
    return True


def _performative(call: Call, place: int) -> Performative:
    name = call.name_of(place)
    try:
        return Performative(name)
    except ValueError:
        raise failed(f"{call.name}: there is no performative {name}{nearest(name, Performative)}") from None


def _name(call: Call, term: Term) -> str:
    found = deref(term)
    if isinstance(found, Struct) and not found.args:
        return found.functor
    if isinstance(found, str):
        return found
    raise call.wrong(0, "the name of an agent")


def _known(call: Call, receivers: list[str]) -> None:
    society = call.agent.society
    if society is not None:
        names = set(society.names())
        for one in receivers:
            if one not in names:
                raise failed(f".send: there is no agent {one}{nearest(one, names)}")
