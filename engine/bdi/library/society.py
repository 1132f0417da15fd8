"""Other agents: made, ended, listed; and the end of them all."""

from __future__ import annotations

from engine.bdi.actions import Call, failed
from engine.bdi.library.registry import internal
from engine.bdi.messages import Society
from engine.bdi.terms import atom, list_of


def _society(call: Call) -> Society:
    if call.agent.society is None:
        raise failed(f"{call.name}: the agent runs alone")
    return call.agent.society


@internal(".all_names", 1)
def all_names(call: Call) -> bool:
    """The names of all agents."""
    return call.unify(0, list_of(map(atom, _society(call).names())))


@internal(".create_agent", 2)
def create_agent(call: Call) -> bool:
    """`.create_agent(name, "file.asl")`."""
    try:
        _society(call).create(call.name_of(0), call.text(1))
    except ValueError as error:
        raise failed(f".create_agent: {error}") from None
    return True


@internal(".kill_agent", 1)
def kill_agent(call: Call) -> bool:
    """End an agent; False when there is none with this name."""
    return _society(call).kill(call.name_of(0))


@internal(".stopMAS", 0, 1)
def stop_all(call: Call) -> bool:
    """End all agents behind this cycle."""
    _society(call).stop()
    return True
