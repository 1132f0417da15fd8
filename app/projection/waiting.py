"""How many things wait for the operator, for the header: what the inbox would list."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from engine.domain.mastermind import MastermindState
from engine.domain.state import AgentState
from engine.inquiry import needs_of, needs_of_system


class Waiting:
    """Counts what waits over all agents; only what has changed is looked at again."""

    def __init__(self) -> None:
        self._agents: dict[str, tuple[int, int]] = {}
        self._system = self._crew = (-1, 0)

    def count(
        self,
        agents: Iterable[AgentState],
        system: MastermindState | None,
        crew: tuple[int, Callable[[], int]] | None,
    ) -> int:
        """How many things wait.

        Args:
            agents: the states of all agents.
            system: what Mastermind knows; None while it is not open.
            crew: the version of the crew's state, and what counts its requests; None while it is not open.
        """
        found = sum(self._of(state) for state in agents)
        if system is not None:
            if self._system[0] != system.version:
                self._system = (system.version, len(needs_of_system(system)))
            found += self._system[1]
        if crew is not None:
            if self._crew[0] != crew[0]:
                self._crew = (crew[0], crew[1]())
            found += self._crew[1]
        return found

    def _of(self, state: AgentState) -> int:
        known = self._agents.get(state.agent_id)
        if known is None or known[0] != state.version:
            known = self._agents[state.agent_id] = (state.version, len(needs_of(state)))
        return known[1]
