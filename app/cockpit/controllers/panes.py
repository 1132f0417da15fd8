"""Drawing the panes: each visible one that is out of date gets its model once a frame."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from app.cockpit.context import CockpitContext
from app.cockpit.controllers.layout import Layout
from app.cockpit.controllers.links import CrewLink, ImproveLink
from app.projection import agent_views, memory_views
from app.projection import pane_views as views
from app.projection.projector import Pane
from engine.api.workspace_engine import WorkspaceEngine
from engine.core import commands as cmd
from engine.core.agents import recording_of
from engine.core.journal import JournalError
from engine.core.state import AgentState
from engine.memory.errors import MemoryFault
from engine.memory.metacognition.schedule import root_goal
from engine.value import dataclass, replace
from widgets.base.rows import Row
from widgets.panes.beliefs import BeliefsPane, WorkingMemory
from widgets.panes.errors import ErrorPanel
from widgets.panes.goals import GoalStack
from widgets.panes.mind_stream import MindStream
from widgets.panes.plan import PlanPane
from widgets.panes.session import SandboxPane
from widgets.panes.status_bar import StatusBar
from widgets.panes.world import WorldPane

if TYPE_CHECKING:
    from engine.memory.working_memory import WorkingMemory as MindOf

PAST_EVENTS = 600
"""Events of an agent that panes show when it is looked at for the first time."""

SHORT_LIFE = 4 * PAST_EVENTS
"""Events of an agent for which the first screen waits."""
READ_EVERY_S = 0.5

OTHERS_SHELL = "its shell is open (t)"
"""Where the operator of another screen took it, or of one that is gone."""

AGED_S = 30.0
"""After so long memories in mind are read again although nothing was written: they age."""

CAPACITY = 20
"""Memories that a workflow may have in mind."""


@dataclass(frozen=True, slots=True)
class WorkingSet:
    """What was read of an agent's mind."""

    agent: str = ""
    workflow: str = ""
    memories: Sequence[Row] = ()
    pinned: frozenset[str] = frozenset()
    hint: str = ""
    capacity: int = 0
    as_of: int | None = None
    """The place in the journal of the event that it is of; None for now."""


def change_command(how: str, memory: str, workflow: str, agent: str = "") -> cmd.Remember:
    """The command that pins, unpins, evicts or focuses a memory."""
    if how == "focus":
        arguments: dict[str, Any] = {"memory_id": memory, "context_id": workflow}
        return cmd.Remember(agent=agent, verb="focus_memory", arguments=arguments)
    return cmd.Remember(
        agent=agent, verb="change_working_memory", arguments={"context_id": workflow, how: [memory]}
    )


