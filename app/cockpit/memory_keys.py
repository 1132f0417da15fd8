"""What agents remember: the memories in mind beside the beliefs, the browser, and writing as the operator.

Memory is read off the paint path: a tick each half second asks again where something was written since and
somebody looks. What a read brings is kept until the next one, and the panes are drawn from that.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from textual import on

from app.cockpit.layout import Layout
from app.projection import Pane
from engine.domain import commands as cmd
from engine.journal.errors import JournalError
from engine.memory.errors import MemoryFault, MemoryNotFound
from engine.metacognition import root_goal
from widgets import RememberedLine, WorkingMemory
from widgets.line_pane import Notice

if TYPE_CHECKING:
    from engine.memory.mind import WorkingMemory as MindOf
    from widgets.dialogs.memory_browser import BrowserModel, MemoryBrowser, MemorySearch

READ_EVERY_S = 0.5
AGED_S = 30.0
"""After so long memories in mind are read again although nothing was written: they age."""
RESULTS = 50
CAPACITY = 20
"""Memories that a workflow may have in mind (spec master-loop-and-memory §1.8)."""


@dataclass(frozen=True, slots=True)
class InMind:
    """What was read of an agent's mind."""

    agent: str = ""
    workflow: str = ""
    memories: tuple[RememberedLine, ...] = ()
    hint: str = ""
    capacity: int = 0
    as_of: int | None = None
    """The place in the journal of the event that it is of; None for now."""


