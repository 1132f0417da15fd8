"""The crew's stream: events go in, the state is folded at once, and `commit` makes it durable.

Nothing else changes a `CrewState`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Literal

from engine.core import crew as ce
from engine.core.journal import CREW, Event, JournalError, Payload
from engine.core.streams import StateStream
from engine.crew.ontology.context import Answer, HandoffContext, HumanRequest
from engine.crew.ontology.kinds import HandoffState, InvalidError, Priority, RequestState
from engine.crew.ontology.results import HandoffResult
from engine.crew.ontology.spec import AgentSpec
from engine.crew.state import Build, CrewState, Group, Handoff, Holder, Idea, Move, Registered, clarity_of


def apply(state: CrewState, event: Event, payload: Payload) -> None:
    """Bring a state forward by one event; what names nothing that is there changes nothing.

    Raises:
        JournalError: a value in it is none of the ontology's.
    """
    state.version, state.hash = event.version, event.hash
    try:
        _agents(state, event, payload)
        _handoffs(state, event, payload)
        _groups(state, event, payload)
        _requests(state, event, payload)
        _others(state, event, payload)
    except InvalidError as error:
        raise JournalError(f"Event {event.ref} ({event.kind}) does not fit its kind: {error}") from error


def _agents(state: CrewState, event: Event, payload: Payload) -> None:
    match payload:
        case ce.AgentRegistered():
            spec = AgentSpec.loaded(payload.spec)
            state.specs[event.ref] = spec
            old = state.agents.get(spec.id)
            state.agents[spec.id] = replace(
                old or Registered(spec, event.at, event.ref),
                spec=spec,
                at=event.at,
                event=event.ref,
                source=payload.source,
                warnings=payload.warnings,
            )
            state.removed.pop(spec.id, None)
            _known_now(state, spec.id)
        case ce.AgentRemoved():
            gone = state.agents.pop(payload.agent, None)
            again = gone is None or payload.reason.is_a("registry.untrusted")
            state.removed[payload.agent] = "" if again or gone is None else gone.source
        case ce.RemoteAgents():
            state.remote = payload.on
        case ce.AgentEnabled():
            if (entry := state.agents.get(payload.agent)) is not None:
                state.agents[payload.agent] = replace(entry, enabled=payload.enabled)
        case ce.UsageRecorded():
            state.uses[payload.agent, payload.session or payload.handoff] = payload.success
            if (entry := state.agents.get(payload.agent)) is not None:
                good, last = entry.successes + payload.success, payload.handoff or entry.last
                state.agents[payload.agent] = replace(entry, runs=entry.runs + 1, successes=good, last=last)


def _known_now(state: CrewState, agent: str) -> None:
    """Others that were warned of an agent that was not registered are warned no more."""
    warnings = unknown_agents((agent,))
    for name, entry in state.agents.items():
        if warnings[0] in entry.warnings:
            left = tuple(line for line in entry.warnings if line not in warnings)
            state.agents[name] = replace(entry, warnings=left)


def unknown_agents(agents: Iterable[str]) -> tuple[str, ...]:
    """Warnings about agents that a routing names and that are not registered."""
    return tuple(f"routing names {agent}, which is not registered" for agent in agents)


def _handoffs(state: CrewState, event: Event, payload: Payload) -> None:
    match payload:
        case ce.HandoffQueued():
            context = HandoffContext.loaded(payload.context)
            spec = state.specs.get(payload.spec_event)
            if payload.spec is not None:
                spec = AgentSpec.loaded(payload.spec)
            move = Move(payload.seq, "", HandoffState.QUEUED, event.at, "", event.actor, event.ref)
            kept = _kept(state, context, spec)
            given = (context, spec, HandoffState.QUEUED, (move,), context.priority)
            made = Handoff(*given, caller=payload.caller, group=payload.group, progress=kept)
            state.handoffs[payload.handoff] = replace(made, origin=payload.origin)
        case ce.HandoffMoved():
            _moved(state, event, payload, limit_s=payload.limit_s)
        case ce.HandoffEnded():
            _moved(state, event, payload, result=HandoffResult.loaded(payload.result))
        case ce.RunBegun():
            _change(state, payload.handoff, run=payload.run)
            state.by_run[payload.run] = payload.handoff
        case ce.HandoffSent(origin=""):
            _change(state, payload.handoff, remote=True)
        case ce.PriorityChanged():
            _change(state, payload.handoff, priority=Priority(payload.priority))
        case ce.StepModeSet():
            _change(state, payload.handoff, stepping=payload.on)
        case ce.ProgressKept():
            _change(state, payload.handoff, stage=payload.what, progress=payload.progress, note=payload.note)
            handoff = state.handoffs.get(payload.handoff)
            talked = payload.what == "role.turn" and handoff is not None and not handoff.proof
            if talked and (known := clarity_of(payload.progress)) is not None:
                state.clarity = known
        case ce.LateResult():
            if (handoff_found := state.handoffs.get(payload.handoff)) is not None:
                _change(state, payload.handoff, late=handoff_found.late + 1)


def _kept(state: CrewState, context: HandoffContext, spec: AgentSpec | None) -> dict[str, Any]:
    """What a second try continues from: committed phases, answered steps, whole rounds of a debate."""
    before = state.handoffs.get(context.retry_of or "")
    if before is None or spec is None or not (spec.type.keeps_progress or spec.debate):
        return {}
    return {} if before.result is not None and before.result.success else before.progress


def _moved(
    state: CrewState,
    event: Event,
    payload: ce.HandoffMoved | ce.HandoffEnded,
    *,
    limit_s: float = 0.0,
    result: HandoffResult | None = None,
) -> None:
    handoff = state.handoffs.get(payload.handoff)
    if handoff is None:
        return
    target = HandoffState(payload.target)
    move = Move(payload.seq, payload.source, target, event.at, payload.reason, event.actor, event.ref)
    _change(
        state,
        payload.handoff,
        state=target,
        moves=(*handoff.moves, move),
        spent_s=payload.spent_s,
        limit_s=limit_s or handoff.limit_s,
        result=result or handoff.result,
    )


def _change(crew: CrewState, handoff: str, /, **changes: Any) -> None:
    if handoff in crew.handoffs:
        crew.handoffs[handoff] = replace(crew.handoffs[handoff], **changes)


def _groups(state: CrewState, event: Event, payload: Payload) -> None:
    match payload:
        case ce.GroupBegun():
            fields = payload.model_dump(exclude={"group"})
            state.groups[payload.group] = Group(payload.group, at=event.at, **fields)
        case ce.HandoffQueued(group=group) if group in state.groups:
            old = state.groups[group]
            state.groups[group] = replace(old, handoffs=(*old.handoffs, payload.handoff))
        case ce.GroupEnded():
            if (known := state.groups.get(payload.group)) is not None:
                fields = payload.model_dump(exclude={"group"})
                state.groups[payload.group] = replace(known, ended=event.at, **fields)


def _requests(state: CrewState, event: Event, payload: Payload) -> None:
    match payload:
        case ce.HumanOpened():
            request = HumanRequest.loaded(payload.request)
            state.requests[request.id] = request
        case ce.HumanAgain():
            if (known := state.requests.get(payload.request)) is not None:
                state.requests[payload.request] = known.model_copy(update={"times": known.times + 1})
        case ce.HumanClosed():
            if (known := state.requests.get(payload.request)) is not None:
                answer = Answer.loaded(payload.answer) if payload.answer is not None else None
                closed = {"state": RequestState(payload.state), "answer": answer}
                state.requests[payload.request] = known.model_copy(update=closed)
                if answer is not None and not payload.taken:
                    state.unclaimed = (*state.unclaimed, payload.request)
        case ce.HumanTaken():
            state.unclaimed = tuple(name for name in state.unclaimed if name != payload.request)
        case ce.PermissionKept():
            state.permissions[payload.agent, payload.tool] = payload.allow
        case ce.PermissionRevoked():
            state.permissions.pop((payload.agent, payload.tool), None)


def _others(state: CrewState, event: Event, payload: Payload) -> None:
    match payload:
        case ce.FloorChanged():
            state.floor = tuple(Holder(*holder) for holder in payload.holders)
        case ce.OperatorSaid():
            state.said[payload.handoff] = (*state.said.get(payload.handoff, ()), payload.text)
        case ce.OperatorHeard():
            left = state.said.get(payload.handoff, ())[1:]
            state.said = {**state.said, payload.handoff: left}
        case ce.IdeaParked():
            idea = Idea(payload.idea, payload.text, payload.agent, payload.handoff, event.at)
            state.ideas[payload.idea] = idea
        case ce.IdeaSettled():
            if payload.idea in state.ideas:
                how: Literal["taken", "dropped"] = "taken" if payload.state == "taken" else "dropped"
                state.ideas[payload.idea] = replace(state.ideas[payload.idea], state=how, to=payload.to)
        case ce.BuildStaged():
            before = state.builds.get(payload.build)
            phases = before.phases if before is not None else ()
            if payload.phase and payload.state in ("passed", "failed"):
                phases = (*phases, payload.data)
            fields = payload.model_dump(exclude={"build"})
            state.builds[payload.build] = Build(payload.build, at=event.at, phases=phases, **fields)


class EventStream(StateStream[CrewState]):
    """The crew's stream; what is appended becomes durable soon."""

    name = CREW
    empty = CrewState
    apply = staticmethod(apply)

    def append(self, payload: Payload, *, actor: str = "system", causes: tuple[str, ...] = ()) -> Event:
        """Add an event, and begin to make it durable."""
        event = super().append(payload, actor=actor, causes=causes)
        self.log.commit_soon()
        return event