class Panes:
    """Fills the panes from the projection that is shown, and reads what an agent has in mind."""

    def __init__(
        self,
        context: CockpitContext,
        layout: Layout,
        mastermind: ImproveLink,
        crew: CrewLink,
        open_memory: Callable[[str], None],
    ) -> None:
        self._context = context
        self._layout = layout
        self._mastermind = mastermind
        self._crew = crew
        self._open_memory = open_memory
        self._waiting = views.WaitingCount(context.settings.operator)
        self._drawers: dict[Pane, Callable[[AgentState], None]] = {
            Pane.GOALS: self._draw_goals,
            Pane.PLAN: lambda state: self._context.app.query_one(PlanPane).show(
                views.plan(state, context.intention)
            ),
            Pane.MEMORY: self._draw_memory,
            Pane.ERRORS: lambda state: self._context.app.query_one(ErrorPanel).show(
                agent_views.errors(state)
            ),
            Pane.MIND: lambda _state: self._context.app.query_one(MindStream).show(context.projector.mind()),
            Pane.SESSION: self._draw_session,
        }
        self._in_mind = WorkingSet()
        self._mind_of: tuple[str, str, int | None] = ("", "", None)
        """Agent and goal whose mind was read last, and as of which event."""
        self._mind_at = 0.0
        """When that was, by the monotonic clock."""
        self._mind_stale = True
        """Whether something was written to memory since."""
        self._reading_mind = False
        """Whether a worker reads what is in mind."""

    def frame(self) -> None:
        """Bring the screen up to date."""
        if self._context.app.is_running:
            for hook in self._context.frame_hooks:
                hook()
            # Health and the sandbox change without an event of an agent.
            self._context.projector.dirty.add(Pane.STATUS)
            self.draw()

    def draw(self) -> None:
        """Give every visible pane that is out of date its model; the others wait until they are seen."""
        engine, projector = self._context.engine, self._context.projector
        if engine is not None and (agent := self._context.live.story_to_read()):
            self._context.run(self.read_story(engine, agent), "story")
        dirty, projector.dirty = projector.dirty, set()
        state = projector.state or AgentState()
        for pane in dirty:
            if pane is Pane.STATUS:
                self._draw_status(projector.state)
            elif self._layout.pane(pane.value).is_on_screen:
                self._drawers[pane](state)
            else:
                projector.dirty.add(pane)

    async def begin_story(self, engine: WorkspaceEngine) -> None:
        """Read what has happened to the shown agent; of a long life it comes behind the first screen."""
        state = self._context.live.state
        if state is not None and state.version <= SHORT_LIFE:
            await self.read_story(engine, self._context.live.story_to_read())

    async def read_story(self, engine: WorkspaceEngine, agent: str) -> None:
        """Read what has happened to an agent, and do what waits for that."""
        if not agent:
            return
        before, past = await engine.story(agent, PAST_EVENTS)
        for _ in self._context.live.read_story_into(agent, before, past):
            await asyncio.sleep(0)
        if agent == self._context.agent:
            waiters, self._context.story_waiters = self._context.story_waiters, []
            for waiter in waiters:
                waiter()
        else:
            self._context.story_waiters = []

    def _draw_goals(self, _state: AgentState) -> None:
        faulty = self._context.engine.faulty if self._context.engine is not None else ()
        states, runs_over = self._context.projector.states, self._crew.runs_over()
        model = views.goal_stack(states, self._context.agent, faulty, runs_over)
        self._context.app.query_one(GoalStack).show(model)

    def _draw_memory(self, state: AgentState) -> None:
        if self._layout.shows_beliefs:
            self._context.app.query_one(BeliefsPane).show(agent_views.beliefs(state))
            return
        read = self.in_mind
        model = views.working_memory(state, read.memories, read.capacity, read.hint)
        self._context.app.query_one(WorkingMemory).show(model)

    def _draw_session(self, state: AgentState) -> None:
        if self._layout.shows_world:
            self._context.app.query_one(WorldPane).show(agent_views.world(state))
            return
        chunks, session = self._context.projector.session()
        pane = self._context.app.query_one(SandboxPane)
        if self._layout.session_of != self._context.agent:
            self._layout.session_of = self._context.agent
            pane.clear()
        pane.append(chunks)
        pane.show(session)

    def _draw_status(self, state: AgentState | None) -> None:
        engine, agent, states = self._context.engine, self._context.agent, self._context.live.states
        if engine is None:
            return
        model = views.status(state, engine.health, engine.sandbox(agent))
        if state is not None and self._context.in_past:
            now = next((live.version for live in states if live.agent_id == agent), state.version)
            model = agent_views.status(model, state, now)
        elif state is not None and state.shell_taken and not self._context.has_shell(agent):
            model = replace(model, point=OTHERS_SHELL)
        elif model.mode == "RUNNING" and not model.asks:
            model = replace(model, point=self._context.projector.asking(datetime.now(UTC)) or model.point)
        job, job_short = self._mastermind.status()
        waiting = self._waiting.count(states, self._mastermind.state, self._crew.needs)
        others = views.others(engine.clients, self._context.settings.operator)
        model = replace(model, job=job, job_short=job_short, waiting=waiting, others=others)
        recorded = any(recording_of(each.config.meta) for each in states)
        model = replace(model, link=engine.link, lost=engine.lost, recorded=recorded)
        self._context.app.query_one(StatusBar).show(model)
        self._layout.draw_tabs(model)

    def memory_written(self) -> None:
        """Something new stands in memory."""
        self._mind_stale = True

    def look_at_memory(self) -> None:
        """Read what is to be seen of memory, where that is out of date."""
        engine, state = self._context.engine, self._context.state
        memory = engine.memory_status if engine is not None else None
        if not self._context.app.is_running or memory is None or state is None or not memory.open:
            return
        now = time.monotonic()
        chosen = (state.agent_id, root_goal(state), self._context.as_of)
        old = self._mind_stale or chosen != self._mind_of or now - self._mind_at > AGED_S
        pane = self._context.pane(WorkingMemory)
        if old and not self._reading_mind and self._layout.pane("memory") is pane and pane.is_on_screen:
            self._mind_stale, self._mind_of, self._mind_at = False, chosen, now
            self._reading_mind = True
            self._context.run(self._read_mind(*chosen[:2]), "memory in mind")

    async def _read_mind(self, agent: str, goal: str) -> None:
        as_of = self._context.as_of
        try:
            workflow, working = await self.mind_of(agent, goal)
        except (MemoryFault, JournalError) as error:
            hint = f"memory cannot be read: {error}"
            self._in_mind = WorkingSet(agent, hint=hint, capacity=CAPACITY, as_of=as_of)
        else:
            rows = memory_views.working_set(working, self._context.shown_time) if working is not None else ()
            pinned = frozenset(item.memory.id for item in working.items if item.pinned) if working else ()
            hint = "working memory is empty; M finds memories, f focuses one"
            self._in_mind = WorkingSet(agent, workflow, rows, frozenset(pinned), hint, CAPACITY, as_of)
        finally:
            self._reading_mind = False
        self._context.projector.dirty.add(Pane.MEMORY)

    async def mind_of(self, agent: str, goal: str) -> tuple[str, MindOf | None]:
        """The workflow of an agent's goal, and what it has in mind; empty and None before there is one."""
        if self._context.engine is None:
            return "", None
        recall, as_of = self._context.engine.recall, self._context.as_of
        workflow = str(await recall("find_workflow", {"agent": agent, "goal": goal}, as_of=as_of))
        if not workflow:
            return "", None
        working: MindOf = await recall("get_working_memory", {"context_id": workflow}, as_of=as_of)
        return workflow, working

    @property
    def in_mind(self) -> WorkingSet:
        """What was read of the shown agent's mind; empty before that."""
        read = self._in_mind
        shown = (self._context.agent, self._context.as_of)
        return read if (read.agent, read.as_of) == shown else WorkingSet()

    def on_working_memory_pin(self, memory_id: str) -> None:
        """Pin or unpin the memory."""
        self._change_mind("unpin" if memory_id in self.in_mind.pinned else "pin", memory_id)

    def on_working_memory_evict(self, memory_id: str) -> None:
        """Take the memory out of working memory."""
        self._change_mind("evict", memory_id)

    def on_working_memory_focus(self, memory_id: str) -> None:
        """Bring the memory into focus."""
        self._change_mind("focus", memory_id)

    def on_working_memory_open(self, memory_id: str) -> None:
        """Open the memory in the browser."""
        self._open_memory(memory_id)

    def _change_mind(self, how: str, memory: str) -> None:
        workflow = self.in_mind.workflow
        if workflow:
            self._context.send(change_command(how, memory, workflow))
