"""The fold of the crew's stream: the only place that changes a `CrewState`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Literal, TypeVar

from engine.agents.context import HandoffContext
from engine.agents.human import Answer, HumanRequest
from engine.agents.kinds import HandoffState, Priority, RequestState
from engine.agents.result import HandoffResult
from engine.agents.spec import AgentSpec
from engine.agents.values import InvalidError, Value
from engine.crew.contexts import clarity_of
from engine.crew.state import Build, CrewState, Group, Handoff, Holder, Idea, Move, Registered, Server
from engine.journal import crew_events as ce
from engine.journal.errors import JournalError
from engine.journal.event import Event
from engine.journal.events import payload_of
from engine.journal.payload import Payload

V = TypeVar("V", bound=Value)
WARNINGS = 100
"""Warnings that a state keeps."""


def fold(events: Iterable[Event], state: CrewState | None = None) -> CrewState:
    """The state after some events of the stream, from one before them.

    Raises:
        JournalError: an event is of no known kind or does not fit it.
    """
    state = state if state is not None else CrewState()
    for event in events:
        apply(state, event, payload_of(event))
    return state


def apply(state: CrewState, event: Event, said: Payload) -> None:
    """Bring a state forward by one event; what names nothing that is there changes nothing.

    Raises:
        JournalError: a value in it is none of the ontology's.
    """
    state.version, state.hash = event.version, event.hash
    try:
        _agents(state, event, said)
        _handoffs(state, event, said)
        _groups(state, event, said)
        _requests(state, event, said)
        _others(state, event, said)
    except InvalidError as error:
        raise JournalError(f"Event {event.ref} ({event.kind}) does not fit its kind: {error}") from error


def _loaded(state: CrewState, kind: type[V], stored: Mapping[str, Any]) -> V:
    value, warnings = kind.loaded(stored)
    if warnings:
        state.warnings = tuple(dict.fromkeys((*state.warnings, *warnings)))[-WARNINGS:]
    return value


def _agents(state: CrewState, event: Event, said: Payload) -> None:
    match said:
        case ce.AgentRegistered():
            spec = _loaded(state, AgentSpec, said.spec)
            state.specs[event.ref] = spec
            old = state.agents.get(spec.id)
            versions = (*old.versions, spec.version) if old is not None else (spec.version,)
            state.agents[spec.id] = replace(
                old or Registered(spec, event.at, event.ref),
                spec=spec,
                at=event.at,
                event=event.ref,
                source=said.source,
                warnings=said.warnings,
                versions=tuple(dict.fromkeys(versions)),
            )
            state.removed.pop(spec.id, None)
            _known_now(state, spec.id)
        case ce.AgentRemoved():
            gone = state.agents.pop(said.agent, None)
            state.removed[said.agent] = gone.source if gone is not None else ""
        case ce.AgentEnabled():
            if (found := state.agents.get(said.agent)) is not None:
                state.agents[said.agent] = replace(found, enabled=said.enabled)
        case ce.UsageRecorded():
            if (found := state.agents.get(said.agent)) is not None:
                state.agents[said.agent] = replace(
                    found,
                    runs=found.runs + 1,
                    successes=found.successes + said.success,
                    last=said.handoff or found.last,
                )


def _known_now(state: CrewState, agent: str) -> None:
    """Others that were warned of an agent that was not registered are warned no more."""
    told = strangers((agent,))
    for name, one in state.agents.items():
        if told[0] in one.warnings:
            left = tuple(line for line in one.warnings if line not in told)
            state.agents[name] = replace(one, warnings=left)


def strangers(agents: Iterable[str]) -> tuple[str, ...]:
    """What is said of agents that a routing names and nobody has registered."""
    return tuple(f"routing names {one}, which is not registered" for one in agents)


def _handoffs(state: CrewState, event: Event, said: Payload) -> None:
    match said:
        case ce.HandoffQueued():
            context = _loaded(state, HandoffContext, said.context)
            spec = state.specs.get(said.spec_event)
            if said.spec is not None:
                spec = _loaded(state, AgentSpec, said.spec)
            move = Move(said.seq, "", HandoffState.QUEUED, event.at, "", event.actor, event.ref)
            state.handoffs[said.handoff] = Handoff(
                context,
                spec,
                HandoffState.QUEUED,
                (move,),
                context.priority,
                caller=said.caller,
                group=said.group,
                progress=_kept(state, context, spec),
            )
        case ce.HandoffMoved():
            _moved(state, event, said, limit_s=said.limit_s)
        case ce.HandoffEnded():
            _moved(state, event, said, result=_loaded(state, HandoffResult, said.result))
        case ce.RunBegun():
            _change(state, said.handoff, run=said.run)
            state.by_run[said.run] = said.handoff
        case ce.PriorityChanged():
            _change(state, said.handoff, priority=Priority(said.priority))
        case ce.StepModeSet():
            _change(state, said.handoff, stepping=said.on)
        case ce.ProgressKept():
            _change(state, said.handoff, stage=said.what, progress=said.progress, note=said.note)
            told = state.handoffs.get(said.handoff)
            talked = said.what == "role.turn" and told is not None and not told.proof
            if talked and (known := clarity_of(said.progress)) is not None:
                state.clarity = known
        case ce.LateResult():
            if (found := state.handoffs.get(said.handoff)) is not None:
                _change(state, said.handoff, late=found.late + 1)


def _kept(state: CrewState, context: HandoffContext, spec: AgentSpec | None) -> dict[str, Any]:
    """What a second try goes on from: the phases that were committed, the steps that were answered."""
    before = state.handoffs.get(context.retry_of or "")
    if before is None or spec is None or not spec.type.keeps_progress:
        return {}
    return {} if before.result is not None and before.result.success else before.progress


def _moved(
    state: CrewState,
    event: Event,
    said: ce.HandoffMoved | ce.HandoffEnded,
    *,
    limit_s: float = 0.0,
    result: HandoffResult | None = None,
) -> None:
    found = state.handoffs.get(said.handoff)
    if found is None:
        return
    target = HandoffState(said.target)
    move = Move(said.seq, said.source, target, event.at, said.reason, event.actor, event.ref)
    _change(
        state,
        said.handoff,
        state=target,
        moves=(*found.moves, move),
        spent_s=said.spent_s,
        limit_s=limit_s or found.limit_s,
        result=result or found.result,
    )


def _change(crew: CrewState, handoff: str, /, **changes: Any) -> None:
    if handoff in crew.handoffs:
        crew.handoffs[handoff] = replace(crew.handoffs[handoff], **changes)


def _groups(state: CrewState, event: Event, said: Payload) -> None:
    match said:
        case ce.GroupBegun():
            state.groups[said.group] = Group(
                said.group,
                said.mode,
                said.agents,
                event.at,
                said.min_success,
                said.candidates,
                caller=said.caller,
            )
        case ce.HandoffQueued(group=group) if group in state.groups:
            old = state.groups[group]
            state.groups[group] = replace(old, handoffs=(*old.handoffs, said.handoff))
        case ce.GroupEnded():
            if (found := state.groups.get(said.group)) is not None:
                state.groups[said.group] = replace(
                    found,
                    handoffs=said.handoffs,
                    ok=said.ok,
                    code=said.code,
                    message=said.message,
                    synthesis=said.synthesis,
                    output=said.output,
                    lost=said.lost,
                    ended=event.at,
                )


def _requests(state: CrewState, event: Event, said: Payload) -> None:
    match said:
        case ce.HumanOpened():
            request = _loaded(state, HumanRequest, said.request)
            state.requests[request.id] = request
        case ce.HumanAgain():
            if (found := state.requests.get(said.request)) is not None:
                state.requests[said.request] = _with(found, times=found.times + 1)
        case ce.HumanClosed():
            if (found := state.requests.get(said.request)) is not None:
                answer = _loaded(state, Answer, said.answer) if said.answer is not None else None
                state.requests[said.request] = _with(found, state=RequestState(said.state), answer=answer)
                if answer is not None and not said.taken:
                    state.unclaimed = (*state.unclaimed, said.request)
        case ce.HumanTaken():
            state.unclaimed = tuple(one for one in state.unclaimed if one != said.request)
        case ce.PermissionKept():
            state.permissions[said.agent, said.tool] = said.allow
        case ce.PermissionRevoked():
            state.permissions.pop((said.agent, said.tool), None)


def _with(request: HumanRequest, **changes: Any) -> HumanRequest:
    return request.model_copy(update=changes)


def _others(state: CrewState, event: Event, said: Payload) -> None:
    match said:
        case ce.FloorChanged():
            state.floor = tuple(Holder(*holder) for holder in said.holders)
        case ce.OperatorSaid():
            state.said[said.handoff] = (*state.said.get(said.handoff, ()), said.text)
        case ce.OperatorHeard():
            left = state.said.get(said.handoff, ())[1:]
            state.said = {**state.said, said.handoff: left}
        case ce.IdeaParked():
            state.ideas[said.idea] = Idea(said.idea, said.text, said.agent, said.handoff, event.at)
        case ce.IdeaSettled():
            if (idea := state.ideas.get(said.idea)) is not None:
                how: Literal["taken", "dropped"] = "taken" if said.state == "taken" else "dropped"
                state.ideas[said.idea] = replace(idea, state=how, to=said.to)
        case ce.BuildStaged():
            before = state.builds.get(said.build)
            phases = before.phases if before is not None else ()
            if said.phase and said.state in ("passed", "failed"):
                phases = (*phases, said.data)
            state.builds[said.build] = Build(
                said.build, said.phase, said.state, said.agent, said.message, said.data, event.at, phases
            )
        case ce.ServerTold():
            state.servers[said.server] = Server(said.server, said.state, said.message, said.tools, event.at)
