"""Decides whether a handoff may run, and keeps the registry of agents that can be handed work.

Eight questions are asked in their order, and the first refusal counts: what the crew knows comes first, then
tools and budget. A refused handoff never runs, and no model is asked about it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import Any

from engine.core import crew as ce
from engine.core.text import clean_line
from engine.crew.event_stream import EventStream, unknown_agents
from engine.crew.handoffs.schedule import LEAST_S, MARGIN_S
from engine.crew.ontology.context import HandoffContext
from engine.crew.ontology.kinds import RESERVED, ErrorCode, HandoffType, InvalidError
from engine.crew.ontology.spec import ANYBODY, AgentSpec
from engine.crew.ontology.spec_parser import parse_spec
from engine.crew.ports import HandoffError, Lacks
from engine.crew.state import CrewState, Handoff, Registered

DEPTH = 6
"""Agents in a line of delegations."""
FANOUT = 8
"""Open handoffs below one."""
OPEN = 32
"""Open handoffs of a session."""


def _refusals(state: CrewState, handoff: Handoff, left_s: float) -> Iterator[HandoffError]:
    """All that speaks against a handoff, of what is known without asking anybody: questions 1 to 6, in order.

    Args:
        state: the crew as it is.
        handoff: the handoff, queued.
        left_s: seconds that its parent has left.
    """
    context, spec = handoff.context, handoff.spec
    to, entry = context.to_agent, state.agents.get(context.to_agent)
    # Sub-agents of a run are not registered; their caller made them.
    registered = state.registered(handoff)
    # Another engine may have its agent, and asks what only it knows.
    remote = spec is None and state.remote and not handoff.origin
    remote = remote and context.handoff_type is HandoffType.DELEGATE
    if not remote and (spec is None or (registered and entry is None)):
        near = nearest(to, state.agents)
        known = f"; near it: {', '.join(near)}" if near else ""
        yield HandoffError(ErrorCode.UNKNOWN_AGENT, f"no agent {to} is registered{known}")
        return
    if registered and entry is not None and not entry.enabled:
        yield HandoffError(ErrorCode.NOT_CALLABLE, f"{to} is disabled")
    if spec is not None and not spec.handoff.supports.takes(context.handoff_type):
        yield HandoffError(ErrorCode.NOT_CALLABLE, f"{to} takes no {context.handoff_type}")
    if registered and context.from_agent not in RESERVED:
        above = state.handoff_of(handoff.caller)
        yield from _routing(context, spec, above.spec if above is not None else None)
    yield from _limits(state, context)
    why = spec.handoff.receives.refusal(context.problem_clarity) if spec is not None else ""
    if why and context.handoff_type is not HandoffType.ESCALATE:
        yield HandoffError(ErrorCode.INSUFFICIENT_CLARITY, f"{to} does not begin: {why}")
    if min(context.timeout_seconds, left_s - MARGIN_S) < LEAST_S:
        message = f"{to} would have less than {LEAST_S:.0f} s of the {left_s:.0f} s that are left"
        yield HandoffError(ErrorCode.TIMEOUT, message)


def _routing(
    context: HandoffContext, spec: AgentSpec | None, caller: AgentSpec | None
) -> Iterator[HandoffError]:
    who, to = context.from_agent, context.to_agent
    if spec is not None and not spec.handoff.routing.admits(who):
        yield HandoffError(ErrorCode.NOT_CALLABLE, f"{to} may not be called by {who}")
    if caller is not None and not reaches(caller, to):
        yield HandoffError(ErrorCode.NOT_CALLABLE, f"{who} may not delegate to {to}")


def reaches(caller: AgentSpec, to: str) -> bool:
    """Whether an agent's own routing leads to another: by name, or to one of its parts."""
    parts = {caller.synthesizer, *caller.handoff.routing.can_delegate_to}
    if caller.debate is not None:
        parts |= {caller.debate.judge_agent, *(side.agent_id for side in caller.debate.sides)}
    return to in parts


def _limits(state: CrewState, context: HandoffContext) -> Iterator[HandoffError]:
    """Cycles, too long a line of delegations, too many open handoffs."""
    line = (*context.lineage, context.to_agent)
    if context.to_agent in context.lineage:
        yield HandoffError(ErrorCode.CYCLE, f"{context.to_agent} is in the line already: {' → '.join(line)}")
    if len(line) > DEPTH:
        yield HandoffError(ErrorCode.DEPTH_LIMIT, f"it would be agent {len(line)} of {DEPTH} in a line")
    others = [other for other in state.open() if other.id != context.handoff_id]
    beside = sum(other.context.parent_id == context.parent_id for other in others) if context.parent_id else 0
    if beside >= FANOUT:
        message = f"{beside} handoffs are open below its parent; {FANOUT} at most"
        yield HandoffError(ErrorCode.FANOUT_LIMIT, message)
    if len(others) >= OPEN:
        yield HandoffError(ErrorCode.FANOUT_LIMIT, f"{len(others)} handoffs are open; {OPEN} at most")


def nearest(name: str, among: Iterable[str]) -> tuple[str, ...]:
    """The three ids that are most like one."""
    return tuple(get_close_matches(name, list(among), n=3, cutoff=0.4))


