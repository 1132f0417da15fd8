"""What running a goal needs of an engine, which is in this program or in another one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Protocol

from engine.core.agents import Health
from engine.core.command import Command, Receipt
from engine.core.journal import Event
from engine.core.state import AgentState

if TYPE_CHECKING:
    from engine.tools.mcp.workspace_servers import Servers


class Jail(Protocol):
    """How programs are held."""

    @property
    def refusal(self) -> str:
        """Why no program may run; empty when programs may."""


class GoalEngine(Protocol):
    """See `engine.api.engine.Engine` for each."""

    @property
    def session(self) -> str:
        """Id of the session."""

    @property
    def agents(self) -> tuple[str, ...]:
        """Ids of the agents."""

    @property
    def health(self) -> Health:
        """What does not work."""

    @property
    def servers(self) -> Servers | None:
        """The MCP servers of the workspace."""

    async def submit(self, command: Command, *, operator: str = ...) -> Receipt:
        """Carry out a command."""

    async def view(self, agent_id: str, /) -> AgentState:
        """The state of an agent."""

    async def head(self) -> int:
        """The place of the newest event."""

    def events(self, since: int = ..., *, stream: str | None = ...) -> AsyncIterator[Event]:
        """Events behind a place, and new ones."""

    def fault(self, agent: str) -> str:
        """Why an agent does nothing."""

    async def faulted(self, agent: str) -> str:
        """Wait until an agent's cycle has ended."""

    async def durable(self, agent: str) -> None:
        """Wait until what counts for an agent's state is durable."""

    def sandbox(self, agent: str = ...) -> Jail:
        """How an agent's programs are held."""
