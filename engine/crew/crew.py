"""The crew: agents that hand work to each other, under one manager (ontology spec §1.8–§1.15).

`Engine` opens it when it is first needed. Commands come in by `carry_out`, runs come to the `desk`,
everything that happens is an event of the stream `workspace@crew`, and `state` is the fold of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, Self

from engine.agents.human import HumanRequest
from engine.agents.result import HandoffResult
from engine.crew import carrying
from engine.crew.answering import Answers
from engine.crew.checking import Checks
from engine.crew.clocks import Alarms, Deadlines, moment
from engine.crew.contexts import Setting
from engine.crew.desk import CrewDesk
from engine.crew.escalating import Escalations
from engine.crew.floor import Floor
from engine.crew.graphing import GraphSelect
from engine.crew.groups import Groups
from engine.crew.handoffs import Handoffs
from engine.crew.parts import Health, Select, Worker
from engine.crew.queue import Permits
from engine.crew.recovering import leave, recover
from engine.crew.registering import Registry
from engine.crew.requests import CONVERSATION, Requests
from engine.crew.returning import Returns
from engine.crew.selecting import Selective
from engine.crew.server_health import ServerHealth
from engine.crew.spine import Spine
from engine.crew.state import CrewState, Handoff
from engine.domain.command import Command, Receipt
from engine.domain.crew import CrewSettings
from engine.domain.crew_commands import ForCrew
from engine.domain.ports import Clock
from engine.domain.text import clean_line
from engine.journal.store import DATA_DIRECTORY, JournalStore
from engine.selection import FrameworkGraph, GraphFault
from engine.steering.standing import Standing

if TYPE_CHECKING:
    from engine.crew.builds.builds import Builds
    from engine.mcp.fleet import Servers

ROOMS = ("engine.crew.runs", "engine.crew.builds")
"""Parts that are plugged in where they are there: `ROOM.wiring.register(crew)`, which may be a coroutine."""


class Ground(Protocol):
    """What a crew stands on; the engine is one."""

    workspace: Path
    root: Path
    """The sandbox root."""
    session: str
    store: JournalStore

    @property
    def clock(self) -> Clock:
        """What time it is."""

    @property
    def crew_settings(self) -> CrewSettings:
        """Its limits."""

    @property
    def servers(self) -> Servers | None:
        """The MCP servers; None where there are none."""

    async def submit(self, command: Command, *, operator: str = "operator") -> Receipt:
        """Carry a command to an agent of the engine out."""

    def budgets(self, agent: str, goal: str = "") -> tuple[Standing, ...]:
        """The budgets that a run draws on; without one, the workspace's."""


