"""Messages sent, and other agents: made, ended, listed; and the end of them all."""

from __future__ import annotations

from engine.bdi import waits as waiting
from engine.bdi.intentions import Message, Performative, Society, Waiting
from engine.bdi.internal_actions import Call, failed, nearest
from engine.bdi.library.terms import internal
from engine.bdi.messages import for_sending
from engine.bdi.terms import Struct, Term, atom, deref, items_of, list_of

_QUESTIONS = (Performative.ASK_ONE, Performative.ASK_ALL, Performative.ASK_HOW)


@internal(".send", 3, 5)
def send(call: Call) -> bool:
    """`.send(receiver or list, performative, content, answer, milliseconds)`.

    With a fourth argument a question waits for its answer; without one the answer becomes a belief or plan.
    Of anything else the fourth argument is the number of the question that it answers.
    """
    performative = _performative(call, 1)
    listed = items_of(call.args[0])
    receivers = [_name(call, term) for term in (listed if listed is not None else [call.args[0]])]
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
    result = deref(term)
    if isinstance(result, Struct) and not result.args:
        return result.functor
    if isinstance(result, str):
        return result
    raise call.wrong(0, "the name of an agent")


def _known(call: Call, receivers: list[str]) -> None:
    society = call.agent.society
    if society is not None:
        names = set(society.names())
        for receiver in receivers:
            if receiver not in names:
                raise failed(f".send: there is no agent {receiver}{nearest(receiver, names)}")


@internal(".df_register", 1, 2)
def df_register(call: Call) -> bool:
    """Let the directory say that this agent provides a service."""
    _society(call).register(call.agent.name, call.text(0))
    return True


@internal(".df_deregister", 1, 2)
def df_deregister(call: Call) -> bool:
    """Let the directory no longer say so."""
    _society(call).register(call.agent.name, call.text(0), remove=True)
    return True


@internal(".df_search", 2, 3)
def df_search(call: Call) -> bool:
    """The agents that provide a service: `.df_search("cook", L)`."""
    return call.unify(len(call) - 1, list_of(map(atom, _society(call).providers(call.text(0)))))


@internal(".df_subscribe", 1, 2)
def df_subscribe(call: Call) -> bool:
    """Be told `provider(Agent, Service)` of those that provide a service, now and later."""
    _society(call).subscribe(call.agent.name, call.text(0))
    return True


def _society(call: Call) -> Society:
    if call.agent.society is None:
        raise failed(f"{call.name}: the agent runs alone")
    return call.agent.society


# The names of all agents
internal(".all_names", 1)(lambda call: call.unify(0, list_of(map(atom, _society(call).names()))))


@internal(".create_agent", 2)
def create_agent(call: Call) -> bool:
    """`.create_agent(name, "file.asl")`."""
    try:
        _society(call).create(call.name_of(0), call.text(1))
    except ValueError as error:
        raise failed(f".create_agent: {error}") from None
    return True


@internal(".kill_agent", 1, 2)
def kill_agent(call: Call) -> bool:
    """End an agent, at once or some milliseconds later; False when there is none with this name."""
    return _society(call).end(call.name_of(0), float(call.number(1)) if len(call) > 1 else 0)


@internal(".stopMAS", 0, 2)
def stop_all(call: Call) -> bool:
    """End all agents behind this cycle or some milliseconds later; an exit code has no meaning here."""
    return _society(call).end("", float(call.number(0)) if len(call) else 0)
