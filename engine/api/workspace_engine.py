"""What operators' programs use of an open workspace, whichever process its engine runs in."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from engine.agent.branches import Branches
from engine.agent.steering.budget_status import BudgetStatus
from engine.agent.turn_scheduler import TurnScheduler
from engine.core import commands as cmd
from engine.core.agents import Health
from engine.core.approvals import Envelope
from engine.core.journal import Event, JournalError
from engine.core.memory import MemoryStatus
from engine.core.state import AgentState
from engine.core.store.port import JournalStore
from engine.core.streams import StreamHistory
from engine.core.trust import FolderTrust
from engine.inquiry.dry_run import DryAnswer
from engine.inquiry.inbox import Need
from engine.inquiry.waiting import Waiting
from engine.planning.library.plan_library import PlanLibrary
from engine.sandbox.tier import SandboxReport
from engine.tools.registry import ToolRegistry

if TYPE_CHECKING:
    from engine.crew.crew import Crew
    from engine.improve.agent_creation import AgentService
    from engine.improve.mastermind import Mastermind
    from engine.inquiry.record import Record
    from engine.memory.memory import Memory
    from engine.memory.requests import Request
    from engine.tools.mcp.workspace_servers import Servers


class EngineAwayError(JournalError):
    """It cannot be done with an engine of another process, or that one cannot be reached."""


class OperatorTerminal(Protocol):
    """See `engine.sandbox.terminal.Terminal` for each member."""

    open: bool

    def follow(self, sink: Callable[[bytes], None]) -> Callable[[], None]:
        """Give what is printed."""

    def write(self, data: bytes) -> None:
        """Pass on what was typed."""

    def answer(self, data: bytes) -> None:
        """Pass on what the emulator replies."""

    def resize(self, rows: int, columns: int) -> None:
        """Say how large the screen is."""


class WorkspaceEngine(Protocol):
    """An engine as it is operated; see `engine.api.engine.Engine` and `WorkspaceQueries` for each member.

    What cannot be done with an engine of another process raises `EngineAwayError`, whose message says so.
    """

    workspace: Path
    root: Path
    here: Path
    session: str
    store: JournalStore
    library: PlanLibrary
    registry: ToolRegistry
    servers: Servers | None
    time_travel: Branches
    trust: FolderTrust | None
    pace: TurnScheduler
    memory: Memory | None
    model_name: str

    @property
    def agents(self) -> tuple[str, ...]:
        """Ids of the agents that exist."""

    @property
    def faulty(self) -> tuple[str, ...]:
        """Ids of the agents that ended by a fault."""

    @property
    def health(self) -> Health:
        """What does not work now."""

    @property
    def examples(self) -> tuple[str, ...]:
        """Goals in plain English that agents understand without a model."""

    @property
    def memory_status(self) -> MemoryStatus | None:
        """How memory is; None before there is one."""

    @property
    def link(self) -> str:
        """Where the engine is, in a few words; empty where it is in this process."""

    @property
    def watching(self) -> bool:
        """Whether nothing may be changed from here."""

    @property
    def lost(self) -> bool:
        """Whether the engine of another process cannot be reached now."""

    @property
    def clients(self) -> Sequence[Mapping[str, Any]]:
        """Who is connected: rows with `operator` and `watch`."""

    async def submit(
        self, command: cmd.Command, *, operator: str = "operator", own: bool = False
    ) -> cmd.Receipt:
        """Carry out a command; `own` counts only in the engine's process."""

    async def line(self, line: str, agent: str, *, dry: bool = False) -> tuple[int, dict[str, Any], str]:
        """Have a line of the command bar carried out where the engine is; only one of another process can."""

    async def stopped(self) -> None:
        """Return when every stop has its last receipt."""

    def events(
        self, since: int = 0, *, stream: str | None = None, follow: bool = True
    ) -> AsyncIterator[Event]:
        """Durable events after a place in the workspace."""

    async def view(self, agent_id: str, at: int | None = None) -> AgentState:
        """The state of an agent."""

    def past(self, agent: str) -> StreamHistory:
        """What an agent was at each of its durable events."""

    async def head(self) -> int:
        """The place of the newest durable event."""

    async def story(self, agent: str, count: int) -> tuple[AgentState, list[Event]]:
        """The newest durable events of an agent, and its state before them."""

    async def record(self) -> Record:
        """All durable events with what caused them."""

    async def dry_run(self, agent: str, lines: Sequence[str], last: int | None = None) -> DryAnswer:
        """What breakpoints would have done."""

    async def waiting(self, agent_id: str) -> Waiting:
        """What an agent waits for."""

    async def inbox(self) -> tuple[Need, ...]:
        """All that needs the operator."""

    def propose(self, state: AgentState, goal: str) -> Envelope | None:
        """The narrowest envelope of a goal's plan."""

    async def recall(
        self,
        request: Request[Any] | str,
        arguments: Mapping[str, Any] | None = None,
        *,
        as_of: int | None = None,
    ) -> Any:
        """What is remembered."""

    def sandbox(self, agent: str = "") -> SandboxReport:
        """How programs are held."""

    def terminal(self, agent: str) -> OperatorTerminal | None:
        """The operator's open terminal."""

    def budgets(self, agent: str, goal: str = "") -> tuple[BudgetStatus, ...]:
        """Budgets of an agent."""

    def family(self, agent: str) -> tuple[str, ...]:
        """An agent and those that work for it."""

    def fault(self, agent: str) -> str:
        """Why an agent does nothing."""

    async def faulted(self, agent: str) -> str:
        """Wait until an agent's cycle has ended."""

    async def blob(self, digest: str) -> bytes | None:
        """A large value."""

    async def mastermind(self) -> Mastermind:
        """Who changes the system itself."""

    async def crew(self) -> Crew:
        """Who manages agents that hand work to each other."""

    async def agent_service(self) -> AgentService:
        """What can be done with agents, identities and registries."""

    async def close(self, reason: str = "") -> None:
        """End the engine; one of another process runs on, and only the connection ends."""