class Crew:
    """Open it with `open`, and always `close` it."""

    def __init__(self, ground: Ground, spine: Spine) -> None:
        self.ground, self.spine = ground, spine
        clock, settings = ground.clock, ground.crew_settings
        self._alarms = Alarms(clock)
        self._graph: GraphSelect | None = None
        self.selection_trouble = ""
        """Why nothing can be selected; empty where it can."""
        self.checks = Checks(clock.monotonic, self._no_budget)
        self.permits = Permits(settings.model_calls, clock.monotonic, self._priority)
        setting = Setting(ground.session, lambda: moment(clock))
        self.handoffs = Handoffs(spine, clock, setting, self.checks, self.permits)
        self.handoffs.deadlines = Deadlines(
            clock,
            self._alarms,
            lambda name: [one.id for one in self.state.ancestors(name)],
            self.handoffs.time_is_over,
        )
        self.requests = Requests(self.handoffs, self._alarms, ground.session)
        self.escalations = Escalations(self.requests)
        self.returns = Returns(self.handoffs, self.requests)
        self.registry = Registry(spine)
        self.floor = Floor(self.handoffs, self.requests, self.escalations)
        self.groups = Groups(self.handoffs, self.requests)
        self.selective = Selective(self.handoffs, self.requests, self.groups, self.returns)
        self.answers = Answers(
            self.handoffs, self.requests, self.returns, self.escalations, self.floor, self.groups
        )
        self.desk = CrewDesk(self.handoffs, self.requests, self.returns, self.groups, self.floor)
        self.handoffs.ended += [self.floor.ended, self.escalations.ended, self._budget_looked_at]
        self.attended = settings.attended
        self.builds: Builds | None = None
        """Who builds agents; None where nobody does."""

    @classmethod
    async def open(
        cls,
        ground: Ground,
        *,
        worker: Worker | None = None,
        select: Select | None = None,
        health: Health | None = None,
    ) -> Self:
        """Read what there is, plug in the parts that are there, and settle what the last session left.

        Raises:
            JournalError: the stream cannot be read or written.
        """
        crew = cls(ground, await Spine.open(ground.store, ground.clock))
        if select is None:
            try:
                crew._graph = await GraphSelect.open(ground.workspace / DATA_DIRECTORY, ground.store)
            except GraphFault as error:
                crew.selection_trouble = clean_line(str(error))
            select = crew._graph
        if health is None and ground.servers is not None:
            health = ServerHealth(ground.servers, spine=crew.spine)
            ground.servers.follow(lambda _view: crew.checks.forget())
        for room in ROOMS if worker is None else ():
            if find_spec(room) and find_spec(f"{room}.wiring"):
                wiring = await asyncio.to_thread(import_module, f"{room}.wiring")
                registered = wiring.register(crew)
                if registered is not None:
                    await registered
        crew.plug(worker=worker, select=select, health=health)
        await recover(crew.handoffs, crew.requests)
        if crew.builds is not None:
            crew.builds.begin()
        return crew

    async def close(self) -> None:
        """End what runs, in good order; what waits, rests or is queued is there in the next session."""
        if self.builds is not None:
            await self.builds.close()
        await leave(self.handoffs)
        await self._alarms.close()
        if self._graph is not None:
            await self._graph.close()
        await self.spine.close()

    def plug(
        self, *, worker: Worker | None = None, select: Select | None = None, health: Health | None = None
    ) -> None:
        """Take a part in; it takes the place of the one before."""
        self.handoffs.worker = worker or self.handoffs.worker
        self.selective.select = select or self.selective.select
        self.checks.health = health or self.checks.health

    # -------------------------------------------------------------- what there is

    @property
    def graph(self) -> FrameworkGraph | None:
        """The selection graph; None where it cannot be had."""
        return self._graph.graph if self._graph is not None else None

    async def graph_caught_up(self) -> None:
        """Let the graph hold what the stream holds, where there is one.

        Raises:
            GraphFault: the graph cannot be written.
            JournalError: the journal cannot be read.
        """
        if self._graph is not None:
            await self.spine.commit()
            await self._graph.caught_up()

    @property
    def state(self) -> CrewState:
        """Everything that it knows; it goes on changing."""
        return self.spine.state

    @property
    def attended(self) -> bool:
        """Whether somebody is there to be asked about ties and failures."""
        return self.groups.attended

    @attended.setter
    def attended(self, there: bool) -> None:
        self.groups.attended = self.floor.attended = there

    @property
    def needs(self) -> tuple[HumanRequest, ...]:
        """What waits for the operator, the most severe first, then the oldest; no turns of a conversation."""
        handoffs = self.state.handoffs
        proofs = {one.id for one in handoffs.values() if one.open and one.proof}
        asked = (one for one in self.state.open_requests() if one.handoff_id not in proofs)
        return tuple(one for one in asked if one.reason_code != CONVERSATION)

    def handoff(self, name: str) -> Handoff:
        """A handoff by its id, or a unique beginning of it.

        Raises:
            HandoffError: none or several are meant.
        """
        return carrying.handoff_named(self, name)

    async def wait(self, handoff: str) -> HandoffResult:
        """Wait for the end of a handoff.

        Raises:
            KeyError: there is none.
        """
        return await self.handoffs.outcome(self.state.handoffs[handoff].id)

    async def wait_group(self, group: str) -> Sequence[HandoffResult]:
        """Wait for the end of a group; its results in the order given.

        Raises:
            KeyError: there is none.
        """
        while not self.state.groups[group].ended:
            await self.spine.changed()
        found = [self.state.handoffs[one].result for one in self.state.groups[group].handoffs]
        return tuple(one for one in found if one is not None)

    async def carry_out(self, command: ForCrew, actor: str) -> Receipt:
        """Carry out a command; see `engine.crew.carrying.carry_out`."""
        return await carrying.carry_out(self, command, actor)

    # -------------------------------------------------------------- budgets

    def _priority(self, name: str) -> int:
        return self.handoffs.priority(name)

    def _no_budget(self, run: str) -> str:
        for standing in self.ground.budgets(run):
            for line in standing.lines:
                if line.limit and line.left is not None and line.left <= 0:
                    return f"nothing is left of the budget of {standing.budget}: {line.kind}"
        return ""

    def _budget_looked_at(self, _handoff: Handoff, _result: HandoffResult) -> None:
        shares = [
            line.taken / line.limit
            for standing in self.ground.budgets("")
            for line in standing.lines
            if line.limit
        ]
        self.escalations.budget(max(shares, default=0.0))