class MemoryKeys(Layout):
    """Looking at memory, and changing it as the operator."""

    _in_mind = InMind()
    _mind_of: tuple[str, str, int | None] = ("", "", None)
    """Agent and goal whose mind was read last, and as of which event."""
    _mind_at = 0.0
    """When that was, by the monotonic clock."""
    _mind_stale = True
    """Whether something was written to memory since."""
    _browser: MemoryBrowser | None = None
    _wanted: MemorySearch | None = None
    """What the browser looks for and was not asked of memory yet."""
    _wanted_memory = ""
    _filling = False
    """Whether a worker answers the browser; it goes on until nothing more is wanted."""
    _reading = False
    """Whether a worker reads what is in mind."""

    # -------------------------------------------------------------- the pane

    def _memory_written(self) -> None:
        """Something new stands in memory."""
        self._mind_stale = True

    def _look_at_memory(self) -> None:
        """Read what is to be seen of memory, where that is out of date."""
        engine, state = self._engine, self._projector.state
        memory = engine.memory if engine is not None else None
        if not self.is_running or memory is None or state is None or not memory.status.open:
            return
        if self._browser is not None and (self._wanted is not None or self._wanted_memory):
            self._answer_browser()
        now = time.monotonic()
        chosen = (state.agent_id, root_goal(state), self._as_of)
        old = self._mind_stale or chosen != self._mind_of or now - self._mind_at > AGED_S
        pane = self.query_one("#memory", WorkingMemory)
        if old and not self._reading and self._pane("memory") is pane and pane.is_on_screen:
            self._mind_stale, self._mind_of, self._mind_at = False, chosen, now
            self._reading = True
            self.run_worker(self._read_mind(*chosen[:2]), name="memory in mind", exit_on_error=False)

    async def _read_mind(self, agent: str, goal: str) -> None:
        as_of = self._as_of
        try:
            workflow, working = await self._mind(agent, goal)
        except (MemoryFault, JournalError) as error:
            self._in_mind = InMind(agent, "", (), f"memory cannot be read: {error}", CAPACITY, as_of)
        else:
            from app.projection import memory_views

            lines = memory_views.mind(working, self._shown_time) if working is not None else ()
            hint = "nothing is in mind; M looks for memories, and f there brings one into focus"
            self._in_mind = InMind(agent, workflow, lines, hint, CAPACITY, as_of)
        finally:
            self._reading = False
        self._projector.dirty.add(Pane.MEMORY)

    async def _mind(self, agent: str, goal: str) -> tuple[str, MindOf | None]:
        """The workflow of an agent's goal, and what it has in mind; empty and None before there is one."""
        if self._engine is None:
            return "", None
        asked = {"agent": agent, "goal": goal}
        workflow = str(await self._engine.recall("find_workflow", asked, as_of=self._as_of))
        if not workflow:
            return "", None
        working: MindOf = await self._engine.recall(
            "get_working_memory", {"context_id": workflow}, as_of=self._as_of
        )
        return workflow, working

    @property
    def _shown_mind(self) -> InMind:
        """What was read of the shown agent's mind; empty before that."""
        read = self._in_mind
        return read if (read.agent, read.as_of) == (self._agent, self._as_of) else InMind()

    @on(WorkingMemory.PinRequested)
    def _pin(self, event: WorkingMemory.PinRequested) -> None:
        self._change_mind("pin" if event.pinned else "unpin", event.memory_id)

    @on(WorkingMemory.EvictRequested)
    def _evict(self, event: WorkingMemory.EvictRequested) -> None:
        self._change_mind("evict", event.memory_id)

    @on(WorkingMemory.FocusRequested)
    def _bring_into_focus(self, event: WorkingMemory.FocusRequested) -> None:
        self._change_mind("focus", event.memory_id)

    @on(WorkingMemory.OpenRequested)
    def _open_memory(self, event: WorkingMemory.OpenRequested) -> None:
        self._open_browser(opens=event.memory_id)

    def _change_mind(self, how: str, memory: str) -> None:
        workflow = self._shown_mind.workflow
        if workflow:
            self._send(_change(how, memory, workflow))

    # -------------------------------------------------------------- the browser

    def action_memories(self) -> None:
        """Look for memories."""
        self._open_browser()

    def _open_browser(self, query: str = "", opens: str = "") -> None:
        if len(self.screen_stack) > 1:
            return
        if self._engine is None or self._engine.memory is None:
            self._say("the workspace is still opening", "error")
            return
        if trouble := self._engine.health.memory:
            self._say(trouble, "error")
        from app.projection.memory_views import LEVELS, TYPES
        from widgets.dialogs.memory_browser import BrowserModel, MemoryBrowser, MemorySearch

        search = MemorySearch(query)
        model = BrowserModel(
            self._agent, "", search, (), LEVELS, TYPES, notice=Notice("reading memory …", "loading")
        )
        self._browser = MemoryBrowser(model, opens=opens)
        self._wanted = search
        self.push_screen(self._browser, self._browser_closed)

    def _browser_closed(self, _none: None) -> None:
        self._browser, self._wanted, self._wanted_memory = None, None, ""

    # The names of the handlers say which dialog's message they take, so that it need not be imported before.

    def on_memory_browser_search_requested(self, event: MemoryBrowser.SearchRequested) -> None:
        """Look for it at the next tick; of several until then only for the last."""
        self._wanted = event.search

    def on_memory_browser_open_requested(self, event: MemoryBrowser.OpenRequested) -> None:
        """Read a memory at once: the operator goes from one to the next."""
        self._wanted_memory = event.memory_id
        self._answer_browser()

    def _answer_browser(self) -> None:
        if not self._filling:
            self._filling = True
            self.run_worker(self._fill_browser(), name="memory browser", exit_on_error=False)

    async def _fill_browser(self) -> None:
        """Answer what the open browser wants to know, until it wants nothing more."""
        try:
            while (browser := self._browser) is not None and self._engine is not None:
                search, memory = self._wanted, self._wanted_memory
                if search is None and not memory:
                    return
                self._wanted, self._wanted_memory = None, ""
                if search is not None:
                    browser.show(await self._results(search))
                if memory:
                    await self._show_memory(browser, memory)
        finally:
            self._filling = False

    async def _results(self, search: MemorySearch) -> BrowserModel:
        from app.projection.memory_views import LEVELS, TYPES, found
        from widgets.dialogs.memory_browser import BrowserModel

        model = partial(BrowserModel, self._agent, search=search, levels=LEVELS, types=TYPES)
        engine, state = self._engine, self._projector.state
        if engine is None or state is None:
            return model(notice=Notice("the workspace is closed", "error"))
        try:
            workflow, _ = await self._mind(state.agent_id, root_goal(state))
            if not workflow and not search.everywhere:
                return model(
                    notice=Notice("This agent has no work yet: give it a goal. W looks in all work.")
                )
            asked = {"workflow_id": "" if search.everywhere else workflow, "limit": RESULTS}
            asked |= {name: value for name, value in _filters(search).items() if value}
            if search.query:
                hits = await engine.recall(
                    "hybrid_search_memories", {"query": search.query, **asked}, as_of=self._as_of
                )
            else:
                hits = await engine.recall(
                    "query_memories", {"sort_by": "created_at", **asked}, as_of=self._as_of
                )
        except (MemoryFault, JournalError) as error:
            return model(notice=Notice(str(error), "error"))
        memory = engine.memory
        note = memory.status.note if memory is not None and search.query else ""
        work = await self._work_named(workflow)
        return model(work=work, found=found(hits, self._shown_time, scored=bool(search.query)), note=note)

    async def _work_named(self, workflow: str) -> str:
        if not workflow or self._engine is None:
            return ""
        found = await self._engine.recall(
            "get_workflow_details", {"workflow_id": workflow}, as_of=self._as_of
        )
        return f"{workflow} {found.title}"

    async def _show_memory(self, browser: MemoryBrowser, ident: str) -> None:
        from app.projection import memory_views

        assert self._engine is not None
        try:
            card = await self._engine.recall("show_memory", {"memory_id": ident}, as_of=self._as_of)
        except MemoryNotFound:
            browser.show_detail(None)
            self._say(f"{ident} is forgotten", "note")
            return
        except (MemoryFault, JournalError) as error:
            self._say(str(error), "error")
            return
        if browser.opened == ident:
            browser.show_detail(memory_views.detail(card, self._shown_time))

    def on_memory_browser_change_requested(self, event: MemoryBrowser.ChangeRequested) -> None:
        """Write as the operator; what is forgotten is asked about first."""
        if self._refused_in_past():
            return
        if event.how != "forget":
            self.run_worker(self._change_memory(event), name="memory change", exit_on_error=False)
            return
        from widgets.dialogs import ConfirmDialog, ConfirmModel

        model = ConfirmModel(
            f"Forget {event.memory_id}?",
            "The agent finds it no more, nor do you; its history stays in the journal.",
        )
        self.push_screen(ConfirmDialog(model), partial(self._forgotten, event.memory_id))

    def _forgotten(self, memory: str, sure: bool | None) -> None:
        if sure:
            forget = cmd.Remember(
                agent=self._agent, verb="forget_memories", arguments={"memory_ids": [memory]}
            )
            self.run_worker(self._written(forget), name="memory change", exit_on_error=False)

    async def _change_memory(self, event: MemoryBrowser.ChangeRequested) -> None:
        if self._engine is None:
            return
        if event.how == "importance":
            arguments = {"memory_id": event.memory_id, "importance": event.importance}
            await self._written(cmd.Remember(agent=self._agent, verb="update_memory", arguments=arguments))
            return
        try:
            details = await self._engine.recall("get_memory_by_id", {"memory_id": event.memory_id})
        except (MemoryFault, JournalError) as error:
            self._say(str(error), "error")
            return
        await self._written(_change(event.how, event.memory_id, details.memory.workflow, self._agent))

    async def _written(self, command: cmd.Remember) -> None:
        """Write, and let the browser show what came of it."""
        await self._submit(command)
        if self._browser is not None:
            self._browser.again()


def _change(how: str, memory: str, workflow: str, agent: str = "") -> cmd.Remember:
    """The command that pins, unpins, evicts or focuses a memory."""
    if how == "focus":
        arguments: dict[str, Any] = {"memory_id": memory, "context_id": workflow}
        return cmd.Remember(agent=agent, verb="focus_memory", arguments=arguments)
    return cmd.Remember(
        agent=agent, verb="change_working_memory", arguments={"context_id": workflow, how: [memory]}
    )


def _filters(search: MemorySearch) -> dict[str, str]:
    return {"memory_level": search.level, "memory_type": search.type}
