"""Which types of agents can be handed work: registered, replaced, switched off, removed."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from engine.agents.kinds import ErrorCode
from engine.agents.reading import read_spec
from engine.agents.spec import ANYBODY, AgentSpec
from engine.agents.values import RESERVED, InvalidError
from engine.crew.admission import nearest
from engine.crew.fold import strangers
from engine.crew.parts import HandoffError
from engine.crew.spine import Spine
from engine.crew.state import CrewState, Registered
from engine.journal import crew_events as ce


class Registry:
    """The registered types.

    Args:
        spine: where their events go.
    """

    def __init__(self, spine: Spine) -> None:
        self._spine = spine

    @property
    def _state(self) -> CrewState:
        return self._spine.state

    async def register(
        self,
        given: AgentSpec | Mapping[str, Any],
        *,
        source: str = "",
        actor: str = "system",
        warnings: tuple[str, ...] = (),
        expected: Collection[str] = (),
    ) -> Registered:
        """Take a type in; one of the same id is replaced, and what runs by it goes on as it began.

        Args:
            given: its spec.
            source: where it comes from, in a word.
            actor: who wants it.
            warnings: what is to be known of it.
            expected: agents that are registered right after it.

        Raises:
            HandoffError: it is no spec; everything that is wrong is told.
            JournalError: it could not be recorded.
        """
        try:
            spec = given if isinstance(given, AgentSpec) else read_spec(given)
        except InvalidError as error:
            raise HandoffError(ErrorCode.BAD_CONTEXT, str(error)) from error
        if spec.id in RESERVED:
            raise HandoffError(
                ErrorCode.BAD_CONTEXT, f"agent spec: id: {spec.id} is no agent's; it is reserved"
            )
        old = self._state.agents.get(spec.id)
        if old is None or old.spec != spec or old.source != source:
            said = ce.AgentRegistered(
                spec=spec.model_dump(mode="json"),
                source=source,
                warnings=(*warnings, *self._strangers(spec, expected)),
            )
            self._spine.append(said, actor=actor)
        await self._spine.commit()
        return self._state.agents[spec.id]

    async def remove(self, agent: str, *, reason: str = "", actor: str = "system") -> None:
        """Take a type out; what runs goes on.

        Raises:
            HandoffError: there is none.
            JournalError: it could not be recorded.
        """
        self.entry(agent)
        self._spine.append(ce.AgentRemoved(agent=agent, reason=reason), actor=actor)
        await self._spine.commit()

    async def enable(self, agent: str, enabled: bool, *, actor: str = "system") -> None:
        """Say whether an agent takes work.

        Raises:
            HandoffError: there is none.
            JournalError: it could not be recorded.
        """
        if self.entry(agent).enabled != enabled:
            self._spine.append(ce.AgentEnabled(agent=agent, enabled=enabled), actor=actor)
        await self._spine.commit()

    def entry(self, agent: str) -> Registered:
        """A registered agent.

        Raises:
            HandoffError: there is none; the nearest are named.
        """
        if (found := self._state.agents.get(agent)) is not None:
            return found
        near = ", ".join(nearest(agent, self._state.agents))
        said = f"no agent {agent!r} is registered" + (f"; near it: {near}" if near else "")
        raise HandoffError(ErrorCode.UNKNOWN_AGENT, said)

    def _strangers(self, spec: AgentSpec, expected: Collection[str]) -> tuple[str, ...]:
        """Ids in the routing that nobody has (yet): no error, as agents may come in any order."""
        routing = spec.handoff.routing
        callers = routing.can_be_called_by if routing.can_be_called_by != ANYBODY else ()
        named = dict.fromkeys((*routing.can_delegate_to, *callers))
        known = {*self._state.agents, *RESERVED, ANYBODY, spec.id, *expected}
        return strangers(one for one in named if one not in known)