def key_by_prefix(what: str, name: str, among: Collection[str], prefix: str) -> str:
    """The key that a name means: itself, or the only one that begins with it, with or without the prefix.

    Raises:
        HandoffError: none or several are meant; the nearest are named.
    """
    for key in (name, prefix + name):
        if key in among:
            return key
    shown = clean_line(name, limit=80)
    matches = [key for key in among if key.startswith((name, prefix + name))]
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise HandoffError(
            ErrorCode.BAD_CONTEXT, f"{shown} is the beginning of {len(matches)} {what}s; say more of it"
        )
    near = ", ".join(nearest(name, among)) or "none is like it"
    raise HandoffError(ErrorCode.BAD_CONTEXT, f"there is no {what} {shown}: {near}")


class AdmissionChecks:
    """Asks the eight questions in their order.

    Args:
        lacks: what is missing of a server's tools.
        no_budget: why nothing may be spent for a run (empty: for the workspace), in words; empty when it may.
    """

    def __init__(self, lacks: Lacks, no_budget: Callable[[str], str]) -> None:
        self._lacks, self._no_budget = lacks, no_budget

    async def refusal(self, state: CrewState, handoff: Handoff, left_s: float) -> HandoffError | None:
        """Why a handoff may not run; the first reason counts.

        Args:
            state: the crew.
            handoff: the handoff, queued.
            left_s: seconds that its parent has left.
        """
        refused = next(_refusals(state, handoff, left_s), None)
        if refused is not None:
            return refused
        for use in handoff.spec.tools.mcp_servers if handoff.spec is not None else ():
            if use.required and (why := await self._lacks(use.server, use.tools)):
                message = f"{handoff.agent} needs the server {use.server}: {why}"
                return HandoffError(ErrorCode.TOOL_UNAVAILABLE, message)
        if why := self._no_budget(handoff.caller):
            return HandoffError(ErrorCode.BUDGET, why)
        return None


class AgentRegistry:
    """The registered types.

    Args:
        stream: the stream of their events.
    """

    def __init__(self, stream: EventStream) -> None:
        self._stream = stream

    @property
    def _state(self) -> CrewState:
        return self._stream.state

    async def register(
        self,
        given: AgentSpec | Mapping[str, Any],
        *,
        source: str = "",
        actor: str = "system",
        warnings: tuple[str, ...] = (),
        expected: Collection[str] = (),
    ) -> Registered:
        """Take a type in; one of the same id is replaced, and what runs by it continues as it began.

        Args:
            given: its spec.
            source: where it comes from, in a word.
            actor: who wants it.
            warnings: what is to be known of it.
            expected: agents that are registered right after it.

        Raises:
            HandoffError: it is no spec; every problem is reported.
            JournalError: it could not be recorded.
        """
        try:
            # A copy with other fields was checked by nobody, and what is recorded is read at each opening.
            spec = (
                AgentSpec.loaded(given.model_dump(mode="json"))
                if isinstance(given, AgentSpec)
                else parse_spec(given)
            )
        except InvalidError as error:
            raise HandoffError(ErrorCode.BAD_CONTEXT, str(error)) from error
        if spec.id in RESERVED:
            raise HandoffError(
                ErrorCode.BAD_CONTEXT, f"agent spec: id: {spec.id} is no agent's; it is reserved"
            )
        old = self._state.agents.get(spec.id)
        if old is None or old.spec != spec or old.source != source:
            event = ce.AgentRegistered(
                spec=spec.model_dump(mode="json"),
                source=source,
                warnings=(*warnings, *self._strangers(spec, expected)),
            )
            self._stream.append(event, actor=actor)
        await self._stream.commit()
        return self._state.agents[spec.id]

    async def remove(self, agent: str, *, reason: str = "", actor: str = "system") -> None:
        """Take a type out; what runs continues.

        Raises:
            HandoffError: there is none.
            JournalError: it could not be recorded.
        """
        self.entry(agent)
        self._stream.append(ce.AgentRemoved(agent=agent, reason=reason), actor=actor)
        await self._stream.commit()

    async def enable(self, agent: str, enabled: bool, *, actor: str = "system") -> None:
        """Say whether an agent takes work.

        Raises:
            HandoffError: there is none.
            JournalError: it could not be recorded.
        """
        if self.entry(agent).enabled != enabled:
            self._stream.append(ce.AgentEnabled(agent=agent, enabled=enabled), actor=actor)
        await self._stream.commit()

    def entry(self, agent: str) -> Registered:
        """A registered agent.

        Raises:
            HandoffError: there is none; the nearest are named.
        """
        if (entry := self._state.agents.get(agent)) is not None:
            return entry
        near = ", ".join(nearest(agent, self._state.agents))
        message = f"no agent {agent!r} is registered" + (f"; near it: {near}" if near else "")
        raise HandoffError(ErrorCode.UNKNOWN_AGENT, message)

    def _strangers(self, spec: AgentSpec, expected: Collection[str]) -> tuple[str, ...]:
        """Ids in the routing that no agent has (yet): no error, as agents may come in any order."""
        routing = spec.handoff.routing
        callers = routing.can_be_called_by if routing.can_be_called_by != ANYBODY else ()
        named = dict.fromkeys((*routing.can_delegate_to, *callers))
        known = {*self._state.agents, *RESERVED, ANYBODY, spec.id, *expected}
        return unknown_agents(agent for agent in named if agent not in known)
